"""The block cost model: what an ordering costs, from the structure of its graph alone.

Takes a graph and an ordering; gives operations, clique sizes, levels and work per level. A front is a dense
matrix of the m rows that hold a variable x of size s, n columns wide with its parents and the right-hand
side. Eliminating x from it costs

    s divisions,   s (n - s) multiplications to scale the pivot rows,
    (m - s) (sum over k < s of n - 1 - k) multiplications and as many additions for the other rows

and s p more of each, p the parents' width, when x is solved for. An estimate for every machine and for GTSAM;
kernels skip zeros and ones, which only the tape sees (`tape_cost`).

What is left of the equations after a set of variables is eliminated does not depend on their order: it is
the space of those combinations of equations that the set has vanished from. Rows that are used up to the
last one leave nothing; where the orders of one set seem to leave different things, the finest is true, and
a step along a coarser way is an estimate from above. `lab.exact` takes the finest.

The work runs once an ordering, some microseconds a variable.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.ordering import eliminate_structure

Front = tuple[int, int]
"""Variables of an equation as a bit set, and its number of rows."""

Fronts = tuple[Front, ...]


@dataclass(frozen=True)
class BlockCost:
    """What an ordering costs under the block model.

    Attributes:
        operations: Multiplications, additions and divisions of dense fronts.
        nonzeros, fill: Entries of the triangular factor, and those that elimination added.
        largest_clique: Width of the widest clique, in scalars.
        depth: Cliques on the longest way to a root: parallel steps.
        level_work: Operations of each level of the clique tree, leaves' first.
    """

    operations: int
    nonzeros: int
    fill: int
    largest_clique: int
    depth: int
    level_work: tuple[int, ...]


class BlockModel:
    """A graph as bit sets: variables are bits, equations are fronts."""

    def __init__(self, graph: LinearGraph) -> None:
        self.names = tuple(str(variable) for variable in graph.variables)
        self.sizes = tuple(variable.size for variable in graph.variables)
        bit = {variable: 1 << k for k, variable in enumerate(graph.variables)}
        held = [(sum(bit[v] for v, _ in f.blocks if v in bit), f.rows) for f in graph.factors]
        self.start: Fronts = tuple(sorted((mask, rows) for mask, rows in held if mask))
        self._widths: dict[int, int] = {}

    def width(self, mask: int) -> int:
        """Scalars of a set of variables."""
        found = self._widths.get(mask)
        if found is None:
            found = sum(size for k, size in enumerate(self.sizes) if mask >> k & 1)
            self._widths[mask] = found
        return found

    def eliminate(self, fronts: Fronts, variable: int) -> tuple[Fronts, int] | None:
        """What is left when a variable is eliminated, and the operations it costs.

        None where too few rows hold it.
        """
        bit, size = 1 << variable, self.sizes[variable]
        mask = rows = 0
        left = []
        for front in fronts:
            if front[0] & bit:
                mask |= front[0]
                rows += front[1]
            else:
                left.append(front)
        if rows < size:
            return None
        parents = mask & ~bit
        width = self.width(parents)
        if rows > size and parents:
            left.append((parents, rows - size))
            left.sort()
        return tuple(left), front_operations(size, rows, width)

    def cost(self, ordering: Sequence[str]) -> int | None:
        """Operations of an ordering, or None where a variable comes before its rows."""
        index = {name: k for k, name in enumerate(self.names)}
        fronts, total = self.start, 0
        for name in ordering:
            step = self.eliminate(fronts, index[name])
            if step is None:
                return None
            fronts, total = step[0], total + step[1]
        return total


def front_operations(size: int, rows: int, parents: int) -> int:
    """Operations of eliminating ``size`` columns of a dense front and solving for them later."""
    width = size + parents + 1  # with the right-hand side
    scaling = size + sum(width - 1 - k for k in range(size))
    # Below its pivot row, a pivot updates every row that is left, those of the same variable included.
    updates = sum((rows - 1 - k) * (width - 1 - k) for k in range(size))
    solving = size * parents + size * (size - 1) // 2
    return scaling + 2 * updates + 2 * solving


def block_cost(graph: LinearGraph, ordering: Sequence[str]) -> BlockCost:
    """What an ordering costs under the block model."""
    structure = eliminate_structure(graph, [graph.by_name[name] for name in ordering])
    model = BlockModel(graph)
    index = {name: k for k, name in enumerate(model.names)}
    fronts, work = model.start, {}
    for name in ordering:
        step = model.eliminate(fronts, index[name])
        # A variable with too few rows is for the compiler or GTSAM to refuse; here it costs nothing.
        fronts, work[name] = step if step is not None else (fronts, 0)
    levels: dict[int, int] = {}
    above: dict[int, int] = {}
    cliques = structure.cliques
    for index_of_clique in range(len(cliques)):  # children come before their parents
        frontals, _, parent = cliques[index_of_clique]
        level = above.get(index_of_clique, 0)
        levels[level] = levels.get(level, 0) + sum(work[str(x)] for x in frontals)
        if parent is not None:
            above[parent] = max(above.get(parent, 0), level + 1)
    return BlockCost(
        operations=sum(work.values()),
        nonzeros=structure.nonzeros,
        fill=structure.fill,
        largest_clique=structure.largest_clique,
        depth=structure.depth,
        level_work=tuple(levels[level] for level in sorted(levels)),
    )
