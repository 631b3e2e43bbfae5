"""Simulation of trees and closed loops: forward dynamics, integrated, with loops kept closed.

    rk4             fourth-order Runge-Kutta; error O(step^4)
    semi_implicit   v moves first, then q with the new v; error O(step), cheap

(`motion.integrators` has the equations.) What flies keeps its momentum (`motion.flight`). Loops hold at the level of
accelerations; after every step q and v are brought back onto the closure along the shortest way, so that no drift
builds up. One forward solve (rk4: four) for every step; energies and closure errors of what was recorded are computed
after the run, many states at once.
"""

from __future__ import annotations

import inspect
import sys
import warnings
from collections.abc import Callable, Iterable
from contextlib import suppress
from functools import partial
from math import isfinite
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_array, check_choice, check_count, check_positive, shown
from factorgraph_dyn.equations import Known, evaluate_state
from factorgraph_dyn.equations.problem import PROBLEMS
from factorgraph_dyn.equations.pushed import pushed
from factorgraph_dyn.errors import FactorGraphDynError, InputError, UnmodelledWarning
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.motion import closing, closure
from factorgraph_dyn.motion.flight import Beside, Flight, flight_of, flown
from factorgraph_dyn.motion.integrators import INTEGRATORS, Integrator, Move, Step
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.motion.unmodelled import MotionWatch
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.solve.dynamics import check_state, solve_dynamics
from factorgraph_dyn.solve.loops.closed import LoopOptions
from factorgraph_dyn.solve.trajectory import Trajectory, recorded
from factorgraph_dyn.spatial import Floats

Torque = Callable[[float, Floats, Floats], npt.ArrayLike] | npt.ArrayLike | None
Accelerate = Callable[[Floats, Floats, Floats], Floats]
Push = Callable[[float, Floats, Floats], Floats]
MOST_STEPS = 1e8
LONG_RUN = 2000  # steps from which a progress bar is worth its place
STILL_CLOSED = 1e-12  # closure error, in the mechanism's size, below which projecting would only stir rounding
# Inside a Runge-Kutta step the loops are open by O(step^2); redundant ones then contradict each other
# a little, and the elimination's least squares is the right answer.
STAGE_OPTIONS = LoopOptions(residual_tolerance=1e-2, check_unique=False)


def simulate(
    mechanism: Mechanism,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    torque: Torque = None,
    duration: float = 1.0,
    step: float = 1e-3,
    *,
    method: Integrator = "rk4",
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
        torque: A function of (t, q, v), which are copies, a constant, or None for none; N m and N, shape (nv,).
        duration: s; rounded to whole steps, of which there must be one.
        step: s.
        method: "rk4" or "semi_implicit".
        engine: "graph" eliminates at every step; or any function of (q, v, tau) that gives a, such as the
            kernel ``fgd.compile(mechanism, "forward")``, which is much faster.
        ordering: Of the elimination, for the engine "graph".
        record_every: Record every so many steps.
        progress: Show a progress bar; by default on long runs at a terminal.

    Raises:
        FactorGraphDynError: Bad input, or a motion that runs into a singular configuration or diverges.

    Warns:
        UnmodelledWarning: A joint leaves its limits, at which there are no stops, or reverses under Coulomb friction,
            which never sticks: once each, with the first joint and its time.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> forward = fgd.compile(arm, "forward")
        >>> path = fgd.simulate(arm, [1.0, 0.0], [0.0, 0.0], duration=0.5, step=1e-2, engine=forward)
        >>> path.q.shape, path.energy_drift < 1e-6
        ((51, 2), True)
    """
    steps = _check_steps(duration, step, method, record_every)
    check_movable(mechanism, "simulate")
    q, v = mechanism.check_q(q0), mechanism.check_v(v0)
    check_state(mechanism, q, v)
    accelerate = _acceleration_function(mechanism, engine, ordering)
    motion = _Motion(
        mechanism,
        accelerate,
        _torque_function(mechanism, torque),
        _move(mechanism),
        mechanism.is_closed_kind,
        flight_of(mechanism),
        isinstance(accelerate, _Foreign),
    )
    advance = INTEGRATORS[method]
    tau = motion.push(0.0, q, v)
    count = 1 - (-steps // record_every)
    times, places, speeds, torques = np.zeros(count), *(np.zeros((count, len(x))) for x in (q, v, tau))
    places[0], speeds[0], torques[0] = q, v, tau
    row, watch = 0, MotionWatch(mechanism)
    for words in watch.see(0.0, q, v, v):
        warnings.warn(words, UnmodelledWarning, stacklevel=2)
    for i in _shown(range(1, steps + 1), progress):
        t = i * step
        v_before = v
        q, v = _stepped(motion, advance, t - step, step, q, v, tau)
        for words in watch.see(t, q, v, v_before):
            warnings.warn(words, UnmodelledWarning, stacklevel=2)
        tau = motion.push(t, q, v)
        if i % record_every == 0 or i == steps:
            row += 1
            times[row], places[row], speeds[row], torques[row] = t, q, v, tau
    return recorded(mechanism, times, places, speeds, torques)


def graph_accelerations(mechanism: Mechanism, ordering: OrderingLike = PROBLEMS["forward"].solved_in) -> Accelerate:
    """Forward dynamics by elimination, without the checks that a simulation does not need."""

    def accelerate(q: Floats, v: Floats, tau: Floats) -> Floats:
        state = evaluate_state(mechanism, q, v)
        known = Known.forward(mechanism.check_v(tau, "tau"))
        return solve_dynamics(state, known, ordering=ordering, options=STAGE_OPTIONS).a

    return accelerate


class _Motion(NamedTuple):
    """What moves, and what moves it; whether it flies, and whether the engine may have forces of its own."""

    mechanism: Mechanism
    accelerate: Accelerate
    push: Push
    move: Move
    closes: bool
    flight: Flight | None
    is_foreign: bool

    def during(self, t: float, step: float, tau: Floats) -> Callable[[float, Floats, Floats], Any]:
        """The accelerations during a step that starts at t with torques tau; in flight, of the centre of mass, too."""

        def at(part: float, q: Floats, v: Floats) -> Any:
            now = tau if part == 0.0 else self.push(t + part * step, q, v)
            a = self.accelerate(q, v, now)
            if self.flight is None:
                return a
            known = not self.is_foreign
            return Beside(a, pushed(self.flight, q, v, a, now) if known else self.flight.acceleration(q, v, a))

        return at

    def stepped(self, advance: Step, t: float, step: float, q: Floats, v: Floats, tau: Floats) -> tuple[Floats, Floats]:
        """The state one step after t; loops are still open."""
        return flown(advance, self.flight, self.move, self.during(t, step, tau), q, v, step)


class _Watched:
    """An engine that tells of the first state it has no answer for, by its own check where it has one, as kernels."""

    def __init__(self, motion: _Motion) -> None:
        self.motion, self.found = motion, ""

    def __call__(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        a = self.motion.accelerate(q, v, tau)
        if not np.isfinite(a).all() and np.isfinite([*q, *v]).all() and not self.found:
            self.found = self._explained(q, v, tau, a)
        return a

    def _explained(self, q: Floats, v: Floats, tau: Floats, a: Floats) -> str:
        check = getattr(self.motion.accelerate, "check", None)
        if check is None:
            return f"a = {a.tolist()} for finite q, v and tau."
        # Inside a step loops are open by a little, which is not the reason.
        return " ".join(check(*_closed_again(self.motion.mechanism, q, v), tau))

    def reasons(self, advance: Step, t: float, q: Floats, v: Floats, tau: Floats, step: float) -> str:
        """What is to be said about a step that failed; nothing where the engine answered, or speaks for itself."""
        if isinstance(self.motion.accelerate, _Foreign) or hasattr(self.motion.accelerate, "check"):
            with suppress(FactorGraphDynError):
                watched = self.motion._replace(accelerate=self)
                watched.stepped(advance, t, step, q, v, tau)
        return f" The engine says: {self.found}" if self.found else ""


# ---- steps


def _stepped(
    motion: _Motion, advance: Step, t: float, step: float, q: Floats, v: Floats, tau: Floats
) -> tuple[Floats, Floats]:
    """The state one step after t, closed; an error says where the simulation stopped and why."""
    try:
        q_next, v_next = motion.stepped(advance, t, step, q, v, tau)
        # q has just moved by v: a product tells in a tenth of the time, and where it is too large, the numbers do.
        if not isfinite(v_next.dot(v_next)) and not (np.isfinite(q_next).all() and np.isfinite(v_next).all()):
            raise InputError(f"q or v is no longer finite. Use a smaller step than {step:g} s, or smaller torques.")
        if not motion.closes:
            return q_next, v_next
        closed = _closed_again(motion.mechanism, q_next, v_next)
        return closed if motion.flight is None else motion.flight.kept(q_next, v_next, closed)
    except FactorGraphDynError as error:
        motion.mechanism.check_v(tau, "The torque function's tau")
        engine_says = _Watched(motion).reasons(advance, t, q, v, tau, step)
        raise type(error)(
            f"The simulation stopped at t = {t + step:.6g} s: {error}{engine_says}", **error.details
        ) from error


def _move(mechanism: Mechanism) -> Move:
    """What moves a configuration by a velocity for unit time."""
    if all(joint.type.rate_is_v for joint in mechanism.movable_joints):
        return np.add
    return partial(integrate, mechanism)


def _closed_again(mechanism: Mechanism, q: Floats, v: Floats) -> tuple[Floats, Floats]:
    """The nearest state on the closure, found in the mechanism's own units."""
    if not mechanism.is_closed_kind:
        return q, v
    if closure.relative_error(mechanism, q) > STILL_CLOSED:
        q = closing.close(mechanism, q)
    return q, closure.nearest_velocity(mechanism, q, v)


# ---- what the caller gave


def _check_steps(duration: float, step: float, method: str, record_every: int) -> int:
    for what, value in (("duration", duration), ("step", step)):
        check_positive(value, f"The {what}", InputError)
    check_choice(method, INTEGRATORS, "The method")
    check_count(record_every, "record_every")
    if duration / step > MOST_STEPS:
        raise InputError(
            f"{duration:g} s in steps of {step:g} s are {duration / step:.1e} steps; at most {MOST_STEPS:.0e} are "
            "allowed. Take a longer step or a shorter duration."
        )
    steps = round(duration / step)
    if not steps:
        raise InputError(
            f"The duration is {duration:g} s and the step {step:g} s: durations are rounded to whole steps, and that "
            "is none. Take a shorter step or a longer duration."
        )
    return steps


def _torque_function(mechanism: Mechanism, torque: Torque) -> Push:
    if callable(torque):
        shape = (mechanism.nv,)
        _check_takes(torque, "The torque function", "t, q, v", f"torques of shape {shape}")

        def push(t: float, q: Floats, v: Floats) -> Floats:
            tau = torque(t, q.copy(), v.copy())  # a controller may write into what it is given
            # What is an array already is taken as it is: one that is not finite stops the step, and is then told.
            if type(tau) is np.ndarray and tau.dtype == np.float64 and tau.shape == shape:
                return tau
            return mechanism.check_v(tau, "The torque function's tau")

        return push
    constant = np.zeros(mechanism.nv) if torque is None else mechanism.check_v(torque, "torque")
    return lambda t, q, v: constant


def _check_takes(function: Callable[..., Any], what: str, arguments: str, gives: str) -> None:
    """Raise an InputError unless a function can be called with three arguments, before it is."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):  # some of C have none
        return
    try:
        signature.bind(*arguments.split(", "))
    except TypeError as error:
        raise InputError(
            f"{what} {getattr(function, '__name__', shown(function))}{signature} cannot be called with ({arguments}): "
            f"{error}. It must be a function of ({arguments}) that gives {gives}."
        ) from None


def _acceleration_function(mechanism: Mechanism, engine: str | Accelerate, ordering: OrderingLike) -> Accelerate:
    if callable(engine):
        if _is_kernel(mechanism, engine):
            return engine
        _check_takes(engine, "The engine", "q, v, tau", f"accelerations of shape {(mechanism.nv,)}")
        return _Foreign(engine, mechanism.nv)
    if isinstance(engine, str) and engine == "graph":
        return graph_accelerations(mechanism, ordering)
    raise InputError(
        f"The engine is {shown(engine)}; it must be 'graph', a kernel fgd.compile(mechanism, 'forward'), or another "
        "function of (q, v, tau)."
    )


class _Foreign:
    """An engine of the caller's own: it gets and gives copies, for it may write into them; answers are checked."""

    def __init__(self, engine: Accelerate, nv: int) -> None:
        self._engine, self._shape = engine, (nv,)
        if hasattr(engine, "check"):
            self.check = engine.check

    def __call__(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        a = self._engine(q.copy(), v.copy(), tau.copy())
        return check_array(a, self._shape, "The engine's a").copy()


def _is_kernel(mechanism: Mechanism, engine: Any) -> bool:
    """Whether the engine is a kernel; raises where it is of another mechanism, or does not give a from (q, v, tau)."""
    own, asked, given = (getattr(engine, word, None) for word in ("mechanism", "arguments", "outputs"))
    if not isinstance(own, Mechanism):
        return False
    advice = "Use fgd.compile(mechanism, 'forward') of the mechanism that is simulated."
    if asked != ("q", "v", "tau") or given != ("a",):
        raise InputError(
            f"The engine is {shown(engine)}; a simulation needs a kernel that takes (q, v, tau) and gives a. {advice}"
        )
    if own.fingerprint != mechanism.fingerprint:
        raise InputError(
            f"The engine is a kernel of another mechanism, {own.name!r} with joints {', '.join(own.joint_names)}; the "
            f"simulation is of {mechanism.name!r} with joints {', '.join(mechanism.joint_names)}"
            f"{', which differs in its numbers' if own.joint_names == mechanism.joint_names else ''}. {advice}"
        )
    return True


def _shown(steps: range, progress: bool | None) -> Iterable[int]:
    if progress is None:
        progress = len(steps) >= LONG_RUN and sys.stderr.isatty()
    if not progress:
        return steps
    from rich.console import Console
    from rich.progress import track

    return track(steps, description="simulating", console=Console(stderr=True))
