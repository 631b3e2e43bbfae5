"""GTSAM factors that are made once a structure and filled with new numbers once a state.

Making GTSAM's factors costs as much as most of the elimination; writing into them costs little, because GTSAM gives
views of its own memory. Elimination copies what it needs, so the factors are free again when it returns. Each thread
has moulds of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gtsam

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.solve.rows import Rows
from factorgraph_dyn.solve.scaling import GraphUnits
from factorgraph_dyn.spatial import Floats

MOST_MOULDS = 32  # kept in each thread, the least used thrown away first

Make = Callable[[LinearGraph], gtsam.GaussianFactorGraph]


class Mould:
    """GTSAM factors of one structure in given units, with views of their entries."""

    def __init__(self, graph: LinearGraph, units: GraphUnits, factors: gtsam.GaussianFactorGraph) -> None:
        self.factors = factors
        self.rows = Rows(graph, units)
        self._kept: list[Any] = [factors.at(index) for index in range(factors.size())]  # the views live in them
        entries: list[tuple[Floats, Floats]] = []  # where the entries of each factor go, and come from
        self._rhs: list[tuple[Floats, Floats]] = []
        entry = row = 0
        for made in self._kept:
            A, b = made.getA().T, made.getb()
            entries.append((A, self.rows.entries[entry : entry + A.size].reshape(A.shape)))
            self._rhs.append((b, self.rows.rhs[row : row + b.size]))
            entry, row = entry + A.size, row + b.size
        self._everything = [*entries, *self._rhs]
        self._pour()

    def fill(self, graph: LinearGraph) -> None:
        """Take the numbers of a graph of this structure."""
        self.rows.fill(graph)
        self._pour()

    def push(self, rhs: Floats) -> gtsam.GaussianFactorGraph:
        """The factors with other right-hand sides; ``rows`` keeps its own."""
        start = 0
        for b, _ in self._rhs:
            b[...] = rhs[start : start + b.size]
            start += b.size
        return self.factors

    def _pour(self) -> None:
        for there, here in self._everything:
            there[...] = here


class _Moulds(threading.local):
    def __init__(self) -> None:
        self.by_structure: OrderedDict[object, Mould] = OrderedDict()


_MOULDS = _Moulds()


def moulded(graph: LinearGraph, units: GraphUnits, make: Make) -> Mould:
    """The graph in given units as GTSAM factors, good until this thread asks for the next; ``make`` makes new ones."""
    # Rows count: a block of one row would be spread over a mould of several without a word. So do masks: they say
    # which units an unknown that is known in part has.
    structure = (
        units,
        graph.variables,
        tuple([(len(f.rhs), *[x for x, _ in f.blocks]) for f in graph.factors]),
        tuple([(x, value.mask.tobytes()) for x, value in graph.known.items() if value.mask is not None]),
    )
    moulds = _MOULDS.by_structure
    mould = moulds.get(structure)
    if mould is None:
        mould = moulds[structure] = Mould(graph, units, make(graph))
        if len(moulds) > MOST_MOULDS:
            moulds.popitem(last=False)
        return mould
    moulds.move_to_end(structure)
    mould.fill(graph)
    return mould
