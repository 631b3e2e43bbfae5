"""The neutral configuration and random states, closed where there are loops and couplings.

Takes a mechanism and a generator; gives configurations that are closed and velocities that keep them so:

    loops       set out from a closed home, the neutral configuration unless it is folded, along its freedoms; limits
                throw back what leaves them, and Gauss-Newton steps within the limits close what is left
    couplings   and joints that nothing constrains are drawn from all of their range, but not at limits

Each group of loops and couplings that share joints is drawn apart, in the mechanism's own size. The home is found
once a mechanism (`homes`); the rest runs once a state: some milliseconds.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closed_places import (
    RANDOM_REACH,
    REGULAR_ENOUGH,
    along_freedoms,
    closes_like,
    is_closed,
    locked_joints,
    places_at,
    random_configuration,
    rank,
    with_coordinates,
)
from factorgraph_dyn.motion.closing import Place, close, descend, starts_for
from factorgraph_dyn.motion.closure import group_tolerance, nearest_velocity, openness
from factorgraph_dyn.motion.homes import at_zero, home_of
from factorgraph_dyn.motion.joint_limits import Limits, limits_of
from factorgraph_dyn.motion.kinematics import joint_motion
from factorgraph_dyn.spatial import Floats, stacked

FAR_TRIES = 10
FAR_ITERATIONS = 40  # those that take longer end where loops are singular
MODE_TRIES = 60  # starts that lead to no other assembly mode of locked joints, until all count as found
MOST_MODES = 8  # of a group that are kept
APART = 1e-6  # rad, and parts of the mechanism's size, from which on two places are two modes


def neutral(mechanism: Mechanism) -> Floats:
    """The configuration of all-zero angles and identity rotations, closed, shape (nq,)."""
    q = at_zero(mechanism)
    return q if not mechanism.is_closed_kind or openness(mechanism, q) <= 1.0 else close(mechanism, q)


def random_state(mechanism: Mechanism, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A random state within limits, closed where there are loops or couplings."""
    if mechanism.is_closed_kind:
        return random_closed_state(mechanism, rng)
    return random_configuration(mechanism, rng), rng.normal(size=mechanism.nv) * measured(mechanism).v


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
    own, home = measured(mechanism), home_of(mechanism)
    anywhere = random_configuration(own.mechanism, rng)
    q = _with_loose(own.mechanism, home.q, anywhere)
    for k, (group, limits) in enumerate(zip(loop_groups(own.mechanism), home.limits, strict=True)):
        place = Place(own.mechanism, q, group)
        mode = _in_some_mode(mechanism, k, place, rng) if any_mode else None
        if mode is not None:
            q = along_freedoms(mode, None, rng, farthest).q
        else:
            q = (_coupled(place, limits, anywhere) or along_freedoms(place, limits, rng, farthest)).q
    return _state(mechanism, q, rng)


def closed_home(mechanism: Mechanism) -> Floats:
    """A closed configuration, the neutral one where that can be closed and is not folded, shape (nq,)."""
    return home_of(mechanism).q * measured(mechanism).q


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
    own, home = measured(mechanism), home_of(mechanism)
    q = _with_loose(own.mechanism, home.q, random_configuration(own.mechanism, rng))
    for k, group in enumerate(loop_groups(own.mechanism)):
        place = Place(own.mechanism, q, group)
        mode = _in_some_mode(mechanism, k, place, rng)
        q = (_far(mode or place, rng) or along_freedoms(mode or place, None, rng, RANDOM_REACH)).q
    return _state(mechanism, q, rng)


def closed_anywhere(mechanism: Mechanism, rng: np.random.Generator) -> Floats | None:
    """A closed configuration next to a random one, in any branch and assembly mode; None where loops stay open."""
    own = measured(mechanism)
    q = random_configuration(own.mechanism, rng)
    home = closed_home(mechanism) / own.q
    for group in loop_groups(own.mechanism):
        place = descend(Place(own.mechanism, q, group), iterations=FAR_ITERATIONS)
        if not closes_like(place, Place(own.mechanism, home, group)):
            return None
        q = place.q
    return q * own.q


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
    found = descend(with_coordinates(place, anywhere), limits=limits)
    at_limit = limits is not None and limits.touched(found.q, place.group.entries)
    return found if is_closed(found) and not at_limit else None


def _far(place: Place, rng: np.random.Generator) -> Place | None:
    """A closed place reached from a random one, in any assembly mode, or None."""
    for attempt in range(FAR_TRIES):
        reach = 0.9**attempt
        there = place.moved(rng.uniform(-reach, reach, len(place.group.entries)))
        there = descend(there, iterations=FAR_ITERATIONS)
        if is_closed(there):
            return there
    return None


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
        held = there > group_tolerance(own, group) * there.max(initial=0.0)
        if (here[held] < least * there[held]).any():
            found += [names[member] for member in group.members]
    return found


@kept_with_first
def _usual_strengths(mechanism: Mechanism) -> list[Floats]:
    """How strongly each group holds at a random state."""
    return _strengths(mechanism, random_closed_state(mechanism, np.random.default_rng(0))[0])


def _strengths(mechanism: Mechanism, q: Floats) -> list[Floats]:
    """The singular values of each group's closure, in own units."""
    spectra = (np.linalg.svd(place.weighed, compute_uv=False) for place in places_at(mechanism, q))
    return [np.asarray(values, dtype=float) for values in spectra]


def _with_loose(mechanism: Mechanism, q: Floats, anywhere: Floats) -> Floats:
    """q with the joints that no loop or coupling holds at the coordinates of another configuration."""
    held = {joint.name for group in loop_groups(mechanism) for joint in group.joints}
    parts = [(q if joint.name in held else anywhere)[mechanism.q_slices[joint.name]] for joint in mechanism.joints]
    return stacked(parts)


# ---- assembly modes


@kept_with_first
def assembly_modes(mechanism: Mechanism) -> tuple[tuple[Floats, ...], ...]:
    """Configurations in own units in which each group's locked joints lie elsewhere, home first; one where all move.

    As many freedoms are left as at home. No motion leads from one to the other, so that they are sought from anywhere.
    """
    own, home = measured(mechanism).mechanism, home_of(mechanism)
    return tuple(_modes(Place(own, home.q, group)) for group in loop_groups(own))


def _modes(home: Place) -> tuple[Floats, ...]:
    locked = locked_joints(home)
    if not locked:
        return (home.q,)
    rng = np.random.default_rng(0)
    found, missed, held = [home.q], 0, rank(home)
    tries = min(MODE_TRIES, 2 * starts_for(home.group))  # some modes are reached from few places
    while missed < tries and len(found) < MOST_MODES:
        missed += 1
        start = with_coordinates(home, random_configuration(home.mechanism, rng))
        there = descend(start, iterations=FAR_ITERATIONS)
        is_new = all(_are_apart(locked, home.mechanism, there.q, q) for q in found)
        if is_new and closes_like(there, home) and rank(there) == held and set(locked) <= set(locked_joints(there)):
            found.append(there.q)
            missed = 0
    return tuple(found)


def _in_some_mode(mechanism: Mechanism, group: int, place: Place, rng: np.random.Generator) -> Place | None:
    """The place in one of its group's assembly modes, where there are several."""
    modes = assembly_modes(mechanism)[group]
    return with_coordinates(place, modes[rng.integers(len(modes))]) if len(modes) > 1 else None


def _are_apart(joints: Iterable[Joint], mechanism: Mechanism, q: Floats, other: Floats) -> bool:
    """Whether some of the joints hold their links elsewhere; whole turns are the same."""
    slices = mechanism.q_slices
    poses = [[joint_motion(joint, x[slices[joint.name]])[0] for x in (q, other)] for joint in joints]
    return any(np.abs(here - there).max() > APART for here, there in poses)
