"""Rollouts: many motions at once, from their starts and the torques of every step.

    fgd.rollout(mechanism, q0, v0, tau, step) -> q, v

Takes arrays with any leading axes; gives the states at every step. The time loop is machine code (`compiled`), made at
the first call; here arguments are checked and laid out, once a call.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_apart, check_choice, check_count, check_positive, real_numbers, shown
from factorgraph_dyn.compiler.kernel.threads import MOST_THREADS
from factorgraph_dyn.compiler.rollout.compiled import CompiledRollout, compiled_rollout, recorded_rows
from factorgraph_dyn.compiler.rollout.starts import Given, Starts, as_rows, check_given, friction_given
from factorgraph_dyn.errors import InputError, UnmodelledWarning
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.integrators import INTEGRATORS, Integrator
from factorgraph_dyn.motion.unmodelled import watch_of
from factorgraph_dyn.spatial import Floats


def rollout(
    mechanism: Mechanism,
    q0: npt.ArrayLike,
    v0: npt.ArrayLike,
    tau: npt.ArrayLike,
    step: float,
    *,
    integrator: Integrator = "semi_implicit",
    record_every: int = 1,
    threads: int = 1,
    parameters: Mapping[str, npt.ArrayLike] | None = None,
    out: tuple[Floats, Floats] | None = None,
) -> tuple[Floats, Floats]:
    """The motions that torques cause: q and v at every step, shapes (..., steps + 1, nq) and (..., steps + 1, nv).

    Leading axes of all arguments broadcast. Row k is the state after k steps; row 0 is the start. Damping, friction,
    springs and armature act as in kernels; quaternions stay unit ones; loops and couplings are closed after every step.
    Where one floating joint is all that ties the mechanism to the world, its momentum changes by the impulse of gravity
    and of the floating joint's forces alone. A rollout that arrives where the forward kernel has no answer, turns by
    more than 8 rad in a step or opens a loop by more than 2 % of a radian or of its size is nan from there on:
    `simulate` says why.

    Joints have no stops and never stick. A warning names the first joint found beyond its limits, and the first whose
    velocity changes its sign under Coulomb friction, with the time and the rollout; of more than 65 536 numbers it
    looks at one recorded state in 16, and the last.

    Args:
        mechanism: A tree, or closed loops.
        q0: Coordinates at the start, shape (..., nq).
        v0: Velocities at the start, shape (..., nv).
        tau: Torques and forces, N m and N, each held for one step, shape (..., steps, nv).
        step: s.
        integrator: "semi_implicit" takes one forward solve a step, error O(step); "rk4" four, error O(step^4).
        record_every: Keep one state in so many steps: row k is the state after k * record_every steps, and the last row
            the last state, so that there are 1 + ceil(steps / record_every) rows.
        threads: Threads that share the rollouts.
        parameters: Numbers that every rollout has its own of instead of the mechanism's, in the words of
            ``compile(parameters=...)``: {"all": (..., links, 10)} or {"link3": (..., 10)} as ``mechanism.parameters()``
            gives them, {"friction[elbow]": (..., 1)}, {"gravity": (..., 3)}. They stay the same in all steps.
        out: Arrays to write q and v to, for those who come again and again: float64, contiguous, of the shapes above,
            with no memory in common. Other number types are refused. Where a rollout is interrupted, part is written.

    Raises:
        InputError: Bad shapes or numbers, or a start that is not closed or singular.
        CompileError: A mechanism that cannot be compiled, or loops that rollouts do not cover.

    Warns:
        UnmodelledWarning: A joint leaves its limits, or reverses under Coulomb friction.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> tau = np.zeros((100, 50, 2))  # 100 motions of 50 steps
        >>> q, v = fgd.rollout(arm, np.zeros(2), np.zeros(2), tau, 1e-2)
        >>> q.shape
        (100, 51, 2)
    """
    check_mechanism(mechanism)
    check_choice(integrator, INTEGRATORS, "The integrator")
    seconds = check_positive(step, "The step", InputError)
    every, count = check_count(record_every, "record_every"), check_count(threads, "threads", most=MOST_THREADS)
    q, v = mechanism.check_q(q0, batch=True, what="q0"), mechanism.check_v(v0, "v0", batch=True)
    torques = real_numbers(tau, "tau", InputError)  # whether they are finite, the last states tell
    if torques.ndim < 2 or torques.shape[-1] != mechanism.nv:
        raise InputError(
            f"tau has shape {torques.shape}; it must be (..., steps, {mechanism.nv}): torques for every step, in the "
            f"order of the joints of {mechanism.name!r}, {', '.join(mechanism.joint_names)}. For the same torques in "
            "all steps use np.broadcast_to(tau, (steps, len(tau)))."
        )
    given = check_given(mechanism, {} if parameters is None else parameters)
    batch = _batch(q, v, torques, given)
    compiled = compiled_rollout(mechanism, integrator, tuple(each.word for each in given))
    starts = Starts(_flat(q, batch, 1), _flat(v, batch, 1), _flat(torques, batch, 2), as_rows(given, batch))
    rows = recorded_rows(torques.shape[-2], every)
    shapes = [(*batch, rows, mechanism.nq), (*batch, rows, mechanism.nv)]
    places = None if out is None else _check_out(out, shapes)
    if places is not None:  # who goes on from where the last rollouts ended may write over them
        starts = Starts(*(x.copy() if any(np.may_share_memory(x, y) for y in places) else x for x in starts))
    states = compiled.run(starts, seconds, every, count, places)
    _check_starts(compiled, starts, states[1], batch)
    steps = torques.shape[-2]
    times = seconds * np.minimum(np.arange(rows) * min(every, steps), steps)
    for words in watch_of(mechanism).along(times, *states, batch, friction_given(mechanism, given, batch)):
        warnings.warn(words, UnmodelledWarning, stacklevel=2)
    q_rows, v_rows = (x.reshape(shape) for x, shape in zip(states, shapes, strict=True))
    return q_rows, v_rows


def _batch(q: Floats, v: Floats, tau: Floats, given: Sequence[Given]) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-2], *(each.axes for each in given))
    except ValueError:
        others = "".join(f", parameters[{each.word!r}] {each.values.shape}" for each in given)
        raise InputError(
            f"The arguments do not go together: q0 {q.shape}, v0 {v.shape}, tau {tau.shape}{others}. The axes before "
            f"(nq), (nv) and (steps, nv){' and those of a single rollout' if given else ''} have to broadcast."
        ) from None


def _check_out(out: object, shapes: Sequence[tuple[int, ...]]) -> tuple[Floats, Floats]:
    """The arrays with one batch axis, if they can be written to as they are."""
    arrays = tuple(out) if isinstance(out, tuple | list) else (out,)
    if len(arrays) != 2 or not all(map(_is_writable, arrays, shapes)):
        found = " and ".join(f"{x.dtype} {x.shape}" if isinstance(x, np.ndarray) else shown(x) for x in arrays)
        raise InputError(
            f"out is {found}; it must be two arrays of float64, for q of shape {shapes[0]} and for v of shape "
            f"{shapes[1]}, contiguous and writeable: such as np.empty(shape), or what an earlier rollout gave."
        )
    check_apart(arrays, "out")
    q, v = (x.reshape(-1, *x.shape[-2:]) for x in arrays)
    return q, v


def _is_writable(array: object, shape: tuple[int, ...]) -> bool:
    if not isinstance(array, np.ndarray) or array.shape != shape or array.dtype != np.float64:
        return False
    return array.flags.carray


def _flat(array: Floats, batch: tuple[int, ...], core: int) -> Floats:
    """The array with one batch axis; what all rollouts share is not copied."""
    inner = array.shape[array.ndim - core :]
    count = int(np.prod(batch))
    if array.size == int(np.prod(inner)):
        return np.broadcast_to(array.reshape(inner), (count, *inner))
    return np.broadcast_to(array, (*batch, *inner)).reshape(count, *inner)


def _check_starts(compiled: CompiledRollout, starts: Starts, v_rows: Floats, batch: tuple[int, ...]) -> None:
    """Raise where a rollout has no answer because its torques are not finite, or its start has none."""
    failed = np.flatnonzero(~np.isfinite(v_rows[:, -1]).all(axis=-1))
    q, v, tau, _ = starts
    if not len(failed) or not tau.shape[1]:
        return
    compiled.mechanism.check_v(tau[failed], "tau", batch=True)
    kernel = compiled.kernel

    def first(k: Any) -> list[Floats]:
        """What the kernel is asked in the first step of a rollout."""
        return [q[k], v[k], tau[k, 0], *starts.arguments(k, compiled.problem, compiled.mechanism)]

    at_start = [k for k in failed if not np.isfinite(kernel(*first(k))).all()]
    if at_start:
        k = at_start[0]
        which = f" of rollout {tuple(int(i) for i in np.unravel_index(k, batch))}" if batch else ""
        more = f" So have {len(at_start) - 1} others." if len(at_start) > 1 else ""
        reasons = " ".join(kernel.check(*first(k)))
        raise InputError(f"The start{which} has no accelerations: {reasons}{more}", q=q[k], v=v[k])
