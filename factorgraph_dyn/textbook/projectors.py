"""Loops and couplings as a lecturer writes them: J, its rate, and projectors that remove their forces.

    H a + h = tau + J^T lambda        J a + Jdot v = 0

    Schur projector   P_S  = I - J^T (J H^-1 J^T)^-1 J H^-1      P_S  (H a + h - tau) = 0
    QR projector      P_QR = S_2 Q^T,  J^T = Q [R; 0]            P_QR (H a + h - tau) = 0

Where rows of J repeat each other the inverse is a pseudo-inverse and the QR takes independent rows
only, so both hold for redundant loops too. All of it is dense, to be read and compared with; the
graph gives the same accelerations in linear time.

Source: S. Savin, Contact-aware control, lecture 3 (forward dynamics, projectors), equations 1-17.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import as_names
from factorgraph_dyn.equations import State, evaluate_state
from factorgraph_dyn.errors import ClosureError, SingularSystemError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.units import natural, usual_acceleration
from factorgraph_dyn.motion import closure
from factorgraph_dyn.solve.loops.response import bias_accelerations
from factorgraph_dyn.solve.mass_matrix import bias, mass_matrix
from factorgraph_dyn.spatial import Floats

RANK_TOLERANCE = 1e-9  # singular values below this share of the largest count as zero
CLOSED_ACCELERATION = 1e-8  # how far given accelerations may break a closure, relative to the largest
SINGULAR_INERTIA = 1e15  # condition, scaled to unit diagonal, above which a mass matrix counts as singular


@dataclass(frozen=True, eq=False)
class Constraints:
    """The closure of a mechanism at a state, and its dynamics in joint coordinates.

    Attributes:
        mechanism: The mechanism.
        names: Name of the loop or coupling that each row of J belongs to, length rows.
        J: Constraint Jacobian, shape (rows, nv).
        Jdot_v: The product of J's rate with v, shape (rows,).
        H: Mass matrix of the tree, shape (nv, nv).
        h: Gravity, velocity and loss torques, H a + h = tau + J^T lambda, shape (nv,).
        row_units: Units of J's rows in which the mechanism is of order one, shape (rows,).
        usual: Accelerations in own units that gravity, springs and velocities cause; others are measured by them.
    """

    mechanism: Mechanism
    names: tuple[str, ...]
    J: Floats
    Jdot_v: Floats
    H: Floats
    h: Floats
    row_units: Floats
    usual: float

    @cached_property
    def rank(self) -> int:
        """Number of independent rows of J."""
        return rank(self._own_J)

    @cached_property
    def independent(self) -> tuple[int, ...]:
        """Indices of rows of J that are independent and span the others."""
        return independent_rows(self._own_J)

    @cached_property
    def schur_projector(self) -> Floats:
        """P_S = I - J^T (J H^-1 J^T)^+ J H^-1, shape (nv, nv)."""
        J, units = self._own_J, natural(self.mechanism).tau
        own = np.eye(len(self.H)) - J.T @ self._H_J @ self._solve_H(J.T).T
        return np.asarray(units[:, None] * own / units)

    @cached_property
    def qr_projector(self) -> Floats:
        """P_QR = S_2 Q^T of J^T = Q [R; 0], shape (nv - rank, nv); P_QR J^T = 0."""
        return _qr_projector(self.J[list(self.independent)])

    def accelerations_by_schur(self, tau: npt.ArrayLike) -> Floats:
        """The accelerations by the explicit solution of the manipulator's DAE, shape (nv,)."""
        # a = H^-1 (P_S (tau - h) - J^T H_J Jdot v)
        own = natural(self.mechanism)
        force = (self.schur_projector @ (self.mechanism.check_v(tau, "tau") - self.h)) / own.tau
        rate = self.Jdot_v / self.row_units
        return np.asarray(own.v * self._solve_H(force - self._own_J.T @ (self._H_J @ rate)), dtype=np.float64)

    def accelerations_by_qr(self, tau: npt.ArrayLike) -> Floats:
        """The accelerations by the QR projector, with no forces of the loops at all, shape (nv,)."""
        # [P_QR H; J] a = [P_QR (tau - h); -Jdot v]
        own, rows = natural(self.mechanism), list(self.independent)
        J = self._own_J[rows]
        P = _qr_projector(J)
        force = P @ ((self.mechanism.check_v(tau, "tau") - self.h) / own.tau)
        rhs = np.append(force, -(self.Jdot_v / self.row_units)[rows])
        return np.asarray(own.v * np.linalg.solve(np.vstack([P @ self._own_H, J]), rhs), dtype=np.float64)

    def multipliers(self, tau: npt.ArrayLike) -> Floats:
        """The constraint forces lambda of the DAE, of least norm where rows repeat, shape (rows,)."""
        # lambda = -H_J (J H^-1 (tau - h) + Jdot v)
        own = natural(self.mechanism)
        free = self._solve_H((self.mechanism.check_v(tau, "tau") - self.h) / own.tau)
        found = -self._H_J @ (self._own_J @ free + self.Jdot_v / self.row_units)
        return np.asarray(own.work / self.row_units * found)

    def complete_acceleration(self, a: npt.ArrayLike, given: Iterable[str]) -> Floats:
        """The accelerations with J a + Jdot v = 0 that agree with a at the given joints, shape (nv,).

        Raises:
            ClosureError: They contradict a closure, or leave freedoms.
        """
        mechanism = self.mechanism
        wanted, names = mechanism.check_v(a, "a"), as_names(given, "given")
        fixed = np.zeros(mechanism.nv, dtype=bool)
        for name in names:
            fixed[mechanism.v_slice(name)] = True
        completed, found_rank = self.nearest_acceleration(wanted, fixed)
        broken = self.broken(completed)
        if broken:
            worst = max(broken, key=broken.__getitem__)
            raise ClosureError(
                f"The accelerations given at joints {', '.join(names)} contradict the closure of {worst!r} "
                f"by {broken[worst]:.3g} m/s^2 or rad/s^2. Give fewer joints.",
                constraint=worst,
                distance=broken[worst],
            )
        missing = int((~fixed).sum() - found_rank)
        if missing:
            raise ClosureError(
                f"The accelerations given at joints {', '.join(names) or 'none'} leave {missing} freedom(s). "
                f"Give {missing} more joints."
            )
        return completed

    def nearest_acceleration(self, a: Floats, fixed: npt.NDArray[np.bool_]) -> tuple[Floats, int]:
        """The accelerations that agree with a where it is fixed and break closures least, and the rank of the rest."""
        units = natural(self.mechanism).v
        completed = np.where(fixed, a, 0.0) / units
        target = -self.Jdot_v / self.row_units - self._own_J @ completed
        found, _, found_rank, _ = np.linalg.lstsq(self._own_J[:, ~fixed], target, rcond=RANK_TOLERANCE)
        completed[~fixed] = found
        return completed * units, int(found_rank)

    def broken(self, a: Floats) -> dict[str, float]:
        """How much accelerations break each loop or coupling (m/s^2, rad/s^2), where they do."""
        misfit = np.abs(self.J @ a + self.Jdot_v)
        moves = np.abs(a / natural(self.mechanism).v).max(initial=0.0)
        turns = np.abs(self.Jdot_v / self.row_units).max(initial=0.0)
        allowed = CLOSED_ACCELERATION * max(self.usual, float(moves), float(turns))
        found: dict[str, float] = {}
        for name, size, unit in zip(self.names, misfit.tolist(), self.row_units.tolist(), strict=True):
            if size > allowed * unit:
                found[name] = max(size, found.get(name, 0.0))
        return found

    # ---- in the mechanism's own units

    @cached_property
    def _own_J(self) -> Floats:
        return np.asarray(self.J * natural(self.mechanism).v / self.row_units[:, None])

    @cached_property
    def _own_H(self) -> Floats:
        own = natural(self.mechanism)
        return np.asarray(self.H * own.v / own.tau[:, None])

    @cached_property
    def _balance(self) -> Floats:
        """What rows and columns of H are multiplied by to give them a diagonal of ones, shape (nv,)."""
        diagonal = np.diag(self._own_H)
        return np.asarray(1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0)))

    @cached_property
    def _balanced_H(self) -> Floats:
        return np.asarray(self._balance[:, None] * self._own_H * self._balance)

    def _solve_H(self, rhs: Floats) -> Floats:
        """The product H^-1 rhs, shape of rhs."""
        balance = self._balance if rhs.ndim == 1 else self._balance[:, None]
        return np.asarray(balance * np.linalg.solve(self._balanced_H, balance * rhs))

    @cached_property
    def _H_J(self) -> Floats:
        if len(self.H) and np.linalg.cond(self._balanced_H) > SINGULAR_INERTIA:
            raise SingularSystemError(
                f"The tree of mechanism {self.mechanism.name!r} has a singular mass matrix, which the Schur "
                "complement needs. Use the QR projector, or give every link inertia."
            )
        # J H^-1 J^T = W W^T; the pseudo-inverse of W decides the rank on singular values, not their squares.
        W = np.linalg.solve(np.linalg.cholesky(self._balanced_H), (self._own_J * self._balance).T).T
        W_inverse = np.linalg.pinv(W, rcond=RANK_TOLERANCE)
        return np.asarray(W_inverse.T @ W_inverse, dtype=np.float64)


def constraints(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Constraints:
    """The closure of a mechanism at a state: J, Jdot v, projectors, and the dynamics they act on.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
    """
    check_mechanism(mechanism)
    q_checked, v_checked = mechanism.check_q(q), mechanism.check_v(v)
    state = evaluate_state(mechanism, q_checked, v_checked)
    return constraints_at(state)


def constraints_at(state: State) -> Constraints:
    """The same for a state that has been evaluated."""
    mechanism = state.mechanism
    found = closure.constraints(mechanism, state.q)
    names = tuple(c.name for c in found for _ in range(len(c.error)))
    J = closure.stacked_jacobian(mechanism, found)
    H, h = mass_matrix(mechanism, state.q), bias(mechanism, state.q, state.v)
    row_units, usual = _row_units(mechanism, found), usual_acceleration(mechanism, state.v)
    return Constraints(mechanism, names, J, _rate_of_jacobian(state, found), H, h, row_units, usual)


def _row_units(mechanism: Mechanism, found: list[closure.Constraint]) -> Floats:
    """The units of all closures' rows: 1 for those that turn, the mechanism's length for those that slide."""
    own, units = natural(mechanism), [np.zeros(0)]
    joints = {coupling.name: coupling.joint for coupling in mechanism.couplings}
    for constraint in found:
        if constraint.directions is None:
            units.append(own.freedoms(mechanism.joint_by_name[joints[constraint.name]]))
        else:
            turns = constraint.directions[:3].any(axis=0)
            units.append(np.where(turns, 1.0, own.length))
    return np.concatenate(units)


def _qr_projector(J: Floats) -> Floats:
    """An orthonormal basis, as rows, of what J^T leaves out; the rows of J are independent."""
    Q, _ = np.linalg.qr(J.T, mode="complete")
    return np.asarray(Q[:, len(J) :].T)


def rank(matrix: Floats, tolerance: float = RANK_TOLERANCE) -> int:
    """Number of singular values above a share of the largest."""
    if not matrix.size:
        return 0
    values = np.linalg.svd(matrix, compute_uv=False)
    return int((values > tolerance * max(values[0], 1e-300)).sum())


def independent_rows(J: Floats, tolerance: float = RANK_TOLERANCE) -> tuple[int, ...]:
    """Rows that span all others, the longest remainder first taken, by Gram-Schmidt; sorted."""
    rest, chosen = J.copy(), []
    longest = float(np.linalg.norm(J, axis=1).max(initial=0.0))
    for _ in range(min(J.shape)):
        lengths = np.linalg.norm(rest, axis=1)
        best = int(np.argmax(lengths))
        if lengths[best] <= tolerance * longest:
            break
        chosen.append(best)
        direction = rest[best] / lengths[best]
        for _ in range(2):  # twice is enough
            rest -= np.outer(rest @ direction, direction)
        rest[best] = 0.0
    return tuple(sorted(chosen))


def _rate_of_jacobian(state: State, found: list[closure.Constraint]) -> Floats:
    """What the closures accelerate when no joint does: Jdot v, shape (rows,)."""
    accelerations = bias_accelerations(state)
    rows = [np.zeros(0)]
    placements = {loop.name: loop.successor_placement for loop in state.mechanism.loops}
    for constraint in found:
        if constraint.directions is None:
            rows.append(np.zeros(1))
            continue
        loop = state.loops[constraint.name]
        relative = accelerations[loop.child] - loop.Ad_child_parent @ accelerations[loop.parent]
        relative = relative - spatial.bracket(state.twists[loop.child], loop.S @ loop.v)
        if loop.S_rate_v is not None:
            relative = relative - loop.S_rate_v
        Ad_side_link = spatial.inverse_adjoint(placements[constraint.name])
        rows.append(constraint.directions.T @ (Ad_side_link @ relative))
    return np.concatenate(rows)
