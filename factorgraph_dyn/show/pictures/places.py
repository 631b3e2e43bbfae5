"""Where a mechanism's variables and equations stand on paper, as the papers draw them.

Columns are links, rows are kinds of variable. From top to bottom: joint accelerations a, link
accelerations A, joint wrenches F, joint torques tau. An equation is a dot between its variables.
A chain is one strip of four rows; a branch starts a new strip below, next to its parent's column.
Strips of deeper branches come first, so the way down from a link to its branches stays free.
A long chain without branches turns at the end of its line and runs back, as a plough does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.topology import Topology
from factorgraph_dyn.show.pictures.loop_places import Way, find_ways, place_loops, plan_loops
from factorgraph_dyn.show.plots.curves import Point

# One unit is half a column: joints stand on odd, links on even multiples of it.
RADIUS = 0.34
ROW = {"a": 0.0, "A": -1.15, "F": -2.4, "torque": -3.15, "tau": -3.9, "lambda": -5.0, "coupling": 1.6}
FROM_FORCE = 0.6  # of a force and the equation that it is about alone
STRIP_HEIGHT = 5.7
COUPLED_STRIP_HEIGHT = 7.6  # a coupling's force stands below, its equation above the strip
LONGEST_LINE = 12  # links of a chain that stand in one line


@dataclass(frozen=True)
class Places:
    """The place of every link and joint; y is that of the strip's row of joint accelerations.

    Attributes:
        link: (x, y) by link name.
        joint: (x, y) by the name of a joint or loop.
        coupling: (x, y) by coupling name.
        number: What subscripts show, by (kind of owner, name): kinds are link, joint, coupling.
        turns: Where a long chain turns: +1 at the right, -1 at the left, by joint name.
        ways: Around the margin, from a loop to a link that does not stand next to it.
    """

    link: Mapping[str, Point]
    joint: Mapping[str, Point]
    coupling: Mapping[str, Point]
    number: Mapping[tuple[str, str], int]
    turns: Mapping[str, int]
    ways: Mapping[tuple[str, str], Way]

    def of(self, kind: str, owner: str) -> Point:
        """The place of a variable, by its kind and owner."""
        if kind in ("A", "V"):
            x, y = self.link[owner]
        elif kind == "lambda":
            x, y = self.coupling[owner]
        else:
            x, y = self.joint[owner]
        return x, y + ROW["A" if kind == "V" else kind]

    def number_of(self, kind: str, owner: str) -> int:
        """The subscript of a variable, by its kind and owner."""
        group = {"A": "link", "V": "link", "lambda": "coupling"}.get(kind, "joint")
        return self.number[group, owner]

    def of_factor(self, kind: str, owner: str) -> Point:
        """The place of an equation's dot."""
        if kind == "wrench":
            x, y = self.link[owner]
            return x, y + ROW["F"]
        if kind == "coupling":
            x, y = self.coupling[owner]
            return x, y + ROW["coupling"]
        if kind == "redundant":
            x, y = self.of("lambda" if owner in self.coupling else "F", owner)
            return x + FROM_FORCE, y
        x, y = self.joint[owner]
        return x, y + ROW["torque" if kind == "torque" else "A"]


def find_places(mechanism: Mechanism) -> Places:
    """The place of every link, joint, loop and coupling."""
    height = COUPLED_STRIP_HEIGHT if mechanism.couplings else STRIP_HEIGHT
    strips = _strips(mechanism)
    plan = plan_loops(mechanism, strips)
    tops = plan.tops(height)
    link: dict[str, Point] = {mechanism.base: (0.0, 0.0)}
    joint: dict[str, Point] = {}
    number = {("link", mechanism.base): 0}
    turns: dict[str, int] = {}
    if len(strips) == 1 and len(strips[0]) > LONGEST_LINE and not mechanism.is_closed_kind:
        turns = _plough(strips[0], height, link, joint)
    else:
        for row, strip in enumerate(strips):
            for part in strip:
                x = link[part.parent][0] + 2
                link[part.child] = (x, tops[row])
                joint[part.name] = (x - 1, tops[row])
    for count, part in enumerate((part for strip in strips for part in strip), 1):
        number["link", part.child] = number["joint", part.name] = count
    for name, place in place_loops(mechanism.loops, plan, tops, link).items():
        joint[name] = place
        number["joint", name] = len(joint)
    ways = find_ways(plan, link, joint, ROW)
    coupling: dict[str, Point] = {}
    for count, gear in enumerate(mechanism.couplings):
        (x1, y1), (x2, y2) = joint[gear.joint], joint[gear.source]
        x = 0.5 * (x1 + x2)
        while (x, min(y1, y2)) in coupling.values():
            x += 0.8
        coupling[gear.name] = (x, min(y1, y2))
        number["coupling", gear.name] = count + 1
    return Places(link, joint, coupling, number, turns, ways)


def _plough(chain: list[Joint], height: float, link: dict[str, Point], joint: dict[str, Point]) -> dict[str, int]:
    """Place a long chain in lines that run to and fro; returns the joints at which it turns."""
    lines = -(-len(chain) // LONGEST_LINE)
    length = -(-len(chain) // lines)
    turns = {}
    for index, part in enumerate(chain):
        line, position = divmod(index, length)
        direction = 1 if line % 2 == 0 else -1
        start = 1.0 if direction == 1 else 2.0 * length + 1
        x = start + direction * 2 * position
        joint[part.name] = (x - 2 if line and direction == 1 else x, -height * line)
        link[part.child] = (joint[part.name][0] + direction, -height * line)
        if position == 0 and line:
            turns[part.name] = -direction
    return turns


def _strips(mechanism: Mechanism) -> list[list[Joint]]:
    """The tree as chains: each follows the longest way on; branches come below, deepest first."""
    topology = mechanism.topology
    length: dict[str, int] = {}
    for joint in reversed(topology.outward):
        below = [length[out.child] for out in topology.joints_out[joint.child]]
        length[joint.child] = 1 + max(below, default=0)
    strips: list[list[Joint]] = []
    waiting = _longest_last(mechanism.base, topology, length)
    while waiting:
        chain = [waiting.pop()]
        branches: list[Joint] = []
        while outs := _longest_last(chain[-1].child, topology, length):
            branches += outs[:-1]
            chain.append(outs[-1])
        strips.append(chain)
        waiting += branches  # popped from the end: the deepest branch comes next
    return strips


def _longest_last(link: str, topology: Topology, length: Mapping[str, int]) -> list[Joint]:
    """The joints out of a link, last described first, but the one that leads furthest at the end."""
    outs = list(reversed(topology.joints_out[link]))
    if not outs:
        return []
    furthest = max(reversed(outs), key=lambda joint: length[joint.child])
    return [joint for joint in outs if joint is not furthest] + [furthest]
