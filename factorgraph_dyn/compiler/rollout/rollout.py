"""Rollouts: many motions at once, from their starts and the torques of every step.

    fgd.rollout(mechanism, q0, v0, tau, step) -> q, v

Takes arrays with any leading axes; gives the states at every step. The time loop is machine code (`compiled`), made at
the first call; here arguments are checked and laid out, once a call.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice, check_count, check_positive, real_numbers
from factorgraph_dyn.compiler.rollout.compiled import CompiledRollout, compiled_rollout
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.integrators import INTEGRATORS, Integrator
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
) -> tuple[Floats, Floats]:
    """The motions that torques cause: q and v at every step, shapes (..., steps + 1, nq) and (..., steps + 1, nv).

    Leading axes of all arguments broadcast. Row k is the state after k steps; row 0 is the start. Damping, friction,
    springs and armature act as in kernels; quaternions stay unit ones; loops and couplings are closed after every step.
    A rollout that arrives where the forward kernel has no answer, turns by more than 8 rad in a step or opens a loop by
    more than 2 % of a radian or of its size is nan from there on: `simulate` says why.

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

    Raises:
        InputError: Bad shapes or numbers, or a start that is not closed or singular.
        CompileError: A mechanism that cannot be compiled, or loops that rollouts do not cover.
    """
    check_mechanism(mechanism)
    check_choice(integrator, INTEGRATORS, "The integrator")
    seconds = check_positive(step, "The step", InputError)
    every, count = check_count(record_every, "record_every"), check_count(threads, "threads")
    q, v = mechanism.check_q(q0, batch=True, what="q0"), mechanism.check_v(v0, "v0", batch=True)
    torques = real_numbers(tau, "tau", InputError)  # whether they are finite, the last states tell
    if torques.ndim < 2 or torques.shape[-1] != mechanism.nv:
        raise InputError(
            f"tau has shape {torques.shape}; it must be (..., steps, {mechanism.nv}): torques for every step, in the "
            f"order of the joints of {mechanism.name!r}, {', '.join(mechanism.joint_names)}. For the same torques in "
            "all steps use np.broadcast_to(tau, (steps, len(tau)))."
        )
    batch = _batch(q, v, torques)
    compiled = compiled_rollout(mechanism, integrator)
    q, v, torques = _flat(q, batch, 1), _flat(v, batch, 1), _flat(torques, batch, 2)
    q_rows, v_rows = compiled.run(q, v, torques, seconds, every, count)
    _check_starts(compiled, q, v, torques, v_rows, batch)
    return q_rows.reshape(*batch, *q_rows.shape[1:]), v_rows.reshape(*batch, *v_rows.shape[1:])


def _batch(q: Floats, v: Floats, tau: Floats) -> tuple[int, ...]:
    try:
        return np.broadcast_shapes(q.shape[:-1], v.shape[:-1], tau.shape[:-2])
    except ValueError:
        raise InputError(
            f"The arguments do not go together: q0 {q.shape}, v0 {v.shape}, tau {tau.shape}. The axes before (nq), "
            "(nv) and (steps, nv) have to broadcast."
        ) from None


def _flat(array: Floats, batch: tuple[int, ...], core: int) -> Floats:
    """The array with one batch axis; what all rollouts share is not copied."""
    inner = array.shape[array.ndim - core :]
    count = int(np.prod(batch))
    if array.size == int(np.prod(inner)):
        return np.broadcast_to(array.reshape(inner), (count, *inner))
    return np.broadcast_to(array, (*batch, *inner)).reshape(count, *inner)


def _check_starts(
    compiled: CompiledRollout, q: Floats, v: Floats, tau: Floats, v_rows: Floats, batch: tuple[int, ...]
) -> None:
    """Raise where a rollout has no answer because its torques are not finite, or its start has none."""
    failed = np.flatnonzero(~np.isfinite(v_rows[:, -1]).all(axis=-1))
    if not len(failed) or not tau.shape[1]:
        return
    compiled.mechanism.check_v(tau[failed], "tau", batch=True)
    kernel = compiled.kernel
    at_start = [k for k in failed if not np.isfinite(kernel(q[k], v[k], tau[k, 0])).all()]
    if at_start:
        k = at_start[0]
        which = f" of rollout {tuple(int(i) for i in np.unravel_index(k, batch))}" if batch else ""
        more = f" So have {len(at_start) - 1} others." if len(at_start) > 1 else ""
        reasons = " ".join(kernel.check(q[k], v[k], tau[k, 0]))
        raise InputError(f"The start{which} has no accelerations: {reasons}{more}", q=q[k], v=v[k])
