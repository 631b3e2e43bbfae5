"""The inverse mass matrix in three passes, without the mass matrix.

The articulated-body algorithm on all unit torques at once, without its affine terms: force sets F_i collect what
the subtree of i passes inward, motion sets P_i what the links above pass outward; only entries on and above the
diagonal are computed, in an order in which every subtree is contiguous.

    inward    U = I^A S    D = S^T U + armature                (``articulated``, with I^A_p += what I^A passes)
              Minv[i, i] = D^-1              Minv[i, sub(i)] -= D^-1 S^T F_i[:, sub(i)]
              F_p[:, sub(i)] += Ad_ip^T (F_i[:, sub(i)] + U Minv[i, sub(i)])
    outward   Minv[i, i:] -= D^-1 U^T Ad_ip P_p[:, i:]         P_i[:, i:] = S Minv[i, i:] + Ad_ip P_p[:, i:]

Source: Carpentier, "Analytical inverse of the joint space inertia matrix" (2018), algorithm 1. Once a state.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations.inputs import Inputs, joint_forces
from factorgraph_dyn.solve.matrices.articulated import ArticulatedBodies
from factorgraph_dyn.spatial import Floats


def three_passes(bodies: ArticulatedBodies, inputs: Inputs) -> Floats:
    """M^-1 B, shape (nv, m), of a tree: the inverse mass matrix times B."""
    return three_pass_inverse(bodies) @ joint_forces(bodies.state, inputs)


def three_pass_inverse(bodies: ArticulatedBodies) -> Floats:
    """The inverse of a tree's mass matrix, symmetric, shape (nv, nv)."""
    joints, nv = bodies.joints, bodies.state.mechanism.nv
    starts = np.cumsum([0, *(joint.S.shape[1] for joint in joints)]).tolist()
    ends = _subtree_ends(bodies, starts)
    Minv = np.zeros((nv, nv))
    forces = [np.zeros((6, nv)) for _ in joints]
    for i in reversed(range(len(joints))):
        joint, own, sub = joints[i], slice(starts[i], starts[i + 1]), slice(starts[i], ends[i])
        Minv[own, own] = joint.D_inverse
        Minv[own, sub] -= joint.D_inverse @ (joint.S.T @ forces[i][:, sub])
        if joint.parent >= 0:
            passed = forces[i][:, sub] + joint.P @ (joint.S @ Minv[own, sub])
            forces[joint.parent][:, sub] += joint.Ad_child_parent.T @ passed

    motions: list[Floats] = []
    for i, joint in enumerate(joints):
        own, motion = slice(starts[i], starts[i + 1]), np.zeros((6, nv))
        if joint.parent >= 0:
            motion[:, starts[i] :] = joint.Ad_child_parent @ motions[joint.parent][:, starts[i] :]
            Minv[own, starts[i] :] -= joint.G.T @ motion[:, starts[i] :]
        motion[:, starts[i] :] += joint.S @ Minv[own, starts[i] :]
        motions.append(motion)

    upper = np.triu(Minv)
    order = np.concatenate([np.zeros(0, dtype=int), *(np.arange(nv)[joint.entries] for joint in joints)])
    answer = np.empty((nv, nv))
    answer[np.ix_(order, order)] = upper + np.triu(upper, 1).T
    return answer


def _subtree_ends(bodies: ArticulatedBodies, starts: list[int]) -> list[int]:
    """Where in the outward order the entries of each joint's subtree end."""
    last = list(range(len(bodies.joints)))
    for i in reversed(last.copy()):
        parent = bodies.joints[i].parent
        if parent >= 0:
            last[parent] = max(last[parent], last[i])
    return [starts[i + 1] for i in last]
