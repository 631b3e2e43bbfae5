"""The order in which a program's operations run.

Takes the nodes of a program and its targets; gives an order in which every operation comes after its operands.
Registers are few, so the order is depth first, and of two operands the one whose own evaluation needs more
registers comes first (Sethi & Ullman 1970, exact for trees and a good rule for shared values).

The work runs once a kernel, in time linear in its operations.
"""

from collections.abc import Mapping, Sequence

Reads = Mapping[int, tuple[int, ...]]
"""The nodes that every node reads."""


def depth_first_orders(reads: Reads, wishes: Sequence[Sequence[int]], done: set[int]) -> list[list[int]]:
    """For each wish, the nodes that its targets need and that are not done, operands first.

    Args:
        reads: Operands of every node.
        wishes: The nodes sought, in the orders wished for.
        done: Nodes that are available already.
    """
    needs: dict[int, int] = {}
    for targets in wishes:
        _add_register_needs(reads, _operands_first(reads, targets, done | needs.keys()), needs)
    greedy = {index: _needy_last(reads[index], needs) for index in needs}
    return [_operands_first(greedy, targets, done) for targets in wishes]


def waiting_time(reads: Reads, order: Sequence[int]) -> int:
    """How long values wait for their last use, summed: the room they need, times the time they need it."""
    position = {index: place for place, index in enumerate(order)}
    last = {read: place for place, index in enumerate(order) for read in reads[index]}
    return sum(place - position[index] for index, place in last.items() if index in position)


def _operands_first(reads: Reads, targets: Sequence[int], done: set[int]) -> list[int]:
    """The nodes that the targets need, of the operands of each the last one first."""
    seen = set(done)
    order: list[int] = []
    for target in targets:
        stack = [target]
        while stack:
            index = stack.pop()
            if index < 0:
                order.append(-index)
            elif index not in seen:
                seen.add(index)
                stack.append(-index)
                stack += reads[index]
    return order


def _needy_last(reads: tuple[int, ...], needs: Mapping[int, int]) -> tuple[int, ...]:
    """Two operands, the one that needs more registers last: it is looked at first."""
    if len(reads) == 2 and needs.get(reads[1], 0) <= needs.get(reads[0], 0):
        return reads[1], reads[0]
    return reads


def _add_register_needs(reads: Reads, order: Sequence[int], needs: dict[int, int]) -> None:
    """Find how many registers each node would need if it were the root of a tree."""
    for index in order:
        operands = reads[index]
        most = needs.get(operands[0], 0)
        if len(operands) == 2:
            other = needs.get(operands[1], 0)
            most = most + 1 if most == other else max(most, other)
        needs[index] = most or 1
