"""The order in which a program's operations run.

Takes the nodes of a program and its targets; gives an order in which every operation comes after its operands.
Registers are few, so the order is depth first, and of two operands the one whose own evaluation needs more
registers comes first (Sethi & Ullman 1970, exact for trees and a good rule for shared values).

The work runs once a kernel, in time linear in its operations.
"""

from collections.abc import Sequence

from factorgraph_dyn.compiler.tape import tape as t


def depth_first_order(
    operation: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    targets: Sequence[int],
    done: set[int],
) -> list[int]:
    """Nodes that the targets need and that are not done, operands first.

    Args:
        operation, left, right: Of every node.
        targets: The nodes sought, in the order wished for.
        done: Nodes that are available already.
    """
    plain = _operands_first(operation, left, right, targets, done, {})
    need = _register_need(operation, left, right, plain)
    return _operands_first(operation, left, right, targets, done, need)


def waiting_time(operation: Sequence[int], left: Sequence[int], right: Sequence[int], order: Sequence[int]) -> int:
    """How long values wait for their last use, summed: the room they need, times the time they need it."""
    position = {node: place for place, node in enumerate(order)}
    last: dict[int, int] = {}
    for place, node in enumerate(order):
        last[left[node]] = place
        if operation[node] in (t.ADD, t.SUB, t.MUL):
            last[right[node]] = place
    return sum(place - position[node] for node, place in last.items() if node in position)


def _operands_first(
    operation: Sequence[int],
    left: Sequence[int],
    right: Sequence[int],
    targets: Sequence[int],
    done: set[int],
    need: dict[int, int],
) -> list[int]:
    seen = set(done)
    order: list[int] = []
    for target in targets:
        stack = [target]
        while stack:
            node = stack.pop()
            if node < 0:
                order.append(-node)
            elif node not in seen:
                seen.add(node)
                stack.append(-node)
                first, second = left[node], right[node]
                if operation[node] in (t.ADD, t.SUB, t.MUL):
                    if need.get(second, 0) > need.get(first, 0):
                        first, second = second, first
                    stack.append(second)
                stack.append(first)
    return order


def _register_need(
    operation: Sequence[int], left: Sequence[int], right: Sequence[int], order: Sequence[int]
) -> dict[int, int]:
    """Registers that each node would need if it were the root of a tree."""
    need: dict[int, int] = {}
    for node in order:
        first = need.get(left[node], 0)
        if operation[node] in (t.ADD, t.SUB, t.MUL):
            second = need.get(right[node], 0)
            need[node] = max(first, second, 1) if first != second else first + 1
        else:
            need[node] = max(first, 1)
    return need
