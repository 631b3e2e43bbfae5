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

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.describe.split import listed
from factorgraph_dyn.compiler.eliminate import Eliminated, Elimination, Unknown
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.tape import Node
from factorgraph_dyn.compiler.trace import Tracer
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import halves

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
        watched: Values to be watched at run time, such as pivots.
        quality: Worst quality of its pivots: their size beside the largest entry of their column.
        steady: The worst ratio, over its pivots, of their smallest size to their usual one in the sampled
            states; zero for a pivot that changes its sign.
    """

    rows: tuple[NumberedRow, ...]
    forward: dict[int, Node]
    backward: dict[int, Node]
    watched: tuple[int, ...]
    quality: float
    steady: float


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
        chosen, unknowns = tracer.order(graph, problem.classical)
        self.graph = tracer.structure(graph)
        self._inner = tracer.steps
        self.classical: tuple[str, ...] = chosen.variables
        self.unknowns = dict(zip(self.listed(self.classical), unknowns, strict=True))
        called = {x.name: name for name, x in self.unknowns.items()}
        self.factors = [[called[str(v)] for v, _ in factor.blocks if str(v) in called] for factor in graph.factors]
        self.tape, self.samples = tracer.tape, tracer.samples
        self._equations = tracer.elimination(state, graph, columns, unknowns)
        self.tape.own = len(self.tape)
        with np.errstate(all="ignore"):
            self._equations.prepare()
            self._start = tuple(_numbered(number, row) for number, row in self._equations.rows.items())
            eliminated = self._equations.part(self._equations.rows, unknowns).run()
        if eliminated.undetermined:
            raise CompileError("The problem leaves unknowns undetermined; its steps cannot be shared.")
        self.solution = eliminated.solution
        outputs = [tracer.output(name, state, graph, eliminated) for name in problem.outputs]
        watched = [*tracer.guards(state), *self._equations.result.guards]
        self.roots = {abs(int(ref)) for output in outputs for ref in output.flat} | {abs(g.ref) for g in watched}
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
        """The steps of an ordering; the last one judges what is left of the equations.

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
        left = [row for row in (*self._start, *(row for step in steps for row in step.rows)) if not self._atoms_in(row)]
        judged = self._judged(left)
        return None if judged is None else [*steps, judged]

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
        unknowns = [self.unknowns[x] for x in (name, *later)]
        elimination = self._equations.part({number: dict(entries) for number, entries in sorted(rows)}, unknowns)
        size = len(self.tape)
        try:
            elimination.eliminate(unknowns[0])
        except CompileError:
            return None
        finally:
            forward = self._makers_since(size)
        found = elimination.result
        if found.undetermined:
            return None
        watched = tuple(abs(guard.ref) for guard in found.guards)
        pivots = [abs(guard.ref) for guard in found.guards if not guard.small]
        left = tuple(_numbered(number, row) for number, row in elimination.rows.items())
        backward = self._substitute_back(elimination)
        steady = min((self._steadiness(pivot) for pivot in pivots), default=1.0)
        return Step(left, forward, backward, watched, found.quality, steady)

    def _judged(self, left: Iterable[NumberedRow]) -> Step | None:
        """What the compiler makes of rows that are left without unknowns; None where it refuses them."""
        rows = tuple(sorted({row for row in left if row[1]}))
        if rows not in self._steps:
            elimination = self._equations.part({number: dict(entries) for number, entries in rows}, ())
            size = len(self.tape)
            try:
                elimination.judge_left_over_rows()
            except CompileError:
                self._steps[rows] = None
            else:
                watched = tuple(abs(guard.ref) for guard in elimination.result.guards)
                self._steps[rows] = Step((), self._makers_since(size), {}, watched, 1.0, 1.0)
        return self._steps[rows]

    def _substitute_back(self, elimination: Elimination) -> dict[int, Node]:
        """Makers of the variable's own values from those of the variables that come later."""
        own = {step.column for step in elimination.steps}
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
                    makers[wanted] = makers.get(found, self.tape.node(found))
        return makers

    def _makers_since(self, size: int) -> dict[int, Node]:
        """Makers of all values that were asked for since the tape had this size."""
        tape = self.tape
        makers: dict[int, Node] = {}
        for operation, a, b, found in reversed(tape.merges):
            if found and abs(found) not in tape.constants:
                makers[abs(found)] = self._as_made(operation, a, b)
        tape.merges.clear()
        for node in range(size, len(tape)):
            makers[node] = tape.node(node)
        return makers

    def _as_made(self, operation: int, a: int, b: int) -> Node:
        """The maker of a value that was known, as it would be had the value been new."""
        operation, a, b = as_made(operation, a, b)
        if operation == t.MUL:
            tape = self.tape
            if b in tape.constants:
                a, b = b, a
            if a in tape.constants and b < tape.own and tape.operation[b] == t.MUL:
                inner = tape.left[b]
                if inner in tape.constants:
                    return t.MUL, abs(tape.constant(tape.constants[a] * tape.constants[inner])), tape.right[b]
        return operation, a, b

    def _steadiness(self, pivot: int) -> float:
        values = self.samples.values(pivot)[self.samples.special :]
        if not ((values > 0).all() or (values < 0).all()):
            return 0.0
        sizes = np.abs(values)
        return float(sizes.min() / np.median(sizes))


def as_made(operation: int, a: int, b: int) -> Node:
    """The maker of the value, up to its sign, of an operation on references."""
    if operation == t.ADD and (a < 0) != (b < 0):
        return (t.SUB, a, -b) if a > 0 else (t.SUB, b, -a)
    return operation, abs(a), abs(b)


def _numbered(number: int, row: Row) -> NumberedRow:
    return number, tuple(sorted(row.items()))
