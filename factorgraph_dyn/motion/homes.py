"""The home of a closed mechanism: the closed configuration around which its states are drawn.

Takes a mechanism; gives a closed configuration near the neutral one, within limits where there is such a one. The
work runs once a mechanism.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closed_places import is_closed, random_configuration, with_coordinates
from factorgraph_dyn.motion.closing import Place, cannot_close, descend, starts_for
from factorgraph_dyn.motion.joint_limits import Limits, limits_of
from factorgraph_dyn.spatial import Floats, stacked

HOME_TRIES = 160  # starts from which a home is sought where the neutral configuration leads to none, at most
DOUBTS = 4  # times as many starts are worth it where the least opening is small and tells nothing
NEARLY_CLOSED, SAME_OPENING = 0.1, 1.01  # a small opening, rad or parts of the size; a factor between equal ones
FEW_DIGITS = 1e-3  # an opening up to which a file's few digits explain it, if it is found again


class Home(NamedTuple):
    """A closed configuration in own units, and the limits that each group keeps to there, if any."""

    q: Floats
    limits: tuple[Limits | None, ...]


def at_zero(mechanism: Mechanism) -> Floats:
    """The configuration of all-zero angles and identity rotations, whether it is closed or not, shape (nq,)."""
    return stacked(joint.type.neutral() for joint in mechanism.joints)


@lru_cache(maxsize=256)
def home_of(mechanism: Mechanism) -> Home:
    """A closed configuration, near the neutral one and within limits where there is such a one.

    Raises:
        ClosureError: None was found; names the loop that stays open, and by how much at best.
    """
    own = measured(mechanism).mechanism
    rng = np.random.default_rng(0)
    q = at_zero(own)
    starts = [q, *(random_configuration(own, rng) for _ in range(HOME_TRIES))]
    kept = []
    for group in loop_groups(own):
        place, limits = _group_home(mechanism, Place(own, q, group), starts)
        kept.append(limits)
        q = place.q
    return Home(q, tuple(kept))


def _group_home(mechanism: Mechanism, place: Place, starts: list[Floats]) -> tuple[Place, Limits | None]:
    limits = limits_of(place.mechanism)
    tried: list[Place] = []
    few = 1 + min(starts_for(place.group), HOME_TRIES // DOUBTS)
    rounds: list[tuple[Limits | None, list[Floats]]] = [(None, starts[:few])]
    if limits.bound(place.group.entries):
        rounds.insert(0, (limits, starts[:few]))
    for bounds, some in (*rounds, (None, starts[few : DOUBTS * few])):
        if len(tried) == few * len(rounds) and not _may_close(tried[-few:]):
            break
        for start in some:
            within = start if bounds is None else bounds.clipped(start)
            tried.append(descend(with_coordinates(place, within), limits=bounds))
            if is_closed(tried[-1]):
                return tried[-1], bounds
    nearest = min(tried, key=lambda place: place.opening)
    advice = "Check the placements of its loops and the offsets of its couplings."
    raise cannot_close(mechanism, [nearest], mechanism.closure_tolerance, f" in {len(tried)} tries", advice)


def _may_close(tried: list[Place]) -> bool:
    """Whether the least opening of some tries is small, and not that of few digits found again: more may close."""
    least, *others = sorted(place.opening for place in tried)
    found_again = bool(others) and others[0] <= SAME_OPENING * least
    return least < NEARLY_CLOSED and not (found_again and least <= FEW_DIGITS)
