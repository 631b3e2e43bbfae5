"""A rollout in machine code: made, proved, kept on disk, and called with arrays.

Takes a mechanism and an integrator; gives a `CompiledRollout`. It is the forward kernel's program, the integrator's
(`pieces`) and, for closed loops, what closes them (`closing`), in one loop over time. The work runs once a mechanism
and integrator: milliseconds from the cache, else somewhat more than the forward kernel takes.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.rollout import ARGUMENTS, ENTRY_POINT, StepPrograms, emit_rollout
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.kernel.compile import compile, versions
from factorgraph_dyn.compiler.kernel.kernel import Kernel, thread_pool
from factorgraph_dyn.compiler.rollout.closing import RUNS, check_covered, closing_program
from factorgraph_dyn.compiler.rollout.pieces import integrator_pieces
from factorgraph_dyn.compiler.rollout.proof import HOLDS, largest_error
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats

_ENTRIES = (ENTRY_POINT,)


@dataclass(frozen=True, eq=False)
class CompiledRollout:
    """The time loop of a mechanism and an integrator.

    Attributes:
        mechanism: What moves.
        integrator: How.
        kernel: The forward kernel whose arithmetic it runs.
        code: The machine code.
        accuracy: Its largest relative error when it was compiled, beside the kernel in a loop over numbers.
    """

    mechanism: Mechanism
    integrator: str
    kernel: Kernel
    code: machine.LoadedCode
    accuracy: float

    def run(
        self, q: Floats, v: Floats, tau: Floats, step: float, record_every: int = 1, threads: int = 1
    ) -> tuple[Floats, Floats]:
        """States of all rollouts at the recorded steps.

        Args:
            q, v: Starts, shapes (count, nq) and (count, nv).
            tau: Torques of every step, shape (count, steps, nv).
            step: s.
            record_every: Steps from one recorded state to the next; the last is recorded in any case.
            threads: Threads that share the rollouts.
        """
        count, steps, _ = tau.shape
        rows = 1 - (-steps // record_every)
        q_out, v_out = np.empty((count, rows, q.shape[1])), np.empty((count, rows, v.shape[1]))
        q, v, tau = _with_plain_rows(q), _with_plain_rows(v), _with_plain_rows(tau)
        edges = np.linspace(0, count, min(threads, max(count, 1)) + 1).astype(int)

        def part(k: int) -> None:
            mine = slice(edges[k], edges[k + 1])
            self._call(q[mine], v[mine], tau[mine], q_out[mine], v_out[mine], step, record_every)

        if len(edges) == 2:
            part(0)
        else:
            list(thread_pool(threads).map(part, range(len(edges) - 1)))
        return q_out, v_out

    def _call(
        self, q: Floats, v: Floats, tau: Floats, q_out: Floats, v_out: Floats, step: float, record_every: int
    ) -> None:
        (bits,) = struct.unpack("q", struct.pack("d", step))
        words = {
            "count": len(q),
            "steps": tau.shape[1],
            "record_every": record_every,
            "rows": q_out.shape[1],
            "step": bits,
            "q": q.ctypes.data,
            "q_stride": q.strides[0],
            "v": v.ctypes.data,
            "v_stride": v.strides[0],
            "tau": tau.ctypes.data,
            "tau_stride": tau.strides[0],
            "tau_step_stride": tau.strides[1],
            "q_out": q_out.ctypes.data,
            "v_out": v_out.ctypes.data,
        }
        given = (ctypes.c_int64 * len(ARGUMENTS))(*(words[name] for name in ARGUMENTS))
        ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.code.addresses[ENTRY_POINT])(ctypes.addressof(given))


def _with_plain_rows(array: Floats) -> Floats:
    """The array with the numbers of a row side by side."""
    return array if array.strides[-1] == array.itemsize or array.shape[-1] < 2 else np.ascontiguousarray(array)


@lru_cache(maxsize=32)
def compiled_rollout(mechanism: Mechanism, integrator: str) -> CompiledRollout:
    """The time loop of a mechanism and an integrator, from the cache on disk where it has been compiled before.

    Raises:
        CompileError: What `compile` raises, or a loop that does not do what the kernel does.
    """
    check_covered(mechanism)
    kernel = compile(mechanism, "forward")
    host = machine.host()
    name = cache.key(versions(), repr(host), mechanism.fingerprint, "rollout", integrator, repr(kernel.ordering))
    entry = cache.read(name)
    code = None if entry is None else machine.load_or_none(entry.code, _ENTRIES, host)
    if entry is not None and code is not None:
        return CompiledRollout(mechanism, integrator, kernel, code, **entry.facts)
    stored = machine.object_code(emit_rollout(step_programs(kernel, integrator), host), host)
    made = CompiledRollout(mechanism, integrator, kernel, machine.load(stored, _ENTRIES, host), np.nan)
    error = largest_error(made.run, kernel, integrator)
    if not error <= HOLDS:
        raise CompileError(
            f"The {integrator} rollout of mechanism {mechanism.name!r} does not do what its kernel does in a loop, and "
            f"is not given away: states differ by {error:.1e} of their size. Use fgd.simulate with "
            "engine=fgd.compile(mechanism)."
        )
    cache.write(name, cache.Entry({"accuracy": error}, stored))
    return replace(made, accuracy=error)


def step_programs(kernel: Kernel, integrator: str) -> StepPrograms:
    """What runs in one step."""
    pieces = integrator_pieces(kernel.mechanism, integrator)
    advances = [pieces.last]
    if kernel.mechanism.is_closed_kind:
        advances += [closing_program(kernel.mechanism, [part.size for part in pieces.last.arguments])] * RUNS
    return StepPrograms(kernel.program(), pieces.stages, tuple(advances))
