"""Links whose accelerations are known, because those of all joints are given: what they need without unknowns.

How a turning link accelerates its points is one matrix, used for all it carries: with w and dw its angular velocity
and acceleration and a the classical acceleration of its origin,

    B = [dw] + [w][w]             a point at r accelerates by a + B r
    force  = m a + B h            moment = h x a + I dw + w x I w, sums of products of I with entries of B

so that products of velocities are formed once a link. A hinge's axis n lies fixed in parent and child, so that the
child's B n is the parent's, R B_p R^T n, and says how the child turns about all other axes. As unknowns of the graph
the same accelerations cost up to a sixth more. Takes a mechanism at a state, and joint accelerations, of any scalar
type. Work is done once a state.
Source: Balafoutis & Patel (1989), angular acceleration tensors.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn.equations.dynamics_graph import LinkMotion, base_acceleration
from factorgraph_dyn.equations.state import JointState, State
from factorgraph_dyn.model.parameters import parameters_of
from factorgraph_dyn.motion.kinematics import joint_motion
from factorgraph_dyn.spatial import Array, cross


def link_motion(state: State, a: Array) -> LinkMotion:
    """How given joint accelerations move the links of the tree, and what that takes."""
    A, links = classical_accelerations(state, a), state.mechanism.link_by_name
    moved = {joint.child: state.twists[joint.child][:3] for joint in state.joints.values()}
    return LinkMotion(A, {link: inertial_wrench(links[link].spatial_inertia, A[link], w) for link, w in moved.items()})


def classical_accelerations(state: State, a: Array) -> dict[str, Array]:
    """The angular and the classical linear acceleration of every link's origin, gravity included, by link, shape (6,).

    Args:
        state: The mechanism at (q, v).
        a: Joint accelerations, shape (nv,).
    """
    mechanism = state.mechanism
    A: dict[str, Array] = {mechanism.base: base_acceleration(mechanism)}
    for joint in state.joints.values():
        T, _ = joint_motion(mechanism.joint_by_name[joint.name], state.q[mechanism.q_slices[joint.name]])
        own = joint.S @ a[mechanism.v_slices[joint.name]]
        A[joint.child] = _child_acceleration(joint, T[:3, 3], A[joint.parent], state.twists[joint.parent][:3]) + own
    return A


def _child_acceleration(joint: JointState, r: Array, A_parent: Array, w_parent: Array) -> Array:
    """The acceleration of a child whose joint does not accelerate; r is its origin in the parent."""
    # angular  R dw + R w x u_w        linear  R (a + B r) + 2 R w x u_v + u_w x u_v
    R, u = joint.Ad_child_parent[:3, :3], joint.S @ joint.v
    w, turned, slid = R @ w_parent, u[:3], u[3:]
    B = acceleration_tensor(w_parent, A_parent[:3])
    carried = R @ (A_parent[3:] + B @ r)
    if _turns_about_an_axis(joint):
        n = joint.S[:3, 0]
        return np.concatenate([_hinged(n, R @ (B @ (R.T @ n)), w + turned, R @ A_parent[:3]), carried])
    moved = np.concatenate([R @ A_parent[:3] + cross(w, turned), carried + 2.0 * cross(w, slid) + cross(turned, slid)])
    return moved if joint.S_rate_v is None else moved + joint.S_rate_v


def _turns_about_an_axis(joint: JointState) -> bool:
    """Whether it is a hinge about an axis of the child's frame."""
    S = joint.S
    return S.shape[1] == 1 and S.dtype != object and bool(np.count_nonzero(S[:3]) == 1) and not S[3:].any()


def _hinged(n: Array, Bn: Array, w: Array, dw: Array) -> Array:
    """The angular acceleration of a hinge's child from B n, with n its axis, and its part dw.n along that."""
    # B n = dw x n + (w.n) w - (w.w) n
    found: Array = cross(n, Bn - w * (n @ w)) + n * (n @ dw)
    return found


def acceleration_tensor(w: Array, dw: Array) -> Array:
    """The matrix [dw] + [w][w], shape (3, 3)."""
    x, y, z = w.tolist()
    dx, dy, dz = dw.tolist()
    xx, yy, zz, xy, xz, yz = x * x, y * y, z * z, x * y, x * z, y * z
    return np.array([[-(yy + zz), xy - dz, xz + dy], [xy + dz, -(xx + zz), yz - dx], [xz - dy, yz + dx, -(xx + yy)]])


def inertial_wrench(G: Array, A: Array, w: Array) -> Array:
    """The wrench that moves a link, about its origin: G A + [w x I w; w x (w x h)] for the classical A, shape (6,)."""
    m, p, q, r, _, Ixy, _, Ixz, Iyz, _ = parameters_of(G).tolist()
    x, y, z = w.tolist()
    B, a, h = acceleration_tensor(w, A[:3]), A[3:], np.array([p, q, r])
    xx, yy, zz = x * x, y * y, z * z
    products = np.array(
        [
            -Ixy * B[2, 0] + Ixz * B[1, 0] + Iyz * (yy - zz),
            Ixy * B[2, 1] - Iyz * B[0, 1] + Ixz * (zz - xx),
            -Ixz * B[1, 2] + Iyz * B[0, 2] + Ixy * (xx - yy),
        ]
    )
    moment = _principal_moment(np.diagonal(G[:3, :3]).tolist(), B, A[:3].tolist(), w.tolist())
    return np.concatenate([moment + products + cross(h, a), m * a + B @ h])


def _principal_moment(moments: list[Any], B: Array, dw: list[Any], w: list[Any]) -> Array:
    """What moments of inertia I_xx, I_yy, I_zz take, I dw + w x I w, shape (3,).

    A body that is flat, such as one in the plane across z with I_zz = I_xx + I_yy, needs no more than B.
    """
    (Ixx, Iyy, Izz), (dx, dy, dz), (x, y, z) = moments, dw, w
    along = [
        0.5 * (Iyy + Izz - Ixx),
        0.5 * (Ixx + Izz - Iyy),
        0.5 * (Ixx + Iyy - Izz),
    ]  # the sums of m x x, m y y, m z z
    if any(sum_of_squares == 0.0 for sum_of_squares in along):
        X, Y, Z = along
        return np.array([Y * B[2, 1] - Z * B[1, 2], Z * B[0, 2] - X * B[2, 0], X * B[1, 0] - Y * B[0, 1]])
    return np.array(
        [
            Ixx * dx + (Izz - Iyy) * (y * z),
            Iyy * dy + (Ixx - Izz) * (x * z),
            Izz * dz + (Iyy - Ixx) * (x * y),
        ]
    )
