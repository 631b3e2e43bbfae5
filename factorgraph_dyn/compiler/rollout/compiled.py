"""A rollout in machine code: made, proved, kept on disk, and called with arrays.

Takes a mechanism and an integrator; gives a `CompiledRollout`. It is the forward kernel's program, the integrator's
(`pieces`) and, for closed loops, what closes them (`closing`), in one loop over time. The work runs once a mechanism
and integrator: milliseconds from the cache, else somewhat more than the forward kernel takes.
"""

from __future__ import annotations

import ctypes
import struct
from dataclasses import dataclass, replace
from functools import partial
from threading import Event

import numpy as np

from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.rollout import ARGUMENTS, ENTRY_POINT, StepPrograms, emit_rollout
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.kernel.compile import compile_problem, kept_name
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.compiler.kernel.threads import in_threads
from factorgraph_dyn.compiler.rollout.closing import RUNS, check_covered, closing_program
from factorgraph_dyn.compiler.rollout.march import Pace, States, march
from factorgraph_dyn.compiler.rollout.pieces import integrator_pieces
from factorgraph_dyn.compiler.rollout.proof import HOLDS, largest_error
from factorgraph_dyn.compiler.rollout.starts import Starts
from factorgraph_dyn.equations.problem import Problem, make_problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.memory import kept_with_first
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
        problem: What the kernel solves.
        code: The machine code.
        accuracy: Its largest relative error when it was compiled, beside the kernel in a loop over numbers.
    """

    mechanism: Mechanism
    integrator: str
    kernel: Kernel
    problem: Problem
    code: machine.LoadedCode
    accuracy: float

    def run(
        self,
        starts: Starts,
        step: float,
        record_every: int = 1,
        threads: int = 1,
        out: tuple[Floats, Floats] | None = None,
    ) -> tuple[Floats, Floats]:
        """States of all rollouts at the recorded steps.

        Args:
            starts: Where they start, and what drives them.
            step: s.
            record_every: Steps from one recorded state to the next; the last is recorded in any case.
            threads: Threads that share the rollouts.
            out: Arrays to write to, of the shapes (count, rows, nq) and (count, rows, nv), contiguous.
        """
        (count, steps), every = starts.tau.shape[:2], max(min(record_every, starts.tau.shape[1]), 1)
        shapes = [(count, recorded_rows(steps, every), x.shape[1]) for x in (starts.q, starts.v)]
        q_out, v_out = out or tuple(map(np.empty, shapes))
        assert [q_out.shape, v_out.shape] == shapes  # the machine code takes them to be
        plain = Starts(*map(_with_plain_rows, starts))
        edges = np.linspace(0, count, min(threads, max(count, 1)) + 1).astype(int)
        stop, call = Event(), partial(self._call, step=step)

        def part(k: int) -> None:
            mine, pace = slice(edges[k], edges[k + 1]), Pace(self.kernel.operations.total)
            march(call, plain.part(mine), (q_out[mine], v_out[mine]), every, pace, stop)

        if len(edges) == 2:
            part(0)
        else:
            in_threads(part, len(edges) - 1, stop)
        return q_out, v_out

    def _call(self, starts: Starts, out: States, record_every: int, step: float) -> None:
        (bits,) = struct.unpack("q", struct.pack("d", step))
        q_out, v_out = out
        words = {
            "count": len(starts.q),
            "steps": starts.tau.shape[1],
            "record_every": record_every,
            "rows": q_out.strides[0] // (q_out.itemsize * q_out.shape[2]),
            "step": bits,
            "tau_step_stride": starts.tau.strides[1],
            "q_out": q_out.ctypes.data,
            "v_out": v_out.ctypes.data,
        }
        for name, array in starts._asdict().items():
            words |= {name: array.ctypes.data, f"{name}_stride": array.strides[0]}
        given = struct.pack(f"{len(ARGUMENTS)}q", *(words[name] for name in ARGUMENTS))
        ctypes.CFUNCTYPE(None, ctypes.c_char_p)(self.code.addresses[ENTRY_POINT])(given)


def recorded_rows(steps: int, record_every: int) -> int:
    """How many states of a rollout are recorded."""
    return 1 - (-steps // record_every)


def _with_plain_rows(array: Floats) -> Floats:
    """The array with the numbers of a row side by side."""
    return array if array.strides[-1] == array.itemsize or array.shape[-1] < 2 else np.ascontiguousarray(array)


@kept_with_first
def compiled_rollout(mechanism: Mechanism, integrator: str, parameters: tuple[str, ...] = ()) -> CompiledRollout:
    """The time loop of a mechanism and an integrator, from the cache on disk where it has been compiled before.

    Args:
        mechanism: What moves.
        integrator: How.
        parameters: What every rollout has its own of, in the words of `compile`.

    Raises:
        CompileError: What `compile` raises, or a loop that does not do what the kernel does.
    """
    check_covered(mechanism)
    problem = make_problem(mechanism, "forward", parameters=parameters)
    kernel = compile_problem(mechanism, problem)
    host = machine.host()
    name = kept_name(mechanism, host, "rollout", integrator, kernel.ordering.key, problem.key)
    entry = cache.read(name)
    code = None if entry is None else machine.load_or_none(entry.code, _ENTRIES, host)
    if entry is not None and code is not None:
        return CompiledRollout(mechanism, integrator, kernel, problem, code, **entry.facts)
    stored = machine.object_code(emit_rollout(step_programs(kernel, integrator, problem), host), host)
    made = CompiledRollout(mechanism, integrator, kernel, problem, machine.load(stored, _ENTRIES, host), np.nan)
    error = largest_error(made.run, kernel, problem, integrator)
    if not error <= HOLDS:
        raise CompileError(
            f"The {integrator} rollout of mechanism {mechanism.name!r} does not do what its kernel does in a loop, and "
            f"is not given away: states differ by {error:.1e} of their size. Use fgd.simulate with "
            "engine=fgd.compile(mechanism)."
        )
    cache.write(name, cache.Entry({"accuracy": error}, stored))
    return replace(made, accuracy=error)


def step_programs(kernel: Kernel, integrator: str, problem: Problem) -> StepPrograms:
    """What runs in one step."""
    forward, pieces = kernel.program(), integrator_pieces(kernel.mechanism, integrator, problem)
    advances = [pieces.last]
    if kernel.mechanism.is_closed_kind:
        sizes = [part.size for part in pieces.last.arguments]
        advances += [closing_program(kernel.mechanism, sizes, problem)] * RUNS
    return StepPrograms(forward, pieces.stages, tuple(advances))
