"""Graphs whose numbers are put in place at once.

The equations are asked once a structure, with scalars that remember where their numbers stand in a vector w. What they
answer are sums of products of at most two of them,

    entry = sum of  coefficient  w_i  w_j          w_0 = 1

which is all that is left to do at each state: no equation is written a second time. The factors of such a graph are
cut out of its entries when somebody looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from functools import cached_property
from typing import Any

import numpy as np

from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph, Value, Variable
from factorgraph_dyn.spatial import Array, Floats

ONE = np.ones(1)
_CONSTANT = (0, 0)


class Placed:
    """A sum of coefficients times products of two numbers of w; inside NumPy object arrays it behaves like a number."""

    __slots__ = ("terms",)

    def __init__(self, terms: Mapping[tuple[int, int], float]) -> None:
        self.terms = terms

    def __add__(self, other: Any) -> Any:
        terms = dict(self.terms)
        for places, coefficient in _terms(other).items():
            terms[places] = terms.get(places, 0.0) + coefficient
        return Placed(terms)

    __radd__ = __add__

    def __neg__(self) -> Placed:
        return Placed({places: -coefficient for places, coefficient in self.terms.items()})

    def __sub__(self, other: Any) -> Any:
        return self + -other

    def __rsub__(self, other: Any) -> Any:
        return -self + other

    def __mul__(self, other: Any) -> Any:
        if not isinstance(other, Placed):
            return Placed({places: other * here for places, here in self.terms.items()}) if other else 0.0
        product: Any = Placed({})
        for (i, none), here in self.terms.items():
            for (j, nothing), there in other.terms.items():
                if none or nothing:
                    raise TypeError("a product of more than two numbers of w")
                product = product + Placed({(i, j): here * there})
        return product

    __rmul__ = __mul__


def _terms(value: Any) -> Mapping[tuple[int, int], float]:
    return value.terms if isinstance(value, Placed) else {_CONSTANT: float(value)} if value else {}


class Places:
    """Hands out the places of w, one after the other."""

    def __init__(self) -> None:
        self._next = 1

    def array(self, *shape: int) -> Array:
        """Scalars that stand for the next numbers of w."""
        scalars = np.empty(math.prod(shape), dtype=object)
        scalars[:] = [Placed({(k, 0): 1.0}) for k in range(self._next, self._next + scalars.size)]
        self._next += scalars.size
        return scalars.reshape(shape)


class _Recipe:
    """How numbers come from w."""

    def __init__(self, scalars: Iterable[Any]) -> None:
        listed = [_terms(scalar) or {_CONSTANT: 0.0} for scalar in scalars]
        self._size = len(listed)
        self._row = np.repeat(np.arange(len(listed)), [len(terms) for terms in listed])
        places = np.array([pair for terms in listed for pair in terms], dtype=int).reshape(-1, 2)
        self._first, self._second = places.T.copy()
        self._coefficients = np.array([c for terms in listed for c in terms.values()], dtype=np.float64)
        self._is_linear, self._is_sum = not self._second.any(), len(self._row) > len(listed)

    def at(self, w: Floats) -> Floats:
        numbers = w.take(self._first)
        numbers *= self._coefficients
        if not self._is_linear:
            numbers *= w.take(self._second)
        return np.asarray(np.bincount(self._row, numbers, self._size)) if self._is_sum else numbers


class Plan:
    """Graphs of one structure, from a graph whose numbers are ``Placed``."""

    def __init__(self, graph: LinearGraph) -> None:
        self.variables, self.factors, self.mechanism = graph.variables, graph.factors, graph.mechanism
        self._entries = _Recipe(entry for f in graph.factors for _, block in f.blocks for entry in block.T.flat)
        self._rhs = _Recipe(entry for factor in graph.factors for entry in factor.rhs)

    def graph(self, w: Floats, known: Callable[[], Mapping[Variable, Value]]) -> PlacedGraph:
        """The graph of the numbers w."""
        return PlacedGraph(self, self._entries.at(w), self._rhs.at(w), known)


class PlacedGraph(LinearGraph):
    """A graph that has its numbers in flat arrays and makes factors of them when asked."""

    def __init__(self, plan: Plan, entries: Floats, rhs: Floats, known: Callable[[], Mapping[Variable, Value]]) -> None:
        vars(self).update(variables=plan.variables, mechanism=plan.mechanism, skeleton=plan)
        vars(self).update(entries=entries, rhs=rhs, _plan=plan, _known=known)

    @cached_property
    def known(self) -> Mapping[Variable, Value]:
        """What was substituted."""
        known: Mapping[Variable, Value] = vars(self)["_known"]()
        return known

    @cached_property
    def factors(self) -> tuple[Factor, ...]:
        """The equations."""
        made, entry, row = [], 0, 0
        for factor in vars(self)["_plan"].factors:
            blocks = []
            for variable, block in factor.blocks:
                numbers = self.entries[entry : entry + block.size]
                blocks.append((variable, numbers.reshape(block.shape[::-1]).T))
                entry += block.size
            made.append(Factor(factor.kind, factor.owner, tuple(blocks), self.rhs[row : row + factor.rows]))
            row += factor.rows
        return tuple(made)
