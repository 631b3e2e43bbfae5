"""Where the links are: poses, motion subspaces and body Jacobians at a configuration.

    T_world_child = T_world_parent  placement_j  T_frame_child(q_j)
    J_link[:, j]  = Ad_link_child S_j      for every joint j between the link and the base

All functions take arrays of any scalar type. Work is done once a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.spatial import Array, Floats, stacked


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


def loop_pose(loop: Loop, poses: Mapping[str, Array]) -> Array:
    """The pose T_frame_child of the successor's side in the predecessor's side of a loop, shape (4, 4)."""
    T_world_frame = poses[loop.predecessor] @ loop.predecessor_placement
    T_world_child = poses[loop.successor] @ loop.successor_placement
    T_frame_child: Array = spatial.inverse_pose(T_world_frame) @ T_world_child
    return T_frame_child


def link_jacobian(mechanism: Mechanism, q: Floats, link: str) -> Floats:
    """The body Jacobian of a link: V_link = J v, shape (6, nv)."""
    J = np.zeros((6, mechanism.nv))
    Ad_link_child = np.eye(6)
    for joint in mechanism.topology.path_to_base(link):
        T_parent_child, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        J[:, mechanism.v_slices[joint.name]] = Ad_link_child @ S
        Ad_link_child = Ad_link_child @ spatial.inverse_adjoint(T_parent_child)
    return J


def integrate(mechanism: Mechanism, q: Array, v: Array, step: Any = 1.0) -> Array:
    """The configuration reached from q by moving with constant v for a time step, shape (nq,)."""
    parts = [
        joint.type.moved(joint.axes, q[mechanism.q_slices[joint.name]], step * v[mechanism.v_slices[joint.name]])
        for joint in mechanism.joints
    ]
    return stacked(parts)
