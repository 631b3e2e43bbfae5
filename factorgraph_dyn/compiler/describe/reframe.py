"""Link frames in which constants vanish.

Takes a mechanism; gives one with the same a and tau whose link frames sit elsewhere on their links. A joint
that turns about or slides along an axis leaves its child's frame two freedoms, a turn Z about the axis and a
shift along it: they commute with the motion J(q). With Q bringing the axis to z, C_i = Q_i Z_i the new frame of
link i in the old one and P the joint's placement,

    T_pc(q) = C_p^-1 P Q_c Z_c J_z(q),         C_p^-1 P Q_c Z_c = Rz(beta) Rx(alpha) Rz(phi) with a shift r

Outward from the base, Z_p turns x along the common normal of its axis and the next (beta = 0), Z_c shifts the
child along its axis until a component of r is zero, but not far (axes that are nearly parallel meet kilometres
away, where digits would be lost), and phi goes into the coordinate: q' = q + phi, an addition. What is left is
a modified Denavit-Hartenberg placement, Rx(alpha) and r = (a, 0, d). A link at a tip turns its x towards its
centre of mass instead. Links on fixed joints take their parent's frame, the base that of its only child
(gravity turns with it); other joints keep their frames. The work runs once a kernel.

Source: Khalil & Kleinfinger (1986), modified Denavit-Hartenberg parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from factorgraph_dyn.model import Joint, Link, Loop, Mechanism
from factorgraph_dyn.model.assembly import EXACT, moved_link, tidy
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats, inverse_pose, perpendicular_axes, pose

_FRAME_ROUNDING = 1e-14  # of angles, entries of rotations, and of lengths beside the mechanism's
_FARTHEST = 4.0  # times the mechanism's length that a frame may move along its axis
_Z = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True, eq=False)
class Reframed:
    """A mechanism in other frames.

    Attributes:
        mechanism: The same motion and torques at q + offset.
        offset: What is to be added to q, shape (nq,).
        frames: The new frame of each link in the old one, shape (4, 4), where it is another.
    """

    mechanism: Mechanism
    offset: Floats
    frames: Mapping[str, Floats] = field(default_factory=dict)


def reframed(mechanism: Mechanism) -> Reframed:
    """The mechanism in frames with fewer constants; as it is where it would not gain."""
    found = _Frames(mechanism).result()
    return found if burden(found.mechanism) < burden(mechanism) else Reframed(mechanism, np.zeros(mechanism.nq))


def burden(mechanism: Mechanism) -> int:
    """How many constants of the placements are neither 0 nor, in rotations, 1 or -1."""
    count = 0
    for joint in mechanism.joints:
        T = np.asarray(joint.placement)
        R = np.abs(T[:3, :3])
        count += int(np.count_nonzero(T[:3, 3]) + np.count_nonzero((R != 0) & (R != 1)))
        if joint.is_hinge or joint.is_slider:
            count += 3 * (int(np.count_nonzero(joint.axes[0])) - 1)
    return count


class _Frames:
    """The new frames, while they are chosen from the base outward."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism
        self.children: dict[str, list[Joint]] = {link.name: [] for link in mechanism.links}
        for joint in mechanism.topology.outward:
            self.children[joint.parent].append(joint)
        self.frame = {mechanism.base: np.eye(4)}  # C_i: the new frame of link i in the old one
        self.turned = {mechanism.base: False}  # whether x of the link lies along its first child's normal
        self.offset = np.zeros(mechanism.nq)
        self.joints: dict[str, Joint] = {}
        self.length = natural(mechanism).length

    def result(self) -> Reframed:
        mechanism = self.mechanism
        only = self.children[mechanism.base]
        gravity = np.asarray(mechanism.gravity)
        for joint in mechanism.topology.outward:
            if joint.is_hinge and only == [joint]:
                gravity = self._base_and_first(joint)
            else:
                self._place(joint)
        links = tuple(_moved(link, self.frame[link.name]) for link in mechanism.links)
        joints = tuple(self.joints[joint.name] for joint in mechanism.joints)
        loops = tuple(self._placed(loop) for loop in mechanism.loops)
        moved = replace(mechanism, links=links, joints=joints, loops=loops, gravity=_cleaned(gravity), frames=())
        return Reframed(moved, self.offset, {name: self._cleaned_pose(C) for name, C in self.frame.items()})

    def _base_and_first(self, joint: Joint) -> Floats:
        """Put the frames of the base and its only child on each other; gravity as the base then sees it."""
        Q = np.asarray(pose(_to_z(joint.axes[0]), np.zeros(3)))
        C = Q @ _about_z(self._own_turn(joint, Q))
        base = np.asarray(joint.placement) @ C
        self.frame[joint.parent], self.frame[joint.child] = base, C
        self.joints[joint.name] = replace(joint, placement=np.eye(4), axis=_Z)
        gravity: Floats = base[:3, :3].T @ np.asarray(self.mechanism.gravity)
        return gravity

    def _place(self, joint: Joint) -> None:
        T = inverse_pose(self.frame[joint.parent]) @ np.asarray(joint.placement)
        C, axis, rest = np.eye(4), joint.axis, joint.rest
        if not joint.nv:
            C, T = inverse_pose(T), np.eye(4)
        elif joint.is_hinge or joint.is_slider:
            Q = pose(_to_z(joint.axes[0]), np.zeros(3))
            axis = _Z
            beta, alpha, phi = _angles((T @ Q)[:3, :3])
            turn = self._own_turn(joint, Q) if joint.is_hinge else -phi
            Z = _about_z(turn, self._shift(T @ Q))
            C = Q @ Z
            r = (T @ C)[:3, 3]
            left = phi + turn
            if joint.is_hinge and _quarters(left) is None:
                part = self.mechanism.q_slices[joint.name]
                self.offset[part] = left
                rest = np.asarray(joint.rest) + left
                left = 0.0
            R = _about_z(beta)[:3, :3] @ _about_x(alpha) @ _about_z(left)[:3, :3]
            T = pose(R, r)
        self.frame[joint.child] = C
        self.joints[joint.name] = replace(joint, placement=self._cleaned_pose(T), axis=axis, rest=rest)

    def _placed(self, loop: Loop) -> Loop:
        """The loop with its ends seen from the new frames."""
        ends = (
            (self.frame[loop.predecessor], loop.predecessor_placement),
            (self.frame[loop.successor], loop.successor_placement),
        )
        predecessor, successor = (self._cleaned_pose(inverse_pose(C) @ np.asarray(end)) for C, end in ends)
        return replace(loop, predecessor_placement=predecessor, successor_placement=successor)

    def _own_turn(self, joint: Joint, Q: Floats) -> float:
        """By how much the child's frame turns about its axis: to the next normal, or to the centre of mass."""
        following = [j for j in self.children[joint.child] if j.is_hinge or j.is_slider]
        if following:
            following_Q = pose(_to_z(following[0].axes[0]), np.zeros(3))
            T = Q.T @ np.asarray(following[0].placement) @ following_Q
            return self._normal(T)
        if self.children[joint.child]:
            return 0.0
        x, y, _ = Q[:3, :3].T @ np.asarray(self.mechanism.link_by_name[joint.child].com)
        return float(np.arctan2(y, x)) if abs(y) > _FRAME_ROUNDING * abs(x) else 0.0

    def _normal(self, T: Floats) -> float:
        """The angle about z at which x lies along the common normal of z and the z axis of a pose."""
        beta, alpha, _ = _angles(T[:3, :3])
        if _same(alpha, 0.0) or _same(abs(alpha), np.pi):  # parallel axes: towards the other one
            x, y = T[:2, 3]
            return float(np.arctan2(y, x)) if np.hypot(x, y) > _FRAME_ROUNDING * self.length else 0.0
        return beta

    def _shift(self, T: Floats) -> float:
        """How far to go along the z axis of a pose to make most of its shift zero."""
        r, n = T[:3, 3], T[:3, 2]
        farthest = _FARTHEST * self.length
        ways = [0.0] + [float(-r[i] / n[i]) for i in (1, 2, 0) if abs(r[i]) < farthest * abs(n[i])]
        return min(ways, key=lambda way: np.count_nonzero(_cleaned(r + way * n, self.length)))

    def _cleaned_pose(self, T: Floats) -> Floats:
        """The pose without what is rounding alone."""
        return tidy(pose(_cleaned(T[:3, :3], 1.0), _cleaned(T[:3, 3], self.length)))


def _moved(link: Link, C: Floats) -> Link:
    """The link seen from another frame, without what is rounding alone."""
    moved = moved_link(link, C)
    size = float(np.abs(np.asarray(moved.com)).max())
    return replace(moved, com=_cleaned(np.asarray(moved.com), size), inertia=_cleaned(np.asarray(moved.inertia)))


def _to_z(axis: Floats) -> Floats:
    """A rotation that takes z to the axis, exact where the axis is one of the frame's, shape (3, 3)."""
    place = int(np.argmax(np.abs(axis)))
    if np.abs(np.delete(axis, place)).max() < EXACT:
        R = np.roll(np.eye(3), place - 2, axis=0)  # x, y, z to the axes that follow it
        return R if axis[place] > 0 else R @ np.diag([1.0, -1.0, -1.0])
    x, y = perpendicular_axes(axis)
    return np.column_stack([x, y, axis])


def _angles(R: Floats) -> tuple[float, float, float]:
    """(beta, alpha, phi) with R = Rz(beta) Rx(alpha) Rz(phi), beta within a quarter turn of zero."""
    sine = float(np.hypot(R[0, 2], R[1, 2]))
    if sine < _FRAME_ROUNDING:
        if R[2, 2] > 0:
            return 0.0, 0.0, _snapped(np.arctan2(R[1, 0], R[0, 0]))
        return 0.0, np.pi, _snapped(np.arctan2(-R[1, 0], R[0, 0]))
    beta = _snapped(np.arctan2(R[0, 2], -R[1, 2]))
    alpha = _snapped(np.arctan2(sine, R[2, 2]))
    if abs(beta) > np.pi / 2 + _FRAME_ROUNDING:
        beta, alpha = beta - np.copysign(np.pi, beta), -alpha
    inner = (_about_z(beta)[:3, :3] @ _about_x(alpha)).T @ R
    return beta, alpha, _snapped(np.arctan2(inner[1, 0], inner[0, 0]))


def _about_z(angle: float, shift: float = 0.0) -> Floats:
    c, s = _cos_sin(angle)
    return np.array([[c, -s, 0, 0], [s, c, 0, 0], [0, 0, 1.0, shift], [0, 0, 0, 1.0]])


def _about_x(angle: float) -> Floats:
    c, s = _cos_sin(angle)
    return np.array([[1.0, 0, 0], [0, c, -s], [0, s, c]])


def _cos_sin(angle: float) -> tuple[float, float]:
    quarters = _quarters(angle)
    if quarters is None:
        return float(np.cos(angle)), float(np.sin(angle))
    return ((1.0, 0.0), (0.0, 1.0), (-1.0, 0.0), (0.0, -1.0))[quarters % 4]


def _quarters(angle: float) -> int | None:
    """How many quarter turns an angle is; None where it is no whole number of them."""
    count = round(angle / (np.pi / 2))
    return count if _same(angle, count * np.pi / 2) else None


def _snapped(angle: float) -> float:
    quarters = _quarters(angle)
    return float(angle) if quarters is None else quarters * np.pi / 2


def _same(a: float, b: float) -> bool:
    return abs(a - b) < _FRAME_ROUNDING


def _cleaned(values: Floats, size: float | None = None) -> Floats:
    """The values with what is zero but for rounding made so."""
    largest = float(np.abs(values).max()) if size is None else size
    return np.where(np.abs(values) < _FRAME_ROUNDING * largest, 0.0, values)
