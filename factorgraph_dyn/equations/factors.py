"""The equations of motion, each written once, for floats and symbols alike.

p parent, c child, i link, j joint. A loop joint is a joint: predecessor p, successor c.

    velocity      V_c = Ad_cp V_p + S_j v_j
    acceleration  A_c = Ad_cp A_p + S_j a_j + ad(V_c) S_j v_j + dS_j v_j
    redundant     D^T F_j = 0, of a loop whose closure along D follows from that of others
    wrench        sum over joints into i of F_j  -  sum over joints out of i of Ad_ci^T F_j  +  F_ext
                     = G_i A_i - ad(V_i)^T G_i V_i
    torque        tau_j = S_j^T F_j + armature a_j + damping v_j + stiffness (q_j - rest_j) + friction
    coupling      a_j = ratio a_k, with the force lambda on j and -ratio lambda on k

dS_j is zero for every joint but the universal one. The unknown A_i may also be the classical acceleration
A_i + [0; w_i x v_i] of the link's origin, of which only the right-hand sides know: linear velocities
drop out of them. Sources: Lynch & Park (2017), chapter 8; Xie &
Dellaert (2019), equations 1-4.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from factorgraph_dyn.equations.linear_graph import Factor, Variable
from factorgraph_dyn.spatial import Array, Floats, applied, bracket, cross, dual_bracket, sign

IDENTITY = np.eye(6)
MINUS_IDENTITY = {size: -np.eye(size) for size in range(7)}


def twist(link: str) -> Variable:
    """The variable V[link]: the link's twist, m/s and rad/s in its own frame."""
    return Variable("V", link, 6)


def acceleration(link: str) -> Variable:
    """The variable A[link]: the link's spatial acceleration in its own frame, gravity included."""
    return Variable("A", link, 6)


def wrench(joint: str) -> Variable:
    """The variable F[joint]: what the joint passes to its child, in the child's frame."""
    return Variable("F", joint, 6)


def joint_acceleration(joint: str, nv: int) -> Variable:
    """The variable a[joint]."""
    return Variable("a", joint, nv)


def torque(joint: str, nv: int) -> Variable:
    """The variable tau[joint]."""
    return Variable("tau", joint, nv)


def coupling_force(coupling: str) -> Variable:
    """The variable lambda[coupling]: the force that holds a coupling."""
    return Variable("lambda", coupling, 1)


def contact_force(contact: str, size: int) -> Variable:
    """The variable u[contact]: the force or wrench of a contact, along its directions."""
    return Variable("u", contact, size)


def joint_velocity(joint: str, nv: int) -> Variable:
    """The variable v[joint]."""
    return Variable("v", joint, nv)


def outside_wrench(frame: str) -> Variable:
    """The variable W[frame]: an unknown wrench from outside at a link's or frame's origin, in its axes."""
    return Variable("W", frame, 6)


def velocity_factor(
    joint: str, parent: str, child: str, Ad_child_parent: Array, S: Array, v: Array | None = None
) -> Factor:
    """How a joint carries the parent's twist to its child; v[joint] is unknown where no v is given."""
    # V_c - Ad_cp V_p - S_j v_j = 0
    blocks = ((twist(child), IDENTITY), (twist(parent), -Ad_child_parent))
    if v is not None:
        return Factor("velocity", joint, blocks, S @ v)
    own = ((joint_velocity(joint, S.shape[1]), -S),) if S.shape[1] else ()
    return Factor("velocity", joint, (*blocks, *own), np.zeros(6))


def acceleration_factor(
    joint: str,
    parent: str,
    child: str,
    Ad_child_parent: Array,
    S: Array,
    bias: Array,
) -> Factor:
    """How a joint carries the parent's acceleration to its child; the bias is what products of velocities add."""
    # A_c - Ad_cp A_p - S_j a_j = ad(V_c) S_j v_j + dS_j v_j
    blocks = [(acceleration(child), IDENTITY), (acceleration(parent), -Ad_child_parent)]
    if S.shape[1]:
        blocks.append((joint_acceleration(joint, S.shape[1]), -S))
    return Factor("acceleration", joint, tuple(blocks), bias)


def loop_acceleration_factor(whole: Factor, kept: Array) -> Factor:
    """Those combinations of a loop's acceleration equations that are independent of other loops', shape (rows, 6)."""
    blocks = tuple((variable, kept @ block) for variable, block in whole.blocks)
    return Factor(whole.kind, whole.owner, blocks, kept @ whole.rhs)


def redundant_factor(force: Variable, dropped: Array) -> Factor:
    """No force along what a loop or coupling constrains and others do, too; it would move nothing."""
    # D^T F = 0
    return Factor("redundant", force.owner, ((force, dropped),), np.zeros(len(dropped)))


def acceleration_bias(V_child: Array, own: Array) -> Array:
    """The acceleration ad(V_c) S_j v_j of a child whose joint moves with the twist own = S_j v_j, shape (..., 6)."""
    return bracket(V_child, own)


def known_acceleration_factor(joint: str, child: str, A: Array) -> Factor:
    """The acceleration of a joint's child where it is known."""
    return Factor("acceleration", joint, ((acceleration(child), IDENTITY),), A)


def classical_bias(Ad_child_parent: Array, w_parent: Array, u: Array) -> Array:
    """The rest of a child's classical acceleration where its joint moves with the twist u, shape (6,).

    With A' = A + [0; w x v] on both sides of the acceleration equation, and w_c = w + u_w, w = R w_p,
    v_c = R v_p + L w_p + u_v, where Ad_cp = [[R, 0], [L, R]], the linear velocities cancel:

        angular  w x u_w        linear  w x (L w_p) + 2 w x u_v + u_w x u_v
    """
    w = Ad_child_parent[:3, :3] @ w_parent
    turned, slid = u[:3], u[3:]
    linear = cross(w, Ad_child_parent[3:, :3] @ w_parent + 2.0 * slid) + cross(turned, slid)
    return np.concatenate([cross(w, turned), linear])


def wrench_factor(
    link: str,
    G: Floats | None,
    joints_in: Iterable[str],
    joints_out: Iterable[tuple[str, Array]],
    bias: Array,
    pushes: Iterable[tuple[Variable, Array]] = (),
) -> Factor:
    """The balance of one link: joints into it push, joints out of it push back.

    Args:
        link: The link's name.
        G: Spatial inertia, shape (6, 6), or None where the link's acceleration is known.
        joints_in: Names of the joints whose child the link is.
        joints_out: Name and Ad_child_link of the joints whose parent the link is.
        bias: The wrench from outside and that of products of velocities, without that of a known acceleration.
        pushes: Variables u that push the link, and the wrenches W of their units, shape (6, size).
    """
    # G_i A_i - sum_in F_j + sum_out Ad_ci^T F_j - sum W u = ad(V_i)^T G_i V_i + F_ext
    blocks = [(acceleration(link), G)] if G is not None else []
    blocks += [(wrench(joint), MINUS_IDENTITY[6]) for joint in joints_in]
    blocks += [(wrench(joint), Ad_child_link.T) for joint, Ad_child_link in joints_out]
    blocks += [(variable, -W) for variable, W in pushes]
    return Factor("wrench", link, tuple(blocks), bias)


def wrench_bias(G: Array, V: Array) -> Array:
    """The wrench ad(V)^T G V of products of velocities, shape (..., 6)."""
    return dual_bracket(V, applied(G, V))


def classical_wrench_bias(w: Array, G: Floats) -> Array:
    """The product ad(V)^T G V + G [0; w x v], in which the linear velocity v cancels, shape (6,).

    With I the inertia about the origin and h = m c the first moment:  -[w x I w; w x (w x h)].
    """
    h = np.array([G[2, 4], G[0, 5], G[1, 3]])  # from the block m [c]
    return -np.concatenate([cross(w, G[:3, :3] @ w), cross(w, cross(w, h))])


def torque_factor(
    joint: str, S: Array, armature: Floats | None, losses: Array, coupled: Iterable[tuple[str, float]] = ()
) -> Factor:
    """What the motor feels of the joint's wrench.

    Args:
        joint: The joint's name.
        S: Motion subspace, shape (6, nv).
        armature: Reflected inertia as a diagonal matrix, shape (nv, nv), or None.
        losses: Damping, spring and friction torque, shape (nv,).
        coupled: Couplings that act on the joint, and the torque for a unit of their force.
    """
    # S_j^T F_j + armature a_j - tau_j - (coupling forces) = -losses
    nv = S.shape[1]
    blocks = [(wrench(joint), S.T), (torque(joint, nv), MINUS_IDENTITY[nv])]
    if armature is not None:
        blocks.append((joint_acceleration(joint, nv), armature))
    blocks += [(coupling_force(name), np.full((1, 1), -share)) for name, share in coupled]
    return Factor("torque", joint, tuple(blocks), -losses)


def joint_losses(q: Array, v: Array, damping: Array, friction: Array, stiffness: Array, rest: Array) -> Array:
    """The torque that damping, Coulomb friction and springs take from a motor, shape (nv,)."""
    losses: Array = damping * v
    if _acts(friction):  # sign and spring are worth a symbol only where they act
        losses = losses + friction * sign(v)
    if _acts(stiffness):
        losses = losses + stiffness * (q - rest)
    return losses


def _acts(effect: Array) -> bool:
    """Whether an effect of a joint is there; one of symbols may be."""
    return effect.dtype == object or bool(effect.any())


def coupling_factor(
    coupling: str, joint: str, source: str, ratio: float, of: Callable[[str, int], Variable] = joint_acceleration
) -> Factor:
    """How a coupling ties two joint accelerations, or velocities."""
    # a_j - ratio a_k = 0
    blocks = ((of(joint, 1), np.ones((1, 1))), (of(source, 1), np.full((1, 1), -ratio)))
    return Factor("coupling", coupling, blocks, np.zeros(1))
