"""The home of a closed mechanism: the closed configuration around which its states are drawn.

Takes a mechanism; gives a closed configuration near the neutral one, within limits where there is such a one.
Where the neutral one is folded, another is looked for. Bars of equal lengths that lie upon each other turn as one,
whatever else they could do, and lock joints that move elsewhere:

    rank J  <  rank J beside it, where loops are open     joints are locked there, or somewhere along its freedoms
    rank J  =  rank J beside it                           joints are locked there and all along its freedoms, and move
                                                          beside it

At a better place loops hold no less, and fewer joints are locked. Overconstrained linkages (Bennett's) lose rank
wherever they are closed; their joints move, and they stay where they are. The work runs once a mechanism.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closed_places import (
    RANDOM_REACH,
    along_freedoms,
    is_closed,
    locked_joints,
    random_configuration,
    rank,
    regularity,
    with_coordinates,
)
from factorgraph_dyn.motion.closing import Place, cannot_close, descend
from factorgraph_dyn.motion.joint_limits import Limits, limits_of
from factorgraph_dyn.spatial import Floats, stacked

HOME_TRIES = 160  # starts from which a home is sought where the neutral configuration leads to none, at most
HOME_WORK = 120  # starts times the loops of a group, so that large ones that cannot close say so as soon
DOUBTS = 4  # times as many starts are worth it where the least opening is small and tells nothing
NEARLY_CLOSED, SAME_OPENING = 0.2, 1.01  # a small opening, rad or parts of the size; a factor between equal ones
FEW_DIGITS = 1e-3  # an opening up to which a file's few digits explain it, if it is found again
BESIDE = 0.3  # rad, or parts of the size: an open place beside a home, at which loops hold what they can
NEIGHBOURS = 4  # closed places along the freedoms of a home that tell whether joints lock there
UNFOLDING_TRIES = 40  # starts from which a place is sought where fewer joints are locked


class Home(NamedTuple):
    """A closed configuration in own units, and the limits that each group keeps to there, if any."""

    q: Floats
    limits: tuple[Limits | None, ...]


def at_zero(mechanism: Mechanism) -> Floats:
    """The configuration of all-zero angles and identity rotations, whether it is closed or not, shape (nq,)."""
    return stacked(joint.type.neutral() for joint in mechanism.joints)


@kept_with_first
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
    loops = sum(member < len(mechanism.loops) for member in place.group.members)  # couplings close at once
    few = 1 + min(HOME_WORK // max(loops, 1), HOME_TRIES // DOUBTS)
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
                return _unfolded(tried[-1], bounds, starts), bounds
    nearest = min(tried, key=lambda place: place.opening)
    advice = "Check the placements of its loops and the offsets of its couplings."
    raise cannot_close(mechanism, [nearest], mechanism.closure_tolerance, f" in {len(tried)} tries", advice)


def _may_close(tried: list[Place]) -> bool:
    """Whether the least opening of some tries is small, and not that of few digits found again: more may close."""
    least, *others = sorted(place.opening for place in tried)
    found_again = bool(others) and others[0] <= SAME_OPENING * least
    return least < NEARLY_CLOSED and not (found_again and least <= FEW_DIGITS)


# ---- folded homes


def _unfolded(home: Place, limits: Limits | None, starts: list[Floats]) -> Place:
    """A closed place where fewer joints are locked, if the home is folded and such a one is found; else the home."""
    best, locked, least = home, _locked_around(home, limits), rank(home)
    for k, start in enumerate(starts[1 : UNFOLDING_TRIES + 1]):
        if not locked:
            break
        within = start if limits is None else limits.clipped(start)
        # In the end what moves already stays: of many folds chance undoes some, and hardly all at once.
        moving = () if k < UNFOLDING_TRIES // 2 else set(home.group.joints) - set(locked)
        place = descend(with_coordinates(best, within, but=moving), limits=limits)
        if is_closed(place) and rank(place) >= least and len(found := locked_joints(place)) < len(locked):
            best, locked = place, found
    return best if best is home else _most_regular(best, limits)


def _most_regular(place: Place, limits: Limits | None) -> Place:
    """The most regular of a place and some along its freedoms at which as many joints move."""
    near, locked = _neighbours(place, limits, np.random.default_rng(0)), len(locked_joints(place))
    same = [other for other in near if rank(other) == rank(place) and len(locked_joints(other)) <= locked]
    return max((place, *same), key=regularity)


def _locked_around(home: Place, limits: Limits | None) -> list[Joint]:
    """The joints that are locked at a home that looks folded, by the signs above; none where it does not."""
    rng = np.random.default_rng(0)
    beside = home.moved(rng.uniform(-BESIDE, BESIDE, len(home.group.entries)))
    is_regular, moving = rank(home) == rank(beside), set(home.group.joints) - set(locked_joints(beside))
    if is_regular and moving.isdisjoint(locked_joints(home)):
        return []
    locked = [set(locked_joints(place)) for place in (home, *_neighbours(home, limits, rng))]
    found = moving.intersection(*locked) if is_regular else set.union(*locked)
    return [joint for joint in home.group.joints if joint in found]


def _neighbours(place: Place, limits: Limits | None, rng: np.random.Generator) -> list[Place]:
    """Closed places along the freedoms of one."""
    return [along_freedoms(place, limits, rng, RANDOM_REACH) for _ in range(NEIGHBOURS)]
