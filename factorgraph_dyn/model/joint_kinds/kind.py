"""What every kind of joint answers, as most kinds do."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.spatial import Array, Floats

ANGLE_RANGE = np.pi  # half-width of the range random angles are drawn from, rad


@dataclass(frozen=True)
class JointKind:
    """What all joints of one kind share. ``nq`` and ``nv`` count coordinates and velocities."""

    name: str
    nq: int
    nv: int
    axis_count: ClassVar[int] = 1
    """Number of axes that say how it moves."""
    has_pitch: ClassVar[bool] = False
    """Whether its motion depends on the pitch."""
    pose_is_affine: ClassVar[bool] = False
    """Whether either its rotation or its position is affine in cos q, sin q and q, and the other constant."""
    turned_freedoms: ClassVar[slice] = slice(None)
    """The order of the freedoms of the joint that is turned round."""
    turned_sign: ClassVar[float] = 1.0
    """What coordinates that are plain numbers, such as the rest of a spring, are multiplied by where it is turned."""

    @property
    def is_free(self) -> bool:
        """Whether it constrains nothing."""
        return self.nv == 6

    @property
    def subspace_varies(self) -> bool:
        """Whether S depends on the configuration."""
        return type(self).subspace_rate is not JointKind.subspace_rate

    @property
    def rate_is_v(self) -> bool:
        """Whether q_dot = v."""
        return type(self).rate is JointKind.rate

    @property
    def has_quaternion(self) -> bool:
        """Whether the last four coordinates are a unit quaternion; those before are lengths."""
        return type(self).normalise is not JointKind.normalise

    def turned_axis(self, axis: Floats) -> Floats:
        """The axis of the joint that is turned round, whose motion is the inverse; as a joint's ``axis`` is given."""
        return -axis

    def turned_keeps(self, effect: str, values: Floats) -> bool:
        """Whether an effect (``parts.EFFECTS``), one number a freedom, is the same where the joint is turned round."""
        return True

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """The pose T_frame_child of the child in the joint frame, shape (4, 4)."""
        raise NotImplementedError

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """The motion subspace S in the child's frame, shape (6, nv)."""
        raise NotImplementedError

    def constrained(self, axes: Floats, S: Array) -> Array:
        """A basis C of the directions that the joint constrains, S^T C = 0, in the child's frame, shape (6, 6 - nv)."""
        return spatial.constraint_directions(S)

    def subspace_rate(self, S: Array, v: Array) -> Array | None:
        """The product dS/dt v, shape (6,), or None where S is constant."""
        return None

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """Polynomials of a pose, in m and sines of angles, that are zero where the joint allows it."""
        raise NotImplementedError

    def rate(self, q: Array, v: Array) -> Array:
        """The rate q_dot that belongs to the joint velocity v, shape (nq,)."""
        return v

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The q whose pose is nearest to T_frame_child, shape (nq,)."""
        raise NotImplementedError

    def moved(self, axes: Floats, q: Array, way: Array) -> Array:
        """The configuration reached from q by the constant velocity ``way`` in unit time, shape (..., nq)."""
        return q + way

    def way(self, axes: Floats, q: Floats, end: Floats) -> Floats:
        """The constant velocity that leads from q to another configuration in unit time, shape (..., nv).

        Of several it is the shortest: turns that a pose does not show are left out.
        """
        return end - q

    def normalise(self, q: Array) -> Array:
        """The same configuration with unit quaternions, shape (..., nq)."""
        return q

    def neutral(self) -> Floats:
        """The configuration whose pose is the identity, shape (nq,)."""
        return np.zeros(self.nq)

    def random(self, rng: np.random.Generator, length: float = 1.0) -> Floats:
        """A random configuration with lengths between plus and minus ``length``, in m, shape (nq,)."""
        return rng.uniform(-ANGLE_RANGE, ANGLE_RANGE, self.nq)


def tilt(axis: Floats, T: Array) -> Array:
    """The sine of the angle by which a pose tilts an axis, along the line it is tilted about, shape (3,)."""
    return spatial.cross(axis, T[:3, :3] @ axis)


def axes_of(kind: JointKind, axis: Any) -> Floats:
    """The unit axes of a joint as rows, from the one or two axes its description gives.

    A kind of two axes that is given by one gets the second one perpendicular to it.
    """
    rows = np.atleast_2d(np.asarray(axis, dtype=np.float64))
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    # Dividing an axis that is already a unit one would blur its last digit.
    unit = np.where(np.abs(np.linalg.norm(rows, axis=1, keepdims=True) - 1) < 1e-15, rows, unit)
    if kind.axis_count > len(unit):
        return np.vstack([unit, spatial.perpendicular_axes(unit[0])[0]])
    return unit
