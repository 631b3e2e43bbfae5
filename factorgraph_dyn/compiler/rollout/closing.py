"""What brings a state back onto the closure of its loops, as a program.

Takes a mechanism with loops or couplings; gives a program of one Gauss-Newton step of least norm, measured in the
mechanism's own size as `motion.closing` measures:

    m(q) = 0         the closure: what no pose of a loop joint has (``JointKind.misfit``), what couplings miss
    J = dm/dq        misfits are affine in the pose T, whose rate is T [V]: a column is misfit(T [J_k]) - misfit(0)
    q <- q (+) x,    x = -J^T (J J^T)^-1 m
    v <- v - J^T (J J^T)^-1 J v

Of rows that repeat each other as many are kept as are independent at the sampled states, best first; J J^T of these is
positive definite, and needs no pivoting. Where it comes to be singular after all, or a step opens loops as far as
kernels do not take them, the state becomes nan. The error is squared by every run: after three what a step of an
integrator leaves open is rounding, and v has been matched to a q that is as good as the last. The work runs once a
mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.compiler import program as programs
from factorgraph_dyn.compiler.guards import OPEN
from factorgraph_dyn.compiler.program import Guard, Operand, Program
from factorgraph_dyn.compiler.rollout.flight import freed_flight
from factorgraph_dyn.compiler.rollout.starts import numbers_apart
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import Symbol, SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape
from factorgraph_dyn.compiler.trace import tidied
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Loop, Mechanism
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closure import UNSEEN_SHARE, Motions, coupling_error, rank_tolerance
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import Array, Floats

RUNS = 3
_VANISHED = 1e-9  # part of its usual size below which a pivot is not to be trusted


class _Rows(NamedTuple):
    """Equations of the closure: names, what they miss (rows,), and their Jacobian (rows, nv), of symbols."""

    names: list[str]
    misses: Array
    J: Array

    def chosen(self, which: Sequence[int]) -> _Rows:
        """Some of the rows."""
        return _Rows([self.names[k] for k in which], self.misses[list(which)], self.J[list(which)])


def closing_program(mechanism: Mechanism, sizes: Sequence[int], problem: Problem) -> Program:
    """The program of one step towards the closure; what flies keeps its centre of mass and its momentum.

    Args:
        mechanism: The mechanism.
        sizes: Of all arguments, q, v, tau and parameters first; the others are not looked at.
        problem: What the forward kernel solves.
    """
    states = sampled_states(mechanism)
    tape = Tape(samples=len(states))
    drawn = [*states.q.T, *states.v.T, *np.ones((sum(sizes[2:]), len(states)))]
    inputs = [tape.input(f"x[{k}]", values) for k, values in enumerate(drawn)]
    q, v = symbols(tape, inputs[: sizes[0]]), symbols(tape, inputs[sizes[0] : sum(sizes[:2])])
    samples, own = SampledTape(tape, states.special), measured(mechanism)
    rows = _closure_rows(tidied(own.mechanism), q * (1.0 / own.q), tape)
    x, slip, guards = symbols(tape, [ZERO] * len(v)), symbols(tape, [ZERO] * len(v)), []
    for group in loop_groups(mechanism):
        members = [k for k, row in enumerate(rows.J) if any(row[entry].ref for entry in group.entries)]
        kept = _independent(rows.chosen(members), samples, rank_tolerance(mechanism))
        if not kept.names:
            continue  # a loop that leaves everything free
        corrections, pivots = _least_norm(kept, v * (1.0 / own.v))
        x, slip = x - corrections[0], slip + corrections[1]
        guards.append(_open_guard(kept))
        guards += [_guard(pivot, name, samples) for pivot, name in zip(pivots, kept.names, strict=True)]
    state = integrate(mechanism, q, x * own.v), v - slip * own.v
    parameters = symbols(tape, inputs[sum(sizes[:3]) : sum(sizes[:4])])
    flight = freed_flight(mechanism, problem, numbers_apart(parameters, problem, mechanism))
    if flight is not None:
        state = flight.kept(q, v, state)
    samples.check_merges()
    outputs = [int(ref) for part in state for ref in references(tape, part)]
    arguments, results = ([Operand((size,)) for size in part] for part in (sizes, sizes[:2]))
    return programs.build(tape, inputs, outputs, guards, arguments=arguments, results=results)


def check_covered(mechanism: Mechanism) -> None:
    """Raise a CompileError where a loop's misfit does not tell all that it constrains, as a screw's does not."""
    for loop in mechanism.loops:
        T = loop.type.pose(loop.axes, loop.pitch, loop.type.random(np.random.default_rng(0)))
        told = int(np.linalg.matrix_rank(_misfit_rates(loop, T, np.eye(6))))
        if told < 6 - loop.type.nv:
            raise CompileError(
                f"Rollouts of mechanism {mechanism.name!r} are not covered: loop {loop.name!r} is {loop.kind}, and how "
                "far such a joint is open is not known to kernels. Use fgd.simulate, which closes it."
            )


def _closure_rows(mechanism: Mechanism, q: SymbolArray, tape: Tape) -> _Rows:
    """All equations of the closure at a configuration."""
    motions, names, misses, blocks = Motions(mechanism, q), [], [], []
    for loop in mechanism.loops:
        T, J, entries = motions.relative(loop)
        missed = loop.type.misfit(loop.axes, T)
        block = _row_block(tape, len(missed), mechanism.nv)
        block[:, entries] = _misfit_rates(loop, T, J)
        names += [loop.name] * len(missed)
        misses.append(missed)
        blocks.append(block)
    for coupling in mechanism.couplings:
        block = _row_block(tape, 1, mechanism.nv)
        block[0, mechanism.v_slices[coupling.joint].start] = symbols(tape, tape.constant(1.0))[()]
        block[0, mechanism.v_slices[coupling.source].start] = symbols(tape, tape.constant(-coupling.ratio))[()]
        names.append(coupling.name)
        misses.append(coupling_error(mechanism, coupling, q))
        blocks.append(block)
    flat = references(tape, np.concatenate(misses)), references(tape, np.vstack(blocks))
    return _Rows(names, *(symbols(tape, refs) for refs in flat))


def _row_block(tape: Tape, rows: int, columns: int) -> SymbolArray:
    return symbols(tape, np.full((rows, columns), ZERO))


def _misfit_rates(loop: Loop, T: Array, twists: Array) -> Array:
    """The rates of a loop's misfit for twists of its successor's side, shape (rows, twists)."""
    nothing = loop.type.misfit(loop.axes, np.zeros((4, 4)))
    columns = []
    for twist in twists.T:
        dT = np.zeros((4, 4), dtype=twists.dtype if twists.dtype == object else T.dtype)
        dT[:3, :3], dT[:3, 3] = T[:3, :3] @ spatial.skew(twist[:3]), T[:3, :3] @ twist[3:]
        columns.append(loop.type.misfit(loop.axes, dT) - nothing)
    return np.array(columns).T.reshape(len(nothing), len(columns))


def _independent(rows: _Rows, samples: SampledTape, tolerance: float) -> _Rows:
    """As many rows as are independent at most of the ordinary sampled states, those farthest from the others first."""
    values = np.array([[samples.values(entry.ref)[samples.special :] for entry in row] for row in rows.J])
    left: Floats = np.moveaxis(values, -1, 0)  # states, rows, entries
    kept: list[int] = []
    largest = float(np.median(np.linalg.norm(left, axis=-1).max(axis=-1, initial=0.0)))
    while len(kept) < len(rows.names):
        sizes = np.median(np.linalg.norm(left, axis=-1), axis=0)
        best = int(np.argmax(sizes))
        if sizes[best] <= max(tolerance * largest, UNSEEN_SHARE):
            break
        kept.append(best)
        size = np.linalg.norm(left[:, best], axis=-1, keepdims=True)
        along = np.divide(left[:, best], size, out=np.zeros_like(left[:, best]), where=size > 0)
        left = left - np.einsum("sre,se->sr", left, along)[:, :, None] * along[:, None, :]
    return rows.chosen(sorted(kept))


def _least_norm(rows: _Rows, v: SymbolArray) -> tuple[list[Array], list[Symbol]]:
    """The shortest motions that a misfit and a slip ask for, and the pivots on the way."""
    J = rows.J
    A = J @ J.T
    targets = np.column_stack([rows.misses, J @ v])
    n = len(A)
    inverses: list[Symbol] = []
    pivots = []
    for k in range(n):
        pivots.append(A[k, k])
        inverses.append(1.0 / A[k, k])
        for i in range(k + 1, n):
            factor = A[i, k] * inverses[k]
            A[i, k + 1 :] = A[i, k + 1 :] - factor * A[k, k + 1 :]
            targets[i] = targets[i] - factor * targets[k]
    for k in reversed(range(n)):
        targets[k] = (
            (targets[k] - A[k, k + 1 :] @ targets[k + 1 :]) * inverses[k] if k + 1 < n else (targets[k] * inverses[k])
        )
    return list((J.T @ targets).T), pivots


def _open_guard(rows: _Rows) -> Guard:
    """A step that opens loops so far does not say which way they are to be closed."""
    missed: Symbol = np.sum(rows.misses * rows.misses)
    names = ", ".join(dict.fromkeys(rows.names))
    return Guard(abs(missed.ref), OPEN**2, f"square by which a step misses the closure of {names}", small=True)


def _guard(pivot: Symbol, name: str, samples: SampledTape) -> Guard:
    usual = float(np.median(np.abs(samples.values(pivot.ref)[samples.special :])))
    return Guard(abs(pivot.ref), _VANISHED * usual, f"pivot of the closure of {name!r}")
