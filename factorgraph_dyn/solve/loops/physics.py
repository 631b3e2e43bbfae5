"""The physics of closed mechanisms, eliminated together with objectives and ties: an answer and what it misses.

What is not unique is the least there is (``layers``); what loops hold faintly is let go (``faint``). Once a state;
linear in the number of links and loops for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Literal, NamedTuple, get_args

import numpy as np

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable
from factorgraph_dyn.errors import ResidualError, SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering
from factorgraph_dyn.solve.loops import singularity
from factorgraph_dyn.solve.loops.faint import without_faint_closure
from factorgraph_dyn.solve.loops.layers import FORCES, LayeredSystem, Values, weighted, with_ties
from factorgraph_dyn.solve.loops.planar import planar_factors
from factorgraph_dyn.solve.objectives import Objective
from factorgraph_dyn.solve.rows import QUIET_LOOPS
from factorgraph_dyn.solve.scaling import (
    NO_UNITS,
    force_measures,
    graph_units,
    scale_factor,
    scale_graph,
    variable_units,
)
from factorgraph_dyn.solve.solution import RESIDUAL_TOLERANCE, check_residual
from factorgraph_dyn.spatial import Floats, stacked

InternalWrenches = Literal["least_norm", "error", "planar"]
INTERNAL_WRENCHES: tuple[str, ...] = get_args(InternalWrenches)
EXPLAINED = 1e-14  # backward error that rounding explains, a hundred times
LIGHTER = 1e-2  # ties beside which what loops hardly hold is heavy


@dataclass(frozen=True)
class LoopOptions:
    """How to choose where the physics does not.

    Attributes:
        objectives: Soft rows over the graph's variables.
        internal_wrenches: "least_norm", "error" or "planar".
        residual_tolerance: Largest misfit of an equation, relative to its terms.
        check_unique: Whether to look for entries that are not unique and for singular configurations.
    """

    objectives: tuple[Objective, ...] = ()
    internal_wrenches: str = "least_norm"
    residual_tolerance: float = RESIDUAL_TOLERANCE
    check_unique: bool = True

    def __post_init__(self) -> None:
        check_choice(self.internal_wrenches, INTERNAL_WRENCHES, "internal_wrenches")


class Problem(NamedTuple):
    """What is solved, in units in which it is of order one.

    Attributes:
        graph: The physics in the units of the caller.
        physics: The physics.
        objectives: Soft rows.
        ties: How strongly each entry of a variable is pulled towards zero.
        units: Of each variable.
    """

    graph: LinearGraph
    physics: LinearGraph
    objectives: list[Factor]
    ties: Mapping[Variable, Floats]
    units: Mapping[Variable, Floats]


class Found(NamedTuple):
    """An answer to the physics, before anybody has chosen what they leave free.

    Attributes:
        problem: What was solved.
        system: What it was solved by.
        ordering: In which order.
        values: The answer.
        residual: Its backward error.
        is_freed: Whether motions that loops hold faintly were let go.
    """

    problem: Problem
    system: LayeredSystem
    ordering: Ordering
    values: Values
    residual: float = np.inf
    is_freed: bool = False


def solve_physics(
    state: State,
    known: Known,
    graph: LinearGraph,
    ordering: OrderingLike,
    external: Mapping[str, Floats],
    options: LoopOptions,
) -> Found:
    """An answer; where it is none, or not quite, and loops hold a motion faintly, that of the graph that lets it go.

    Ties pull by about as much as such loops hold, so that the motion would be neither free nor held.
    """
    try:
        found = _physical(state, known, graph, ordering, external, options)
        if found.residual <= EXPLAINED:
            return found
    except (ResidualError, SingularSystemError):
        freed = without_faint_closure(state, graph)
        if freed is None:
            raise
    else:
        freed = without_faint_closure(state, graph)
        if freed is None:
            return _by_lighter_ties(found, options.residual_tolerance)
    return _physical(state, known, freed, ordering, external, options)._replace(is_freed=True)


def _physical(
    state: State,
    known: Known,
    graph: LinearGraph,
    ordering: OrderingLike,
    external: Mapping[str, Floats],
    options: LoopOptions,
) -> Found:
    """The answer to a graph's physics, objectives and ties."""
    problem = _scaled_problem(state, graph, options)
    stacked = with_ties(problem.physics, problem.objectives, problem.ties)
    chosen = choose_ordering(state.mechanism, stacked, ordering)
    try:
        system = LayeredSystem(problem.physics, stacked, problem.objectives, chosen)
        values = system.solve()
    except SingularSystemError:
        singularity.check(state, known, external)
        raise
    try:
        found = Found(problem, system, chosen, values)
        return found._replace(residual=checked_residual(found, values, options.residual_tolerance))
    except ResidualError as error:
        if options.internal_wrenches == "planar":
            _check_planar(error)
        raise singularity.contradiction(state, known, external, error) from error


def _scaled_problem(state: State, graph: LinearGraph, options: LoopOptions) -> Problem:
    """The physics with what counts as physics, and the objectives scaled to order one."""
    mechanism, units = state.mechanism, graph_units(state.mechanism)
    physics = graph
    if options.internal_wrenches == "planar":
        physics = LinearGraph(graph.variables, (*graph.factors, *planar_factors(state)), graph.known)
    sizes = variable_units(graph, units)
    rows = [row for o in options.objectives for row in o.factors(mechanism, graph)]
    rows = [scale_factor(row, sizes, NO_UNITS) for row in rows]
    largest = max((float(np.abs(b).max(initial=0.0)) for row in rows for _, b in row.blocks), default=1.0)
    soft = [weighted(row, 1.0 / (largest or 1.0)) for row in rows]
    return Problem(physics, scale_graph(physics, units), soft, ties_of(mechanism, graph, sizes), sizes)


def ties_of(mechanism: Mechanism, graph: LinearGraph, units: Mapping[Variable, Floats]) -> dict[Variable, Floats]:
    """Forces, which loops may leave free, and the two turns of universal loops, which may align."""
    measures = force_measures(mechanism)
    turning = {loop.name for loop in mechanism.loops if loop.type.subspace_varies}
    ties = {v: units[v] / measures[v.kind, v.owner] for v in graph.variables if v.kind in FORCES}
    return ties | {v: np.ones(v.size) for v in graph.variables if v.kind == "a" and v.owner in turning}


def checked_residual(found: Found, values: Values, tolerance: float) -> float:
    """The backward error of an answer, or a ResidualError where it is too large."""
    rows = found.system.rows
    residual, worst = rows.backward_error(rows.missed(gathered(values, found.problem.physics.variables)), QUIET_LOOPS)
    check_residual(residual, worst, found.problem.graph, found.ordering, tolerance)
    return residual


def _by_lighter_ties(found: Found, tolerance: float) -> Found:
    """The answer or, where its residual is less, that of lighter ties.

    Next to a motion that loops hold by about as much as ties pull, steps towards the physics make no progress.
    """
    problem = found.problem
    lighter = with_ties(problem.physics, problem.objectives, problem.ties, LIGHTER)
    with suppress(SingularSystemError, ResidualError):
        values = LayeredSystem(problem.physics, lighter, problem.objectives, found.ordering).solve()
        less = checked_residual(found, values, tolerance)
        if less < found.residual:
            return found._replace(values=values, residual=less)
    return found


def closed_responses(
    state: State, graph: LinearGraph, ordering: Ordering, columns: Sequence[Floats]
) -> dict[Variable, Floats]:
    """All variables for many right-hand sides of a solved graph, by one elimination, shape (entries, m) each.

    Args:
        state: The mechanism at (q, v).
        graph: The physics.
        ordering: Of its variables.
        columns: Right-hand sides of every factor, shape (rows, m).
    """
    mechanism = state.mechanism
    units, sizes = graph_units(mechanism), variable_units(graph, graph_units(mechanism))
    pairs = zip(graph.factors, columns, strict=True)
    pushed = tuple(Factor(f.kind, f.owner, f.blocks, rows) for f, rows in pairs)
    wide = LinearGraph(graph.variables, pushed, graph.known)
    wide = without_faint_closure(state, wide) or wide

    def with_column(k: int) -> LinearGraph:
        factors = tuple(Factor(f.kind, f.owner, f.blocks, f.rhs[:, k]) for f in wide.factors)
        return scale_graph(LinearGraph(graph.variables, factors, graph.known), units)

    physics = with_column(0)
    system = LayeredSystem(physics, with_ties(physics, (), ties_of(mechanism, graph, sizes)), (), ordering)
    found = [system.solve_shifted(with_column(k)) for k in range(columns[0].shape[1])]
    return {v: np.column_stack([sizes[v] * values[v] for values in found]) for v in graph.variables}


def eliminated_graph(mechanism: Mechanism, graph: LinearGraph) -> LinearGraph:
    """The graph that is eliminated for a dynamics graph: itself for a tree, in other units and with ties for loops."""
    if not mechanism.is_closed_kind:
        return graph
    units = graph_units(mechanism)
    return with_ties(scale_graph(graph, units), (), ties_of(mechanism, graph, variable_units(graph, units)))


def _check_planar(error: ResidualError) -> None:
    """Tell a planar constraint that the loads contradict from physics that contradict themselves."""
    worst = error.details.get("factor")
    if worst is not None and worst.kind == "planar":
        raise ResidualError(
            f"The planar constraint of loop {worst.owner!r} contradicts the equations. Use "
            "internal_wrenches='least_norm'."
        ) from error


def gathered(values: Mapping[Variable, Floats], variables: Sequence[Variable]) -> Floats:
    """The values of some variables, one after the other."""
    return stacked(values[variable] for variable in variables)
