"""Whether the graph of a mechanism's open tree answers as another engine does.

Takes a mechanism and an engine with its tree; gives the largest relative differences over random states.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compare.peers.engines import Engine
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.solve.dynamics import forward_dynamics, inverse_dynamics
from factorgraph_dyn.solve.matrices.mass_matrix import inverse_mass_matrix, mass_matrix
from factorgraph_dyn.spatial import Floats

NO_DIGITS = 1e14  # condition numbers of M above it leave no digits
SOLVE_ROUNDING = 1e-14  # of a backward-stable solve, times the condition number
NEGLIGIBLE = 1e-6  # of the largest entry: smaller ones are measured against this


@dataclass(frozen=True)
class Agreement:
    """The largest relative differences from an engine over some states; nan where M is singular."""

    engine: str
    states: int
    mass_matrix: float
    inverse_mass_matrix: float
    inverse: float
    forward: float
    condition: float  # the largest condition number of M

    def within(self, tolerance: float, rounding: float = SOLVE_ROUNDING) -> bool:
        """Whether all differences are below a tolerance, or what rounding makes of an ill-conditioned M."""
        solved = max(tolerance, rounding * self.condition)
        return not (
            max(self.mass_matrix, self.inverse) > tolerance
            or self.inverse_mass_matrix > solved
            or self.forward > solved
        )


def compare_with_engine(mechanism: Mechanism, engine: Engine, *, states: int = 20, seed: int = 0) -> Agreement:
    """The agreement of a mechanism's open tree with an engine on random states.

    Differences are relative entry by entry, so that heavy joints do not hide light ones:

        M_ij to sqrt(M_ii M_jj)     tau_i to (|M| |a| + |h|)_i     a_i to (|M^-1| |tau - h|)_i

    Where the engine's M is singular to working precision, or not positive definite because the file's
    inertias are not, forward dynamics and M^-1 are left out or measured against the largest entry.
    """
    tree = mechanism.tree
    rng = np.random.default_rng(seed)
    rows = [_compare_at_state(tree, engine, rng) for _ in range(states)]
    worst = [float(np.nanmax(c)) if not np.isnan(c).all() else np.nan for c in zip(*rows, strict=True)]
    return Agreement(engine.name, states, worst[0], worst[1], worst[2], worst[3], worst[4])


def _compare_at_state(tree: Mechanism, engine: Engine, rng: np.random.Generator) -> tuple[float, ...]:
    q, v = tree.random_state(rng)
    a, tau = rng.normal(size=(2, tree.nv))
    M, h = engine.mass_matrix(q), engine.forces(q, v)
    condition = float(np.linalg.cond(M)) if tree.nv else 1.0
    mass = relative_difference(mass_matrix(tree, q) - M, _matrix_scale(M))
    needed = inverse_dynamics(tree, q, v, a, actuated=tree.joint_names).tau
    inverse = relative_difference(needed - (M @ a + h), np.abs(M) @ abs(a) + abs(h))
    if condition > NO_DIGITS:
        return mass, np.nan, inverse, np.nan, condition
    try:
        M_inverse = np.asarray(np.linalg.inv(M), dtype=np.float64)
        inverse_mass = relative_difference(inverse_mass_matrix(tree, q) - M_inverse, _matrix_scale(M_inverse))
        forward = relative_difference(
            forward_dynamics(tree, q, v, tau).a - np.linalg.solve(M, tau - h),
            np.abs(M_inverse) @ np.abs(tau - h),
        )
    except SingularSystemError:
        return mass, np.nan, inverse, np.nan, condition
    return mass, inverse_mass, inverse, forward, condition


def _matrix_scale(M: Floats) -> Floats:
    """The natural size of each entry of a positive definite matrix; else that of the largest."""
    diagonal = np.diag(M)
    if (diagonal <= 0).any():
        return np.full(M.shape, np.abs(M).max(initial=0.0))
    return np.sqrt(np.outer(diagonal, diagonal))


def relative_difference(difference: Floats, scale: Floats, floor: float = NEGLIGIBLE) -> float:
    """The largest entry in parts of its size, or of a share of the largest size: rounding of what passes through."""
    smallest = floor * float(scale.max(initial=0.0)) or 1.0
    return float((np.abs(difference) / np.maximum(scale, smallest)).max(initial=0.0))
