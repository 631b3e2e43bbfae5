"""Dynamics with loops and couplings, redundant constraints and redundant motors, hard and exact.

The physics is eliminated together with soft objectives and ties in any ordering (``layers.py``), so
that redundant loops need no rank decision. A probe of the null space then tells what is not unique:

    wrenches       internal forces, which the answer names and takes of least norm (``force_measures``)
    a, tau         the problem itself has several answers: an error naming joints

Once a state; linear in the number of links and loops for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import OrderingLike, choose_ordering
from factorgraph_dyn.solve.loops import force_limits, singularity
from factorgraph_dyn.solve.loops.layers import FORCES, LayeredSystem, Values, homogeneous, with_ties
from factorgraph_dyn.solve.loops.physics import Found, LoopOptions, Problem, checked_residual, gathered, solve_physics
from factorgraph_dyn.solve.objectives import torque_bounds
from factorgraph_dyn.solve.solution import Solution, joint_vectors
from factorgraph_dyn.spatial import Floats

MOVED = 1e-6  # a probe of unit forces moves an entry by more than this where it is not unique
SUSPICIOUS_LOOP_GROWTH = 2e4  # of misfits, below the condition 1e6 that is warned of: an estimate may be low
WIDE_WEIGHTS = 1e2  # objectives further apart than this are minimised one torque after the other
WRENCH = 6
DENSE_LIMIT = 200  # freedoms and constraints above which conditioning is not looked into
SEED = 0  # of the probes: the same question gets the same answer


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
    found = solve_physics(state, known, graph, ordering, external, options)
    problem, values, residual = found.problem, found.values, found.residual
    if _is_wide(problem.objectives):
        values = _minimised(mechanism, problem, values, ordering)
        residual = checked_residual(found, values, options.residual_tolerance)
    not_unique: dict[str, tuple[int, ...]] = {}
    if options.check_unique:
        not_unique = _not_unique(state, known, found, external)
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
        residual = checked_residual(found, values, options.residual_tolerance)
    values = {variable: problem.units[variable] * value for variable, value in values.items()}
    return Solution(
        *joint_vectors(state, known, values),
        residual,
        found.ordering,
        graph,
        state,
        values,
        replace(found.system.net, units=problem.units),
        not_unique,
    )


def _not_unique(state: State, known: Known, found: Found, external: Mapping[str, Floats]) -> dict[str, tuple[int, ...]]:
    """Entries of wrenches that the physics leaves free, by variable name.

    Raises:
        SingularSystemError: An acceleration or torque is free.
    """
    rng = np.random.default_rng(SEED)
    free: dict[str, tuple[int, ...]] = {}
    problem = found.problem
    has_objectives = bool(problem.objectives)
    size = state.mechanism.nv + sum(6 - loop.nv for loop in state.mechanism.loops)
    probe, growth = found.system.probe(rng)
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
    if found.is_freed or (free and size <= DENSE_LIMIT):
        _look_at_closure(state, free, found.is_freed)
    return free


def _look_at_closure(state: State, free: Mapping[str, tuple[int, ...]], is_faint: bool) -> None:
    """Warn of singular and of faint closure; not looked at where as few wrenches are free as at states without."""
    if is_faint and singularity.warn_of_faint_closure(state):
        return
    seen, pattern = _regular_patterns(state.mechanism), tuple(free.items())
    if pattern in seen or singularity.warn_of_lost_closure(state) or singularity.warn_of_faint_closure(state):
        return
    if singularity.warn_of_bent_closure(state):
        return
    if all(len(entries) < WRENCH for entries in free.values()):  # a motion that is lost would free more of them
        seen.add(pattern)


@kept_with_first
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


def _torques_sought(mechanism: Mechanism, problem: Problem) -> list[Variable]:
    """The torques of motors that are unknown."""
    return [v for v in problem.physics.variables if v.kind == "tau" and v.owner in mechanism.joint_by_name]


def _within_limits(
    mechanism: Mechanism,
    problem: Problem,
    values: Values,
    ordering: OrderingLike,
    sought: Sequence[Variable],
    bounds: tuple[Floats, Floats],
) -> Values:
    """The values with torques moved into their limits, at the least cost."""
    units = gathered(problem.units, sought)
    lower, upper = (bound / units for bound in bounds)
    tau = gathered(values, sought)
    if not force_limits.violated(tau, lower, upper):
        return values
    ways = _ways_to_choose(mechanism, problem, values, sought, ordering)
    names = [variable.owner for variable in sought for _ in range(variable.size)]
    z = force_limits.choose_within(tau, ways.N, ways.e, ways.E, lower, upper, names, units)
    return ways.along(values, z)


def _minimised(mechanism: Mechanism, problem: Problem, values: Values, ordering: OrderingLike) -> Values:
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
    mechanism: Mechanism, problem: Problem, values: Values, sought: Sequence[Variable], ordering: OrderingLike
) -> _Ways:
    N = _torques_without_motion(mechanism, problem, sought, ordering)
    responses = _responses(mechanism, problem, sought, N, ordering)
    e = _misfits(problem.objectives, values)
    E = np.zeros((len(e), len(responses)))
    for i, response in enumerate(responses):
        E[:, i] = _misfits(homogeneous(problem.objectives), response)
    return _Ways(N, responses, e, E)


def _torques_without_motion(
    mechanism: Mechanism, problem: Problem, sought: Sequence[Variable], ordering: OrderingLike
) -> Floats:
    """An orthonormal basis of the torques that cause no motion, shape (m, k)."""
    stacked = with_ties(problem.physics, (), problem.ties)
    system = LayeredSystem(problem.physics, stacked, (), choose_ordering(mechanism, stacked, ordering))
    rng = np.random.default_rng(SEED)
    m = sum(variable.size for variable in sought)
    probes = np.column_stack([gathered(system.probe(rng)[0], sought) for _ in range(m + 1)])
    left, sizes, _ = np.linalg.svd(probes)
    return np.asarray(left[:, : int((sizes > MOVED).sum())])


def _responses(
    mechanism: Mechanism, problem: Problem, sought: Sequence[Variable], N: Floats, ordering: OrderingLike
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
