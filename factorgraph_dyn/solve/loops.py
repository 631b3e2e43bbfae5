"""Dynamics with loops and couplings, redundant constraints and redundant motors, hard and exact.

The physics is eliminated together with soft objectives and ties in any ordering (``layers.py``), so
that redundant loops need no rank decision. A probe of the null space then tells what is not unique:

    wrenches       internal forces, which the answer names and takes of least norm
    a, tau         the problem itself has several answers: an error naming joints

Once a state; linear in the number of links and loops for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable
from factorgraph_dyn.errors import ResidualError, SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import OrderingLike, choose_ordering
from factorgraph_dyn.solve import limits, loop_singularity
from factorgraph_dyn.solve.layers import FORCES, LayeredSystem, Values, with_ties
from factorgraph_dyn.solve.objectives import MinimumTorque, Objective
from factorgraph_dyn.solve.planar import planar_factors
from factorgraph_dyn.solve.solution import (
    RESIDUAL_TOLERANCE,
    Solution,
    check_residual,
    given_or_nan,
    joint_vector,
)
from factorgraph_dyn.spatial import Floats

InternalWrenches = Literal["least_norm", "error", "planar"]
INTERNAL_WRENCHES: tuple[str, ...] = get_args(InternalWrenches)
MOVED = 1e-6  # a probe of unit forces moves an entry by more than this where it is not unique
SUSPICIOUS_GROWTH = 2e4  # answers that grow misfits by more than this are looked into
DENSE_LIMIT = 200  # freedoms and constraints above which conditioning is not looked into
SEED = 0  # of the probes: the same question gets the same answer


@dataclass(frozen=True)
class LoopOptions:
    """How to choose where the physics does not.

    Attributes:
        objectives: Soft rows over the graph's variables.
        internal_wrenches: "least_norm", "error" or "planar".
        residual_tolerance: Largest misfit of an equation, relative to the terms of its kind.
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
    physics, objectives = _layers(state, graph, options)
    scale = inertia_scale(mechanism)
    stacked = with_ties(physics, objectives, _tied(mechanism, physics), scale)
    chosen = choose_ordering(mechanism, stacked, ordering)
    try:
        system = LayeredSystem(physics, stacked, objectives, chosen, scale)
        values = system.solve()
    except SingularSystemError:
        loop_singularity.check(state, known, external)
        raise
    try:
        residual = check_residual(physics, values, chosen, options.residual_tolerance)
    except ResidualError as error:
        if options.internal_wrenches == "planar":
            _check_planar(error)
        raise loop_singularity.contradiction(state, known, external, error) from error
    not_unique: dict[str, tuple[int, ...]] = {}
    if options.check_unique:
        not_unique = _not_unique(state, known, system, external, bool(objectives))
    if not_unique and options.internal_wrenches == "error":
        raise SingularSystemError(
            f"Internal wrenches of mechanism {mechanism.name!r} are not unique: {', '.join(not_unique)}; its "
            "loops are constrained more than once. Use internal_wrenches='least_norm' (or 'planar'), or "
            "loop joints with more freedom.",
            not_unique=not_unique,
        )
    bounded = [o for o in options.objectives if isinstance(o, MinimumTorque) and o.limits is not None]
    if bounded:
        values = _within_limits(mechanism, physics, objectives, values, ordering, bounded[0], scale)
        residual = check_residual(physics, values, chosen, options.residual_tolerance)
    a, tau = given_or_nan(known)
    return Solution(
        joint_vector(state, "a", a, values),
        joint_vector(state, "tau", tau, values),
        residual,
        chosen,
        graph,
        state,
        values,
        system.net,
        not_unique,
    )


def eliminated_graph(mechanism: Mechanism, graph: LinearGraph) -> LinearGraph:
    """The graph that is eliminated for a dynamics graph: itself for a tree, with ties for loops."""
    if not mechanism.is_closed_kind:
        return graph
    return with_ties(graph, (), _tied(mechanism, graph), inertia_scale(mechanism))


def inertia_scale(mechanism: Mechanism) -> float:
    """The largest entry of any link's inertia or joint's armature, kg or kg m^2; 1 where there is none."""
    sizes = [float(np.abs(link.spatial_inertia).max()) for link in mechanism.links]
    sizes += [float(np.max(joint.armature, initial=0.0)) for joint in mechanism.joints]
    return max(sizes, default=0.0) or 1.0


def _layers(state: State, graph: LinearGraph, options: LoopOptions) -> tuple[LinearGraph, list[Factor]]:
    """The physics with what counts as physics, and the objectives scaled to order one."""
    physics = graph
    if options.internal_wrenches == "planar":
        physics = LinearGraph(graph.variables, (*graph.factors, *planar_factors(state)), graph.known)
    rows = [row for o in options.objectives for row in o.factors(state.mechanism, graph)]
    largest = max((float(np.abs(b).max(initial=0.0)) for row in rows for _, b in row.blocks), default=1.0)
    return physics, [_scaled(row, largest or 1.0) for row in rows]


def _scaled(row: Factor, largest: float) -> Factor:
    blocks = tuple((variable, block / largest) for variable, block in row.blocks)
    return Factor(row.kind, row.owner, blocks, row.rhs / largest)


def _tied(mechanism: Mechanism, graph: LinearGraph) -> list[Variable]:
    """Forces, which loops may leave free, and the two turns of universal loops, which may align."""
    universal = {loop.name for loop in mechanism.loops if loop.kind == "universal"}
    return [v for v in graph.variables if v.kind in FORCES or (v.kind == "a" and v.owner in universal)]


def _not_unique(
    state: State,
    known: Known,
    system: LayeredSystem,
    external: Mapping[str, Floats],
    has_objectives: bool,
) -> dict[str, tuple[int, ...]]:
    """Entries of wrenches that the physics leaves free, by variable name.

    Raises:
        SingularSystemError: An acceleration or torque is free.
    """
    rng = np.random.default_rng(SEED)
    free: dict[str, tuple[int, ...]] = {}
    size = state.mechanism.nv + sum(6 - loop.nv for loop in state.mechanism.loops)
    probe, growth = system.probe(rng)
    suspicious = size <= DENSE_LIMIT and not growth < SUSPICIOUS_GROWTH
    for variable, value in probe.items():
        unit = system.scale if variable.kind in (*FORCES, "tau") else 1.0
        moved = np.flatnonzero(~(np.abs(value) <= MOVED * unit))
        if not len(moved):
            continue
        if variable.kind in FORCES:
            free[str(variable)] = tuple(int(i) for i in moved)
        elif variable.kind == "tau" and has_objectives:
            raise SingularSystemError(
                f"The objective leaves torques free, {variable} among them. Give every motor a positive "
                "weight, for instance with MinimumTorque(), and keep weights within three powers of ten of each other."
            )
        elif variable.owner in state.mechanism.joint_by_name:
            suspicious = True
    if suspicious:
        loop_singularity.check(state, known, external, torques_chosen=has_objectives)
    return free


def _check_planar(error: ResidualError) -> None:
    """Tell a planar constraint that the loads contradict from physics that contradict themselves."""
    worst = error.details.get("factor")
    if worst is not None and worst.kind == "planar":
        raise ResidualError(
            f"The planar constraint of loop {worst.owner!r} contradicts the equations. Use "
            "internal_wrenches='least_norm'."
        ) from error


def _within_limits(
    mechanism: Mechanism,
    physics: LinearGraph,
    objectives: Sequence[Factor],
    values: Values,
    ordering: OrderingLike,
    bounded: MinimumTorque,
    scale: float,
) -> Values:
    """The values with torques moved into their limits, at the least cost."""
    sought = [v for v in physics.variables if v.kind == "tau" and v.owner in mechanism.joint_by_name]
    lower, upper = bounded.bounds(mechanism, sought)
    tau = _stacked(values, sought)
    if not limits.violated(tau, lower, upper):
        return values
    N = _torques_without_motion(mechanism, physics, sought, ordering, scale)
    responses = _responses(mechanism, physics, objectives, sought, N, ordering, scale)
    e = _misfits(objectives, values)
    E = np.zeros((len(e), len(responses)))
    for i, response in enumerate(responses):
        E[:, i] = _misfits(objectives, response, homogeneous=True)
    names = [variable.owner for variable in sought for _ in range(variable.size)]
    z = limits.choose_within(tau, N, e, E, lower, upper, names)
    return {
        variable: value + sum(z[i] * response[variable] for i, response in enumerate(responses))
        for variable, value in values.items()
    }


def _torques_without_motion(
    mechanism: Mechanism,
    physics: LinearGraph,
    sought: Sequence[Variable],
    ordering: OrderingLike,
    scale: float,
) -> Floats:
    """An orthonormal basis of the torques that cause no motion, shape (m, k)."""
    stacked = with_ties(physics, (), _tied(mechanism, physics), scale)
    system = LayeredSystem(physics, stacked, (), choose_ordering(mechanism, stacked, ordering), scale)
    rng = np.random.default_rng(SEED)
    m = sum(variable.size for variable in sought)
    probes = np.column_stack([_stacked(system.probe(rng)[0], sought) for _ in range(m + 1)]) / scale
    left, sizes, _ = np.linalg.svd(probes)
    return np.asarray(left[:, : int((sizes > MOVED).sum())])


def _responses(
    mechanism: Mechanism,
    physics: LinearGraph,
    objectives: Sequence[Factor],
    sought: Sequence[Variable],
    N: Floats,
    ordering: OrderingLike,
    scale: float,
) -> list[Values]:
    """How all variables follow when torques move along each column of N and nothing else is given."""
    homogeneous = [Factor(f.kind, f.owner, f.blocks, np.zeros(f.rows)) for f in physics.factors]

    def fixing(column: Floats) -> LinearGraph:
        rows, start = [], 0
        for variable in sought:
            target = column[start : start + variable.size]
            rows.append(Factor("torque", variable.owner, ((variable, np.eye(variable.size)),), target))
            start += variable.size
        return LinearGraph(physics.variables, (*homogeneous, *rows), physics.known)

    graph = fixing(np.zeros(len(N)))
    silent = [Factor(f.kind, f.owner, f.blocks, np.zeros(f.rows)) for f in objectives]
    stacked = with_ties(graph, silent, _tied(mechanism, graph), scale)
    system = LayeredSystem(graph, stacked, silent, choose_ordering(mechanism, stacked, ordering), scale)
    return [system.solve_shifted(fixing(column)) for column in N.T]


def _misfits(objectives: Sequence[Factor], values: Values, *, homogeneous: bool = False) -> Floats:
    parts = [np.zeros(0)]
    for factor in objectives:
        misfit = 0.0 * factor.rhs if homogeneous else factor.rhs.copy()
        for variable, block in factor.blocks:
            misfit = misfit - block @ values[variable]
        parts.append(misfit)
    return np.concatenate(parts)


def _stacked(values: Values, variables: Sequence[Variable]) -> Floats:
    return np.concatenate([np.zeros(0), *(values[variable] for variable in variables)])
