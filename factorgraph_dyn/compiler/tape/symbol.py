"""Symbols: tape references that behave like numbers, also inside NumPy object arrays.

Takes the arithmetic of functions written for floats; gives the same arithmetic on a tape. Mixed operations
with Python and NumPy numbers work, and ``np.sin`` and ``np.cos`` of an object array reach the methods here.
A symbol has no truth value: code that branches on one would compile only the branch it took.
"""

from __future__ import annotations

import numbers
from typing import Any, NoReturn

import numpy as np

from factorgraph_dyn.compiler.tape.tape import Tape

SymbolArray = np.ndarray[Any, np.dtype[np.object_]]


class Symbol:
    """A scalar on a tape.

    Attributes:
        tape: The tape that its operations are written to.
        ref: Its reference: a node, the negative of one, or 0.
    """

    __slots__ = ("ref", "tape")

    def __init__(self, tape: Tape, ref: int) -> None:
        self.tape = tape
        self.ref = ref

    def _ref_of(self, other: object) -> int | None:
        if type(other) is Symbol:
            return other.ref
        if isinstance(other, numbers.Real | np.bool_):
            return self.tape.constant(float(other))
        return None

    def __add__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.add(self.ref, ref))

    __radd__ = __add__

    def __sub__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.add(self.ref, -ref))

    def __rsub__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.add(ref, -self.ref))

    def __mul__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.mul(self.ref, ref))

    __rmul__ = __mul__

    def __truediv__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.div(self.ref, ref))

    def __rtruediv__(self, other: object) -> Symbol:
        ref = self._ref_of(other)
        return NotImplemented if ref is None else Symbol(self.tape, self.tape.div(ref, self.ref))

    def __pow__(self, exponent: int) -> Symbol:
        if not isinstance(exponent, int | np.integer):
            return NotImplemented
        base = self if exponent >= 0 else self.reciprocal()
        result = Symbol(self.tape, self.tape.constant(1.0))
        for _ in range(abs(int(exponent))):
            result = result * base
        return result

    def __neg__(self) -> Symbol:
        return Symbol(self.tape, -self.ref)

    def __pos__(self) -> Symbol:
        return self

    def reciprocal(self) -> Symbol:
        """One over the symbol."""
        return Symbol(self.tape, self.tape.reciprocal(self.ref))

    def sin(self) -> Symbol:
        """The sine; ``np.sin`` of an object array calls it."""
        return Symbol(self.tape, self.tape.sin(self.ref))

    def cos(self) -> Symbol:
        """The cosine; ``np.cos`` of an object array calls it."""
        return Symbol(self.tape, self.tape.cos(self.ref))

    def sign(self) -> Symbol:
        """-1, 0 or 1, as for Coulomb friction."""
        return Symbol(self.tape, self.tape.sign(self.ref))

    def __bool__(self) -> NoReturn:
        raise TypeError("A traced value has no truth value: the computation may not branch on the state.")

    def __eq__(self, other: object) -> bool:
        """Whether both are the same function of the inputs."""
        ref = self._ref_of(other)
        return ref is not None and ref == self.ref

    def __hash__(self) -> int:
        return hash((id(self.tape), self.ref))

    def __repr__(self) -> str:
        constant = self.tape.constant_value(self.ref)
        return f"Symbol({self.ref})" if constant is None else f"Symbol({constant:g})"


def symbols(tape: Tape, refs: Any) -> SymbolArray:
    """Object array of symbols, of the shape of the given references."""
    array = np.empty(np.shape(refs), dtype=object)
    for index, ref in np.ndenumerate(np.asarray(refs)):
        array[index] = Symbol(tape, int(ref))
    return array


def references(tape: Tape, values: Any) -> np.ndarray[Any, np.dtype[np.int64]]:
    """Array of references, of the shape of the given symbols and numbers."""
    values = np.asarray(values)
    refs = np.empty(values.shape, dtype=np.int64)
    for index, value in np.ndenumerate(values):
        refs[index] = value.ref if type(value) is Symbol else tape.constant(float(value))
    return refs
