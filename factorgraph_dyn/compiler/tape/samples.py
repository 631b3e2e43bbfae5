"""Numbers beside the tape: every node's value at some tens of random states, and how far rounding can have moved it.

Takes a tape with sampled inputs; gives, for any reference, its value at each sampled state and the standard deviation
of its rounding error. From the values pivots are chosen. The errors tell values from rounding, in whatever units: a sum
that should be zero, but that rounding of the model's constants or of closed configurations keeps from being so, is at
every state no larger than the error it inherits. First-order propagation, errors e taken as independent, u the rounding
unit; of the terms the root of the sum of their squares, which are never formed, as those of 1e-160 would be zero:

    a + b    e_a, e_b, u (a + b)        1 / a      e_a / a^2, u / a
    a b      a e_b, b e_a, u a b        sin a      e_a, u

Values are computed as far as they are asked for, errors only where a sum looks like rounding.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.tape import Samples, Tape, operands
from factorgraph_dyn.errors import CompileError

_SUSPICIOUS = 1e-14  # part of its terms, both squared, below which a sum may be rounding
_FIRST_NODES = 1024  # for which there is room at first
_ERRORS = 30.0  # standard deviations that rounding may reach
_MERGE_TOLERANCE = 1e-6
UNIT_ROUNDOFF = 2.0**-53


class SampledTape:
    """Values of a tape's nodes, and the deviations of their errors, computed as far as asked for."""

    def __init__(self, tape: Tape, special: int = 0) -> None:
        """Start without values.

        Args:
            tape: The tape.
            special: How many of the first sampled states look singular, so that values need not be finite there.
        """
        self.tape = tape
        self.special = special
        self._table: npt.NDArray[np.float64] = np.empty((_FIRST_NODES, tape.sample_count))
        self._rows: list[Samples] = list(self._table)
        self._count = 0  # nodes whose values are known
        self._errors: dict[int, Samples] = {}
        self._sums: dict[tuple[int, int], int] = {}

    def values(self, ref: int) -> Samples:
        """Value of a reference at every sampled state."""
        node = abs(ref)
        if node >= self._count:
            self._extend(node)
        return self._rows[ref] if ref >= 0 else -self._rows[node]

    def sizes(self, refs: Sequence[int]) -> npt.NDArray[np.float64]:
        """Absolute values of references at every sampled state, shape (references, states)."""
        nodes = [abs(ref) for ref in refs]
        if max(nodes) >= self._count:
            self._extend(max(nodes))
        found = self._table.take(nodes, axis=0)
        return np.abs(found, out=found)

    def add(self, a: int, b: int) -> int:
        """Reference to a + b, zero also where only rounding keeps it from being so."""
        return self.sums([(a, b)])[0] if a and b else a or b

    def sums(self, pairs: Sequence[tuple[int, int]]) -> list[int]:
        """References to a + b for pairs of references, zero also where only rounding keeps them from being so."""
        known, add, merges = self._sums, self.tape.add, self.tape.merges
        totals: list[int] = []
        fresh: list[tuple[int, int]] = []
        for pair in pairs:
            total = known.get(pair)
            if total is not None:
                merges.append((t.ADD, *pair, total))
            else:
                total = add(*pair)
                if pair[0] and pair[1]:
                    known[pair] = total
                    if total:
                        fresh.append(pair)
            totals.append(total)
        small = [pair for pair in self._suspicious(fresh) if self.is_rounding(known[pair])] if fresh else ()
        for pair in small:
            known[pair] = t.ZERO
        return [known.get(pair, total) for pair, total in zip(pairs, totals, strict=True)] if small else totals

    def _suspicious(self, pairs: list[tuple[int, int]]) -> list[tuple[int, int]]:
        """The pairs whose sums are so small beside their terms that they may be rounding."""
        terms, totals = [abs(a) for a, _ in pairs], [abs(self._sums[pair]) for pair in pairs]
        last = max(*terms, *totals) if len(terms) > 1 else max(terms[0], totals[0])
        if last >= self._count:
            self._extend(last)
        if len(pairs) == 1:  # squares beyond 1e308 or below 1e-308 are looked at closely
            term, total = self._rows[terms[0]], self._rows[totals[0]]
            return [] if total.dot(total) > _SUSPICIOUS * term.dot(term) else pairs
        term_rows, total_rows = self._table.take(terms, axis=0), self._table.take(totals, axis=0)
        with np.errstate(all="ignore"):
            plain = np.vecdot(total_rows, total_rows) > _SUSPICIOUS * np.vecdot(term_rows, term_rows)
        return (
            [] if plain.all() else [pair for pair, is_plain in zip(pairs, plain.tolist(), strict=True) if not is_plain]
        )

    def is_rounding(self, ref: int, error: Samples | None = None) -> bool:
        """Whether a value is at every state no larger than rounding can have made it.

        Args:
            ref: The value.
            error: That it inherits, where that is not its own. A sum that is known by its residue,
                such as the square of a tilt that is left of orthogonal directions, is as inexact as its terms.
        """
        value, error = self.values(ref), self.error(ref) if error is None else error
        with np.errstate(all="ignore"):
            tiny = np.abs(value) <= _ERRORS * error
        tiny[: self.special] |= ~np.isfinite(value[: self.special])  # a pivot vanished there before
        return bool(tiny.all())

    def error(self, ref: int) -> Samples:
        """Standard deviation of the rounding error of a reference at every sampled state."""
        node, known = abs(ref), self._errors
        if node not in known:
            self.values(node)
            with np.errstate(all="ignore"):
                for ancestor in self._without_error(node):
                    known[ancestor] = self._error(ancestor)
        return known[node]

    def _without_error(self, node: int) -> list[int]:
        """The node and those of its ancestors whose errors are not known, operands first."""
        tape, known = self.tape, self._errors
        missing, stack = {node}, [node]
        while stack:
            here = stack.pop()
            for read in operands(tape.node(here)):
                if read not in known and read not in missing:
                    missing.add(read)
                    stack.append(read)
        return sorted(missing)

    def _error(self, node: int) -> Samples:
        tape = self.tape
        operation, a, b = tape.node(node)
        if operation == t.CONSTANT:
            return np.full(tape.sample_count, tape.constant_error(node))
        if operation == t.INPUT:
            return tape.input_errors[node]
        if operation == t.SIGN:
            return np.zeros(tape.sample_count)
        if operation in (t.SIN, t.COS):
            return np.hypot(self._errors[a], UNIT_ROUNDOFF)
        return self._made_error(operation, a, b, self._rows[node])

    def _made_error(self, operation: int, a: int, b: int, value: Samples) -> Samples:
        """The error of a sum, a product or a reciprocal of this value."""
        values, errors, rounded = self._rows, self._errors, UNIT_ROUNDOFF * value
        if operation == t.MUL:
            return np.hypot(np.hypot(values[a] * errors[b], values[b] * errors[a]), rounded)
        if operation == t.RECIPROCAL:
            return np.hypot(errors[a] * value * value, rounded)
        return np.hypot(np.hypot(errors[a], errors[b]), rounded)

    def _extend(self, node: int) -> None:
        """Compute the values of all nodes up to this one."""
        if node >= len(self._table):
            self._grow(node)
        tape, rows = self.tape, self._rows
        operations, left, right = tape.operation, tape.left, tape.right
        with np.errstate(all="ignore"):
            for index in range(self._count, node + 1):
                operation, row = operations[index], rows[index]
                if operation in t.BINARY:
                    t.NUMPY[operation](rows[left[index]], rows[right[index]], row)
                elif operation == t.CONSTANT:
                    row.fill(tape.constants[index])
                elif operation == t.INPUT:
                    row[:] = tape.input_samples[index]
                else:
                    t.NUMPY[operation](rows[left[index]], row)
        self._count = node + 1

    def _grow(self, node: int) -> None:
        table = np.empty((max(node + 1, 2 * len(self._table)), self.tape.sample_count))
        table[: self._count] = self._table[: self._count]
        self._table, self._rows = table, list(table)

    def check_merges(self) -> None:
        """Raise unless the samples bear out every operation that was recognised by its residue.

        A merge is refuted where most states contradict it by more than rounding; that would take a
        collision of residues, and tracing again with another seed would avoid it.
        """
        if not self.tape.merges:
            return
        merges = np.array(self.tape.merges)
        self.values(int(np.abs(merges[:, 1:]).max()))
        table = self._table[: self._count]
        for block in np.array_split(merges, len(merges) // 4096 + 1):
            value, scale = _made(table, block)
            with np.errstate(all="ignore"):
                wrong = np.abs(value - _signed_rows(table, block[:, 3])) > _MERGE_TOLERANCE * scale
            for k in np.flatnonzero(wrong.mean(axis=1) > 0.5):
                self._check_merge(tuple(block[k].tolist()), value[k])

    def _check_merge(self, merge: tuple[int, ...], value: Samples) -> None:
        """Raise unless rounding explains why an operation and the node it was taken for differ."""
        operation, a, b, found = merge
        for ref in (a, b, found):
            self.error(ref)
        with np.errstate(all="ignore"):
            error = np.hypot(self._made_error(operation, abs(a), abs(b), value), self.error(found))
            wrong = np.abs(value - self.values(found)) > _ERRORS * error
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
