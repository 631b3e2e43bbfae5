"""Three layers of equations in one elimination: physics exact, objectives best, ties least.

    physics      A x = b              hard; rows may repeat each other, columns may be undetermined
    objectives   B x ~ c              as well as the physics lets them
    ties         W x ~ 0              what is still free: internal wrenches of least norm

One QR elimination of all rows, softer layers with small weights e1, e2, gives R with

    R^T R = H = A^T A + e1^2 B^T B + e2^2 W^T W

and its answer is off by the weights. Steps with the same R take the weights out again. Objectives
come first, by the proximal method of multipliers,

    x += H^-1 ( A^T (b - A x + s) + e1^2 B^T (c - B x) ),     s += b - A x,

then the physics, by conjugate gradients on |b - A x|^2 with H as the preconditioner, which changes x
only where the physics asks for it. A few steps reach rounding, also where the physics is badly
conditioned (a chain of hundreds of loops). No rank is decided anywhere; a redundant row is only
satisfied twice. The norm of a misfit is that of the fastest joint's rows: plain steps, judged row by row, come last.
Rows and variables come in units of the mechanism (``scaling``), so that weights mean the same for a
watch and for a crane. The work is linear in the graph: one elimination once a state, two
back-substitutions for every correction.

Sources: Van Loan, On the method of weighting for equality-constrained least-squares problems (1985);
Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm (1976).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property

import gtsam
import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.elimination import BayesNet, eliminate, improved, singular
from factorgraph_dyn.solve.gtsam_factors import unit_factors
from factorgraph_dyn.solve.rows import Rows
from factorgraph_dyn.solve.scaling import NO_UNITS
from factorgraph_dyn.spatial import Floats

TIE_WEIGHT = 1e-5  # e2 without objectives
LARGE_GRAPH = 300  # variables above which physics is ill-conditioned enough to want a smaller e2
TIE_WEIGHT_OF_LARGE_GRAPHS = 1e-7
OBJECTIVE_WEIGHT = 1e-3  # e1
TIE_WEIGHT_BELOW_OBJECTIVES = 1e-6  # e2 with objectives
MAX_OBJECTIVE_STEPS = 30
MAX_PHYSICS_STEPS = 60
SMALLEST_PROGRESS = 0.5  # a step that leaves more than this of the misfit makes no progress
PATIENCE = 3  # steps without progress that end the conjugate gradients
LEAST_MISFIT = 1e-16  # misfit that ends them, relative to the right-hand sides: when no step helps any more
LEAST_NULL_MISFIT = 1e-13  # the same for probes of the null space, which have no right-hand sides
FORCES = ("F", "lambda")  # kinds of variables that ties hold

Values = dict[Variable, Floats]


def with_ties(
    graph: LinearGraph, objectives: Iterable[Factor], tied: Mapping[Variable, Floats], share: float = 1.0
) -> LinearGraph:
    """All rows of the three layers in one graph, weighted.

    Args:
        graph: The physics, in units that suit it.
        objectives: Soft rows over variables of the graph.
        tied: Variables pulled towards zero, and how strongly each of their entries is, of order one.
        share: Of the usual weight of these ties.
    """
    soft = [weighted(factor, OBJECTIVE_WEIGHT) for factor in objectives]
    weight = share * tie_weight(graph, bool(soft))
    ties = [
        Factor("tie", variable.owner, ((variable, weight * np.diag(pull)),), np.zeros(variable.size))
        for variable, pull in tied.items()
    ]
    return LinearGraph(graph.variables, (*graph.factors, *soft, *ties), graph.known)


def tie_weight(graph: LinearGraph, has_objectives: bool) -> float:
    """The weight e2 of the ties."""
    if has_objectives:
        return TIE_WEIGHT_BELOW_OBJECTIVES
    return TIE_WEIGHT if len(graph.variables) <= LARGE_GRAPH else TIE_WEIGHT_OF_LARGE_GRAPHS


def weighted(factor: Factor, weight: float) -> Factor:
    """The same equation times a weight."""
    blocks = tuple((variable, weight * block) for variable, block in factor.blocks)
    return Factor(factor.kind, factor.owner, blocks, weight * factor.rhs)


class LayeredSystem:
    """One elimination of physics, objectives and ties, and what can be asked of it.

    Args:
        graph: The physics.
        stacked: All layers, from ``with_ties``.
        objectives: The soft rows, not weighted.
        ordering: Of the stacked graph's variables.

    Raises:
        SingularSystemError: Some variable is in no layer's reach.
    """

    def __init__(
        self, graph: LinearGraph, stacked: LinearGraph, objectives: Sequence[Factor], ordering: Ordering
    ) -> None:
        self.graph, self.stacked, self.ordering = graph, stacked, ordering
        self.net: BayesNet = eliminate(stacked, ordering)
        self._physics = unit_factors(graph)
        self._has_objectives = bool(objectives)
        soft = tuple(weighted(factor, OBJECTIVE_WEIGHT) for factor in objectives)
        self._objective_rows = LinearGraph(graph.variables, soft)
        self._objectives = unit_factors(self._objective_rows)

    def solve(self) -> Values:
        """Every variable: physics to rounding, objectives at their best, ties at their least."""
        try:
            x = self.net.net.optimize()
        except RuntimeError as error:
            raise singular(self.graph, self.ordering) from error
        floor = self._floor(self._physics)
        if self._has_objectives:
            x = self._towards_objectives(x, self._physics, self._objectives)
        else:
            # Rounding along free directions is large, as their ties are light: one more step takes it out.
            x = self._onto_physics(x, self._physics, self._physics_only, floor)
            x = x.subtract(self._step(self._ties.gradient(x)))
        return self._polished(self._onto_physics(x, self._physics, self._physics_only, floor))

    def solve_shifted(self, physics: LinearGraph) -> Values:
        """Every variable for other right-hand sides of the same physics and no objectives' targets."""
        shifted = unit_factors(physics)
        silent = unit_factors(self._silent(self._objective_rows.factors))
        x = self._zero()
        if self._has_objectives:
            x = self._towards_objectives(x, shifted, silent)
        return self._values(self._onto_physics(x, shifted, self._physics_only, self._floor(shifted)))

    def probe(self, rng: np.random.Generator) -> tuple[Values, float]:
        """A random direction that neither physics nor objectives feel, and how they grow misfits.

        R^-1 makes random numbers large along directions that the rows hardly feel. Projected onto the
        null space that is a random null direction, of unit size where ties hold it, whose determined
        entries are zero up to rounding; what is left estimates 1 / least singular value.
        """
        random = gtsam.VectorValues()
        for key, variable in enumerate(self.graph.variables):
            random.insert(key, rng.normal(size=variable.size))
        weight = tie_weight(self.graph, self._has_objectives)
        try:
            y = self.net.net.backSubstitute(random).scale(weight)
        except RuntimeError as error:
            raise singular(self.graph, self.ordering) from error
        everything = self._homogeneous_graph
        n = self._onto_physics(y, everything, everything, LEAST_NULL_MISFIT)
        felt = float(np.abs(y.subtract(n).vector()).max(initial=0.0))
        return self._values(n), felt / weight

    # ---- parts

    def _towards_objectives(
        self, x: gtsam.VectorValues, physics: gtsam.GaussianFactorGraph, objectives: gtsam.GaussianFactorGraph
    ) -> gtsam.VectorValues:
        """The proximal method of multipliers, until its steps shrink no more."""
        multipliers, last = self._zero(), np.inf
        for count in range(MAX_OBJECTIVE_STEPS):
            pull = physics.gradient(x).scale(-1.0)  # A^T (b - A x)
            multipliers = multipliers.add(pull)
            step = self._step(pull.add(multipliers).subtract(objectives.gradient(x)))
            size = float(step.norm())
            if size == 0.0 or not np.isfinite(size) or (count > 3 and size > SMALLEST_PROGRESS * last):
                break
            x, last = x.add(step), size
        return x

    def _onto_physics(
        self,
        x: gtsam.VectorValues,
        physics: gtsam.GaussianFactorGraph,
        homogeneous: gtsam.GaussianFactorGraph,
        floor: float,
    ) -> gtsam.VectorValues:
        """Conjugate gradients on the misfit of the physics, preconditioned by H, from x.

        Args:
            x: Where to start.
            physics: The rows to satisfy.
            homogeneous: The same without right-hand sides.
            floor: Misfit that is good enough.
        """
        best, best_misfit, waited = x, float(physics.error(x)) ** 0.5, 0
        direction, previous, decrease = None, x, 1.0
        for _ in range(MAX_PHYSICS_STEPS):
            if best_misfit <= floor or waited >= PATIENCE:
                break
            pull = physics.gradient(x).scale(-1.0)
            step = self._step(pull)
            if direction is None:
                direction = step
            else:
                turn = (step.dot(pull) - step.dot(previous)) / decrease
                direction = step.add(direction.scale(max(turn, 0.0)))
            previous, decrease = pull, float(step.dot(pull))
            felt = 2.0 * float(homogeneous.error(direction))  # |A direction|^2
            if not (felt > 0.0 and decrease > 0.0):
                break
            x = x.add(direction.scale(float(pull.dot(direction)) / felt))
            misfit = float(physics.error(x)) ** 0.5
            waited = 0 if misfit < SMALLEST_PROGRESS * best_misfit else waited + 1
            if misfit < best_misfit:
                best, best_misfit = x, misfit
        return best

    def _polished(self, x: gtsam.VectorValues) -> Values:
        """The answer after steps that judge each row by its own terms, where those of fast joints drown all others."""
        found = improved(self.rows, x, lambda at, _: at.subtract(self._step(self._physics.gradient(at)))).x
        return {variable: found[entries] for variable, entries in self.graph.column_slices.items()}

    def _floor(self, physics: gtsam.GaussianFactorGraph) -> float:
        return float(LEAST_MISFIT * physics.error(self._zero()) ** 0.5)

    def _step(self, pull: gtsam.VectorValues) -> gtsam.VectorValues:
        """H^-1 times a vector, by the semi-normal equations R^T R dx = pull."""
        try:
            return self.net.net.backSubstitute(self.net.net.backSubstituteTranspose(pull))
        except RuntimeError as error:
            raise SingularSystemError(
                "The equations do not determine all unknowns.", graph=self.graph, ordering=self.ordering
            ) from error

    @cached_property
    def rows(self) -> Rows:
        """The physics as flat arrays."""
        return Rows(self.graph, NO_UNITS)

    @cached_property
    def _homogeneous_graph(self) -> gtsam.GaussianFactorGraph:
        """Physics and objectives without right-hand sides."""
        rows = (*self.graph.factors, *self._objective_rows.factors)
        return unit_factors(self._silent(rows))

    @cached_property
    def _ties(self) -> gtsam.GaussianFactorGraph:
        """The ties alone."""
        ties = tuple(factor for factor in self.stacked.factors if factor.kind == "tie")
        return unit_factors(LinearGraph(self.graph.variables, ties))

    @cached_property
    def _physics_only(self) -> gtsam.GaussianFactorGraph:
        """Physics without right-hand sides."""
        if not self._has_objectives:
            return self._homogeneous_graph
        return unit_factors(self._silent(self.graph.factors))

    def _silent(self, rows: Iterable[Factor]) -> LinearGraph:
        return LinearGraph(self.graph.variables, homogeneous(rows))

    def _zero(self) -> gtsam.VectorValues:
        zero = gtsam.VectorValues()
        for key, variable in enumerate(self.graph.variables):
            zero.insert(key, np.zeros(variable.size))
        return zero

    def _values(self, x: gtsam.VectorValues) -> Values:
        return {variable: x.at(key) for key, variable in enumerate(self.graph.variables)}


def homogeneous(factors: Iterable[Factor]) -> tuple[Factor, ...]:
    """The same equations with right-hand sides of zero."""
    return tuple(Factor(f.kind, f.owner, f.blocks, np.zeros(f.rows)) for f in factors)
