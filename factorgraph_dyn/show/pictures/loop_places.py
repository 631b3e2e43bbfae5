"""Where loops stand on paper, and the ways to what they join.

A loop between the tips of two neighbouring strips stands between them. Any other loop goes on the strip
of one of its ends where that is a tip, as one more joint, or on a strip of its own; what it joins
further away is reached around the right margin: one vertical for accelerations and one for wrenches
for each such link. A link inside its strip is left through the gap below the strip.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.show.plots.curves import Point

GAP_TOP = -4.5  # below a strip's torques
LANE = 0.25  # between parallel ways
MARGIN = 0.75  # from the last column to the first vertical


@dataclass(frozen=True)
class LoopPlan:
    """Who stands where, before any coordinates are known.

    Attributes:
        rows: The strip or strips a loop stands on or between, by loop name.
        far: Links that a loop reaches around the margin, by loop name.
        through_gap: Links among them that are left through the gap below their strip, by strip.
        row_of: The strip of each link.
        strips: Number of strips, those of loops included.
    """

    rows: Mapping[str, tuple[int, ...]]
    far: Mapping[str, tuple[str, ...]]
    through_gap: Mapping[int, tuple[str, ...]]
    row_of: Mapping[str, int]
    strips: int

    def tops(self, height: float) -> list[float]:
        """Where each strip begins, if a strip with nothing in the gap below it has this height."""
        tops = [0.0]
        for row in range(self.strips):
            crowd = len(self.through_gap.get(row, ()))
            tops.append(tops[-1] - height - (2 * LANE * crowd + 0.2 if crowd else 0.0))
        return tops


@dataclass(frozen=True)
class Way:
    """Corners of the lines between a loop and a link far away.

    Attributes:
        acceleration: From the loop's equation to the link's acceleration.
        wrench: From the link's balance to the loop's wrench.
    """

    acceleration: tuple[Point, ...]
    wrench: tuple[Point, ...]


def plan_loops(mechanism: Mechanism, strips: Sequence[Sequence[Joint]]) -> LoopPlan:
    """Choose a strip for every loop."""
    row_of = {mechanism.base: 0, **{joint.child: row for row, strip in enumerate(strips) for joint in strip}}
    free_tips = {strip[-1].child for strip in strips}
    times = Counter(link for loop in mechanism.loops for link in (loop.predecessor, loop.successor))
    rows: dict[str, tuple[int, ...]] = {}
    far: dict[str, tuple[str, ...]] = {}
    count = max(len(strips), 1)
    all_at_tips = set(times) <= free_tips  # then no gap is used, and nothing runs between strips
    for loop in mechanism.loops:
        ends = (loop.predecessor, loop.successor)
        tips = sorted((link for link in set(ends) & free_tips), key=lambda link: (times[link], row_of[link]))
        if all_at_tips and len(tips) == 2 and times[tips[1]] == 1 and abs(row_of[tips[0]] - row_of[tips[1]]) == 1:
            rows[loop.name] = (row_of[tips[0]], row_of[tips[1]])
            far[loop.name] = ()
            free_tips -= set(tips)
        elif tips:
            rows[loop.name] = (row_of[tips[0]],)
            far[loop.name] = tuple(link for link in ends if link != tips[0])
            free_tips.discard(tips[0])
        else:
            rows[loop.name] = (count,)
            far[loop.name] = tuple(dict.fromkeys(ends))
            count += 1
    gaps: dict[int, tuple[str, ...]] = {}
    for link in dict.fromkeys(link for links in far.values() for link in links):
        if link not in free_tips:
            gaps[row_of[link]] = (*gaps.get(row_of[link], ()), link)
    return LoopPlan(rows, far, gaps, row_of, count)


def place_loops(
    loops: Sequence[Loop], plan: LoopPlan, tops: Sequence[float], link: Mapping[str, Point]
) -> dict[str, Point]:
    """The place of every loop, as that of a joint."""
    ends: dict[int, float] = {}
    for name, row in plan.row_of.items():
        ends[row] = max(ends.get(row, 0.0), link[name][0])
    rightmost = max(ends.values())
    places = {}
    for loop in loops:
        rows = plan.rows[loop.name]
        if len(rows) == 2:
            places[loop.name] = (max(ends[row] for row in rows) + 1.5, sum(tops[row] for row in rows) / 2)
        else:
            places[loop.name] = (ends.get(rows[0], rightmost) + 1, tops[rows[0]])
    return places


def find_ways(
    plan: LoopPlan, link: Mapping[str, Point], joint: Mapping[str, Point], row: Mapping[str, float]
) -> dict[tuple[str, str], Way]:
    """The ways from loops to links around the margin, by loop and link.

    Args:
        plan: Who stands where.
        link: Places of links.
        joint: Places of joints and loops.
        row: Heights of the rows of a strip.
    """
    right = max(x for x, _ in (*link.values(), *joint.values())) + MARGIN
    lane = {name: right + 2 * LANE * i for i, name in enumerate(dict.fromkeys(_pairs(plan).values()))}
    gap = {name: i for names in plan.through_gap.values() for i, name in enumerate(names)}
    ways = {}
    for (loop, _), name in _pairs(plan).items():
        x, y = link[name]
        first, second = lane[name], lane[name] + LANE
        to_a, to_f = (first, joint[loop][1] + row["A"]), (second, joint[loop][1] + row["F"])
        if name in gap:
            below = y + GAP_TOP - 2 * LANE * gap[name]
            leave_a = ((first, below), (x + 0.5, below), (x + 0.5, y + row["A"] - 0.45))
            leave_f = ((x, below - LANE), (second, below - LANE))
            ways[loop, name] = Way((to_a, *leave_a), (*leave_f, to_f))
        else:
            ways[loop, name] = Way((to_a, (first, y + row["A"])), ((second, y + row["F"]), to_f))
    return ways


def _pairs(plan: LoopPlan) -> dict[tuple[str, int], str]:
    return {(loop, i): name for loop, names in plan.far.items() for i, name in enumerate(names)}
