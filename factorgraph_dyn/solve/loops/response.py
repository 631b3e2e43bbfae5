"""Loops and couplings on top of a tree's response: their forces are inputs that the closure determines.

The forces J^T mu of the closure are columns like any other input, and

    a = a_0 + X_u u + X_c mu,     X_u = M^-1 B,   X_c = M^-1 J^T         (the tree)
    J a = gamma                                                         (independent rows of ``closure_rows``)
    mu = (J X_c)^-1 (gamma - J a_0 - J X_u u)

Where the tree is singular by itself but not with its loops closed, there is no M^-1, and where it is nearly so, what it
does alone has digits that closing it takes away, or J X_c is nearly singular: then both lines are solved as one dense
system. Once a state.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations import State, evaluate_state
from factorgraph_dyn.equations.inputs import Inputs, join_inputs, joint_forces
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.numerics.rank import balanced
from factorgraph_dyn.solve.loops.closure_rows import ClosureRows, closure_rows
from factorgraph_dyn.solve.matrices.mass_matrix import bias, mass_matrix_at
from factorgraph_dyn.solve.matrices.methods import Method
from factorgraph_dyn.solve.singularity import regular_bodies
from factorgraph_dyn.spatial import Floats

_MUCH = 1e3  # times what a mechanism does with its loops closed, for what its tree alone does
_BLUNT = 1e6  # condition of J X_c, from which on digits are lost: the tree alone is nearly singular


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
    tree = evaluate_state(state.mechanism.tree, state.q, state.v)
    everything = join_inputs([inputs, rows.forces])
    try:
        a_0, X = _of_tree(tree, everything, respond, free=free)
    except SingularSystemError:
        found = _all_at_once(tree, inputs, rows)
        if found is None:
            raise
        return found
    alone, X_c = np.column_stack([a_0, X[:, : inputs.size]]), X[:, inputs.size :]
    found = _all_at_once(tree, inputs, rows) if _is_blunt(rows.J @ X_c) else None
    if found is not None:
        return found
    closed = _closed(alone, X_c, rows, state.mechanism.name)
    lost = (np.abs(alone).max(axis=0) > _MUCH * np.abs(closed).max(axis=0)).any()
    found = _all_at_once(tree, inputs, rows) if lost else None
    return (closed[:, 0], closed[:, 1:]) if found is None else found


def _is_blunt(matrix: Floats) -> bool:
    """Whether a symmetric matrix, its diagonal scaled to ones, is ill conditioned."""
    scale = 1.0 / np.sqrt(np.maximum(np.diag(matrix), np.finfo(float).tiny))
    scaled = scale[:, None] * matrix * scale
    return bool(scaled.size) and not (np.isfinite(scaled).all() and np.linalg.cond(scaled) < _BLUNT)


def _closed(alone: Floats, X_c: Floats, rows: ClosureRows, name: str) -> Floats:
    """What a tree does alone, free and for unit inputs, under the closure, shape (nv, 1 + m)."""
    wanted = np.zeros((rows.rank, alone.shape[1]))
    wanted[:, 0] = rows.gamma
    try:
        mu = np.linalg.solve(rows.J @ X_c, wanted - rows.J @ alone)
    except np.linalg.LinAlgError as error:
        raise SingularSystemError(
            f"The accelerations of mechanism {name!r} are undetermined at this q: a motion that its loops and "
            "couplings leave moves no inertia. Give its links mass and inertia or its joints armature; "
            "fgd.diagnose(mechanism, q) tells which motions are left."
        ) from error
    return alone + X_c @ mu


def _of_tree(state: State, inputs: Inputs, respond: Method, *, free: bool) -> tuple[Floats, Floats]:
    bodies = regular_bodies(state)
    return bodies.free if free else np.zeros(state.mechanism.nv), respond(bodies, inputs)


def _all_at_once(tree: State, inputs: Inputs, rows: ClosureRows) -> tuple[Floats, Floats] | None:
    """The same from M a - J^T mu = B u - h and J a = gamma in one system; None where that is singular."""
    J, nothing = rows.J, np.zeros((rows.rank, rows.rank))
    system = balanced(np.block([[mass_matrix_at(tree), -J.T], [J, nothing]]))
    if system.decomposed.rank < len(system.matrix):
        return None
    B, h = joint_forces(tree, inputs), bias(tree.mechanism, tree.q, tree.v)
    pushes = np.block([[-h[:, None], B], [rows.gamma[:, None], np.zeros((rows.rank, inputs.size))]])
    answer = system.columns[:, None] * np.linalg.solve(system.matrix, system.rows[:, None] * pushes)
    return answer[: len(h), 0], answer[: len(h), 1:]
