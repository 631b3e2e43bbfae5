"""Nested dissection of a mechanism: the ordering with the fewest parallel steps.

Takes a mechanism; gives an ordering whose clique tree has about log2(n) levels. The joint that halves what
hangs together is eliminated last, the halves before it in the same way, so that both can be done at once
(Featherstone's divide-and-conquer algorithm, 1999, is such an ordering). A joint stands for the variables
of its child: link acceleration, wrench, joint acceleration, torque. The freedoms of loop joints come first,
their wrenches and the forces of couplings last.

The work runs once a mechanism: n log n.
"""

from __future__ import annotations

from collections import defaultdict

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.ordering.classical import loop_forces, loop_freedoms


def dissection(mechanism: Mechanism, graph: LinearGraph) -> tuple[str, ...]:
    """The ordering by nested dissection; variables the graph does not have are passed over."""
    names = [*loop_freedoms(mechanism)]
    for joint in _halves_first(mechanism):
        names += [f"tau[{joint.name}]", f"A[{joint.child}]", f"F[{joint.name}]", f"a[{joint.name}]"]
    names += loop_forces(mechanism)
    return tuple(name for name in names if name in graph.by_name)


def _halves_first(mechanism: Mechanism) -> list[Joint]:
    """The joints, each after everything it separates."""
    joint_to = {joint.child: joint for joint in mechanism.joints}
    beside: dict[str, set[str]] = defaultdict(set)
    for joint in mechanism.joints:
        if joint.parent in joint_to:
            beside[joint.child].add(joint.parent)
            beside[joint.parent].add(joint.child)
    order: list[Joint] = []
    outward = {joint.child: k for k, joint in enumerate(mechanism.topology.outward)}
    waiting = _parts(set(joint_to), beside)
    while waiting:  # from the last eliminated to the first
        part = waiting.pop()
        middle = _middle(part, beside, outward)
        order.append(joint_to[middle])
        waiting += _parts(part - {middle}, beside)
    order.reverse()
    return order


def _parts(links: set[str], beside: dict[str, set[str]]) -> list[set[str]]:
    """The parts of a set of links that hang together."""
    left, parts = set(links), []
    for link in sorted(links):
        if link not in left:
            continue
        part, stack = {link}, [link]
        while stack:
            for other in beside[stack.pop()] & left - part:
                part.add(other)
                stack.append(other)
        left -= part
        parts.append(part)
    return parts


def _middle(part: set[str], beside: dict[str, set[str]], outward: dict[str, int]) -> str:
    """The link of a tree whose removal leaves the smallest largest part; of two, the outer one."""
    root = min(part, key=outward.__getitem__)
    order, parent = [root], {root: ""}
    for link in order:
        for other in sorted(beside[link] & part, key=outward.__getitem__):
            if other not in parent:
                parent[other] = link
                order.append(other)
    below = dict.fromkeys(order, 1)
    largest = dict.fromkeys(order, 0)
    for link in reversed(order):
        if parent[link]:
            below[parent[link]] += below[link]
            largest[parent[link]] = max(largest[parent[link]], below[link])
    return min(order, key=lambda link: (max(largest[link], len(part) - below[link]), -outward[link]))
