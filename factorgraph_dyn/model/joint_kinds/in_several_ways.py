"""Kinds whose joints have several freedoms: universal, spherical, planar and floating."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.joint_kinds.kind import ANGLE_RANGE, JointKind, axes_of, tilt
from factorgraph_dyn.spatial import Array, Floats


class Universal(JointKind):
    """Two crossing axes: the first fixed in the parent, the second in the child."""

    axis_count = 2
    turned_freedoms = slice(None, None, -1)

    def turned_axis(self, axis: Floats) -> Floats:
        """The second axis comes first."""
        return -axes_of(self, axis)[::-1]

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """Two rotations, one after the other."""
        R = spatial.rotation_about(axes[0], q[0]) @ spatial.rotation_about(axes[1], q[1])
        return spatial.pose(R, np.zeros(3))

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """Both axes as the child sees them."""
        first = T_frame_child[:3, :3].T @ axes[0]
        S = np.zeros((6, 2), dtype=first.dtype)
        S[:3, 0] = first
        S[:3, 1] = axes[1]
        return S

    def constrained(self, axes: Floats, S: Array) -> Array:
        """Turning about the normal of both axes, between which the angle stays, and all slides."""
        normal = spatial.cross(S[:3, 0], S[:3, 1])
        C = np.zeros((6, 4), dtype=normal.dtype)
        C[:3, 0] = normal / np.linalg.norm(np.cross(axes[0], axes[1]))
        C[3:, 1:] = np.eye(3)
        return C

    def subspace_rate(self, S: Array, v: Array) -> Array | None:
        """The first axis turns backwards about the second, as the child sees it."""
        # d(R^T s_1)/dt = (R^T s_1) x omega_relative = (S_1 x S_2) v_2
        rate = np.zeros(6, dtype=np.result_type(S, v))
        rate[:3] = np.cross(S[:3, 0], S[:3, 1]) * (v[0] * v[1])
        return rate

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The change of the angle between the axes, and the position."""
        angle = axes[0] @ (T_frame_child[:3, :3] @ axes[1]) - axes[0] @ axes[1]
        return np.append(T_frame_child[:3, 3], angle)

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The two turns; crossing axes that are not perpendicular are allowed."""
        R = T_frame_child[:3, :3]
        # R s_2 = R_1 s_2 tells the first turn; what is left is the second.
        first = spatial.turn_between(axes[0], axes[1], R @ axes[1])
        second = spatial.turn_about(axes[1], spatial.rotation_about(axes[0], first).T @ R)
        return np.array([first, second])


class Spherical(JointKind):
    """A ball joint."""

    axis_count = 0

    def turned_keeps(self, effect: str, values: Floats) -> bool:
        """Only what is the same in all directions: the reversed velocity is along the parent's axes."""
        return _same_all_round(effect, values)

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """The rotation of the quaternion."""
        return spatial.pose(spatial.rotation_of_quaternion(q), np.zeros(3))

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """All angular velocities."""
        return np.eye(6)[:, :3]

    def rate(self, q: Array, v: Array) -> Array:
        """The quaternion's rate."""
        return spatial.quaternion_rate(q, v)

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The position."""
        return T_frame_child[:3, 3]

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The quaternion."""
        return spatial.quaternion_of_rotation(T_frame_child[:3, :3])

    def moved(self, axes: Floats, q: Array, way: Array) -> Array:
        """The quaternion turned by a body rotation vector."""
        return self.normalise(spatial.quaternion_product(q, spatial.quaternion_of_turn(way)))

    def way(self, axes: Floats, q: Floats, end: Floats) -> Floats:
        """The body rotation vector, of an angle up to pi."""
        return spatial.turn_of_quaternion(spatial.quaternion_product(spatial.conjugate(q), end))

    def normalise(self, q: Array) -> Array:
        """The unit quaternion."""
        return spatial.unit_quaternion(q)

    def neutral(self) -> Floats:
        """No rotation."""
        return np.array([0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator, length: float = 1.0) -> Floats:
        """A uniformly random rotation."""
        return self.normalise(rng.normal(size=4))


class Planar(JointKind):
    """Sliding in the plane normal to the axis and turning about it."""

    turned_sign = -1.0

    def turned_axis(self, axis: Floats) -> Floats:
        """The plane stays; its coordinates are those of the reversed motion."""
        return axis

    def turned_keeps(self, effect: str, values: Floats) -> bool:
        """Only what acts on the turn: the reversed slides are of another point, along the parent's axes."""
        return not values[:2].any()

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """A translation in the plane, then a rotation about its normal."""
        x, y = spatial.perpendicular_axes(axes[0])
        return spatial.pose(spatial.rotation_about(axes[0], q[2]), x * q[0] + y * q[1])

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """Two linear velocities in the plane and the angular one about its normal."""
        S = np.zeros((6, 3))
        S[3:, 0], S[3:, 1] = spatial.perpendicular_axes(axes[0])
        S[:3, 2] = axes[0]
        return S

    def rate(self, q: Array, v: Array) -> Array:
        """The velocity in the joint frame's axes."""
        c, s = np.cos(q[2]), np.sin(q[2])
        return np.array([c * v[0] - s * v[1], s * v[0] + c * v[1], v[2]])

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """The normal's tilt and the height above the plane."""
        return np.append(tilt(axes[0], T_frame_child), axes[0] @ T_frame_child[:3, 3])

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The position in the plane and the turn."""
        x, y = spatial.perpendicular_axes(axes[0])
        p = T_frame_child[:3, 3]
        return np.array([x @ p, y @ p, spatial.turn_about(axes[0], T_frame_child[:3, :3])])

    def moved(self, axes: Floats, q: Array, way: Array) -> Array:
        """The end of the circular arc that a constant body velocity draws; the angle keeps its turns."""
        slide, turn = _plane_and_normal(way)
        shift = spatial.turned(_about_normal(q[..., 2:]), spatial.arc(turn, slide))
        return np.concatenate([q[..., :2] + shift[..., :2], q[..., 2:] + way[..., 2:]], axis=-1)

    def way(self, axes: Floats, q: Floats, end: Floats) -> Floats:
        """The arc with a turn of at most half a turn."""
        shift, turn = _plane_and_normal(end - q)
        turn = turn - 2 * np.pi * np.round(turn / (2 * np.pi))
        slide = spatial.velocity_of_arc(turn, spatial.turned(_about_normal(-q[..., 2:]), shift))
        return np.concatenate([slide[..., :2], turn[..., 2:]], axis=-1)

    def random(self, rng: np.random.Generator, length: float = 1.0) -> Floats:
        """A random position and angle."""
        return rng.uniform(-1.0, 1.0, 3) * [length, length, ANGLE_RANGE]


class Floating(JointKind):
    """All six freedoms."""

    axis_count = 0

    def turned_keeps(self, effect: str, values: Floats) -> bool:
        """Only what acts on turns, and the same in all directions: the reversed slides are of another point."""
        return not values[3:].any() and _same_all_round(effect, values[:3])

    def pose(self, axes: Floats, pitch: float, q: Array) -> Array:
        """The position and the quaternion's rotation."""
        return spatial.pose(spatial.rotation_of_quaternion(q[3:]), q[:3])

    def subspace(self, axes: Floats, pitch: float, T_frame_child: Array) -> Array:
        """All twists."""
        return np.eye(6)

    def rate(self, q: Array, v: Array) -> Array:
        """The position's rate in the joint frame's axes, and the quaternion's."""
        linear = spatial.rotation_of_quaternion(q[3:]) @ v[3:]
        return np.concatenate([linear, spatial.quaternion_rate(q[3:], v[:3])])

    def misfit(self, axes: Floats, T_frame_child: Array) -> Array:
        """Nothing."""
        return np.zeros(0)

    def coordinates(self, axes: Floats, pitch: float, T_frame_child: Floats) -> Floats:
        """The position and the quaternion."""
        quaternion = spatial.quaternion_of_rotation(T_frame_child[:3, :3])
        return np.concatenate([T_frame_child[:3, 3], quaternion])

    def moved(self, axes: Floats, q: Array, way: Array) -> Array:
        """The pose moved by a body twist."""
        unit = self.normalise(q)
        position = q[..., :3] + spatial.turned(unit[..., 3:], spatial.arc(way[..., :3], way[..., 3:]))
        quaternion = spatial.quaternion_product(unit[..., 3:], spatial.quaternion_of_turn(way[..., :3]))
        return self.normalise(np.concatenate([position, quaternion], axis=-1))

    def way(self, axes: Floats, q: Floats, end: Floats) -> Floats:
        """The body twist, of an angle up to pi."""
        turn = spatial.turn_of_quaternion(spatial.quaternion_product(spatial.conjugate(q[..., 3:]), end[..., 3:]))
        shift = spatial.turned(spatial.conjugate(self.normalise(q)[..., 3:]), end[..., :3] - q[..., :3])
        return np.concatenate([turn, spatial.velocity_of_arc(turn, shift)], axis=-1)

    def normalise(self, q: Array) -> Array:
        """The same pose with a unit quaternion."""
        return np.concatenate([q[..., :3], spatial.unit_quaternion(q[..., 3:])], axis=-1)

    def neutral(self) -> Floats:
        """The identity."""
        return np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])

    def random(self, rng: np.random.Generator, length: float = 1.0) -> Floats:
        """A random position and rotation."""
        position = rng.uniform(-length, length, 3)
        return self.normalise(np.concatenate([position, rng.normal(size=4)]))


def _same_all_round(effect: str, values: Floats) -> bool:
    """Whether an effect on an angular velocity is the same in any axes; friction opposes the sign of each component."""
    return not values.any() or (effect != "friction" and bool((values == values[0]).all()))


def _plane_and_normal(values: Array) -> tuple[Array, Array]:
    """The shift and the turn that x, y and an angle are, in a plane's axes x, y and normal, shape (..., 3) each."""
    return values * np.array([1.0, 1.0, 0.0]), values * np.array([0.0, 0.0, 1.0])


def _about_normal(angle: Array) -> Array:
    """The quaternion of a turn about a plane's normal, shape (..., 4), for angles of shape (..., 1)."""
    nothing = np.zeros_like(angle)
    return np.concatenate([nothing, nothing, np.sin(0.5 * angle), np.cos(0.5 * angle)], axis=-1)
