"""The states at which a kernel is proved once it is made.

Takes a mechanism; gives states of every sort that a user may come with, in the mechanism's own units:

    trees    neutral, quarter turns, many turns away, random; at rest, slow and fast
    loops    the states at which pivots were judged, and some that nobody has seen

Ordinary ones are random and no faster than usual: there a kernel has to answer. Loops may close in other branches, too,
as folded linkages do: there a kernel may be silent, but not wrong. The work runs once a kernel.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compiler.sampled_parameters import drawn_values, own_values
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.free import Free
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import Natural, natural, natural_rate
from factorgraph_dyn.motion.closed_places import freedoms, least_regularity
from factorgraph_dyn.motion.closure import nearest_velocity
from factorgraph_dyn.motion.random_states import closed_anywhere, closed_home
from factorgraph_dyn.spatial import Floats

SEED = 1789
_TREE_STATES = 24
_FEWEST_STATES = 8
_WORK = 1_600  # states times freedoms, beyond which there are fewer states
_UNSEEN = 4  # closed states are solved for one by one
_SAME_PLACE = 6  # digits in which angles and lengths agree
_ANYWHERE = 6  # starts from which loops are closed in any branch
_LEAST_REGULAR = 1e-2  # of home's regularity, for configurations at which loops are closed in any branch
_TURNED_AWAY = 40.0  # rad that joints without limits are turned away
_SPEEDS = (1.0, 0.0, 30.0, 1e-3)  # in parts of the usual speed


@dataclass(frozen=True, eq=False)
class Trials:
    """States to prove a kernel at.

    Attributes:
        q, v: The states, shapes (states, nq) and (states, nv).
        a: Accelerations of a usual size, shape (states, nv).
        ordinary: Where a kernel has to answer, shape (states,).
    """

    q: Floats
    v: Floats
    a: Floats
    ordinary: Mask


def make_trials(mechanism: Mechanism, rng: np.random.Generator) -> Trials:
    """The states to prove a kernel of a mechanism at."""
    units, rate = natural(mechanism), natural_rate(mechanism) or 1.0
    q, v, ordinary = _closed(mechanism) if mechanism.is_closed_kind else _free(units, rng)
    speeds = np.resize(_SPEEDS, len(q))
    speeds[ordinary] = np.resize(_SPEEDS[:2], ordinary.sum())
    a = rng.normal(size=v.shape) * units.v * rate**2
    return Trials(q, v * (speeds * rate)[:, None], a, ordinary)


def in_any_branch(mechanism: Mechanism) -> list[Trials]:
    """States in any branch of the loops, those that have as many freedoms together."""
    units, rate, rng = natural(mechanism), natural_rate(mechanism) or 1.0, np.random.default_rng(SEED)
    found = []
    for places in closed_by_mobility(mechanism).values():
        v = [nearest_velocity(mechanism, q, rng.normal(size=mechanism.nv) * units.v) for q in places]
        a = rng.normal(size=(len(places), mechanism.nv)) * units.v * rate**2
        found.append(Trials(np.array(places), np.array(v) * rate, a, np.zeros(len(places), dtype=bool)))
    return found


def make_free(mechanism: Mechanism, free: Free, states: int, rng: np.random.Generator) -> dict[str, Floats]:
    """Values of what is free at every state: the mechanism's own at every fourth one, others anywhere around them."""
    values = {}
    for name in free.arguments:
        values[name] = drawn_values(mechanism, name, free.links, states, rng)
        values[name][::4] = own_values(mechanism, name, free.links)
    return values


def _free(units: Natural, rng: np.random.Generator) -> tuple[Floats, Floats, Mask]:
    """States of a tree: special ones, then as many random ones."""
    mechanism = units.given
    count = int(np.clip(_WORK // mechanism.nv, _FEWEST_STATES, _TREE_STATES))
    drawn = [units.mechanism.random_configuration(rng) * units.q for _ in range(count)]
    for k, q in enumerate(drawn[: count // 2]):
        plain = _plain_coordinates(mechanism)
        if k % 4 == 3:
            q[plain] += rng.uniform(-_TURNED_AWAY, _TURNED_AWAY, plain.sum()) * units.q[plain]
        else:
            q[:] = mechanism.neutral()
            q[plain] += (k > 0) * rng.integers(-2, 3, plain.sum()) * np.pi / 2 * units.q[plain]
    v = rng.normal(size=(count, mechanism.nv)) * units.v
    return np.array(drawn), v, np.arange(count) >= count // 2


def _plain_coordinates(mechanism: Mechanism) -> Mask:
    """Which coordinates are numbers of their own and no part of a quaternion."""
    plain = [np.full(joint.nq, joint.nq == joint.nv) for joint in mechanism.joints]
    return np.concatenate([np.zeros(0, dtype=bool), *plain])


@kept_with_first
def closed_by_mobility(mechanism: Mechanism) -> dict[int, list[Floats]]:
    """The home and closed configurations next to random ones, in any branch, by how many freedoms closure leaves.

    Close to where branches meet, rounding of the configuration says which one it is of, and so what moves.
    """
    rng, home = np.random.default_rng(SEED), closed_home(mechanism)
    anywhere = [closed_anywhere(mechanism, rng) for _ in range(_ANYWHERE)]
    least = _LEAST_REGULAR * least_regularity(mechanism, home)
    found: dict[int, list[Floats]] = {}
    for q in (home, *(q for q in anywhere if q is not None and least_regularity(mechanism, q) > least)):
        found.setdefault(freedoms(mechanism, q), []).append(q)
    return found


@kept_with_first  # as for the states at which pivots are judged
def _closed(mechanism: Mechanism) -> tuple[Floats, Floats, Mask]:
    """States of a closed mechanism, at speeds of about 1: those at which pivots were judged, and unseen ones."""
    seen, rng = sampled_states(mechanism), np.random.default_rng(SEED)
    unseen: list[tuple[Floats, Floats]] = []
    with suppress(ClosureError):  # hard to close: the states that were found have to do
        unseen += [mechanism.random_state(rng) for _ in range(_UNSEEN)]
    q = np.array([*seen.q, *(q for q, _ in unseen)])
    v = np.array([*(seen.v / seen.rate), *(v for _, v in unseen)])
    ordinary = np.arange(len(q)) >= seen.special
    kept = ordinary | _first_of_a_place(q / natural(mechanism).q)
    return q[kept], v[kept], ordinary[kept]


def _first_of_a_place(q: Floats) -> Mask:
    """Which configurations, in own units, have none before them at the same place; whole turns are the same."""
    turned = np.round(np.concatenate([np.cos(q), np.sin(q)], axis=1), _SAME_PLACE) + 0.0
    _, first = np.unique(turned, axis=0, return_index=True)
    return np.isin(np.arange(len(q)), first)
