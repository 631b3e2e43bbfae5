"""Dynamics with loops and couplings, redundant constraints and redundant motors, hard and exact.

    1. Of the rows of closure those are kept that are independent (``motion/independence``), so that the graph is
       square and regular, and is eliminated in any ordering as a tree's is.
    2. What it misses of the rows that were dropped is checked.
    3. Forces that move nothing (``force_freedoms``) are chosen: first so that planar loops pass nothing out of their
       plane, where that is asked for, then by objectives, then the least.

Once a state; linear in the number of links and loops for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable, dynamics_graph
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.wrenches import LINK
from factorgraph_dyn.errors import ResidualError, SingularSystemError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural, usual_acceleration
from factorgraph_dyn.motion.closure import rank_tolerance
from factorgraph_dyn.motion.independence import Independence, Kept, independent_rows
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering
from factorgraph_dyn.solve.elimination import SolvedGraph, solve_graph
from factorgraph_dyn.solve.loops import singularity
from factorgraph_dyn.solve.loops.choice import Choice
from factorgraph_dyn.solve.loops.closure_rows import CLOSED_ACCELERATION, drift
from factorgraph_dyn.solve.loops.force_freedoms import force_freedoms, surplus_factors
from factorgraph_dyn.solve.loops.planar import planar_factors
from factorgraph_dyn.solve.objectives import Objective, torque_bounds
from factorgraph_dyn.solve.rows import QUIET_LOOPS
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.solve.solution import RESIDUAL_TOLERANCE, Solution, check_residual, joint_vectors
from factorgraph_dyn.spatial import Floats

InternalWrenches = Literal["least_norm", "error", "planar"]
INTERNAL_WRENCHES: tuple[str, ...] = get_args(InternalWrenches)
SUSPICIOUS_GROWTH = 2e4  # of right-hand sides, below the condition 1e6 that is warned of: an estimate may be low
DENSE_LIMIT = 200  # freedoms and constraints above which conditioning is not looked into


@dataclass(frozen=True)
class LoopOptions:
    """How to choose where the physics does not.

    Attributes:
        objectives: Soft rows over the graph's variables.
        internal_wrenches: "least_norm", "error" or "planar".
        residual_tolerance: Largest misfit of an equation, relative to its terms.
        check_unique: Whether to look for accelerations that are not unique and for singular configurations.
    """

    objectives: tuple[Objective, ...] = ()
    internal_wrenches: str = "least_norm"
    residual_tolerance: float = RESIDUAL_TOLERANCE
    check_unique: bool = True

    def __post_init__(self) -> None:
        check_choice(self.internal_wrenches, INTERNAL_WRENCHES, "internal_wrenches")


def solve_closed(
    state: State,
    known: Known,
    ordering: OrderingLike,
    external: Mapping[str, Floats],
    options: LoopOptions,
) -> Solution:
    """The answer for a mechanism with loops, couplings or objectives; wrenches from outside are on links."""
    mechanism = state.mechanism
    rows = independent_rows(mechanism, state.q)
    graph = dynamics_graph(state, known, external, axes=LINK, closure=rows.kept)
    freedoms = force_freedoms(state, known, rows)
    surplus = surplus_factors(state, freedoms, known)
    graph = graph.with_factors(surplus) if surplus else graph
    chosen = choose_ordering(mechanism, graph, ordering)
    try:
        solved = solve_graph(
            graph, chosen, "sequential", graph_units(mechanism), usual_acceleration(mechanism, state.v), QUIET_LOOPS
        )
    except SingularSystemError:
        singularity.check(state, known, external)
        raise
    _check_residual(state, known, graph, chosen, external, solved, options)
    _check_dropped_rows(state, rows, solved, known, external)
    choice = Choice(mechanism, graph, freedoms, solved.values)
    if options.internal_wrenches == "planar":
        _keep_in_plane(choice, planar_factors(state))
    soft = [row for objective in options.objectives for row in objective.factors(mechanism, graph)]
    choice.minimise(soft)
    if options.check_unique:
        _check_unique(state, known, external, options, rows, choice, solved.growth)
    not_unique = choice.not_unique()
    if not_unique and options.internal_wrenches == "error":
        raise SingularSystemError(
            f"Internal wrenches of mechanism {mechanism.name!r} are not unique: {', '.join(not_unique)}; its "
            "loops are constrained more than once. Use internal_wrenches='least_norm' (or 'planar'), or "
            "loop joints with more freedom.",
            not_unique=not_unique,
        )
    choice.minimise_forces()
    bounds = torque_bounds(options.objectives, mechanism, choice.torques)
    if bounds is not None:
        choice.move_within(*bounds, soft)
    values = choice.values
    a, tau = joint_vectors(state, known, values)
    return Solution(a, tau, solved.residual, chosen, _as_chosen(graph, values), state, values, solved.net, not_unique)


def _as_chosen(graph: LinearGraph, values: Mapping[Variable, Floats]) -> LinearGraph:
    """The graph with what was chosen of forces that move nothing, in place of zero."""
    if not any(factor.kind == "redundant" for factor in graph.factors):
        return graph
    factors = [
        factor._replace(rhs=factor.blocks[0][1] @ values[factor.blocks[0][0]]) if factor.kind == "redundant" else factor
        for factor in graph.factors
    ]
    return LinearGraph(graph.variables, tuple(factors), graph.known, mechanism=graph.mechanism)


def _check_residual(
    state: State,
    known: Known,
    graph: LinearGraph,
    ordering: Ordering,
    external: Mapping[str, Floats],
    solved: SolvedGraph,
    options: LoopOptions,
) -> None:
    try:
        check_residual(solved.residual, solved.worst, graph, ordering, options.residual_tolerance)
    except ResidualError as error:
        raise singularity.contradiction(state, known, external, error) from error


def _check_dropped_rows(
    state: State, rows: Independence, solved: SolvedGraph, known: Known, external: Mapping[str, Floats]
) -> None:
    """Raise where accelerations break a row of closure that was taken to follow from others."""
    mechanism, motion = state.mechanism, natural(state.mechanism).motion
    A = {mechanism.base: base_acceleration(mechanism)}
    A |= {variable.owner: value for variable, value in solved.values.items() if variable.kind == "A"}
    usual = max(float(np.abs(value / motion).max()) for value in A.values())
    usual = max(usual, usual_acceleration(mechanism, state.v))
    for loop, mask in zip(mechanism.loops, rows.kept, strict=False):
        if all(mask):
            continue
        here, X = state.loops[loop.name], spatial.inverse_adjoint(loop.successor_placement)
        # In own units, in which C has no part along the joint's own acceleration.
        C = loop.type.constrained(loop.axes, X @ here.S / motion[:, None])[:, ~np.array(mask)]
        missed = X @ (A[loop.successor] - here.Ad_child_parent @ A[loop.predecessor] - drift(here, state))
        breach = float(np.abs(C.T @ (missed / motion)).max())
        if not breach <= max(rank_tolerance(mechanism), CLOSED_ACCELERATION) * usual:
            error = ResidualError(
                f"The accelerations break the closure of loop {loop.name!r} by {breach / usual:.2e} of the largest.",
                constraints={loop.name: breach},
            )
            raise singularity.contradiction(state, known, external, error) from error


def _keep_in_plane(choice: Choice, planar: Sequence[Factor]) -> None:
    """Let loops pass nothing out of the plane."""
    worst = choice.satisfy(planar)
    if worst is not None:
        raise ResidualError(
            f"The planar constraint of loop {worst!r} contradicts the equations. Use internal_wrenches='least_norm'."
        )


def _check_unique(
    state: State,
    known: Known,
    external: Mapping[str, Floats],
    options: LoopOptions,
    rows: Independence,
    choice: Choice,
    growth: float,
) -> None:
    """Raise where accelerations or torques are not unique; warn of singular configurations."""
    mechanism = state.mechanism
    size = mechanism.nv + sum(6 - loop.nv for loop in mechanism.loops)
    free = choice.free_torques()
    if free and options.objectives:
        raise SingularSystemError(
            f"The objective leaves torques free, tau[{free[0]}] among them. Give every motor a positive "
            "weight, for instance with MinimumTorque()."
        )
    if free or (size <= DENSE_LIMIT and not growth < SUSPICIOUS_GROWTH):
        singularity.check(state, known, external, torques_chosen=bool(options.objectives))
    is_warned = rows.is_fewer and singularity.warn_of_lost_closure(state)
    is_warned = is_warned or (rows.is_weak and singularity.warn_of_faint_closure(state))
    regular = _regular_choices(mechanism)
    if is_warned or size > DENSE_LIMIT or rows.kept in regular:
        return
    if not singularity.warn_of_bent_closure(state):
        regular.add(rows.kept)


@kept_with_first
def _regular_choices(_: Mechanism) -> set[Kept]:
    """The choices of rows at whose states a mechanism was found to move as they say."""
    return set()
