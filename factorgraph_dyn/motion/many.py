"""Many states at once: one scalar stands for its values at all of them.

Takes a function of one state, written for numbers of any scalar type, and states with any leading axes; gives its
results with the same axes. The equations are called once for a block of states, not once a state, with scalars that are
NumPy arrays inside: what the compiler does with symbols, done with numbers. Zeros and ones fold away as they appear.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import prod
from typing import Any, NoReturn

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.spatial import Array, Floats

BLOCK = 4096  # states whose numbers stay in the processor's cache while operations follow each other

Result = tuple[Array, ...]


class Many:
    """A scalar's values at many states, shape (states,)."""

    __slots__ = ("values",)

    def __init__(self, values: Floats) -> None:
        self.values = values

    def __add__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.values + other.values)
        return Many(self.values + other) if other else self

    __radd__ = __add__

    def __sub__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.values - other.values)
        return Many(self.values - other) if other else self

    def __rsub__(self, other: Any) -> Any:
        return Many(other - self.values) if other else Many(-self.values)

    def __mul__(self, other: Any) -> Any:
        if type(other) is Many:
            return Many(self.values * other.values)
        if not other:
            return 0.0
        return self if other == 1 else Many(self.values * other)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        return Many(self.values / (other.values if type(other) is Many else other))

    def __rtruediv__(self, other: Any) -> Any:
        return Many(other / self.values)

    def __pow__(self, exponent: int) -> Any:
        return Many(self.values**exponent)

    def __neg__(self) -> Any:
        return Many(-self.values)

    def __bool__(self) -> NoReturn:
        raise TypeError("Values of many states have no truth value: the computation may not branch on the state.")

    def sin(self) -> Any:
        """The sine; ``np.sin`` of an object array calls it."""
        return Many(np.sin(self.values))

    def cos(self) -> Any:
        """The cosine."""
        return Many(np.cos(self.values))


def at_states(function: Callable[..., Result], *arguments: Floats) -> tuple[Floats, ...]:
    """The results of a function of one state at all states.

    Args:
        function: Takes a vector for each argument, of floats or of `Many`; gives arrays of either.
        *arguments: Vectors with leading axes, which broadcast.

    Raises:
        InputError: The leading axes do not broadcast.
    """
    axes = common_axes(arguments)
    if not axes:
        return tuple(np.asarray(result, dtype=np.float64) for result in function(*arguments))
    states = prod(axes)
    flat = [np.broadcast_to(each, axes + each.shape[-1:]).reshape(states, each.shape[-1]) for each in arguments]
    blocks = [
        _unpacked(function(*(_packed(each[start : start + BLOCK]) for each in flat)), min(BLOCK, states - start))
        for start in range(0, max(states, 1), BLOCK)
    ]
    whole = blocks[0] if len(blocks) == 1 else [np.concatenate(parts) for parts in zip(*blocks, strict=True)]
    return tuple(result.reshape(axes + result.shape[1:]) for result in whole)


def common_axes(arguments: Sequence[Floats]) -> tuple[int, ...]:
    """The leading axes of vectors, broadcast."""
    try:
        return np.broadcast_shapes(*(each.shape[:-1] for each in arguments))
    except ValueError:
        shapes = " and ".join(str(each.shape) for each in arguments)
        raise InputError(f"States of shapes {shapes} do not go together: leading axes have to broadcast.") from None


def _packed(vectors: Floats) -> Array:
    """Vectors (states, size) as one vector of scalars, shape (size,)."""
    packed = np.empty(vectors.shape[1], dtype=object)
    packed[:] = [Many(column) for column in np.ascontiguousarray(vectors.T)]
    return packed


def _unpacked(results: Result, states: int) -> list[Floats]:
    """Arrays of scalars as arrays of numbers, with the states first."""
    unpacked = []
    for result in results:
        numbers = np.empty((states, *result.shape))
        for index in np.ndindex(result.shape):
            entry: Any = result[index]
            numbers[:, *index] = entry.values if type(entry) is Many else entry
        unpacked.append(numbers)
    return unpacked
