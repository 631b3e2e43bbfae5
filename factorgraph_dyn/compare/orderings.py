"""Orderings side by side: what each costs, how long it takes and how exact it is.

Every ordering eliminates the same graph at the same random state; the error is measured against a
dense solve of the stacked equations. Kernels run over a batch of states. Times are the best of several
repeats.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import gtsam
import numpy as np

from factorgraph_dyn.checks import check_count, random_generator, shown
from factorgraph_dyn.compare.accuracy import AccuracyCheck
from factorgraph_dyn.compare.cost import smallest_pivot
from factorgraph_dyn.compare.timing import best_of
from factorgraph_dyn.compiler.kernel.cheapest import AUTO, candidates, shipped_orderings
from factorgraph_dyn.compiler.kernel.compile import compile_problem
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations import Known, LinearGraph, State, dynamics_graph
from factorgraph_dyn.equations.problem import Problem, solved_problem
from factorgraph_dyn.errors import FactorGraphDynError, OrderingError
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.notebook import Rows
from factorgraph_dyn.numerics.tolerances import SINGULAR
from factorgraph_dyn.ordering import (
    OFFER,
    ORDERING_NAMES,
    Ordering,
    OrderingLike,
    choose_ordering,
    eliminate_structure,
)
from factorgraph_dyn.ordering.saved import is_saved
from factorgraph_dyn.solve.dynamics import check_state, solve_dynamics
from factorgraph_dyn.solve.gtsam_factors import ordering_of_keys, unit_factors
from factorgraph_dyn.solve.scaling import column_units, force_measures, graph_units, scale_graph
from factorgraph_dyn.spatial import Floats

REPEATS = 20
MEASURING_TIME = 0.2  # s for each ordering, so that large mechanisms stay quick to compare
KERNEL_STATES, KERNEL_TIME, KERNEL_REPEATS = 1024, 0.05, 100_000  # time in s for each kernel


def compare_orderings(
    mechanism: Mechanism,
    problem: str = "forward",
    orderings: Sequence[OrderingLike] | None = None,
    *,
    seed: int = 0,
    repeats: int = REPEATS,
    kernels: bool = True,
    known_accelerations: Iterable[str] | None = None,
) -> list[dict[str, Any]]:
    """One row for each ordering: its structure, operations, times and error.

    Args:
        mechanism: The mechanism.
        problem: "forward", "inverse" or "hybrid".
        orderings: Names or sequences of variable names, "auto" for the one of fewest operations, which kernels have by
            default; by default every named ordering, and the one that the package ships for the mechanism.
        seed: Seed of the random state.
        repeats: Eliminations the best time is taken from.
        kernels: Whether to compile and time the kernel of each ordering, too.
        known_accelerations: Joints whose acceleration a hybrid problem gives; by default every second
            freedom, or every motor's where there are loops.

    Returns:
        Rows with ordering, nonzeros and fill of R, the widest clique, the depth of the clique tree,
        time_us (GTSAM's elimination) and error (relative); with kernels, also the kernel's operations,
        kernel_ns (time of a state in a batch), kernel_error (largest relative error over the batch) and
        pivot (smallest size of a pivot beside its usual one, over random states). An ordering that does not
        apply says why in ``note``.

    Examples:
        >>> rows = fgd.compare_orderings(fgd.robots.pendulum(2), "forward", ["aba", "crba"])
        >>> [(row["ordering"], row["error"] < 1e-12) for row in rows]
        [('aba', True), ('crba', True)]
    """
    check_count(repeats, "repeats")
    check_movable(mechanism, "compare")
    asked = solved_problem(mechanism, problem, known_accelerations)
    state, known = sample_known(mechanism, asked, seed)
    graph = dynamics_graph(state, known)
    exact = _dense_solution(mechanism, graph)
    usual: tuple[OrderingLike, ...] = (*ORDERING_NAMES, *shipped_orderings(mechanism, graph))
    named = usual if orderings is None else _chosen(orderings)
    chosen: list[OrderingLike] = [
        candidates(mechanism, asked)[0].ordering if isinstance(name, str) and name == AUTO else name for name in named
    ]
    rows = Rows(_row(state, known, graph, ordering, exact, repeats) for ordering in chosen)
    if kernels:
        measure = _Kernels(mechanism, asked)
        for row, ordering in zip(rows, chosen, strict=True):
            if "error" in row:
                measure.add_to(row, ordering)
    return rows


def _chosen(orderings: OrderingLike | Sequence[OrderingLike]) -> tuple[OrderingLike, ...]:
    """The orderings to compare; a name that nothing has is refused, not noted."""
    if not isinstance(orderings, Iterable):
        raise OrderingError(f"orderings is {shown(orderings)}; it must be a list.{OFFER}")
    chosen: tuple[OrderingLike, ...] = (orderings,) if isinstance(orderings, str) else tuple(orderings)
    for ordering in chosen:
        if isinstance(ordering, str) and ordering not in (*ORDERING_NAMES, AUTO) and not is_saved(ordering):
            raise OrderingError(f"There is no ordering {ordering!r}.{OFFER}")
    return chosen


def sample_known(mechanism: Mechanism, problem: Problem, seed: int = 0) -> tuple[State, Known]:
    """A random state of the mechanism, and random values for what the problem gives."""
    rng = random_generator(seed, "seed")
    q, v = mechanism.random_state(rng)
    state = check_state(mechanism, q, v)
    tau = rng.normal(size=mechanism.nv)
    if "a" not in problem.arguments:
        return state, problem.known(tau=tau)
    if mechanism.is_closed_kind:  # accelerations must be ones that the closure allows
        a = solve_dynamics(state, Known.forward(tau), ordering="colamd").a
    else:
        a = rng.normal(size=mechanism.nv)
    return state, problem.known(a, tau if "tau" in problem.arguments else None)


def _row(
    state: State, known: Known, graph: LinearGraph, wanted: OrderingLike, exact: Floats, repeats: int
) -> dict[str, Any]:
    name = wanted if isinstance(wanted, str) else getattr(wanted, "name", "custom")
    try:
        ordering = choose_ordering(state.mechanism, graph, wanted)
        solution = solve_dynamics(state, known, ordering=ordering)
    except FactorGraphDynError as error:
        return {"ordering": name, "note": str(error).split(". ")[0] + "."}
    eliminated = graph
    structure = eliminate_structure(eliminated, [graph.by_name[variable] for variable in ordering])
    values = np.concatenate([solution.values[variable] for variable in graph.variables])
    return {
        "ordering": ordering.name,
        "nonzeros": structure.nonzeros,
        "fill": structure.fill,
        "clique": structure.largest_clique,
        "depth": structure.depth,
        "time_us": 1e6 * elimination_time(eliminated, ordering, repeats),
        "error": float(np.abs(values - exact).max() / np.abs(exact).max()),
        "note": "",
    }


class _Kernels:
    """The kernels' side: operations, time, error and smallest pivot of each ordering, at one batch of states."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        self.mechanism, self._problem = mechanism, problem
        self._check: AccuracyCheck | None = None

    def add_to(self, row: dict[str, Any], ordering: OrderingLike) -> None:
        """Add the kernel's columns to a row; one without a kernel says why in its note."""
        try:
            program = trace(self.mechanism, self._problem, ordering).program
            if self._check is None:
                self._check = AccuracyCheck(self.mechanism, self._problem, states=KERNEL_STATES)
        except FactorGraphDynError as error:
            row["note"] = "no kernel: " + str(error).split(". ")[0] + "."
            return
        note = row.pop("note")  # comes last
        row["operations"] = program.operations.total
        row["pivot"] = smallest_pivot(self.mechanism, self._problem, program)
        row["kernel_error"] = self._check.error(program)
        row["kernel_ns"] = 1e9 * self._time(ordering, self._check)
        row["note"] = note

    def _time(self, ordering: OrderingLike, check: AccuracyCheck) -> float:
        """The best time of a state, s."""
        kernel = compile_problem(self.mechanism, self._problem, ordering)
        arguments = [np.ascontiguousarray(argument) for argument in check.arguments]
        return best_of(lambda: kernel(*arguments), KERNEL_REPEATS, KERNEL_TIME) / len(arguments[0])


def elimination_time(graph: LinearGraph, ordering: Ordering, repeats: int) -> float:
    """The best time of GTSAM's sequential QR elimination, s."""
    factors, order = unit_factors(graph), ordering_of_keys(graph.variables, ordering)
    return best_of(lambda: factors.eliminateSequential(order, gtsam.EliminateQR), repeats, MEASURING_TIME)


def _dense_solution(mechanism: Mechanism, graph: LinearGraph) -> Floats:
    units = graph_units(mechanism)
    A, b = scale_graph(graph, units).dense()
    columns = column_units(graph, units)
    if A.shape[0] == A.shape[1] and np.linalg.cond(A) < SINGULAR:
        return np.asarray(columns * np.linalg.solve(A, b), dtype=np.float64)
    x, _, rank, _ = np.linalg.lstsq(A, b, rcond=1.0 / SINGULAR)
    # Loops leave internal forces free; among all answers take the one with the least forces.
    free = np.linalg.svd(A)[2][rank:].T
    forces = np.concatenate([np.full(v.size, v.kind in ("F", "lambda")) for v in graph.variables])
    least = force_measures(mechanism)
    measured = columns[forces] / np.concatenate([least[v[:2]] for v in graph.variables if v.kind in ("F", "lambda")])
    along = np.linalg.lstsq(measured[:, None] * free[forces], measured * x[forces], rcond=None)[0]
    return np.asarray(columns * (x - free @ along))
