"""The elimination of equations that have been eliminated before, for other right-hand sides."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

from factorgraph_dyn.compiler.eliminate import UNIT, Elimination, Unknown
from factorgraph_dyn.compiler.pivots import Pivot, Row
from factorgraph_dyn.compiler.tape.samples import SampledTape


class Again(Elimination):
    """The elimination of differentiated equations."""

    def __init__(
        self,
        samples: SampledTape,
        rows: Mapping[int, Row],
        unknowns: Sequence[Unknown],
        partners: Mapping[int, int],
        unasked: Container[int],
        *,
        magnitudes: Mapping[int, float],
        noisy: bool,
        patient: bool = False,
    ) -> None:
        """Start an elimination.

        Args:
            samples: Values at the sampled states.
            rows: The equations by number.
            unknowns: What to eliminate, first eliminated first; other columns are parameters.
            partners: Rows that are known to be the best to solve for a column: entries of 1 or -1.
            unasked: Columns whose solution nobody asks for.
            magnitudes: How large the unknowns are beside each other, by column.
            noisy: Whether equations may repeat each other up to rounding.
            patient: Whether unknowns without a good pivot wait until others have been eliminated.
        """
        super().__init__(samples.tape, samples, rows, unknowns, magnitudes=magnitudes, noisy=noisy, patient=patient)
        self.partners, self.unasked = partners, unasked

    def is_wanted(self, column: int) -> bool:
        """Whether the solution of a column is asked for."""
        return column not in self.unasked

    def choose(self, columns: set[int]) -> Pivot | None:
        """The pair that is known to be best, or one that is sought."""
        for column in sorted(columns & self.partners.keys()):
            return Pivot(self.partners[column], column, 1.0, 1.0)
        return super().choose(columns)

    def prepare(self) -> None:
        """Take rounding out of the matrix; what is small in a right-hand side decides nothing, and may be true."""
        sides = (
            {n: {c: ref for c, ref in row.items() if c < UNIT} for n, row in self.rows.items()} if self.noisy else {}
        )
        super().prepare()
        for number, side in sides.items():
            self.rows[number] |= side

    def sums(self, places: Sequence[tuple[int, int]], terms: Sequence[tuple[int, int]]) -> list[int]:
        """References to a + b; zero where it is rounding of the matrix."""
        pairs = list(zip(places, terms, strict=True))
        matrix = [pair for pair in pairs if pair[0][1] >= UNIT]
        found = iter(super().sums([place for place, _ in matrix], [term for _, term in matrix]))
        return [next(found) if place[1] >= UNIT else self.tape.add(*term) for place, term in pairs]

    def judge_left_over_rows(self) -> None:
        """Equations that repeat others do so along the closure; what they say off it is not asked."""
