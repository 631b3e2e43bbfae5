"""What motions do that is not modelled yet: they leave limits of joints, and reverse under Coulomb friction.

    limits      joints have no stops: a coordinate beyond its limits moves on
    friction    opposes the sign of the velocity and is never static: where a joint should stick, its velocity changes
                sign from step to step

Takes states of a motion, one by one or many; gives sentences that name the first joint and its time, for a warning. The
work runs once a step of a simulation, or once a call for many rollouts: of large ones some states are looked at, so
that it takes some percent of their time.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.motion.closed_places import FITS
from factorgraph_dyn.motion.joint_limits import Limits, limits_of
from factorgraph_dyn.spatial import Floats, stacked

ALL_LOOKED_AT = 2**16  # numbers of recorded states up to which all of them are looked at
ONE_IN = 16  # recorded states of more

_Mask = npt.NDArray[np.bool_]


@dataclass(frozen=True, eq=False)
class Watch:
    """What of a mechanism's motions has to be watched.

    Attributes:
        mechanism: What moves.
        limits: Bounds of its coordinates, wider than given by what counts as rounding.
        rubbing: Which entries of v Coulomb friction acts on, shape (nv,).
    """

    mechanism: Mechanism
    limits: Limits
    rubbing: _Mask

    def beyond(self, q: Floats) -> _Mask:
        """Which bounded coordinates are out of bounds, shape (..., bounded)."""
        here = q[..., self.limits.coordinates]
        outside: _Mask = (here < self.limits.lower) | (here > self.limits.upper)
        return outside

    def of_limits(self, q: Floats, when: str) -> str:
        """The sentences on a state beyond limits."""
        place = self.limits.coordinates[int(np.argmax(self.beyond(q)))]
        joint = next(j for j in self.mechanism.movable_joints if self.mechanism.q_slices[j.name].start == place)
        assert joint.limits is not None
        lower, upper = joint.limits
        return (
            f"Joint {joint.name!r} of mechanism {self.mechanism.name!r} is beyond its limits {lower:.6g} to "
            f"{upper:.6g} {when}: q = {q[place]:.6g}. Stops are not modelled, and the joint moves on. Choose torques "
            "that keep it within its limits, or end the motion there."
        )

    def of_friction(self, reversing: _Mask, when: str) -> str:
        """The sentences on velocities that change their signs under friction, shape (nv,)."""
        entry, slices = int(np.argmax(reversing)), self.mechanism.v_slices
        name = next(name for name in self.mechanism.joint_names if slices[name].start <= entry < slices[name].stop)
        return (
            f"The velocity of joint {name!r} of mechanism {self.mechanism.name!r}, on which Coulomb friction acts, "
            f"changes its sign {when}. Sticking is not modelled: where the joint should rest, its velocity changes "
            "sign from step to step, by up to friction times step over inertia. Use damping where rest matters."
        )

    def along(
        self, times: Floats, q: Floats, v: Floats, batch: tuple[int, ...], friction: Mapping[str, Floats]
    ) -> Iterator[str]:
        """What is to be said about rollouts.

        Args:
            times: Of the recorded states, s, shape (rows,).
            q, v: The recorded states, shapes (count, rows, nq) and (count, rows, nv).
            batch: The axes of the rollouts.
            friction: Of the joints that rollouts have their own of, shape (count, freedoms) each.
        """

        def when(row: int, k: int) -> str:
            which = f" in rollout {tuple(int(i) for i in np.unravel_index(k, batch))}" if batch else ""
            return f"at t = {times[row]:.6g} s{which}"

        k = self._first_outside(q) if len(self.limits.coordinates) and q.size else None
        if k is not None:
            row = int(np.argmax(self.beyond(q[k]).any(axis=-1)))
            yield self.of_limits(q[k, row], when(row, k))
        if not friction and not self.rubbing.any():
            return
        acts = self._acts(len(v), friction)
        k = _first_reversing(v, acts)
        if k is not None:
            changed = (v[k, 1:] * v[k, :-1] < 0) & acts[k]
            row = int(np.argmax(changed.any(axis=-1)))
            yield self.of_friction(changed[row], when(row + 1, k))

    def _acts(self, count: int, friction: Mapping[str, Floats]) -> _Mask:
        """Which entries of v friction acts on in each of the rollouts, shape (count, nv)."""
        acts = np.broadcast_to(self.rubbing, (count, self.mechanism.nv)).copy()
        for name, values in friction.items():
            acts[:, self.mechanism.v_slices[name]] = values != 0
        return acts

    def _first_outside(self, q: Floats) -> int | None:
        """The first of the rollouts that leave limits in what is looked at, the last states among it."""
        bounded, lower, upper = self.limits.coordinates, self.limits.lower, self.limits.upper
        # A copy of few states is reduced faster than the states where they are.
        for some in [q] if _is_small(q) else [q[:, ::ONE_IN].copy(), q[:, -1:]]:
            least, most = (reduced(some, axis=0)[:, bounded] for reduced in (np.fmin.reduce, np.fmax.reduce))
            rows = ((least < lower) | (most > upper)).any(axis=-1)
            if rows.any():
                return int(np.argmax(self.beyond(some[:, int(np.argmax(rows))]).any(axis=-1)))
        return None


class MotionWatch:
    """A watch over one motion, step by step, that says each thing once."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._watch = watch_of(mechanism)
        self._limits, self._friction = bool(len(self._watch.limits.coordinates)), bool(self._watch.rubbing.any())

    def see(self, time: float, q: Floats, v: Floats, v_before: Floats) -> Iterator[str]:
        """What is to be said about the state at a time, unless it has been said."""
        if self._limits and self._watch.beyond(q).any():
            self._limits = False
            yield self._watch.of_limits(q, f"at t = {time:.6g} s")
        if self._friction:
            reversing = (v * v_before < 0) & self._watch.rubbing
            if reversing.any():
                self._friction = False
                yield self._watch.of_friction(reversing, f"at t = {time:.6g} s")


@kept_with_first
def watch_of(mechanism: Mechanism) -> Watch:
    """What of a mechanism's motions has to be watched."""
    found, joints = limits_of(mechanism), mechanism.movable_joints
    room = FITS * stacked(joint.freedom_units(mechanism.size) for joint in joints)[found.entries]
    limits = Limits(found.coordinates, found.entries, found.lower - room, found.upper + room, found.nv)
    return Watch(mechanism, limits, stacked(joint.friction for joint in joints) != 0)


def _first_reversing(v: Floats, acts: _Mask) -> int | None:
    """The first of the rollouts in which a velocity that friction acts on changes its sign in what is looked at."""
    start, stop, some = 0, 1, v if _is_small(v) else v[:, ::ONE_IN]
    while start < len(v):  # where friction acts, one of the first will
        block = some[start:stop]
        reversing = ((block[:, 1:] * block[:, :-1] < 0).any(axis=1) & acts[start:stop]).any(axis=-1)
        if reversing.any():
            return start + int(np.argmax(reversing))
        start, stop = stop, 8 * stop
    return None


def _is_small(rows: Floats) -> bool:
    """Whether all of the recorded states, shape (count, rows, numbers), are looked at."""
    return rows.size <= ALL_LOOKED_AT
