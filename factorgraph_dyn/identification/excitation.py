"""Motions that show what a mechanism weighs: periodic, within limits, well conditioned.

    q(t) = centre + sum over k of  s_k sin(k w t) + c_k cos(k w t)        w = 2 pi / duration
    v(0) = 0:  sum of k s_k = 0            a(0) = 0:  sum of k^2 c_k = 0

Every candidate is stretched until it reaches a limit of position, speed or acceleration, so that all are allowed; an
evolution strategy then looks for the least condition number of the regressor with columns of length one (Swevers et
al., 1997). A count of candidates and a seed determine the answer.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_count, check_path, check_positive, random_generator
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.equations.free import EFFECTS
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.base import Base, find_base
from factorgraph_dyn.identification.columns import Columns, make_columns
from factorgraph_dyn.identification.excitable import check_plain, limits_of
from factorgraph_dyn.identification.freedoms import Freedoms
from factorgraph_dyn.identification.progress import watched
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.sizes.carried import carried
from factorgraph_dyn.motion.joint_limits import limited
from factorgraph_dyn.motion.logs import joint_columns, write_log
from factorgraph_dyn.solve.trajectory import Trajectory, recorded
from factorgraph_dyn.spatial import Floats

PER_PERIOD = 12  # samples of the fastest harmonic
# Of each limit: between so many samples a sum of harmonics exceeds them by no more (Ehlich and Zeller, 1964).
WITHIN = float(np.cos(np.pi / PER_PERIOD))
WITHIN_EFFORT = 0.98  # torques are no such sums: the best motion's are looked at again, at so many times more samples,
FINER, WITHIN_FINER = 64, 0.999
SHRINK, MOST_SHRINKS = 0.98, 40  # and it is made smaller until they hold there
FIRST = 0.1  # share of the candidates that are drawn at random before the best is varied
FIRST_STEP = 0.5  # of the first variations, beside coefficients of order one
FASTER, SLOWER = 1.3, 0.93  # how steps grow where they help and shrink where not: one in five should help
TOO_STRONG = 10.0  # decades of condition for a torque of twice the limit


@dataclass(frozen=True, eq=False, repr=False)
class Excitation:
    """A periodic motion from rest.

    Attributes:
        mechanism: The mechanism.
        duration: Of a period, s.
        centre: The mean configuration, shape (nq,).
        sines, cosines: Coefficients of the harmonics, shape (harmonics, nv).
        condition: Condition number of the regressor of the unknowns, with columns of length one.
        candidates: How many motions were looked at.

    Examples:
        >>> motion = fgd.excitation(fgd.robots.pendulum(1), duration=4.0, candidates=20)
        >>> motion.sines.shape, motion.cosines.shape
        ((5, 1), (5, 1))
    """

    mechanism: Mechanism
    duration: float
    centre: Floats
    sines: Floats
    cosines: Floats
    condition: float
    candidates: int

    def q(self, t: npt.ArrayLike) -> Floats:
        """Coordinates at times, shape (..., nq)."""
        return self.centre + self._sum(t, 0)

    def v(self, t: npt.ArrayLike) -> Floats:
        """Velocities at times, shape (..., nv)."""
        return self._sum(t, 1)

    def a(self, t: npt.ArrayLike) -> Floats:
        """Accelerations at times, shape (..., nv)."""
        return self._sum(t, 2)

    def sampled(self, rate: float = 200.0) -> tuple[Floats, Floats, Floats, Floats]:
        """(t, q, v, a) over a period, ``rate`` times a second."""
        count = round(self.duration * check_positive(rate, "rate, samples a second,", InputError))
        t = np.linspace(0.0, self.duration, max(count, 1), endpoint=False)
        return t, self.q(t), self.v(t), self.a(t)

    def trajectory(self, rate: float = 200.0) -> Trajectory:
        """The motion with the torques that the mechanism needs for it."""
        t, q, v, a = self.sampled(rate)
        return recorded(self.mechanism, t, q, v, np.asarray(compile(self.mechanism, "inverse")(q, v, a)))

    def plot(self, path: str | Path | None = None) -> Any:
        """The motion and its torques over time as a Matplotlib figure, written to a file where a path is given."""
        return self.trajectory().plot(path)

    def save(self, path: str | Path, rate: float = 200.0) -> None:
        """Write t, q, v and a to a .csv or .npz file, as logs are, for a controller to follow."""
        t, q, v, a = self.sampled(rate)
        columns = {kind: joint_columns(self.mechanism, kind) for kind in ("q", "v", "a")}
        write_log(check_path(path, "path"), {"t": t, "q": q, "v": v, "a": a}, columns)

    def _sum(self, t: npt.ArrayLike, order: int) -> Floats:
        sines, cosines = harmonics(np.asarray(t, dtype=np.float64), len(self.sines), self.duration, order)
        return np.asarray(sines @ self.sines + cosines @ self.cosines)

    def __repr__(self) -> str:
        return (
            f"<Excitation of {self.mechanism.name!r}: {self.duration:g} s, {len(self.sines)} harmonics, "
            f"condition {self.condition:.3g} after {self.candidates} candidates>"
        )


def harmonics(t: Floats, count: int, duration: float, order: int) -> tuple[Floats, Floats]:
    """Sines and cosines of the harmonics, or their first or second derivatives, shape (..., count) each."""
    w = 2 * np.pi * np.arange(1, count + 1) / duration
    angle = w * t[..., None]
    s, c = np.sin(angle), np.cos(angle)
    turned = ((s, c), (c, -s), (-s, -c))[order]
    return np.asarray(w**order * turned[0]), np.asarray(w**order * turned[1])


def excitation(
    mechanism: Mechanism,
    *,
    duration: float = 10.0,
    harmonics: int = 5,
    links: str | Iterable[str] | None = None,
    effects: str | Iterable[str] = EFFECTS,
    velocity_limit: npt.ArrayLike | None = None,
    acceleration_limit: npt.ArrayLike | None = None,
    candidates: int = 1000,
    seed: int = 0,
    progress: bool | None = False,
) -> Excitation:
    """A periodic motion that determines the parameters well, from rest and within the joints' limits.

    Positions stay within ``joint.limits``, hinges without within a turn; speeds within ``joint.velocity_limit`` or,
    without, that at which the mechanism falls; torques, by the mechanism's own parameters, within
    ``joint.effort_limit``. Ctrl-C ends the search and keeps the best motion so far.

    Args:
        mechanism: A tree of joints with plain coordinates.
        duration: Of a period, s.
        harmonics: Number of sines and cosines a joint, 2 or more.
        links: Links whose parameters are to be identified, as ``fgd.identify`` takes them.
        effects: What of joints is to be identified, likewise.
        velocity_limit: Speeds that are allowed, rad/s or m/s, a number or shape (nv,).
        acceleration_limit: Accelerations that are allowed, likewise; unlimited by default.
        candidates: How many motions are looked at.
        seed: Of the search.
        progress: Whether to show a bar on standard error; None means where there is a terminal.

    Raises:
        InputError: Loops or joints without plain coordinates, limits that are not positive, or torques that no
            candidate keeps within.

    Examples:
        >>> motion = fgd.excitation(fgd.robots.pendulum(1), duration=4.0, candidates=20)
        >>> motion.duration, motion.condition < 100
        (4.0, True)
    """
    columns = make_columns(check_mechanism(mechanism), links, effects)
    check_plain(mechanism)
    room = _Room(
        mechanism,
        check_positive(duration, "duration", InputError),
        check_count(harmonics, "harmonics", 2),
        limits_of(mechanism, velocity_limit, "velocity_limit"),
        limits_of(mechanism, acceleration_limit, "acceleration_limit"),
    )
    judge = _Judge(columns, room)
    shown = watched(range(check_count(candidates, "candidates")), "motions", progress)
    best, cost, looked_at = _search(judge, random_generator(seed, "seed"), room, shown, candidates)
    if not np.isfinite(cost) or judge.strain(best) > 1.0:
        raise InputError(judge.too_strong(judge.strains(best)))
    sines, cosines = room.coefficients(best)
    for _ in range(MOST_SHRINKS):
        motion = Excitation(mechanism, room.duration, room.centre, sines, cosines, np.inf, looked_at)
        strains = judge.strains_between(motion)
        if (strains <= 1.0).all():
            return replace(motion, condition=judge.condition_of(room.samples_of(sines, cosines)))
        sines, cosines = SHRINK * sines, SHRINK * cosines
    raise InputError(judge.too_strong(strains))


@dataclass(frozen=True, eq=False)
class _Room:
    """What motions may be: numbers of order one become coefficients within limits."""

    mechanism: Mechanism
    duration: float
    count: int  # harmonics
    velocity: Floats
    acceleration: Floats

    @cached_property
    def centre(self) -> Floats:
        """The middle of the limits, where there are two; else the neutral place."""
        q = self.mechanism.neutral().copy()
        for joint in self.mechanism.movable_joints:
            if (bounds := limited(joint)) is not None and np.isfinite(bounds).all():
                q[self.mechanism.q_slices[joint.name]] = 0.5 * sum(bounds)
        return q

    @cached_property
    def reach(self) -> Floats:
        """How far each freedom may go from the centre, shape (nv,)."""
        mechanism = self.mechanism
        free = np.concatenate([j.freedom_units(mechanism.size / 2 / np.pi) for j in mechanism.movable_joints]) * np.pi
        for joint in mechanism.movable_joints:
            if (bounds := limited(joint)) is not None:
                place = mechanism.v_slices[joint.name]
                apart = np.abs(np.array(bounds) - self.centre[mechanism.q_slices[joint.name]])
                free[place] = np.minimum(free[place], apart.min())
        return free

    @cached_property
    def t(self) -> Floats:
        """Times at which motions are looked at."""
        return np.linspace(0.0, self.duration, PER_PERIOD * self.count, endpoint=False)

    @cached_property
    def waves(self) -> tuple[tuple[Floats, Floats], ...]:
        """Sines and cosines at these times, and their derivatives."""
        return tuple(harmonics(self.t, self.count, self.duration, order) for order in range(3))

    @cached_property
    def from_rest(self) -> tuple[Floats, Floats]:
        """Bases of the sines and cosines that begin at rest, shape (harmonics, harmonics - 1)."""
        k = np.arange(1.0, self.count + 1)
        sines, cosines = (np.linalg.svd((k**power)[None])[2][1:].T for power in (1, 2))
        return np.asarray(sines), np.asarray(cosines)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Of the numbers that make a motion: sines and cosines, and how large of what is allowed in the last row."""
        return (2, self.count, self.mechanism.nv)

    def coefficients(self, numbers: Floats) -> tuple[Floats, Floats]:
        """Sines and cosines of the motion that numbers of order one stand for."""
        sines, cosines = (basis @ part[:-1] for basis, part in zip(self.from_rest, numbers, strict=True))
        allowed = (self.reach, self.velocity, self.acceleration)
        size = np.full(self.mechanism.nv, np.inf)
        for (s, c), limit in zip(self.waves, allowed, strict=True):
            most = np.abs(s @ sines + c @ cosines).max(axis=0)
            size = np.minimum(size, limit / np.where(most > 0, most, np.inf))
        share = 0.5 + 0.5 / (1.0 + numbers[0, -1] ** 2)  # at least half of what is allowed
        size = WITHIN * share * np.where(np.isfinite(size), size, 0.0)
        return sines * size, cosines * size

    def samples(self, numbers: Floats) -> Samples:
        """The motion at some times, without torques."""
        return self.samples_of(*self.coefficients(numbers))

    def samples_of(self, sines: Floats, cosines: Floats) -> Samples:
        """The motion of these coefficients, likewise."""
        q, v, a = (s @ sines + c @ cosines for s, c in self.waves)
        return Samples(self.centre + q, v, a, np.zeros_like(v))


@dataclass(frozen=True, eq=False)
class _Judge:
    """How good motions are."""

    columns: Columns
    room: _Room

    @cached_property
    def base(self) -> Base:
        """The base parameters of the unknowns."""
        mechanism = self.columns.mechanism
        return find_base(self.columns, Freedoms(mechanism, tuple(range(mechanism.nv))))

    @cached_property
    def sizes(self) -> Floats:
        """Torques that are usual at each freedom, shape (nv,)."""
        mechanism = self.columns.mechanism
        return np.concatenate([carried(mechanism)[joint.name].torque(joint) for joint in mechanism.movable_joints])

    @cached_property
    def efforts(self) -> Floats:
        """Torques that motors have, shape (nv,)."""
        joints = self.columns.mechanism.movable_joints
        return np.concatenate([np.broadcast_to(joint.effort_limit, joint.nv) for joint in joints])

    def cost(self, numbers: Floats) -> float:
        """Decades of condition, and what torques beyond the limits count for."""
        return float(np.log10(self.condition(numbers))) + TOO_STRONG * max(self.strain(numbers) - 1.0, 0.0)

    def condition(self, numbers: Floats) -> float:
        """The condition number of the regressor with columns of length one; infinite where data leave some out."""
        return self.condition_of(self.room.samples(numbers))

    def condition_of(self, samples: Samples) -> float:
        """That of a motion."""
        X = self.columns.regressor(samples)[:, :, list(self.base.kept)] / self.sizes[:, None]
        R: Floats = np.asarray(np.linalg.qr(X.reshape(-1, len(self.base)), mode="r"))
        lengths = np.linalg.norm(R, axis=0)
        values = np.linalg.svd(R / np.where(lengths > 0, lengths, 1.0), compute_uv=False)
        return float(values[0] / values[-1]) if values[-1] > 0 else np.inf

    def strain(self, numbers: Floats) -> float:
        """The largest torque beside what the motors have."""
        return float(self.strains(numbers).max(initial=0.0))

    def strains(self, numbers: Floats) -> Floats:
        """The largest torque of each freedom beside what its motor has, shape (nv,)."""
        samples = self.room.samples(numbers)
        return self._strains(samples.q, samples.v, samples.a, WITHIN_EFFORT)

    def strains_between(self, motion: Excitation) -> Floats:
        """The same between the samples of the search, too."""
        t = np.linspace(0.0, motion.duration, FINER * len(self.room.t), endpoint=False)
        return self._strains(motion.q(t), motion.v(t), motion.a(t), WITHIN_FINER)

    def too_strong(self, strains: Floats) -> str:
        """Why the best motion is not good enough."""
        mechanism = self.columns.mechanism
        weak = [
            f"{joint.name} ({100 * strains[mechanism.v_slices[joint.name]].max():.0f} %)"
            for joint in mechanism.movable_joints
            if strains[mechanism.v_slices[joint.name]].max() > 1.0
        ]
        if not weak:
            return "No motion that was looked at determines all base parameters; allow more harmonics or candidates."
        return (
            f"No motion that was looked at keeps torques within effort_limit: joints {', '.join(weak)}. Give a longer "
            "duration, a lower velocity_limit or more candidates."
        )

    def _strains(self, q: Floats, v: Floats, a: Floats, within: float) -> Floats:
        if np.isinf(self.efforts).all():
            return np.zeros_like(self.efforts)
        return np.asarray(np.abs(self._kernel(q, v, a)).max(axis=0) / (within * self.efforts))

    @cached_property
    def _kernel(self) -> Any:
        return compile(self.columns.mechanism, "inverse")


def _search(
    judge: _Judge, rng: np.random.Generator, room: _Room, rounds: Iterable[int], candidates: int
) -> tuple[Floats, float, int]:
    """The best numbers, their cost and how many were looked at: random ones first, then variations of the best."""
    best, cost, step, looked_at = np.zeros(room.shape), np.inf, FIRST_STEP, 0
    try:
        for k in rounds:
            drawn = rng.normal(size=room.shape)
            numbers = drawn if k < FIRST * candidates else best + step * drawn
            found, looked_at = judge.cost(numbers), k + 1
            better = found < cost
            if k >= FIRST * candidates:
                step *= FASTER if better else SLOWER
            if better:
                best, cost = numbers, found
    except KeyboardInterrupt:
        if not looked_at:
            raise
    return best, cost, looked_at
