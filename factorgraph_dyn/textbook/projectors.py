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

from factorgraph_dyn.checks import as_names
from factorgraph_dyn.equations import evaluate_state
from factorgraph_dyn.errors import ClosureError, SingularSystemError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.solve.loops.closure_rows import ClosureRows, closure_rows
from factorgraph_dyn.solve.matrices.mass_matrix import bias, mass_matrix
from factorgraph_dyn.spatial import Floats

SINGULAR_INERTIA = 1e15  # condition, scaled to unit diagonal, above which a mass matrix counts as singular


@dataclass(frozen=True, eq=False)
class Constraints(ClosureRows):
    """The closure of a mechanism at a state, and its dynamics in joint coordinates.

    Attributes:
        H: Mass matrix of the tree, shape (nv, nv).
        h: Gravity, velocity and loss torques, H a + h = tau + J^T lambda, shape (nv,).

    Examples:
        >>> five_bar = fgd.robots.five_bar()
        >>> closed = fgd.constraints(five_bar, five_bar.neutral(), np.zeros(4))
        >>> closed.H.shape, closed.h.shape
        ((4, 4), (4,))
    """

    H: Floats
    h: Floats

    def __repr__(self) -> str:
        return f"<Constraints of {self.mechanism.name!r}: {len(self.J)} rows, {self.rank} independent>"

    @property
    def Jdot_v(self) -> Floats:
        """The product of J's rate with v, shape (rows,)."""
        return -self.gamma

    @cached_property
    def schur_projector(self) -> Floats:
        """P_S = I - J^T (J H^-1 J^T)^+ J H^-1, shape (nv, nv)."""
        J, units = self.own_J, natural(self.mechanism).tau
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
        return np.asarray(own.v * self._solve_H(force - self.own_J.T @ (self._H_J @ rate)), dtype=np.float64)

    def accelerations_by_qr(self, tau: npt.ArrayLike) -> Floats:
        """The accelerations by the QR projector, with no forces of the loops at all, shape (nv,)."""
        # [P_QR H; J] a = [P_QR (tau - h); -Jdot v]
        own, rows = natural(self.mechanism), list(self.independent)
        J = self.own_J[rows]
        P = _qr_projector(J)
        force = P @ ((self.mechanism.check_v(tau, "tau") - self.h) / own.tau)
        rhs = np.append(force, -(self.Jdot_v / self.row_units)[rows])
        return np.asarray(own.v * np.linalg.solve(np.vstack([P @ self._own_H, J]), rhs), dtype=np.float64)

    def multipliers(self, tau: npt.ArrayLike) -> Floats:
        """The constraint forces lambda of the DAE, of least norm where rows repeat, shape (rows,)."""
        # lambda = -H_J (J H^-1 (tau - h) + Jdot v)
        own = natural(self.mechanism)
        free = self._solve_H((self.mechanism.check_v(tau, "tau") - self.h) / own.tau)
        found = -self._H_J @ (self.own_J @ free + self.Jdot_v / self.row_units)
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

    # ---- in the mechanism's own units

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
        # On independent combinations of rows J H^-1 J^T = W W^T, W^T = Q R, which squares no condition.
        mix = self.decomposed.range
        W = np.linalg.solve(np.linalg.cholesky(self._balanced_H), (mix.T @ self.own_J * self._balance).T)
        back = mix @ np.linalg.inv(np.linalg.qr(W, mode="r"))
        return np.asarray(back @ back.T, dtype=np.float64)


def constraints(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Constraints:
    """The closure of a mechanism at a state: J, Jdot v, projectors, and the dynamics they act on.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).

    Examples:
        >>> five_bar = fgd.robots.five_bar()
        >>> closed = fgd.constraints(five_bar, five_bar.neutral(), np.zeros(4))
        >>> a = closed.complete_acceleration([1.0, 0, 0, 0], given=["left_shoulder", "right_shoulder"])
        >>> np.allclose(closed.J @ a, 0, atol=1e-12)  # at rest
        True
    """
    check_mechanism(mechanism)
    q, v = mechanism.check_q(q), mechanism.check_v(v)
    rows = closure_rows(evaluate_state(mechanism, q, v))
    H, h = mass_matrix(mechanism, q), bias(mechanism, q, v)
    return Constraints(rows.state, rows.names, rows.J, rows.gamma, rows.row_units, rows.forces, H, h)


def _qr_projector(J: Floats) -> Floats:
    """An orthonormal basis, as rows, of what J^T leaves out; the rows of J are independent."""
    Q, _ = np.linalg.qr(J.T, mode="complete")
    return np.asarray(Q[:, len(J) :].T)
