"""An estimator becomes a program.

The readings that determine everything (``basis``) are equations of the graph, with noises r_1 of their own:

    physics,   H_1 x = y_1 + r_1

Eliminated with r_1 as parameters, the graph says what the other readings would be, H_2 x = h + C r_1. The most probable
noises e of all readings, r_1 = L_1 e, are the least that agree with them:

    D e = d        D = (L_2 - C L_1) / s_2,   d = (h - y_2) / s_2        e = D^T (D D^T)^-1 d

one small symmetric system, as large as there are more readings than it takes; the route that refines has e from rows
of D made orthogonal, since squares of noises that are far apart lose digits. With r_1 known the graph is eliminated
again: its matrix is the same, and costs nothing (equal values are one node). Estimation is forward dynamics, twice.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated, Elimination, Unknown
from factorgraph_dyn.compiler.estimator.basis import basis_readings
from factorgraph_dyn.compiler.outputs import References, Solved
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.route import CHEAP, Route
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references, symbols
from factorgraph_dyn.compiler.tape.tape import ONE, ZERO
from factorgraph_dyn.compiler.trace import Traced, Tracer
from factorgraph_dyn.equations import Factor, LinearGraph, State, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.together import outside_frames, outside_wrenches, stacked_noise
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.ordering import Ordering, OrderingLike
from factorgraph_dyn.ordering.ordering import CLASSICAL
from factorgraph_dyn.spatial import Array, Floats, inverse_adjoint

Columns = dict[Variable, tuple[int, ...]]


def trace_estimate(mechanism: Mechanism, problem: Problem, ordering: OrderingLike, route: Route = CHEAP) -> Traced:
    """The program of an estimator, eliminated in an ordering; raises as ``trace`` does."""
    return EstimateTracer(mechanism, problem, route).run(ordering)


class EstimateTracer(Tracer):
    """The equations and sensors of an estimator on a tape."""

    def __init__(self, mechanism: Mechanism, problem: Problem, route: Route = CHEAP) -> None:
        super().__init__(mechanism, problem, route)
        sensors = problem.measurements
        self.frames = outside_frames(sensors)
        self.count = problem.size_of(mechanism, "values")
        noises = [sensor.noise(mechanism) for sensor in sensors]
        self.first = basis_readings(mechanism, problem, route.seed)
        spoken = np.flatnonzero(np.concatenate([np.isfinite(noise.s) for noise in noises]))
        self.second = tuple(row for row in spoken.tolist() if row not in self.first)
        self.L = stacked_noise(mechanism, sensors)
        self.s = np.concatenate([noise.s for noise in noises])
        self.gains = any(split_name(name)[0] == "gain" for name in problem.outputs)

    def sampled(self, argument: str, size: int) -> tuple[Floats, Floats]:
        """Values of an argument at the sampled states, those of readings in the mechanism's own units."""
        drawn, errors = super().sampled(argument, size)
        if argument == "values":
            drawn = drawn * _units(self.given, self.states.q[self.states.special], self.problem.measurements)[:, None]
        return drawn, errors

    def equations(self) -> tuple[State, LinearGraph]:
        """The state and the graph with unknown wrenches from outside, without sensors."""
        state = self.state()
        pushes = outside_wrenches(self.mechanism, self.frames)
        known = self.problem.known(self.values["a"], self.values["tau"])
        return state, dynamics_graph(state, known, classical=True, pushes=pushes)

    def order(self, graph: LinearGraph, ordering: OrderingLike) -> tuple[Ordering, list[Unknown]]:
        """The ordering and its unknowns; classical ones know nothing of wrenches from outside, which come first."""
        if isinstance(ordering, str) and ordering in CLASSICAL:
            there = self.structure(graph).by_name
            names = [f"W[{frame}]" for frame in self.frames]
            names += [name for name in CLASSICAL[ordering](self.given) if name in there]
            ordering = Ordering(ordering, tuple(names))
        return super().order(graph, ordering)

    def eliminate(self, state: State, graph: LinearGraph, columns: Columns, unknowns: Sequence[Unknown]) -> Eliminated:
        """The most probable unknowns: the graph with the first readings, with noises that agree with the second."""
        read = self._readings(state, graph)
        whole = LinearGraph(graph.variables, (*graph.factors, _some(read, self.first)), graph.known)
        rows = self.rows_of(whole, columns)
        own = [len(rows) - len(self.first) + k for k in range(len(self.first))]
        parameters = [graph.columns + k for k in range(len(self.first))]
        if not self.second:
            return self._run(state, whole, self._with_gains(rows, own, self._unmoved()), unknowns)
        for row, parameter in zip(own, parameters, strict=True):
            rows[row][parameter] = -ONE
        before = self._run(state, whole, rows, unknowns)
        expected, C = self._predicted(_some(read, self.second), columns, before, parameters)
        D = (self.L[list(self.second)] - C @ self.L[list(self.first)]) / self.s[list(self.second)][:, None]
        d = expected / self.s[list(self.second)]
        sides = np.column_stack([d, *self._missed_gain(C).T]) if self.gains else d[:, None]
        noises = self._refined_noises(D, sides) if self.route.refine else D.T @ self._corrections(D, sides)
        found = self.L[list(self.first)] @ noises  # of the first, for each side
        moved, gain = found[:, 0], self._unmoved()
        for row, parameter, noise in zip(own, parameters, references(self.tape, moved), strict=True):
            del rows[row][parameter]
            rows[row][UNIT] = self.tape.add(rows[row].get(UNIT, ZERO), -int(noise))
        if self.gains:
            gain = gain + found[:, 1:]
        after = self._run(state, whole, self._with_gains(rows, own, gain), unknowns)
        after.guards = [*before.guards, *after.guards]
        after.milestones = [*before.milestones, *after.milestones]
        return after

    def _run(self, state: State, graph: LinearGraph, rows: dict[int, Row], unknowns: Sequence[Unknown]) -> Eliminated:
        how = self._how(graph)
        found = Elimination(self.tape, self.samples, rows, unknowns, **how, closed=self.closed(state)).run()
        return self.refined(graph, rows, unknowns, found) if self.route.refine else found

    def _readings(self, state: State, graph: LinearGraph) -> Factor:
        """All readings as one equation over the unknowns."""
        factors, start = [], 0
        for sensor in self.problem.measurements:
            size = sensor.size(self.given)
            values = self.values["values"][start : start + size]
            factors.append(sensor.equation(state, values, classical=True).substitute(graph.known))
            start += size
        return _stacked(factors)

    def _predicted(
        self, read: Factor, columns: Columns, solved: Eliminated, parameters: Sequence[int]
    ) -> tuple[SymbolArray, SymbolArray]:
        """What readings would be above their values, and how they follow the noises of the first."""
        expected: Array = -read.rhs
        C: Array = np.zeros((read.rows, len(parameters)))
        for variable, block in read.blocks:
            seen = [k for k, column in enumerate(block.T) if any(not _is_zero(entry) for entry in column)]
            x, X = self._solution(variable, [columns[variable][k] for k in seen], solved, parameters)
            expected = expected + block[:, seen] @ x
            C = C + block[:, seen] @ X
        return expected, C

    def _solution(
        self, variable: Variable, columns: Sequence[int], solved: Eliminated, parameters: Sequence[int]
    ) -> tuple[SymbolArray, SymbolArray]:
        """Columns of a variable that are read: others may be open, as what presses a planar loop out of its plane."""
        terms = [solved.solution[column] for column in columns]
        if any(set(row) - {UNIT, *parameters} for row in terms):
            raise CompileError(
                f"{variable} is not determined by the measurements; fgd.estimate says which sensors would tell.",
                variable=str(variable),
            )
        x = symbols(self.tape, [row.get(UNIT, ZERO) for row in terms])
        X = symbols(self.tape, [[row.get(parameter, ZERO) for parameter in parameters] for row in terms])
        return x, X

    def _corrections(self, D: SymbolArray, sides: SymbolArray) -> SymbolArray:
        """The solution W of (D D^T) W = sides, for columns of right-hand sides."""
        square, given = references(self.tape, D @ D.T), references(self.tape, sides)
        n, parameters = len(square), [self._value(k) for k in range(given.shape[1])]
        rows: dict[int, Row] = {
            i: {j: int(square[i, j]) for j in range(n)}
            | {p: -int(ref) for p, ref in zip(parameters, given[i], strict=True)}
            for i in range(n)
        }
        unknowns = [Unknown(f"the correction by reading {row}", (i,)) for i, row in enumerate(self.second)]
        solved = Elimination(self.tape, self.samples, rows, unknowns, definite=True).run()
        return symbols(self.tape, [[solved.solution[i].get(p, ZERO) for p in parameters] for i in range(n)])

    def _refined_noises(self, D: SymbolArray, sides: SymbolArray) -> SymbolArray:
        """The least noises E with D E = sides, and what they miss of the sides solved for, too."""
        found = self._unknown(_least(D, sides))
        return np.asarray(found + _least(D, self._unknown(sides - D @ found)))

    def _unknown(self, values: SymbolArray) -> SymbolArray:
        """Values of which nothing is known but their numbers, so that what rounding leaves of them is not zero."""
        refs = [self.tape.unknown(int(ref)) for ref in references(self.tape, values).flat]
        return symbols(self.tape, refs).reshape(values.shape)

    def _unmoved(self) -> Array:
        """How the first readings follow all values by themselves, shape (first, values)."""
        gain = np.zeros((len(self.first), self.count))
        gain[range(len(self.first)), list(self.first)] = 1.0
        return gain

    def _missed_gain(self, C: SymbolArray) -> Array:
        """How what the second readings are missed by follows all values, shape (second, values)."""
        second = list(self.second)
        gain: Array = np.zeros((len(second), self.count), dtype=object)
        gain[:, list(self.first)] = C / self.s[second][:, None]
        gain[range(len(second)), second] = -1.0 / self.s[second]
        return gain

    def _with_gains(self, rows: dict[int, Row], own: Sequence[int], gain: Array) -> dict[int, Row]:
        """The rows with units of all values as parameters, where gains are asked for."""
        if not self.gains:
            return rows
        for row, responses in zip(own, references(self.tape, gain), strict=True):
            rows[row] |= {self._value(k): -int(ref) for k, ref in enumerate(responses) if ref}
        return rows

    def _value(self, k: int) -> int:
        """The parameter that stands for a unit of a value."""
        return -2 - k

    def output(self, name: str, state: State, graph: LinearGraph, eliminated: Eliminated) -> References:
        """References of one result: a mean, or a gain."""
        kind, owner = split_name(name)
        if kind != "gain":
            means = Eliminated(
                {
                    c: {p: ref for p, ref in row.items() if p > UNIT or p == UNIT}
                    for c, row in eliminated.solution.items()
                }
            )
            return super().output(name, state, graph, means)
        units = []
        for k in range(self.count):
            one = {c: _of_unit(row, self._value(k)) for c, row in eliminated.solution.items()}
            units.append(self._linear(owner, state, graph, Eliminated(one)))
        return np.stack(units, axis=-1)

    def _linear(self, name: str, state: State, graph: LinearGraph, solved: Eliminated) -> References:
        """The entries of a result, without what does not depend on values."""
        at = Solved(self.tape, self.mechanism, self.problem, self.values, state, graph, solved, self.bodies)
        kind, owner = split_name(name)
        if kind == "A":
            link, T = self.mechanism.place(owner)
            moved = inverse_adjoint(T) @ symbols(self.tape, at.of(f"A[{link}]"))
            return references(self.tape, moved)
        if owner:
            return np.array(at.of(name), dtype=np.int64)
        mask = self.problem.known_a if name == "a" else self.problem.known_tau
        refs = np.zeros(self.given.nv, dtype=np.int64)
        refs[~mask] = [ref for joint in self.given.joint_names for ref in _entries(at, f"{name}[{joint}]")]
        return refs


def _least(D: SymbolArray, sides: SymbolArray) -> SymbolArray:
    """The least noises E with D E = sides, by Gram and Schmidt: D D^T loses twice as many digits, but is cheaper."""
    rows, sides, least = D.copy(), sides.copy(), np.zeros((D.shape[1], sides.shape[1]))
    for k, (row, side) in enumerate(zip(rows, sides, strict=True)):
        inverse = 1.0 / (row @ row)
        least = least + np.outer(row, side * inverse)
        shares = (rows[k + 1 :] @ row) * inverse
        rows[k + 1 :] -= np.outer(shares, row)
        sides[k + 1 :] -= np.outer(shares, side)
    return least


def _units(mechanism: Mechanism, q: Floats, sensors: Sequence[Sensor]) -> Floats:
    """What sensors read where everything is of one unit of the mechanism's own, shape (readings,)."""
    own, state = natural(mechanism), evaluate_state(mechanism, q, np.zeros(mechanism.nv))
    of_links = {"A": own.motion, "F": own.wrench, "W": own.wrench}
    of_joints = {"a": own.v, "tau": own.tau}

    def unit(x: Variable) -> Floats:
        return of_links[x.kind] if x.kind in of_links else of_joints[x.kind][mechanism.v_slices[x.owner]]

    found = []
    for sensor in sensors:
        parts = [np.abs(block) @ unit(x) for x, block in sensor.reading(state).blocks]
        found.append(sum(parts, np.zeros(sensor.size(mechanism))))
    units = np.concatenate(found)
    return np.where(units > 0, units, 1.0)  # what rests on the base reads nothing that is unknown


def _entries(solved: Solved, name: str) -> list[int]:
    return solved.of(name) if name in solved.graph.by_name else []


def _of_unit(row: Row, parameter: int) -> Row:
    """What a unit of one parameter does, in place of the constant; unknown columns stay, to be refused."""
    kept = {column: ref for column, ref in row.items() if column > UNIT}
    return {**kept, UNIT: row[parameter]} if row.get(parameter) else kept


def _stacked(factors: Sequence[Factor]) -> Factor:
    """Equations below each other, as one."""
    blocks: dict[Variable, Array] = {}
    rows, start = sum(factor.rows for factor in factors), 0
    for factor in factors:
        for variable, block in factor.blocks:
            whole = blocks.setdefault(variable, np.zeros((rows, variable.size), dtype=object))
            whole[start : start + factor.rows] += block
        start += factor.rows
    rhs = np.concatenate([np.asarray(factor.rhs, dtype=object) for factor in factors])
    return Factor("sensor", "all", tuple(blocks.items()), rhs)


def _some(factor: Factor, rows: Sequence[int]) -> Factor:
    """Some rows of an equation; variables that they do not hold are left out."""
    chosen = [(variable, block[list(rows)]) for variable, block in factor.blocks]
    held = tuple((x, block) for x, block in chosen if any(not _is_zero(entry) for entry in block.flat))
    return Factor(factor.kind, factor.owner, held, factor.rhs[list(rows)])


def _is_zero(entry: object) -> bool:
    return isinstance(entry, int | float) and entry == 0
