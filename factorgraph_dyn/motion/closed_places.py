"""Closed places of one group of loops and couplings: how regular they are, and which lie along the freedoms of another.

Takes a group at a configuration in own units; gives others, and what can move there. Work is done once a place.
"""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closing import Place, descend
from factorgraph_dyn.motion.closure import faint_values
from factorgraph_dyn.motion.joint_limits import Limits, limited, reflected
from factorgraph_dyn.spatial import Floats, stacked

Mask = npt.NDArray[np.bool_]

RANDOM_TRIES = 20
RANDOM_REACH = 1.0  # from home, rad or the mechanism's size
REACH_SHRINKS = 0.85  # with every try
FITS = 1e-11  # rad, and parts of the mechanism's size: what is open by less is closed up to rounding
ALMOST = 1e3  # times as far open as at home
REGULAR_ENOUGH = 1e-2  # least singular value over the largest of a state that needs no better one
REGULAR_TRIES = 3


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


def places_at(mechanism: Mechanism, q: Floats) -> list[Place]:
    """Every group of a mechanism at a configuration in the units of the caller."""
    own = measured(mechanism)
    return [Place(own.mechanism, q / own.q, group) for group in loop_groups(own.mechanism)]


def is_closed(place: Place) -> bool:
    """Whether a group is closed as well as its mechanism demands."""
    return place.opening <= place.mechanism.closure_tolerance


def closes_like(place: Place, home: Place) -> bool:
    """Whether a group is closed about as well as at home: parts that almost fit elsewhere, too, do not fit there."""
    return is_closed(place) and place.opening <= max(ALMOST * home.opening, FITS)


def freely(place: Place, x: Floats) -> Floats:
    """The motion nearest to x that keeps a closed place closed, to first order."""
    return np.asarray(x - np.linalg.lstsq(place.weighed, place.weighed @ x, rcond=place.tolerance)[0])


def regularity(place: Place) -> float:
    """The least singular value of the closure that is not zero, as a share of the largest."""
    values = np.linalg.svd(place.weighed, compute_uv=False)
    shares = values / max(values.max(initial=0.0), np.finfo(float).tiny)
    return float(shares[shares > place.tolerance].min(initial=1.0))


def least_regularity(mechanism: Mechanism, q: Floats) -> float:
    """The regularity of a mechanism's least regular group at a configuration."""
    return min(map(regularity, places_at(mechanism, q)), default=1.0)


def rank(place: Place) -> int:
    """How many motions closure takes away."""
    return int(np.linalg.matrix_rank(place.weighed, rtol=place.tolerance))


def faint_hold(place: Place, rounding: float) -> float:
    """The largest share of what closure may hold motions by that it holds one by and that counts as none; 0 without.

    Args:
        place: A group of loops at a configuration.
        rounding: The share up to which one is rounding.
    """
    _, values, _ = np.linalg.svd(place.weighed)
    shares, faint = faint_values(values, place.tolerance, rounding)
    return float(shares[faint].max(initial=0.0))


def freedoms(mechanism: Mechanism, q: Floats) -> int:
    """How many motions closure leaves a mechanism at a configuration."""
    return mechanism.nv - sum(map(rank, places_at(mechanism, q)))


def locked_joints(place: Place) -> list[Joint]:
    """Joints that closure leaves no freedom."""
    still, slices = _still(place), place.mechanism.v_slices
    return [joint for joint in place.group.joints if still[slices[joint.name]].all()]


def moving(mechanism: Mechanism, q: Floats) -> Mask:
    """Which freedoms closure leaves a motion at a configuration, shape (nv,)."""
    still = np.zeros(mechanism.nv, dtype=bool)
    for place in places_at(mechanism, q):
        still |= _still(place)
    return ~still


def _still(place: Place) -> Mask:
    """Which freedoms a group leaves no motion, shape (nv,)."""
    still = np.zeros(place.mechanism.nv, dtype=bool)
    still[place.group.entries] = np.abs(_motions(place)).max(axis=0, initial=0.0) <= place.tolerance
    return still


def drive_all(mechanism: Mechanism, q: Floats, motors: Mask) -> bool:
    """Whether motors can cause every motion that closure leaves a mechanism at a configuration.

    Args:
        mechanism: The mechanism.
        q: Where, closed.
        motors: Which entries of v have one, shape (nv,).
    """
    own, lacking = measured(mechanism), ~motors
    for group in loop_groups(own.mechanism):
        place = Place(own.mechanism, q / own.q, group)
        motions = _motions(place)
        if np.linalg.matrix_rank(motions[:, motors[group.entries]], tol=place.tolerance) < len(motions):
            return False
        lacking[group.entries] = False
    return not lacking.any()


def _motions(place: Place) -> Floats:
    """An orthonormal basis of the motions that closure leaves a group, shape (motions, entries)."""
    _, values, rows = np.linalg.svd(place.weighed)
    return np.asarray(rows[int((values > place.tolerance * values.max(initial=0.0)).sum()) :])


def with_coordinates(place: Place, q: Floats, but: Collection[Joint] = ()) -> Place:
    """The place with its own joints, but for some, at the coordinates of another configuration."""
    moved = place.q.copy()
    for joint in place.group.joints:
        if joint not in but:
            here = place.mechanism.q_slices[joint.name]
            moved[here] = q[here]
    return Place(place.mechanism, moved, place.group)


def along_freedoms(place: Place, limits: Limits | None, rng: np.random.Generator, farthest: float) -> Place:
    """The first regular closed place of a few that lie along random freedoms of a closed one, or the best of them."""
    found: list[Place] = []
    for attempt in range(RANDOM_TRIES):
        reach = farthest * REACH_SHRINKS**attempt
        there = place.moved(freely(place, rng.uniform(-reach, reach, len(place.group.entries))))
        if limits is not None:
            there = with_coordinates(place, limits.reflected(there.q))
        there = descend(there, limits=limits)
        if is_closed(there):
            found.append(there)
            if len(found) == REGULAR_TRIES or regularity(there) > REGULAR_ENOUGH:
                break
    return max(found, key=regularity, default=place)
