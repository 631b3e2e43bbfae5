"""Linear operators that are never formed: blocks, sums, products and inverses, applied in O(n).

    BlockOperator    y_r = sum of block @ x_c over its blocks (r, c, block)
    Resolvent        y = (1 - E)^-1 x for a strictly lower triangular E:   gather   y_k = x_k + sum E(k, i) y_i
    its adjoint      y = (1 - E)^-* x                                      scatter  y_k = x_k + E(p, k)^T y_p

``A @ B`` is an operator for operators and an array for arrays, ``A.T`` the adjoint, ``A.dense()`` the matrix, for
looking at small cases. Source: Jain, Robot and Multibody Dynamics (2011), chapters 3 and 8.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import overload

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.spatial import Floats

Block = tuple[slice, slice, Floats]


class Operator:
    """A linear map; ``shape`` is (rows, columns) as of a matrix."""

    shape: tuple[int, int]

    def apply(self, x: Floats) -> Floats:
        """The product with an array of shape (columns, m)."""
        raise NotImplementedError

    @property
    def T(self) -> Operator:
        """The adjoint."""
        raise NotImplementedError

    def dense(self) -> Floats:
        """The matrix, for small cases, shape ``shape``."""
        return self.apply(np.eye(self.shape[1]))

    @overload
    def __matmul__(self, other: Operator) -> Operator: ...
    @overload
    def __matmul__(self, other: Floats) -> Floats: ...
    def __matmul__(self, other: Operator | Floats) -> Operator | Floats:
        if other.shape[0] != self.shape[1]:
            raise InputError(f"A {self.shape} operator cannot be applied to shape {other.shape}.")
        if isinstance(other, Operator):
            return Product(self, other)
        return self.apply(other[:, None])[:, 0] if other.ndim == 1 else self.apply(other)

    def __add__(self, other: Operator) -> Operator:
        return Sum(self, other, 1.0)

    def __sub__(self, other: Operator) -> Operator:
        return Sum(self, other, -1.0)


@dataclass(frozen=True, eq=False)
class Identity(Operator):
    """The operator that changes nothing."""

    size: int

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """(size, size)."""
        return self.size, self.size

    def apply(self, x: Floats) -> Floats:
        """A copy of x."""
        return x.copy()

    @property
    def T(self) -> Operator:
        """Itself."""
        return self


@dataclass(frozen=True, eq=False)
class BlockOperator(Operator):
    """An operator with few blocks that are not zero: (rows, columns, block) each."""

    shape: tuple[int, int]
    blocks: Sequence[Block]

    def apply(self, x: Floats) -> Floats:
        """The sum of the blocks' products."""
        y = np.zeros((self.shape[0], x.shape[1]))
        for rows, columns, block in self.blocks:
            y[rows] += block @ x[columns]
        return y

    @property
    def T(self) -> Operator:
        """The operator with all blocks transposed."""
        turned = tuple((columns, rows, block.T) for rows, columns, block in self.blocks)
        return BlockOperator((self.shape[1], self.shape[0]), turned)


@dataclass(frozen=True, eq=False)
class Resolvent(Operator):
    """The inverse of 1 - E, for an E whose blocks (parent, child) come with children before parents."""

    E: BlockOperator
    adjoint: bool = False

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """That of E."""
        return self.E.shape

    def apply(self, x: Floats) -> Floats:
        """Gather from the tips to the base; the adjoint scatters from the base to the tips."""
        y = x.copy()
        if self.adjoint:
            for parent, child, block in reversed(self.E.blocks):
                y[child] += block.T @ y[parent]
        else:
            for parent, child, block in self.E.blocks:
                y[parent] += block @ y[child]
        return y

    @property
    def T(self) -> Operator:
        """The scatter of a gather, and the other way round."""
        return Resolvent(self.E, not self.adjoint)


@dataclass(frozen=True, eq=False)
class Product(Operator):
    """One operator after another."""

    left: Operator
    right: Operator

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """Rows of the left, columns of the right."""
        return self.left.shape[0], self.right.shape[1]

    def apply(self, x: Floats) -> Floats:
        """Right first."""
        return self.left.apply(self.right.apply(x))

    @property
    def T(self) -> Operator:
        """The adjoints in reverse."""
        return Product(self.right.T, self.left.T)


@dataclass(frozen=True, eq=False)
class Sum(Operator):
    """Left plus a multiple of right."""

    left: Operator
    right: Operator
    factor: float

    def __post_init__(self) -> None:
        if self.left.shape != self.right.shape:
            raise InputError(f"Operators of shapes {self.left.shape} and {self.right.shape} cannot be added.")

    @property
    def shape(self) -> tuple[int, int]:  # type: ignore[override]
        """That of both."""
        return self.left.shape

    def apply(self, x: Floats) -> Floats:
        """Both, added."""
        return self.left.apply(x) + self.factor * self.right.apply(x)

    @property
    def T(self) -> Operator:
        """The adjoints, added."""
        return Sum(self.left.T, self.right.T, self.factor)
