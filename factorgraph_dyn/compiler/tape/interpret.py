"""A program run by NumPy, value by value.

Takes a program and values of its inputs; gives the value of any of its nodes. Slow and simple: kernels
are checked against it, and it can look at values that a kernel keeps to itself. The work runs once a call.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.program import Program
from factorgraph_dyn.compiler.tape.tape import evaluate

Values = npt.NDArray[np.float64]


class Interpreter:
    """Values of a program's nodes at a batch of states."""

    def __init__(self, program: Program, inputs: Sequence[Values]) -> None:
        """Run a program.

        Args:
            program: What to compute.
            inputs: Value of each input, arrays of one shape.
        """
        self.program = program
        self._values: dict[int, Values] = dict(zip(program.inputs, inputs, strict=True))
        shape = np.broadcast_shapes(*(np.shape(value) for value in inputs)) if inputs else ()
        for node, constant in program.constants.items():
            self._values[node] = np.full(shape, constant)
        with np.errstate(all="ignore"):
            for angles, nodes in program.stages:
                turned = [node for angle in angles for node in program.sines_and_cosines[angle]]
                for node in (*turned, *nodes):
                    self._values[node] = evaluate(program.nodes[node], self._values)

    def value(self, ref: int) -> Values:
        """Value of a reference at every state."""
        return self._values[ref] if ref >= 0 else -self._values[-ref]

    def outputs(self) -> list[Values]:
        """Values of the program's outputs; states that a guard rejects are nan."""
        rejected = np.zeros(np.shape(self.value(0)), dtype=bool)
        for failed in self.failures():
            rejected |= failed
        return [np.where(rejected, np.nan, self.value(ref)) for ref in self.program.outputs]

    def failures(self) -> list[npt.NDArray[np.bool_]]:
        """For each guard, the states that it rejects."""
        found = []
        for guard in self.program.guards:
            size = np.abs(self.value(guard.ref))
            found.append(~(size <= guard.threshold if guard.small else size > guard.threshold))
        return found
