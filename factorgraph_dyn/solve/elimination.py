"""Elimination through GTSAM: a linear graph and an ordering become a Bayes net.

    conditional of x:   R x + sum over parents p of S_p p = d

Square systems use unit noise and QR, which keeps full precision where Cholesky would square the
condition number. Where that is small, answers come from Cholesky and two steps of refinement all the same, as exact and
faster. One elimination serves any number of right-hand sides: variables that are kept out
of the elimination appear only as parents, and ``BayesNet.respond`` back-substitutes for them.

GTSAM's nets come in the order of its elimination tree, and a variable whose equations are used up keeps parents of
zeros there, which would hide that the rnea ordering is a recursion. A ``BayesNet`` shows its conditionals in the order
of elimination, with the parents that the structure of the graph gives them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import NamedTuple

import gtsam
import numpy as np

from factorgraph_dyn.checks import check_kind
from factorgraph_dyn.equations import LinearGraph, Variable, check_graph
from factorgraph_dyn.errors import OrderingError, SingularSystemError
from factorgraph_dyn.ordering import Ordering, Structure, eliminate_structure
from factorgraph_dyn.solve.gtsam_factors import ordering_of_keys, unit_factors
from factorgraph_dyn.solve.rows import QUIET, Missed, Quiet, Rows
from factorgraph_dyn.solve.scaling import NO_UNITS, GraphUnits
from factorgraph_dyn.solve.template import FactorTemplate, filled_template
from factorgraph_dyn.spatial import Floats

METHODS = ("sequential", "multifrontal")
GOOD_FIT = 1e-12  # backward errors up to it are those of a good elimination
MOST_REFINEMENTS = 4
SQUARABLE = 1e4  # growth up to which Cholesky, whose errors it squares, is refined to rounding
ROUNDED = 1e-13  # backward errors up to it are those of a refined answer, by QR as well
WORTHWHILE = 0.5  # a step of refinement leaves less than this of the backward error, or is the last
_Found = tuple[Missed, float, gtsam.GaussianBayesNet | None]  # an answer, its net's growth, and the net
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
        net: GTSAM's own Bayes net, over variables in ``units``; key i is ``graph.variables[i]``.
        graph: The graph that was eliminated.
        ordering: The variables that were.
        units: Units of the net's variables; ``conditionals`` speak of the graph's.
    """

    net: gtsam.GaussianBayesNet
    graph: LinearGraph
    ordering: Ordering
    units: Mapping[Variable, Floats]

    def __repr__(self) -> str:
        return f"<BayesNet: {len(self)} conditionals, ordering {self.ordering.name!r}>"

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
        structure = _structure(_Skeleton(self.graph.skeleton, self.graph), self.ordering)
        made = {self.net.at(i).keys()[0]: self.net.at(i) for i in range(len(self))}
        keys = {variable: key for key, variable in enumerate(self.graph.variables)}
        pairs = zip(structure.variables, structure.parents, strict=True)
        return tuple(self._conditional(made[keys[variable]], parents) for variable, parents in pairs)

    def conditional(self, name: str) -> Conditional:
        """The conditional of a variable by its printed name."""
        wanted = self.graph.variable(name)
        return next(conditional for conditional in self.conditionals if conditional.variable == wanted)

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

    def _conditional(self, made: gtsam.GaussianConditional, parents: frozenset[Variable]) -> Conditional:
        variable, *held = (self.graph.variables[key] for key in made.keys())  # noqa: SIM118
        R, S, blocks, start = made.R(), made.S(), {}, 0
        for parent in held:
            if parent in parents:
                blocks[parent] = S[:, start : start + parent.size] / self.units[parent]
            start += parent.size
        return Conditional(variable, tuple(blocks), R / self.units[variable], blocks, made.d())


@dataclass(frozen=True)
class _Skeleton:
    """A graph that is equal to all others of its structure."""

    key: object
    graph: LinearGraph = field(compare=False)


@lru_cache(maxsize=64)
def _structure(of: _Skeleton, ordering: Ordering) -> Structure:
    return eliminate_structure(of.graph, map(of.graph.variable, ordering))


def eliminate(graph: LinearGraph, ordering: Ordering, units: GraphUnits = NO_UNITS) -> BayesNet:
    """The Bayes net of a graph; variables that the ordering leaves out are kept as parents.

    Args:
        graph: The equations.
        ordering: Its variables, first eliminated first.
        units: Units in which rows and variables are eliminated, powers of two; the net's variables are the graph's.

    Raises:
        InputError: Equations with noise, such as those of sensors.
        SingularSystemError: Some variable has too few equations; the caller knows best how to say why.

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> graph = fgd.dynamics_graph(fgd.evaluate_state(arm, [0.0], [0.0]), fgd.Known.forward(np.zeros(1)))
        >>> print(fgd.eliminate(graph, fgd.choose_ordering(arm, graph, "aba")))
        F[joint1] | A[link1]
        A[link1] | a[joint1]
        a[joint1]
    """
    check_graph(graph)
    check_kind(ordering, Ordering, "The ordering", "an Ordering, such as fgd.choose_ordering(mechanism, graph, 'aba')")
    check_kind(units, GraphUnits, "The units", "those of a mechanism's graphs, or leave them out")
    template, order = filled_template(graph, units, unit_factors), ordering_of_keys(graph.variables, ordering)
    try:
        net, _ = template.factors.eliminatePartialSequential(order, gtsam.EliminateQR)
    except (RuntimeError, IndexError, ValueError) as error:
        raise singular(graph, ordering) from error
    return BayesNet(net, graph, ordering, template.units)


def check_method(method: str) -> None:
    """Raise an OrderingError unless there is such an elimination method."""
    if not isinstance(method, str) or method not in METHODS:
        raise OrderingError(f"There is no elimination method {method!r}. Methods: {', '.join(METHODS)}.")


class SolvedGraph(NamedTuple):
    """What solving a graph gives, before anybody has checked it.

    Attributes:
        values: Every variable.
        residual: The backward error: the largest misfit of a row, relative to the row's own terms.
        worst: That row.
        growth: How much back-substitution grows a right-hand side of ones, an estimate of 1 / least pivot;
            infinite where the method does not tell.
        net: What was eliminated, in the units of solving; None where that was clique by clique.
    """

    values: dict[Variable, Floats]
    residual: float
    worst: int
    growth: float
    net: BayesNet | None


def solve_graph(
    graph: LinearGraph,
    ordering: Ordering,
    method: str = "sequential",
    units: GraphUnits = NO_UNITS,
    usual: float = 0.0,
    quiet: Quiet = QUIET,
) -> SolvedGraph:
    """The values of all variables.

    Args:
        graph: A square or consistent overdetermined system.
        ordering: All its variables.
        method: "sequential" (one variable at a time) or "multifrontal" (clique by clique).
        units: Units in which the rows and variables are of order one, powers of two.
        usual: Motion in these units beside which rounding is nothing, where nothing moves but by rounding.
        quiet: What rows in which nothing happens are measured by.

    Raises:
        SingularSystemError: Some variable has too few equations; the caller knows best how to say why.
    """
    check_method(method)
    template, order = filled_template(graph, units, unit_factors), ordering_of_keys(graph.variables, ordering)
    try:
        refined, growth, net = (_one_by_one if method == "sequential" else _by_cliques)(template, order)
    except RuntimeError as error:
        raise singular(graph, ordering) from error
    stacked: Floats = refined.x * template.rows.columns  # in the order of keys, which is that of the variables
    values = {variable: stacked[entries] for variable, entries in template.places}
    residual, worst = refined.share, refined.worst
    if not residual <= GOOD_FIT:
        residual, worst = template.rows.backward_error(refined, quiet, usual)
    kept = None if net is None else BayesNet(net, graph, ordering, template.units)
    return SolvedGraph(values, residual, worst, growth if math.isfinite(growth) else np.inf, kept)


def _one_by_one(template: FactorTemplate, order: gtsam.Ordering) -> _Found:
    """The answer by eliminating one variable at a time."""
    found = _from_squares(template, order)
    if found is None:
        net = template.factors.eliminateSequential(order, gtsam.EliminateQR)
        found = _refined(template, order, net.optimize(), net), _growth(template, net), net
    return found


def _by_cliques(template: FactorTemplate, order: gtsam.Ordering) -> _Found:
    """The answer by eliminating one clique at a time."""
    tree = template.factors.eliminateMultifrontal(order, gtsam.EliminateQR)
    return _refined(template, order, tree.optimize()), np.inf, None


def _from_squares(template: FactorTemplate, order: gtsam.Ordering) -> _Found | None:
    """The answer by Cholesky, one variable at a time, and two refinements; None where it is not as good as by QR."""
    factors = template.factors
    try:
        net = factors.eliminateSequential(order)
        growth = _growth(template, net)
        if not growth <= SQUARABLE:
            return None
        x = _stepped(factors, net, _stepped(factors, net, net.optimize()))
    except RuntimeError:
        return None
    found = template.rows.missed(x.vector())
    return (found, growth, net) if found.share <= ROUNDED else None


def _growth(template: FactorTemplate, net: gtsam.GaussianBayesNet) -> float:
    """How much back-substitution grows a right-hand side of ones."""
    return _largest(net.backSubstitute(template.ones).vector())


def _refined(
    template: FactorTemplate, order: gtsam.Ordering, x: gtsam.VectorValues, net: gtsam.GaussianBayesNet | None = None
) -> Missed:
    """The answer after iterative refinement, and what it misses.

    QR mixes the right-hand sides of all rows that hold a variable, so that a joint's answer comes with the rounding of
    its fastest neighbour's. One step takes it out, and costs little where there is a Bayes net: by the semi-normal
    equations R^T R dx = A^T (b - A x). Where they converge no more (conditions above 1e8) rows are eliminated again.
    """
    if net is not None:
        factors = template.factors
        found = improved(template.rows, _stepped(factors, net, x), lambda at, _: _stepped(factors, net, at))
        if found.share <= GOOD_FIT:
            return found
    return improved(template.rows, x, lambda at, misfit: at.add(_eliminated_again(template, order, misfit)))


def improved(rows: Rows, x: gtsam.VectorValues, nearer: Nearer) -> Missed:
    """The answer after steps of refinement while they help, and what it misses."""
    best = rows.missed(x.vector())
    for _ in range(MOST_REFINEMENTS):
        if best.share <= GOOD_FIT or not math.isfinite(best.share):
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


def _eliminated_again(template: FactorTemplate, order: gtsam.Ordering, misfit: Floats) -> gtsam.VectorValues:
    """The step that what rows miss asks for."""
    return template.push(misfit).eliminateSequential(order, gtsam.EliminateQR).optimize()


def _largest(values: Floats) -> float:
    """The largest of sizes, nan where one is."""
    sizes = np.abs(values)
    return float(sizes[sizes.argmax()]) if len(sizes) else 0.0


def singular(graph: LinearGraph, ordering: Ordering) -> SingularSystemError:
    """The error for a graph that cannot be solved, before anybody has looked for the cause."""
    return SingularSystemError(
        f"The equations do not determine all of the {graph.columns} unknowns.", graph=graph, ordering=ordering
    )
