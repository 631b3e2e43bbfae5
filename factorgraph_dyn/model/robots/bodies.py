"""Links of simple shape, for building mechanisms."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.model.parts import Link

MOST_LINKS = 10_000  # of built-in mechanisms: more is a slip, and would fill the memory
# Quarter turns with exact zeros and ones, which a cosine of pi/2 does not give.
QUARTER_TURN_X = np.array([[1.0, 0, 0], [0, 0, -1], [0, 1, 0]])


def rod(name: str, mass: float, start: npt.ArrayLike, end: npt.ArrayLike, radius: float) -> Link:
    """A solid cylinder between two points of the link's frame (m)."""
    a, b = np.asarray(start, dtype=np.float64), np.asarray(end, dtype=np.float64)
    length = float(np.linalg.norm(b - a))
    direction = (b - a) / length
    along = 0.5 * mass * radius**2
    across = mass * (3 * radius**2 + length**2) / 12
    inertia = across * np.eye(3) + (along - across) * np.outer(direction, direction)
    return Link(name, mass, 0.5 * (a + b), inertia)


def box(name: str, mass: float, com: npt.ArrayLike, sides: npt.ArrayLike) -> Link:
    """A solid box with edges of given lengths along the link's axes (m)."""
    x, y, z = np.square(np.asarray(sides, dtype=np.float64))
    return Link(name, mass, com, mass / 12 * np.diag([y + z, x + z, x + y]))
