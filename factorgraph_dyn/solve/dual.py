"""Numbers that know how they change: forward differentiation of functions written for any scalar type.

Takes the arithmetic of functions written for floats and symbols; gives values and their changes along any number of
directions at once. Inside NumPy object arrays a dual number goes where a symbol of the compiler does.
"""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np

from factorgraph_dyn.spatial import Array, Floats

_REAL = numbers.Real


class Dual:
    """A number and its change along some directions.

    Attributes:
        value: The number.
        change: Its change along each direction, shape (directions,).
    """

    __slots__ = ("change", "value")

    def __init__(self, value: float, change: Floats) -> None:
        self.value = float(value)
        self.change = change

    def __add__(self, other: object) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value + other.value, self.change + other.change)
        return Dual(self.value + float(other), self.change) if isinstance(other, _REAL) else NotImplemented

    __radd__ = __add__

    def __sub__(self, other: object) -> Dual:
        return self + (-other) if isinstance(other, Dual | _REAL) else NotImplemented

    def __rsub__(self, other: object) -> Dual:
        return -self + other if isinstance(other, _REAL) else NotImplemented

    def __mul__(self, other: object) -> Dual:
        if isinstance(other, Dual):
            return Dual(self.value * other.value, self.value * other.change + other.value * self.change)
        if not isinstance(other, _REAL):
            return NotImplemented
        return Dual(self.value * float(other), self.change * float(other))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Dual:
        if isinstance(other, Dual):
            return self * other.reciprocal()
        return self * (1.0 / float(other)) if isinstance(other, _REAL) else NotImplemented

    def __rtruediv__(self, other: object) -> Dual:
        return self.reciprocal() * other if isinstance(other, _REAL) else NotImplemented

    def __pow__(self, exponent: int) -> Dual:
        return Dual(self.value**exponent, exponent * self.value ** (exponent - 1) * self.change)

    def __neg__(self) -> Dual:
        return Dual(-self.value, -self.change)

    def __pos__(self) -> Dual:
        return self

    def reciprocal(self) -> Dual:
        """One over the number."""
        inverse = 1.0 / self.value
        return Dual(inverse, -inverse * inverse * self.change)

    def sin(self) -> Dual:
        """The sine; ``np.sin`` of an object array calls it."""
        return Dual(math.sin(self.value), math.cos(self.value) * self.change)

    def cos(self) -> Dual:
        """The cosine; ``np.cos`` of an object array calls it."""
        return Dual(math.cos(self.value), -math.sin(self.value) * self.change)

    def sign(self) -> Dual:
        """-1, 0 or 1, which does not change: at zero, too, the branch that the value takes is followed."""
        return Dual(float(np.sign(self.value)), 0.0 * self.change)


def duals(values: Floats, changes: Floats) -> Array:
    """An array of dual numbers from values (n,) and their changes (n, directions)."""
    found: Array = np.empty(len(values), dtype=object)
    for k, (value, change) in enumerate(zip(values.tolist(), changes, strict=True)):
        found[k] = Dual(value, change)
    return found


def changes_of(values: Any, directions: int) -> Floats:
    """The changes of an array of dual and plain numbers, shape (..., directions)."""
    array = np.asarray(values, dtype=object)
    found = np.zeros((*array.shape, directions))
    for index, value in np.ndenumerate(array):
        if isinstance(value, Dual):
            found[index] = value.change
    return found
