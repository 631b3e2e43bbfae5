"""Whether a rollout does what its kernel does, tried when it is made.

Takes a rollout as machine code; gives its largest error beside a loop over plain numbers: the forward kernel, which has
been proved by itself, the integrator and the closing of loops, each called with floats one state at a time. The
trial runs so many rollouts that tiles are full and not full, over steps of which some are recorded. Errors are parts of
what coordinates and velocities change by, so that accelerations count however short the trial is. The work runs once a
mechanism and integrator.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.compiler.rollout.flight import freed_flight
from factorgraph_dyn.compiler.rollout.starts import Starts
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion import closing
from factorgraph_dyn.motion.closure import nearest_velocity
from factorgraph_dyn.motion.flight import Beside, flown
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import Floats

Run = Callable[[Starts, float, int], tuple[Floats, Floats]]
HOLDS = 1e-8  # of what changes: errors above cannot be rounding, which a step amplifies little
_ROLLOUTS, _STEPS, _RECORD_EVERY = 9, 3, 2  # a full tile of every width and a rest; a row in between and the last
# Of a step: rad, and parts of the mechanism's size. Closing in three runs and in one differ by its fourth power, which
# is much near singular poses: what a shorter step shrinks below the bound was no mistake: these are parts of a change.
_TURNS = (2e-3, 4e-4, 8e-5)
_STILL = 1e-6  # of a step's turn and of the speed: less counts as no change


def largest_error(run: Run, kernel: Kernel, problem: Problem, integrator: str) -> float:
    """The largest error of a rollout's machine code; infinite where it has numbers and the loop none, or otherwise."""
    errors = []
    for turn in _TURNS:
        errors.append(_largest_error(run, kernel, problem, integrator, turn))
        if errors[-1] <= HOLDS:
            break
    return min(errors)


def _largest_error(run: Run, kernel: Kernel, problem: Problem, integrator: str, turn: float) -> float:
    mechanism, states = kernel.mechanism, sampled_states(kernel.mechanism)
    chosen = slice(states.special, states.special + _ROLLOUTS)
    q, v = states.q[chosen], states.v[chosen]
    tau = np.stack([states.of("tau", mechanism.nv)[0].T[chosen]] * _STEPS, axis=1) * (1 + np.arange(_STEPS)[:, None])
    free = [
        states.of(name, prod(problem.shape_of(mechanism, name)), problem.free.links)[0].T[chosen]
        for name in problem.free.arguments
    ]
    starts = Starts(q, v, tau, np.hstack([np.zeros((_ROLLOUTS, 0)), *free]))
    own = measured(mechanism)
    speed = float(np.abs(v / own.v).max()) or 1.0
    step = turn / speed
    found = run(starts, step, _RECORD_EVERY)
    expected = [
        plain_rollout(kernel, problem, integrator, q[k], v[k], tau[k], step, starts.arguments(k, problem, mechanism))
        for k in range(_ROLLOUTS)
    ]
    rows = [k for k in range(_STEPS + 1) if k % _RECORD_EVERY == 0 or k == _STEPS]
    errors = 0.0
    for values, k, unit in zip(found, (0, 1), (own.q * turn, own.v * speed), strict=True):
        wanted = np.array([states[k][rows] for states in expected])
        if (np.isfinite(values) != np.isfinite(wanted)).any():
            return np.inf
        change = float(np.nanmax(np.abs(wanted - wanted[:, :1]) / unit, initial=_STILL))
        errors = max(errors, float(np.nanmax(np.abs(values - wanted) / unit, initial=0.0)) / change)
    return errors


def plain_rollout(
    kernel: Kernel,
    problem: Problem,
    integrator: str,
    q: Floats,
    v: Floats,
    tau: Floats,
    step: float,
    free: Sequence[Floats] = (),
) -> tuple[Floats, Floats]:
    """The states of one rollout at every step, by numbers, shapes (steps + 1, nq) and (steps + 1, nv)."""
    mechanism, flight = kernel.mechanism, freed_flight(kernel.mechanism, problem, free)
    states = [(q, v)]

    def accelerate(place: Floats, speed: Floats, torque: Floats) -> Any:
        a = kernel(place, speed, torque, *free)
        # from the accelerations: machine code has the momentum from the forces
        return a if flight is None else Beside(a, flight.acceleration(place, speed, a))

    for torque in tau:
        q, v = flown(
            INTEGRATORS[integrator],
            flight,
            lambda place, way: integrate(mechanism, place, way),
            lambda _, place, speed, torque=torque: accelerate(place, speed, torque),
            *states[-1],
            step,
        )
        closed = _closed(mechanism, q, v)
        states.append(closed if flight is None else flight.kept(q, v, closed))
    return np.array([q for q, _ in states]), np.array([v for _, v in states])


def _closed(mechanism: Mechanism, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    if not mechanism.is_closed_kind or not np.isfinite([*q, *v]).all():
        return q, v
    q = closing.close(mechanism, q)
    return q, nearest_velocity(mechanism, q, v)
