"""Loops and couplings at the level of accelerations: their rows J a = gamma, which of them count, and their forces J^T.

    J = C^T Ad_side_link (J_c - Ad_cp J_p)                                    (``motion.closure``)
    gamma = -J' v = C^T Ad_side_link (ad(V_c) S v + S' v - A_c + Ad_cp A_p)   A: what velocities alone cause

for a loop from link p to link c whose joint, seen from its side on c, constrains the directions C. Planar loops in
space repeat three rows each; which rows are independent is decided here, once, by singular values in the mechanism's
own units, and everything dense about loops (``response``, ``singularity``, ``diagnosis``, the textbook's projectors)
asks here. Once a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.inputs import Inputs, join_inputs
from factorgraph_dyn.equations.state import JointState
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural, usual_acceleration
from factorgraph_dyn.motion import closure
from factorgraph_dyn.motion.closure import rank_tolerance
from factorgraph_dyn.motion.independence import independent_rows
from factorgraph_dyn.numerics.rank import Decomposed, decomposed
from factorgraph_dyn.spatial import Floats

CLOSED_ACCELERATION = 1e-8  # how far given accelerations may break a closure, relative to the largest


@dataclass(frozen=True, eq=False)
class ClosureRows:
    """The closure of a mechanism at a state, J a = gamma.

    Attributes:
        state: The mechanism at (q, v).
        names: Name of the loop or coupling that each row of J belongs to, length rows.
        J: Constraint Jacobian, shape (rows, nv).
        gamma: What J a has to be, -J' v, shape (rows,).
        row_units: Units of J's rows in which the mechanism is of order one, shape (rows,).
        forces: What holds each row closed, a column of J^T each, as wrenches on links and torques of couplings.
    """

    state: State
    names: tuple[str, ...]
    J: Floats
    gamma: Floats
    row_units: Floats
    forces: Inputs

    @property
    def mechanism(self) -> Mechanism:
        """The mechanism."""
        return self.state.mechanism

    @cached_property
    def own_J(self) -> Floats:
        """J in the mechanism's own units, where ranks and conditions mean something, shape (rows, nv)."""
        return np.asarray(self.J * natural(self.mechanism).v / self.row_units[:, None])

    @cached_property
    def decomposed(self) -> Decomposed:
        """The same by its singular values."""
        return decomposed(self.own_J, rank_tolerance(self.mechanism))

    @property
    def rank(self) -> int:
        """Number of independent rows of J."""
        return self.decomposed.rank

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Indices of rows of J that span the others, the longest remainder first taken, by Gram-Schmidt; sorted."""
        rest, chosen = self.own_J.copy(), []
        for _ in range(self.rank):
            lengths = np.linalg.norm(rest, axis=1)
            best = int(np.argmax(lengths))
            chosen.append(best)
            direction = rest[best] / lengths[best]
            for _ in range(2):  # twice is enough
                rest -= np.outer(rest @ direction, direction)
            rest[best] = 0.0
        return tuple(sorted(chosen))

    @cached_property
    def kept(self) -> ClosureRows:
        """The same closure without the rows that follow from others."""
        kept = np.flatnonzero([row for rows in independent_rows(self.mechanism, self.state.q).kept for row in rows])
        wrenches: dict[str, Floats] = {link: W[:, kept] for link, W in self.forces.wrenches.items()}
        forces = Inputs(tuple(self.forces.names[k] for k in kept), self.forces.torques[:, kept], wrenches)
        names = tuple(self.names[k] for k in kept)
        return ClosureRows(self.state, names, self.J[kept], self.gamma[kept], self.row_units[kept], forces)

    @cached_property
    def reduced(self) -> ClosureRows:
        """The same closure in combinations of rows that are independent."""
        mix = self.decomposed.range / self.row_units[:, None]
        names = tuple(f"closure.{k}" for k in range(self.rank))
        wrenches = {link: W @ mix for link, W in self.forces.wrenches.items()}
        forces = Inputs(names, self.forces.torques @ mix, wrenches)
        return ClosureRows(self.state, names, mix.T @ self.J, mix.T @ self.gamma, np.ones(self.rank), forces)

    def nearest_acceleration(self, a: Floats, fixed: npt.NDArray[np.bool_]) -> tuple[Floats, int]:
        """The accelerations that agree with a where it is fixed and break closures least, and the rank of the rest."""
        units = natural(self.mechanism).v
        completed = np.where(fixed, a, 0.0) / units
        target = self.gamma / self.row_units - self.own_J @ completed
        rest = self.own_J[:, ~fixed]
        completed[~fixed], _, rank, _ = np.linalg.lstsq(rest, target, rcond=rank_tolerance(self.mechanism))
        return completed * units, int(rank)

    def broken(self, a: Floats) -> dict[str, float]:
        """How much accelerations break each loop or coupling (m/s^2, rad/s^2), where they do."""
        moves = np.abs(a / natural(self.mechanism).v).max(initial=0.0)
        turns = np.abs(self.gamma / self.row_units).max(initial=0.0)
        usual = usual_acceleration(self.mechanism, self.state.v)
        allowed = CLOSED_ACCELERATION * max(usual, float(moves), float(turns)) * self.row_units
        found: dict[str, float] = {}
        for name, size, limit in zip(self.names, np.abs(self.J @ a - self.gamma), allowed, strict=True):
            if size > limit:
                found[name] = max(float(size), found.get(name, 0.0))
        return found


def closure_rows(state: State) -> ClosureRows:
    """The closure of a mechanism at a state."""
    mechanism, drifts = state.mechanism, bias_accelerations(state)
    joints = {coupling.name: mechanism.joint_by_name[coupling.joint] for coupling in mechanism.couplings}
    sides = {loop.name: loop.successor_placement for loop in mechanism.loops}
    own, names, gammas, units = natural(mechanism), [], [np.zeros(0)], [np.zeros(0)]
    forces = [Inputs((), np.zeros((mechanism.nv, 0)))]
    found = closure.constraints(mechanism, state.q)
    for constraint in found:
        names += [constraint.name] * len(constraint.error)
        rows = tuple(f"{constraint.name}.{k}" for k in range(len(constraint.error)))
        if constraint.directions is None:
            gammas.append(np.zeros(1))
            units.append(own.freedoms(joints[constraint.name]))
            forces.append(Inputs(rows, constraint.jacobian.T))
            continue
        loop = state.loops[constraint.name]
        W = spatial.inverse_adjoint(sides[loop.name]).T @ constraint.directions  # wrenches on the successor
        relative = drifts[loop.child] - loop.Ad_child_parent @ drifts[loop.parent]
        gammas.append(W.T @ (drift(loop, state) - relative))
        units.append(np.where(constraint.directions[:3].any(axis=0), 1.0, own.length))
        wrenches = {loop.child: W, loop.parent: -loop.Ad_child_parent.T @ W}
        forces.append(Inputs(rows, np.zeros((mechanism.nv, len(rows))), wrenches))
    J = closure.stacked_jacobian(mechanism, found)
    return ClosureRows(state, tuple(names), J, np.concatenate(gammas), np.concatenate(units), join_inputs(forces))


def bias_accelerations(state: State) -> dict[str, Floats]:
    """The link accelerations J' v that velocities alone cause, without gravity, by link name, shape (6,)."""
    found = {state.mechanism.base: np.zeros(6)}
    for joint in state.joints.values():
        found[joint.child] = joint.Ad_child_parent @ found[joint.parent] + drift(joint, state)
    return found


def drift(joint: JointState, state: State) -> Floats:
    """What a joint or loop adds to its child's acceleration without accelerating itself, ad(V_c) S v + S' v."""
    turning = spatial.bracket(state.twists[joint.child], joint.S @ joint.v)
    return np.asarray(turning if joint.S_rate_v is None else turning + joint.S_rate_v)
