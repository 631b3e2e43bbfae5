"""The joints around each loop, and the groups of loops and couplings that share joints.

Takes a mechanism; gives groups of constraints, each with the joints that it moves. The Jacobian of all constraints is
block diagonal over the groups, and so is its least-norm solution, so that closing takes linear time:

    x = J^+ b,    x_g = J_g^+ b_g    for every group g
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop


class Group(NamedTuple):
    """Constraints that share joints, loops counted first and then couplings; those joints, and their entries of v."""

    members: tuple[int, ...]
    joints: tuple[Joint, ...]
    entries: npt.NDArray[np.int64]


@kept_with_first
def loop_groups(mechanism: Mechanism) -> tuple[Group, ...]:
    """The groups of a mechanism's loops and couplings."""
    ways = [[*there, *back] for there, back in (loop_paths(mechanism, loop) for loop in mechanism.loops)]
    held = [[joint.name for joint in way if joint.nv] for way in ways]
    held += [[coupling.joint, coupling.source] for coupling in mechanism.couplings]
    groups = []
    for members in _sharing(held):
        names = {name for index in members for name in held[index]}
        joints = tuple(joint for joint in mechanism.movable_joints if joint.name in names)
        slices = [mechanism.v_slices[joint.name] for joint in joints]
        entries = np.array([i for s in slices for i in range(s.start, s.stop)], dtype=int)
        groups.append(Group(members, joints, entries))
    return tuple(groups)


def _sharing(held: list[list[str]]) -> list[tuple[int, ...]]:
    """Which lists of names belong together because they share names, directly or through others."""
    leader = list(range(len(held)))

    def first(index: int) -> int:
        while leader[index] != index:
            leader[index] = index = leader[leader[index]]
        return index

    seen: dict[str, int] = {}
    for index, names in enumerate(held):
        for name in names:
            least, other = sorted((first(index), first(seen.setdefault(name, index))))
            leader[other] = least
    groups: dict[int, list[int]] = {}
    for index in range(len(held)):
        groups.setdefault(first(index), []).append(index)
    return [tuple(members) for members in groups.values()]


@kept_with_first
def loop_paths(mechanism: Mechanism, loop: Loop) -> tuple[tuple[Joint, ...], tuple[Joint, ...]]:
    """The joints from the successor and from the predecessor to the link where the two ways meet.

    Joints below that link move both sides of the loop alike, so that the Jacobian has no columns there.
    """
    topology = mechanism.topology
    ends = (loop.successor, loop.predecessor)
    ways: tuple[list[Joint], list[Joint]] = ([], [])
    at = list(ends)
    while at[0] != at[1]:
        deeper = 0 if topology.depth[at[0]] >= topology.depth[at[1]] else 1
        joint = topology.joint_into[at[deeper]]
        ways[deeper].append(joint)
        at[deeper] = joint.parent
    return tuple(ways[0]), tuple(ways[1])
