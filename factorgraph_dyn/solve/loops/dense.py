"""Dense systems of closed mechanisms: scaled to order one, and taken apart by their singular values."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorgraph_dyn.motion.closure import RANK_TOLERANCE
from factorgraph_dyn.spatial import Floats

SINGULAR = 1e13  # condition numbers of balanced systems above it count as singular
BALANCING_ROUNDS = 20


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
    for _ in range(BALANCING_ROUNDS):
        for axis, scale in ((1, found.rows), (0, found.columns)):
            lengths = np.sqrt(np.linalg.norm(found.matrix, axis=axis))
            lengths[lengths == 0] = 1.0
            found.matrix[...] /= np.expand_dims(lengths, axis)
            scale /= lengths
    return found
