"""What elimination does to the structure of a graph, without looking at a single number.

Eliminating x gathers the equations that hold x; size(x) rows of them become the conditional
p(x | parents), and the rows that are left, if any, become one new equation over the parents.
Rows are counted, so a square block that is used up leaves nothing behind: that is why the rnea
ordering makes no fill. Once a mechanism and problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

import networkx as nx

from factorgraph_dyn.checks import check_parts
from factorgraph_dyn.equations import LinearGraph, Variable, check_graph


@dataclass(frozen=True)
class StructuralFactor:
    """The variables of an equation and its number of rows."""

    variables: frozenset[Variable]
    rows: int


class Elimination:
    """A graph's structure while variables are eliminated one by one."""

    def __init__(self, graph: LinearGraph) -> None:
        self.factors: dict[int, StructuralFactor] = {}
        self.holding: dict[Variable, set[int]] = {variable: set() for variable in graph.variables}
        self.sizes = {variable: variable.size for variable in graph.variables}
        self._next = 0
        for factor in graph.factors:
            self._add(StructuralFactor(frozenset(variable for variable, _ in factor.blocks), factor.rows))

    def neighbours(self, variable: Variable) -> frozenset[Variable]:
        """The variables that share an equation with this one."""
        sets = [self.factors[index].variables for index in self.holding[variable]]
        return frozenset().union(*sets) - {variable}

    def rows_left(self, variable: Variable) -> int:
        """How many rows would be left over if this variable were eliminated now."""
        return sum(self.factors[i].rows for i in self.holding[variable]) - self.sizes[variable]

    def eliminate(self, variable: Variable) -> frozenset[Variable]:
        """Eliminate a variable; returns its parents."""
        parents = self.neighbours(variable)
        rows = self.rows_left(variable)
        for index in list(self.holding[variable]):
            self._remove(index)
        del self.holding[variable]
        if parents and rows > 0:
            # An orthogonal elimination never keeps more rows than there are columns.
            columns = sum(self.sizes[parent] for parent in parents) + 1
            self._add(StructuralFactor(parents, min(rows, columns)))
        return parents

    def _add(self, factor: StructuralFactor) -> None:
        self.factors[self._next] = factor
        for variable in factor.variables:
            self.holding[variable].add(self._next)
        self._next += 1

    def _remove(self, index: int) -> None:
        for variable in self.factors.pop(index).variables:
            self.holding[variable].discard(index)


@dataclass(frozen=True)
class Structure:
    """The Bayes net an ordering gives: each variable with its parents, in order of elimination."""

    variables: tuple[Variable, ...]
    parents: tuple[frozenset[Variable], ...]
    graph: LinearGraph

    @cached_property
    def nonzeros(self) -> int:
        """Scalar entries of the triangular factor R."""
        return sum(
            x.size * (x.size + 1) // 2 + x.size * sum(p.size for p in parents)
            for x, parents in zip(self.variables, self.parents, strict=True)
        )

    @cached_property
    def fill(self) -> int:
        """Scalar entries of R between variables that share no equation of the graph."""
        together: dict[Variable, set[Variable]] = {x: set() for x in self.variables}
        for factor in self.graph.factors:
            held = [variable for variable, _ in factor.blocks]
            for variable in held:
                if variable in together:
                    together[variable].update(held)
        return sum(
            x.size * sum(p.size for p in parents - together[x])
            for x, parents in zip(self.variables, self.parents, strict=True)
        )

    @cached_property
    def largest_clique(self) -> int:
        """Scalar width of the widest clique: a variable with its parents."""
        widths = (
            x.size + sum(p.size for p in parents) for x, parents in zip(self.variables, self.parents, strict=True)
        )
        return max(widths, default=0)

    @cached_property
    def cliques(self) -> tuple[tuple[frozenset[Variable], frozenset[Variable], int | None], ...]:
        """The clique tree: (frontal variables, separator, index of the parent clique) of each clique.

        A variable joins its parent's clique when it adds nothing but itself to it.
        """
        return _clique_tree(self.variables, self.parents)

    @cached_property
    def clique_tree(self) -> nx.DiGraph:
        """The clique tree for graph algorithms: an edge from every clique to its parent, the root's side.

        Nodes are indices into ``cliques``, with the attributes ``frontals`` and ``separator``.
        """
        tree = nx.DiGraph()
        for index, (frontals, separator, parent) in enumerate(self.cliques):
            tree.add_node(index, frontals=frontals, separator=separator)
            if parent is not None:
                tree.add_edge(index, parent)
        return tree

    @cached_property
    def depth(self) -> int:
        """Number of cliques on the longest way to a root: the steps that no parallelism saves."""
        return len(nx.dag_longest_path(self.clique_tree))

    def bayes_net(self) -> nx.DiGraph:
        """The Bayes net for graph algorithms: an edge from every variable to each of its parents."""
        net = nx.DiGraph()
        net.add_nodes_from(self.variables)
        net.add_edges_from(
            (x, parent) for x, parents in zip(self.variables, self.parents, strict=True) for parent in parents
        )
        return net


def eliminate_structure(graph: LinearGraph, order: Iterable[Variable]) -> Structure:
    """The Bayes net that eliminating variables in this order gives."""
    elimination = Elimination(check_graph(graph))
    variables = check_parts(order, Variable, "The order", "variables of the graph, such as graph.variables")
    parents = tuple(elimination.eliminate(variable) for variable in variables)
    return Structure(variables, parents, graph)


def _clique_tree(
    variables: Sequence[Variable], parents: Sequence[frozenset[Variable]]
) -> tuple[tuple[frozenset[Variable], frozenset[Variable], int | None], ...]:
    position = {variable: index for index, variable in enumerate(variables)}
    clique_of: dict[Variable, int] = {}
    frontals: list[set[Variable]] = []
    separators: list[frozenset[Variable]] = []
    above: list[int | None] = []
    for variable, separator in zip(reversed(variables), reversed(parents), strict=True):
        eliminated_later = [parent for parent in separator if parent in position]
        first = min(eliminated_later, key=position.__getitem__, default=None)
        if first is not None:
            host = clique_of[first]
            if frontals[host] | separators[host] == separator:
                frontals[host].add(variable)
                clique_of[variable] = host
                continue
        clique_of[variable] = len(frontals)
        frontals.append({variable})
        separators.append(separator)
        above.append(None if first is None else clique_of[first])
    last = len(frontals) - 1
    return tuple(
        (frozenset(frontals[i]), separators[i], None if above[i] is None else last - above[i])  # type: ignore[operator]
        for i in reversed(range(len(frontals)))
    )
