"""Rounding told from values in equations that repeat each other.

Takes every term that goes into a row while it is eliminated; tells whether what is left of an entry is a tiny part
of what the row was made of, at every sampled state. Loops have such equations: what one of them says, others say too,
and where it should cancel it leaves some 1e-16 that is zero to no residue. The work runs once a step.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import numpy as np

from factorgraph_dyn.compiler.samples import SampledTape
from factorgraph_dyn.compiler.tape import Samples

_ROUNDING = 1e-12
_REPEATED = 1e-3  # of a usual right-hand side, for those that are nothing but rounding


class RowOrigins:
    """The largest that the entries of each row, and its right-hand side, were made of."""

    def __init__(
        self, samples: SampledTape, units: Mapping[int, float], special: int, rows: Mapping[int, Mapping[int, int]]
    ) -> None:
        """Start with the rows as they are.

        Args:
            samples: Values at the sampled states.
            units: Factor of every unknown column that brings it to common units; others are right-hand sides.
            special: How many of the first samples are special.
            rows: The equations by number.
        """
        self._samples, self._units, self._special = samples, units, special
        self._entries: dict[int, Samples] = {}
        self._rhs: dict[int, Samples] = {}
        for number, row in rows.items():
            self.add(number, row)
        self._usual_rhs = max((self._ratio(number) for number in self._rhs.keys() & self._entries.keys()), default=0.0)

    def add(self, number: int, terms: Mapping[int, int]) -> None:
        """Take note of terms, by column, that are about to be added to a row."""
        for column, ref in terms.items():
            largest, size = self._largest(column), self._size(column, ref)
            largest[number] = np.fmax(largest[number], size) if number in largest else size

    def rotate(self, pairs: Iterable[tuple[int, int, int]], rows: tuple[int, int]) -> None:
        """Take note that rows were replaced by sums: for each, its number and the factors of the two rows."""
        for largest in (self._entries, self._rhs):
            first, second = (largest.get(number, np.zeros(1)) for number in rows)
            for number, factor, other_factor in pairs:
                a, b = (np.abs(self._samples.values(ref)) for ref in (factor, other_factor))
                largest[number] = a * first + b * second

    def is_rounding(self, number: int, column: int, ref: int) -> bool:
        """Whether an entry of a row is nothing but rounding."""
        size = self._size(column, ref)
        tiny = size <= _ROUNDING * self._largest(column)[number]
        tiny[: self._special] |= ~np.isfinite(size[: self._special])  # a pivot vanished there before
        return bool(tiny.all())

    def least_rhs(self, number: int) -> float:
        """A size below which a row's right-hand side need not be told from rounding."""
        if number not in self._entries:
            return 0.0
        return _REPEATED * self._usual_rhs * float(np.median(self._entries[number][self._special :]))

    def _largest(self, column: int) -> dict[int, Samples]:
        return self._entries if column in self._units else self._rhs

    def _size(self, column: int, ref: int) -> Samples:
        size: Samples = np.abs(self._samples.values(ref)) * self._units.get(column, 1.0)
        return size

    def _ratio(self, number: int) -> float:
        """A row's right-hand side beside its largest entry, as it usually is."""
        rhs, entry = (float(np.median(x[number][self._special :])) for x in (self._rhs, self._entries))
        return rhs / entry if entry else 0.0
