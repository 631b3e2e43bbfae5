"""The best ordering under the block cost model, found by dynamic programming over sets of variables.

Takes a graph; gives an ordering that no other one beats, with the proof that the search was complete.
The cost of eliminating x depends only on the set S eliminated before, so

    best(S + x) = min over x in S + x of  best(S) + cost(x | S)

over 2^n sets, visited by their size so that two layers are kept at a time. What is left after S is taken
from the way that leaves least, which is the true one (see `block_cost`).

The work runs once a problem: a millisecond for three joints, seconds for the 2^18 sets of six.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import monotonic

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.ordering.block_cost import BlockModel, Fronts

LARGEST = 20  # variables: 2^20 sets of some hundred bytes


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
