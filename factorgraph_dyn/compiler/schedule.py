"""The order in which a program's operations run.

Takes the nodes of a program and its targets; gives an order in which every operation comes after its operands.
Registers are few, so the order is depth first, and of two operands the one whose own evaluation needs more
registers comes first (Sethi & Ullman 1970, exact for trees and a good rule for shared values).

The work runs once a kernel, in time linear in its operations.
"""

from collections.abc import Mapping, Sequence

from factorgraph_dyn.compiler.tape.tape import Node, operands


def depth_first_order(nodes: Mapping[int, Node], targets: Sequence[int], done: set[int]) -> list[int]:
    """Nodes that the targets need and that are not done, operands first.

    Args:
        nodes: Operation and operands of every node.
        targets: The nodes sought, in the order wished for.
        done: Nodes that are available already.
    """
    plain = _operands_first(nodes, targets, done, {})
    return _operands_first(nodes, targets, done, _register_need(nodes, plain))


def waiting_time(nodes: Mapping[int, Node], order: Sequence[int]) -> int:
    """How long values wait for their last use, summed: the room they need, times the time they need it."""
    position = {index: place for place, index in enumerate(order)}
    last = {read: place for place, index in enumerate(order) for read in operands(nodes[index])}
    return sum(place - position[index] for index, place in last.items() if index in position)


def _operands_first(
    nodes: Mapping[int, Node], targets: Sequence[int], done: set[int], need: Mapping[int, int]
) -> list[int]:
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
                reads = operands(nodes[index])
                if len(reads) == 2 and need.get(reads[1], 0) <= need.get(reads[0], 0):
                    reads = reads[::-1]
                stack += (-index, *reads)  # the last one is looked at first
    return order


def _register_need(nodes: Mapping[int, Node], order: Sequence[int]) -> dict[int, int]:
    """Registers that each node would need if it were the root of a tree."""
    need: dict[int, int] = {}
    for index in order:
        needs = sorted(need.get(read, 0) for read in operands(nodes[index]))
        tied = len(needs) == 2 and needs[0] == needs[1]
        need[index] = max(needs[-1] + tied, 1)
    return need
