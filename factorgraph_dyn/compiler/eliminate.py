"""Gaussian elimination of a linear graph on a tape, in a given ordering, with pivots chosen ahead.

Takes rows of tape references and an ordering; gives every unknown as a combination of parameters.
A row is an equation

    sum over columns  entry x  =  0          one column stands for the number 1 and holds -rhs

Unknown columns are eliminated in the ordering; the rest (the number 1, unknowns kept on purpose) are
parameters. For each variable, pivots are chosen among its columns and the rows that hold them (see `pivots`).

Where each row's entry vanishes in some state, two rows are rotated into one (Givens 1958, without square roots) whose
entry does not. A pivot that depends on the state is guarded at run time. A column that no row can determine becomes a
parameter itself; an output may not depend on it. A row left without unknowns is redundant if it is zero, else a
condition that the inputs have to meet.

The work runs once a mechanism, problem and ordering.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from factorgraph_dyn.compiler.pivots import Pivot, Pivots, Row, RowScales, is_nothing
from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.tape.samples import UNIT_ROUNDOFF, SampledTape
from factorgraph_dyn.compiler.tape.tape import ONE, ZERO, Samples, Tape
from factorgraph_dyn.compiler.watched import condition, divisor, vanishing
from factorgraph_dyn.errors import CompileError

UNIT = -1
"""The column that stands for the number 1."""

_VANISHING = 1e-3  # a pivot that falls below this quality in some sampled state is rotated
_BLUR = 300.0  # times what rounding may be: who waits for good pivots takes for nothing what has fewer digits


@dataclass(frozen=True)
class Unknown:
    """A vector unknown: its printed name and its columns."""

    name: str
    columns: tuple[int, ...]


@dataclass
class Eliminated:
    """The result of an elimination.

    Attributes:
        solution: For every column, its coefficients by parameter column; the unit column's
            coefficient is the constant term.
        guards: Values to watch at run time.
        milestones: What back-substitution will need of each eliminated row, in the order of elimination.
        undetermined: Columns that no equation determines.
        redundant: How many equations turned out to repeat others.
        quality: Of its worst pivot.
    """

    solution: dict[int, Row] = field(default_factory=dict)
    guards: list[Guard] = field(default_factory=list)
    milestones: list[int] = field(default_factory=list)
    undetermined: set[int] = field(default_factory=set)
    redundant: int = 0
    quality: float = 1.0


@dataclass(frozen=True)
class Step:
    """An equation solved for a column: column = -inverse (row), with the errors of what cancelled in the row."""

    column: int
    row: Row
    inverse: int
    lost: Mapping[int, Samples]


class Elimination:
    """One elimination, while it runs."""

    def __init__(
        self,
        tape: Tape,
        samples: SampledTape,
        rows: Mapping[int, Row],
        unknowns: Sequence[Unknown],
        *,
        magnitudes: Mapping[int, float] | None = None,
        noisy: bool = False,
        patient: bool = False,
        given: int | None = None,
        closed: int | None = None,
        scales: RowScales | None = None,
        definite: bool = False,
    ) -> None:
        """Start an elimination.

        Args:
            tape: Where operations are written.
            samples: The tape's values at the sampled states, of which the special ones only guide the choice.
            rows: The equations by number.
            unknowns: What to eliminate, first eliminated first; other columns are parameters.
            magnitudes: How large the unknowns are beside each other, by column.
            noisy: Whether equations may repeat each other up to rounding, as those of loops do; what is left of
                a repeated one is then looked for after every step.
            patient: Whether unknowns without a good pivot wait until others have been eliminated.
            given: One over the squared size of the given values that the equations may contradict; without it
                there are none, and what is left of the equations follows from the state.
            closed: One over the square by which loops are open. Coefficients that vanish at all sampled states need not
                do so in other branches of the loops, and are watched beside it; without it they are not.
            scales: Scales of rows by their entries, which eliminations of the same equations share.
            definite: Whether the rows, by number, and the columns are those of a positive definite matrix. Then pivots
                are on its diagonal: they never vanish, however small they are at some states beside others.
        """
        self.tape = tape
        self.definite = definite
        self.samples = samples
        self.special = samples.special
        self.noisy = noisy
        self.patient = patient
        self.given = given
        self.closed = closed
        self.unknowns = unknowns
        self.position = {column: k for k, unknown in enumerate(unknowns) for column in unknown.columns}
        self.rows = {number: {column: ref for column, ref in row.items() if ref} for number, row in rows.items()}
        self.holding: dict[int, set[int]] = {column: set() for column in self.position}
        for number, row in self.rows.items():
            for column in row:
                if column in self.holding:
                    self.holding[column].add(number)
        self.magnitudes = magnitudes or {}
        self.pivots = Pivots(
            samples,
            self.rows,
            self.holding,
            self.position,
            {column: self.magnitudes.get(column, 1.0) for column in self.position},
            {} if scales is None else scales,
            noisy=noisy,
        )
        self.lost: dict[int, dict[int, Samples]] = defaultdict(dict)  # errors of what cancelled, by row and column
        self.steps: list[Step] = []
        self.result = Eliminated()

    def part(self, rows: Mapping[int, Row], unknowns: Sequence[Unknown]) -> Elimination:
        """The elimination of some rows and unknowns of the same equations."""
        return Elimination(
            self.tape,
            self.samples,
            rows,
            unknowns,
            magnitudes=self.magnitudes,
            noisy=self.noisy,
            patient=self.patient,
            given=self.given,
            closed=self.closed,
            scales=self.pivots.known_scales,
        )

    def run(self) -> Eliminated:
        """Eliminate every unknown, then substitute back."""
        with np.errstate(all="ignore"):  # a pivot may vanish in the special samples
            self.prepare()
            for unknown in self._those_that_waited() if self.patient else self.unknowns:
                self.eliminate(unknown)
            self.judge_left_over_rows()
            self.substitute_back()
        return self.result

    def prepare(self) -> None:
        """Take out of the equations what rounding of the model's constants and of closed states has left there."""
        for number, row in self.rows.items() if self.noisy else ():
            kept = {column: ref for column, ref in row.items() if not self.samples.is_rounding(ref)}
            if len(kept) < len(row):
                self._watch_entries(number, row.keys() - kept.keys())
                self._replace(number, kept)

    # Forward

    def _those_that_waited(self) -> list[Unknown]:
        """Eliminate what has good pivots, over and over; the columns that never had one are left."""
        waiting, count = list(self.unknowns), len(self.position) + 1
        while sum(len(unknown.columns) for unknown in waiting) < count:
            count = sum(len(unknown.columns) for unknown in waiting)
            waiting = [Unknown(unknown.name, left) for unknown in waiting if (left := self._left_of(unknown))]
        return waiting

    def _left_of(self, unknown: Unknown) -> tuple[int, ...]:
        """Eliminate an unknown's columns as long as they have good pivots; those that are left."""
        columns = set(unknown.columns)
        while columns and (pivot := self.choose(columns)) is not None and self.pivots.need_not_wait(pivot):
            columns.remove(pivot.column)
            self.result.quality = min(self.result.quality, pivot.quality)
            self._apply(pivot)
        return tuple(column for column in unknown.columns if column in columns)

    def eliminate(self, unknown: Unknown) -> None:
        """Take one unknown out of all rows; what no row determines becomes a parameter."""
        columns = set(unknown.columns)
        while columns:
            pivot = self.choose(columns)
            if pivot is None:
                self._set_free(columns)
                return
            columns.remove(pivot.column)
            self.result.quality = min(self.result.quality, pivot.quality)
            if pivot.everywhere < _VANISHING or not self.pivots.keeps_sign(self.rows[pivot.row][pivot.column]):
                self._rotate(pivot)
            self._apply(pivot)

    def choose(self, columns: set[int]) -> Pivot | None:
        """The best pair of a row and one of the columns; None where no row holds any of them.

        Where equations repeat each other, what is left of them is not divided by: it is nothing.
        """
        if self.definite:
            first = min(columns)
            return Pivot(first, first, 1.0, 1.0) if first in self.rows[first] else None
        pivot = self.pivots.choose(columns)
        while pivot is not None and self.noisy and self._is_nothing(pivot):
            row = self.rows[pivot.row]
            self._watch_entries(pivot.row, [pivot.column])
            self._replace(pivot.row, {column: ref for column, ref in row.items() if column != pivot.column})
            pivot = self.pivots.choose(columns)
        return pivot

    def _is_nothing(self, pivot: Pivot) -> bool:
        """Whether a pivot is rounding; who is patient has waited for a better one, and takes none that is a blur."""
        if self.pivots.is_nothing(pivot):
            return True
        entry = self.rows[pivot.row][pivot.column]
        return self.patient and self.samples.is_rounding(entry, _BLUR * self.samples.error(entry))

    def _set_free(self, columns: set[int]) -> None:
        """Make parameters of columns that no row can determine."""
        for column in columns:
            self.result.undetermined.add(column)
            for number in self.holding.pop(column):
                self.pivots.forget(number)

    def _name(self, column: int) -> str:
        return self.unknowns[self.position[column]].name

    def _rotate(self, pivot: Pivot) -> None:
        """Turn the pivot's row towards another one, where alone it would vanish in some state.

        With entries e and f of the column in the two rows, this is a rotation without square roots; w, a power
        of two, brings the rows to common units:

            row    becomes   e row + w f other,   in which the column has  e^2 + w f^2
            other  becomes   f row - e other,     which no longer holds it

        (For three rows there is no such formula without divisions: a sphere's tangent vectors vanish somewhere.)
        """
        partner = self.pivots.partner(pivot)
        if partner is None:
            return
        row, other = self.rows[pivot.row], self.rows[partner]
        e, f = row[pivot.column], other[pivot.column]
        weighted = self.tape.mul(f, self._weight(partner, pivot.row))
        for number in (pivot.row, partner):
            self.lost.pop(number, None)
        turned = self._sum(pivot.row, e, row, weighted, other)
        if pivot.column not in turned:
            return
        rest = self._sum(partner, f, row, -e, other)
        rest.pop(pivot.column, None)
        self._replace(pivot.row, turned)
        self._replace(partner, rest)

    def _weight(self, number: int, first: int) -> int:
        """The constant, a power of two, that brings the square of one row's entries to the units of another's."""
        ratio = float(np.median(self.pivots.scale(first) / self.pivots.scale(number)))
        return self.tape.constant(4.0 ** round(np.log2(ratio))) if 1e-100 < ratio < 1e100 else ONE

    def _sum(self, number: int, factor: int, row: Row, other_factor: int, other: Row) -> Row:
        """factor row + other_factor other, which becomes the row of that number."""
        mul, columns = self.tape.mul, list({**row, **other})
        terms = [(mul(factor, row.get(c, ZERO)), mul(other_factor, other.get(c, ZERO))) for c in columns]
        totals = self.sums([(number, column) for column in columns], terms)
        return {column: ref for column, ref in zip(columns, totals, strict=True) if ref}

    def sums(self, places: Sequence[tuple[int, int]], terms: Sequence[tuple[int, int]]) -> list[int]:
        """References to a + b; zero where it is rounding, which only repeated equations leave unseen by their terms."""
        totals = self.samples.sums(terms)
        if not self.noisy:
            return totals
        totals = [self._unless_rounding(*found) for found in zip(places, terms, totals, strict=True)]
        for (number, column), (a, b), total in zip(places, terms, totals, strict=True) if self.closed else ():
            if a and b and not total:
                self._watch(column, self.tape.add(a, b), self.samples.values(a), self.lost[number][column])
        return totals

    def _watch_entries(self, number: int, columns: Iterable[int]) -> None:
        """Watch entries of a row that are taken for zero."""
        row, scale = self.rows[number], self.pivots.scale(number)
        for column in columns:
            size = scale / self.pivots.units.get(column, 1.0)
            self._watch(column, row[column], size, self.samples.error(row[column]))

    def _watch(self, column: int, ref: int, terms: Samples, error: Samples) -> None:
        """Watch a coefficient that is taken for zero beside terms of some size, or those whose rounding it has."""
        if self.closed is None or column not in self.position or abs(ref) in self.tape.constants:
            return
        size = np.hypot(terms, error / UNIT_ROUNDOFF)
        self.result.guards.append(vanishing(self.samples, ref, size, self.closed, self._name(column)))

    def _unless_rounding(self, place: tuple[int, int], terms: tuple[int, int], total: int) -> int:
        """A sum, or zero where it is rounding.

        What cancelled at the place before, a row and a column, was inexact, too, and so is all that comes after it.
        """
        (number, column), (a, b) = place, terms
        before = self.lost[number].get(column)
        if not b or not (a or before is not None):
            return total
        error = np.hypot(np.hypot(self.samples.error(a), self.samples.error(b)), 0.0 if before is None else before)
        if total and not self.samples.is_rounding(total, error):
            return total
        self.lost[number][column] = error
        return ZERO

    def _replace(self, number: int, row: Row) -> None:
        for column in self.rows[number].keys() | row.keys():
            if column in self.holding:
                (self.holding[column].add if column in row else self.holding[column].discard)(number)
        self.rows[number] = row
        self.pivots.forget(number)

    def _apply(self, pivot: Pivot) -> None:
        """Solve the pivot's row for its column and take the column out of all other rows."""
        tape = self.tape
        row = self.rows.pop(pivot.row)
        for column in row:
            if column in self.holding:
                self.holding[column].discard(pivot.row)
        entry = row.pop(pivot.column)
        inverse = tape.reciprocal(entry)
        if abs(entry) not in tape.constants and not self.definite:
            self.result.guards.append(divisor(self.samples, entry, self._name(pivot.column)))
        others = sorted(self.holding.pop(pivot.column))
        lost = self.lost.pop(pivot.row, {})
        if abs(inverse) != ONE and len(others) >= len(row):
            row = {column: tape.mul(ref, inverse) for column, ref in row.items()}
            lost = {column: error * np.abs(self.samples.values(inverse)) for column, error in lost.items()}
            inverse = ONE
        self._subtract(others, pivot.column, row, inverse)
        self.steps.append(Step(pivot.column, row, inverse, lost))
        self.result.milestones += [inverse, *row.values()]

    def _subtract(self, numbers: Sequence[int], column: int, pivot_row: Row, inverse: int) -> None:
        """row -= (entry / pivot) pivot_row, for the rows of some numbers."""
        mul, rows = self.tape.mul, self.rows
        places: list[tuple[int, int]] = []
        terms: list[tuple[int, int]] = []
        for number in numbers:
            row = rows[number]
            factor = -mul(row.pop(column), inverse)
            for other, ref in pivot_row.items():
                places.append((number, other))
                terms.append((row.get(other, ZERO), mul(factor, ref)))
        for (number, other), (before, _), after in zip(places, terms, self.sums(places, terms), strict=True):
            if after:
                rows[number][other] = after
                if other in self.holding:
                    self.holding[other].add(number)
            elif before:
                del rows[number][other]
                if other in self.holding:
                    self.holding[other].discard(number)
        for number in numbers:
            self.pivots.forget(number)

    def judge_left_over_rows(self) -> None:
        """Rows without unknowns: redundant, or conditions on parameters.

        Raises:
            CompileError: Parameters are not free.
        """
        for row in self.rows.values():
            if not row or (self.noisy and all(map(self.samples.is_rounding, row.values()))):
                self.result.redundant += 1
            elif set(row) == {UNIT}:
                if self.given is not None:
                    self.result.guards.append(condition(self.samples, [row[UNIT]], self.given))
            else:
                raise CompileError(
                    "The equations tie together quantities that were to be given freely; give fewer "
                    "accelerations or leave out what the loops or couplings determine."
                )

    # Backward

    def substitute_back(self) -> None:
        """Express every eliminated column in parameters, the last eliminated first."""
        tape, solution = self.tape, self.result.solution
        for step in reversed(self.steps):
            if not self.is_wanted(step.column):
                continue
            total: Row = {}
            for other, ref in sorted(step.row.items()):
                terms = solution.get(other)
                if terms is None:
                    total[other] = self.total(total.get(other, ZERO), ref)
                    continue
                for parameter, coefficient in terms.items():
                    total[parameter] = self.total(total.get(parameter, ZERO), tape.mul(ref, coefficient))
            solution[step.column] = {
                parameter: -tape.mul(ref, step.inverse)
                for parameter, ref in total.items()
                if self._matters(step, parameter, ref)
            }
        for column in self.result.undetermined:
            solution[column] = {column: ONE}

    def total(self, a: int, b: int) -> int:
        """Reference to a + b in a solution, zero where it is rounding."""
        return self.samples.add(a, b)

    def is_wanted(self, column: int) -> bool:
        """Whether the solution of a column is asked for; what it is made of then is, too."""
        return True

    def _matters(self, step: Step, parameter: int, ref: int) -> bool:
        """Whether a coefficient is one: of what nothing determines, such as forces within a loop, rounding is none.

        It is as inexact as its terms, however small a remainder their residues know, and as what has cancelled in its
        row, for which there is no term.
        """
        if not ref or parameter not in self.result.undetermined:
            return bool(ref)
        units = self.magnitudes.get(parameter, 1.0) / self.magnitudes.get(step.column, 1.0)
        size = np.abs(self.samples.values(ref) * self.samples.values(step.inverse)) * units
        if self.noisy and is_nothing(size):
            return False
        error = self.samples.error(ref)
        for column, entry in step.row.items():
            term = self.tape.mul(entry, self._share(column, parameter))
            error = np.hypot(error, self.samples.error(term))
        for column, lost in step.lost.items():
            error = np.hypot(error, lost * self.samples.values(self._share(column, parameter)))
        return not self.samples.is_rounding(ref, _BLUR * error if self.patient else error)

    def _share(self, column: int, parameter: int) -> int:
        """The coefficient of a parameter in a column that has been solved for, or is the parameter itself."""
        return ONE if column == parameter else self.result.solution.get(column, {}).get(parameter, ZERO)
