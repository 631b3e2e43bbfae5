"""Where the links are and how they move: poses, motion subspaces, twists and Jacobians at a state.

    T_world_child = T_world_parent  placement_j  T_frame_child(q_j)
    V_child       = Ad_child_parent V_parent + S_j v_j
    J_place[:, j] = Ad_place_child S_j      for every joint j between the place and the base

A place is a link, or a frame on one. All functions take arrays of any scalar type; `integrate` and `difference`
numbers, of any leading axes. Work is done once a state.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.spatial import Array, Floats


def joint_motion(joint: Joint, q: Array) -> tuple[Array, Array]:
    """The pose T_parent_child (4, 4) and the subspace S (6, nv) of a joint at its coordinates."""
    S = joint.constant_subspace
    if S is None:
        S = joint.type.subspace(joint.axes, joint.pitch, joint.type.pose(joint.axes, joint.pitch, q))
    return joint.pose(q), S


def link_poses(mechanism: Mechanism, q: Array) -> dict[str, Array]:
    """The pose T_world_link of every link by name, the base at the origin, shape (4, 4) each."""
    poses: dict[str, Array] = {mechanism.base: np.eye(4)}
    for joint in mechanism.topology.outward:
        T_parent_child, _ = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        poses[joint.child] = poses[joint.parent] @ T_parent_child
    return poses


def place_pose(mechanism: Mechanism, q: Array, name: str) -> Array:
    """The pose T_world_place of one link or frame, of which only the joints below are looked at, shape (4, 4)."""
    return link_pose(mechanism, q, *mechanism.place(name))


def link_pose(mechanism: Mechanism, q: Array, link: str, T_link_place: Array | None = None) -> Array:
    """The pose T_world_place of a place on a link, by default of its link frame, shape (4, 4)."""
    T = np.eye(4) if T_link_place is None else T_link_place
    for joint in mechanism.topology.path_to_base(link):
        T = joint.pose(q[mechanism.q_slices[joint.name]]) @ T
    return T


def loop_pose(loop: Loop, poses: Mapping[str, Array]) -> Array:
    """The pose T_frame_child of the successor's side in the predecessor's side of a loop, shape (4, 4)."""
    T_world_frame = poses[loop.predecessor] @ loop.predecessor_placement
    T_world_child = poses[loop.successor] @ loop.successor_placement
    T_frame_child: Array = spatial.inverse_pose(T_world_frame) @ T_world_child
    return T_frame_child


def child_twist(Ad_child_parent: Array, own: Array, V_parent: Array) -> Array:
    """The twist of a joint's child, in the child's frame, where the joint's own is S v, shape (6,)."""
    # V_c = Ad_cp V_p + S_j v_j
    V_child: Array = own + Ad_child_parent @ V_parent
    return V_child


def link_twists(mechanism: Mechanism, q: Array, v: Array) -> dict[str, Array]:
    """The twist V of every link by name, in the link's frame, shape (6,) each."""
    twists: dict[str, Array] = {mechanism.base: np.zeros(6)}
    for joint in mechanism.topology.outward:
        T_parent_child, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        Ad_child_parent = spatial.inverse_adjoint(T_parent_child)
        own = S @ v[mechanism.v_slices[joint.name]]
        twists[joint.child] = child_twist(Ad_child_parent, own, twists[joint.parent])
    return twists


def place_jacobian(mechanism: Mechanism, q: Array, name: str) -> Array:
    """The body Jacobian of a link or frame by name: V = J v in its own axes, shape (6, nv)."""
    return link_jacobian(mechanism, q, *mechanism.place(name))


def link_jacobian(mechanism: Mechanism, q: Array, link: str, T_link_place: Array | None = None) -> Array:
    """The body Jacobian of a place on a link, by default of its link frame: V = J v in its axes, shape (6, nv)."""
    J = np.zeros((6, mechanism.nv), dtype=object if q.dtype == object else np.float64)
    T_child_place = np.eye(4) if T_link_place is None else T_link_place
    for joint in mechanism.topology.path_to_base(link):
        T_parent_child, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        J[:, mechanism.v_slices[joint.name]] = spatial.inverse_adjoint(T_child_place) @ S
        T_child_place = T_parent_child @ T_child_place
    return J


def in_world_axes(T_world_place: Array, columns: Array) -> Array:
    """Vectors, twists of a place's origin, or wrenches about it, turned to the world's axes, shape (3 or 6, ...)."""
    R = T_world_place[:3, :3]
    return np.concatenate([R @ columns[k : k + 3] for k in range(0, len(columns), 3)])


def integrate(mechanism: Mechanism, q: Array, v: Array, step: float | Floats = 1.0) -> Array:
    """The configuration reached from q by moving with constant v for a time step, shape (..., nq)."""
    way, slices = step * v, mechanism.v_slices
    parts = [
        joint.type.moved(joint.axes, q[..., mechanism.q_slices[joint.name]], way[..., slices[joint.name]])
        for joint in mechanism.movable_joints
    ]
    return _joined(parts, q, way)


def difference(mechanism: Mechanism, start: Floats, end: Floats) -> Floats:
    """The constant velocity that leads from one configuration to another in unit time, shape (..., nv)."""
    slices = mechanism.q_slices
    parts = [
        joint.type.way(joint.axes, start[..., slices[joint.name]], end[..., slices[joint.name]])
        for joint in mechanism.movable_joints
    ]
    return _joined(parts, start, end)


def with_unit_quaternions(mechanism: Mechanism, q: Floats) -> Floats:
    """The same configuration with quaternions of length one, shape (..., nq)."""
    parts = [joint.type.normalise(q[..., mechanism.q_slices[joint.name]]) for joint in mechanism.movable_joints]
    return _joined(parts, q)


def _joined(parts: list[Array], *states: Array) -> Array:
    """Entries of joints one after the other; without any, none."""
    nothing = np.zeros((*np.broadcast_shapes(*(state.shape[:-1] for state in states)), 0))
    return np.concatenate([nothing, *parts], axis=-1)
