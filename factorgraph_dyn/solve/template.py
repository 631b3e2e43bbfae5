"""GTSAM factors that are made once a structure and filled with new numbers once a state.

Making GTSAM's factors costs as much as most of the elimination; writing into them costs little, because GTSAM gives
views of its own memory. Elimination copies what it needs, so the factors are free again when it returns. Each thread
has templates of its own.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import gtsam
import numpy as np

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.solve.rows import Rows
from factorgraph_dyn.solve.scaling import GraphUnits, variable_units
from factorgraph_dyn.spatial import Floats

MOST_TEMPLATES = 32  # kept in each thread, the least used thrown away first

Make = Callable[[LinearGraph], gtsam.GaussianFactorGraph]


class FactorTemplate:
    """GTSAM factors of one structure in given units, with views of their entries.

    Attributes:
        factors: The factors; key i is that of the graph's variable i.
        units: The units of the variables' entries.
        rows: The same equations as flat arrays.
        places: Where each variable lies in a vector of all.
        ones: One for every unknown.
    """

    def __init__(self, graph: LinearGraph, units: GraphUnits, factors: gtsam.GaussianFactorGraph) -> None:
        self.factors = factors
        self.units = variable_units(graph, units)
        self.rows = Rows(graph, units)
        self.places = tuple(graph.column_slices.items())
        self.ones = gtsam.VectorValues()
        for key, variable in enumerate(graph.variables):
            self.ones.insert(key, np.ones(variable.size))
        self._kept: list[Any] = [factors.at(index) for index in range(factors.size())]  # the views live in them
        entries: list[tuple[Floats, Floats]] = []  # where the entries of each factor go, and come from
        self._rhs: list[tuple[Floats, Floats]] = []
        self._places_of_rows: list[slice] = []
        entry, ends = 0, np.cumsum([factor.rows for factor in graph.factors]).tolist()
        held = [end for factor, end in zip(graph.factors, ends, strict=True) if factor.blocks]
        for made, end in zip(self._kept, held, strict=True):
            A, b = made.getA().T, made.getb()
            entries.append((A, self.rows.entries[entry : entry + A.size].reshape(A.shape)))
            self._rhs.append((b, self.rows.rhs[end - b.size : end]))
            entry += A.size
            self._places_of_rows.append(slice(end - b.size, end))
        self._everything = [*entries, *self._rhs]
        self._write()

    def fill(self, graph: LinearGraph) -> None:
        """Take the numbers of a graph of this structure."""
        self.rows.fill(graph)
        self._write()

    def push(self, rhs: Floats) -> gtsam.GaussianFactorGraph:
        """The factors with other right-hand sides; ``rows`` keeps its own."""
        for (b, _), rows in zip(self._rhs, self._places_of_rows, strict=True):
            b[...] = rhs[rows]
        return self.factors

    def _write(self) -> None:
        for there, here in self._everything:
            there[...] = here


class _Templates(threading.local):
    def __init__(self) -> None:
        self.by_structure: OrderedDict[object, FactorTemplate] = OrderedDict()


_TEMPLATES = _Templates()


def filled_template(graph: LinearGraph, units: GraphUnits, make: Make) -> FactorTemplate:
    """The graph in given units as GTSAM factors, good until this thread asks for the next; ``make`` makes new ones."""
    structure = (units, graph.skeleton)
    templates = _TEMPLATES.by_structure
    template = templates.get(structure)
    if template is None:
        # GTSAM does not eliminate equations of which all is known, as of a coupling in inverse dynamics.
        unknown = LinearGraph(graph.variables, tuple(factor for factor in graph.factors if factor.blocks))
        template = templates[structure] = FactorTemplate(graph, units, make(unknown))
        if len(templates) > MOST_TEMPLATES:
            templates.popitem(last=False)
        return template
    templates.move_to_end(structure)
    template.fill(graph)
    return template
