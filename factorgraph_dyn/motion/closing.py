"""Closing: the configuration nearest to a given one at which all loops and couplings are closed.

    q  <-  q  (+)  x,      x = -J^+ e,      or, where that is too long,  x = -(J^T J + damping)^-1 J^T e

Gauss-Newton steps of least norm stay near the start, so that the assembly mode is kept; a radius that they are damped
to makes |e| fall with every step. They end where e is zero to rounding, or where it can fall no further to first
order (J^T e = 0): there the loops cannot be closed from here, and e is what is left at best. All is measured in the
mechanism's own size, and each group of loops that share joints is closed apart. Work is done once a state.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.model.loop_groups import Group, loop_groups
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closure import Constraint, constraints, group_jacobian, group_tolerance, row_weights
from factorgraph_dyn.motion.joint_limits import Limits
from factorgraph_dyn.spatial import Floats

# Lengths are in units of the mechanism's size.
CONVERGED = 1e-14  # error at which nothing is left to do
SETTLED = 1e-9  # error below which only whole steps are worth it: the rest is rounding
STATIONARY = 1e-6  # share of the error that a step must promise to take away
STALLED = 0.95, 10  # share of the error that may be left after so many steps
MAX_STEP = 0.5  # longest step of a freedom, so that the assembly mode is kept
MAX_ITERATIONS = 100
KEPT = 0.05  # share of the promised fall of the error that a step must keep
BISECTIONS = 30  # that find the damping
HALVINGS = 8  # of the radius where a step does not lower the error
NUDGES = 0.1, 0.3, 1.0  # how far beside a place from which no step leads on, such as a stretched arm, to start anew
WORK = 60  # constraints that are closed anew, all starts together, before a group counts as one that cannot close
TELLING = 1e-2  # tolerances up to this are proposed to the user: more is not a closed mechanism


class Place:
    """A group of constraints at a configuration in own units.

    Attributes:
        found: The constraints.
        error: What is open of them, shape (rows,).
        weights: What rows are multiplied by before they are weighed against each other, shape (rows,).
        size: Of the error, its rows so multiplied, as steps weigh them.
        total: Of the error as it is, which ends small, too.
    """

    def __init__(self, mechanism: Mechanism, q: Floats, group: Group) -> None:
        self.mechanism, self.q, self.group = mechanism, q, group
        self.found = constraints(mechanism, q, group.members)
        self.error = np.concatenate([constraint.error for constraint in self.found])
        self.weights = row_weights(self.found)
        self.size = float(np.linalg.norm(self.weights * self.error))
        self.total = float(np.linalg.norm(self.error))

    @cached_property
    def J(self) -> Floats:
        """The Jacobian at the group's entries, shape (rows, entries)."""
        return group_jacobian(self.found, self.group)

    @property
    def weighed(self) -> Floats:
        """The Jacobian with its rows multiplied by their weights."""
        return np.asarray(self.weights[:, None] * self.J)

    @property
    def tolerance(self) -> float:
        """The share of the largest singular value of that below which one is zero."""
        return group_tolerance(self.mechanism, self.group)

    @property
    def reach(self) -> float:
        """How far a step may go: couplings alone are linear."""
        return np.inf if all(constraint.directions is None for constraint in self.found) else MAX_STEP

    @cached_property
    def worst(self) -> Constraint:
        """The constraint that is farthest open."""
        return max(self.found, key=lambda constraint: max(constraint.gap))

    @property
    def opening(self) -> float:
        """How far that is: rad, or lengths in units of the mechanism's size."""
        return max(self.worst.gap)

    def moved(self, x: Floats) -> Place:
        """The place that a motion of the group's entries leads to."""
        v, q = np.zeros(self.mechanism.nv), self.q.copy()
        v[self.group.entries] = x
        for joint in self.group.joints:
            here = self.mechanism.q_slices[joint.name]
            q[here] = joint.type.moved(joint.axes, q[here], v[self.mechanism.v_slices[joint.name]])
        return Place(self.mechanism, q, self.group)


def close(mechanism: Mechanism, q: Floats, hold: tuple[str, ...] = (), tolerance: float | None = None) -> Floats:
    """The configuration nearest to q that closes everything, by Gauss-Newton with least-norm steps."""
    free = np.ones(mechanism.nv, dtype=bool)
    for name in hold:
        free[mechanism.v_slice(name)] = False
    held = f" with joints {', '.join(hold)} held" if hold else ""
    return close_freely(mechanism, q, free, tolerance, held)


def close_freely(
    mechanism: Mechanism, q: Floats, free: npt.NDArray[np.bool_], tolerance: float | None = None, held: str = ""
) -> Floats:
    """As `close`, moving some entries of v only.

    Args:
        mechanism: The mechanism.
        q: Where to start, shape (nq,).
        free: Which entries move, shape (nv,).
        tolerance: How far it may stay open; by default as far as the mechanism allows.
        held: What the others are called where it cannot close.
    """
    own = measured(mechanism)
    allowed = mechanism.closure_tolerance if tolerance is None else tolerance
    start = reached = q / own.q
    places = []
    for group in loop_groups(own.mechanism):
        places.append(_settled(Place(own.mechanism, reached, group), free, allowed))
        reached = places[-1].q
    closed = np.where(reached == start, q, reached * own.q)  # what did not move keeps its last digit
    if places and max(place.opening for place in places) > allowed:
        advice = "Start nearer to a closed configuration, hold fewer joints, or check the placements of the loop."
        raise cannot_close(mechanism, places, allowed, f" from this q{held}", advice, q=closed)
    return closed


def _settled(place: Place, free: npt.NDArray[np.bool_], allowed: float) -> Place:
    """Where Gauss-Newton ends, from here and, should that be open, from a little beside where it ended."""
    best = descend(place, free)
    rng = np.random.default_rng(0)
    moves = free[place.group.entries]
    for nudge in NUDGES[: starts_for(place.group)] if moves.any() else ():
        if best.opening <= allowed:
            break
        beside = best.moved(np.where(moves, nudge * rng.uniform(-1.0, 1.0, len(moves)), 0.0))
        best = min(best, descend(beside, free), key=lambda place: place.size)
    return best


def starts_for(group: Group) -> int:
    """How many new starts a group is worth: large ones get fewer, so that the truth takes no longer."""
    return max(1, WORK // len(group.members))


def descend(
    place: Place,
    free: npt.NDArray[np.bool_] | None = None,
    limits: Limits | None = None,
    iterations: int = MAX_ITERATIONS,
) -> Place:
    """Where Gauss-Newton ends from here.

    Args:
        place: Where to start, within the limits.
        free: Entries of v that may move, shape (nv,); all by default.
        limits: Bounds that every step keeps to.
        iterations: How many steps at most.
    """
    moves = np.ones(len(place.group.entries), dtype=bool) if free is None else free[place.group.entries]
    sizes, radius = [place.size], place.reach
    share, steps = STALLED
    while len(sizes) <= iterations and place.total > CONVERGED:
        following, radius = _lower(place, moves, limits, radius)
        if following is None:
            break
        place = following
        sizes.append(place.size)
        if len(sizes) > steps and sizes[-1] > share * sizes[-1 - steps]:
            break
    return place


def _lower(
    place: Place, moves: npt.NDArray[np.bool_], limits: Limits | None, radius: float
) -> tuple[Place | None, float]:
    """A place one step on at which the error is smaller, or None, and the radius for the next step."""
    settled = place.size <= SETTLED
    for _ in range(1 if settled else HALVINGS):
        x = _step(place, moves, limits, radius)
        promised = place.size - float(np.linalg.norm(place.weights * (place.error + place.J @ x)))
        if promised < STATIONARY * place.size:
            break
        there = place.moved(x)
        if there.total < 0.5 * place.total if settled else place.size - there.size > KEPT * promised:
            return there, min(2.0 * radius, place.reach)
        radius = 0.5 * min(radius, float(np.abs(x).max()))
    return None, radius


def _step(place: Place, moves: npt.NDArray[np.bool_], limits: Limits | None, radius: float) -> Floats:
    """The step that fits J x = -e best within the radius; entries that would leave their limits go as far as these."""
    x = np.zeros(len(moves))
    room = np.full((2, place.mechanism.nv), [[-np.inf], [np.inf]]) if limits is None else limits.room(place.q)
    least, most = (bound[place.group.entries] for bound in room)
    while True:
        target = -place.error - place.J[:, ~moves] @ x[~moves]
        x[moves] = _damped(place.weighed[:, moves], place.weights * target, place.tolerance, radius)
        out = moves & ((x < least) | (x > most))
        if not out.any():
            return x
        x = np.where(out, np.clip(x, least, most), x)
        moves = moves & ~out


def _damped(J: Floats, b: Floats, tolerance: float, radius: float) -> Floats:
    """The shortest x that fits J x = b best, damped until no entry is larger than the radius."""
    left, values, right = np.linalg.svd(J, full_matrices=False)
    kept = values > tolerance * values.max(initial=0.0)
    left, values, right = left[:, kept], values[kept], right[kept]
    along = values * (b @ left)

    def fit(damping: float) -> Floats:
        return np.asarray((along / (values**2 + damping)) @ right)

    x = fit(0.0)
    if np.abs(x).max(initial=0.0) <= radius:
        return x
    weak, strong = np.log(values[-1] ** 2) - 40.0, np.log(np.linalg.norm(along) / radius)
    for _ in range(BISECTIONS):
        middle = 0.5 * (weak + strong)
        if np.abs(fit(np.exp(middle))).max() > radius:
            weak = middle
        else:
            strong = middle
    return fit(np.exp(strong))


def cannot_close(
    mechanism: Mechanism, places: list[Place], allowed: float, tried: str, advice: str, **details: object
) -> ClosureError:
    """The error that names what stays open at best, by how much, and what can be done."""
    place = max(places, key=lambda place: place.opening)
    length, gap = measured(mechanism).length, place.worst.gap
    enough = float(f"{1.1 * place.opening:.1e}")
    if enough <= TELLING:
        advice += (
            f" To take it as closed, use mechanism.tolerate({enough:g}), in rad and parts of the mechanism's size "
            f"of {length:.3g} m."
        )
    return ClosureError(
        f"Mechanism {mechanism.name!r} cannot be closed{tried}: {place.worst.name!r} stays open by "
        f"{gap.text(length, allowed)}. {advice}",
        constraint=place.worst.name,
        distance=max(gap.angle, gap.distance * length),
        tolerance=enough,
        **details,
    )
