"""The kernel's side of a comparison: operations, time, error and the smallest pivot of each ordering.

Takes orderings of one problem; gives columns for their rows. Kernels are compiled once and kept in the
compiler's cache; the largest, which would take LLVM minutes, are counted but not compiled.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn.compare.accuracy import AccuracyCheck
from factorgraph_dyn.compare.cost import smallest_pivot
from factorgraph_dyn.compare.timing import best_of
from factorgraph_dyn.compiler.kernel.compile import compile_problem
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import FactorGraphDynError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import OrderingLike

STATES = 1024
MEASURING_TIME = 0.05  # s for each kernel
MOST_REPEATS = 100_000
LARGEST_COMPILED = 4_500  # operations


class KernelMeasurement:
    """Measures kernels of one problem at one batch of states."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        self.mechanism, self._problem = mechanism, problem
        self._check: AccuracyCheck | None = None

    def add_to(self, row: dict[str, Any], ordering: OrderingLike) -> None:
        """Add the kernel's columns to a row; one without a kernel says why in its note."""
        try:
            program = trace(self.mechanism, self._problem, ordering).program
            if self._check is None:
                self._check = AccuracyCheck(self.mechanism, self._problem, states=STATES)
        except FactorGraphDynError as error:
            row["note"] = "no kernel: " + str(error).split(". ")[0] + "."
            return
        note = row.pop("note")
        row["operations"] = program.operations.total
        row["pivot"] = smallest_pivot(self.mechanism, self._problem, program)
        row["kernel_error"] = self._check.error(program)
        if program.operations.total <= LARGEST_COMPILED:
            row["kernel_ns"] = 1e9 * self._time(ordering, self._check)
        else:
            note = f"kernel not compiled: more than {LARGEST_COMPILED} operations."
        row["note"] = note

    def _time(self, ordering: OrderingLike, check: AccuracyCheck) -> float:
        """The best time of a state, s."""
        kernel = compile_problem(self.mechanism, self._problem, ordering)
        arguments = [np.ascontiguousarray(argument) for argument in check.arguments]
        return best_of(lambda: kernel(*arguments), MOST_REPEATS, MEASURING_TIME) / len(arguments[0])
