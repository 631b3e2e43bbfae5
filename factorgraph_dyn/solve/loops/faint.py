"""Loops that hold a motion by next to nothing let it go.

Axes that a file has in six digits are parallel up to a millionth, and lock a planar linkage by as much. What loops hold
by less than ``rank_tolerance`` counts as free. For each combination u of rows of closure of which next to nothing is
left, J^T u ~ 0, the loop that takes the largest part in it is given a slack e along its part w, as if its joint had one
more freedom; the other rows imply what is let go, up to what is faint:

    A_c - Ad_cp A_p - S a - d e = bias        d^T F = 0        d = W (W^T W)^-1 w,   g = W w,   g^T d = 1

with W the wrenches of closure on its successor. Without e the first equation is (I - d g^T) times that of the loop.
Combinations that hold nothing at all contradict the others by as much where velocities drift, and go too; their forces
move nothing, and stay as free as they are. Once a state, and only where closure is faint.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, State
from factorgraph_dyn.equations.factors import wrench
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.solve.loops.closure_rows import ClosureRows, closure_rows
from factorgraph_dyn.solve.loops.singularity import faint_rows
from factorgraph_dyn.solve.own_units import own_state
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.spatial import Floats

LEAST_PART = 1e-6  # of a combination of rows, that a loop has to take in it to let it go


class Slack(NamedTuple):
    """What a loop lets go: d and g as columns on its successor, of which the first `forceless` ones pass no force."""

    d: Floats
    g: Floats
    forceless: int


def without_faint_closure(state: State, graph: LinearGraph) -> LinearGraph | None:
    """The graph with the motions free that loops hold by next to nothing; None where there are none.

    Right-hand sides may have columns, shape (rows, m).
    """
    slacks = _slacks(state)
    if not slacks:
        return None
    factors = [_let_go(factor, slacks) for factor in graph.factors]
    columns = factors[0].rhs.shape[1:]
    factors += [_without_force(state, name, slack, columns) for name, slack in slacks.items() if slack.forceless]
    return LinearGraph(graph.variables, tuple(factors), graph.known)


def _let_go(factor: Factor, slacks: Mapping[str, Slack]) -> Factor:
    """The acceleration of a loop's successor but for what its slacks change of it; other equations as they are."""
    if factor.kind != "acceleration" or factor.owner not in slacks:
        return factor
    slack = slacks[factor.owner]
    kept = np.eye(len(slack.d)) - slack.d @ slack.g.T
    blocks = tuple((variable, kept @ block) for variable, block in factor.blocks)
    return Factor(factor.kind, factor.owner, blocks, kept @ factor.rhs)


def _without_force(state: State, name: str, slack: Slack, columns: tuple[int, ...]) -> Factor:
    """d^T F = 0, of order one in the loop's own units."""
    unit, d = graph_units(state.mechanism).variables["F", name], slack.d[:, : slack.forceless].T
    block = d / np.linalg.norm(d * unit, axis=1, keepdims=True)
    return Factor("slack", name, ((wrench(name), block),), np.zeros((slack.forceless, *columns)))


def _slacks(state: State) -> dict[str, Slack]:
    """The slacks of each loop that has some, in the caller's units; none where closure is not faint."""
    rows, unit = closure_rows(own_state(state)), natural(state.mechanism).motion[:, None]
    faint, idle = faint_rows(state.mechanism, rows)
    if not faint.shape[1]:
        return {}
    found: dict[str, Slack] = {}
    freed = _chosen(state, rows, faint)
    every = _chosen(state, rows, np.hstack([faint, idle]), freed) if idle.shape[1] else freed
    for name, parts in every.items():
        loop = next(loop for loop in state.mechanism.loops if loop.name == name)
        W = rows.forces.wrenches[loop.successor][:, [owner == name for owner in rows.names]]
        w, _ = np.linalg.qr(np.column_stack(parts))
        d, g = unit * (W @ np.linalg.solve(W.T @ W, w)), (W @ w) / unit
        found[name] = Slack(d, g, len(freed.get(name, ())))
    return found


def _chosen(
    state: State, rows: ClosureRows, idle: Floats, before: Mapping[str, list[Floats]] | None = None
) -> dict[str, list[Floats]]:
    """Combinations w of each loop's own rows, one for every idle combination of all rows: the largest part goes first.

    Args:
        state: The mechanism at (q, v).
        rows: The closure of its twin in its own units.
        idle: Combinations of rows of which next to nothing is left, as columns.
        before: What has been chosen of them before, and is kept.
    """
    owners = {loop.name: np.array([owner == loop.name for owner in rows.names]) for loop in state.mechanism.loops}
    chosen = {name: list(parts) for name, parts in (before or {}).items()}
    for name, w in [(name, w) for name, parts in chosen.items() for w in parts]:
        idle = _less(idle, w @ idle[owners[name]])
    while idle.shape[1]:
        sides = {name: np.linalg.svd(idle[own]) for name, own in owners.items()}
        name = max(sides, key=lambda loop: float(sides[loop][1].max(initial=0.0)), default="")
        if not name or not sides[name][1].max(initial=0.0) > LEAST_PART:  # couplings hold it
            break
        left, _, right = sides[name]
        chosen.setdefault(name, []).append(left[:, 0])
        idle = idle @ right[1:].T
    return chosen


def _less(idle: Floats, part: Floats) -> Floats:
    """Combinations in which something takes no part any more, one fewer."""
    _, _, right = np.linalg.svd(part[None])
    return np.asarray(idle @ right[1:].T)
