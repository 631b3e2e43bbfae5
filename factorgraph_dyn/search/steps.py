"""One mechanism and problem, eliminated in many orderings: every step is done once and remembered.

Takes a mechanism and a problem; gives, for an ordering, the steps of its elimination on the compiler's tape.
The equations are traced once. What eliminating a variable does depends only on the rows that hold it and
on the order of the unknowns in them, so that the step is remembered under these and found again in
thousands of other orderings. The values of all orderings live on one tape, where a value has one number;
a step lists the operations by which it makes each of its values,

    value <- (operation, left, right)

and a value's first maker in an ordering is its maker there, as on a tape of the ordering's own.

Tracing runs once a problem, a new step takes about 2 ms and a remembered one some microseconds.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.describe.split import listed
from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated, Elimination, Row, Unknown
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.tape import Samples, Tape
from factorgraph_dyn.compiler.trace import Tracer
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import halves

Maker = tuple[int, int, int]
"""Operation and operands, all of them nodes without sign."""

NumberedRow = tuple[int, tuple[tuple[int, int], ...]]
"""Number and entries of a row, sorted by column."""

MEMORY = 20_000  # remembered steps of some 20 kB, with their part of the tape


@dataclass(frozen=True, eq=False)
class Step:
    """What eliminating a variable did.

    Attributes:
        rows: Rows that took the place of those that held the variable.
        forward: Makers of the values of elimination.
        backward: Makers of the values of back-substitution.
        pivots: Values that divide, to be watched at run time.
        quality: Worst quality of its pivots: their size beside the largest entry of their column.
        steady: The worst ratio, over its pivots, of their smallest size to their usual one in the sampled
            states; zero for a pivot that changes its sign.
    """

    rows: tuple[NumberedRow, ...]
    forward: dict[int, Maker]
    backward: dict[int, Maker]
    pivots: tuple[int, ...]
    quality: float
    steady: float


class RecordingTape(Tape):
    """A tape that also lists operations whose value it knew already."""

    @classmethod
    def taken_over(cls, tape: Tape) -> RecordingTape:
        """The tape that goes on where another one, no longer used, stopped."""
        recording = cls.__new__(cls)
        recording.__dict__.update(tape.__dict__)
        recording.base_size = len(tape)
        return recording

    base_size: int

    def reciprocal(self, a: int) -> int:
        """Reference to 1 / a."""
        found = super().reciprocal(a)
        if abs(found) < len(self) - 1 and abs(a) not in self.constants:
            self.merges.append((t.RECIPROCAL, a, 0, found))
        return found

    def mul_constant(self, constant: int, b: int, residue: int) -> int:
        """Reference to a constant times b."""
        # A product made by another ordering must not be taken apart: its operands need not be here.
        if b >= self.base_size and self.operation[b] == t.MUL and b not in self.constants:
            return self._append(t.MUL, constant, b, residue)
        return super().mul_constant(constant, b, residue)


class RememberingSamples(SampledTape):
    """Samples that know the sums they have judged before."""

    @classmethod
    def taken_over(cls, samples: SampledTape, tape: RecordingTape) -> RememberingSamples:
        """The samples of a tape that was taken over."""
        remembering = cls.__new__(cls)
        remembering.__dict__.update(samples.__dict__)
        remembering.tape = tape
        remembering.sums = {}
        return remembering

    sums: dict[tuple[int, int], int]

    def add(self, a: int, b: int) -> int:
        """Reference to a + b, zero also where only rounding keeps it from being so."""
        key = (a, b)
        found = self.sums.get(key)
        if found is None:
            found = self.sums[key] = super().add(a, b)
        elif a and b:
            self.tape.merges.append((t.ADD, a, b, found))
        return found


class _StepElimination(Elimination):
    worst: float
    row_scales: dict[frozenset[tuple[int, int]], Samples]

    def scale(self, number: int) -> Samples:
        scale = self.scales.get(number)
        if scale is None:
            key = frozenset(self.rows[number].items())
            scale = self.row_scales.get(key)
            if scale is None:
                scale = self.row_scales[key] = super().scale(number)
            self.scales[number] = scale
        return scale

    def choose(self, columns: set[int]) -> Any:
        pivot = super().choose(columns)
        if pivot is not None:
            self.worst = min(self.worst, pivot.quality)
        return pivot


class Stepper:
    """The steps of a problem's eliminations."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        """Trace the equations and eliminate them once, in the classical ordering.

        Raises:
            CompileError: The problem leaves unknowns undetermined, so that its solution depends on the
                ordering; only `trace` can count such a problem's operations.
        """
        tracer = Tracer(mechanism, problem)
        state, graph = tracer.equations()
        columns = tracer.columns_of(graph)
        rows = tracer.rows_of(graph, columns)
        chosen, unknowns = tracer.order(graph, problem.classical)
        self.graph = tracer.structure(graph)
        self._inner = tracer.steps
        self.classical: tuple[str, ...] = chosen.variables
        names = self.listed(self.classical)
        self.tape = RecordingTape.taken_over(tracer.tape)
        self.samples = RememberingSamples.taken_over(tracer.samples, self.tape)
        tracer.tape, tracer.samples = self.tape, self.samples
        self.unknowns = dict(zip(names, unknowns, strict=True))
        called = {x.name: name for name, x in self.unknowns.items()}
        self.factors = [[called[str(v)] for v, _ in factor.blocks if str(v) in called] for factor in graph.factors]
        magnitudes = tracer.magnitudes.of(graph)
        first = _StepElimination(self.tape, self.samples, rows, unknowns, magnitudes=magnitudes)
        first.row_scales = {}
        self._template = copy.copy(first)
        self._start = tuple(_numbered(number, row) for number, row in first.rows.items())
        first.worst = 1.0
        with np.errstate(all="ignore"):
            eliminated = first.run()
        if eliminated.undetermined:
            raise CompileError("The problem leaves unknowns undetermined; its steps cannot be shared.")
        self.solution = eliminated.solution
        outputs = [tracer.output(name, state, graph, columns, eliminated) for name in problem.outputs]
        self.outputs = tuple({abs(int(ref)) for output in outputs for ref in output.flat} - {0})
        self.tape.merges.clear()
        for name in list(self.unknowns):
            parts, columns_of = halves.halves(name), self.unknowns[name].columns
            size = len(columns_of) // len(parts)
            for k, half in enumerate(parts):
                self.unknowns[half] = Unknown(half, columns_of[k * size : (k + 1) * size])
        self._atoms = {name: halves.halves(name) for name in self.unknowns}
        self._atom_of = {
            column: atom for atoms in self._atoms.values() for atom in atoms for column in self.unknowns[atom].columns
        }
        self._atoms_of_all = frozenset(self._atom_of.values())
        self._atoms_of_row: dict[NumberedRow, frozenset[str]] = {}
        self._steps: dict[Any, Step | None] = {}

    @property
    def is_full(self) -> bool:
        """Whether so much is remembered that it is time for a new stepper."""
        return len(self._steps) >= MEMORY

    def listed(self, ordering: Sequence[str]) -> tuple[str, ...]:
        """The ordering with all steps inside joints listed."""
        return tuple(listed(ordering, self._inner))

    def steps(self, ordering: Sequence[str], limit: float = math.inf) -> list[Step] | None:
        """The steps of an ordering.

        None where a pivot is missing or unsafe, or where elimination makes more values than ``limit``.
        """
        if len(ordering) < len(self._atoms_of_all):
            ordering = self.listed(ordering)
        element_of = {atom: name for name in ordering for atom in self._atoms[name]}
        rank = {name: k for k, name in enumerate(ordering)}
        holding: dict[str, set[NumberedRow]] = {atom: set() for atom in element_of}
        for row in self._start:
            for atom in self._atoms_in(row):
                holding[atom].add(row)
        steps = []
        for name in ordering:
            rows = frozenset().union(*(holding.pop(atom) for atom in self._atoms[name]))
            touched = frozenset().union(*(self._atoms_in(row) for row in rows)).difference(self._atoms[name])
            later = tuple(sorted({element_of[atom] for atom in touched}, key=rank.__getitem__))
            step = self._remembered(name, rows, later)
            if step is None or (limit := limit - len(step.forward)) < 0:
                return None
            for atom in touched:
                holding[atom] -= rows
            for row in step.rows:
                for atom in self._atoms_in(row):
                    holding[atom].add(row)
            steps.append(step)
        return steps

    def _atoms_in(self, row: NumberedRow) -> frozenset[str]:
        """The halves, or whole variables without halves, that a row holds."""
        found = self._atoms_of_row.get(row)
        if found is None:
            of = self._atom_of
            found = frozenset(of[column] for column, _ in row[1] if column in of)
            self._atoms_of_row[row] = found
        return found

    def _remembered(self, name: str, rows: frozenset[NumberedRow], later: tuple[str, ...]) -> Step | None:
        key = (name, rows, later)
        try:
            return self._steps[key]
        except KeyError:
            with np.errstate(all="ignore"):  # sampled states may be singular for values that are never used
                step = self._steps[key] = self._do(name, rows, later)
            return step

    def _do(self, name: str, rows: frozenset[NumberedRow], later: tuple[str, ...]) -> Step | None:
        elimination = copy.copy(self._template)
        elimination.rows = {number: dict(entries) for number, entries in sorted(rows)}
        elimination.holding = {column: set() for x in (name, *later) for column in self.unknowns[x].columns}
        for number, row in elimination.rows.items():
            for column in row:
                if column in elimination.holding:
                    elimination.holding[column].add(number)
        elimination.unknown_columns = set(elimination.holding)
        elimination.unknowns = [self.unknowns[x] for x in (name, *later)]
        elimination.position = {c: k for k, x in enumerate((name, *later)) for c in self.unknowns[x].columns}
        elimination.scales, elimination.steps = {}, []
        elimination.result, elimination.worst = Eliminated(), 1.0
        size = len(self.tape)
        try:
            elimination.eliminate(self.unknowns[name])
        except CompileError:
            return None
        finally:
            forward = self._makers_since(size)
        if elimination.result.undetermined:
            return None
        pivots = tuple(abs(guard.ref) for guard in elimination.result.guards)
        left = tuple(_numbered(number, row) for number, row in elimination.rows.items())
        backward = self._substitute_back(elimination)
        steady = min((self._steadiness(pivot) for pivot in pivots), default=1.0)
        return Step(left, forward, backward, pivots, elimination.worst, steady)

    def _substitute_back(self, elimination: Elimination) -> dict[int, Maker]:
        """Makers of the variable's own values from those of the variables that come later."""
        own = {column for column, _, _ in elimination.steps}
        size = len(self.tape)
        elimination.result = Eliminated(
            solution={column: terms for column, terms in self.solution.items() if column not in own}
        )
        elimination.substitute_back()
        makers = self._makers_since(size)
        for column in own:
            for parameter, ref in elimination.result.solution[column].items():
                wanted, found = abs(self.solution[column].get(parameter, 0)), abs(ref)
                if wanted and found != wanted:
                    # Constants rounded another way: the same value under another number.
                    tape = self.tape
                    makers[wanted] = makers.get(found, (tape.operation[found], tape.left[found], tape.right[found]))
        return makers

    def _makers_since(self, size: int) -> dict[int, Maker]:
        """Makers of all values that were asked for since the tape had this size."""
        tape = self.tape
        makers: dict[int, Maker] = {}
        for operation, a, b, found in reversed(tape.merges):
            if found and abs(found) not in tape.constants:
                makers[abs(found)] = self._as_made(operation, a, b)
        tape.merges.clear()
        for node in range(size, len(tape)):
            makers[node] = (tape.operation[node], tape.left[node], tape.right[node])
        return makers

    def _as_made(self, operation: int, a: int, b: int) -> Maker:
        """The maker of a value that was known, as it would be had the value been new."""
        operation, a, b = as_made(operation, a, b)
        if operation == t.MUL:
            tape = self.tape
            if b in tape.constants:
                a, b = b, a
            if a in tape.constants and b < tape.base_size and tape.operation[b] == t.MUL:
                inner = tape.left[b]
                if inner in tape.constants:
                    return t.MUL, abs(tape.constant(tape.constants[a] * tape.constants[inner])), tape.right[b]
        return operation, a, b

    def _steadiness(self, pivot: int) -> float:
        values = self.samples.values(pivot)
        if not ((values > 0).all() or (values < 0).all()):
            return 0.0
        sizes = np.abs(values)
        return float(sizes.min() / np.median(sizes))


def as_made(operation: int, a: int, b: int) -> Maker:
    """The maker of the value, up to its sign, of an operation on references."""
    if operation == t.ADD and (a < 0) != (b < 0):
        return (t.SUB, a, -b) if a > 0 else (t.SUB, b, -a)
    return operation, abs(a), abs(b)


def _numbered(number: int, row: Row) -> NumberedRow:
    return number, tuple(sorted(row.items()))


__all__ = ["UNIT", "Maker", "RecordingTape", "Step", "Stepper"]
