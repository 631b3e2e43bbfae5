"""Placements, written down: poses that only move or only turn, to be multiplied.

    fgd.translation(0, 0, 0.3) @ fgd.rotation("x", np.pi / 2)      up by 0.3 m, then a quarter turn about x there

Quarter turns have exact zeros and ones, which a cosine of pi / 2 does not give.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_choice, check_finite, check_number
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.spatial import Floats

AXES = {"x": (1.0, 0.0, 0.0), "y": (0.0, 1.0, 0.0), "z": (0.0, 0.0, 1.0)}
EXACT = 1e-15  # entries of a rotation that are so near to 0, 1 or -1 stand for it


def translation(x: float, y: float, z: float) -> Floats:
    """The pose that only moves, by lengths in m, shape (4, 4).

    Args:
        x: Along the x axis, m.
        y: Along the y axis, m.
        z: Along the z axis, m.

    Examples:
        >>> fgd.translation(1, 2, 3)[:3, 3].tolist()
        [1.0, 2.0, 3.0]
    """
    shift = [check_number(value, f"The {axis} of a translation") for axis, value in zip("xyz", (x, y, z), strict=True)]
    return np.asarray(spatial.pose(np.eye(3), np.array(shift)))


def rotation(axis: str | npt.ArrayLike, angle: float) -> Floats:
    """The pose that only turns, shape (4, 4).

    Args:
        axis: "x", "y" or "z", or a direction of any length, shape (3,).
        angle: rad, right-handed about the axis.

    Examples:
        >>> (fgd.rotation((0, 0, 1), np.pi / 2) @ [1, 0, 0, 1]).round(9).tolist()
        [0.0, 1.0, 0.0, 1.0]
    """
    if isinstance(axis, str):
        axis = AXES[check_choice(axis, AXES, "The axis of a rotation")]
    direction = check_finite(axis, (3,), "The axis of a rotation")
    length = float(np.linalg.norm(direction))
    if not length:
        raise InputError("The axis of a rotation is zero; give a direction, or 'x', 'y' or 'z'.")
    R = np.asarray(spatial.rotation_about(direction / length, check_number(angle, "The angle of a rotation")))
    nearest = np.round(R)
    return np.asarray(spatial.pose(np.where(np.abs(R - nearest) < EXACT, nearest, R), np.zeros(3)))
