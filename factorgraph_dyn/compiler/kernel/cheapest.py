"""Which ordering a kernel is eliminated in where none is asked for: the one of fewest operations.

Takes a mechanism and a problem; gives the orderings that may be taken, cheapest first: the one that a search found
beside the classical ones and the package ships, else the classical ones that fit and, for loops, colamd. These are
traced and counted, not compiled: half a tenth of a second each for an arm. What the package ships was found for values
of constant mechanisms, or of mechanisms with free parameters: with these and derivatives both are counted like the
others. Runs once a kernel; the choice is remembered with it.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

from factorgraph_dyn.compiler.trace import Traced, trace
from factorgraph_dyn.equations.linear_graph import LinearGraph
from factorgraph_dyn.equations.problem import Problem, problem_graph
from factorgraph_dyn.errors import FactorGraphDynError, OrderingError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering, choose_ordering, eliminate_structure, saved
from factorgraph_dyn.ordering.halves import joined
from factorgraph_dyn.ordering.ordering import CLASSICAL

AUTO = "auto"
TRIED_FOR_LOOPS = ("colamd",)  # beside the classical ones: it spares a Stewart platform 28 % of forward dynamics
# Operations that an ordering may be expected to have, beyond which it is not traced to count them: tracing takes a
# second for some twenty thousand, and orderings that win are near the classical one. Expected of crba's forward
# dynamics: an arm 2 000, a humanoid 30 000, a chain of 30 hinges 33 000; a random tree of 24 joints, where it has four
# times the operations of aba, 80 000.
AFFORDABLE = 60_000
# And as many times the classical one's operations: those that turned out to have fewer were expected to have up to 1.9
# times as many, crba for a humanoid, which has 1.3 times as many, 6.5 times.
PROMISING = 4.0
USUAL_SHARE = 0.1  # of dense fronts' operations that kernels have, where the classical ordering tells none: much


@dataclass(frozen=True)
class Candidate:
    """An ordering, by name where it has one, and its program where that has been traced."""

    ordering: str | Ordering
    traced: Traced | None = None


def candidates(mechanism: Mechanism, problem: Problem) -> list[Candidate]:
    """The orderings that cost less than the classical one, cheapest first, and that one last."""
    try:
        graph = problem_graph(mechanism, problem)
        shipped = _shipped(mechanism, problem, graph)
        if shipped and not (problem.free.arguments or problem.derivatives):
            return [*shipped, Candidate(problem.classical)]
        others = _others(mechanism, problem, graph)
    except FactorGraphDynError:  # the classical ordering will say why
        shipped, others = [], []
    if not others and not shipped:
        return [Candidate(problem.classical)]
    classical = _traced(mechanism, problem, problem.classical)
    share, most = USUAL_SHARE, float(AFFORDABLE)
    if classical.traced is not None:
        share = _operations(classical) / _dense_operations(graph, classical.traced.ordering)
        most = min(most, PROMISING * _operations(classical))
    tried = (
        _traced(mechanism, problem, ordering)
        for ordering in others
        if share * _dense_operations(graph, choose_ordering(mechanism, graph, ordering)) <= most
    )
    found = [made for made in (*shipped, *tried) if made.traced is not None]
    cheaper = [made for made in found if classical.traced is None or _operations(made) < _operations(classical)]
    return [*sorted(cheaper, key=_operations), classical]


def shipped_orderings(mechanism: Mechanism, graph: LinearGraph, *, free: bool = False) -> list[Ordering]:
    """The orderings that the package ships for a mechanism and a problem's graph; none where it ships none.

    Args:
        mechanism: The mechanism.
        graph: The problem's graph.
        free: Also that which was found for free parameters.
    """
    kinds = (False, True) if free else (False,)
    found = (saved.shipped(mechanism.fingerprint, graph.by_name, free=kind) for kind in kinds)
    return [Ordering(saved.SHIPPED, shipped.variables) for shipped in found if shipped is not None]


def _shipped(mechanism: Mechanism, problem: Problem, graph: LinearGraph) -> list[Candidate]:
    """The orderings that the package ships for this problem, where it has some that can be traced."""
    orderings = shipped_orderings(mechanism, graph, free=bool(problem.free.arguments))
    traced = (_traced(mechanism, problem, ordering) for ordering in orderings)
    return [candidate for candidate in traced if candidate.traced is not None]


def _others(mechanism: Mechanism, problem: Problem, graph: LinearGraph) -> list[str]:
    """The orderings beside the classical one that fit the problem and differ."""
    if not mechanism.is_closed_kind and problem.known_a.all():  # of a tree rnea only substitutes: nothing costs less
        return []
    found: dict[tuple[str, ...], str] = {}
    for ordering in (*CLASSICAL, *(TRIED_FOR_LOOPS if mechanism.loops else ())):
        with suppress(OrderingError):
            found.setdefault(choose_ordering(mechanism, graph, ordering, halves=True).variables, ordering)
    found.pop(choose_ordering(mechanism, graph, problem.classical).variables, None)
    return list(found.values())


def _dense_operations(graph: LinearGraph, ordering: Ordering) -> int:
    """What the ordering would cost if no entry vanished."""
    return eliminate_structure(graph, [graph.by_name[name] for name in joined(ordering.variables)]).operations or 1


def _traced(mechanism: Mechanism, problem: Problem, ordering: str | Ordering) -> Candidate:
    try:
        return Candidate(ordering, trace(mechanism, problem, ordering))
    except FactorGraphDynError:
        return Candidate(ordering)


def _operations(candidate: Candidate) -> float:
    assert candidate.traced is not None
    return candidate.traced.program.cost
