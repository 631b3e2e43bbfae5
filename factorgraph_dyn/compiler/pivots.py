"""Which entry divides next: the choice of pivots in an elimination, ahead of time, for all states at once.

Takes rows of tape references and the columns to eliminate; gives a row and a column. The quality of a pair is

    min over sampled states of  (|entry| / row scale) / (largest such ratio in the column)

where a row's scale is its largest entry times its unknown's usual size (see `magnitudes`), so that neither kilograms
nor millimetres nor the length of a chain sway the choice. An unknown's size counts all that its joint carries: in a
chain the 1 that stands before a link's acceleration is as good a pivot at the base as at the tip, although the inertias
beside it grow with the number of links.

Among the pairs of quality 0.1 or more, entries that keep their sign in all states come first, of these 1 and -1, then
the row whose last unknown is eliminated soonest, then the fewest operations (Markowitz 1957). What is cheapest is
judged first, so that few qualities have to be computed.

The work runs once a pivot.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.tape import COS, ONE, SIN, Samples

GOOD_QUALITY = 0.1
"""Pivots at least this large beside the others of their column lose no digits."""

_ROW_ROUNDING = 1e-6  # part of a row's usual scale that is taken for rounding
_FAINT = 0.1  # of the same unknown's other entries in a row: what is smaller decides nothing that they leave open
_SHARP = 1e-12  # relative error below which an entry is as exact as any
_SHARP_ENOUGH = 1e-11  # relative error up to which an entry divides without waiting for another
_OTHERS = 0.01  # weight of the errors of a row's other entries beside the pivot's own
_BLURRED = 30.0  # times the relative error of the column's most exact entry
DIVIDES_NOTHING = 1e-14  # part of its row's scale below which an entry divides nothing
_DIVISION = 10  # operations that a division weighs

Row = dict[int, int]
"""Reference of the entry in each column that the row holds."""

RowScales = dict[frozenset[tuple[int, int]], Samples]
"""Scales of rows by their entries."""

_Cost = tuple[bool, int, int]


@dataclass(frozen=True)
class Pivot:
    """A row and a column, with the worst quality over the ordinary samples and over all of them."""

    row: int
    column: int
    quality: float
    everywhere: float


class Pivots:
    """The choice of pivots among rows that change while they are eliminated."""

    def __init__(
        self,
        samples: SampledTape,
        rows: Mapping[int, Row],
        holding: Mapping[int, set[int]],
        position: Mapping[int, int],
        units: Mapping[int, float],
        scales: RowScales,
        *,
        noisy: bool = False,
    ) -> None:
        """Start without anything known.

        Args:
            samples: Values at the sampled states, of which the special ones only guide the choice.
            rows: The equations by number, which the elimination changes.
            holding: Numbers of the rows that hold each column, likewise; columns that are no unknowns are not in it.
            position: When each column is eliminated.
            units: How large the unknowns are beside each other, by column.
            scales: Scales of rows, which eliminations of the same equations share.
            noisy: Whether equations may repeat each other up to rounding.
        """
        self.samples = samples
        self.noisy = noisy
        self.rows = rows
        self.holding = holding
        self.position = position
        self.units = units
        self.known_scales = scales
        self._scales: dict[int, Samples] = {}
        self._reaches: dict[int, int] = {}
        self._row_errors: dict[int, Samples] = {}

    def forget(self, number: int) -> None:
        """Take note that a row has changed."""
        self._scales.pop(number, None)
        self._reaches.pop(number, None)
        self._row_errors.pop(number, None)

    def choose(self, columns: set[int]) -> Pivot | None:
        """The best pair of a row and one of the columns; None where no row holds any of them.

        Good in all samples is best, good in the ordinary ones next; else the largest there is. Where equations repeat
        each other, such as those of wrenches in loops, two sorts come last. What is faint beside other entries of its
        row in these columns: one of them stays open, and it must not be the one that the row is about. What is blurred
        beside other entries of its column: a row of which next to nothing is left is small as a whole and looks good.
        """
        candidates = sorted(
            (self._cost(number, column, len(self.holding[column]) - 1), column, number)
            for column in columns
            for number in self.holding[column]
        )
        last = self._faint(columns) | self._blurred(columns) if self.noisy else set()
        if last:
            candidates.sort(key=lambda found: (found[1:] in last, found))
        judged: dict[int, dict[int, Pivot]] = {}
        for _, equals in groupby(candidates, key=lambda found: (found[1:] in last, found[0])):
            good: list[Pivot] = []
            for _, column, number in equals:
                if column not in judged:
                    judged[column] = self._judged(column)
                pivot = judged[column][number]
                if pivot.everywhere == 1.0 and not good:
                    return pivot  # none is better
                if self.is_good(pivot):
                    good.append(pivot)
            if good:
                return max(good, key=lambda pivot: pivot.quality)
        found = [(cost, judged[column][number]) for cost, column, number in candidates]
        return min(found, key=self._second_best, default=(None, None))[1]

    def is_good(self, pivot: Pivot) -> bool:
        """Whether a pivot is large in all samples, and has one sign."""
        return pivot.everywhere >= GOOD_QUALITY and self.keeps_sign(self.rows[pivot.row][pivot.column])

    def need_not_wait(self, pivot: Pivot) -> bool:
        """Whether a pivot is good, and exact: what is left of a row that cancelled almost whole is not."""
        if not self.is_good(pivot) or not self.noisy:
            return self.is_good(pivot)
        return self._blurs(pivot.column, [pivot.row])[0] <= _SHARP_ENOUGH

    def is_nothing(self, pivot: Pivot) -> bool:
        """Whether a pivot is less than rounding of its row at all samples, as 6e-17 written for zero is."""
        size = self.samples.sizes([self.rows[pivot.row][pivot.column]])[0] * self.units[pivot.column]
        return is_nothing(size / self.scale(pivot.row))

    def _faint(self, columns: set[int]) -> set[tuple[int, int]]:
        """The columns and rows whose entries are small beside others of the row in these columns."""
        held = Counter(number for column in columns for number in self.holding[column])
        pairs = [(column, number) for column in columns for number in self.holding[column] if held[number] > 1]
        if not pairs:
            return set()
        sizes = self.samples.sizes([self.rows[number][column] for column, number in pairs])[:, self.samples.special :]
        usual = np.median(sizes, axis=1) * [self.units[column] for column, _ in pairs]
        largest: dict[int, float] = {}
        for (_, number), size in zip(pairs, usual, strict=True):
            largest[number] = max(largest.get(number, 0.0), size)
        return {pair for pair, size in zip(pairs, usual, strict=True) if size < _FAINT * largest[pair[1]]}

    def _blurred(self, columns: set[int]) -> set[tuple[int, int]]:
        """The columns and rows whose entries are far less exact than others of the column, as what cancelled is."""
        found: set[tuple[int, int]] = set()
        for column in columns:
            numbers = list(self.holding[column])
            blurs = self._blurs(column, numbers)
            limit = max(_SHARP, _BLURRED * min(blurs, default=0.0))
            found.update((column, number) for number, blur in zip(numbers, blurs, strict=True) if blur > limit)
        return found

    def _blurs(self, column: int, numbers: Sequence[int]) -> list[float]:
        """Usual relative errors of rows' entries in a column; those of the rows beside them weigh, too.

        An entry may be exact by itself, as a product of small constants is, where little more than rounding is left of
        the rest of its row.
        """
        if not numbers:
            return []
        refs = [self.rows[number][column] for number in numbers]
        own = np.array([self.samples.error(ref) for ref in refs])
        others = np.array([self._row_error(number) for number in numbers]) / self.units[column]
        blurs = np.maximum(own, _OTHERS * others) / self.samples.sizes(refs)
        usual: list[float] = np.median(blurs[:, self.samples.special :], axis=1).tolist()
        return usual

    def _row_error(self, number: int) -> Samples:
        """The largest error of a row's unknown entries at every sampled state, columns in common units."""
        if number not in self._row_errors:
            held = [(self.units[column], ref) for column, ref in self.rows[number].items() if column in self.holding]
            self._row_errors[number] = np.max([unit * self.samples.error(ref) for unit, ref in held], axis=0)
        return self._row_errors[number]

    def _second_best(self, found: tuple[_Cost, Pivot]) -> tuple[float, ...]:
        """The order of pairs of which none is good everywhere and keeps its sign."""
        cost, pivot = found
        if pivot.quality < GOOD_QUALITY:
            return 2, -pivot.quality
        crosses = not self.keeps_sign(self.rows[pivot.row][pivot.column])
        return pivot.everywhere < GOOD_QUALITY, crosses, *cost, -pivot.quality

    def _judged(self, column: int) -> dict[int, Pivot]:
        """The pivots of a column by row."""
        numbers = sorted(self.holding[column])
        if len(numbers) == 1 and abs(self.rows[numbers[0]][column]) in self.samples.tape.constants:
            return {numbers[0]: Pivot(numbers[0], column, 1.0, 1.0)}
        everywhere, ordinary = self._qualities(column, numbers)
        return {
            number: Pivot(number, column, usual, worst)
            for number, usual, worst in zip(numbers, ordinary, everywhere, strict=True)
        }

    def _qualities(self, column: int, numbers: list[int]) -> tuple[list[float], list[float]]:
        """Worst relative size of each row's entry, over all samples and over the ordinary ones."""
        sizes = self._sizes(column, numbers)
        largest = sizes.max(axis=0)
        ratios = sizes / largest
        ratios[~np.isfinite(ratios)] = 0.0
        special = self.samples.special
        ordinary = ratios[:, special:].min(axis=1)
        # Special states in which the whole column vanishes have nothing to say.
        ratios[:, :special][:, ~(np.isfinite(largest[:special]) & (largest[:special] > 0))] = 1.0
        everywhere = np.minimum(ratios[:, :special].min(axis=1, initial=1.0), ordinary)
        return everywhere.tolist(), ordinary.tolist()

    def _sizes(self, column: int, numbers: list[int]) -> npt.NDArray[np.float64]:
        """Sizes of a column's entries beside their rows' scales, shape (rows, samples)."""
        self._find_scales(numbers)
        sizes = self.samples.sizes([self.rows[n][column] for n in numbers])
        sizes /= [self._scales[n] for n in numbers]
        return sizes

    def _cost(self, number: int, column: int, others: int) -> _Cost:
        """What speaks against a pivot that keeps its sign, the worst first.

        That it is not 1 or -1; how late the last unknown of its row is eliminated (a row that reaches far spreads
        fill far); about how many operations it costs.
        """
        row = self.rows[number]
        entry, reach = abs(row[column]), self._reach(number, column)
        updates = 2 * others * (len(row) - 1)
        if entry == ONE:
            return False, reach, updates
        updates += min(others, len(row) - 1)
        return True, reach, updates if entry in self.samples.tape.constants else updates + _DIVISION

    def _reach(self, number: int, column: int) -> int:
        """When the last unknown of a row beside a column is eliminated."""
        row, position = self.rows[number], self.position
        reach = self._reaches.get(number)
        if reach is None:
            reach = self._reaches[number] = max([position.get(other, -1) for other in row])
        if reach == position[column]:  # perhaps it is the column's own
            return max([position.get(other, -1) for other in row if other != column], default=-1)
        return reach

    def keeps_sign(self, entry: int) -> bool:
        """Whether an entry has one sign in the ordinary samples; a sine or cosine has none, wherever loops keep it."""
        if abs(entry) in self.samples.tape.constants:
            return True
        if self.samples.tape.operation[abs(entry)] in (SIN, COS):
            return False
        values = self.samples.values(entry)[self.samples.special :]
        return bool((values > 0).all() or (values < 0).all())

    def scale(self, number: int) -> Samples:
        """Largest unknown entry of a row at every sampled state, columns in common units."""
        if number not in self._scales:
            self._find_scales([number])
        return self._scales[number]

    def _find_scales(self, numbers: Iterable[int]) -> None:
        """Find the scales of rows, all at once."""
        new: dict[int, frozenset[tuple[int, int]]] = {}
        for number in numbers:
            if number not in self._scales:
                key = frozenset(self.rows[number].items())
                known = self.known_scales.get(key)
                if known is None:
                    new[number] = key
                else:
                    self._scales[number] = known
        if new:
            for (number, key), scale in zip(new.items(), self._new_scales(list(new)), strict=True):
                self._scales[number] = self.known_scales[key] = scale

    def _new_scales(self, numbers: list[int]) -> npt.NDArray[np.float64]:
        refs: list[int] = []
        units: list[float] = []
        starts: list[int] = []
        for number in numbers:
            starts.append(len(refs))
            for column, ref in self.rows[number].items():
                if column in self.holding:
                    refs.append(ref)
                    units.append(self.units[column])
        sizes = self.samples.sizes(refs)
        sizes *= np.array(units)[:, None]
        scales: npt.NDArray[np.float64] = np.maximum.reduceat(sizes, starts, axis=0)
        # Where nothing of a row is left but rounding, that is no scale.
        ordinary = scales[:, self.samples.special :]
        middle = ordinary.shape[1] // 2
        usual = np.partition(ordinary, middle, axis=1)[:, middle, None]
        return np.maximum(scales, _ROW_ROUNDING * usual, out=scales)

    def partner(self, pivot: Pivot) -> int | None:
        """The row whose entry is large where the pivot's is small."""
        blurred = {number for _, number in self._blurred({pivot.column})} if self.noisy else set()
        numbers = sorted(self.holding[pivot.column] - (blurred - {pivot.row}))
        sizes = self._sizes(pivot.column, numbers)
        largest = sizes.max(axis=0)
        told = np.isfinite(largest) & (largest > 0)
        ratios = dict(zip(numbers, (sizes[:, told] / largest[told]), strict=True))
        alone = ratios.pop(pivot.row)
        return max(ratios, key=lambda n: float(np.maximum(alone, ratios[n]).min(initial=1.0)), default=None)


def is_nothing(shares: Samples) -> bool:
    """Whether what is a share of something is rounding of it at all samples, in every assembly mode that was seen."""
    return bool((shares < DIVIDES_NOTHING).all())
