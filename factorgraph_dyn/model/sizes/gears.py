"""How far joints of a gear train move beside each other, so that no threshold depends on a ratio.

Takes a mechanism; gives for every joint that couplings tie to others the leader of its train, which is the joint that
carries most, and how far it moves for one unit of its leader:

    q_j = ratio_j q_leader        the product of ratios on the way from the leader, along couplings first found

In units of motion that follow, a coupling a_j = ratio a_k reads x_j = x_k, whatever its ratio, and the powers of all
forces in the train are of one size. Found once a mechanism.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from typing import NamedTuple

from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.motors import coupled_sets
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.sizes.carried import carried


class Geared(NamedTuple):
    """The leader of a joint's train, and how far the joint moves for one rad or m of it, at least 0."""

    leader: Joint
    ratio: float


@lru_cache(maxsize=256)
def geared(mechanism: Mechanism) -> dict[str, Geared]:
    """How joints that couplings tie together move, by name; couplings of ratio zero tie nothing."""
    sizes = carried(mechanism)
    found: dict[str, Geared] = {}
    for train in coupled_sets(coupling for coupling in mechanism.couplings if coupling.ratio):
        joints = [joint for joint in mechanism.joints if joint.name in train]
        leader = max(joints, key=lambda joint: sizes[joint.name].work)
        found.update((name, Geared(leader, ratio)) for name, ratio in _ratios(mechanism, leader.name))
    return found


def _ratios(mechanism: Mechanism, leader: str) -> Iterator[tuple[str, float]]:
    """How far each joint of a train moves for one unit of its leader."""
    ratios, waiting = {leader: 1.0}, [leader]
    while waiting:
        here = waiting.pop()
        yield here, ratios[here]
        for coupling in mechanism.couplings:
            if coupling.ratio and here in (coupling.joint, coupling.source):
                other = coupling.source if here == coupling.joint else coupling.joint
                step = abs(coupling.ratio) if other == coupling.joint else 1.0 / abs(coupling.ratio)
                if other not in ratios:
                    ratios[other] = ratios[here] * step
                    waiting.append(other)
