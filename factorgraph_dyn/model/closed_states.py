"""Random states of mechanisms with loops and couplings.

Takes a mechanism and a generator; gives configurations that are closed and velocities that keep them so. They set
out from the neutral configuration along its freedoms, and Gauss-Newton steps close what is left. The work runs once a
state: some milliseconds.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.model.closure import CLOSED, close, closure_error, nearest_velocity
from factorgraph_dyn.model.kinematics import integrate
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

RANDOM_TRIES = 100
RANDOM_REACH = 1.0  # rad or m, from the neutral configuration
FAR_TRIES = 10
FAR_ITERATIONS = 40  # those that take longer end where loops are singular


def random_closed_state(
    mechanism: Mechanism, rng: np.random.Generator, farthest: float = RANDOM_REACH
) -> tuple[Floats, Floats]:
    """A random closed configuration and a random velocity that keeps it closed.

    Configurations are reached from the neutral one along its freedoms, and so are of its assembly mode; they
    respect finite limits unless the neutral one breaks them.

    Args:
        mechanism: The mechanism.
        rng: Source of chance.
        farthest: How far to go from the neutral configuration, rad or m a joint.
    """
    home = _closed_home(mechanism, rng)
    heed_limits = within_limits(mechanism, home)
    for attempt in range(RANDOM_TRIES):
        reach = farthest * 0.9**attempt
        way = nearest_velocity(mechanism, home, rng.uniform(-reach, reach, mechanism.nv))
        try:
            q = close(mechanism, integrate(mechanism, home, way))
        except ClosureError:
            continue
        if heed_limits and not within_limits(mechanism, q):
            continue
        v = nearest_velocity(mechanism, q, rng.normal(size=mechanism.nv))
        if closure_error(mechanism, q, v) <= CLOSED:
            return q, v
    raise ClosureError(
        f"No closed configuration of mechanism {mechanism.name!r} was found in {RANDOM_TRIES} tries "
        "near its neutral one. Check the placements of its loops."
    )


def far_closed_state(mechanism: Mechanism, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """As `random_closed_state`, but in any assembly mode and whatever the limits; may be close to singular."""
    neutral = np.concatenate([np.zeros(0), *(joint.type.neutral() for joint in mechanism.joints)])
    for attempt in range(FAR_TRIES):
        reach = 0.9**attempt
        try:
            start = integrate(mechanism, neutral, rng.uniform(-reach, reach, mechanism.nv))
            q = close(mechanism, start, iterations=FAR_ITERATIONS)
        except ClosureError:
            continue
        v = nearest_velocity(mechanism, q, rng.normal(size=mechanism.nv))
        if closure_error(mechanism, q, v) <= CLOSED:
            return q, v
    return random_closed_state(mechanism, rng)


def _closed_home(mechanism: Mechanism, rng: np.random.Generator) -> Floats:
    """The neutral configuration if it can be closed, else a closed one found by chance."""
    try:
        return mechanism.neutral()
    except ClosureError as error:
        hopeless = error
    for _ in range(RANDOM_TRIES):
        try:
            return close(mechanism, mechanism.random_configuration(rng))
        except ClosureError:
            continue
    raise hopeless


def within_limits(mechanism: Mechanism, q: Floats) -> bool:
    """Whether every coordinate is within its joint's limits, to rounding."""
    for joint in mechanism.movable_joints:
        if joint.limits is not None and joint.nq == 1:
            value = float(q[mechanism.q_slices[joint.name]][0])
            if not joint.limits[0] - CLOSED <= value <= joint.limits[1] + CLOSED:
                return False
    return True
