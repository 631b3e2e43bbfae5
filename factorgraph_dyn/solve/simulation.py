"""Simulation of trees and closed loops: forward dynamics, integrated, with loops kept closed.

    rk4             classical Runge-Kutta on (q, v) with q_dot = N(q) v; error O(step^4)
    semi_implicit   v += step a, then q moves with the new v; error O(step), cheap, keeps energy bounded

Loops hold at the level of accelerations; after every step q and v are brought back onto the closure
along the shortest way, so that no drift builds up. Energy and closure error are recorded. One
forward solve (rk4: four) for every step.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice, check_count, check_positive, shown
from factorgraph_dyn.equations import Known, evaluate_state
from factorgraph_dyn.equations.problem import PROBLEMS
from factorgraph_dyn.errors import FactorGraphDynError, InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion import closing, closure
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.motion.masses import energies, moving_bodies
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.solve.dynamics import check_state, solve_dynamics
from factorgraph_dyn.solve.loops.closed import LoopOptions
from factorgraph_dyn.spatial import Floats, stacked

Torque = Callable[[float, Floats, Floats], npt.ArrayLike] | npt.ArrayLike | None
Accelerate = Callable[[Floats, Floats, Floats], Floats]
Push = Callable[[float, Floats, Floats], Floats]
Step = Callable[["_Motion", float, Floats, Floats, float], tuple[Floats, Floats]]
Method = Literal["rk4", "semi_implicit"]
MOST_STEPS = 1e8
METHODS = ("rk4", "semi_implicit")
LONG_RUN = 2000  # steps from which a progress bar is worth its place
STILL_CLOSED = 1e-12  # closure error, in the mechanism's size, below which projecting would only stir rounding
# Inside a Runge-Kutta step the loops are open by O(step^2); redundant ones then contradict each other
# a little, and the elimination's least squares is the right answer.
STAGE_OPTIONS = LoopOptions(residual_tolerance=1e-2, check_unique=False)


@dataclass(frozen=True, eq=False)
class Trajectory:
    """What a simulation recorded, one row for every instant.

    Attributes:
        t: Time, s, shape (n,).
        q: Coordinates, shape (n, nq).
        v: Velocities, shape (n, nv).
        tau: Torques that acted, shape (n, nv).
        kinetic: Kinetic energy, J, shape (n,).
        potential: Potential energy, J, shape (n,).
        closure_error: Largest closure error of q and v, m, rad or per s, shape (n,).
    """

    mechanism: Mechanism
    t: Floats
    q: Floats
    v: Floats
    tau: Floats
    kinetic: Floats
    potential: Floats
    closure_error: Floats

    @property
    def energy(self) -> Floats:
        """Kinetic plus potential energy, J, shape (n,)."""
        return self.kinetic + self.potential

    @cached_property
    def energy_drift(self) -> float:
        """The largest change of energy as a share of the swing: how far the kinetic energy ranges.

        Where ``is_conservative``, it is the error of the integration.
        """
        swing = float(np.ptp(self.kinetic))
        return float(np.abs(self.energy - self.energy[0]).max()) / (swing or 1.0)

    @property
    def is_conservative(self) -> bool:
        """Whether energy should stay what it is: neither damping nor friction nor torques act."""
        return not (self.tau.any() or any(j.damping.any() or j.friction.any() for j in self.mechanism.joints))


def simulate(
    mechanism: Mechanism,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    torque: Torque = None,
    duration: float = 1.0,
    step: float = 1e-3,
    *,
    method: Method = "rk4",
    engine: Literal["graph"] | Accelerate = "graph",
    ordering: OrderingLike = PROBLEMS["forward"].solved_in,
    record_every: int = 1,
    progress: bool | None = None,
) -> Trajectory:
    """The motion that torques cause from a start, recorded at every step.

    Args:
        mechanism: A tree, or closed loops.
        q0: Coordinates at the start, closed, shape (nq,).
        v0: Velocities at the start, shape (nv,).
        torque: A function of (t, q, v), a constant, or None for none; N m and N, shape (nv,).
        duration: s; rounded to whole steps.
        step: s.
        method: "rk4" or "semi_implicit".
        engine: "graph" eliminates at every step; or any function of (q, v, tau) that gives a, such as the
            kernel ``fgd.compile(mechanism, "forward")``, which is much faster.
        ordering: Of the elimination, for the engine "graph".
        record_every: Record every so many steps.
        progress: Show a progress bar; by default on long runs at a terminal.

    Raises:
        FactorGraphDynError: Bad input, or a motion that runs into a singular configuration or diverges.
    """
    steps = _check_steps(duration, step, method, record_every)
    check_mechanism(mechanism)
    q, v = mechanism.check_q(q0), mechanism.check_v(v0)
    check_state(mechanism, q, v)
    push = _torque_function(mechanism, torque)
    motion = _Motion(mechanism, _acceleration_function(mechanism, engine, ordering), push)
    advance = _rk4_step if method == "rk4" else _semi_implicit_step
    records = [_record(mechanism, 0.0, q, v, push(0.0, q, v))]
    for i in _shown(range(1, steps + 1), progress):
        t = i * step
        try:
            q_next, v_next = advance(motion, t - step, q, v, step)
            if not (np.isfinite(q_next).all() and np.isfinite(v_next).all()):
                raise InputError(f"q or v is no longer finite. Use a smaller step than {step:g} s, or smaller torques.")
            q, v = _closed_again(mechanism, q_next, v_next)
        except FactorGraphDynError as error:
            engine_says = _Watched(motion).reasons(advance, t - step, q, v, step)
            raise type(error)(
                f"The simulation stopped at t = {t:.6g} s: {error}{engine_says}", **error.details
            ) from error
        if i % record_every == 0 or i == steps:
            records.append(_record(mechanism, t, q, v, push(t, q, v)))
    return Trajectory(mechanism, *(np.array(column) for column in zip(*records, strict=True)))


def graph_accelerations(mechanism: Mechanism, ordering: OrderingLike = PROBLEMS["forward"].solved_in) -> Accelerate:
    """Forward dynamics by elimination, without the checks that a simulation does not need."""

    def accelerate(q: Floats, v: Floats, tau: Floats) -> Floats:
        state = evaluate_state(mechanism, q, v)
        known = Known.forward(mechanism.check_v(tau, "tau"))
        return solve_dynamics(state, known, ordering=ordering, options=STAGE_OPTIONS).a

    return accelerate


class _Motion(NamedTuple):
    """What moves, and what moves it."""

    mechanism: Mechanism
    accelerate: Accelerate
    push: Push


class _Watched:
    """An engine that asks its own check, which kernels have, about the first state it has no answer for."""

    def __init__(self, motion: _Motion) -> None:
        self.motion, self.found = motion, ""

    def __call__(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        a = self.motion.accelerate(q, v, tau)
        if not np.isfinite(a).all() and np.isfinite([*q, *v]).all() and not self.found:
            # Inside a step loops are open by a little, which is not the reason.
            at = _closed_again(self.motion.mechanism, q, v)
            self.found = " ".join(self.motion.accelerate.check(*at, tau))  # type: ignore[attr-defined]
        return a

    def reasons(self, advance: Step, t: float, q: Floats, v: Floats, step: float) -> str:
        """What the engine's check says about a step that failed; nothing where it has none."""
        if hasattr(self.motion.accelerate, "check"):
            with suppress(FactorGraphDynError):
                advance(self.motion._replace(accelerate=self), t, q, v, step)
        return f" The engine says: {self.found}" if self.found else ""


# ---- steps


def _rk4_step(motion: _Motion, t: float, q: Floats, v: Floats, step: float) -> tuple[Floats, Floats]:
    mechanism, accelerate, push = motion

    def rates(time: float, place: Floats, speed: Floats) -> tuple[Floats, Floats]:
        return _rate(mechanism, place, speed), accelerate(place, speed, push(time, place, speed))

    half = 0.5 * step
    q1, v1 = rates(t, q, v)
    q2, v2 = rates(t + half, _normal(mechanism, q + half * q1), v + half * v1)
    q3, v3 = rates(t + half, _normal(mechanism, q + half * q2), v + half * v2)
    q4, v4 = rates(t + step, _normal(mechanism, q + step * q3), v + step * v3)
    q_new = q + step / 6 * (q1 + 2 * q2 + 2 * q3 + q4)
    return _normal(mechanism, q_new), v + step / 6 * (v1 + 2 * v2 + 2 * v3 + v4)


def _semi_implicit_step(motion: _Motion, t: float, q: Floats, v: Floats, step: float) -> tuple[Floats, Floats]:
    v_new = v + step * motion.accelerate(q, v, motion.push(t, q, v))
    return integrate(motion.mechanism, q, v_new, step), v_new


def _closed_again(mechanism: Mechanism, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The nearest state on the closure, found in the mechanism's own units."""
    if not mechanism.is_closed_kind:
        return q, v
    if closure.relative_error(mechanism, q) > STILL_CLOSED:
        q = closing.close(mechanism, q)
    return q, closure.nearest_velocity(mechanism, q, v)


def _rate(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    if all(joint.type.rate_is_v for joint in mechanism.joints):
        return v
    parts = [
        j.type.rate(q[mechanism.q_slices[j.name]], v[mechanism.v_slices[j.name]]) for j in mechanism.movable_joints
    ]
    return stacked(parts)


def _normal(mechanism: Mechanism, q: Floats) -> Floats:
    if mechanism.nq == mechanism.nv:
        return q
    return np.concatenate([j.type.normalise(q[mechanism.q_slices[j.name]]) for j in mechanism.movable_joints])


# ---- what the caller gave


def _check_steps(duration: float, step: float, method: str, record_every: int) -> int:
    for what, value in (("duration", duration), ("step", step)):
        check_positive(value, f"The {what}", InputError)
    check_choice(method, METHODS, "The method")
    check_count(record_every, "record_every")
    if duration / step > MOST_STEPS:
        raise InputError(
            f"{duration:g} s in steps of {step:g} s are {duration / step:.1e} steps; at most {MOST_STEPS:.0e} are "
            "allowed. Take a longer step or a shorter duration."
        )
    return max(1, round(duration / step))


def _torque_function(mechanism: Mechanism, torque: Torque) -> Push:
    if callable(torque):
        return lambda t, q, v: mechanism.check_v(torque(t, q, v), "The torque function's tau")
    constant = np.zeros(mechanism.nv) if torque is None else mechanism.check_v(torque, "torque")
    return lambda t, q, v: constant


def _acceleration_function(mechanism: Mechanism, engine: str | Accelerate, ordering: OrderingLike) -> Accelerate:
    if callable(engine):
        return engine
    if isinstance(engine, str) and engine == "graph":
        return graph_accelerations(mechanism, ordering)
    raise InputError(
        f"The engine is {shown(engine)}; it must be 'graph', a kernel fgd.compile(mechanism, 'forward'), or another "
        "function of (q, v, tau)."
    )


def _record(
    mechanism: Mechanism, t: float, q: Floats, v: Floats, tau: Floats
) -> tuple[float, Floats, Floats, Floats, float, float, float]:
    kinetic, potential = map(float, energies(moving_bodies(mechanism), q, v))
    error = closure.closure_error(mechanism, q, v) if mechanism.is_closed_kind else 0.0
    return t, q, v, tau, kinetic, potential, error


def _shown(steps: range, progress: bool | None) -> Iterable[int]:
    if progress is None:
        progress = len(steps) >= LONG_RUN and sys.stderr.isatty()
    if not progress:
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, description="simulating", console=Console(stderr=True))
