"""The limits of a mechanism's joints, as bounds of its coordinates.

Takes a mechanism; gives the bounds of joints with one coordinate. Limits of no width count as none: exporters write
0 to 0 where nobody has set them.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.spatial import Floats

_Places = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Limits:
    """Bounds of coordinates.

    Attributes:
        coordinates: Where the bounded coordinates lie in q.
        entries: Where they lie in v.
        lower, upper: Their bounds, rad or m.
        nv: Number of all velocities.
    """

    coordinates: _Places
    entries: _Places
    lower: Floats
    upper: Floats
    nv: int

    def clipped(self, q: Floats) -> Floats:
        """q with every coordinate at the nearest place within its bounds."""
        return self._with(q, np.clip(q[self.coordinates], self.lower, self.upper))

    def reflected(self, q: Floats) -> Floats:
        """q with every coordinate that is beyond a bound thrown back by it, as by a mirror."""
        return self.clipped(self._with(q, reflected(q[self.coordinates], self.lower, self.upper)))

    def room(self, q: Floats) -> tuple[Floats, Floats]:
        """How far down and up each entry of v may go from q, shape (nv,) each."""
        least, most = np.full(self.nv, -np.inf), np.full(self.nv, np.inf)
        least[self.entries] = np.minimum(self.lower - q[self.coordinates], 0.0)
        most[self.entries] = np.maximum(self.upper - q[self.coordinates], 0.0)
        return least, most

    def bound(self, entries: _Places) -> bool:
        """Whether some of these entries of v are bounded."""
        return bool(np.isin(entries, self.entries).any())

    def touched(self, q: Floats, entries: _Places) -> bool:
        """Whether one of these entries of v is at a bound."""
        here = q[self.coordinates]
        return bool((np.isin(self.entries, entries) & ((here <= self.lower) | (here >= self.upper))).any())

    def _with(self, q: Floats, values: Floats) -> Floats:
        changed = q.copy()
        changed[self.coordinates] = values
        return changed


def limits_of(mechanism: Mechanism) -> Limits:
    """The bounds of a mechanism's coordinates."""
    found = [(joint.name, limits) for joint in mechanism.movable_joints if (limits := limited(joint)) is not None]
    coordinates = np.array([mechanism.q_slices[name].start for name, _ in found], dtype=int)
    entries = np.array([mechanism.v_slices[name].start for name, _ in found], dtype=int)
    lower, upper = np.array([limits for _, limits in found]).reshape(-1, 2).T
    return Limits(coordinates, entries, lower, upper, mechanism.nv)


def reflected(values: Floats, lower: Floats | float, upper: Floats | float) -> Floats:
    """The values, thrown back by the bound that they are beyond."""
    values = np.where(values < lower, 2 * lower - values, values)
    return np.where(values > upper, 2 * upper - values, values)


def limited(joint: Joint) -> tuple[float, float] | None:
    """The bounds of a joint's one coordinate, at least one of them finite, or None."""
    if joint.limits is None or joint.nq != 1:
        return None
    lower, upper = joint.limits
    return (lower, upper) if upper > lower and not (np.isinf(lower) and np.isinf(upper)) else None
