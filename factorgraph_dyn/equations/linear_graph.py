"""A linear graph: named variables, and factors that are block rows of one linear system.

    sum over variables x of a factor:  block_x x = rhs

Entries are floats or symbols; nothing here looks at them. Known values are substituted before a
factor enters the graph, so every variable of a graph is an unknown.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_kind, check_parts
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Array, stacked

if TYPE_CHECKING:
    import networkx as nx  # imported where it is used: it takes a third of a second

    from factorgraph_dyn.equations.sensors.noise import Noise


class Variable(NamedTuple):
    """A vector unknown, such as ``A[forearm]``.

    Attributes:
        kind: A link acceleration, F joint wrench, a joint acceleration, tau joint torque,
            lambda coupling force, V link twist.
        owner: Name of the link, joint, loop or coupling it belongs to.
        size: Number of its entries that are unknown.

    Examples:
        >>> str(fgd.Variable("A", "forearm", 6))
        'A[forearm]'
    """

    kind: str
    owner: str
    size: int

    def __str__(self) -> str:
        return f"{self.kind}[{self.owner}]"


class Value(NamedTuple):
    """What is known of a variable: all of it, or the entries where ``mask`` is true."""

    entries: Array
    mask: npt.NDArray[np.bool_] | None = None


class Factor(NamedTuple):
    """One equation: the sum of ``block @ variable`` over its blocks equals ``rhs``.

    Attributes:
        kind: velocity, acceleration, wrench, torque, coupling, or an objective's name.
        owner: Name of the link, joint, loop or coupling it is about.
        blocks: Pairs of a variable and its matrix, shape (rows, variable.size).
        rhs: shape (rows,).
        noise: That of the rows, as of a sensor's readings; None where the equation is exact.

    Examples:
        >>> wish = fgd.Factor("wish", "elbow", ((fgd.Variable("tau", "elbow", 1), np.eye(1)),), np.zeros(1))
        >>> str(wish)
        'wish[elbow]'
    """

    kind: str
    owner: str
    blocks: tuple[tuple[Variable, Array], ...]
    rhs: Array
    noise: Noise | None = None

    @property
    def rows(self) -> int:
        """Number of scalar equations."""
        return len(self.rhs)

    def __str__(self) -> str:
        return f"{self.kind}[{self.owner}]"

    def substitute(self, known: Mapping[Variable, Value]) -> Factor:
        """The same equation with known values moved to the right-hand side."""
        blocks, rhs = [], self.rhs
        for term in self.blocks:
            variable, block = term
            value = known.get(variable)
            if value is None:
                blocks.append(term)
            elif value.mask is None:
                rhs = rhs - block @ value.entries
            else:
                rhs = rhs - block[:, value.mask] @ value.entries[value.mask]
                unknown = Variable(variable.kind, variable.owner, int((~value.mask).sum()))
                blocks.append((unknown, block[:, ~value.mask]))
        return Factor(self.kind, self.owner, tuple(blocks), rhs, self.noise)


@dataclass(frozen=True, eq=False)
class LinearGraph:
    """Factors over unknown variables.

    Attributes:
        variables: The unknowns, in their natural order.
        factors: The equations.
        known: What was substituted, for pictures and for reading full answers.
        mechanism: Whose equations they are, where they are one's; it has the units in which rows can be compared.

    Examples:
        >>> state = fgd.evaluate_state(fgd.robots.pendulum(1), [0.0], [0.0])
        >>> A, b = fgd.dynamics_graph(state, fgd.Known.forward(np.zeros(1))).dense()
        >>> A.shape, b.shape
        ((13, 13), (13,))
    """

    variables: tuple[Variable, ...]
    factors: tuple[Factor, ...]
    known: Mapping[Variable, Value] = field(default_factory=dict)
    mechanism: Mechanism | None = None

    def __repr__(self) -> str:
        return (
            f"<LinearGraph: {len(self.variables)} variables with {self.columns} entries, "
            f"{len(self.factors)} factors with {self.rows} rows>"
        )

    @property
    def rows(self) -> int:
        """Number of scalar equations."""
        return sum(factor.rows for factor in self.factors)

    @property
    def columns(self) -> int:
        """Number of scalar unknowns."""
        return sum(variable.size for variable in self.variables)

    @cached_property
    def entries(self) -> Array:
        """All blocks, each column after column, factor after factor."""
        return stacked(block.T.ravel() for factor in self.factors for _, block in factor.blocks)

    @cached_property
    def rhs(self) -> Array:
        """All right-hand sides, factor after factor."""
        return stacked(factor.rhs for factor in self.factors)

    @cached_property
    def skeleton(self) -> Hashable:
        """What graphs of one structure have in common: variables, rows of factors and their variables, masks."""
        # Rows count: a block of one row would be spread over a template of several without a word. Masks count: they
        # say which units an unknown that is known in part has.
        masks = tuple([(x, value.mask.tobytes()) for x, value in self.known.items() if value.mask is not None])
        factors = tuple([(len(f.rhs), f.noise is None, *[x for x, _ in f.blocks]) for f in self.factors])
        return self.variables, factors, masks

    @cached_property
    def by_name(self) -> Mapping[str, Variable]:
        """Every variable by its printed name."""
        return {str(variable): variable for variable in self.variables}

    @cached_property
    def column_slices(self) -> Mapping[Variable, slice]:
        """Where each variable lies in the stacked vector of unknowns."""
        slices, start = {}, 0
        for variable in self.variables:
            slices[variable] = slice(start, start + variable.size)
            start += variable.size
        return slices

    def variable(self, name: str) -> Variable:
        """The variable of a printed name such as ``a[elbow]``; an InputError lists the names."""
        if not isinstance(name, str) or name not in self.by_name:
            check_name(name, self.by_name, "variable", "the graph", InputError)
        return self.by_name[name]

    def with_factors(self, factors: Iterable[Factor]) -> LinearGraph:
        """The graph with further equations, such as those of sensors; their variables join it, unless they are known.

        Args:
            factors: The equations, ``sensor.factor(state)`` for instance.
        """
        further = check_parts(factors, Factor, "factors", "equations, such as sensor.factor(state)", InputError)
        added = tuple(factor.substitute(self.known) for factor in further)
        variables = dict.fromkeys((*self.variables, *(variable for factor in added for variable, _ in factor.blocks)))
        return LinearGraph(tuple(variables), (*self.factors, *added), self.known, self.mechanism)

    def to_networkx(self) -> nx.Graph:
        """The factor graph for graph algorithms: variables (bipartite=0) joined to factors (bipartite=1) by name."""
        import networkx as nx

        graph = nx.Graph()
        graph.add_nodes_from((str(variable) for variable in self.variables), bipartite=0)
        for factor in self.factors:
            graph.add_node(str(factor), bipartite=1)
            graph.add_edges_from((str(factor), str(variable)) for variable, _ in factor.blocks)
        return graph

    def dense(self) -> tuple[Array, Array]:
        """The stacked system (A, b) with A x = b, columns in the order of ``variables``."""
        dtype = np.result_type(
            np.float64, *(f.rhs for f in self.factors), *(b for f in self.factors for _, b in f.blocks)
        )
        A = np.zeros((self.rows, self.columns), dtype=dtype)
        b = np.zeros(self.rows, dtype=dtype)
        row = 0
        for factor in self.factors:
            rows = slice(row, row + factor.rows)
            for variable, block in factor.blocks:
                A[rows, self.column_slices[variable]] += block
            b[rows] = factor.rhs
            row += factor.rows
        return A, b


def check_graph(value: object) -> LinearGraph:
    """The value, if it is a graph."""
    return check_kind(value, LinearGraph, "The graph", "a LinearGraph, such as fgd.dynamics_graph(state, known)")


def make_graph(factors: Iterable[Factor], known: Mapping[Variable, Value], mechanism: Mechanism) -> LinearGraph:
    """The graph of a mechanism's full factors after substitution of what is known."""
    reduced = tuple(factor.substitute(known) for factor in factors)
    variables = dict.fromkeys(variable for factor in reduced for variable, _ in factor.blocks)
    return LinearGraph(tuple(variables), reduced, known, mechanism)
