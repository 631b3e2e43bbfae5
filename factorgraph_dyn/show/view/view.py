"""Pages of mechanisms that move: ``fgd.view``.

Takes a mechanism with a configuration, several, or a trajectory; gives a page without any request to a network, with
sliders for the joints, a time bar, and curves beside it. In a notebook it shows itself.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice, check_finite, check_mapping, check_parts, check_path, real_numbers
from factorgraph_dyn.errors import ClosureError, InputError, check_name
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.questions import AXES
from factorgraph_dyn.show.view.looks import looks
from factorgraph_dyn.show.view.scene import scene
from factorgraph_dyn.show.web_page import web_page, write_page
from factorgraph_dyn.solve.trajectory import Trajectory
from factorgraph_dyn.spatial import Floats, adjoint

SCRIPTS = ("three.min.js", "motion.js", "bodies.js", "curves.js", "page.js")
MOST_TIMES = 2000  # moments of a trajectory that a page holds; longer ones are thinned


@dataclass(frozen=True, eq=False)
class View:
    """A page that shows a mechanism; in a notebook it shows itself.

    Attributes:
        page: The page as text.

    Examples:
        >>> fgd.view(fgd.robots.five_bar()).save("five_bar.html")
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
    axes: str = "local",
    meshes: str | Path | Iterable[str | Path] = (),
) -> View:
    """A page that shows a mechanism: bodies, joint axes, inertias, loops and frames, with sliders and a time bar.

    Links are drawn as their file says, by shapes and meshes (STL, OBJ, Collada), and as rods between their joints where
    it says nothing or a mesh cannot be read. The size of meshes is bounded, of each (64 MB, Collada 32 MB) and of all;
    the page names the links of those left out. Sliders keep loops and couplings closed.

    Args:
        mechanism: The mechanism.
        q_or_trajectory: A configuration (nq,), by default the neutral one, several (times, nq), or what `simulate`
            gives.
        path: An HTML file to write; without one, the result can be saved later.
        wrenches: Forces to draw as arrows: [moment; force] by link or frame that they act on, or by joint or loop, as
            `Solution.wrenches` has them; shape (6,) or (times, 6).
        axes: Of wrenches on links and frames: "local", in the link's or frame's own axes, or "world".
        meshes: Folders in which meshes may lie besides the model file's own and the packages it names.

    Raises:
        InputError: Arrays of a wrong shape, a name that there is not, a path that cannot be written.

    Examples:
        >>> shown = fgd.view(fgd.robots.panda(), path="panda.html")
    """
    check_mechanism(mechanism)
    given = {} if wrenches is None else wrenches
    check_mapping(given, "wrenches", "a dict of wrenches by link, frame, joint or loop")
    axes = check_choice(axes, AXES, "axes")
    listed = [meshes] if isinstance(meshes, str | PathLike) else meshes
    folders = [check_path(folder, "A folder of meshes") for folder in check_parts(listed, object, "meshes", "folders")]
    q, kept, told = _moments(mechanism, q_or_trajectory)
    data = scene(mechanism) | looks(mechanism, folders) | told
    data["arrows"] = [_arrow(mechanism, name, value, len(q), kept, axes) for name, value in given.items()]
    shown = View(web_page("view", f"{mechanism.name}", data, SCRIPTS))
    if path is not None:
        shown.save(path)
    return shown


def _moments(
    mechanism: Mechanism, given: npt.ArrayLike | Trajectory | None
) -> tuple[Floats, npt.NDArray[np.int64], dict[str, Any]]:
    """All configurations given, which of them are kept, and what the page is told of these."""
    if isinstance(given, Trajectory):
        q = check_finite(given.q, (len(given.t), mechanism.nq), "The trajectory's q")
    else:
        rows = np.atleast_2d(_neutral(mechanism) if given is None else real_numbers(given, "q", InputError))
        q = check_finite(rows, (len(rows), mechanism.nq), "q")
    if not len(q):
        raise InputError("There is no configuration to show: q has no rows.")
    kept = np.unique(np.linspace(0, len(q) - 1, min(len(q), MOST_TIMES)).round().astype(np.int64))
    told: dict[str, Any] = {"q": _short(q[kept]), "times": kept.tolist(), "curves": []}
    if isinstance(given, Trajectory):
        told |= {"times": _short(given.t[kept, None], flat=True), "curves": _curves(mechanism, given, kept)}
    return q, kept, told


def _neutral(mechanism: Mechanism) -> Floats:
    """The neutral configuration, open where it cannot be closed: who looks may want to see why."""
    try:
        return mechanism.neutral()
    except ClosureError:
        return mechanism.tree.neutral()


def _curves(mechanism: Mechanism, given: Trajectory, kept: npt.NDArray[np.int64]) -> list[dict[str, Any]]:
    """What is plotted beside the time bar, torques first where there are any."""
    freedoms = _numbered(mechanism, "nv")
    curves = [
        ("torques (N m or N)", freedoms, given.tau),
        ("coordinates (rad or m)", _numbered(mechanism, "nq"), given.q),
        ("velocities (rad/s or m/s)", freedoms, given.v),
        ("energy (J)", ["kinetic", "potential"], np.column_stack([given.kinetic, given.potential])),
    ]
    if not np.any(given.tau):
        curves.append(curves.pop(0))
    return [
        {"title": title, "names": names, "values": _short(np.asarray(values)[kept], digits=6)}
        for title, names, values in curves
    ]


def _numbered(mechanism: Mechanism, count: str) -> list[str]:
    """A name for every freedom or coordinate."""
    sizes = [(joint.name, getattr(joint, count)) for joint in mechanism.movable_joints]
    return [name if size == 1 else f"{name} {k + 1}" for name, size in sizes for k in range(size)]


def _arrow(
    mechanism: Mechanism, name: str, value: npt.ArrayLike, times: int, kept: npt.NDArray[np.int64], axes: str
) -> dict[str, Any]:
    link, placement, is_inner = _wrench_place(mechanism, name)
    what = f"The wrench on {name!r}"
    rows = real_numbers(value, what, InputError)
    rows = np.atleast_2d(check_finite(rows, (6,) if rows.ndim == 1 else (times, 6), what))
    if is_inner:  # given about the link's origin, in its axes
        rows = rows @ np.asarray(adjoint(placement))
    return {
        "link": mechanism.link_names.index(link),
        "name": name,
        "T": np.asarray(placement).ravel().tolist(),
        "world": axes == "world" and not is_inner,
        "wrench": _short(rows if len(rows) == 1 else rows[kept]),
    }


def _wrench_place(mechanism: Mechanism, name: str) -> tuple[str, Floats, bool]:
    """The link that a wrench acts on, the pose in it at which it is drawn, and whether a joint or loop passes it on."""
    loops = {loop.name: loop for loop in mechanism.loops}
    inner = {**{joint.name: joint.child for joint in mechanism.joints}, **{x: loops[x].successor for x in loops}}
    known = (*mechanism.place_names, *inner)
    check_name(name, known, "link, frame, joint or loop", f"mechanism {mechanism.name!r}", InputError)
    if name in mechanism.place_names:
        return *mechanism.place(name), False
    placement = np.asarray(loops[name].successor_placement) if name in loops else np.eye(4)
    return inner[name], placement, True


def _short(rows: Floats, digits: int = 9, *, flat: bool = False) -> list[Any]:
    """Numbers with the digits that can be seen."""
    short = [[float(f"{x:.{digits}g}") for x in row] for row in np.asarray(rows).tolist()]
    return [row[0] for row in short] if flat else short
