"""Numbers beside the tape: every node's value at some tens of random states, and how far rounding can have moved it.

Takes a tape with sampled inputs; gives, for any reference, its value at each sampled state and the variance of its
rounding error. From the values pivots are chosen. The variances tell values from rounding, in whatever units: a sum
that should be zero, but that rounding of the model's constants or of closed configurations keeps from being so, is at
every state no larger than the error it inherits. First-order propagation, errors taken as independent, u the rounding
unit:

    a + b    var a + var b + (u (a + b))^2        1 / a      var a / a^4 + (u / a)^2
    a b      a^2 var b + b^2 var a + (u a b)^2    sin a      var a + u^2

Values are computed as far as they are asked for, variances only where a sum looks like rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler import tape as t
from factorgraph_dyn.compiler.program import operands
from factorgraph_dyn.compiler.tape import Samples, Tape
from factorgraph_dyn.errors import CompileError

_SUSPICIOUS = 1e-8  # part of its terms below which a sum may be rounding
_ERRORS = 30.0  # standard deviations that rounding may reach
_MERGE_TOLERANCE = 1e-6
UNIT_ROUNDOFF = 2.0**-53
_FUNCTIONS: dict[int, Callable[[Any], Any]] = {
    t.RECIPROCAL: np.reciprocal,
    t.SIN: np.sin,
    t.COS: np.cos,
    t.SIGN: np.sign,
}


class SampledTape:
    """Values of a tape's nodes, and the variances of their errors, computed as far as asked for."""

    def __init__(self, tape: Tape, special: int = 0) -> None:
        """Start without values.

        Args:
            tape: The tape.
            special: How many of the first sampled states look singular, so that values need not be finite there.
        """
        self.tape = tape
        self.special = special
        self._values: list[Samples] = []
        self._variances: dict[int, Samples] = {}

    def values(self, ref: int) -> Samples:
        """Value of a reference at every sampled state."""
        node = abs(ref)
        if node >= len(self._values):
            self._extend(node)
        return self._values[ref] if ref >= 0 else -self._values[-ref]

    def add(self, a: int, b: int) -> int:
        """Reference to a + b, zero also where only rounding keeps it from being so."""
        total = self.tape.add(a, b)
        if not (a and b and total):
            return total
        first, second = self.values(a), self.values(b)
        if np.abs(first + second).sum() > _SUSPICIOUS * np.abs(first).sum():  # almost always
            return total
        return t.ZERO if self.is_rounding(total) else total

    def is_rounding(self, ref: int, variance: Samples | None = None) -> bool:
        """Whether a value is at every state no larger than rounding can have made it.

        Args:
            ref: The value.
            variance: Of the error that it inherits, where that is not its own. A sum that is known by its residue,
                such as the square of a tilt that is left of orthogonal directions, is as inexact as its terms.
        """
        value, variance = self.values(ref), self.variance(ref) if variance is None else variance
        with np.errstate(all="ignore"):
            tiny = value * value <= _ERRORS**2 * variance
        tiny[: self.special] |= ~np.isfinite(value[: self.special])  # a pivot vanished there before
        return bool(tiny.all())

    def variance(self, ref: int) -> Samples:
        """Variance of the rounding error of a reference at every sampled state."""
        node, known = abs(ref), self._variances
        if node not in known:
            self.values(node)
            with np.errstate(all="ignore"):
                for ancestor in self._without_variance(node):
                    known[ancestor] = self._variance(ancestor)
        return known[node]

    def _without_variance(self, node: int) -> list[int]:
        """The node and those of its ancestors whose variances are not known, operands first."""
        tape, known = self.tape, self._variances
        missing, stack = {node}, [node]
        while stack:
            here = stack.pop()
            for read in operands(tape.operation[here], tape.left[here], tape.right[here]):
                if read not in known and read not in missing:
                    missing.add(read)
                    stack.append(read)
        return sorted(missing)

    def _variance(self, node: int) -> Samples:
        tape, values, known = self.tape, self._values, self._variances
        operation, a, b = tape.operation[node], tape.left[node], tape.right[node]
        rounded = (UNIT_ROUNDOFF * values[node]) ** 2
        if operation == t.MUL:
            return values[a] ** 2 * known[b] + values[b] ** 2 * known[a] + rounded
        if operation in (t.ADD, t.SUB):
            return known[a] + known[b] + rounded
        if operation == t.CONSTANT:
            return np.full(tape.sample_count, tape.constant_error(node) ** 2)
        if operation == t.INPUT:
            return tape.input_errors[node] ** 2
        if operation == t.RECIPROCAL:
            return known[a] * values[node] ** 4 + rounded
        if operation == t.SIGN:
            return np.zeros(tape.sample_count)
        return known[a] + UNIT_ROUNDOFF**2

    def _extend(self, node: int) -> None:
        tape, values = self.tape, self._values
        with np.errstate(all="ignore"):
            for index in range(len(values), node + 1):
                operation, a, b = tape.operation[index], tape.left[index], tape.right[index]
                if operation == t.MUL:
                    values.append(values[a] * values[b])
                elif operation == t.ADD:
                    values.append(values[a] + values[b])
                elif operation == t.SUB:
                    values.append(values[a] - values[b])
                elif operation == t.CONSTANT:
                    values.append(np.full(tape.sample_count, tape.constants[index]))
                elif operation == t.INPUT:
                    values.append(tape.input_samples[index])
                else:
                    values.append(np.asarray(_FUNCTIONS[operation](values[a])))

    def check_merges(self) -> None:
        """Raise unless the samples bear out every operation that was recognised by its residue.

        A merge is refuted where most states contradict it by more than rounding; that would take a
        collision of residues, and tracing again with another seed would avoid it.
        """
        if not self.tape.merges:
            return
        merges = np.array(self.tape.merges)
        self.values(int(np.abs(merges[:, 1:]).max()))
        table = np.array(self._values)
        for block in np.array_split(merges, len(merges) // 4096 + 1):
            value, scale = _made(table, block)
            with np.errstate(all="ignore"):
                wrong = np.abs(value - _signed_rows(table, block[:, 3])) > _MERGE_TOLERANCE * scale
            for k in np.flatnonzero(wrong.mean(axis=1) > 0.5):
                self._check_merge(tuple(block[k].tolist()), value[k])

    def _check_merge(self, merge: tuple[int, ...], value: Samples) -> None:
        """Raise unless rounding explains why an operation and the node it was taken for differ."""
        operation, a, b, found = merge
        with np.errstate(all="ignore"):
            error = self.variance(a) + self.variance(b)
            if operation == t.MUL:
                error = self.values(a) ** 2 * self.variance(b) + self.values(b) ** 2 * self.variance(a)
            elif operation == t.RECIPROCAL:
                error = self.variance(a) * value**4
            error = error + self.variance(found) + (UNIT_ROUNDOFF * value) ** 2
            wrong = (value - self.values(found)) ** 2 > _ERRORS**2 * error
        if wrong.mean() > 0.5:
            raise CompileError(
                "Two different values were taken for one while compiling, which chance makes all but impossible. "
                "Change a model constant in its last digit, or take another ordering."
            )


def _made(table: npt.NDArray[np.float64], merges: npt.NDArray[np.int64]) -> tuple[Any, Any]:
    """The values of operations, and the sizes of what they were made of, a row each."""
    a, b = (_signed_rows(table, merges[:, k]) for k in (1, 2))
    adding, inverting = ((merges[:, 0] == operation)[:, None] for operation in (t.ADD, t.RECIPROCAL))
    with np.errstate(all="ignore"):
        value = np.where(adding, a + b, np.where(inverting, 1.0 / a, a * b))
        return value, np.where(adding, np.abs(a) + np.abs(b), np.abs(value))


def _signed_rows(table: npt.NDArray[np.float64], refs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    rows: npt.NDArray[np.float64] = np.sign(refs)[:, None] * table[np.abs(refs)]
    return rows
