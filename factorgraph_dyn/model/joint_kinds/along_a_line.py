"""Kinds whose joints do not move, or move about or along one line: fixed, revolute, prismatic and helical."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.joint_kinds.kind import JointKind, tilt
from factorgraph_dyn.spatial import Array, Floats


class Fixed(JointKind):
    """No freedom."""

    axis_count = 0

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """The identity."""
        return np.eye(4)

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """No columns."""
        return np.zeros((6, 0))

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The turn and the position."""
        return np.concatenate([0.5 * spatial.twice_sine(T_frame_child[:3, :3]), T_frame_child[:3, 3]])

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """No coordinates."""
        return np.zeros(0)


class Turning(JointKind):
    """Revolute and continuous joints."""

    pose_is_affine = True

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """A rotation about the axis."""
        return spatial.pose(spatial.rotation_about(axes[0], q[0]), np.zeros(3))

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """The axis, as an angular velocity."""
        return np.concatenate([axes[0], np.zeros(3)])[:, None]

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The axis's tilt and the position."""
        return np.concatenate([tilt(axes[0], T_frame_child), T_frame_child[:3, 3]])

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The turn about the axis."""
        return np.array([spatial.turn_about(axes[0], T_frame_child[:3, :3])])


class Sliding(JointKind):
    """Prismatic joints."""

    pose_is_affine = True

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """A translation along the axis."""
        return spatial.pose(np.eye(3), axes[0] * q[0])

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """The axis, as a linear velocity."""
        return np.concatenate([np.zeros(3), axes[0]])[:, None]

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The turn and the distance from the axis."""
        return np.concatenate(
            [0.5 * spatial.twice_sine(T_frame_child[:3, :3]), spatial.cross(axes[0], T_frame_child[:3, 3])]
        )

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The way along the axis."""
        return np.array([axes[0] @ T_frame_child[:3, 3]])

    def random(self, rng: np.random.Generator, length: float = 1.0) -> Floats:
        """A random length."""
        return rng.uniform(-length, length, 1)


class Helical(JointKind):
    """A screw: ``pitch`` metres along the axis for every radian about it."""

    has_pitch = True

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """A rotation about and a translation along the axis."""
        return spatial.pose(spatial.rotation_about(axes[0], q[0]), axes[0] * pitch * q[0])

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """The screw axis."""
        return np.concatenate([axes[0], pitch * axes[0]])[:, None]

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The axis's tilt and the distance from it; how far the screw is along it is not looked at."""
        return np.concatenate([tilt(axes[0], T_frame_child), spatial.cross(axes[0], T_frame_child[:3, 3])])

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The turn about the axis; whole turns are told from the way along it."""
        turn = spatial.turn_about(axes[0], T_frame_child[:3, :3])
        if pitch:
            way = float(axes[0] @ T_frame_child[:3, 3])
            turn += 2 * np.pi * round((way / pitch - turn) / (2 * np.pi))
        return np.array([turn])
