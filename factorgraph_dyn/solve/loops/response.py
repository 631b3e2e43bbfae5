"""Loops and couplings on top of a tree's response: their forces are inputs that the closure determines.

The wrench of a loop acts along the directions C that its joint constrains, on the successor and, reversed, on the
predecessor; the force of a coupling acts on its two joints. They are columns like any other input, J^T, and

    a = a_0 + X_u u + X_c mu,     X_u = M^-1 B,   X_c = M^-1 J^T         (the tree)
    J a = gamma                                                         (the closure, differentiated twice)
    mu = (J X_c)^-1 (gamma - J a_0 - J X_u u)

Rows of J that repeat others (planar loops in space have three of them) are left out by its singular values, so
that J X_c is regular; a is unique although the loops' wrenches are not. Once a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.inputs import Inputs, join_inputs
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.loop_groups import loop_paths
from factorgraph_dyn.motion.closure import RANK_TOLERANCE, constraint_directions, coupling_row
from factorgraph_dyn.motion.kinematics import link_jacobian
from factorgraph_dyn.spatial import Floats, bracket

ROUNDING = 1e-12  # of the terms that the rows of closure are made of, which turn by a radian or move by a length


@dataclass(frozen=True, eq=False)
class ClosureRows:
    """Independent rows J a = gamma of all loops and couplings, and the forces J^T that hold them."""

    J: Floats
    gamma: Floats
    inputs: Inputs

    def close(self, free: Floats, columns: Floats) -> tuple[Floats, Floats]:
        """The closed mechanism's free acceleration and columns, from the tree's for [u, closure forces]."""
        m = columns.shape[1] - len(self.J)
        X_u, X_c = columns[:, :m], columns[:, m:]
        pushes = np.column_stack([self.gamma - self.J @ free, -self.J @ X_u])
        mu = np.linalg.solve(self.J @ X_c, pushes)
        return free + X_c @ mu[:, 0], X_u + X_c @ mu[:, 1:]


def closure_rows(state: State) -> ClosureRows:
    """The closure of a mechanism at a state on the level of accelerations."""
    mechanism = state.mechanism
    bias = bias_accelerations(state)
    parts = [_loop_rows(state, name, bias) for name in state.loops]
    for coupling in mechanism.couplings:
        row = coupling_row(mechanism, coupling)
        parts.append((row, np.zeros(1), Inputs((coupling.name,), row.T)))
    J, gamma = np.vstack([part[0] for part in parts]), np.concatenate([part[1] for part in parts])
    inputs = join_inputs([part[2] for part in parts])
    left, values, _ = np.linalg.svd(J, full_matrices=False)
    # A loop that repeats joints of the tree leaves rounding of order-one terms, in the mechanism's own units.
    independent = left[:, values > max(RANK_TOLERANCE * values.max(initial=0.0), ROUNDING)]
    names = tuple(f"closure.{k}" for k in range(independent.shape[1]))
    reduced = Inputs(
        names, inputs.torques @ independent, {link: W @ independent for link, W in inputs.wrenches.items()}
    )
    return ClosureRows(independent.T @ J, independent.T @ gamma, reduced)


@lru_cache(maxsize=1024)
def _around(mechanism: Mechanism, loop: str) -> npt.NDArray[np.bool_]:
    """Which entries of v belong to joints that lie on a loop, shape (nv,)."""
    lies = np.zeros(mechanism.nv, dtype=bool)
    for way in loop_paths(mechanism, next(part for part in mechanism.loops if part.name == loop)):
        for joint in way:
            lies[mechanism.v_slices[joint.name]] = True
    return lies


def bias_accelerations(state: State) -> dict[str, Floats]:
    """The link accelerations J' v that velocities alone cause, without gravity, by link name, shape (6,)."""
    found = {state.mechanism.base: np.zeros(6)}
    for joint in state.joints.values():
        A = joint.Ad_child_parent @ found[joint.parent] + bracket(state.twists[joint.child], joint.S @ joint.v)
        found[joint.child] = A if joint.S_rate_v is None else A + joint.S_rate_v
    return found


def _loop_rows(state: State, name: str, bias: Mapping[str, Floats]) -> tuple[Floats, Floats, Inputs]:
    """The rows of one loop: C^T (A_c - Ad_cp A_p) = C^T (ad(V_c) S v + S' v)."""
    mechanism, loop = state.mechanism, state.loops[name]
    C, Ad = constraint_directions(loop.S), loop.Ad_child_parent
    J_child = link_jacobian(mechanism, state.q, loop.child)
    J = C.T @ (J_child - Ad @ link_jacobian(mechanism, state.q, loop.parent))
    J[:, ~_around(mechanism, name)] = 0.0  # joints that move both sides alike leave rounding
    rate = bracket(state.twists[loop.child], loop.S @ loop.v)
    if loop.S_rate_v is not None:
        rate = rate + loop.S_rate_v
    gamma = C.T @ (rate - bias[loop.child] + Ad @ bias[loop.parent])
    names = tuple(f"{name}.{k}" for k in range(C.shape[1]))
    wrenches = {loop.child: C, loop.parent: -Ad.T @ C}
    return J, gamma, Inputs(names, np.zeros((mechanism.nv, C.shape[1])), wrenches)
