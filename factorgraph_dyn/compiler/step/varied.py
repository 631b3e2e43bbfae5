"""Arrays that carry their changes along, of numbers or symbols: what integrators are called with."""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn.spatial import Array


class Varied:
    """An array (..., n) and its changes (..., n, directions)."""

    __slots__ = ("change", "value")
    __array_ufunc__ = None

    def __init__(self, value: Array, change: Array) -> None:
        self.value, self.change = value, change

    def __add__(self, other: Varied) -> Varied:
        return Varied(self.value + other.value, self.change + other.change)

    def __sub__(self, other: Varied) -> Varied:
        return Varied(self.value - other.value, self.change - other.change)

    def __mul__(self, factor: Any) -> Varied:
        """By a number, or by one for every state of a batch."""
        if np.ndim(factor):
            return Varied(factor[..., None] * self.value, factor[..., None, None] * self.change)
        return Varied(factor * self.value, factor * self.change)

    __rmul__ = __mul__
