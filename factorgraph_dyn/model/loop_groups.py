"""Loops and couplings that share no joint are solved apart, so that closing takes linear time.

Takes a mechanism; gives groups of constraints, each with the joints that it moves. The Jacobian of all constraints is
block diagonal over the groups, and so is its least-norm solution:

    x = J^+ b,    x_g = J_g^+ b_g    for every group g

Groups are found once a mechanism; a solution is work of once a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING

import networkx as nx
import numpy as np
import numpy.typing as npt

from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

RANK_TOLERANCE = 1e-6  # singular values below this share of the largest count as zero

Group = tuple[tuple[int, ...], npt.NDArray[np.int64]]  # constraints, and entries of v that they move


@lru_cache(maxsize=64)
def loop_groups(mechanism: Mechanism) -> tuple[Group, ...]:
    """Constraints that share joints, loops counted first and then couplings, with their joints' entries of v."""
    ways = [[*there, *back] for there, back in (loop_paths(mechanism, loop) for loop in mechanism.loops)]
    held = [[joint.name for joint in way if joint.nv] for way in ways]
    held += [[coupling.joint, coupling.source] for coupling in mechanism.couplings]
    graph = nx.Graph()
    graph.add_nodes_from(range(len(held)))
    graph.add_edges_from((index, name) for index, names in enumerate(held) for name in names)
    groups = []
    for part in nx.connected_components(graph):
        members = tuple(sorted(node for node in part if isinstance(node, int)))
        slices = [mechanism.v_slices[node] for node in part if isinstance(node, str)]
        groups.append((members, np.array(sorted(i for s in slices for i in range(s.start, s.stop)), dtype=int)))
    return tuple(groups)


def least_norm(
    mechanism: Mechanism,
    jacobians: Sequence[Floats],
    targets: Sequence[Floats],
    free: npt.NDArray[np.bool_] | None = None,
) -> tuple[Floats, int]:
    """The shortest x that fits J x = b best, shape (nv,), and the rank of J.

    Args:
        mechanism: The mechanism.
        jacobians: Of each constraint, shape (rows, nv).
        targets: b of each constraint, shape (rows,).
        free: Entries of x that may be other than zero, shape (nv,); all by default.
    """
    x, rank = np.zeros(mechanism.nv), 0
    for members, entries in loop_groups(mechanism):
        columns = entries if free is None else entries[free[entries]]
        J = np.vstack([jacobians[i][:, columns] for i in members])
        b = np.concatenate([targets[i] for i in members])
        x[columns], _, part_rank, _ = np.linalg.lstsq(J, b, rcond=RANK_TOLERANCE)
        rank += int(part_rank)
    return x, rank


@lru_cache(maxsize=4096)
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
