"""The linear system behind a problem, in plain floats, at many states.

Takes a mechanism at states and a problem; gives what corrects an answer. With M and J, the responses of torques and of
what closure misses to unit accelerations, the unknown entries x of a and tau satisfy

    J a + c = 0                      closure, reduced to independent rows V^T of the scaled J
    N^T (M a + h - tau) = 0          balance along the freedoms N that closure leaves

or, stacked, B x = b. Joints are scaled by the inertia that they move (a sqrt(M_jj), tau / sqrt(M_jj)), so that a light
finger on a heavy arm counts like the arm and no unit matters. M and J need not be exact: they only carry residuals
over to errors. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import transposed
from factorgraph_dyn.compiler.proof.newton_euler import LEVERS, ManyStates, Response
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.sizes.carried import usual_inertia
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats

SOLVABLE = 1e12  # condition beyond which plain floats know no better
CANCELLED = 1e-3  # of the terms that make an answer, below which it is measured by them instead
TINY = float(np.finfo(np.float64).tiny)
_LEAST_INERTIA = 1e-7  # of what a joint usually moves: so little of it as rounding is regular in no scale
_LEAST_IN_LOOPS = 1e-6  # of the inertia that a joint of a loop or coupling carries: it moves others, too
_HOLLOW = 1e-8  # of the inertia that a joint carries: what rounding of that may do to less says nothing
_ENTRIES = 1e-3  # weight of the terms of such a joint's torque, entry by entry, beside it: rounding of these is left
_NEEDLE = 1e-20  # of the inertia that a joint carries: what a needle has about itself where its axis is rounded
_AT_REST = 1e-5  # of what the torques would do to joints that no closure held, for those that it keeps from moving
_CARRIED = 1e3  # condition up to which rounding of what is pushed may be carried to what stays
_REPEATED = 1e-8  # of the largest singular value of closure, below which a row repeats others


@dataclass(frozen=True, eq=False)
class PlainAnswer:
    """What a and tau are, arrays of shape (states, columns, nv).

    Attributes:
        a, tau: The accelerations and torques.
        a_scale, tau_scale: What an error of each entry is measured by.
        a_blur: What rounding of the equations' terms can do to a, in parts of one.
    """

    a: Floats
    tau: Floats
    a_scale: Floats
    tau_scale: Floats
    a_blur: Floats


class System:
    """The scaled system of the unknown entries of a and tau, at every state.

    Attributes:
        condition: Of the system, infinite where it does not determine its unknowns, shape (states,).
        independent: Whether no equation of closure repeats others.
        idle: Forces of closure that move no joint, a column each, shape (states, columns, rows).
    """

    def __init__(self, here: ManyStates, unknown_a: Mask, unknown_tau: Mask) -> None:
        self.here = here
        M, (J, J_size) = here.mass_matrix(), here.closure_jacobian()
        self.D = _joint_scales(here.mechanism, M)  # a = D a~, tau = tau~ / D
        moved = np.median(np.diagonal(M, axis1=1, axis2=2), axis=0)
        usual = usual_inertia(here.mechanism)  # joints of loops, or without any inertia, are moved by others
        self.hollow = (moved > _NEEDLE * usual) & (moved < _HOLLOW * usual) & ~_in_loops(here.mechanism)
        self.M = self.D[:, :, None] * M * self.D[:, None]
        self.unknown_a, self.unknown_tau = unknown_a, unknown_tau
        self.unit = natural(here.mechanism).v
        self.speed = np.abs(here.v / self.unit).max(axis=-1, keepdims=True) * np.sqrt(self.unit)
        self._reduce(J * self.D[:, None], J_size * self.D[:, None])
        self._assemble()

    def _reduce(self, J: Floats, size: Floats) -> None:
        """Split the joints' space into what closure demands and what it leaves free.

        Rows weigh by the sizes of their terms, of which rounding is a part; by their own lengths those in which most
        cancels, such as nearly parallel axes leave, would bring theirs to all others.
        """
        states, rows, nv = J.shape
        norms = np.linalg.norm(size, axis=-1, keepdims=True)
        norms = np.where(norms > 0, norms, 1.0)
        U, s, Vt = np.linalg.svd(J / norms) if rows else (np.zeros((states, 0, 0)), np.zeros((states, 0)), np.eye(nv))
        ranks = (s > _REPEATED * s[:, :1]).sum(axis=-1)
        rank = int(np.bincount(ranks).argmax())  # elsewhere closure is singular
        Vt = np.broadcast_to(Vt, (states, nv, nv))
        self.spread = np.where(ranks == rank, s[:, 0] / s[:, rank - 1] if rank else 1.0, np.inf)
        self.rows, self.free = Vt[:, :rank], _without_rounding(Vt[:, rank:], self.spread)
        self.read = transposed(U[:, :, :rank] / s[:, None, :rank] / norms)  # closure's rows to independent ones
        self.independent, self.lever_sizes = rank == rows, size
        self.idle = transposed(U[:, :, rank:] / norms)

    def _assemble(self) -> None:
        u, w = self.unknown_a, self.unknown_tau
        top = np.concatenate([self.rows[:, :, u], np.zeros((*self.rows.shape[:2], w.sum()))], axis=-1)
        low = np.concatenate([(self.free @ self.M)[:, :, u], -self.free[:, :, w]], axis=-1)
        self.B = np.nan_to_num(np.concatenate([top, low], axis=1))
        if u.any() or self.rows.size:
            self.inverse, condition = _inverted(self.B)
            self.condition = condition * self.spread
        else:  # torques of a tree: the system is a part of the identity
            self.inverse, self.condition = transposed(self.B), self.spread

    def closing(self, missed: Floats) -> Floats:
        """The least change of accelerations that makes closure miss by so much, shape (states, columns, nv)."""
        return _times(self.read, missed) @ self.rows * self.D[:, None]

    def refined(self, a: Floats, tau: Floats, response: Callable[[Floats], Response], times: int) -> PlainAnswer:
        """What a and tau are: an answer, corrected by what its residual stands for.

        Args:
            a, tau: The answer, shape (states, columns, nv).
            response: What accelerations ask for.
            times: How often to correct.
        """
        a, tau, D = np.array(a), np.array(tau), self.D[:, None]
        for _ in range(times):
            asked = response(a)
            residual = [_times(self.read, -asked.missed), _times(self.free, D * (tau - asked.tau))]
            step = _times(self.inverse, np.concatenate(residual, axis=-1))
            da, dtau = self._unpacked(step, np.zeros(a.shape), np.zeros(a.shape))
            a, tau = a + da, tau + dtau
        x = np.concatenate([(a / D)[..., self.unknown_a], (tau * D)[..., self.unknown_tau]], axis=-1)
        pushed = np.hypot(D * np.hypot(asked.tau_size, tau), self._levered(asked.tau - tau))
        along = np.hypot(_spread(self.free, pushed), self._turned_by_motors(x))
        size = np.concatenate([_spread(self.read, asked.missed_size), along], axis=-1)
        blur = _spread(self.inverse, size)
        blur = np.maximum(blur, self._held(asked, tau) / CANCELLED)
        plain = self._plain_blur(asked, tau)
        blur = np.where(self._of_hollow & (plain > 0), plain, blur)  # what nothing pushes is zero beside its terms
        scale = np.maximum(np.abs(x), CANCELLED * blur)
        scales = self._unpacked(scale, *(np.maximum(np.abs(given), TINY) for given in (a, tau)))
        return PlainAnswer(a, tau, *scales, self._unpacked(blur, self._given_blur(a), np.zeros(a.shape))[0])

    @property
    def _of_hollow(self) -> Mask:
        """Which unknowns are accelerations of joints that always move next to none of the inertia that they carry."""
        return np.concatenate([self.hollow[self.unknown_a], np.zeros(int(self.unknown_tau.sum()), dtype=bool)])

    def _plain_blur(self, asked: Response, tau: Floats) -> Floats:
        """What rounding of the torques themselves does: a needle that turns about itself has its inertia as given.

        By the norms of its balances' terms, of which next to nothing is left, any answer would be as good as another.
        """
        if not self.hollow.any():
            return np.zeros(1)
        pushed = self.D[:, None] * np.hypot(np.hypot(asked.tau, tau), _ENTRIES * self.here.torque_terms(asked))
        size = np.concatenate([_spread(self.read, asked.missed_size), _spread(self.free, pushed)], axis=-1)
        return np.asarray(_spread(self.inverse, size).max(axis=1, keepdims=True))  # columns answer for each other

    def _levered(self, left: Floats) -> Floats:
        """What forces of closure may do to joints that they have no lever to, up to rounding, as scaled torques.

        They act at places that are closed to rounding.
        """
        forces, _ = self.constraint_forces(left, left)
        return np.asarray(LEVERS * np.abs(forces) @ self.lever_sizes)

    def _turned_by_motors(self, x: Floats) -> Floats:
        """What motors do along the freedoms but for their levers, entries of unit vectors that closure has rounded.

        Where a motor stands next to a dead point, rounding of that lever is most of what is off in its torque.
        """
        motors = x[..., int(self.unknown_a.sum()) :]
        return np.asarray(np.linalg.norm(motors, axis=-1, keepdims=True) * bool(self.rows.size))

    def _given_blur(self, a: Floats) -> Floats:
        """What accelerations that are given are measured by where they add up to nothing: closure has them rounded."""
        usual = np.abs(a / self.unit).max(axis=-1, keepdims=True) * self.unit
        return np.asarray(usual * bool(self.rows.size))

    def _held(self, asked: Response, tau: Floats) -> Floats:
        """What accelerations of joints that closure keeps from moving are measured by, shape (states, columns, 1).

        They are zero but for rounding: of the torques, as far as the condition carries it, and of velocities that
        closure allows up to rounding.
        """
        if not self.rows.size:
            return np.full((len(self.D), 1, 1), TINY)
        D = self.D[:, None]
        pushed, turned = (D * np.hypot(asked.tau_size, tau)).max(axis=-1), (self.speed[:, None] ** 2 / D).max(axis=-1)
        carried = _AT_REST * np.minimum(self.condition, _CARRIED)[:, None]
        held: Floats = np.maximum(np.maximum(carried * pushed, CANCELLED * turned), TINY)[..., None]
        return held

    def _unpacked(self, x: Floats, a: Floats, tau: Floats) -> tuple[Floats, Floats]:
        """The arrays with unknowns put in their places."""
        u, w, D = self.unknown_a, self.unknown_tau, self.D[:, None]
        count = int(u.sum())
        a[..., u], tau[..., w] = x[..., :count] * D[..., u], x[..., count:] / D[..., w]
        return a, tau

    def constraint_forces(self, left: Floats, size: Floats) -> tuple[Floats, Floats]:
        """Forces of closure that leave nothing of a balance, J^T forces = left, and their sizes."""
        D, turn = self.D[:, None], transposed(self.read) @ self.rows
        return _times(turn, left * D), _spread(turn, size * D)


def _without_rounding(directions: Floats, spread: Floats) -> Floats:
    """Unit vectors with zeros where rounding left something, so that joints that closure locks take no part in them.

    What moves at no state by more than rounding of closure may, which grows by closure's condition, is locked.
    """
    rounding, moved = directions.shape[-1] * np.finfo(np.float64).eps, np.abs(directions)
    locked = (moved.max(axis=1, initial=0.0) <= rounding * spread[:, None]).all(axis=0)
    return np.where((moved > rounding) & ~locked, directions, 0.0)


def _times(matrices: Floats, values: Floats) -> Floats:
    """Matrices times columns, shape (states, columns, entries)."""
    return values @ transposed(matrices)


def _spread(matrices: Floats, sizes: Floats) -> Floats:
    """What matrices do to errors of so much that have nothing to do with each other."""
    spread: Floats = np.sqrt(_times(np.square(matrices), np.square(sizes)))
    return spread


def _in_loops(mechanism: Mechanism) -> Mask:
    """Which entries of a belong to joints of loops or couplings, shape (nv,)."""
    found = np.zeros(mechanism.nv, dtype=bool)
    for group in loop_groups(mechanism):
        found[group.entries] = True
    return found


def _joint_scales(mechanism: Mechanism, M: Floats) -> Floats:
    """One over the root of the inertia that each joint moves, shape (states, nv)."""
    units, usual = natural(mechanism), usual_inertia(mechanism)
    inertia = np.diagonal(M, axis1=1, axis2=2)
    inertia = np.where(inertia > _NEEDLE * usual, inertia, 0.0)
    inertia = np.maximum(inertia, np.where(_in_loops(mechanism), _LEAST_IN_LOOPS * usual, 0.0))
    # Where axes line up a joint may move next to nothing, and where that is rounding no scale makes it regular.
    inertia = np.maximum(inertia, _LEAST_INERTIA * np.median(inertia, axis=0))
    return 1.0 / np.sqrt(np.where(inertia > 0, inertia, units.tau / units.v))


def _inverted(B: Floats) -> tuple[Floats, Floats]:
    """The inverses, in the sense of least squares where there are more equations than unknowns, and the conditions.

    Nothing is large in scaled units: a matrix that is small, as where motors have no lever, is ill conditioned.
    """
    states, rows, columns = B.shape
    if not columns:
        return np.zeros((states, 0, rows)), np.ones(states)
    if rows == columns:
        with suppress(np.linalg.LinAlgError):  # one state among others is singular
            inverse: Floats = np.asarray(np.linalg.inv(B), dtype=np.float64)
            sizes = [np.abs(matrix).sum(axis=-1).max(axis=-1) for matrix in (B, inverse)]
            return inverse, np.maximum(sizes[0], 1.0) * sizes[1]
    U, s, Vt = np.linalg.svd(B, full_matrices=False)
    least = s[:, :1] / SOLVABLE
    inverse = transposed(U @ (np.where(s > least, 1.0 / np.maximum(s, TINY), 0.0)[..., None] * Vt))
    if rows < columns:
        return inverse, np.full(states, np.inf)
    least = np.abs(s[:, -1])  # zero may come as -0.0
    return inverse, np.divide(np.maximum(s[:, 0], 1.0), least, out=np.full(states, np.inf), where=least > 0)
