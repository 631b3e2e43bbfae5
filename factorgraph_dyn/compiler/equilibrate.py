"""Units in which all entries of a sparse matrix are of order one.

Takes the sizes of the entries; gives a factor for every column. Rows and columns are divided in turn by the
square root of their largest entry until all of these are near one (Ruiz 2001). The work runs once an elimination.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

_ROUNDS = 6


def column_units(sizes: Mapping[tuple[int, int], float]) -> dict[int, float]:
    """Factor of each column with which, after rows are scaled too, all entries are of order one.

    Args:
        sizes: Size of every entry, by row and column.
    """
    if not sizes:
        return {}
    rows, i = np.unique([row for row, _ in sizes], return_inverse=True)
    columns, j = np.unique([column for _, column in sizes], return_inverse=True)
    entries, units = np.array(list(sizes.values())), np.ones(len(columns))
    with np.errstate(divide="ignore"):
        for _ in range(_ROUNDS):
            largest_in_row, largest_in_column = np.zeros(len(rows)), np.zeros(len(columns))
            np.maximum.at(largest_in_row, i, entries)
            np.maximum.at(largest_in_column, j, entries)
            row_factor, column_factor = (
                np.where(largest > 0, 1 / np.sqrt(largest), 1.0) for largest in (largest_in_row, largest_in_column)
            )
            entries = entries * row_factor[i] * column_factor[j]
            units = units * column_factor
    return dict(zip(columns.tolist(), units.tolist(), strict=True))
