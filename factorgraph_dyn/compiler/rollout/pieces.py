"""An integrator, cut where it asks for accelerations.

Takes a mechanism and the name of an integrator; gives straight-line programs. The integrator's own function
(`motion.integrators`) is called with symbols: whenever it asks for an acceleration, what has been written so far
becomes the program of the place it asks about, and it goes on with new symbols. All programs take one and the same list

    q, v at the start of the step, tau, parameters | a of the first, second, ... stage | step

and give a state (q, v): the place of the next stage or, the last, the next state. (Only the last piece of a mechanism
that flies looks at tau and parameters, for its momentum: the list begins as the forward kernel's workspace does.) What
runs is then

    forward, stage 1, forward, stage 2, ..., forward, last

with the forward kernel's arithmetic in between, as it is. The work runs once a mechanism and integrator.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import numpy as np

from factorgraph_dyn.compiler import program as programs
from factorgraph_dyn.compiler.program import Guard, Operand, Program
from factorgraph_dyn.compiler.rollout.flight import freed_flight
from factorgraph_dyn.compiler.rollout.starts import numbers_apart
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.pushed import pushed
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.motion.flight import Beside, flown
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import LARGEST_TURN, Array


@dataclass(frozen=True)
class Pieces:
    """The programs of a step.

    Attributes:
        stages: What leads to the second place at which the integrator wants an acceleration, the third, ...
        last: What leads to the next state.
    """

    stages: tuple[Program, ...]
    last: Program


def integrator_pieces(mechanism: Mechanism, integrator: str, problem: Problem) -> Pieces:
    """The programs of an integrator for a mechanism, beside the forward kernel of a problem."""
    tracer = _Tracer(mechanism, problem)
    advance, start = INTEGRATORS[integrator], (tracer.q, tracer.v)
    arrived = flown(advance, tracer.flight, tracer.move, tracer.accelerate, *start, tracer.step)
    tracer.places.append((arrived, list(tracer.guards)))
    SampledTape(tracer.tape).check_merges()
    found = [tracer.program(*place) for place in tracer.places[1:]]  # the first is where the step starts
    return Pieces(tuple(found[:-1]), found[-1])


class _Tracer:
    """An integrator on a tape, while it runs."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        self.mechanism, self.tape = mechanism, Tape()
        self.q, self.v = self._inputs("q", mechanism.nq), self._inputs("v", mechanism.nv)
        self.tau, self.step = self._inputs("tau", mechanism.nv), self._inputs("step", 1)[0]
        shapes = (problem.shape_of(mechanism, name) for name in problem.free.arguments)
        self.parameters = self._inputs("parameter", sum(map(prod, shapes)))
        self.flight = freed_flight(mechanism, problem, numbers_apart(self.parameters, problem, mechanism))
        self.accelerations: list[SymbolArray] = []
        self.places: list[tuple[tuple[Array, Array], list[Guard]]] = []
        self.guards: list[Guard] = []

    def _inputs(self, name: str, size: int) -> SymbolArray:
        return symbols(self.tape, [self.tape.input(f"{name}[{k}]") for k in range(size)])

    def accelerate(self, _: float, q: Array, v: Array) -> Any:
        """New symbols for the acceleration at a place."""
        self.places.append(((q, v), list(self.guards)))
        self.accelerations.append(self._inputs(f"a{len(self.places)}", self.mechanism.nv))
        a = self.accelerations[-1]
        return a if self.flight is None else Beside(a, pushed(self.flight, q, v, a, self.tau))

    def move(self, q: Array, way: Array) -> Array:
        """The configuration a motion leads to; turns whose exponential is not had are watched."""
        for joint in self.mechanism.movable_joints:
            if not joint.type.rate_is_v:
                self.guards.append(turn_guard(self.tape, joint, way[self.mechanism.v_slices[joint.name]]))
        return integrate(self.mechanism, q, way)

    def program(self, state: tuple[Array, Array], guards: Sequence[Guard]) -> Program:
        """The program that leads to a state."""
        inputs = [self.q, self.v, self.tau, self.parameters, *self.accelerations, np.array([self.step])]
        return programs.build(
            self.tape,
            [int(ref) for part in inputs for ref in references(self.tape, part)],
            [int(ref) for part in state for ref in references(self.tape, part)],
            guards,
            arguments=[Operand(part.shape) for part in inputs],
            results=[Operand(part.shape) for part in state],
        )


def turn_guard(tape: Tape, joint: Joint, way: Array) -> Guard:
    """A turn in one step for which the exponential map is exact."""
    turn = way[joint.turns]
    (ref,) = references(tape, np.array([turn @ turn]))
    label = f"square of the turn of joint {joint.name!r} in one step"
    return Guard(abs(int(ref)), LARGEST_TURN**2, label, small=True)
