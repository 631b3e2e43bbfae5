"""Orientations as model files write them: roll-pitch-yaw, Euler sequences, quaternions, axes.

Every function gives a rotation matrix (3, 3) that carries vectors from the described frame to its
parent's. Runs once an element.
"""

from __future__ import annotations

import math

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.assembly import EXACT
from factorgraph_dyn.spatial import Floats

NO_DIRECTION = 1e-10  # lengths below it have no direction
ALONG_Z = 1e-14  # squared sine of an angle to the z axis below which MuJoCo takes a direction to be along it


def clean_cos_sin(angle: float) -> tuple[float, float]:
    """Cosine and sine of an angle (rad), exact where a written pi or pi/2 means 0 or 1."""
    c, s = math.cos(angle), math.sin(angle)
    if abs(c) < EXACT:
        return 0.0, math.copysign(1.0, s)
    if abs(s) < EXACT:
        return math.copysign(1.0, c), 0.0
    return c, s


def about_coordinate_axis(axis: int, angle: float) -> Floats:
    """The rotation by an angle about the x (0), y (1) or z (2) axis."""
    c, s = clean_cos_sin(angle)
    i, j = (axis + 1) % 3, (axis + 2) % 3
    R = np.eye(3)
    R[i, i] = R[j, j] = c
    R[j, i], R[i, j] = s, -s
    return R


def from_rpy(rpy: Floats) -> Floats:
    """The rotation of roll, pitch, yaw about fixed axes: R_z(yaw) R_y(pitch) R_x(roll)."""
    cr, sr = clean_cos_sin(float(rpy[0]))
    cp, sp = clean_cos_sin(float(rpy[1]))
    cy, sy = clean_cos_sin(float(rpy[2]))
    return np.array(
        [
            [cy * cp, cy * sp * sr - sy * cr, cy * sp * cr + sy * sr],
            [sy * cp, sy * sp * sr + cy * cr, sy * sp * cr - cy * sr],
            [-sp, cp * sr, cp * cr],
        ]
    )


def from_euler(angles: Floats, sequence: str) -> Floats:
    """The rotation of three Euler angles; lower-case axes turn along, upper-case ones are fixed."""
    R = np.eye(3)
    for angle, letter in zip(angles, sequence, strict=True):
        turn = about_coordinate_axis("xyz".index(letter.lower()), float(angle))
        R = R @ turn if letter.islower() else turn @ R
    return R


def from_wxyz(quaternion: Floats) -> Floats:
    """The rotation of a quaternion written w first; a zero one means no rotation."""
    if float(np.linalg.norm(quaternion)) < NO_DIRECTION:
        return np.eye(3)
    return np.asarray(spatial.rotation_of_quaternion(quaternion[[1, 2, 3, 0]] / np.abs(quaternion).max()))


def from_axis_angle(axis: Floats, angle: float) -> Floats | None:
    """The rotation by an angle about an axis of any length, or None where the axis is zero."""
    length = float(np.linalg.norm(axis))
    if length < NO_DIRECTION:
        return None
    u = axis / length
    c, s = clean_cos_sin(angle)
    return np.asarray(c * np.eye(3) + s * spatial.skew(u) + (1.0 - c) * np.outer(u, u))


def from_z_axis(z: Floats) -> Floats | None:
    """The smallest rotation that brings e_z to a direction, or None where it is zero.

    MuJoCo's rule, whose format alone writes it: a direction so near to the z axis is along it, and the half turn to
    -z is about x. Programs that round to single precision write such directions for -z.
    """
    length = float(np.linalg.norm(z))
    if length < NO_DIRECTION:
        return None
    x, y, w = z / length
    sine = math.hypot(x, y)
    if x * x + y * y < ALONG_Z:
        return np.eye(3) if w > 0 else np.diag([1.0, -1.0, -1.0])
    return from_axis_angle(np.array([-y, x, 0.0]), math.atan2(sine, w))


def from_xy_axes(axes: Floats) -> Floats | None:
    """The rotation whose first column is along x and whose second lies in the plane of x and y."""
    x, y = axes[:3], axes[3:]
    if float(np.linalg.norm(x)) < NO_DIRECTION:
        return None
    x = x / np.linalg.norm(x)
    y = y - (x @ y) * x
    if float(np.linalg.norm(y)) < NO_DIRECTION:
        return None
    y = y / np.linalg.norm(y)
    return np.column_stack([x, y, np.cross(x, y)])
