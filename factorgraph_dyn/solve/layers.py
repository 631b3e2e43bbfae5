"""Three layers of equations in one elimination: physics exact, objectives best, ties least.

    physics      A x = b              hard; rows may repeat each other, columns may be undetermined
    objectives   B x ~ c              as well as the physics lets them
    ties         W x ~ 0              what is still free: internal wrenches of least norm

One QR elimination of all rows, softer layers with small weights e1, e2, gives R with

    R^T R = H = A^T A + e1^2 B^T B + e2^2 W^T W

and its answer is off by the weights. Correction steps with the same R take the weights out again:
without objectives x += H^-1 A^T (b - A x), which is iterated Tikhonov; with objectives the proximal
method of multipliers,

    x += H^-1 ( A^T (b - A x + s) + e1^2 B^T (c - B x) ),     s += b - A x.

Both converge by the square of the ratio of neighbouring weights at every step, to the answer of the
weighted problem's limit. No rank is decided anywhere; a redundant row is only satisfied twice.
Rows of wrenches and torques are divided by the mechanism's largest inertia, so that weights mean
the same for a watch and for a crane. The work is linear in the graph: one elimination once a
state, two back-substitutions for every correction.

Sources: Van Loan, On the method of weighting for equality-constrained least-squares problems (1985);
Rockafellar, Augmented Lagrangians and applications of the proximal point algorithm (1976).
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import cached_property

import gtsam
import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.elimination import BayesNet, eliminate, singular, to_gtsam
from factorgraph_dyn.spatial import Floats

TIE_WEIGHT = 1e-5  # e2 without objectives
OBJECTIVE_WEIGHT = 1e-3  # e1
TIE_WEIGHT_BELOW_OBJECTIVES = 1e-6  # e2 with objectives
MAX_CORRECTIONS = 40
SMALLEST_PROGRESS = 0.5  # a correction that leaves more of the misfit than this is the last one
CLEANINGS = 4  # corrections that make a probe of the null space exact
FORCES = ("F", "lambda")  # kinds of variables that ties hold
INERTIAL_ROWS = ("wrench", "torque")  # equations in units of force

Values = dict[Variable, Floats]


def with_ties(graph: LinearGraph, objectives: Iterable[Factor], tied: Iterable[Variable], scale: float) -> LinearGraph:
    """All rows of the three layers in one graph, weighted.

    Args:
        graph: The physics.
        objectives: Soft rows over variables of the graph.
        tied: Variables pulled towards zero.
        scale: What wrench and torque rows are divided by: the largest inertia, kg or kg m^2.
    """
    soft = [weighted(factor, OBJECTIVE_WEIGHT) for factor in objectives]
    weight = TIE_WEIGHT_BELOW_OBJECTIVES if soft else TIE_WEIGHT
    ties = [
        Factor("tie", variable.owner, ((variable, weight / _unit(variable, scale) * np.eye(variable.size)),),
               np.zeros(variable.size))
        for variable in tied
    ]  # fmt: skip
    return LinearGraph(graph.variables, (*scaled_physics(graph, scale), *soft, *ties), graph.known)


def scaled_physics(graph: LinearGraph, scale: float) -> tuple[Factor, ...]:
    """The physics with its force rows divided by the scale."""
    return tuple(weighted(factor, 1.0 / scale) if factor.kind in INERTIAL_ROWS else factor for factor in graph.factors)


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
        scale: As in ``with_ties``.

    Raises:
        SingularSystemError: Some variable is in no layer's reach.
    """

    def __init__(
        self,
        graph: LinearGraph,
        stacked: LinearGraph,
        objectives: Sequence[Factor],
        ordering: Ordering,
        scale: float,
    ) -> None:
        self.graph, self.stacked, self.ordering, self.scale = graph, stacked, ordering, scale
        self.net: BayesNet = eliminate(stacked, ordering)
        self._physics_rows = LinearGraph(graph.variables, scaled_physics(graph, scale))
        self._physics = to_gtsam(self._physics_rows)
        self._has_objectives = bool(objectives)
        soft = tuple(weighted(factor, OBJECTIVE_WEIGHT) for factor in objectives)
        self._objective_rows = LinearGraph(graph.variables, soft)
        self._objectives = to_gtsam(self._objective_rows)

    def solve(self) -> Values:
        """Every variable: physics to rounding, objectives at their best, ties at their least."""
        try:
            x = self.net.net.optimize()
        except RuntimeError as error:
            raise singular(self.graph, self.ordering) from error
        return self._values(self._corrected(x, self._physics, self._objectives))

    def solve_shifted(self, physics: LinearGraph) -> Values:
        """Every variable for other right-hand sides of the same physics and no objectives' targets."""
        shifted = to_gtsam(LinearGraph(self.graph.variables, scaled_physics(physics, self.scale)))
        silent = to_gtsam(_homogeneous(self._objective_rows))
        return self._values(self._corrected(self._zero(), shifted, silent))

    def probe_null_space(self, rng: np.random.Generator) -> Values:
        """A random direction that neither physics nor objectives feel, of unit size in scaled forces.

        Entries that are determined come out zero up to rounding.
        """
        pulled = gtsam.VectorValues()
        for key, variable in enumerate(self.graph.variables):
            size = variable.size
            random = np.zeros(size)
            if variable in self._tie_weights:
                random = self._tie_weights[variable] ** 2 * _unit(variable, self.scale) * rng.normal(size=size)
            pulled.insert(key, random)
        n = self._step(pulled)
        for _ in range(CLEANINGS):
            n = n.subtract(self._step(self._felt(n)))
        return self._values(n)

    def growth(self, rng: np.random.Generator) -> float:
        """How much determined variables grow random misfits: an estimate of 1 / least singular value."""
        random = gtsam.VectorValues()
        for key, variable in enumerate(self.graph.variables):
            random.insert(key, rng.normal(size=variable.size))
        try:
            # R^-1 makes directions large that the rows hardly feel; H^-1 A^T A then takes those out
            # that they do not feel at all.
            y = self._step(self._felt(self.net.net.backSubstitute(random)))
        except RuntimeError:
            return np.inf
        values = self._values(y)
        sizes = (
            float(np.abs(value).max(initial=0.0)) / _unit(variable, self.scale) for variable, value in values.items()
        )
        return max(sizes, default=0.0)

    # ---- parts

    def _corrected(
        self,
        x: gtsam.VectorValues,
        physics: gtsam.GaussianFactorGraph,
        objectives: gtsam.GaussianFactorGraph,
    ) -> gtsam.VectorValues:
        best, best_misfit, last_step = x, np.inf, np.inf
        multipliers = self._zero()
        for round_number in range(MAX_CORRECTIONS):
            misfit = float(physics.error(x)) ** 0.5
            if not np.isfinite(misfit):
                break
            if misfit < best_misfit or self._has_objectives:
                best = x
            if not self._has_objectives and misfit > SMALLEST_PROGRESS * best_misfit:
                break
            best_misfit = min(misfit, best_misfit)
            pull = physics.gradient(x).scale(-1.0)  # A^T (b - A x)
            if self._has_objectives:
                multipliers = multipliers.add(pull)
                pull = pull.add(multipliers).subtract(objectives.gradient(x))
            step = self._step(pull)
            x = x.add(step)
            size = float(step.norm())
            stalled = self._has_objectives and round_number > 3 and size > SMALLEST_PROGRESS * last_step
            if size == 0.0 or stalled:
                break
            last_step = size
        return best

    def _step(self, pull: gtsam.VectorValues) -> gtsam.VectorValues:
        """H^-1 times a vector, by the semi-normal equations R^T R dx = pull."""
        try:
            return self.net.net.backSubstitute(self.net.net.backSubstituteTranspose(pull))
        except RuntimeError as error:
            raise SingularSystemError(
                "The equations do not determine all unknowns.", graph=self.graph, ordering=self.ordering
            ) from error

    @cached_property
    def _tie_weights(self) -> dict[Variable, float]:
        return {
            factor.blocks[0][0]: float(factor.blocks[0][1][0, 0])
            for factor in self.stacked.factors
            if factor.kind == "tie"
        }

    def _felt(self, x: gtsam.VectorValues) -> gtsam.VectorValues:
        """(A^T A + e1^2 B^T B) x."""
        return self._homogeneous_graph.gradient(x)

    @cached_property
    def _homogeneous_graph(self) -> gtsam.GaussianFactorGraph:
        rows = (*self._physics_rows.factors, *self._objective_rows.factors)
        return to_gtsam(_homogeneous(LinearGraph(self.graph.variables, rows)))

    def _zero(self) -> gtsam.VectorValues:
        zero = gtsam.VectorValues()
        for key, variable in enumerate(self.graph.variables):
            zero.insert(key, np.zeros(variable.size))
        return zero

    def _values(self, x: gtsam.VectorValues) -> Values:
        return {variable: x.at(key) for key, variable in enumerate(self.graph.variables)}


def _unit(variable: Variable, scale: float) -> float:
    return scale if variable.kind in (*FORCES, "tau") else 1.0


def _homogeneous(graph: LinearGraph) -> LinearGraph:
    factors = tuple(Factor(f.kind, f.owner, f.blocks, np.zeros(f.rows)) for f in graph.factors)
    return LinearGraph(graph.variables, factors)
