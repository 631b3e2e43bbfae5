"""The implicit inversion method: M^-1 B in closed form from what an O(n) method leaves behind.

A subsystem i is a link with its joint; its velocities y_i hold the link's twist and the joint's velocity:

    y_i = (V_i, v_i) = T_ip y_p + F_i v_i       T_ip = [[Ad_ip, 0], [0, 0]]     F_i = [S_i; 1]
    M_i = diag(G_i, armature_i)                 M_i y_i' + h_i = B_i u          B_i = [W_i; E_i]

The O(n) method (equations 10 to 12) is the articulated-body recursion, whose letters are P, D and G:

    M*_i = diag(P_i, armature_i)     M_R = F^T M* F = D_i     K_i = M_R^-1 F_i^T M*_i T_ip = G_i^T Ad_ip
    T*_ip = (1 - M*_i F_i M_R^-1 F_i^T)^T T_ip = [Ad_ip - S_i K_i; -K_i]

and the closed form (17, 24, 27), with L the block matrix of all products T*_ij:

    B*       = L^T diag(B_i)
    Gamma^-1 = 1 - diag(K_i) That diag(F_j)                            row i of That is row p(i) of L
    M^-1 B   = Gamma^-1 diag(M_R^-1 F_i^T) B*

Rows of B* and of L diag(F_j) follow from those of a neighbour, so that L itself is never formed. Nothing is
inverted but the M_R. Source: Kroeg, Gattringer & Mueller, "Closed-form method for the
inertia-weighted input matrix utilizing O(n) forward dynamics". All of it runs once a state.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.solve.matrices.articulated import ArticulatedBodies
from factorgraph_dyn.spatial import Floats


def implicit_inversion(bodies: ArticulatedBodies, inputs: Inputs) -> Floats:
    """M^-1 B, shape (nv, m), of a tree in closed form."""
    joints, nv = bodies.joints, bodies.state.mechanism.nv
    K = [joint.G.T @ joint.Ad_child_parent for joint in joints]
    T_star = [joint.Ad_child_parent - joint.S @ K_i for joint, K_i in zip(joints, K, strict=True)]  # the link rows
    W = [inputs.wrenches.get(joint.child, np.zeros((6, inputs.size))) for joint in joints]  # those of B*
    pushed = np.zeros((nv, inputs.size))  # diag(M_R^-1 F_i^T) B*
    for i in reversed(range(len(joints))):
        joint, E_i = joints[i], inputs.torques[joints[i].entries]
        pushed[joint.entries] = joint.D_inverse @ (joint.S.T @ W[i] + E_i)
        if joint.parent >= 0:
            W[joint.parent] = W[joint.parent] + T_star[i].T @ W[i] - K[i].T @ E_i
    Gamma_inverse = np.eye(nv)
    LF: list[Floats] = []  # the link rows of L diag(F_j)
    for i, joint in enumerate(joints):
        row = np.zeros((6, nv))
        if joint.parent >= 0:
            Gamma_inverse[joint.entries] -= K[i] @ LF[joint.parent]
            row = T_star[i] @ LF[joint.parent]
        row[:, joint.entries] = joint.S
        LF.append(row)
    answer: Floats = Gamma_inverse @ pushed
    return answer
