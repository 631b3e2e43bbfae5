"""The rows of a graph as flat arrays: what an answer misses of each equation, beside the equation's own terms.

    misfit           r = b - A x
    backward error   max over rows of  |r| / (|A| |x| + |b| + a share of the largest unknown)

The backward error is the largest relative change of coefficients that would make the answer exact, whatever the
units of a row. The last term is for rows in which nothing happens, such as those out of the plane of a planar
mechanism; it wants rows and unknowns in units that suit them (``scaling``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph
from factorgraph_dyn.solve.scaling import GraphUnits, column_units, row_units
from factorgraph_dyn.spatial import Floats

MOTION_ROWS = ("acceleration", "coupling", "velocity")
MOTIONS = ("A", "a", "V")
TINY = float(np.finfo(np.float64).tiny)


class Quiet(NamedTuple):
    """Shares of the largest motion and of the largest unknown that a row's own terms are taken to have at least."""

    motion: float = 1e-3
    force: float = 1e-3


QUIET = Quiet()
# Loops that are open by a little contradict each other by as much of the largest motion.
QUIET_LOOPS = Quiet(motion=1.0)


class Rows:
    """The equations of graphs of one structure, in given units.

    Attributes:
        entries: All blocks, each column after column, factor after factor, in the given units.
        rhs: All right-hand sides.
        columns: The units of the unknowns.
    """

    def __init__(self, graph: LinearGraph, units: GraphUnits) -> None:
        self.columns = column_units(graph, units)
        self._row_units = row_units(graph, units)
        places = graph.column_slices
        nothing = np.zeros(0, dtype=int)
        row_index, column_index, from_index, row, entry = [nothing], [nothing], [nothing], 0, 0
        for factor in graph.factors:
            for variable, block in factor.blocks:
                columns = np.arange(places[variable].start, places[variable].stop)
                row_index.append(np.tile(np.arange(row, row + factor.rows), variable.size))
                column_index.append(np.repeat(columns, factor.rows))
                from_index.append(entry + np.arange(block.size).reshape(block.shape).T.reshape(-1))
                entry += block.size
            row += factor.rows
        self._row, self._column = np.concatenate(row_index), np.concatenate(column_index)
        self._from = np.concatenate(from_index)  # where in the blocks, row after row, each entry stands
        self._scale = self.columns[self._column] / self._row_units[self._row]
        self.entries, self.rhs = np.zeros(len(self._row)), np.zeros(row)
        # One where an unknown is a motion, and where a row is one of forces; zero elsewhere.
        self._moves = np.concatenate([np.zeros(0), *(np.full(x.size, float(x.kind in MOTIONS)) for x in places)])
        kinds = [np.full(factor.rows, float(factor.kind not in MOTION_ROWS)) for factor in graph.factors]
        self._of_force = np.concatenate([np.zeros(0), *kinds])
        self.fill(graph)

    def fill(self, graph: LinearGraph) -> None:
        """Take the numbers of a graph of this structure."""
        blocks = [block.ravel() for factor in graph.factors for _, block in factor.blocks]
        if blocks:
            np.multiply(np.concatenate(blocks).take(self._from), self._scale, out=self.entries)
        if len(self.rhs):
            np.concatenate([factor.rhs for factor in graph.factors], out=self.rhs)
            self.rhs /= self._row_units

    def misfit(self, x: Floats, quiet: Quiet = QUIET) -> tuple[Floats, Floats]:
        """What each row misses, and the size that this is to be compared with."""
        terms = self.entries * x.take(self._column)
        rows, sizes = len(self.rhs), np.abs(x)
        misfit: Floats = self.rhs - np.bincount(self._row, terms, rows)
        size: Floats = np.abs(self.rhs) + np.bincount(self._row, np.abs(terms), rows)
        size += quiet.motion * (sizes * self._moves).max(initial=0.0)
        size += quiet.force * sizes.max(initial=0.0) * self._of_force
        return misfit, size

    def backward_error(self, x: Floats, quiet: Quiet = QUIET) -> tuple[float, int, Floats]:
        """The backward error of x, the row that has it, and what x misses of each row."""
        misfit, size = self.misfit(x, quiet)
        if not len(misfit):
            return 0.0, 0, misfit
        relative = np.abs(misfit) / np.maximum(size, TINY)
        worst = int(np.argmax(relative))  # of nan too
        return float(relative[worst]), worst, misfit


def factor_of(graph: LinearGraph, row: int) -> Factor:
    """The factor that a row of a graph belongs to."""
    for factor in graph.factors:
        row -= factor.rows
        if row < 0:
            return factor
    raise AssertionError("the graph has fewer rows")
