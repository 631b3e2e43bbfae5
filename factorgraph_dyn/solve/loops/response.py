"""Loops and couplings on top of a tree's response: their forces are inputs that the closure determines.

The forces J^T mu of the closure are columns like any other input, and

    a = a_0 + X_u u + X_c mu,     X_u = M^-1 B,   X_c = M^-1 J^T         (the tree)
    J a = gamma                                                         (independent rows of ``closure_rows``)
    mu = (J X_c)^-1 (gamma - J a_0 - J X_u u)

Where J a = gamma holds, M + s J^T J with bias h - s J^T gamma moves as M with h does, whatever s is: so the answer is
found, densely, where the tree is singular by itself but not with its loops closed. Once a state.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.inputs import Inputs, join_inputs
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.motion.kinematics import link_jacobian
from factorgraph_dyn.solve.loops.closure_rows import ClosureRows, closure_rows
from factorgraph_dyn.solve.mass_matrix import bias, mass_matrix_at
from factorgraph_dyn.solve.methods import Method
from factorgraph_dyn.solve.singularity import regular_bodies
from factorgraph_dyn.spatial import Floats

SINGULAR_CLOSED = 1e-13  # least eigenvalue, scaled to unit diagonal, of a closed mechanism's inertia


def closed_response(state: State, inputs: Inputs, respond: Method, *, free: bool) -> tuple[Floats, Floats]:
    """The free acceleration (nv,), or zeros where it is not asked for, and M^-1 B (nv, m), under the closure.

    Args:
        state: The mechanism at a state, in its own units.
        inputs: The columns of B.
        respond: What gives M^-1 B of a tree.
        free: Whether the free acceleration is asked for.
    """
    if not state.mechanism.is_closed_kind:
        return _of_tree(state, inputs, respond, free=free)
    rows = closure_rows(state).reduced
    tree = replace(state, mechanism=state.mechanism.tree, loops={})
    everything = join_inputs([inputs, rows.forces])
    try:
        a_0, X = _of_tree(tree, everything, respond, free=free)
    except SingularSystemError as error:
        a_0, X = _stiffened(tree, everything, rows, error)
    X_u, X_c = X[:, : inputs.size], X[:, inputs.size :]
    mu = np.linalg.solve(rows.J @ X_c, np.column_stack([rows.gamma - rows.J @ a_0, -rows.J @ X_u]))
    return a_0 + X_c @ mu[:, 0], X_u + X_c @ mu[:, 1:]


def joint_forces(state: State, inputs: Inputs) -> Floats:
    """The joint torques that are as good as inputs, B = E + sum J_i^T W_i, shape (nv, m)."""
    B = inputs.torques.copy()
    for link, W in inputs.wrenches.items():
        B += link_jacobian(state.mechanism, state.q, link).T @ W
    return B


def _of_tree(state: State, inputs: Inputs, respond: Method, *, free: bool) -> tuple[Floats, Floats]:
    bodies = regular_bodies(state)
    return bodies.free if free else np.zeros(state.mechanism.nv), respond(bodies, inputs)


def _stiffened(state: State, inputs: Inputs, rows: ClosureRows, error: SingularSystemError) -> tuple[Floats, Floats]:
    """The response of a tree whose closure resists as M + s J^T J does."""
    M, J = mass_matrix_at(state), rows.J
    s = np.abs(M).max(initial=0.0) / max(np.abs(J.T @ J).max(initial=0.0), np.finfo(float).tiny)
    stiffened = M + s * J.T @ J
    scale = 1.0 / np.sqrt(np.maximum(np.diag(stiffened), np.finfo(float).tiny))
    if np.linalg.eigvalsh(scale[:, None] * stiffened * scale)[0] < SINGULAR_CLOSED:
        raise error
    h = bias(state.mechanism, state.q, state.v)
    pushes = np.column_stack([s * J.T @ rows.gamma - h, joint_forces(state, inputs)])
    answer = scale[:, None] * np.linalg.solve(scale[:, None] * stiffened * scale, scale[:, None] * pushes)
    return answer[:, 0], answer[:, 1:]
