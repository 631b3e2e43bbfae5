"""Derivatives of a problem's results: the equations differentiated where they are solved, and solved once more.

Takes a traced problem after its elimination; gives references of d<output>/d<argument>. With x the solution of
A x = b, and ' the change along an entry of an argument,

    A x' = b' - A' x

has the matrix that was eliminated before: its pivots are found again by value numbering and cost nothing, and every
direction is one more right-hand side. Where there are no loops, what changes with q and v is written as rigid motions,
which is cheaper still (`rigid`). Results that are read off x and the state change by the rules of `rates`.

Operations of value, d/dq and d/dv, inverse (rnea) and forward dynamics (aba, crba):

                         PUMA 560            UR5                 Panda               humanoid
    through all of it          4975               4420               12554
    as they stand        1759 3629 3229      1390 3202 2622      5977 9452 9524      12383 37705 39390
    rigid motions        1497 2727 2570      1396 2650 2520      2809 5012 5538       8676 30429 31061

The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from factorgraph_dyn.compiler.derive.again import Again
from factorgraph_dyn.compiler.derive.rates import Change, Rates
from factorgraph_dyn.compiler.derive.rigid import RigidChange
from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated
from factorgraph_dyn.compiler.outputs import References, Solved, read_output
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references
from factorgraph_dyn.compiler.tape.tape import ONE, ZERO, Tape
from factorgraph_dyn.equations.quantities import split_derivative
from factorgraph_dyn.model import Mechanism

FIRST_DIRECTION = UNIT - 1
"""The column of the first direction; the others come below it."""

_MOVING = ("q", "v")
_READ_OFF = ("a", "tau")  # results that need no link's acceleration or wrench


@dataclass
class Directions:
    """The directions in which derivatives are asked for, and how the inputs change along them.

    Attributes:
        columns: Of every argument's directions, in the order of its entries, for q of its freedoms.
        inputs: How the inputs of every argument change, by reference.
        shapes: Of every argument, for q its freedoms.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)
    inputs: dict[str, dict[int, Change]] = field(default_factory=dict)
    shapes: dict[str, tuple[int, ...]] = field(default_factory=dict)

    def add(self, argument: str, shape: tuple[int, ...], changes: Sequence[Mapping[int, int]]) -> None:
        """Take in an argument, by how inputs change along each of its directions."""
        self.shapes[argument] = shape
        first = FIRST_DIRECTION - sum(map(len, self.columns.values()))
        self.columns[argument] = [first - k for k in range(len(changes))]
        found = self.inputs[argument] = {}
        for column, change in zip(self.columns[argument], changes, strict=True):
            for ref, rate in change.items():
                found.setdefault(ref, {})[column] = rate

    def rates(self, tape: Tape, without: Sequence[str] = ()) -> Rates:
        """Changes of a tape's values along these directions, or those of other arguments than some, which stay."""
        return Rates(
            tape,
            {
                ref: {} if argument in without else change
                for argument, inputs in self.inputs.items()
                for ref, change in inputs.items()
            },
        )


def directions(tape: Tape, mechanism: Mechanism, values: Mapping[str, SymbolArray], asked: Sequence[str]) -> Directions:
    """The directions of the arguments that derivatives are asked for by.

    Args:
        tape: Where the values are.
        mechanism: The mechanism; along a freedom of q a joint moves as its velocity would make it.
        values: The symbols of the arguments.
        asked: Names of derivatives.
    """
    found = Directions()
    for argument in dict.fromkeys(argument for _, argument in map(_parts, asked)):
        refs = references(tape, values[argument])
        if argument == "q":
            found.add(argument, (mechanism.nv,), _freedoms(tape, mechanism, values["q"], refs))
        else:
            found.add(argument, refs.shape, [{int(ref): ONE} for ref in refs.flat])
    return found


def _parts(name: str) -> tuple[str, str]:
    """The output and the argument of a derivative."""
    found = split_derivative(name)
    assert found is not None
    return found


def _freedoms(tape: Tape, mechanism: Mechanism, q: SymbolArray, refs: References) -> list[Change]:
    """How coordinates change along each freedom: q' = N(q) e."""
    changes = []
    for joint in mechanism.movable_joints:
        here = mechanism.q_slices[joint.name]
        for unit in np.eye(joint.nv):
            rates = references(tape, joint.type.rate(q[here], unit))
            changes.append({int(ref): int(rate) for ref, rate in zip(refs[here], rates, strict=True) if rate})
    return changes


class Derivatives:
    """The derivatives of a solved problem: to be solved for, then read.

    Attributes:
        guards: What solving for them has to watch, of which most is watched already.
    """

    def __init__(self, solved: Solved, along: Directions, rows: Mapping[int, Row], again: Callable[..., Again]) -> None:
        """Look at a solved problem.

        Args:
            solved: The problem after its elimination.
            along: The directions.
            rows: The equations before it, in the order of the graph's factors.
            again: What makes the elimination of other right-hand sides, from rows, and from other unknowns
                and their rows where they are not the problem's.
        """
        self.solved, self.along = solved, along
        self._rows, self._again = rows, again
        self.guards: list[Guard] = []
        self._rates = along.rates(solved.tape)
        self._values = {column: terms.get(UNIT, ZERO) for column, terms in solved.eliminated.solution.items()}

    def solve(self, *, rigid: bool) -> None:
        """Solve for the changes of the unknowns, of trees as rigid motions."""
        eliminated = self._as_rigid_motions() if rigid else self._as_they_stand()
        self.guards = eliminated.guards

    def _as_they_stand(self) -> Eliminated:
        """Solve the equations differentiated as they are."""
        rows = {number: self._differentiated(row, self._rates) for number, row in self._rows.items()}
        eliminated = self._again(rows).run()
        for column in self._values:
            self._tell(column, eliminated.solution[column])
        return eliminated

    def _as_rigid_motions(self) -> Eliminated:
        """Solve the equations of a tree in unknowns in which little changes."""
        along, solved = self.along, self.solved
        rigid = RigidChange(solved, self._rates, *(along.columns.get(name, []) for name in _MOVING))
        rates = {True: along.rates(solved.tape, without=_MOVING), False: self._rates}
        rows = {number: self._differentiated(self._rows[number], rates[moves]) for number, moves in rigid.kinds()}
        of_links = any(output not in _READ_OFF for output, _ in map(_parts, solved.problem.derivatives))
        unasked = () if of_links else rigid.link_columns()
        eliminated = self._again(*rigid.completed(rows), unasked).run()
        for column, terms in rigid.changes(eliminated.solution, of_links=of_links):
            self._tell(column, terms)
        return eliminated

    def _tell(self, column: int, terms: Row) -> None:
        """Let the change of an unknown be known where the equations determine it."""
        ref = self._values[column]
        if abs(ref) not in self.solved.tape.constants and not any(other > UNIT for other in terms):
            self._rates.tell(ref, terms)

    def _differentiated(self, row: Row, rates: Rates) -> Row:
        """The row of A x' - (b' - A' x) = 0, with a column for each direction."""
        values = {UNIT: ONE, **self._values}
        kept = {column: ref for column, ref in row.items() if column != UNIT}
        return kept | rates.of_sum((ref, values[column]) for column, ref in row.items())

    def of(self, name: str) -> References:
        """References of a derivative, a column for each direction of its argument."""
        output, argument = _parts(name)
        refs, columns = read_output(self.solved, output), self.along.columns[argument]
        changes = [self._rates.of(int(ref)) for ref in refs.flat]
        matrix = np.array([[change.get(column, ZERO) for column in columns] for change in changes], dtype=np.int64)
        return matrix.reshape(*refs.shape, *self.along.shapes[argument])
