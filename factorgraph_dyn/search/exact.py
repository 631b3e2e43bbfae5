"""The best ordering under the block cost model, found by dynamic programming over sets of variables.

Takes a graph; gives an ordering that no other one beats, with the proof that the search was complete.
The cost of eliminating x depends only on the set S eliminated before, so

    best(S + x) = min over x in S + x of  best(S) + cost(x | S)

over 2^n sets, visited by their size so that two layers are kept at a time. What is left of the equations after S
does not depend on the order: it is the space of those combinations of equations that S has vanished from. Where the
ways to S seem to leave different things, the finest is true, and a step along a coarser way an estimate from above.

The work runs once a problem: a millisecond for three joints, seconds for the 2^18 sets of six.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from time import monotonic

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.ordering.structure import front_operations, rows_left_over

LARGEST = 20  # variables: 2^20 sets of some hundred bytes

Front = tuple[int, int]
"""Variables of an equation as a bit set, and its number of rows."""

Fronts = tuple[Front, ...]


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
        if more := rows_left_over(rows, size, width):
            left.append((parents, more))
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


@dataclass(frozen=True)
class ExactResult:
    """An ordering and what is known of it.

    Attributes:
        variables: The ordering.
        operations: Its cost under the block model.
        proved: Whether every set was looked at, so that nothing can be cheaper.
        sets: How many sets were looked at.
    """

    variables: tuple[str, ...]
    operations: int
    proved: bool
    sets: int


def exact_ordering(graph: LinearGraph, budget: float = 60.0) -> ExactResult | None:
    """The ordering of least block cost, or None where the budget (s) ran out first.

    Raises:
        InputError: The graph has more variables than fit in memory.
    """
    model = BlockModel(graph)
    count = len(model.names)
    if count > LARGEST:
        raise InputError(
            f"The graph has {count} variables; sets of at most {LARGEST} can be searched completely. "
            "Use search_orderings, which anneals larger ones."
        )
    deadline = monotonic() + budget
    layer: dict[int, tuple[int, Fronts]] = {0: (0, model.start)}
    last: dict[int, int] = {}  # set -> the variable eliminated last
    looked_at = 1
    for _ in range(count):
        layer = _next_layer(model, layer, last, deadline)
        looked_at += len(layer)
        if monotonic() > deadline:
            return None
    if not layer:
        raise InputError("The graph has variables that its equations do not determine in any order.")
    everything = (1 << count) - 1
    order: list[str] = []
    mask = everything
    while mask:
        variable = last[mask]
        order.append(model.names[variable])
        mask &= ~(1 << variable)
    return ExactResult(tuple(reversed(order)), layer[everything][0], True, looked_at)


def _next_layer(
    model: BlockModel, layer: dict[int, tuple[int, Fronts]], last: dict[int, int], deadline: float
) -> dict[int, tuple[int, Fronts]]:
    """The sets with one more variable: their least cost and what is left after them."""
    following: dict[int, tuple[int, Fronts]] = {}
    variables = range(len(model.sizes))
    for number, (mask, (cost, fronts)) in enumerate(layer.items()):
        if number % 4096 == 0 and monotonic() > deadline:
            break
        for variable in variables:
            if mask >> variable & 1:
                continue
            step = model.eliminate(fronts, variable)
            if step is None:
                continue
            larger, total = mask | 1 << variable, cost + step[1]
            known = following.get(larger)
            if known is None:
                following[larger] = (total, step[0])
                last[larger] = variable
                continue
            if total < known[0]:
                last[larger] = variable
            following[larger] = (min(total, known[0]), _finer(model, step[0], known[1]))
    return following


def _finer(model: BlockModel, first: Fronts, second: Fronts) -> Fronts:
    """Of two descriptions of what is left after a set, the one with less in it."""
    if first == second:
        return second
    return min(first, second, key=lambda fronts: sum(rows * model.width(mask) for mask, rows in fronts))
