"""One integration step with its derivatives as straight-line code.

Takes a tree, an integrator and an ordering; gives the program

    q (nq,), v (nv,), tau (nv,), step ()  ->  q' (nq,), v' (nv,), A (2 nv, 2 nv), B (2 nv, nv)

The integrator's own function (`motion.integrators`) is called with arrays of symbols that carry their changes along,
and wherever it asks for accelerations the forward problem is traced at that place, with its derivatives. Where a
joint's motions compose, q (+) u changes by matrices E and J: coordinates differentiated on the tape, and brought back
to velocities:

    (q (+) u)' = E q' + J u',        E, J = P (d coordinates / d q, d u),        P N = 1,     coordinates' = N velocity

The work runs once a mechanism and integrator.
"""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from factorgraph_dyn.compiler import program as programs
from factorgraph_dyn.compiler.derive.rates import Rates
from factorgraph_dyn.compiler.program import Guard, Operand, Program
from factorgraph_dyn.compiler.rollout.pieces import turn_guard
from factorgraph_dyn.compiler.step.flight import VariedFlight
from factorgraph_dyn.compiler.step.varied import Varied
from factorgraph_dyn.compiler.tape.symbol import Symbol, SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ONE, ZERO
from factorgraph_dyn.compiler.trace import Tracer, tidied
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.motion.flight import Beside, Flight, flight_of, flown
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.motion.masses import moving_bodies
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.spatial import Array

OUTPUTS = ("a", "da/dq", "da/dv", "da/dtau")
AFFORDABLE = 80_000
"""Nodes of a tape beyond which code is not straight-line: it would take minutes to compile."""


def step_program(mechanism: Mechanism, integrator: str, ordering: Ordering) -> Program:
    """The program of a step.

    Raises:
        CompileError: It would be too long, or what tracing the forward problem raises.
    """
    return _StepTracer(mechanism, ordering).run(integrator)


class _StepTracer:
    """An integrator on a tape, while it runs."""

    def __init__(self, mechanism: Mechanism, ordering: Ordering) -> None:
        self.mechanism, self.ordering = mechanism, ordering
        self.tracer = Tracer(mechanism, make_problem(mechanism, "forward", outputs=OUTPUTS))
        self.tape, self.guards = self.tracer.tape, list[Guard]()
        rate = self.tracer.states.rate
        drawn = np.random.default_rng(0).uniform(0.5, 1.0, self.tape.sample_count) * 1e-2 / rate
        self.step = Symbol(self.tape, self.tape.input("step", drawn))

    def run(self, integrator: str) -> Program:
        nv, values = self.mechanism.nv, self.tracer.values
        unit = np.eye(2 * nv, 3 * nv)
        start = Varied(values["q"], unit[:nv]), Varied(values["v"], unit[nv:])
        flight = flight_of(self.mechanism, moving_bodies(tidied(self.mechanism)))
        flying = None if flight is None else VariedFlight(flight, values["tau"], partial(self._centre, flight))

        def accelerate(_: float, q: Varied, v: Varied) -> Any:
            a = self._accelerate(q, v)
            return a if flying is None else Beside(a, flying.pushed(q, v, a))

        places = flown(INTEGRATORS[integrator], flying, self._move, accelerate, *start, self.step)
        change = np.concatenate([place.change for place in places])
        results = [places[0].value, places[1].value, change[:, : 2 * nv], change[:, 2 * nv :]]
        self.tracer.samples.check_merges()
        sizes = [(self.mechanism.nq,), (nv,), (nv,), ()]
        return programs.build(
            self.tape,
            [*self.tracer.input_refs, self.step.ref],
            [int(ref) for result in results for ref in references(self.tape, result).flat],
            list({(guard.ref, guard.small): guard for guard in self.guards}.values()),
            arguments=[Operand(size) for size in sizes],
            results=[Operand(result.shape) for result in results],
        )

    def _accelerate(self, q: Varied, v: Varied) -> Varied:
        """The acceleration at a place."""
        if len(self.tape) > AFFORDABLE:
            raise CompileError(f"A step of mechanism {self.mechanism.name!r} is too long for straight-line code.")
        tracer = self.tracer
        tracer.values = {**tracer.values, "q": q.value, "v": v.value}
        solved = tracer.solved(self.ordering)
        derived = tracer.derivatives(*solved)
        state, graph, _, eliminated = solved
        self.guards += [*tracer.guards(state), *eliminated.guards, *derived.guards]
        a = symbols(self.tape, tracer.output("a", state, graph, eliminated))
        by_q, by_v, by_tau = (symbols(self.tape, derived.of(name)) for name in OUTPUTS[1:])
        change = by_q @ q.change + by_v @ v.change
        change[:, 2 * self.mechanism.nv :] += by_tau
        return Varied(a, change)

    def _move(self, q: Varied, way: Varied) -> Varied:
        """The configuration a motion leads to."""
        arrived, change = integrate(self.mechanism, q.value, way.value), q.change + way.change
        for joint in self.mechanism.movable_joints:
            if not joint.type.rate_is_v:
                here, part = self.mechanism.q_slices[joint.name], self.mechanism.v_slices[joint.name]
                self.guards.append(turn_guard(self.tape, joint, way.value[part]))
                E, J = self._composed(joint, q.value[here], way.value[part], arrived[here])
                change[part] = E @ q.change[part] + J @ way.change[part]
        return Varied(arrived, change)

    def _centre(self, flight: Flight, q: Varied, v: Varied) -> tuple[Varied, Varied]:
        """The centre of mass of what flies and its velocity at a state."""
        tape, nv, parts = self.tape, self.mechanism.nv, flight.centre(q.value, v.value)
        changes = {int(ref): {nv + k: ONE} for k, ref in enumerate(references(tape, v.value))}
        for joint in self.mechanism.movable_joints:
            here, start = self.mechanism.q_slices[joint.name], self.mechanism.v_slices[joint.name].start
            refs = references(tape, q.value[here])
            for k, N in enumerate(self._velocities(joint, q.value[here]), start):
                for ref, rate in zip(refs, references(tape, N), strict=True):
                    changes.setdefault(int(ref), {})[k] = int(rate)
        rates, states = Rates(tape, changes), np.concatenate([q.change, v.change])
        moved = []
        for part in parts:
            rows = [[rates.of(int(ref)).get(k, ZERO) for k in range(2 * nv)] for ref in references(tape, part)]
            moved.append(Varied(part, symbols(tape, rows) @ states))
        return moved[0], moved[1]

    def _composed(self, joint: Joint, q: SymbolArray, way: SymbolArray, arrived: SymbolArray) -> tuple[Array, Array]:
        """How a joint's velocities change with those of where it was, and with the way, shape (nv, nv) each."""
        tape, nv = self.tape, joint.nv
        changes: dict[int, dict[int, int]] = {int(ref): {} for ref in references(tape, q)}
        for k, N in enumerate(self._velocities(joint, q)):
            for ref, rate in zip(references(tape, q), references(tape, N), strict=True):
                changes[int(ref)] |= {k: int(rate)}
        changes |= {int(ref): {nv + k: ONE} for k, ref in enumerate(references(tape, way))}
        rates = Rates(tape, changes)
        refs = [[rates.of(int(ref)).get(k, ZERO) for k in range(2 * nv)] for ref in references(tape, arrived)]
        N = np.array(self._velocities(joint, arrived))
        plain = np.array(self._velocities(joint, joint.type.neutral()))
        moved = (N / np.sum(plain * plain, axis=1)[:, None]) @ symbols(tape, refs)  # columns of N stay orthogonal
        return moved[:, :nv], moved[:, nv:]

    @staticmethod
    def _velocities(joint: Joint, q: Array) -> list[Array]:
        """How coordinates change along each freedom."""
        return [joint.type.rate(q, unit) for unit in np.eye(joint.nv)]
