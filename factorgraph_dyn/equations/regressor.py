"""What the inertial parameters of each link contribute: regressors, exactly linear.

    torques            tau = Y(q, v, a) p  +  armature a + damping v + friction + springs
    kinetic energy     K = k(q, v) p       +  armature v^2 / 2
    potential energy   U = u(q) p          +  springs

p holds ten parameters a link (``model/parameters``). Each column comes from the wrench equation itself, asked with a
unit of one parameter: with E_k the spatial inertia of a unit of the k-th parameter, J_i the body Jacobian of link i
and (R_i, p_i) its pose,

    Y[:, i, k] = J_i^T (E_k A_i - ad(V_i)^T E_k V_i)        k[i, k] = V_i^T E_k V_i / 2        u[i] = -g^T [p_i, R_i]

Takes a mechanism at a state, of any scalar type; the mechanism's own inertias do not matter. All are about the tree.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.equations.known_motion import classical_accelerations, inertial_wrench
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.model.parameters import COUNT, UNIT_INERTIAS
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.motion.masses import still_links
from factorgraph_dyn.spatial import Array


def torque_regressor(state: State, a: Array, links: Sequence[str]) -> Array:
    """The torques of the tree for units of the parameters of links, shape (nv, 10 links)."""
    A, J = classical_accelerations(state, a), link_jacobians(state)
    blocks = [J[link].T @ wrench_regressor(A[link], state.twists[link][:3]) for link in links]
    return np.concatenate([np.zeros((state.mechanism.nv, 0)), *blocks], axis=1)


def wrench_regressor(A: Array, w: Array) -> Array:
    """The wrench that a link takes for units of its parameters, shape (6, 10).

    Args:
        A: Its classical acceleration, shape (6,).
        w: Its angular velocity, shape (3,).
    """
    return np.array([inertial_wrench(E, A, w) for E in UNIT_INERTIAS]).T


def kinetic_regressor(state: State, links: Sequence[str]) -> Array:
    """The kinetic energy of units of the parameters of links, shape (10 links,)."""
    twists = [state.twists[link] for link in links]
    return np.array([0.5 * (V @ (E @ V)) for V in twists for E in UNIT_INERTIAS])


def potential_regressor(state: State, links: Sequence[str]) -> Array:
    """The potential energy of units of the parameters of links in gravity, shape (10 links,); 0 of what never moves."""
    poses, gravity = link_poses(state.mechanism, state.q), state.mechanism.gravity
    still, rotational = still_links(state.mechanism), np.zeros(COUNT - 4)
    rows = [
        np.zeros(COUNT) if link in still else np.concatenate([-(gravity @ poses[link][:3, [3, 0, 1, 2]]), rotational])
        for link in links
    ]
    return np.concatenate([np.zeros(0), *rows])


def link_jacobians(state: State) -> dict[str, Array]:
    """The body Jacobian of every link by name, V = J v, shape (6, nv)."""
    nv = state.mechanism.nv
    J: dict[str, Array] = {state.mechanism.base: np.zeros((6, nv))}
    for joint in state.joints.values():
        own = np.zeros((6, nv), dtype=joint.S.dtype)
        own[:, state.mechanism.v_slices[joint.name]] = joint.S
        J[joint.child] = joint.Ad_child_parent @ J[joint.parent] + own
    return J
