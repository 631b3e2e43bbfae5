"""Forces that move nothing: what loops pass on between themselves, and what redundant motors push against each other.

In a group of loops and couplings that share joints, constraint forces lambda and sought torques tau leave the motion as
it is where they balance at every joint,

    tau + J^T lambda = 0

so that these forces are the null space of [1 J^T], a small dense problem for each group. Wrenches on the ways of the
loops follow by statics, from the tips to the base:

    F_j = sum over joints k out of the child of Ad_k^T F_k, loops counted with what they pass on

One choice of them is that of the graph, which sets the forces of dropped rows (``motion/independence``) and the torques
of surplus motors to zero. Once a state; linear in the number of groups.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import Factor, Known, State, Variable
from factorgraph_dyn.equations.factors import coupling_force, redundant_factor, torque, wrench
from factorgraph_dyn.model.loop_groups import Group, loop_groups, loop_paths
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closure import Constraint, group_tolerance, row_weights
from factorgraph_dyn.motion.independence import Independence, rows_of_group, weighed_jacobian
from factorgraph_dyn.numerics.rank import Mask, chosen_rows, null_space, rank
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING, RANK_TOLERANCE
from factorgraph_dyn.spatial import Floats

Columns = Mapping[Variable, Floats]
"""How variables follow each of several force freedoms, shape (size, freedoms)."""


class ForceFreedoms(NamedTuple):
    """The force freedoms of one group.

    Attributes:
        columns: How wrenches, coupling forces and sought torques follow each of them.
        surplus: Indices in the joint vector of torques that are set to zero in the graph.
        size: Number of force freedoms.
    """

    columns: Columns
    surplus: tuple[int, ...]
    size: int


def force_freedoms(state: State, known: Known, rows: Independence) -> list[ForceFreedoms]:
    """The force freedoms of every group of loops that may have some."""
    sought, kept = ~known.tau_mask, rows.kept
    return [
        _of_group(state, group, rows.constraints, sought, rows_of_group(kept, group))
        for group in loop_groups(state.mechanism)
        if sought[group.entries].any() or not rows_of_group(kept, group).all()
    ]


def surplus_factors(state: State, freedoms: Iterable[ForceFreedoms], known: Known) -> list[Factor]:
    """Equations that set the torques of surplus motors to zero."""
    mechanism, factors = state.mechanism, []
    surplus = {index for freedom in freedoms for index in freedom.surplus}
    for joint in mechanism.movable_joints:
        unknown = _unknown_entries(state, joint.name, ~known.tau_mask)
        rows = [place for place, entry in enumerate(unknown) if entry in surplus]
        if rows:
            factors.append(redundant_factor(torque(joint.name, len(unknown)), np.eye(len(unknown))[rows]))
    return factors


def _of_group(state: State, group: Group, found: Sequence[Constraint], sought: Mask, is_kept: Mask) -> ForceFreedoms:
    own, is_sought = measured(state.mechanism), sought[group.entries]
    entries, J = group.entries[is_sought], weighed_jacobian(found, group)
    # Motors that drive independent motions keep their torques; the others are surplus.
    motions = null_space(J[is_kept], group_tolerance(state.mechanism, group))[is_sought]
    driven = chosen_rows(motions, rank(motions, RANK_ROUNDING))
    # Rows that hold a motion by next to nothing pass on no force: their forces are not among the freedoms.
    balance = np.hstack([np.eye(len(group.entries))[:, is_sought], J.T])
    N = _torques_first(null_space(balance, RANK_ROUNDING), len(entries))
    members = [found[member] for member in group.members]
    forces = row_weights(members)[:, None] * N[len(entries) :]
    columns = _wrenches(state, group, members, forces)
    columns |= _torques(state, entries, N[: len(entries)] / own.v[entries][:, None], sought)
    return ForceFreedoms(columns, tuple(entries[~driven].tolist()), N.shape[1])


def _torques_first(N: Floats, motors: int) -> Floats:
    """The same null space with the directions in which torques change first, and none of them in the others."""
    _, sizes, right = np.linalg.svd(N[:motors])
    N = N @ right.T
    N[:motors, int((sizes > RANK_TOLERANCE).sum()) :] = 0.0
    return N


def _torques(state: State, entries: npt.NDArray[np.int64], values: Floats, sought: Mask) -> dict[Variable, Floats]:
    row_of, found = {int(entry): row for entry, row in zip(entries, values, strict=True)}, {}
    for joint in state.mechanism.movable_joints:
        unknown = _unknown_entries(state, joint.name, sought)
        if any(entry in row_of for entry in unknown):
            nothing = np.zeros(values.shape[1])
            found[torque(joint.name, len(unknown))] = np.array([row_of.get(entry, nothing) for entry in unknown])
    return found


def _unknown_entries(state: State, joint: str, sought: Mask) -> list[int]:
    here = state.mechanism.v_slices[joint]
    return [entry for entry in range(here.start, here.stop) if sought[entry]]


def _wrenches(state: State, group: Group, members: Sequence[Constraint], forces: Floats) -> dict[Variable, Floats]:
    """The wrenches that forces of closure cause on the ways of a group's loops, and the forces of couplings."""
    mechanism, own, found = state.mechanism, measured(state.mechanism), {}
    on_link: dict[str, Floats] = defaultdict(lambda: np.zeros((6, forces.shape[1])))
    ways: set[str] = set()
    parts = np.split(forces, np.cumsum([len(constraint.error) for constraint in members])[:-1])
    for constraint, part, member in zip(members, parts, group.members, strict=True):
        if constraint.directions is None:
            coupling = mechanism.couplings[member - len(mechanism.loops)]
            # S^T F = tau + J_c^T lambda, while wrenches of loops come with S^T F = -J^T lambda below.
            found[coupling_force(coupling.name)] = part / own.v[mechanism.v_slices[coupling.joint]][0]
            continue
        loop, here = mechanism.loops[member], state.loops[constraint.name]
        X = spatial.inverse_adjoint(loop.successor_placement)
        F = X.T @ ((constraint.directions / own.motion[:, None]) @ part)
        found[wrench(loop.name)] = F
        on_link[loop.successor] = on_link[loop.successor] - F
        on_link[loop.predecessor] = on_link[loop.predecessor] + here.Ad_child_parent.T @ F
        ways |= {joint.name for way in loop_paths(mechanism, loop) for joint in way}
    for joint in reversed(mechanism.topology.outward):
        if joint.name in ways:
            F = on_link[joint.child]
            found[wrench(joint.name)] = F
            on_link[joint.parent] = on_link[joint.parent] + state.joints[joint.name].Ad_child_parent.T @ F
    return found
