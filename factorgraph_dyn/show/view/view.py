"""Pages of mechanisms that move: ``fgd.view``.

Takes a mechanism with a configuration, several, or a trajectory; gives a page without any request to a network, with
sliders for the joints, a time bar, and torques beside it. In a notebook it shows itself.
"""

from __future__ import annotations

import html
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_finite, check_mapping, real_numbers
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.show.view.scene import scene
from factorgraph_dyn.show.web_page import web_page, write_page
from factorgraph_dyn.solve.trajectory import Trajectory
from factorgraph_dyn.spatial import Floats

SCRIPTS = ("three.min.js", "motion.js", "bodies.js", "page.js")
MOST_TIMES = 2000  # moments of a trajectory that a page holds; longer ones are thinned


@dataclass(frozen=True, eq=False)
class View:
    """A page that shows a mechanism; in a notebook it shows itself.

    Attributes:
        page: The page as text.
    """

    page: str

    def save(self, path: str | Path) -> None:
        """Write the page to an HTML file."""
        write_page(self.page, path, "the view")

    def __repr__(self) -> str:
        return f"<View: a page of {len(self.page) / 1e6:.1f} MB; save(path) writes it>"

    def _repr_html_(self) -> str:
        return (
            f'<iframe srcdoc="{html.escape(self.page, quote=True)}" style="width: 100%; height: 520px; border: 0" '
            'sandbox="allow-scripts"></iframe>'
        )


def view(
    mechanism: Mechanism,
    q_or_trajectory: npt.ArrayLike | Trajectory | None = None,
    path: str | Path | None = None,
    *,
    wrenches: Mapping[str, npt.ArrayLike] | None = None,
) -> View:
    """A page that shows a mechanism: bodies, joint axes, inertias, loops and frames, with sliders and a time bar.

    Args:
        mechanism: The mechanism.
        q_or_trajectory: A configuration (nq,), by default the neutral one, several (times, nq), or what `simulate`
            gives.
        path: An HTML file to write; without one, the result can be saved later.
        wrenches: Forces to draw as arrows, by link or frame: [moment; force] in its axes, shape (6,) or (times, 6).

    Raises:
        InputError: Arrays of a wrong shape, a link or frame that there is not, a path that cannot be written.
    """
    check_mechanism(mechanism)
    given = {} if wrenches is None else wrenches
    check_mapping(given, "wrenches", "a dict of wrenches by link or frame")
    data = scene(mechanism) | _moments(mechanism, q_or_trajectory)
    data["arrows"] = [_arrow(mechanism, name, value, len(data["q"])) for name, value in given.items()]
    shown = View(web_page("view", f"{mechanism.name}", data, SCRIPTS))
    if path is not None:
        shown.save(path)
    return shown


def _moments(mechanism: Mechanism, given: npt.ArrayLike | Trajectory | None) -> dict[str, Any]:
    """The configurations that the time bar goes through, and what is plotted beside it."""
    if isinstance(given, Trajectory):
        kept = np.unique(np.linspace(0, len(given.t) - 1, min(len(given.t), MOST_TIMES)).round().astype(int))
        q = check_finite(given.q[kept], (len(kept), mechanism.nq), "The trajectory's q")
        return {"times": given.t[kept].tolist(), "q": _short(q), "curves": _curves(mechanism, given, kept)}
    q = np.atleast_2d(mechanism.neutral() if given is None else real_numbers(given, "q", InputError))
    rows = check_finite(q, (len(q), mechanism.nq), "q")
    return {"times": np.arange(len(rows), dtype=float).tolist(), "q": _short(rows), "curves": None}


def _curves(mechanism: Mechanism, given: Trajectory, kept: npt.NDArray[np.int64]) -> dict[str, Any]:
    tau = np.asarray(given.tau)[kept]
    names = [f"{joint.name}" for joint in mechanism.movable_joints for _ in range(joint.nv)]
    return {"title": "torques (N m or N)", "names": names, "values": _short(tau)}


def _arrow(mechanism: Mechanism, name: str, value: npt.ArrayLike, times: int) -> dict[str, Any]:
    frames = {frame.name: frame for frame in mechanism.frames}
    if name not in frames and name not in mechanism.link_names:
        raise InputError(
            f"There is no link or frame {name!r} for a wrench to act on; there are {', '.join(mechanism.link_names)}."
        )
    link = frames[name].link if name in frames else name
    placement = frames[name].placement if name in frames else np.eye(4)
    rows = real_numbers(value, f"The wrench on {name!r}", InputError)
    shape = (6,) if rows.ndim == 1 else (times, 6)
    return {
        "link": list(mechanism.link_names).index(link),
        "name": name,
        "T": np.asarray(placement).ravel().tolist(),
        "wrench": _short(np.atleast_2d(check_finite(rows, shape, f"The wrench on {name!r}"))),
    }


def _short(rows: Floats) -> list[list[float]]:
    """Numbers with the digits that can be seen."""
    return [[float(f"{x:.6g}") for x in row] for row in rows]
