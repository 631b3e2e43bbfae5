"""The states at which a kernel is tried while it is made.

Takes a mechanism; gives states at which pivots are judged. The first ones are special:

    all      the neutral configuration and quarter turns from it, where pivots that are fine elsewhere vanish
    loops    their own joints at zero, two hinges after the other at quarter turns, and any assembly mode, where values
             that are zero in the usual one are not

The rest are random; all are closed where there are loops, with as many freedoms, and loops that are locked are in every
assembly mode that was found. The work runs once a kernel.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.compiler.sampled_parameters import DRAWN, drawn_values, own_values
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.sizes.units import measured, natural, natural_rate
from factorgraph_dyn.motion.closed_places import freedoms, is_closed, moving
from factorgraph_dyn.motion.closing import Place, descend
from factorgraph_dyn.motion.closure import closing_errors, nearest_velocity
from factorgraph_dyn.motion.random_states import (
    FAR_ITERATIONS,
    closed_at_zero,
    closed_home,
    far_closed_state,
    keeps_freedoms,
    random_closed_state,
)
from factorgraph_dyn.spatial import Floats, stacked

_SPECIAL = 16  # states that look singular, of which those of trees are quarter turns
ORDINARY = 24
_FAR = 4  # special states of loops in any assembly mode
_LOOPS_AT_ZERO = 2  # that are brought there one by one
_MOST_NEAT = 40  # special states with hinges of loops at quarter turns, which many cannot reach
_LEAST_OPENING = 1e-15  # rad, and parts of the mechanism's length
# Samples of loops go farther than random states do, so that kernels have a margin.
WIDE = 1.5  # rad, or parts of the mechanism's size


@dataclass(frozen=True, eq=False)
class States:
    """Configurations q, shape (states, nq), and velocities v, shape (states, nv).

    Attributes:
        q_error, v_error: By how much they may miss what they stand for, in the same shapes: a state that closes
            loops does so up to rounding, which moves joints of nearly parallel axes far.
        rate: The mechanism's own, 1/s, at which v and what is drawn are of a usual size; 1 where it has none.
        special: How many of the first states are special.
    """

    mechanism: Mechanism
    q: Floats
    v: Floats
    q_error: Floats
    v_error: Floats
    rate: float
    special: int

    def __len__(self) -> int:
        return len(self.q)

    def of(self, argument: str, size: int, links: Sequence[str] = ()) -> tuple[Floats, Floats]:
        """Values of an argument of a kernel and their errors, shape (size, states); what is no state is drawn.

        Args:
            argument: Its name.
            size: How many numbers it has.
            links: Whose inertial parameters are an argument.
        """
        if argument in ("q", "v"):
            return (self.q.T, self.q_error.T) if argument == "q" else (self.v.T, self.v_error.T)
        seed = int.from_bytes(argument.encode(), "little")  # all of the name: wrenches on two links are two values
        rng, exact = np.random.default_rng(seed), np.zeros((size, len(self)))
        if split_name(argument)[0] in DRAWN:
            return self._parameters(argument, links, rng).reshape(len(self), size).T, exact
        own = natural(self.mechanism)
        unit = {"a": own.v, "tau": own.tau, "values": np.ones(size)}.get(argument, own.wrench)
        return rng.normal(size=exact.shape) * unit[:, None] * self.rate**2, exact

    def _parameters(self, argument: str, links: Sequence[str], rng: np.random.Generator) -> Floats:
        """Parameters around the mechanism's own, which they are at half of the special states."""
        values = drawn_values(self.mechanism, argument, links, len(self), rng)
        values[: self.special // 2] = own_values(self.mechanism, argument, links)
        return values


def sampled_states(mechanism: Mechanism, seed: int = 0) -> States:
    """The states at which pivots are judged, the special ones first; another seed draws others."""
    return _drawn(mechanism, seed)


@kept_with_first  # closed states are solved for one by one; the seed in one place only, as the cache tells calls
def _drawn(mechanism: Mechanism, seed: int) -> States:
    rng, is_closed, speeds = np.random.default_rng(seed), mechanism.is_closed_kind, measured(mechanism).v
    places = [_turned(mechanism, rng, turns) for turns in range(_SPECIAL - _FAR * is_closed)]
    anywhere = partial(random_closed_state, farthest=WIDE, any_mode=True) if is_closed else Mechanism.random_state
    ordinary = [anywhere(mechanism, rng) for _ in range(ORDINARY)]
    if is_closed:
        places += closed_at_zero(mechanism, _LOOPS_AT_ZERO) + _neat_places(mechanism, [q for q, _ in ordinary], rng)
    special = [(q, nearest_velocity(mechanism, q, rng.normal(size=mechanism.nv) * speeds)) for q in places]
    special += [far_closed_state(mechanism, rng) for _ in range(_FAR * is_closed)]
    states = special + ordinary
    states = _of_one_mobility(mechanism, states) if is_closed else states
    q, v = (np.array(values) for values in zip(*states, strict=True))
    return _with_errors(mechanism, q, v, len(special))


def _of_one_mobility(mechanism: Mechanism, states: list[tuple[Floats, Floats]]) -> list[tuple[Floats, Floats]]:
    """The states, with ordinary ones in place of those that closure leaves more or fewer freedoms than most of these.

    What vanishes in one branch of the loops need not in another: a kernel is for one, and tells the others. Where
    other joints move, too, an ordinary state is of another branch; at a special one a joint may stand still for an
    instant.
    """
    counts = [freedoms(mechanism, q) for q, _ in states]
    drawn = [(count, moving(mechanism, q).tobytes()) for count, (q, _) in zip(counts, states, strict=True)][-ORDINARY:]
    usual, _ = Counter(drawn).most_common(1)[0]
    kept = [count == usual[0] for count in counts[:-ORDINARY]] + [kind == usual for kind in drawn]
    ordinary = cycle([state for state, keep in zip(states, kept, strict=True) if keep][-drawn.count(usual) :])
    return [state if keep else next(ordinary) for state, keep in zip(states, kept, strict=True)]


def _with_errors(mechanism: Mechanism, q: Floats, v: Floats, special: int) -> States:
    """The states, with velocities of about 1 brought to the mechanism's own rate."""
    rate = natural_rate(mechanism) or 1.0
    if not mechanism.is_closed_kind:
        return States(mechanism, q, v * rate, np.zeros_like(q), np.zeros_like(v), rate, special)
    own = measured(mechanism)
    position, speed = np.zeros_like(q), np.zeros_like(v)
    for k, (x, u) in enumerate(zip(q / own.q, v / own.v, strict=True)):
        moved, speed[k] = closing_errors(own.mechanism, x, u, _LEAST_OPENING)
        position[k] = _of_coordinates(mechanism, moved)
    return States(mechanism, q, v * rate, position * own.q, speed * own.v * rate, rate, special)


def _of_coordinates(mechanism: Mechanism, freedoms: Floats) -> Floats:
    """What is known of each freedom, for each coordinate: of those that outnumber freedoms, the joint's largest."""
    parts = [(joint, freedoms[mechanism.v_slices[joint.name]]) for joint in mechanism.movable_joints]
    return stacked(part if joint.nq == joint.nv else np.full(joint.nq, part.max()) for joint, part in parts)


def _turned(mechanism: Mechanism, rng: np.random.Generator, turns: int) -> Floats:
    """The neutral configuration, and for other turns than 0 quarter turns from it of what no loop or coupling holds."""
    q = closed_home(mechanism) if mechanism.is_closed_kind else mechanism.neutral()
    held = {joint for group in loop_groups(mechanism) for joint in group.joints}
    units = natural(mechanism).q
    for joint in mechanism.movable_joints:
        if turns and joint.nq == joint.nv and joint not in held:
            here = mechanism.q_slices[joint.name]
            q[here] += rng.integers(-1, 2, joint.nq) * np.pi / 2 * units[here]
    return q


def _neat_places(mechanism: Mechanism, starts: list[Floats], rng: np.random.Generator) -> list[Floats]:
    """Closed configurations that have angles within loops at quarter turns, as far as they get there.

    Two at a time, as files are full of such angles; every angle at every quarter turn, while places are left: a pivot
    that vanishes at one of them is seen nowhere else.

    Args:
        mechanism: The mechanism.
        starts: Closed configurations of which the next ones are sought.
        rng: Of the order in which angles are tried.
    """
    found: list[Floats] = []
    home, wishes = closed_home(mechanism), _quarters_in_loops(mechanism)
    left = [wishes[k] for k in rng.permutation(len(wishes))][: 2 * _MOST_NEAT]
    for start in cycle(starts):
        if not left or len(found) == _MOST_NEAT:
            break
        wish = left.pop(0)
        beside = next((other for other in left if other.entry != wish.entry), None)
        for together in ([wish, beside], [wish]) if beside else ([wish],):
            q = _turned_to(mechanism, start, together)
            if q is not None and keeps_freedoms(mechanism, q, home):
                found.append(q)
                left = [other for other in left if other not in together]
                break
    return found


def _turned_to(mechanism: Mechanism, q: Floats, wishes: Sequence[Wish]) -> Floats | None:
    """The closed configuration near q that has some angles as wished; None where there is none."""
    own, free = measured(mechanism), np.ones(mechanism.nv, dtype=bool)
    q = q / own.q
    for wish in wishes:
        q[wish.place], free[wish.entry] = wish.angle, False
    for group in loop_groups(own.mechanism):
        place = descend(Place(own.mechanism, q, group), free, iterations=FAR_ITERATIONS)
        if not is_closed(place):
            return None
        q = place.q
    return q * own.q


class Wish(NamedTuple):
    """An angle of a joint within a loop: its place in v and in q, and what it is to be."""

    entry: int
    place: int
    angle: float


def _quarters_in_loops(mechanism: Mechanism) -> list[Wish]:
    """Every angle of a joint within a loop at every quarter turn."""
    angles = [
        (mechanism.v_slices[joint.name].start + int(k), mechanism.q_slices[joint.name].start + int(k))
        for group in loop_groups(mechanism)
        for joint in group.joints
        if joint.nq == joint.nv
        for k in np.flatnonzero(joint.turns)
    ]
    return [Wish(entry, place, turns * np.pi / 2) for entry, place in angles for turns in range(-1, 3)]
