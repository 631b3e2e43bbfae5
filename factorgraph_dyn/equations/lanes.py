"""Many states in the place of one number: a scalar whose value is an array over a batch.

Functions of the rooms ``spatial``, ``motion`` and ``equations`` take arrays of any scalar type. With lanes for scalars
they evaluate a whole batch at once, by the same equations as a single state or a compiler's symbol. Exact zeros and
ones are passed over, as a tape does, because most entries of poses and subspaces are.
"""

from __future__ import annotations

import numbers
from typing import Any

import numpy as np

from factorgraph_dyn.spatial import Array, Floats


class Lanes:
    """A number for every state of a batch; inside NumPy object arrays it behaves like one."""

    __slots__ = ("value",)

    def __init__(self, value: Floats) -> None:
        self.value = value

    def __add__(self, other: object) -> Any:
        value = _value(other)
        return self if value is _ZERO else Lanes(self.value + value)

    __radd__ = __add__

    def __sub__(self, other: object) -> Any:
        value = _value(other)
        return self if value is _ZERO else Lanes(self.value - value)

    def __rsub__(self, other: object) -> Any:
        return Lanes(_value(other) - self.value)

    def __mul__(self, other: object) -> Any:
        value = _value(other)
        if value is _ZERO:
            return 0.0
        return self if value is _ONE else Lanes(self.value * value)

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Any:
        return Lanes(self.value / _value(other))

    def __rtruediv__(self, other: object) -> Any:
        return Lanes(_value(other) / self.value)

    def __neg__(self) -> Lanes:
        return Lanes(-self.value)

    def sin(self) -> Lanes:
        """The sines; ``np.sin`` of an object array calls it."""
        return Lanes(np.sin(self.value))

    def cos(self) -> Lanes:
        """The cosines; ``np.cos`` of an object array calls it."""
        return Lanes(np.cos(self.value))


_ZERO, _ONE = 0.0, 1.0


def _value(other: object) -> Any:
    """The number or the numbers that an operand stands for; zero and one are always the same objects."""
    if type(other) is Lanes:
        return other.value
    if not isinstance(other, numbers.Real):
        raise TypeError(f"{other!r} is neither lanes nor a number")
    return _ZERO if other == 0 else _ONE if other == 1 else float(other)


def to_lanes(values: Floats) -> Array:
    """Vectors of a batch, shape (states, size), as a vector of lanes, shape (size,)."""
    lanes = np.empty(values.shape[1], dtype=object)
    for k, column in enumerate(values.T):
        lanes[k] = Lanes(np.ascontiguousarray(column))
    return lanes


def from_lanes(lanes: Array, states: int) -> Floats:
    """An array of lanes and numbers as an array over the batch, shape (states, ...)."""
    values = np.empty((states, *lanes.shape))
    for place in np.ndindex(lanes.shape):
        values[(slice(None), *place)] = _value(lanes[place])
    return values
