"""The rows of a graph as flat arrays: what an answer misses of each equation, beside the equation's own terms.

    misfit           r = b - A x
    backward error   max over rows of  |r| / (|A| |x| + |b| + a share of the largest unknown)

The backward error is the largest relative change of coefficients that would make the answer exact, whatever the
units of a row. The last term is for rows in which nothing happens, such as those out of the plane of a planar
mechanism; it wants rows and unknowns in units that suit them (``scaling``). It tells whether an answer can be trusted,
not whether each of its parts can be better: beside a finger of 1e-8 kg all else is quiet. Refinement therefore judges
rows by their own terms (``Missed``).
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph
from factorgraph_dyn.solve.scaling import GraphUnits, column_units, row_units
from factorgraph_dyn.spatial import Floats, stacked

MOTION_ROWS = ("acceleration", "coupling", "velocity")
MOTIONS = ("A", "a", "V")
TINY = float(np.finfo(np.float64).tiny)
EPSILON = float(np.finfo(np.float64).eps)


class Quiet(NamedTuple):
    """Shares of the largest motion and of the largest unknown that a row's own terms are taken to have at least."""

    motion: float = 1e-3
    force: float = 1e-3


QUIET = Quiet()
# Loops that are open by a little contradict each other by as much of the largest motion.
QUIET_LOOPS = Quiet(motion=1.0)


class Missed(NamedTuple):
    """What an answer misses.

    Attributes:
        x: The answer.
        misfit: What it misses of each row.
        terms: The size of each row's own terms.
        share: The largest misfit, relative to its row's terms.
        worst: That row.
    """

    x: Floats
    misfit: Floats
    terms: Floats
    share: float
    worst: int


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
        row_index, column_index, row = [nothing], [nothing], 0
        for factor in graph.factors:
            for variable, _ in factor.blocks:
                columns = np.arange(places[variable].start, places[variable].stop)
                row_index.append(np.tile(np.arange(row, row + factor.rows), variable.size))
                column_index.append(np.repeat(columns, factor.rows))
            row += factor.rows
        self._row, self._column = np.concatenate(row_index), np.concatenate(column_index)
        self._scale = self.columns[self._column] / self._row_units[self._row]
        self.entries, self.rhs = np.zeros(len(self._row)), np.zeros(row)
        # One where an unknown is a motion, and where a row is one of forces; zero elsewhere.
        self._moves = stacked(np.full(x.size, float(x.kind in MOTIONS)) for x in places)
        kinds = [np.full(factor.rows, float(factor.kind not in MOTION_ROWS)) for factor in graph.factors]
        self._of_force = stacked(kinds)
        self.fill(graph)

    def fill(self, graph: LinearGraph) -> None:
        """Take the numbers of a graph of this structure."""
        np.multiply(graph.entries, self._scale, out=self.entries)
        np.divide(graph.rhs, self._row_units, out=self.rhs)

    def missed(self, x: Floats) -> Missed:
        """What x misses of each row, beside the row's own terms."""
        rows, parts = len(self.rhs), self.entries * x.take(self._column)
        misfit = self.rhs - np.bincount(self._row, parts, rows)
        terms = np.abs(self.rhs)
        terms += np.bincount(self._row, np.abs(parts, out=parts), rows)
        terms += EPSILON * math.sqrt(x.dot(x)) + TINY
        return Missed(x, misfit, terms, *_largest_share(misfit, terms))

    def backward_error(self, missed: Missed, quiet: Quiet = QUIET, usual: float = 0.0) -> tuple[float, int]:
        """The backward error of an answer, and the row that has it; the largest motion is no less than a usual one."""
        sizes = np.abs(missed.x)
        size = missed.terms + quiet.motion * (sizes * self._moves).max(initial=usual)
        size += quiet.force * sizes.max(initial=0.0) * self._of_force
        return _largest_share(missed.misfit, size)


def _largest_share(misfit: Floats, size: Floats) -> tuple[float, int]:
    """The largest misfit relative to its size, and the row that has it."""
    if not len(misfit):
        return 0.0, 0
    relative = np.abs(misfit)
    relative /= size
    worst = int(relative.argmax())  # of nan too
    return float(relative[worst]), worst


def factor_of(graph: LinearGraph, row: int) -> Factor:
    """The factor that a row of a graph belongs to."""
    for factor in graph.factors:
        row -= factor.rows
        if row < 0:
            return factor
    raise AssertionError("the graph has fewer rows")
