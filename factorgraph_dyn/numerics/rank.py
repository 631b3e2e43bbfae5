"""The rank of matrices, and what belongs to it: bases of range and null space, independent rows, condition.

Every matrix comes in units in which it is of order one, with the share of its largest singular value below which one is
zero. Singular values decide; pivoted Gram-Schmidt chooses rows once their number is known.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.numerics.tolerances import RANK_TOLERANCE, SINGULAR
from factorgraph_dyn.spatial import Floats

Mask = npt.NDArray[np.bool_]

_BALANCING_ROUNDS = 20
_NEARLY_AS_LONG = 0.99  # rows of nearly the same length: the first of them is chosen, so that neighbouring states agree


class Decomposed(NamedTuple):
    """A matrix by its singular values, those that count as zero apart.

    Attributes:
        range: Orthonormal basis of the columns' space, as columns.
        values: Singular values other than zero, the largest first.
        null_space: Orthonormal basis of what the matrix takes to zero, as columns.
    """

    range: Floats
    values: Floats
    null_space: Floats

    @property
    def rank(self) -> int:
        """How many singular values are not zero."""
        return len(self.values)

    @property
    def condition(self) -> float:
        """Ratio of the largest to the least of them; 1 without any."""
        return float(self.values[0] / self.values[-1]) if self.rank else 1.0


def decomposed(matrix: Floats, tolerance: float = RANK_TOLERANCE) -> Decomposed:
    """The decomposition of a matrix; values below a share of the largest are zero."""
    left, values, right = np.linalg.svd(matrix)
    rank = int((values > tolerance * values.max(initial=0.0)).sum())
    return Decomposed(left[:, :rank], values[:rank], right[rank:].T)


def null_space(matrix: Floats, tolerance: float = RANK_TOLERANCE) -> Floats:
    """An orthonormal basis of what a matrix takes to zero, as columns."""
    return decomposed(matrix, tolerance).null_space


def singular_shares(matrix: Floats) -> Floats:
    """Singular values, the largest first, as shares of the largest or of one, where all are smaller."""
    values = np.linalg.svd(matrix, compute_uv=False)
    return np.asarray(values / max(values.max(initial=0.0), 1.0))


def rank(matrix: Floats, tolerance: float) -> int:
    """The number of singular values above a share of the largest, or of one, where all are smaller."""
    return int((singular_shares(matrix) > tolerance).sum())


def chosen_rows(matrix: Floats, count: int) -> Mask:
    """As many rows as the matrix has rank, one after the other that which is longest beside those before."""
    rest, mask = np.array(matrix), np.zeros(len(matrix), dtype=bool)
    for _ in range(count):
        lengths = np.linalg.norm(rest, axis=1)
        best = int(np.argmax(lengths >= _NEARLY_AS_LONG * lengths.max()))
        mask[best] = True
        direction = rest[best] / lengths[best]
        for _ in range(2):  # one pass of Gram-Schmidt leaves rounding of the parts it takes out
            rest -= np.outer(rest @ direction, direction)
        rest[best] = 0.0
    return mask


class Balanced(NamedTuple):
    """A matrix with rows and columns scaled to length one, more or less, and what they were multiplied by."""

    matrix: Floats
    rows: Floats
    columns: Floats

    @property
    def decomposed(self) -> Decomposed:
        """The scaled matrix by its singular values."""
        return decomposed(self.matrix, 1.0 / SINGULAR)


def balanced(system: Floats) -> Balanced:
    """The matrix, scaled."""
    found = Balanced(system.copy(), np.ones(len(system)), np.ones(system.shape[1]))
    for _ in range(_BALANCING_ROUNDS):
        for axis, scale in ((1, found.rows), (0, found.columns)):
            lengths = np.sqrt(np.linalg.norm(found.matrix, axis=axis))
            lengths[lengths == 0] = 1.0
            found.matrix[...] /= np.expand_dims(lengths, axis)
            scale /= lengths
    return found
