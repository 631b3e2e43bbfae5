"""What elimination does to the structure of a graph, without looking at a single number.

Eliminating x gathers the equations that hold x; size(x) rows of them become the conditional
p(x | parents), and the rows that are left, if any, become one new equation over the parents.
Rows are counted, so a square block that is used up leaves nothing behind: that is why the rnea
ordering makes no fill.

What it costs is estimated for dense fronts: the m rows that hold x, of size s, are n columns wide with the parents
and the right-hand side. Eliminating x takes

    s divisions,   s (n - s) multiplications to scale the pivot rows,
    (m - s) (sum over k < s of n - 1 - k) multiplications and as many additions for the other rows

and s p more of each, p the parents' width, when x is solved for. Kernels skip zeros and ones, which only the
compiler's tape sees. Once a mechanism and problem; some microseconds a variable.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

from factorgraph_dyn.checks import check_parts
from factorgraph_dyn.equations import LinearGraph, Variable, check_graph

if TYPE_CHECKING:
    import networkx as nx  # imported where it is used: it takes a third of a second


def rows_left_over(rows: int, size: int, parents: int) -> int:
    """Rows over the parents that are left when a variable is eliminated, sizes in scalars.

    An orthogonal elimination never keeps more rows than there are columns.
    """
    return max(0, min(rows - size, parents + 1)) if parents else 0


def front_operations(size: int, rows: int, parents: int) -> int:
    """Operations of eliminating ``size`` columns of a dense front and solving for them later."""
    if rows < size:  # what has no row of its own stays beside the parents
        return front_operations(rows, rows, parents + size - rows)
    width = size + parents + 1  # with the right-hand side
    scaling = size + sum(width - 1 - k for k in range(size))
    # Below its pivot row, a pivot updates every row that is left, those of the same variable included.
    updates = sum((rows - 1 - k) * (width - 1 - k) for k in range(size))
    solving = size * parents + size * (size - 1) // 2
    return scaling + 2 * updates + 2 * solving


@dataclass(frozen=True)
class StructuralFactor:
    """The variables of an equation and its number of rows."""

    variables: frozenset[Variable]
    rows: int


class StructuralElimination:
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

    def rows(self, variable: Variable) -> int:
        """How many rows hold a variable."""
        return sum(self.factors[i].rows for i in self.holding[variable])

    def eliminate(self, variable: Variable) -> frozenset[Variable]:
        """Eliminate a variable; returns its parents."""
        parents = self.neighbours(variable)
        rows = rows_left_over(self.rows(variable), self.sizes[variable], sum(self.sizes[x] for x in parents))
        for index in list(self.holding[variable]):
            self._remove(index)
        del self.holding[variable]
        if rows:
            self._add(StructuralFactor(parents, rows))
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
    """The Bayes net an ordering gives: each variable with its parents, in order of elimination.

    Attributes:
        variables: In the order of elimination.
        parents: What each depends on.
        rows: How many rows held each when its turn came.
        graph: What was eliminated.
    """

    variables: tuple[Variable, ...]
    parents: tuple[frozenset[Variable], ...]
    rows: tuple[int, ...]
    graph: LinearGraph

    def __repr__(self) -> str:
        shape = f"{self.nonzeros} nonzeros, fill {self.fill}, depth {self.depth}"
        return f"<Structure of {len(self.variables)} variables: {shape}>"

    @cached_property
    def _work(self) -> Mapping[Variable, int]:
        """Operations of eliminating each variable and solving for it."""
        return {
            x: front_operations(x.size, rows, sum(p.size for p in parents))
            for x, rows, parents in zip(self.variables, self.rows, self.parents, strict=True)
        }

    @property
    def operations(self) -> int:
        """Multiplications, additions and divisions of dense fronts."""
        return sum(self._work.values())

    @cached_property
    def level_work(self) -> tuple[int, ...]:
        """Operations of each level of the clique tree, leaves first; those of one level can be done side by side."""
        work, level_of = [0] * self.depth, [0] * len(self.cliques)
        for index, (frontals, _, parent) in enumerate(self.cliques):  # children come before their parents
            work[level_of[index]] += sum(self._work[x] for x in frontals)
            if parent is not None:
                level_of[parent] = max(level_of[parent], level_of[index] + 1)
        return tuple(work)

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
        import networkx as nx

        tree = nx.DiGraph()
        for index, (frontals, separator, parent) in enumerate(self.cliques):
            tree.add_node(index, frontals=frontals, separator=separator)
            if parent is not None:
                tree.add_edge(index, parent)
        return tree

    @cached_property
    def depth(self) -> int:
        """Number of cliques on the longest way to a root: the steps that no parallelism saves."""
        levels: dict[int | None, int] = {None: 0}
        for index, (*_, parent) in reversed(list(enumerate(self.cliques))):  # a parent comes after its children
            levels[index] = levels[parent] + 1
        return max(levels.values())

    def bayes_net(self) -> nx.DiGraph:
        """The Bayes net for graph algorithms: an edge from every variable to each of its parents."""
        import networkx as nx

        net = nx.DiGraph()
        net.add_nodes_from(self.variables)
        net.add_edges_from(
            (x, parent) for x, parents in zip(self.variables, self.parents, strict=True) for parent in parents
        )
        return net


def eliminate_structure(graph: LinearGraph, order: Iterable[Variable]) -> Structure:
    """The Bayes net that eliminating variables in this order gives.

    Args:
        graph: The equations; only which variables each one holds counts.
        order: Its variables, first eliminated first.

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> graph = fgd.dynamics_graph(fgd.evaluate_state(arm, [0.0], [0.0]), fgd.Known.forward(np.zeros(1)))
        >>> order = [graph.variable(name) for name in ("F[joint1]", "A[link1]", "a[joint1]")]
        >>> fgd.eliminate_structure(graph, order).fill
        0
    """
    elimination = StructuralElimination(check_graph(graph))
    variables = check_parts(order, Variable, "The order", "variables of the graph, such as graph.variables")
    steps = [(elimination.rows(variable), elimination.eliminate(variable)) for variable in variables]
    return Structure(variables, tuple(parents for _, parents in steps), tuple(rows for rows, _ in steps), graph)


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
