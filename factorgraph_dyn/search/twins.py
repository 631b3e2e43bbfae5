"""Substructures that repeat, so that what is found for one leg or finger serves the others.

Takes a mechanism; gives maps between the variables of subtrees that have the same shape: the same kinds of
joints, hung in the same way. A change of an ordering in one is repeated in its twins.

The work runs once a mechanism.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from functools import cached_property

from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.ordering.halves import STEPS, halves

SMALLEST = 2  # joints of a subtree worth the name


class Twins:
    """Variables and their counterparts in subtrees of the same shape."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.mechanism = mechanism

    def of(self, variable: str) -> tuple[Mapping[str, str], ...]:
        """For every twin of the subtree a variable is in: its variables' counterparts there."""
        return self._maps.get(variable, ())

    @cached_property
    def _maps(self) -> dict[str, tuple[Mapping[str, str], ...]]:
        maps: dict[str, tuple[Mapping[str, str], ...]] = {}
        for family in self.families:
            lists = [_variables(joints) for joints in family]
            for own in lists:
                others = tuple(dict(zip(own, other, strict=True)) for other in lists if other is not own)
                maps.update(dict.fromkeys(own, others))
        return maps

    @cached_property
    def families(self) -> tuple[tuple[tuple[Joint, ...], ...], ...]:
        """Families of the largest subtrees of one shape, each subtree as its joints, root first."""
        outward = self.mechanism.topology.outward
        children: dict[str, list[Joint]] = defaultdict(list)
        for joint in outward:
            children[joint.parent].append(joint)
        shape: dict[str, tuple[object, ...]] = {}
        subtree: dict[str, tuple[Joint, ...]] = {}
        for joint in reversed(outward):
            below = sorted(children[joint.child], key=lambda j: repr(shape[j.name]))
            shape[joint.name] = (joint.kind, tuple(shape[j.name] for j in below))
            subtree[joint.name] = (joint, *(k for j in below for k in subtree[j.name]))
        groups: dict[tuple[object, ...], list[str]] = defaultdict(list)
        for joint in outward:
            if len(subtree[joint.name]) >= SMALLEST:
                groups[shape[joint.name]].append(joint.name)
        families: list[tuple[tuple[Joint, ...], ...]] = []
        taken: set[str] = set()
        by_size = sorted(groups.values(), key=lambda names: -len(subtree[names[0]]))
        for names in by_size:
            free = [name for name in names if name not in taken]
            if len(free) > 1:
                families.append(tuple(subtree[name] for name in free))
                taken.update(joint.name for name in free for joint in subtree[name])
        return tuple(families)


def _variables(joints: tuple[Joint, ...]) -> list[str]:
    return [
        part
        for joint in joints
        for name in (f"tau[{joint.name}]", f"F[{joint.name}]", f"A[{joint.child}]", f"a[{joint.name}]")
        for variable in (name, *(f"{name}:{step}" for step in STEPS))
        for part in dict.fromkeys((variable, *halves(variable)))
    ]
