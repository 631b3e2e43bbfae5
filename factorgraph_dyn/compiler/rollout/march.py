"""A rollout's time loop, called for some rollouts and steps at a time.

Takes the machine code of the whole loop as a function; gives the same numbers, to the last bit, from calls that take
about a tenth of a second each, so that the interpreter can attend to signals, such as Ctrl-C, between them. A call that
is not the first of its rollouts starts at the state where the last one ended, which is all that a step depends on:

    rollouts first .. first + n, steps t .. t + length    ->  rows ceil(t / every) .. ceil((t + length) / every)

A row between two recorded states is written over by the next call. The work runs once a call of ``rollout``.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from threading import Event

import numpy as np

from factorgraph_dyn.compiler.rollout.starts import Starts
from factorgraph_dyn.spatial import Floats

States = tuple[Floats, Floats]
Call = Callable[[Starts, States, int], None]  # starts; q and v of recorded steps; steps from one to the next
TILE = 8  # rollouts that the widest vectors take side by side
_CALL_SECONDS = 0.1
_MOST_SECONDS_AN_OPERATION = 1e-8  # before anything has been measured; slower than any machine in any integrator


class Pace:
    """How much fits into one call, by how long the last one took."""

    def __init__(self, operations: int) -> None:
        self._seconds = _MOST_SECONDS_AN_OPERATION * max(operations, 1)  # of one step of one rollout

    def most_rollouts(self, steps: int) -> int:
        """Rollouts of so many steps: whole tiles, one or more."""
        return max(int(_CALL_SECONDS / self._seconds / max(steps, 1)) // TILE, 1) * TILE

    def most_steps(self, rollouts: int) -> int:
        """Steps of so many rollouts, one or more."""
        return max(int(_CALL_SECONDS / self._seconds / _in_tiles(rollouts)), 1)

    def learn(self, began: float, rollouts: int, steps: int) -> None:
        """Take into account a call that ends now."""
        if steps:
            self._seconds = max(time.perf_counter() - began, 1e-9) / (_in_tiles(rollouts) * steps)


def march(call: Call, starts: Starts, out: States, record_every: int, pace: Pace, stop: Event) -> None:
    """Run all rollouts from their starts to their ends, or until it is to stop.

    Args:
        call: Machine code of the loop.
        starts: Where rollouts start, and what drives them.
        out: q and v of every recorded step, shapes (count, rows, nq) and (count, rows, nv).
        record_every: Steps from one recorded state to the next; the last is recorded in any case.
        pace: How much one call takes on.
        stop: Set by whoever wants no more.
    """
    first, (count, steps) = 0, starts.tau.shape[:2]
    while first < count and not stop.is_set():
        some = slice(first, first + pace.most_rollouts(steps))
        _march_together(call, starts.part(some), (out[0][some], out[1][some]), record_every, pace, stop)
        first = some.stop


def _march_together(call: Call, starts: Starts, out: States, every: int, pace: Pace, stop: Event) -> None:
    """Run some rollouts, all of them in every call."""
    (count, steps), t = starts.tau.shape[:2], 0
    out[0][:, 0], out[1][:, 0] = starts.q, starts.v
    while not stop.is_set():
        began, left, due = time.perf_counter(), steps - t, every - t % every
        length = min(pace.most_steps(count), left)
        now = _rows(out, _row(t, every))
        if due == every and (length == left or length >= every):  # from one recorded state to another
            length -= 0 if length == left else length % every
            call(_part(starts, now, t, length), now, every)
        else:
            length = min(length, due)
            ends = np.empty((count, 2, out[0].shape[-1])), np.empty((count, 2, out[1].shape[-1]))
            call(_part(starts, now, t, length), ends, length)
            for states, end in zip(out, ends, strict=True):
                states[:, _row(t + length, every)] = end[:, 1]
        t += length
        pace.learn(began, count, length)
        if t == steps:
            return


def _part(starts: Starts, now: States, t: int, length: int) -> Starts:
    """Some steps, from where the rollouts are."""
    return starts._replace(q=now[0][:, 0], v=now[1][:, 0], tau=starts.tau[:, t : t + length])


def _rows(out: States, first: int) -> States:
    return out[0][:, first:], out[1][:, first:]


def _row(steps: int, every: int) -> int:
    """The row where the state after so many steps is, or is written over by the next recorded one."""
    return -(-steps // every)


def _in_tiles(rollouts: int) -> int:
    return -(-rollouts // TILE) * TILE
