"""Orderings for any sparse graph: column approximate minimum degree, nested dissection, greedy ones.

``colamd`` and ``metis`` are GTSAM's; the greedy ones count rows as ``structure.py`` does.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from factorgraph_dyn.equations import LinearGraph, Variable
from factorgraph_dyn.ordering.structure import StructuralElimination


def natural(graph: LinearGraph) -> Sequence[Variable]:
    """The order in which the equations mention the variables."""
    return graph.variables


def colamd(graph: LinearGraph) -> Sequence[Variable]:
    """Column approximate minimum degree (Davis et al., 2004)."""
    import gtsam

    factors = [[variable for variable, _ in factor.blocks] for factor in graph.factors]
    return _from_gtsam(graph.variables, factors, gtsam.Ordering.OrderingType.COLAMD)


def metis(graph: LinearGraph) -> Sequence[Variable]:
    """Nested dissection (Karypis & Kumar, 1998): a divide-and-conquer algorithm.

    Variables that share no factor with another come first: METIS, given one of them, writes beyond its memory.
    """
    import gtsam

    sharing = [[variable for variable, _ in factor.blocks] for factor in graph.factors if len(factor.blocks) > 1]
    joined = {variable for variables in sharing for variable in variables}
    alone = [variable for variable in graph.variables if variable not in joined]
    rest = [variable for variable in graph.variables if variable in joined]
    return [*alone, *_from_gtsam(rest, sharing, gtsam.Ordering.OrderingType.METIS)] if rest else alone


def min_degree(graph: LinearGraph) -> Sequence[Variable]:
    """Always the variable with the narrowest clique next."""

    def width(elimination: StructuralElimination, variable: Variable) -> int:
        return sum(neighbour.size for neighbour in elimination.neighbours(variable))

    return _greedy(graph, width)


def min_fill(graph: LinearGraph) -> Sequence[Variable]:
    """Always the variable next whose elimination connects the fewest pairs."""

    def new_pairs(elimination: StructuralElimination, variable: Variable) -> int:
        if elimination.rows(variable) <= variable.size:
            return 0  # its rows are used up: nothing is left to connect its neighbours
        neighbours = elimination.neighbours(variable)
        return sum(x.size * sum(y.size for y in neighbours - elimination.neighbours(x) - {x}) for x in neighbours)

    return _greedy(graph, new_pairs)


def _greedy(graph: LinearGraph, cost: Callable[[StructuralElimination, Variable], int]) -> Sequence[Variable]:
    """Eliminate the cheapest variable until none is left; ties go to the natural order.

    A variable that too few rows determine yet must wait, whatever its cost.
    """
    elimination = StructuralElimination(graph)
    rank = {variable: index for index, variable in enumerate(graph.variables)}
    current: dict[Variable, tuple[bool, int, int]] = {}
    queue: list[tuple[tuple[bool, int, int], int]] = []

    def push(variable: Variable) -> None:
        too_few = elimination.rows(variable) < variable.size
        current[variable] = (too_few, cost(elimination, variable), rank[variable])
        heapq.heappush(queue, (current[variable], rank[variable]))

    for variable in graph.variables:
        push(variable)
    order: list[Variable] = []
    while queue:
        key, index = heapq.heappop(queue)
        variable = graph.variables[index]
        if current.get(variable) != key:
            continue  # outdated
        del current[variable]
        order.append(variable)
        for touched in elimination.eliminate(variable):
            push(touched)
    return order


def _from_gtsam(
    variables: Sequence[Variable], factors: Iterable[Iterable[Variable]], algorithm: Any
) -> Sequence[Variable]:
    import gtsam

    key = {variable: index for index, variable in enumerate(variables)}
    symbolic = gtsam.SymbolicFactorGraph()
    for factor in factors:
        symbolic.push_back(gtsam.SymbolicFactor.FromKeys(gtsam.KeyVector([key[variable] for variable in factor])))
    ordering = gtsam.Ordering.CreateSymbolicFactorGraph(algorithm, symbolic)
    return [variables[ordering.at(i)] for i in range(ordering.size())]
