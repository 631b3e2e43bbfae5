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
from factorgraph_dyn.spatial import Floats

MOST_MOULDS = 32  # kept in each thread, the least used thrown away first

Make = Callable[[LinearGraph], gtsam.GaussianFactorGraph]


class Mould:
    """GTSAM factors of one structure, with views of their entries."""

    def __init__(self, graph: LinearGraph, factors: gtsam.GaussianFactorGraph) -> None:
        self.factors = factors
        self._kept: list[Any] = [factors.at(index) for index in range(factors.size())]  # the views live in them
        self._entries: list[Floats] = []  # in the order of each factor's blocks, then its right-hand side
        for factor, made in zip(graph.factors, self._kept, strict=True):
            A, start = made.getA(), 0
            for variable, _ in factor.blocks:
                self._entries.append(A[:, start : start + variable.size])
                start += variable.size
            self._entries.append(made.getb())

    def fill(self, graph: LinearGraph) -> gtsam.GaussianFactorGraph:
        """The factors with the numbers of a graph of this structure."""
        entries = iter(self._entries)
        for factor in graph.factors:
            for _, block in factor.blocks:
                next(entries)[...] = block
            next(entries)[...] = factor.rhs
        return self.factors


class _Moulds(threading.local):
    def __init__(self) -> None:
        self.by_structure: OrderedDict[object, Mould] = OrderedDict()


_MOULDS = _Moulds()


def moulded(graph: LinearGraph, make: Make) -> gtsam.GaussianFactorGraph:
    """The graph as GTSAM factors, good until this thread asks for the next; ``make`` makes new ones."""
    # Rows count: a block of one row would be spread over a mould of several without a word.
    structure = (graph.variables, tuple([(len(f.rhs), *[x for x, _ in f.blocks]) for f in graph.factors]))
    moulds = _MOULDS.by_structure
    mould = moulds.get(structure)
    if mould is None:
        mould = moulds[structure] = Mould(graph, make(graph))
        if len(moulds) > MOST_MOULDS:
            moulds.popitem(last=False)
        return mould.factors
    moulds.move_to_end(structure)
    return mould.fill(graph)
