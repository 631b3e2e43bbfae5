"""The implicit inversion method: M^-1 B in closed form from what an O(n) method leaves behind.

A subsystem i is a link with its joint; its velocities y_i hold the link's twist and the joint's velocity:

    y_i = (V_i, v_i) = T_ip y_p + F_i v_i       T_ip = [[Ad_ip, 0], [0, 0]]     F_i = [S_i; 1]
    M_i = diag(G_i, armature_i)                 M_i y_i' + h_i = B_i u          B_i = [W_i; E_i]

Inward (equations 10 and 11), outward (12):

    M_R = F^T M* F      T*_ip = (1 - M*_i F_i M_R^-1 F_i^T)^T T_ip
    M*_p = M_p + sum T*^T M*_i T*      h*_p = h_p + sum T*^T (M*_i c_i + h*_i)
    a_i = -M_R^-1 F_i^T (M*_i (T_ip y_p' + c_i) + h*_i)

where T*^T M* T* is the paper's T*^T M* T without its cancellation, and the closed form (17, 24, 27), with L the
block matrix of all products T*_ij:

    B*       = L^T diag(B_i)
    Gamma^-1 = 1 - diag(M_R^-1 F_i^T M*_i T_ip) That diag(F_j)         row i of That is row p(i) of L
    M^-1 B   = Gamma^-1 diag(M_R^-1 F_i^T) B*

Rows of B* and of L diag(F_j) follow from those of a neighbour, so that L itself is never formed. Nothing is
inverted but the M_R. Source: Kroeg, Gattringer & Mueller, "Closed-form method for the
inertia-weighted input matrix utilizing O(n) forward dynamics". All of it runs once a state.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.factors import joint_losses
from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.model import Joint
from factorgraph_dyn.solve import singularity
from factorgraph_dyn.solve.articulated import small_inverse
from factorgraph_dyn.spatial import Floats, bracket, dual_bracket


@dataclass(eq=False)
class Subsystem:
    """A link with its joint, in the letters of the paper; M and h become M* and h* in the inward recursion."""

    parent: int
    entries: slice  # in v
    T: Floats  # (6 + k, 6): T_ip without its columns of zeros
    F: Floats
    M: Floats
    h: Floats
    c: Floats
    T_star: Floats
    M_R_inverse: Floats


def implicit_inversion(state: State, inputs: Inputs) -> tuple[Floats, Floats]:
    """The free acceleration (nv,) and the columns M^-1 B (nv, m) of a tree, in closed form."""
    singularity.check_inertia(state, np.ones(state.mechanism.nv, dtype=bool))
    subsystems = _subsystems(state)
    _inward(subsystems)
    return _outward(state, subsystems), _closed_form(state, subsystems, inputs)


def _subsystems(state: State) -> list[Subsystem]:
    mechanism = state.mechanism
    index = {joint.child: i for i, joint in enumerate(mechanism.topology.outward)}
    subsystems = []
    for joint in mechanism.topology.outward:
        here, k = state.joints[joint.name], joint.nv
        G, V = mechanism.link_by_name[joint.child].spatial_inertia, state.twists[joint.child]
        M = np.zeros((6 + k, 6 + k))
        M[:6, :6] = G
        M[range(6, 6 + k), range(6, 6 + k)] = joint.armature
        c = np.zeros(6 + k)
        c[:6] = bracket(V, here.S @ here.v)
        if here.S_rate_v is not None:
            c[:6] += here.S_rate_v
        subsystems.append(
            Subsystem(
                index.get(joint.parent, -1),
                mechanism.v_slices[joint.name],
                np.vstack([here.Ad_child_parent, np.zeros((k, 6))]),
                np.vstack([here.S, np.eye(k)]),
                M,
                np.concatenate([-dual_bracket(V, G @ V), _losses(state, joint)]),
                c,
                np.empty(0),
                np.empty(0),
            )
        )
    return subsystems


def _losses(state: State, joint: Joint) -> Floats:
    if joint.is_lossless:
        return np.zeros(joint.nv)
    q = state.q[state.mechanism.q_slices[joint.name]]
    v = state.joints[joint.name].v
    return joint_losses(q, v, joint.damping, joint.friction, joint.stiffness, joint.rest)


def _inward(subsystems: list[Subsystem]) -> None:
    """Articulated inertias M*, bias forces h* and propagators T*."""
    for i in reversed(subsystems):
        MF = i.M @ i.F
        M_R = i.F.T @ MF
        i.M_R_inverse = small_inverse(M_R)
        i.T_star = i.T - i.F @ (i.M_R_inverse @ (MF.T @ i.T))
        if i.parent >= 0:
            p = subsystems[i.parent]
            p.M[:6, :6] += i.T_star.T @ i.M @ i.T_star
            p.h[:6] += i.T_star.T @ (i.M @ i.c + i.h)


def _outward(state: State, subsystems: list[Subsystem]) -> Floats:
    """Accelerations without inputs, shape (nv,)."""
    a = np.zeros(state.mechanism.nv)
    accelerations: list[Floats] = []
    for i in subsystems:
        above = base_acceleration(state.mechanism) if i.parent < 0 else accelerations[i.parent]
        carried = i.T @ above + i.c
        a_i = -i.M_R_inverse @ (i.F.T @ (i.M @ carried + i.h))
        a[i.entries] = a_i
        accelerations.append((carried + i.F @ a_i)[:6])
    return a


def _closed_form(state: State, subsystems: list[Subsystem], inputs: Inputs) -> Floats:
    """Equation 27, shape (nv, m); the rows of B* and L F follow from those of a neighbour."""
    mechanism = state.mechanism
    B_star = []
    for i, joint in zip(subsystems, mechanism.topology.outward, strict=True):
        W = inputs.wrenches.get(joint.child)
        link_rows = np.zeros((6, inputs.size)) if W is None else W
        B_star.append(np.vstack([link_rows, inputs.torques[i.entries]]))
    pushed = np.zeros((mechanism.nv, inputs.size))  # diag(M_R^-1 F_i^T) B*
    for i, B_i in zip(reversed(subsystems), reversed(B_star), strict=True):
        pushed[i.entries] = i.M_R_inverse @ (i.F.T @ B_i)
        if i.parent >= 0:
            B_star[i.parent][:6] += i.T_star.T @ B_i
    Gamma_inverse = np.eye(mechanism.nv)
    LF: list[Floats] = []  # the link rows of L diag(F_j)
    for i in subsystems:
        if i.parent >= 0:
            above = LF[i.parent]
            Gamma_inverse[i.entries] -= i.M_R_inverse @ ((i.F.T @ i.M @ i.T) @ above)
            row = i.T_star[:6] @ above
        else:
            row = np.zeros((6, mechanism.nv))
        row[:, i.entries] = i.F[:6]
        LF.append(row)
    answer: Floats = Gamma_inverse @ pushed
    return answer
