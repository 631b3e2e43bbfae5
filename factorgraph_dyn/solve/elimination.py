"""Elimination through GTSAM: a linear graph and an ordering become a Bayes net.

    conditional of x:   R x + sum over parents p of S_p p = d

Square systems use unit noise and QR, which keeps full precision where Cholesky would square the
condition number. One elimination serves any number of right-hand sides: variables that are kept out
of the elimination appear only as parents, and ``BayesNet.respond`` back-substitutes for them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Any, NamedTuple

import gtsam
import numpy as np

from factorgraph_dyn.checks import check_kind
from factorgraph_dyn.equations import Factor, LinearGraph, Variable, check_graph
from factorgraph_dyn.errors import OrderingError, SingularSystemError
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.rows import Missed, Rows
from factorgraph_dyn.solve.scaling import NO_UNITS, GraphUnits
from factorgraph_dyn.solve.template import Mould, moulded
from factorgraph_dyn.spatial import Floats

METHODS = ("sequential", "multifrontal")
ROUNDING = 1e-12  # backward errors up to it are those of a good elimination
MOST_REFINEMENTS = 4
WORTHWHILE = 0.5  # a step of refinement leaves less than this of the backward error, or is the last
SPOILT = 10.0  # times the misfit after a step of refinement: the step was no good
Watch = Callable[[Variable, gtsam.GaussianFactorGraph], None]
Nearer = Callable[[gtsam.VectorValues, Floats], gtsam.VectorValues]  # from an answer and what it misses


@dataclass(frozen=True, eq=False)
class Conditional:
    """p(variable | parents): ``R @ variable + sum(S[p] @ p) = d``."""

    variable: Variable
    parents: tuple[Variable, ...]
    R: Floats
    S: Mapping[Variable, Floats]
    d: Floats

    def __str__(self) -> str:
        given = ", ".join(str(parent) for parent in self.parents)
        return f"{self.variable} | {given}" if given else str(self.variable)


@dataclass(frozen=True, eq=False)
class BayesNet:
    """What elimination leaves: one conditional for each variable, first eliminated first.

    Attributes:
        net: GTSAM's own Bayes net; key i is ``graph.variables[i]``.
        graph: The graph that was eliminated.
        factors: Its rows as GTSAM has them, to refine answers by; None where the net is in other units.
    """

    net: gtsam.GaussianBayesNet
    graph: LinearGraph
    factors: gtsam.GaussianFactorGraph | None = None

    def __len__(self) -> int:
        return int(self.net.size())

    def size(self) -> int:
        """Number of conditionals."""
        return len(self)

    def __iter__(self) -> Iterator[Conditional]:
        return iter(self.conditionals)

    def __str__(self) -> str:
        return "\n".join(str(conditional) for conditional in self.conditionals)

    @cached_property
    def conditionals(self) -> tuple[Conditional, ...]:
        """The conditionals as arrays, first eliminated first."""
        return tuple(self._conditional(self.net.at(i)) for i in range(len(self)))

    def conditional(self, name: str) -> Conditional:
        """The conditional of a variable by its printed name."""
        wanted = self.graph.variable(name)
        return next(conditional for conditional in self.conditionals if conditional.variable == wanted)

    def values(self) -> dict[Variable, Floats]:
        """All variables of a net that keeps none, after a step of refinement unless it would spoil them."""
        x = self.net.optimize()
        if self.factors is not None:
            nearer = _stepped(self.factors, self.net, x)
            x = nearer if self.factors.error(nearer) <= SPOILT**2 * self.factors.error(x) else x
        return {variable: x.at(key) for key, variable in enumerate(self.graph.variables)}

    def respond(self, given: Mapping[Variable, Floats], *, offset: bool = False) -> dict[Variable, Floats]:
        """All variables as the kept ones are given columns of values: one back-substitution.

        Args:
            given: Columns for kept variables, shape (size, m); those not named are zero.
            offset: Whether the right-hand sides d count; without them the answer is linear in ``given``.
        """
        columns = next((values.shape[1] for values in given.values()), 1)
        values = dict(given)
        for conditional in reversed(self.conditionals):
            rhs = np.zeros((conditional.variable.size, columns))
            if offset:
                rhs += conditional.d[:, None]
            for parent, block in conditional.S.items():
                if parent in values:
                    rhs -= block @ values[parent]
            values[conditional.variable] = np.asarray(np.linalg.solve(conditional.R, rhs), dtype=np.float64)
        return values

    def _conditional(self, conditional: gtsam.GaussianConditional) -> Conditional:
        variable, *parents = (self.graph.variables[key] for key in conditional.keys())  # noqa: SIM118
        S = conditional.S()
        blocks, start = {}, 0
        for parent in parents:
            blocks[parent] = S[:, start : start + parent.size]
            start += parent.size
        return Conditional(variable, tuple(parents), conditional.R(), blocks, conditional.d())


def to_gtsam(graph: LinearGraph) -> gtsam.GaussianFactorGraph:
    """The graph as GTSAM factors; key i is ``graph.variables[i]``."""
    check_graph(graph)
    keys = {variable: index for index, variable in enumerate(graph.variables)}
    converted = gtsam.GaussianFactorGraph()
    for factor in graph.factors:
        converted.push_back(_gtsam_factor(factor, keys))
    return converted


def gtsam_ordering(graph: LinearGraph, ordering: Ordering) -> gtsam.Ordering:
    """The ordering as GTSAM keys."""
    return _ordering_of_keys(graph.variables, ordering)


@lru_cache(maxsize=256)
def _ordering_of_keys(variables: tuple[Variable, ...], ordering: Ordering) -> gtsam.Ordering:
    keys = {str(variable): index for index, variable in enumerate(variables)}
    converted = gtsam.Ordering()
    for name in ordering.variables:
        converted.push_back(keys[name])
    return converted


def eliminate(graph: LinearGraph, ordering: Ordering, watch: Watch | None = None) -> BayesNet:
    """The Bayes net of a graph; variables that the ordering leaves out are kept as parents.

    GTSAM's own sequential elimination carries structure without rows along, which would give the rnea
    net parents that its recursion does not have; so its QR step is called variable by variable, and
    what has no rows left is dropped.

    Args:
        graph: The equations.
        ordering: Its variables, first eliminated first.
        watch: Called with each variable and the factors that hold it, just before it is eliminated.

    Raises:
        SingularSystemError: Some variable has too few equations; the caller knows best how to say why.
    """
    check_graph(graph)
    check_kind(ordering, Ordering, "The ordering", "an Ordering, such as fgd.choose_ordering(mechanism, graph, 'aba')")
    holding: list[list[_Held]] = [[] for _ in graph.variables]
    keys = {variable: index for index, variable in enumerate(graph.variables)}
    factors = gtsam.GaussianFactorGraph()
    for factor in graph.factors:
        made = _gtsam_factor(factor, keys)
        factors.push_back(made)
        _hold(made, holding)
    net = gtsam.GaussianBayesNet()
    for name in ordering.variables:
        key = keys[graph.variable(name)]
        gathered = gtsam.GaussianFactorGraph()
        for held in holding[key]:
            if not held.used:
                held.used = True
                gathered.push_back(held.factor)
        if watch is not None:
            watch(graph.variables[key], gathered)
        single = gtsam.Ordering()
        single.push_back(key)
        try:
            conditional, rest = gtsam.EliminateQR(gathered, single)
        except (RuntimeError, IndexError, ValueError) as error:
            raise singular(graph, ordering) from error
        net.push_back(conditional)
        if rest.rows():
            _hold(rest, holding)
    return BayesNet(net, graph, factors)


def measured(net: BayesNet, graph: LinearGraph, units: Mapping[Variable, Floats]) -> BayesNet:
    """A Bayes net over variables in given units as one over the variables of a graph: x = unit x'."""
    converted = gtsam.GaussianBayesNet()
    keys = {variable: index for index, variable in enumerate(graph.variables)}
    for conditional in net.conditionals:
        blocks = {conditional.variable: conditional.R, **conditional.S}
        terms: list[Any] = [(keys[x], block / units[x]) for x, block in blocks.items()]
        converted.push_back(gtsam.GaussianConditional(terms, 1, conditional.d, _unit_noise(len(conditional.d))))
    return BayesNet(converted, graph)


class _Held:
    """A factor that waits for the first of its variables to be eliminated."""

    __slots__ = ("factor", "used")

    def __init__(self, factor: gtsam.GaussianFactor) -> None:
        self.factor = factor
        self.used = False


def _hold(factor: gtsam.GaussianFactor, holding: list[list[_Held]]) -> None:
    held = _Held(factor)
    for key in factor.keys():  # noqa: SIM118 - GTSAM's factors are no mappings
        holding[key].append(held)


def check_method(method: str) -> None:
    """Raise an OrderingError unless there is such an elimination method."""
    if not isinstance(method, str) or method not in METHODS:
        raise OrderingError(f"There is no elimination method {method!r}. Methods: {', '.join(METHODS)}.")


class Solved(NamedTuple):
    """What solving a graph gives, before anybody has checked it.

    Attributes:
        values: Every variable.
        residual: The backward error: the largest misfit of a row, relative to the row's own terms.
        worst: That row.
        growth: How much back-substitution grows a right-hand side of ones, an estimate of 1 / least pivot;
            infinite where the method does not tell.
    """

    values: dict[Variable, Floats]
    residual: float
    worst: int
    growth: float


def solve_graph(
    graph: LinearGraph, ordering: Ordering, method: str = "sequential", units: GraphUnits = NO_UNITS
) -> Solved:
    """The values of all variables.

    Args:
        graph: A square or consistent overdetermined system.
        ordering: All its variables.
        method: "sequential" (one variable at a time) or "multifrontal" (clique by clique).
        units: Units in which the rows and variables are of order one, powers of two.

    Raises:
        SingularSystemError: Some variable has too few equations; the caller knows best how to say why.
    """
    check_method(method)
    mould, order = moulded(graph, units, to_gtsam), gtsam_ordering(graph, ordering)
    growth = np.inf
    try:
        if method == "sequential":
            net = mould.factors.eliminateSequential(order, gtsam.EliminateQR)
            growth = _largest(net.backSubstitute(_ones(graph.variables)).vector())
            refined = _refined(mould, order, net.optimize(), net)
        else:
            refined = _refined(mould, order, mould.factors.eliminateMultifrontal(order, gtsam.EliminateQR).optimize())
    except RuntimeError as error:
        raise singular(graph, ordering) from error
    stacked: Floats = refined.x * mould.rows.columns  # in the order of keys, which is that of the variables
    values = {variable: stacked[entries] for variable, entries in _places(graph.variables)}
    residual, worst = refined.share, refined.worst
    if not residual <= ROUNDING:
        residual, worst = mould.rows.backward_error(refined)
    return Solved(values, residual, worst, growth if math.isfinite(growth) else np.inf)


def _refined(
    mould: Mould, order: gtsam.Ordering, x: gtsam.VectorValues, net: gtsam.GaussianBayesNet | None = None
) -> Missed:
    """The answer after iterative refinement, and what it misses.

    QR mixes the right-hand sides of all rows that hold a variable, so that a joint's answer comes with the rounding of
    its fastest neighbour's. One step takes it out, and costs little where there is a Bayes net: by the semi-normal
    equations R^T R dx = A^T (b - A x). Where they converge no more (conditions above 1e8) rows are eliminated again.
    """
    if net is not None:
        found = improved(mould.rows, _stepped(mould.factors, net, x), lambda at, _: _stepped(mould.factors, net, at))
        if found.share <= ROUNDING:
            return found
    return improved(mould.rows, x, lambda at, misfit: at.add(_eliminated_again(mould, order, misfit)))


def improved(rows: Rows, x: gtsam.VectorValues, nearer: Nearer) -> Missed:
    """The answer after steps of refinement while they help, and what it misses."""
    best = rows.missed(x.vector())
    for _ in range(MOST_REFINEMENTS):
        if best.share <= ROUNDING or not math.isfinite(best.share):
            break
        try:
            x = nearer(x, best.misfit)
        except RuntimeError:
            break
        found = rows.missed(x.vector())
        if not found.share < WORTHWHILE * best.share:
            break
        best = found
    return best


def _stepped(
    factors: gtsam.GaussianFactorGraph, net: gtsam.GaussianBayesNet, x: gtsam.VectorValues
) -> gtsam.VectorValues:
    """An answer nearer to that of the rows, by their Bayes net and the gradient A^T (A x - b)."""
    return x.subtract(net.backSubstitute(net.backSubstituteTranspose(factors.gradient(x))))


def _eliminated_again(mould: Mould, order: gtsam.Ordering, misfit: Floats) -> gtsam.VectorValues:
    """The step that what rows miss asks for."""
    return mould.push(misfit).eliminateSequential(order, gtsam.EliminateQR).optimize()


def _largest(values: Floats) -> float:
    """The largest of sizes, nan where one is."""
    sizes = np.abs(values)
    return float(sizes[sizes.argmax()]) if len(sizes) else 0.0


@lru_cache(maxsize=64)
def _places(variables: tuple[Variable, ...]) -> tuple[tuple[Variable, slice], ...]:
    ends = np.cumsum([variable.size for variable in variables]).tolist()
    return tuple((variable, slice(end - variable.size, end)) for variable, end in zip(variables, ends, strict=True))


@lru_cache(maxsize=64)
def _ones(variables: tuple[Variable, ...]) -> gtsam.VectorValues:
    ones = gtsam.VectorValues()
    for key, variable in enumerate(variables):
        ones.insert(key, np.ones(variable.size))
    return ones


def singular(graph: LinearGraph, ordering: Ordering) -> SingularSystemError:
    """The error for a graph that cannot be solved, before anybody has looked for the cause."""
    return SingularSystemError(
        f"The equations do not determine all of the {graph.columns} unknowns.", graph=graph, ordering=ordering
    )


@cache
def _unit_noise(rows: int) -> gtsam.noiseModel.Unit:
    return gtsam.noiseModel.Unit.Create(rows)


def _gtsam_factor(factor: Factor, keys: Mapping[Variable, int]) -> gtsam.GaussianFactor:
    model = _unit_noise(factor.rows)
    terms: list[Any] = [(keys[variable], block) for variable, block in factor.blocks]
    if not terms:  # all of it is known, as of a coupling in inverse dynamics
        return gtsam.JacobianFactor(factor.rhs)
    if len(terms) <= 3:
        make: Any = gtsam.JacobianFactor
        jacobian: gtsam.JacobianFactor = make(*chain.from_iterable(terms), factor.rhs, model)
        return jacobian
    # GTSAM's Python constructor of JacobianFactor stops at three keys; a conditional is a factor of any number.
    return gtsam.GaussianConditional(terms, 1, factor.rhs, model)
