"""Derivatives of a problem's results: the equations differentiated where they are solved, and solved once more.

Takes a traced problem after its elimination; gives references of d<output>/d<argument>. With x the solution of
A x = b, and ' the change along an entry of an argument,

    A x' = b' - A' x

has the matrix that was eliminated before: its pivots are found again by value numbering and cost nothing, and every
direction is one more right-hand side. Results that are read off x and the state change by the rules of `rates`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from factorgraph_dyn.compiler.derive.rates import Change, Rates
from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated, Elimination, Row
from factorgraph_dyn.compiler.outputs import References, Solved, read_output
from factorgraph_dyn.compiler.tape.symbol import SymbolArray, references
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape
from factorgraph_dyn.equations.quantities import split_derivative
from factorgraph_dyn.model import Mechanism

FIRST_DIRECTION = UNIT - 1
"""The column of the first direction; the others come below it."""


@dataclass
class Directions:
    """The directions in which derivatives are asked for, and how the inputs change along them.

    Attributes:
        columns: Of every argument's directions, in the order of its entries, for q of its freedoms.
        inputs: How inputs change, by reference.
    """

    columns: dict[str, list[int]] = field(default_factory=dict)
    inputs: dict[int, Change] = field(default_factory=dict)
    count: int = 0

    def add(self, argument: str, changes: Sequence[Mapping[int, int]]) -> None:
        """Take in an argument, by how inputs change along each of its directions."""
        self.columns[argument] = [FIRST_DIRECTION - self.count - k for k in range(len(changes))]
        self.count += len(changes)
        for column, change in zip(self.columns[argument], changes, strict=True):
            for ref, rate in change.items():
                self.inputs.setdefault(ref, {})[column] = rate


def directions(tape: Tape, mechanism: Mechanism, values: Mapping[str, SymbolArray], asked: Sequence[str]) -> Directions:
    """The directions of the arguments that derivatives are asked for by.

    Args:
        tape: Where the values are.
        mechanism: The mechanism; along a freedom of q a joint moves as its velocity would make it.
        values: The symbols of the arguments.
        asked: Names of derivatives.
    """
    found = Directions()
    for argument in dict.fromkeys(argument for _, argument in map(parts, asked)):
        refs = references(tape, values[argument])
        if argument == "q":
            found.add(argument, list(_freedoms(tape, mechanism, values["q"], refs)))
        else:
            found.add(argument, [{int(ref): tape.constant(1.0)} for ref in refs.flat])
    return found


def parts(name: str) -> tuple[str, str]:
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


class Again(Elimination):
    """The elimination of the differentiated equations."""

    def judge_left_over_rows(self) -> None:
        """Equations that repeat others do so along the closure; what they say off it is not asked."""


class Derivatives:
    """The derivatives of a solved problem.

    Attributes:
        guards: What the second elimination has to watch, of which most is watched already.
    """

    def __init__(
        self, solved: Solved, along: Directions, rows: Mapping[int, Row], again: Callable[..., Eliminated]
    ) -> None:
        """Solve the differentiated equations.

        Args:
            solved: The problem after its elimination.
            along: The directions.
            rows: The equations before it.
            again: What eliminates other right-hand sides of the same equations.
        """
        self.solved, self.along = solved, along
        self.rates = Rates(solved.tape, along.inputs)
        solution = {column: terms.get(UNIT, ZERO) for column, terms in solved.eliminated.solution.items()}
        self.eliminated = again({number: self._differentiated(row, solution) for number, row in rows.items()})
        self.guards = self.eliminated.guards
        for column, ref in solution.items():
            terms = self.eliminated.solution[column]
            if not any(other > UNIT for other in terms):
                self.rates.tell(ref, terms)

    def _differentiated(self, row: Row, solution: Mapping[int, int]) -> Row:
        """The row of A x' - (b' - A' x) = 0, with a column for each direction."""
        known = {UNIT: self.solved.tape.constant(1.0), **solution}
        kept = {column: ref for column, ref in row.items() if column != UNIT}
        return kept | self.rates.of_sum((ref, known[column]) for column, ref in row.items())

    def of(self, name: str) -> References:
        """References of a derivative, a column for each direction of its argument."""
        output, argument = parts(name)
        refs, columns = read_output(self.solved, output), self.along.columns[argument]
        changes = [self.rates.of(int(ref)) for ref in refs.flat]
        matrix = np.array([[change.get(column, ZERO) for column in columns] for change in changes], dtype=np.int64)
        return matrix.reshape(*refs.shape, len(columns))
