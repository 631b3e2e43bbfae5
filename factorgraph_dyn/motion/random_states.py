"""The neutral configuration and random states, closed where there are loops and couplings.

Takes a mechanism and a generator; gives configurations that are closed and velocities that keep them so:

    loops       set out from a closed home, the neutral configuration where it can be, along its freedoms; limits
                throw back what leaves them, and Gauss-Newton steps within the limits close what is left
    couplings   and joints that nothing constrains are drawn from all of their range, but not at limits

Each group of loops and couplings that share joints is drawn apart, in the mechanism's own size. The home is found
once a mechanism; the rest runs once a state: some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closing import Place, cannot_close, close, descend, starts_for
from factorgraph_dyn.motion.closure import nearest_velocity, openness, rank_tolerance
from factorgraph_dyn.motion.joint_limits import Limits, limited, limits_of, reflected
from factorgraph_dyn.motion.kinematics import joint_motion
from factorgraph_dyn.spatial import Floats, stacked

HOME_TRIES = 160  # starts from which a home is sought where the neutral configuration leads to none, at most
DOUBTS = 4  # times as many starts are worth it where the least opening is small and tells nothing
NEARLY_CLOSED, SAME_OPENING = 0.1, 1.01  # a small opening, rad or parts of the size; a factor between equal ones
FEW_DIGITS = 1e-3  # an opening up to which a file's few digits explain it, if it is found again
RANDOM_TRIES = 20
RANDOM_REACH = 1.0  # from home, rad or the mechanism's size
REACH_SHRINKS = 0.85  # with every try
REGULAR_ENOUGH = 1e-2  # least singular value over the largest of a state that needs no better one
REGULAR_TRIES = 3
FAR_TRIES = 10
FAR_ITERATIONS = 40  # those that take longer end where loops are singular
MODE_TRIES = 60  # starts that lead to no other assembly mode of locked joints, until all count as found
MOST_MODES = 8  # of a group that are kept
APART = 1e-6  # rad, and parts of the mechanism's size, from which on two places are two modes


class Home(NamedTuple):
    """A closed configuration in own units, and the limits that each group keeps to there, if any."""

    q: Floats
    limits: tuple[Limits | None, ...]


def neutral(mechanism: Mechanism) -> Floats:
    """The configuration of all-zero angles and identity rotations, closed, shape (nq,)."""
    q = _at_zero(mechanism)
    return q if not mechanism.is_closed_kind or openness(mechanism, q) <= 1.0 else close(mechanism, q)


def _at_zero(mechanism: Mechanism) -> Floats:
    return stacked(joint.type.neutral() for joint in mechanism.joints)


def random_state(mechanism: Mechanism, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A random state within limits, closed where there are loops or couplings."""
    if mechanism.is_closed_kind:
        return random_closed_state(mechanism, rng)
    return random_configuration(mechanism, rng), rng.normal(size=mechanism.nv) * measured(mechanism).v


def random_configuration(mechanism: Mechanism, rng: np.random.Generator) -> Floats:
    """Random coordinates within limits, whether loops close or not, shape (nq,)."""
    parts = (_random_coordinates(joint, rng, mechanism.size) for joint in mechanism.joints)
    return stacked(parts)


def _random_coordinates(joint: Joint, rng: np.random.Generator, length: float) -> Floats:
    q = joint.type.random(rng, length)
    lower, upper = limited(joint) or (-np.inf, np.inf)
    if np.isfinite(upper - lower):
        return np.array([rng.uniform(lower, upper)])
    return reflected(q, lower, upper)


def random_closed_state(
    mechanism: Mechanism, rng: np.random.Generator, farthest: float = RANDOM_REACH, *, any_mode: bool = False
) -> tuple[Floats, Floats]:
    """A random closed configuration and a random velocity that keeps it closed.

    Loops are reached from home along its freedoms, and so are of its assembly mode.

    Args:
        mechanism: The mechanism.
        rng: Source of chance.
        farthest: How far loops go from home, rad a joint or the mechanism's size.
        any_mode: Take groups with locked joints in any of their assembly modes, whatever the limits.
    """
    own, home = measured(mechanism), _home(mechanism)
    anywhere = random_configuration(own.mechanism, rng)
    q = _with_loose(own.mechanism, home.q, anywhere)
    for k, (group, limits) in enumerate(zip(loop_groups(own.mechanism), home.limits, strict=True)):
        place = Place(own.mechanism, q, group)
        mode = _in_some_mode(mechanism, k, place, rng) if any_mode else None
        if mode is not None:
            q = _along_freedoms(mode, None, rng, farthest).q
        else:
            q = (_coupled(place, limits, anywhere) or _along_freedoms(place, limits, rng, farthest)).q
    return _state(mechanism, q, rng)


def closed_home(mechanism: Mechanism) -> Floats:
    """A closed configuration, the neutral one where that can be closed, shape (nq,)."""
    return _home(mechanism).q * measured(mechanism).q


def closed_at_zero(mechanism: Mechanism, most: int) -> list[Floats]:
    """Closed configurations in which the frames of loops coincide, of all loops and of one, as far as they get there.

    Many a loop is described by such a configuration, and its axes line up there.

    Args:
        mechanism: The mechanism.
        most: How many loops are brought there one by one.
    """
    home, loops, found = closed_home(mechanism), mechanism.loops, []
    for zeroed in (loops, *((loop,) for loop in loops[:most] if len(loops) > 1)):
        held = tuple(_welded(loop) if loop in zeroed else loop for loop in loops)
        own = measured(replace(mechanism, loops=held))
        q, closed = home / own.q, True
        for group in loop_groups(own.mechanism):
            place = descend(Place(own.mechanism, q, group), iterations=FAR_ITERATIONS)
            q, closed = place.q, closed and is_closed(place)
        if closed and keeps_freedoms(mechanism, q * own.q, home):
            found.append(q * own.q)
    return found


def _welded(loop: Loop) -> Loop:
    return replace(loop, kind="fixed", axis=(0.0, 0.0, 1.0), pitch=0.0)


def far_closed_state(mechanism: Mechanism, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """As `random_closed_state`, but in any assembly mode and whatever the limits; may be close to singular."""
    own, home = measured(mechanism), _home(mechanism)
    q = _with_loose(own.mechanism, home.q, random_configuration(own.mechanism, rng))
    for k, group in enumerate(loop_groups(own.mechanism)):
        place = Place(own.mechanism, q, group)
        mode = _in_some_mode(mechanism, k, place, rng)
        q = (_far(mode or place, rng) or _along_freedoms(mode or place, None, rng, RANDOM_REACH)).q
    return _state(mechanism, q, rng)


def _state(mechanism: Mechanism, q_own: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """The state in the given units, with a velocity that keeps it closed."""
    own = measured(mechanism)
    q = q_own * own.q
    bounded = limits_of(mechanism).clipped(q)
    q = np.where(np.isclose(q, bounded, rtol=1e-14, atol=0.0), bounded, q)  # changing units rounds
    return q, nearest_velocity(mechanism, q, rng.normal(size=mechanism.nv) * own.v)


# ---- one group


def _coupled(place: Place, limits: Limits | None, anywhere: Floats) -> Place | None:
    """The closed place next to a random one, for a group without loops; None where there are loops, or at a limit."""
    if min(place.group.members) < len(place.mechanism.loops):
        return None
    found = descend(_with_coordinates(place, anywhere), limits=limits)
    at_limit = limits is not None and limits.touched(found.q, place.group.entries)
    return found if is_closed(found) and not at_limit else None


def _along_freedoms(place: Place, limits: Limits | None, rng: np.random.Generator, farthest: float) -> Place:
    """The first regular closed place of a few that lie along random freedoms of a closed one, or the best of them."""
    found: list[Place] = []
    for attempt in range(RANDOM_TRIES):
        reach = farthest * REACH_SHRINKS**attempt
        there = place.moved(_freely(place, rng.uniform(-reach, reach, len(place.group.entries))))
        if limits is not None:
            there = _with_coordinates(place, limits.reflected(there.q))
        there = descend(there, limits=limits)
        if is_closed(there):
            found.append(there)
            if len(found) == REGULAR_TRIES or _regularity(there) > REGULAR_ENOUGH:
                break
    return max(found, key=_regularity, default=place)


def _far(place: Place, rng: np.random.Generator) -> Place | None:
    """A closed place reached from a random one, in any assembly mode, or None."""
    for attempt in range(FAR_TRIES):
        reach = 0.9**attempt
        there = place.moved(rng.uniform(-reach, reach, len(place.group.entries)))
        there = descend(there, iterations=FAR_ITERATIONS)
        if is_closed(there):
            return there
    return None


def is_closed(place: Place) -> bool:
    """Whether a group is closed as well as its mechanism demands."""
    return place.opening <= place.mechanism.closure_tolerance


def _freely(place: Place, x: Floats) -> Floats:
    """The motion nearest to x that keeps a closed place closed, to first order."""
    return np.asarray(x - np.linalg.lstsq(place.J, place.J @ x, rcond=rank_tolerance(place.mechanism))[0])


def _regularity(place: Place) -> float:
    """The least singular value of the closure that is not zero, as a share of the largest."""
    values = np.linalg.svd(place.J, compute_uv=False)
    shares = values / max(values.max(initial=0.0), np.finfo(float).tiny)
    return float(shares[shares > rank_tolerance(place.mechanism)].min(initial=1.0))


def keeps_freedoms(mechanism: Mechanism, q: Floats, usual: Floats, least: float = REGULAR_ENOUGH) -> bool:
    """Whether closure holds at one configuration what it holds at another, at least by a share of its strength."""
    return not lost_closures(mechanism, q, _strengths(mechanism, usual), least)


def lost_closures(mechanism: Mechanism, q: Floats, usual: Sequence[Floats] | None, least: float) -> list[str]:
    """The loops and couplings of groups that hold something by less than a share of their usual strength.

    Args:
        mechanism: The mechanism.
        q: Where.
        usual: Strengths to compare with, those of a random state by default.
        least: The share.
    """
    own, found = measured(mechanism).mechanism, []
    names = [*(loop.name for loop in own.loops), *(coupling.name for coupling in own.couplings)]
    reference = _usual_strengths(mechanism) if usual is None else usual
    for group, here, there in zip(loop_groups(own), _strengths(mechanism, q), reference, strict=True):
        held = there > rank_tolerance(own) * there.max(initial=0.0)
        if (here[held] < least * there[held]).any():
            found += [names[member] for member in group.members]
    return found


@lru_cache(maxsize=256)
def _usual_strengths(mechanism: Mechanism) -> list[Floats]:
    """How strongly each group holds at a random state."""
    return _strengths(mechanism, random_closed_state(mechanism, np.random.default_rng(0))[0])


def _strengths(mechanism: Mechanism, q: Floats) -> list[Floats]:
    """The singular values of each group's closure, in own units."""
    own = measured(mechanism)
    places = (Place(own.mechanism, q / own.q, group) for group in loop_groups(own.mechanism))
    return [np.asarray(np.linalg.svd(place.J, compute_uv=False), dtype=float) for place in places]


def _with_coordinates(place: Place, q: Floats) -> Place:
    """The place with its own joints at the coordinates of another configuration."""
    moved = place.q.copy()
    for joint in place.group.joints:
        here = place.mechanism.q_slices[joint.name]
        moved[here] = q[here]
    return Place(place.mechanism, moved, place.group)


def _with_loose(mechanism: Mechanism, q: Floats, anywhere: Floats) -> Floats:
    """q with the joints that no loop or coupling holds at the coordinates of another configuration."""
    held = {joint.name for group in loop_groups(mechanism) for joint in group.joints}
    parts = [(q if joint.name in held else anywhere)[mechanism.q_slices[joint.name]] for joint in mechanism.joints]
    return stacked(parts)


# ---- assembly modes


@lru_cache(maxsize=256)
def assembly_modes(mechanism: Mechanism) -> tuple[tuple[Floats, ...], ...]:
    """Configurations in own units in which each group's locked joints lie elsewhere, home first; one where all move.

    No motion leads from one to the other, so that they are sought from anywhere.
    """
    own, home = measured(mechanism).mechanism, _home(mechanism)
    return tuple(_modes(Place(own, home.q, group)) for group in loop_groups(own))


def _modes(home: Place) -> tuple[Floats, ...]:
    locked = _locked_joints(home)
    if not locked:
        return (home.q,)
    rng = np.random.default_rng(0)
    found, missed = [home.q], 0
    tries = min(MODE_TRIES, 2 * starts_for(home.group))  # some modes are reached from few places
    while missed < tries and len(found) < MOST_MODES:
        missed += 1
        start = _with_coordinates(home, random_configuration(home.mechanism, rng))
        there = descend(start, iterations=FAR_ITERATIONS)
        is_new = all(_are_apart(locked, home.mechanism, there.q, q) for q in found)
        if is_new and is_closed(there) and set(locked) <= set(_locked_joints(there)):
            found.append(there.q)
            missed = 0
    return tuple(found)


def _in_some_mode(mechanism: Mechanism, group: int, place: Place, rng: np.random.Generator) -> Place | None:
    """The place in one of its group's assembly modes, where there are several."""
    modes = assembly_modes(mechanism)[group]
    return _with_coordinates(place, modes[rng.integers(len(modes))]) if len(modes) > 1 else None


def _locked_joints(place: Place) -> list[Joint]:
    """Joints that closure leaves no freedom."""
    _, values, rows = np.linalg.svd(place.J)
    tolerance = rank_tolerance(place.mechanism)
    freedoms = rows[int((values > tolerance * values.max(initial=0.0)).sum()) :]
    moves = np.zeros(place.mechanism.nv)
    moves[place.group.entries] = np.abs(freedoms).max(axis=0, initial=0.0)
    return [joint for joint in place.group.joints if moves[place.mechanism.v_slices[joint.name]].max() <= tolerance]


def _are_apart(joints: Iterable[Joint], mechanism: Mechanism, q: Floats, other: Floats) -> bool:
    """Whether some of the joints hold their links elsewhere; whole turns are the same."""
    slices = mechanism.q_slices
    poses = [[joint_motion(joint, x[slices[joint.name]])[0] for x in (q, other)] for joint in joints]
    return any(np.abs(here - there).max() > APART for here, there in poses)


# ---- home


@lru_cache(maxsize=256)
def _home(mechanism: Mechanism) -> Home:
    """A closed configuration, near the neutral one and within limits where there is such a one.

    Raises:
        ClosureError: None was found; names the loop that stays open, and by how much at best.
    """
    own = measured(mechanism).mechanism
    rng = np.random.default_rng(0)
    q = _at_zero(own)
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
            tried.append(descend(_with_coordinates(place, within), limits=bounds))
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
