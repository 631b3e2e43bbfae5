"""Dynamics with loops and couplings, redundant constraints and redundant motors, hard and exact.

The physics is eliminated together with soft objectives and ties in any ordering (``layers.py``), so
that redundant loops need no rank decision. A probe of the null space then tells what is not unique:

    wrenches       internal forces, which the answer names and takes of least norm (``force_measures``)
    a, tau         the problem itself has several answers: an error naming joints

Once a state; linear in the number of links and loops for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Literal, NamedTuple, get_args

import numpy as np

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable
from factorgraph_dyn.errors import ResidualError, SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering
from factorgraph_dyn.solve.loops import force_limits, singularity
from factorgraph_dyn.solve.loops.layers import FORCES, LayeredSystem, Values, homogeneous, weighted, with_ties
from factorgraph_dyn.solve.loops.planar import planar_factors
from factorgraph_dyn.solve.objectives import Objective, torque_bounds
from factorgraph_dyn.solve.rows import QUIET_LOOPS, Rows
from factorgraph_dyn.solve.scaling import (
    NO_UNITS,
    force_measures,
    graph_units,
    scale_factor,
    scale_graph,
    variable_units,
)
from factorgraph_dyn.solve.solution import RESIDUAL_TOLERANCE, Solution, check_residual, joint_vectors
from factorgraph_dyn.spatial import Floats, stacked

InternalWrenches = Literal["least_norm", "error", "planar"]
INTERNAL_WRENCHES: tuple[str, ...] = get_args(InternalWrenches)
MOVED = 1e-6  # a probe of unit forces moves an entry by more than this where it is not unique
SUSPICIOUS_LOOP_GROWTH = 2e4  # of misfits, below the condition 1e6 that is warned of: an estimate may be low
EXPLAINED = 1e-14  # backward error that rounding explains, a hundred times
LIGHTER = 1e-2  # ties beside which what loops hardly hold is heavy
WIDE_WEIGHTS = 1e2  # objectives further apart than this are minimised one torque after the other
WRENCH = 6
DENSE_LIMIT = 200  # freedoms and constraints above which conditioning is not looked into
SEED = 0  # of the probes: the same question gets the same answer


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


def solve_closed(
    state: State,
    known: Known,
    graph: LinearGraph,
    ordering: OrderingLike,
    external: Mapping[str, Floats],
    options: LoopOptions,
) -> Solution:
    """The answer for a mechanism with loops, couplings or objectives."""
    mechanism = state.mechanism
    problem = _scaled_problem(state, graph, options)
    physics, objectives = problem.physics, problem.objectives
    stacked = with_ties(physics, objectives, problem.ties)
    chosen = choose_ordering(mechanism, stacked, ordering)
    try:
        system = LayeredSystem(physics, stacked, objectives, chosen)
        values = system.solve()
    except SingularSystemError:
        singularity.check(state, known, external)
        raise
    try:
        residual = _check_residual(problem, system.rows, values, chosen, options.residual_tolerance)
    except ResidualError as error:
        if options.internal_wrenches == "planar":
            _check_planar(error)
        raise singularity.contradiction(state, known, external, error) from error
    if residual > EXPLAINED and not singularity.is_faint(state):
        values, residual = _by_lighter_ties(problem, values, residual, chosen, options.residual_tolerance)
    if _is_wide(objectives):
        values = _minimised(mechanism, problem, values, ordering)
        residual = _check_residual(problem, system.rows, values, chosen, options.residual_tolerance)
    not_unique: dict[str, tuple[int, ...]] = {}
    if options.check_unique:
        not_unique = _not_unique(state, known, system, problem, external)
    if not_unique and options.internal_wrenches == "error":
        raise SingularSystemError(
            f"Internal wrenches of mechanism {mechanism.name!r} are not unique: {', '.join(not_unique)}; its "
            "loops are constrained more than once. Use internal_wrenches='least_norm' (or 'planar'), or "
            "loop joints with more freedom.",
            not_unique=not_unique,
        )
    sought = _torques_sought(mechanism, problem)
    bounds = torque_bounds(options.objectives, mechanism, sought)
    if bounds is not None:
        values = _within_limits(mechanism, problem, values, ordering, sought, bounds)
        residual = _check_residual(problem, system.rows, values, chosen, options.residual_tolerance)
    values = {variable: problem.units[variable] * value for variable, value in values.items()}
    return Solution(
        *joint_vectors(state, known, values),
        residual,
        chosen,
        graph,
        state,
        values,
        replace(system.net, units=problem.units),
        not_unique,
    )


def closed_responses(
    mechanism: Mechanism, graph: LinearGraph, ordering: Ordering, columns: Sequence[Floats]
) -> dict[Variable, Floats]:
    """All variables for many right-hand sides of a solved graph, by one elimination, shape (entries, m) each.

    Args:
        mechanism: The mechanism.
        graph: The physics.
        ordering: Of its variables.
        columns: Right-hand sides of every factor, shape (rows, m).
    """
    units = graph_units(mechanism)
    sizes, physics = variable_units(graph, units), scale_graph(graph, units)
    stacked = with_ties(physics, (), _ties(mechanism, graph, sizes))
    system = LayeredSystem(physics, stacked, (), ordering)
    found = []
    for k in range(columns[0].shape[1]):
        pairs = zip(graph.factors, columns, strict=True)
        pushed = tuple(Factor(f.kind, f.owner, f.blocks, rows[:, k]) for f, rows in pairs)
        found.append(system.solve_shifted(scale_graph(LinearGraph(graph.variables, pushed, graph.known), units)))
    return {v: np.column_stack([sizes[v] * values[v] for values in found]) for v in graph.variables}


def eliminated_graph(mechanism: Mechanism, graph: LinearGraph) -> LinearGraph:
    """The graph that is eliminated for a dynamics graph: itself for a tree, in other units and with ties for loops."""
    if not mechanism.is_closed_kind:
        return graph
    units = graph_units(mechanism)
    return with_ties(scale_graph(graph, units), (), _ties(mechanism, graph, variable_units(graph, units)))


class _Problem(NamedTuple):
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


def _scaled_problem(state: State, graph: LinearGraph, options: LoopOptions) -> _Problem:
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
    return _Problem(physics, scale_graph(physics, units), soft, _ties(mechanism, graph, sizes), sizes)


def _ties(mechanism: Mechanism, graph: LinearGraph, units: Mapping[Variable, Floats]) -> dict[Variable, Floats]:
    """Forces, which loops may leave free, and the two turns of universal loops, which may align."""
    measures = force_measures(mechanism)
    turning = {loop.name for loop in mechanism.loops if loop.type.subspace_varies}
    ties = {v: units[v] / measures[v.kind, v.owner] for v in graph.variables if v.kind in FORCES}
    return ties | {v: np.ones(v.size) for v in graph.variables if v.kind == "a" and v.owner in turning}


def _check_residual(problem: _Problem, rows: Rows, values: Values, ordering: Ordering, tolerance: float) -> float:
    """The backward error of an answer, or a ResidualError where it is too large."""
    x = _gathered(values, problem.physics.variables)
    residual, worst = rows.backward_error(rows.missed(x), QUIET_LOOPS)
    check_residual(residual, worst, problem.graph, ordering, tolerance)
    return residual


def _by_lighter_ties(
    problem: _Problem, values: Values, residual: float, ordering: Ordering, tolerance: float
) -> tuple[Values, float]:
    """The answer and its residual or, where that is less, those of lighter ties.

    Next to a motion that loops hold by about as much as ties pull, steps towards the physics make no progress.
    """
    lighter = with_ties(problem.physics, problem.objectives, problem.ties, LIGHTER)
    with suppress(SingularSystemError, ResidualError):
        system = LayeredSystem(problem.physics, lighter, problem.objectives, ordering)
        found = system.solve()
        less = _check_residual(problem, system.rows, found, ordering, tolerance)
        if less < residual:
            return found, less
    return values, residual


def _not_unique(
    state: State, known: Known, system: LayeredSystem, problem: _Problem, external: Mapping[str, Floats]
) -> dict[str, tuple[int, ...]]:
    """Entries of wrenches that the physics leaves free, by variable name.

    Raises:
        SingularSystemError: An acceleration or torque is free.
    """
    rng = np.random.default_rng(SEED)
    free: dict[str, tuple[int, ...]] = {}
    has_objectives = bool(problem.objectives)
    size = state.mechanism.nv + sum(6 - loop.nv for loop in state.mechanism.loops)
    probe, growth = system.probe(rng)
    suspicious = size <= DENSE_LIMIT and not growth < SUSPICIOUS_LOOP_GROWTH
    for variable, value in probe.items():
        moved = np.flatnonzero(~(np.abs(value) * problem.ties.get(variable, 1.0) <= MOVED))
        if not len(moved):
            continue
        if variable.kind in FORCES:
            free[str(variable)] = tuple(int(i) for i in moved)
        elif variable.kind == "tau" and has_objectives:
            if not _is_wide(problem.objectives):
                raise _torques_left_free(str(variable))
        elif variable.owner in state.mechanism.joint_by_name:
            suspicious = True
    if suspicious:
        singularity.check(state, known, external, torques_chosen=has_objectives)
    if free and size <= DENSE_LIMIT:
        _look_at_closure(state, free)
    return free


def _look_at_closure(state: State, free: Mapping[str, tuple[int, ...]]) -> None:
    """Warn of singular and of faint closure; not looked at where as few wrenches are free as at states without."""
    seen, pattern = _regular_patterns(state.mechanism), tuple(free.items())
    if pattern in seen or singularity.warn_of_lost_closure(state) or singularity.warn_of_faint_closure(state):
        return
    if all(len(entries) < WRENCH for entries in free.values()):  # a motion that is lost would free more of them
        seen.add(pattern)


@lru_cache(maxsize=256)
def _regular_patterns(_: Mechanism) -> set[tuple[tuple[str, tuple[int, ...]], ...]]:
    """Which wrenches were free at regular states of a mechanism."""
    return set()


def _torques_left_free(name: str) -> SingularSystemError:
    return SingularSystemError(
        f"The objective leaves torques free, {name} among them. Give every motor a positive "
        "weight, for instance with MinimumTorque()."
    )


def _is_wide(objectives: Sequence[Factor]) -> bool:
    """Whether objectives weigh so differently that one elimination cannot tell the light ones from ties."""
    sizes = [max(np.abs(block).max(initial=0.0) for _, block in row.blocks) for row in objectives if row.blocks]
    lightest = min((size for size in sizes if size > 0), default=1.0)
    return bool(max(sizes, default=1.0) > WIDE_WEIGHTS * lightest)


def _check_planar(error: ResidualError) -> None:
    """Tell a planar constraint that the loads contradict from physics that contradict themselves."""
    worst = error.details.get("factor")
    if worst is not None and worst.kind == "planar":
        raise ResidualError(
            f"The planar constraint of loop {worst.owner!r} contradicts the equations. Use "
            "internal_wrenches='least_norm'."
        ) from error


def _torques_sought(mechanism: Mechanism, problem: _Problem) -> list[Variable]:
    """The torques of motors that are unknown."""
    return [v for v in problem.physics.variables if v.kind == "tau" and v.owner in mechanism.joint_by_name]


def _within_limits(
    mechanism: Mechanism,
    problem: _Problem,
    values: Values,
    ordering: OrderingLike,
    sought: Sequence[Variable],
    bounds: tuple[Floats, Floats],
) -> Values:
    """The values with torques moved into their limits, at the least cost."""
    units = _gathered(problem.units, sought)
    lower, upper = (bound / units for bound in bounds)
    tau = _gathered(values, sought)
    if not force_limits.violated(tau, lower, upper):
        return values
    ways = _ways_to_choose(mechanism, problem, values, sought, ordering)
    names = [variable.owner for variable in sought for _ in range(variable.size)]
    z = force_limits.choose_within(tau, ways.N, ways.e, ways.E, lower, upper, names, units)
    return ways.along(values, z)


def _minimised(mechanism: Mechanism, problem: _Problem, values: Values, ordering: OrderingLike) -> Values:
    """The values with torques moved to where objectives of very different weights are at their least."""
    sought = _torques_sought(mechanism, problem)
    ways = _ways_to_choose(mechanism, problem, values, sought, ordering)
    sizes = np.linalg.norm(ways.E, axis=0)
    if not sizes.all():
        raise _torques_left_free(str(sought[0]))
    z, _, rank, _ = np.linalg.lstsq(ways.E / sizes, -ways.e, rcond=None)
    if rank < len(sizes):
        raise _torques_left_free(str(sought[0]))
    return ways.along(values, z / sizes)


class _Ways(NamedTuple):
    """How torques can be chosen: along the columns of N, to which all variables and objectives respond.

    Attributes:
        N: Torques that cause no motion, shape (m, k).
        responses: How all variables follow each column.
        e: What the objectives miss, shape (r,).
        E: How that changes along each column, shape (r, k).
    """

    N: Floats
    responses: list[Values]
    e: Floats
    E: Floats

    def along(self, values: Values, z: Floats) -> Values:
        """The values moved by z along the columns."""
        return {
            variable: value + sum(z[i] * response[variable] for i, response in enumerate(self.responses))
            for variable, value in values.items()
        }


def _ways_to_choose(
    mechanism: Mechanism, problem: _Problem, values: Values, sought: Sequence[Variable], ordering: OrderingLike
) -> _Ways:
    N = _torques_without_motion(mechanism, problem, sought, ordering)
    responses = _responses(mechanism, problem, sought, N, ordering)
    e = _misfits(problem.objectives, values)
    E = np.zeros((len(e), len(responses)))
    for i, response in enumerate(responses):
        E[:, i] = _misfits(homogeneous(problem.objectives), response)
    return _Ways(N, responses, e, E)


def _torques_without_motion(
    mechanism: Mechanism, problem: _Problem, sought: Sequence[Variable], ordering: OrderingLike
) -> Floats:
    """An orthonormal basis of the torques that cause no motion, shape (m, k)."""
    stacked = with_ties(problem.physics, (), problem.ties)
    system = LayeredSystem(problem.physics, stacked, (), choose_ordering(mechanism, stacked, ordering))
    rng = np.random.default_rng(SEED)
    m = sum(variable.size for variable in sought)
    probes = np.column_stack([_gathered(system.probe(rng)[0], sought) for _ in range(m + 1)])
    left, sizes, _ = np.linalg.svd(probes)
    return np.asarray(left[:, : int((sizes > MOVED).sum())])


def _responses(
    mechanism: Mechanism, problem: _Problem, sought: Sequence[Variable], N: Floats, ordering: OrderingLike
) -> list[Values]:
    """How all variables follow when torques move along each column of N and nothing else is given."""
    physics = problem.physics
    unforced = homogeneous(physics.factors)

    def fixing(column: Floats) -> LinearGraph:
        rows, start = [], 0
        for variable in sought:
            target = column[start : start + variable.size]
            rows.append(Factor("torque", variable.owner, ((variable, np.eye(variable.size)),), target))
            start += variable.size
        return LinearGraph(physics.variables, (*unforced, *rows), physics.known)

    graph = fixing(np.zeros(len(N)))
    silent = homogeneous(problem.objectives)
    stacked = with_ties(graph, silent, problem.ties)
    system = LayeredSystem(graph, stacked, silent, choose_ordering(mechanism, stacked, ordering))
    return [system.solve_shifted(fixing(column)) for column in N.T]


def _misfits(objectives: Sequence[Factor], values: Values) -> Floats:
    parts = [np.zeros(0)]
    for factor in objectives:
        misfit = factor.rhs.copy()
        for variable, block in factor.blocks:
            misfit = misfit - block @ values[variable]
        parts.append(misfit)
    return np.concatenate(parts)


def _gathered(values: Mapping[Variable, Floats], variables: Sequence[Variable]) -> Floats:
    return stacked(values[variable] for variable in variables)
