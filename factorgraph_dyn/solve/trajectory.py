"""What a simulation recorded: arrays over time, and how they show themselves."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.closure import closure_error
from factorgraph_dyn.motion.questions import energy
from factorgraph_dyn.notebook import html_table
from factorgraph_dyn.spatial import Floats

BLOCK = 4096  # states whose energies are computed at once
EXCHANGED = 1e-6  # potential energy, beside the largest kinetic energy, below which next to none is exchanged


@dataclass(frozen=True, eq=False, repr=False)
class Trajectory:
    """What a simulation recorded, one row for every instant.

    Attributes:
        t: Time, s, shape (n,).
        q: Coordinates, shape (n, nq).
        v: Velocities, shape (n, nv).
        tau: Torques that acted, shape (n, nv).
        kinetic: Kinetic energy, J, shape (n,).
        potential: Potential energy, J, shape (n,).
        closure_error: Largest closure error of q and v, m, rad or per s, shape (n,).

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> path = fgd.simulate(arm, [1.0], [0.0], lambda t, q, v: -0.1 * v, duration=0.1, step=1e-2)
        >>> path.t.shape, path.tau.shape
        ((11,), (11, 1))
    """

    mechanism: Mechanism
    t: Floats
    q: Floats
    v: Floats
    tau: Floats
    kinetic: Floats
    potential: Floats
    closure_error: Floats

    @property
    def energy(self) -> Floats:
        """Kinetic plus potential energy, J, shape (n,)."""
        return self.kinetic + self.potential

    @cached_property
    def energy_drift(self) -> float:
        """The largest change of energy as a share of the swing: how far the kinetic energy ranges.

        Where ``is_conservative``, it is the error of the integration. Where next to no potential energy is exchanged
        for it, as in flight without gravity, all change of kinetic energy is error: it is a share of the largest.
        """
        largest = float(self.kinetic.max())
        swing = largest if float(np.ptp(self.potential)) < EXCHANGED * largest else float(np.ptp(self.kinetic))
        return float(np.abs(self.energy - self.energy[0]).max()) / (swing or 1.0)

    @property
    def is_conservative(self) -> bool:
        """Whether energy should stay what it is: neither damping nor friction nor torques act."""
        return not (self.tau.any() or any(j.damping.any() or j.friction.any() for j in self.mechanism.joints))

    def plot(self, path: str | Path | None = None) -> Any:
        """Coordinates, torques, energy and closure error over time as a Matplotlib figure.

        Args:
            path: Where to write it as well, if anywhere; the name's ending tells the format (svg, png, pdf).
        """
        # Pictures are drawn further on: plot and view are the look-ups from here, done when one is asked for.
        return import_module("factorgraph_dyn.show.plots.trajectory").plot_trajectory(self, path)

    def view(self, path: str | Path | None = None, **options: Any) -> Any:
        """A page that shows the motion, with a time bar and the torques beside it; it shows itself in notebooks.

        Args:
            path: An HTML file to write; without one, the result can be saved later.
            options: What ``fgd.view`` takes besides: wrenches, axes, meshes.
        """
        return import_module("factorgraph_dyn.show.view.view").view(self.mechanism, self, path, **options)

    def to_dict(self) -> dict[str, Floats]:
        """Columns by name, shape (n,) each, as ``pandas.DataFrame`` takes them: t, q[joint], ..., closure_error."""
        mechanism = self.mechanism
        columns = {"t": self.t}
        for letter, values, slices in (
            ("q", self.q, mechanism.q_slices),
            ("v", self.v, mechanism.v_slices),
            ("tau", self.tau, mechanism.v_slices),
        ):
            for name in mechanism.joint_names:
                part = values[:, slices[name]].T
                numbers = [""] if len(part) == 1 else [f"[{k}]" for k in range(len(part))]
                columns |= {f"{letter}[{name}]{k}": column for k, column in zip(numbers, part, strict=True)}
        return columns | {word: getattr(self, word) for word in ("kinetic", "potential", "closure_error")}

    def __len__(self) -> int:
        return len(self.t)

    def __repr__(self) -> str:
        return f"<Trajectory of {self.mechanism.name!r}: {self._summary}>"

    @property
    def _summary(self) -> str:
        energies = f"energy {self.energy[0]:.4g} to {self.energy[-1]:.4g} J"
        closure = f", closure error up to {self.closure_error.max():.1e}" if self.mechanism.is_closed_kind else ""
        return f"{len(self)} rows, t = {self.t[0]:g} to {self.t[-1]:g} s, {energies}{closure}"

    def _repr_html_(self) -> str:
        rows = [
            {"": name, "start": column[0], "end": column[-1], "least": column.min(), "most": column.max()}
            for name, column in self.to_dict().items()
        ]
        return html_table(rows, f"Trajectory of {self.mechanism.name}: {self._summary}")


def recorded(mechanism: Mechanism, t: Floats, q: Floats, v: Floats, tau: Floats) -> Trajectory:
    """The trajectory of recorded states, with their energies and closure errors."""
    starts = range(0, len(t), BLOCK)
    blocks = [energy(mechanism, q[k : k + BLOCK], v[k : k + BLOCK]) for k in starts]
    kinetic, potential = (np.concatenate(parts) for parts in zip(*blocks, strict=True))
    errors = np.zeros(len(t))
    if mechanism.is_closed_kind:
        errors = np.array([closure_error(mechanism, *state) for state in zip(q, v, strict=True)])
    return Trajectory(mechanism, t, q, v, tau, kinetic, potential, errors)
