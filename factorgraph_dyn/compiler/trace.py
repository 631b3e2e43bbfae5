"""A mechanism and a problem become a program.

Takes a mechanism, a problem and an ordering; gives the program of its kernel. The equation functions of
``equations`` are called with symbols instead of numbers, the graph's blocks become rows of references,
and `eliminate` solves them. The mechanism may be described in any way that leaves what is asked for as it is,
and is described in a cheap one:

    regroup    inertia moved to where it costs nothing (wrenches change: not where they are asked for)
    reframe    link frames in which constants vanish (where nothing but a and tau is given and asked for; free
               parameters are carried to them at every state, where that costs less than the frames save)
    split      placements taken in steps
    classical  accelerations of the links' origins, whose equations need no linear velocities
    known      motion: where all accelerations are given, those of links are no unknowns (``equations/known_motion``),
               and inertia is moved to where that is cheapest

Operations of inverse (rnea) and forward dynamics (aba), each change added to those above it:

                 general 6R     PUMA 560    UR5         Panda        humanoid
    none         1322  3038     568 1034    636 1195    989  1899    2059  5762
    regroup      1162  2804     424  859    390  878    825  1696    1803  5415
    classical    1038  2731     396  843    359  868    728  1615    1550  5144
    split         869  2633     377  858    335  813    682  1485    1415  4720
    reframe       794  1949     377  858    335  813    639  1408    1415  4720
    known motion  688  1949     314  858    287  813    537  1408    1232  4720
    published     836  2067

The work runs once a mechanism, problem and ordering.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from typing import Any

import numpy as np

from factorgraph_dyn.compiler import program as programs
from factorgraph_dyn.compiler.derive.again import Again
from factorgraph_dyn.compiler.derive.derivatives import Derivatives, directions
from factorgraph_dyn.compiler.describe.free import freed, freed_joints, freed_links
from factorgraph_dyn.compiler.describe.reframe import Reframed, reframed
from factorgraph_dyn.compiler.describe.regroup import regrouped
from factorgraph_dyn.compiler.describe.split import Split, extended, split
from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated, Elimination, Unknown
from factorgraph_dyn.compiler.guards import NOTHING, breaches, closure_guards, is_ball, mode_guards, per_square_open
from factorgraph_dyn.compiler.known_constants import know_constants
from factorgraph_dyn.compiler.magnitudes import Magnitudes
from factorgraph_dyn.compiler.outputs import References, Solved, read_output
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.refine import Remaining, refined
from factorgraph_dyn.compiler.route import CHEAP, Route
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import Symbol, SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape
from factorgraph_dyn.compiler.watched import condition
from factorgraph_dyn.equations import LinearGraph, State, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.dynamics_graph import LinkMotion
from factorgraph_dyn.equations.factors import joint_losses
from factorgraph_dyn.equations.free import GRAVITY, PARAMETERS
from factorgraph_dyn.equations.inputs import contact_pushes
from factorgraph_dyn.equations.known_motion import link_motion
from factorgraph_dyn.equations.problem import Problem, problem_graph, without_kept
from factorgraph_dyn.equations.quantities import quantity, split_derivative
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.assembly import tidy
from factorgraph_dyn.model.parameters import parameter_links
from factorgraph_dyn.model.sizes.units import measured, natural
from factorgraph_dyn.motion.closed_places import drive_all
from factorgraph_dyn.motion.masses import moving_bodies
from factorgraph_dyn.ordering import Ordering, OrderingLike, choose_ordering, halves
from factorgraph_dyn.spatial import Floats


@dataclass(frozen=True)
class Traced:
    """A traced problem.

    Attributes:
        program: What the kernel computes.
        ordering: The ordering it was eliminated in.
        redundant: How many equations turned out to repeat others.
    """

    program: programs.Program
    ordering: Ordering
    redundant: int


def trace(mechanism: Mechanism, problem: Problem, ordering: OrderingLike, route: Route = CHEAP) -> Traced:
    """The program of a problem, eliminated in an ordering; the route says how it is described.

    Raises:
        CompileError: The ordering has no safe pivots, or an output is not determined.
        OrderingError: The ordering does not fit the problem.
    """
    tracer = Tracer(mechanism, problem, route)
    found = tracer.run(ordering)
    if problem.free.links and tracer.is_reframed:  # carrying parameters to other frames may cost more than these save
        with suppress(CompileError):
            there = Tracer(mechanism, problem, replace(route, reframe=False)).run(ordering)
            return min(found, there, key=lambda traced: traced.program.cost)
    return found


class Tracer:
    """The equations of a problem on a tape, and their elimination."""

    mechanism: Mechanism
    bodies: Mechanism

    def __init__(self, mechanism: Mechanism, problem: Problem, route: Route = CHEAP) -> None:
        self.problem, self.route = problem, route
        self.given = mechanism.tree if problem.tree_only else mechanism
        plain = tidied(self.given)
        shown = [quantity(name) for name in (*problem.arguments, *problem.outputs)]
        keeps_frames = bool(problem.contacts) or GRAVITY in problem.free.others
        keeps_frames |= any(one.in_link_frames for one in shown)
        frames = reframed(plain) if route.reframe and not keeps_frames else Reframed(plain, np.zeros(plain.nq))
        self.is_reframed = bool(frames.frames)
        # Responses to torques carry a column a torque through every step: for mere shifts they are too many.
        whole = Split(frames.mechanism, ())
        parts = split(frames.mechanism, shifts=problem.kept != "tau") if route.split else whole
        self.offset, self.mechanism, self.steps = frames.offset, parts.mechanism, parts.steps
        self.magnitudes = Magnitudes(parts.mechanism)
        splits = problem.reads_wrenches or any(one.splits_inertia for one in shown)
        plain, regroups = self.mechanism, route.regroup and not splits
        self._gather(plain, regroups)
        self.states = sampled_states(self.given, route.seed)
        self.tape = Tape(seed=route.seed, samples=len(self.states))
        know_constants(self.tape, self.mechanism)
        self.samples = SampledTape(self.tape, self.states.special)
        self.values: dict[str, SymbolArray] = {}
        self.input_refs: list[int] = []
        for name in problem.arguments:
            shape = problem.shape_of(mechanism, name)
            drawn, errors = self.sampled(name, prod(shape))
            refs = [self.tape.input(f"{name}[{k}]", drawn[k], errors=errors[k]) for k in range(prod(shape))]
            self.input_refs += refs
            self.values[name] = symbols(self.tape, refs).reshape(shape)
        nothing = symbols(self.tape, [ZERO] * mechanism.nv)
        for name in ("v", "a", "tau"):
            self.values.setdefault(name, nothing)
        self.others = {name: self.values[name] for name in problem.free.others}
        if problem.free.links:
            self._gather(freed_links(plain, problem.free.links, self.values[PARAMETERS], frames.frames), regroups)
        if self.others:
            self.mechanism, self.bodies = (freed(one, self.others) for one in (self.mechanism, self.bodies))

    def _gather(self, mechanism: Mechanism, regroups: bool) -> None:
        """Take a mechanism, its inertia where it costs nothing."""
        self.mechanism = mechanism
        self.bodies = moving_bodies(mechanism)
        if regroups:
            is_still = {"v", "a"}.isdisjoint(self.problem.arguments)
            self.bodies = regrouped(self.bodies, moving=self._knows_motion and not is_still)
            self.mechanism = replace(mechanism, links=self.bodies.links)

    def run(self, ordering: OrderingLike) -> Traced:
        """The program that an ordering gives."""
        state, graph, chosen, eliminated = self.solved(ordering)
        derived = self.derivatives(state, graph, chosen, eliminated) if self.problem.derivatives else None
        outputs = [
            derived.of(name) if derived and split_derivative(name) else self.output(name, state, graph, eliminated)
            for name in self.problem.outputs
        ]
        self.samples.check_merges()
        flat = [int(ref) for output in outputs for ref in output.flat]
        watched = [*self.guards(state), *eliminated.guards, *(derived.guards if derived else ())]
        guards = _distinct(watched) if self.problem.guarded else []
        arguments = [programs.Operand(self.values[name].shape) for name in self.problem.arguments]
        results = [programs.Operand(output.shape) for output in outputs]
        program = programs.build(
            self.tape,
            self.input_refs,
            flat,
            guards,
            eliminated.milestones,
            arguments=arguments,
            results=results,
            parameters=len(self.problem.free.arguments),
        )
        return Traced(program, chosen, eliminated.redundant)

    def solved(self, ordering: OrderingLike) -> tuple[State, LinearGraph, Ordering, Eliminated]:
        """The state, and what an ordering makes of the graph; where nothing is sought there is none."""
        if self.problem.solves_nothing:
            return self.state(), LinearGraph((), ()), Ordering(self.problem.classical, ()), Eliminated()
        state, graph = self.equations()
        columns = self.columns_of(graph)
        chosen, unknowns = self.order(graph, ordering)
        return state, graph, chosen, self.eliminate(state, graph, columns, unknowns)

    def guards(self, state: State) -> list[programs.Guard]:
        """What has to be watched whatever the ordering is: that loops are closed."""
        q, own = self.values["q"], measured(self.given)
        found = closure_guards(self.tape, state, q, own, self._square_given())
        found += mode_guards(self.tape, self.given, q, self.states.q, own)
        if self._moves_as_given:
            missed = breaches(state, own, self.values["a"])
            refs = [[int(ref) for ref in references(self.tape, misfit) if self._varies(ref)] for misfit in missed]
            found += [condition(self.samples, misfits, self._per_square_given()) for misfits in refs if misfits]
        return found

    def _varies(self, ref: int) -> bool:
        """Whether a value depends on anything: between links that never move rounding of constants is all there is."""
        return bool(ref) and abs(ref) not in self.tape.constants

    @property
    def _moves_as_given(self) -> bool:
        """Whether all accelerations are given, and loops can be looked at where their sides meet."""
        return self.is_closed and bool(self.problem.known_a.all()) and all(map(is_ball, self.mechanism.loops))

    @property
    def _is_tied(self) -> bool:
        """Whether given values may contradict equations that nobody looks at elsewhere."""
        is_tied_by_loops = self.mechanism.is_closed_kind and not self._moves_as_given
        return bool(self.problem.known_a.any() and is_tied_by_loops) or self._lacks_motors

    @cached_property
    def _lacks_motors(self) -> bool:
        """Whether accelerations are given that the motors may not be able to cause."""
        known_a, known_tau = self.problem.known_a, self.problem.known_tau
        usual = self.states.q[self.states.special]
        return bool((known_a & known_tau).any()) and not drive_all(self.given, usual, ~known_tau)

    @property
    def is_closed(self) -> bool:
        """Whether there are loops or couplings, and values at a state that may contradict them."""
        return self.mechanism.is_closed_kind and self.problem.kept is None

    def eliminate(
        self, state: State, graph: LinearGraph, columns: dict[Variable, tuple[int, ...]], unknowns: Sequence[Unknown]
    ) -> Eliminated:
        """Every unknown as a combination of parameters."""
        found = self.elimination(state, graph, columns, unknowns).run()
        return self.refined(graph, self.rows_of(graph, columns), unknowns, found) if self.route.refine else found

    def refined(
        self, graph: LinearGraph, rows: Mapping[int, Row], unknowns: Sequence[Unknown], found: Eliminated
    ) -> Eliminated:
        """A solution of the graph's rows, refined once."""
        how = self._how(graph)

        def again(rows: Mapping[int, Row]) -> Eliminated:
            return Remaining(self.samples, rows, unknowns, {}, (), **how).run()

        return refined(self.tape, rows, found, again)

    def sampled(self, argument: str, size: int) -> tuple[Floats, Floats]:
        """Values of an argument at the sampled states, of usual size, and their errors, shape (size, states)."""
        return self.states.of(argument, size, self.problem.free.links)

    def elimination(
        self, state: State, graph: LinearGraph, columns: dict[Variable, tuple[int, ...]], unknowns: Sequence[Unknown]
    ) -> Elimination:
        """The elimination of the unknowns in their order."""
        rows, how = self.rows_of(graph, columns), self._how(graph)
        given = self._per_square_given() if self._is_tied else None
        return Elimination(self.tape, self.samples, rows, unknowns, **how, given=given, closed=self.closed(state))

    def closed(self, state: State) -> int | None:
        """One over the square by which loops are open, where there are loops and it is watched."""
        if not (self.problem.guarded and self.mechanism.loops):
            return None
        return int(references(self.tape, np.array([per_square_open(state, measured(self.given))]))[0])

    def _how(self, graph: LinearGraph) -> dict[str, Any]:
        """What every elimination of a graph has to know: how large unknowns are, whether equations may repeat, ..."""
        loops = bool(self.mechanism.loops)
        return {"magnitudes": self.magnitudes.of(graph), "noisy": loops, "patient": self.route.patient}

    def _per_square_given(self) -> int:
        """One over the squared size of everything that is given, in the mechanism's own units.

        Where motors cause any motion, accelerations that are given all are as large as what velocities ask for.
        """
        own = natural(self.given)
        a, v = self.values["a"] / own.v, self.values["v"] / own.v
        gravity = np.asarray(self.others.get(GRAVITY, self.given.gravity)) / own.length
        is_caused = self.problem.known_a.all() and not self._lacks_motors
        size = np.sum(a * a) if is_caused else self._square_given() + np.sum(v * v) ** 2
        size = size + (gravity @ gravity + NOTHING)
        return int(references(self.tape, np.array([1.0 / size]))[0])

    def _square_given(self) -> Symbol:
        """The squared size of accelerations, torques, wrenches and losses, in the mechanism's own units."""
        own, values = natural(self.given), self.values
        parts = [values["a"] / own.v, values["tau"] / own.tau, self._losses() / own.tau]
        parts += [values[f"wrench[{name}]"] / own.wrench for name in self.problem.pushed]
        parts += [self.others[GRAVITY] / own.length] if GRAVITY in self.others else []
        square: Symbol = sum((np.sum(part * part) for part in parts), Symbol(self.tape, ZERO))
        return square

    def _losses(self) -> SymbolArray:
        """What damping, friction and springs take from the motors, shape (nv,)."""
        losses, mechanism = symbols(self.tape, [ZERO] * self.given.nv), self.given
        effects = {name: value for name, value in self.others.items() if name != GRAVITY}
        for joint in freed_joints(mechanism.movable_joints, effects):
            q, v = self.values["q"][mechanism.q_slices[joint.name]], self.values["v"][mechanism.v_slices[joint.name]]
            taken = joint_losses(q, v, joint.damping, joint.friction, joint.stiffness, joint.rest)
            losses[mechanism.v_slices[joint.name]] = taken
        return losses

    def state(self) -> State:
        """The state, of symbols."""
        return evaluate_state(self.mechanism, self.values["q"] + self.offset, self.values["v"])

    def equations(self) -> tuple[State, LinearGraph]:
        """The state and the graph, both of symbols."""
        state = self.state()
        known = self.problem.known(self.values["a"], self.values["tau"])
        wrenches = {name: self.values[f"wrench[{name}]"] for name in self.problem.pushed}
        pushes = contact_pushes(self.mechanism, state.q, self.problem.contacts)
        axes, moving = self.problem.wrench_axes, self._moving(state)
        graph = dynamics_graph(state, known, wrenches, axes=axes, classical=True, pushes=pushes, moving=moving)
        return state, graph

    @property
    def _knows_motion(self) -> bool:
        """Whether all accelerations are given, so that those of links need not be unknowns.

        Derivatives are those of the rows at fixed unknowns, so they keep the accelerations of links among these.
        """
        return bool(self.problem.known_a.all()) and self.problem.kept is None and not self.problem.derivatives

    def _moving(self, state: State) -> LinkMotion | None:
        """How all links move, where that is known: cheaper than as unknowns."""
        return link_motion(state, self.values["a"]) if self._knows_motion else None

    def structure(self, graph: LinearGraph) -> LinearGraph:
        """The graph of the variables that an ordering lists: without steps and parameters."""
        if self.steps:
            return problem_graph(self.given, self.problem)
        return without_kept(graph, self.problem)

    def columns_of(self, graph: LinearGraph) -> dict[Variable, tuple[int, ...]]:
        """The columns of every variable."""
        return {variable: tuple(range(part.start, part.stop)) for variable, part in graph.column_slices.items()}

    def order(self, graph: LinearGraph, ordering: OrderingLike) -> tuple[Ordering, list[Unknown]]:
        """The ordering and its unknowns; those that stay as parameters are left out."""
        self.problem.check_solved()
        chosen = choose_ordering(self.given, self.structure(graph), ordering, halves=True)
        return chosen, [Unknown(name, halves.columns(name, graph)) for name in extended(chosen, self.steps)]

    def rows_of(self, graph: LinearGraph, columns: dict[Variable, tuple[int, ...]]) -> dict[int, Row]:
        """The equations as rows of references."""
        rows: dict[int, Row] = {}
        for factor in graph.factors:
            first = len(rows)
            for k, ref in enumerate(references(self.tape, factor.rhs)):
                rows[first + k] = {UNIT: -int(ref)} if ref else {}
            for variable, block in factor.blocks:
                for (k, j), ref in np.ndenumerate(references(self.tape, block)):
                    if ref:
                        row, column = rows[first + k], columns[variable][j]
                        row[column] = self.tape.add(row.get(column, ZERO), int(ref))
        return rows

    def output(self, name: str, state: State, graph: LinearGraph, eliminated: Eliminated) -> References:
        """References of one result."""
        return read_output(self.read_off(state, graph, eliminated), name)

    def read_off(self, state: State, graph: LinearGraph, eliminated: Eliminated) -> Solved:
        """What results are read off."""
        links = parameter_links(self.given)
        return Solved(
            self.tape, self.mechanism, self.problem, self.values, state, graph, eliminated, self.bodies, links
        )

    def derivatives(self, state: State, graph: LinearGraph, ordering: Ordering, eliminated: Eliminated) -> Derivatives:
        """The derivatives that are asked for, by one more elimination."""
        along = directions(self.tape, self.given, self.values, self.problem.derivatives)
        rows = self.rows_of(graph, self.columns_of(graph))
        how = self._how(graph)
        _, unknowns = (ordering, []) if self.problem.solves_nothing else self.order(graph, ordering)

        def again(
            rows: Mapping[int, Row],
            order: Sequence[Unknown] = unknowns,
            partners: Mapping[int, int] | None = None,
            unasked: Container[int] = (),
        ) -> Again:
            return Again(self.samples, rows, order, partners or {}, unasked, **how)

        found = Derivatives(self.read_off(state, graph, eliminated), along, rows, again)
        if self.problem.kept is not None:
            return found  # of coefficients, which are no unknowns: the tape itself is differentiated
        turns_with_q = bool(self.problem.pushed) and self.problem.wrench_axes == "world"
        found.solve(rigid=self.route.rigid and not (self.mechanism.loops or turns_with_q or not graph.factors))
        return found


def _distinct(guards: Iterable[programs.Guard]) -> list[programs.Guard]:
    """One guard a value."""
    return list({(guard.ref, guard.small): guard for guard in guards}.values())


def tidied(mechanism: Mechanism) -> Mechanism:
    """The mechanism with the zeros and ones of its placements exact."""
    joints = tuple(replace(joint, placement=tidy(np.asarray(joint.placement))) for joint in mechanism.joints)
    loops = tuple(
        replace(
            loop,
            predecessor_placement=tidy(np.asarray(loop.predecessor_placement)),
            successor_placement=tidy(np.asarray(loop.successor_placement)),
        )
        for loop in mechanism.loops
    )
    frames = tuple(replace(frame, placement=tidy(np.asarray(frame.placement))) for frame in mechanism.frames)
    return replace(mechanism, joints=joints, loops=loops, frames=frames)
