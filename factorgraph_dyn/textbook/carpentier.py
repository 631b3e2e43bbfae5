"""The inverse mass matrix in three passes, without the mass matrix.

The articulated-body algorithm on all unit torques at once, without its affine terms: force sets F_i collect what
the subtree of i passes inward, motion sets P_i what the links above pass outward; only entries on and above the
diagonal are computed, in an order in which every subtree is contiguous.

    inward    U = I^A S    D = S^T U + armature
              Minv[i, i] = D^-1              Minv[i, sub(i)] -= D^-1 S^T F_i[:, sub(i)]
              F_p[:, sub(i)] += Ad_ip^T (F_i[:, sub(i)] + U Minv[i, sub(i)])
              I^A_p += Ad_ip^T (I^A - U D^-1 U^T) Ad_ip           without its cancellation: passed_inertia
    outward   Minv[i, i:] -= D^-1 U^T Ad_ip P_p[:, i:]         P_i[:, i:] = S Minv[i, i:] + Ad_ip P_p[:, i:]

Source: Carpentier, "Analytical inverse of the joint space inertia matrix" (2018), algorithm 1. Once a state.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations import State
from factorgraph_dyn.solve import singularity
from factorgraph_dyn.solve.articulated import small_inverse
from factorgraph_dyn.solve.singularity import passed_inertia
from factorgraph_dyn.spatial import Floats


def three_pass_inverse(state: State) -> Floats:
    """The inverse of a tree's mass matrix, symmetric, shape (nv, nv)."""
    mechanism = state.mechanism
    singularity.check_inertia(state, np.ones(mechanism.nv, dtype=bool))
    outward = mechanism.topology.outward
    starts = np.cumsum([0, *(joint.nv for joint in outward)]).tolist()
    ends = _subtree_ends(state, starts)
    place = {joint.child: i for i, joint in enumerate(outward)}
    nv = mechanism.nv

    inertia = [mechanism.link_by_name[joint.child].spatial_inertia for joint in outward]
    Minv = np.zeros((nv, nv))
    forces = [np.zeros((6, nv)) for _ in outward]
    gains: list[Floats] = [np.empty(0)] * len(outward)  # D^-1 U^T
    for i in reversed(range(len(outward))):
        here, own, sub = state.joints[outward[i].name], slice(starts[i], starts[i + 1]), slice(starts[i], ends[i])
        U = inertia[i] @ here.S
        D = here.S.T @ U + np.diag(outward[i].armature)
        D_inverse = small_inverse(D)
        gains[i] = D_inverse @ U.T
        Minv[own, own] = D_inverse
        Minv[own, sub] -= D_inverse @ (here.S.T @ forces[i][:, sub])
        p = place.get(outward[i].parent)
        if p is not None:
            Ad = here.Ad_child_parent
            forces[p][:, sub] += Ad.T @ (forces[i][:, sub] + U @ Minv[own, sub])
            inertia[p] = inertia[p] + passed_inertia(inertia[i], Ad, here.S, gains[i], outward[i].armature)

    motions: list[Floats] = []
    for i in range(len(outward)):
        here, own = state.joints[outward[i].name], slice(starts[i], starts[i + 1])
        p = place.get(outward[i].parent)
        motion = np.zeros((6, nv))
        if p is not None:
            motion[:, starts[i] :] = here.Ad_child_parent @ motions[p][:, starts[i] :]
            Minv[own, starts[i] :] -= gains[i] @ motion[:, starts[i] :]
        motion[:, starts[i] :] += here.S @ Minv[own, starts[i] :]
        motions.append(motion)

    upper = np.triu(Minv)
    symmetric = upper + np.triu(upper, 1).T
    order = np.concatenate(
        [np.zeros(0, dtype=int), *(np.arange(nv)[mechanism.v_slices[joint.name]] for joint in outward)]
    )
    answer = np.empty((nv, nv))
    answer[np.ix_(order, order)] = symmetric
    return answer


def _subtree_ends(state: State, starts: list[int]) -> list[int]:
    """Where in the outward order the entries of each joint's subtree end."""
    outward = state.mechanism.topology.outward
    place = {joint.child: i for i, joint in enumerate(outward)}
    last = list(range(len(outward)))
    for i in reversed(range(len(outward))):
        p = place.get(outward[i].parent)
        if p is not None:
            last[p] = max(last[p], last[i])
    return [starts[i + 1] for i in last]
