"""One step of iterative refinement within a program, for equations whose elimination leaves digits to wish for.

Takes equations and their solution x on a tape; gives a better one. What x misses of the equations, r, is one more
right-hand side of the same elimination (Wilkinson 1963), whose pivots value numbering finds again:

    r = A x + b,        A d = -r,        x + d

Exact arithmetic would make r zero, and x + d the solution whatever x is, and so would the tape, which knows its values
as functions of the inputs: x and r are values that it is told nothing about (`Tape.unknown`). About half as many
operations again. The work runs once a kernel that other routes have failed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from factorgraph_dyn.compiler.derive.again import Again
from factorgraph_dyn.compiler.eliminate import UNIT, Eliminated
from factorgraph_dyn.compiler.pivots import Row
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape


class Remaining(Again):
    """The elimination for what a solution misses: rounding, which here is what counts."""

    def total(self, a: int, b: int) -> int:
        """Reference to a + b, however small it is."""
        return self.tape.add(a, b)


def refined(
    tape: Tape, rows: Mapping[int, Row], found: Eliminated, again: Callable[[Mapping[int, Row]], Eliminated]
) -> Eliminated:
    """What was eliminated, with a solution that has been refined.

    Args:
        tape: Where the equations are.
        rows: The equations.
        found: The solution that elimination gave.
        again: Eliminates the same equations with other right-hand sides, in columns below the unit column.
    """
    x = {column: {p: tape.unknown(ref) for p, ref in terms.items()} for column, terms in found.solution.items()}
    sides = {p: UNIT - 1 - k for k, p in enumerate(sorted({p for terms in x.values() for p in terms}))}
    steps = again({number: _missed(tape, row, x, sides) for number, row in rows.items()})
    solution = {
        column: {p: tape.add(ref, steps.solution[column].get(sides[p], ZERO)) for p, ref in terms.items()}
        for column, terms in x.items()
    }
    return replace(found, solution=solution, milestones=found.milestones + steps.milestones)


def _missed(tape: Tape, row: Row, x: Mapping[int, Row], sides: Mapping[int, int]) -> Row:
    """A row whose right-hand sides are what a solution misses of it, by parameter."""
    matrix = {column: ref for column, ref in row.items() if column in x}
    missed: Row = {}
    for p, side in sides.items():
        total = ZERO if p in x else row.get(p, ZERO)
        for column, ref in matrix.items():
            total = tape.add(total, tape.mul(ref, x[column].get(p, ZERO)))
        if total:
            missed[side] = tape.unknown(total)
    return matrix | missed
