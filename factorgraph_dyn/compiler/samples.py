"""Numbers beside the tape: every node's value at some tens of random states.

Takes a tape with sampled inputs; gives, for any reference, its value at each sampled state. From them
pivots are chosen, and zeros are seen that rounding hides from the residues (constants that are not quite
a rotation, closed loops): a sum that in every state is a tiny part of its terms. The work runs once a
node, when its value is asked for.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler import tape as t
from factorgraph_dyn.compiler.tape import Samples, Tape
from factorgraph_dyn.errors import CompileError

_CANCELLED = 1e-10  # of its terms; no sum that is not zero is that small in every random state
_MERGE_TOLERANCE = 1e-6
_ROUNDING = 1e-13  # of a value's usual size on the tape
_FUNCTIONS: dict[int, Callable[[Any], Any]] = {
    t.RECIPROCAL: np.reciprocal,
    t.SIN: np.sin,
    t.COS: np.cos,
    t.SIGN: np.sign,
}


class SampledTape:
    """Values of a tape's nodes, computed as far as asked for."""

    def __init__(self, tape: Tape) -> None:
        self.tape = tape
        self._values: list[Samples] = []

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
        size = np.abs(first)
        if np.abs(first + second).sum() > _CANCELLED * size.sum():  # almost always
            return total
        small = np.abs(first + second) <= _CANCELLED * (size + np.abs(second))
        return t.ZERO if small.all() else total

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
        with np.errstate(all="ignore"):
            sizes = np.abs(table)
            usual = np.median(sizes[np.isfinite(sizes) & (sizes > 0)])
        for block in np.array_split(merges, len(merges) // 4096 + 1):
            a, b, found = (_signed_rows(table, block[:, k]) for k in (1, 2, 3))
            adding = (block[:, 0] == t.ADD)[:, None]
            with np.errstate(all="ignore"):
                value = np.where(adding, a + b, a * b)
                scale = np.where(adding, np.abs(a) + np.abs(b), np.abs(a * b))
                # What cancelled further up leaves rounding that its own size does not tell.
                wrong = np.abs(value - found) > _MERGE_TOLERANCE * scale + _ROUNDING * usual
            if (wrong.mean(axis=1) > 0.5).any():
                raise CompileError(
                    "Two different values were taken for one while compiling, which chance makes all but impossible. "
                    "Change a model constant in its last digit, or take another ordering."
                )


def _signed_rows(table: npt.NDArray[np.float64], refs: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    rows: npt.NDArray[np.float64] = np.sign(refs)[:, None] * table[np.abs(refs)]
    return rows
