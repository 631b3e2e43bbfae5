"""Whether GTSAM sees the pivots of equations that are exact, and of readings beside them; it knows nothing of units.

GTSAM eliminates cliques that hold exact rows (its ``Constrained`` noise) column by column:

    exact row             the one of the largest entry is the pivot, if that is above 1e-9
    else rows with noise  give one row that is 1 in the column, by their entries above 1e-9, if the root of the sum of
                          squares of these, over their deviations, is above 1e-4

Other entries count for nothing. Where they are more than rounding, an equation is lost without a word, or the process
crashes; where a pivot is no more than rounding, that becomes an equation. Here rows are eliminated in the same way
before GTSAM does, beside their natural sizes: those for unknowns of one unit each. Once a state; linear in the graph
for orderings with bounded cliques.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING, RANK_TOLERANCE
from factorgraph_dyn.spatial import Floats

GTSAM_NOTHING = 1e-9  # up to which GTSAM takes an entry of an exact row for nothing
GTSAM_UNSAID = 1e-4  # the same of entries of rows with noise over their deviations, beside exact ones
FELT = 1e-2  # standard deviations per unit of an unknown, above which it is felt when a reading is left out


class Natural(NamedTuple):
    """What sizes mean, in units of the mechanism.

    Attributes:
        units: Of the columns, shape (columns,).
        exact: Of exact rows.
        lost: Size from which on an exact row must not be lost.
    """

    units: Floats
    exact: float
    lost: float


class Rows(NamedTuple):
    """Rows over some of the columns.

    Attributes:
        columns: Where the columns are eliminated, in ascending order.
        entries: shape (rows, columns).
        sigmas: Standard deviations of the rows, 0 where they are exact, shape (rows,).
        owners: Name of the equation that each row is of, shape (rows,).
    """

    columns: npt.NDArray[np.intp]
    entries: Floats
    sigmas: Floats
    owners: npt.NDArray[np.str_]

    @property
    def exact(self) -> npt.NDArray[np.bool_]:
        """Which rows are exact, shape (rows,)."""
        return np.equal(self.sigmas, 0.0)

    @property
    def whitened(self) -> Floats:
        """The entries over their rows' standard deviations, zero in exact rows."""
        weights = np.where(self.exact, 0.0, 1.0 / np.where(self.exact, 1.0, self.sigmas))
        return np.asarray(weights[:, None] * self.entries)

    def some(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows."""
        those = np.array(chosen, dtype=np.intp)
        return Rows(self.columns, self.entries[those], self.sigmas[those], self.owners[those])

    def from_column(self, k: int) -> Rows:
        """The rows with nothing before column k."""
        return self._replace(entries=np.where(np.arange(len(self.columns)) >= k, self.entries, 0.0))

    def less(self, multiples: Floats, pivot: Rows, k: int) -> Rows:
        """The rows less multiples of another one, which leaves nothing in column k of those that have some."""
        entries = self.entries - np.outer(multiples, pivot.entries[0])
        entries[multiples != 0, k] = 0.0
        return self._replace(entries=entries)


def check_pivots(parts: Sequence[Rows], ends: Sequence[int], natural: Natural) -> None:
    """Raise an InputError for the first pivot that GTSAM misjudges, if there is any.

    Args:
        parts: The equations.
        ends: Where the columns of each variable end, in the order of elimination.
        natural: What natural sizes are.
    """
    waiting = list(parts)
    for end in ends:
        held = [part for part in waiting if part.columns[0] < end]
        if held:
            waiting = [part for part in waiting if part.columns[0] >= end]
            left = _without_first(_joined(held), end, natural)
            waiting += [left] if len(left.entries) and len(left.columns) else []


def _joined(parts: Sequence[Rows]) -> Rows:
    columns = np.unique(np.concatenate([part.columns for part in parts]))
    entries = np.zeros((sum(len(part.entries) for part in parts), len(columns)))
    start = 0
    for part in parts:
        entries[start : start + len(part.entries), np.searchsorted(columns, part.columns)] = part.entries
        start += len(part.entries)
    sigmas, owners = np.concatenate([part.sigmas for part in parts]), np.concatenate([part.owners for part in parts])
    return Rows(columns, entries, sigmas, owners)


def _without_first(rows: Rows, end: int, natural: Natural) -> Rows:
    """What the elimination of the columns before ``end`` leaves for later ones, as in GTSAM."""
    later, none = rows.columns >= end, rows.some([])
    if not rows.exact.any():
        R = np.asarray(np.linalg.qr(rows.whitened, mode="r"), dtype=np.float64)
        R = R[int((~later).sum()) :]
        return Rows(rows.columns[later], R[:, later], np.ones(len(R)), rows.owners[: len(R)])
    unit, kept, most = natural.units[rows.columns], [none], min(rows.entries.shape)
    rounding = RANK_ROUNDING * float(np.abs(rows.whitened * unit).max(initial=0.0))
    for k, column in enumerate(rows.columns):
        if most == 0:
            break
        pivot, rows = _exact_pivot(rows, k, unit[k] / natural.exact)
        if not len(pivot.entries):
            pivot, rows = _noisy_pivot(rows, k, unit[k], rounding)
        most -= len(pivot.entries)
        if column >= end:
            kept.append(pivot)
    lost = np.abs(rows.entries * unit / natural.exact) >= natural.lost
    lost[~rows.exact] = False
    for row, k in np.argwhere(lost):
        raise _misjudged(rows, row, k, unit[k] / natural.exact)
    left = _joined(kept)
    return left._replace(columns=left.columns[later], entries=left.entries[:, later])


def _exact_pivot(rows: Rows, k: int, unit: float) -> tuple[Rows, Rows]:
    """The exact row that column k is solved by, if there is one, and the others without the column."""
    sizes = np.where(rows.exact, np.abs(rows.entries[:, k]), 0.0)
    best = int(sizes.argmax())
    is_seen = bool(sizes[best] > GTSAM_NOTHING)
    if is_seen != bool(sizes[best] * unit > (RANK_ROUNDING if is_seen else RANK_TOLERANCE)):
        raise _misjudged(rows, best, k, unit)
    if not is_seen:
        return rows.some([]), rows
    pivot, others = rows.some([best]), rows.some([row for row in range(len(sizes)) if row != best])
    return pivot.from_column(k), others.less(others.entries[:, k] / pivot.entries[0, k], pivot, k)


def _noisy_pivot(rows: Rows, k: int, unit: float, rounding: float) -> tuple[Rows, Rows]:
    """What rows with noise say of column k, if they say something of it, and the rows without that."""
    entries, whitened = rows.entries[:, k], rows.whitened[:, k]
    said = np.where(np.abs(entries) > GTSAM_NOTHING, whitened, 0.0)
    length, best = float(np.linalg.norm(said)), int(np.abs(whitened).argmax())
    is_seen = length > GTSAM_UNSAID
    left_out = float(np.linalg.norm(whitened - said if is_seen else whitened))
    if left_out * unit > FELT or (is_seen and length * unit <= rounding):
        raise _misjudged(rows, best, k, unit)
    if not is_seen:
        return rows.some([]), rows
    projected = (said @ rows.whitened / length**2)[None]
    pivot = rows.some([best])._replace(entries=projected, sigmas=np.array([1.0 / length]))
    return pivot.from_column(k), rows.less(entries, pivot, k)


def _misjudged(rows: Rows, row: int, k: int, unit: float) -> InputError:
    entry = abs(float(rows.entries[row, k]))
    return InputError(
        f"GTSAM would misjudge equation {rows.owners[row]}. Beside exact equations it looks at entries for unknowns in "
        f"SI units: those up to {GTSAM_NOTHING:g}, and readings up to {GTSAM_UNSAID:g} of their deviation, count for "
        f"nothing. This one is {entry:.1e} when its turn comes, and {entry * unit:.1e} in units of the mechanism. "
        "Describe the mechanism in units in which its lengths and masses are near one, or use fgd.estimate, "
        "noise='unit' or a standard deviation as noise."
    )
