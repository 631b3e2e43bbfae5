"""Which rows of closure are independent: a choice that a mechanism keeps wherever its loops are regular.

Loops of planar linkages, and many others, constrain more than they have to: rows of their closure J v = 0 repeat each
other. Of each group of loops and couplings that share joints as many rows are kept as J has rank, by pivoted
Gram-Schmidt on the rows in the mechanism's own units; the others follow from them on the closure.

    kept       C_I^T (V_c - Ad_cp V_p) = 0          equations of motion
    dropped    C_D^T (V_c - Ad_cp V_p) = 0          implied; the wrench along C_D moves nothing

The choice made at one state nearly always has full rank at all of them, so that it is tried first everywhere. At
singular configurations, where the rank is less, rows are chosen anew. Checked once a state, a few small matrices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.loop_groups import Group, loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closure import Constraint, constraints, group_jacobian, group_tolerance, row_weights
from factorgraph_dyn.motion.random_states import random_closed_state
from factorgraph_dyn.numerics.rank import Mask, chosen_rows, rank, singular_shares
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING
from factorgraph_dyn.spatial import Floats

Kept = tuple[tuple[bool, ...], ...]
"""For each loop, then each coupling: which rows of its closure are kept."""

_STILL_GOOD = 0.03  # part of the least singular value of all rows that those of a choice made elsewhere must have


class Independence(NamedTuple):
    """The independent rows of closure at a configuration.

    Attributes:
        kept: Which they are.
        is_fewer: Whether there are fewer than at usual states.
        is_weak: Whether some that were dropped hold a motion, by so little that it counts as free.
        constraints: Closure of all loops and couplings there, in units of the mechanism's size.
    """

    kept: Kept
    is_fewer: bool
    is_weak: bool
    constraints: Sequence[Constraint]


def all_rows(mechanism: Mechanism) -> Kept:
    """Every row of closure, also those that follow from others."""
    return (*((True,) * (6 - loop.nv) for loop in mechanism.loops), *((True,) for _ in mechanism.couplings))


def independent_rows(mechanism: Mechanism, q: Floats) -> Independence:
    """Rows that are independent at a closed configuration: the usual ones where these have full rank there."""
    own = measured(mechanism)
    found, usual = constraints(own.mechanism, q / own.q), _usual_rows(mechanism)
    kept: dict[int, tuple[bool, ...]] = {}
    is_fewer = is_weak = False
    for group in loop_groups(mechanism):
        J = weighed_jacobian(found, group)
        shares = singular_shares(J)
        count = int((shares > group_tolerance(mechanism, group)).sum())
        is_weak |= bool((shares[count:] > RANK_ROUNDING).any())
        before = None if usual is None else rows_of_group(usual, group)
        is_fewer |= before is not None and count < int(before.sum())
        if before is None or not _is_good(J, before, shares[:count]):
            before = chosen_rows(J, count)
        kept |= _by_member(found, group, before)
    return Independence(tuple(kept[member] for member in sorted(kept)), is_fewer, is_weak, found)


def weighed_jacobian(found: Sequence[Constraint], group: Group) -> Floats:
    """The closure of a group, from that of all loops and couplings, rows weighed against each other."""
    members = [found[member] for member in group.members]
    return np.asarray(row_weights(members)[:, None] * group_jacobian(members, group))


def rows_of_group(kept: Kept, group: Group) -> Mask:
    """Which rows of a group are kept."""
    return np.array([row for member in group.members for row in kept[member]], dtype=bool)


@kept_with_first
def _usual_rows(mechanism: Mechanism) -> Kept | None:
    """The rows that are independent at a random state; None where no such state is found."""
    try:
        q, _ = random_closed_state(mechanism, np.random.default_rng(0))
    except ClosureError:
        return None
    own = measured(mechanism)
    found = constraints(own.mechanism, q / own.q)
    kept: dict[int, tuple[bool, ...]] = {}
    for group in loop_groups(mechanism):
        J = weighed_jacobian(found, group)
        kept |= _by_member(found, group, chosen_rows(J, rank(J, group_tolerance(mechanism, group))))
    return tuple(kept[member] for member in sorted(kept))


def _is_good(J: Floats, mask: Mask, shares: Floats) -> bool:
    """Whether a choice of rows made elsewhere is about as good as any here."""
    if mask.sum() != len(shares):
        return False
    return not len(shares) or bool(singular_shares(J[mask])[-1] > _STILL_GOOD * shares[-1])


def _by_member(found: Sequence[Constraint], group: Group, mask: Mask) -> dict[int, tuple[bool, ...]]:
    ends = np.cumsum([len(found[member].error) for member in group.members])
    parts = np.split(mask, ends[:-1])
    return {member: tuple(part.tolist()) for member, part in zip(group.members, parts, strict=True)}
