"""The equations that a sample gives: a torque of a tree's freedom each, or of a closed mechanism's.

A tree has an equation a freedom, tau_i = (X p)_i. Loops and couplings add forces that do no work along the motions N
which they allow, J N = 0; nor along those that leave joints at rest whose torque nobody measured, E_u N = 0:

    [J; E_u] N = 0        T = (N N_c^-1)^T        T tau = T X p

with as many independent freedoms c as there are motions: motors first, so that every row holds the torque of its own
motor and no other's noise. N by singular values, in the mechanism's own units; for blocks of samples.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Loop, Mechanism
from factorgraph_dyn.model.sizes.units import measured
from factorgraph_dyn.motion.closure import Motions, constant_directions, constraints, rank_tolerance, stacked_jacobian
from factorgraph_dyn.motion.many import at_states
from factorgraph_dyn.spatial import Array, Floats

LEAST_TOLD = 1e-4  # of the best: motions that independent freedoms determine worse are near a singular configuration


@dataclass(frozen=True, eq=False)
class Freedoms:
    """The equations of a mechanism's samples.

    Attributes:
        mechanism: The mechanism.
        entries: Of tau, one for every equation.
        unmeasured: Entries of tau that no sample has; only of closed mechanisms.
    """

    mechanism: Mechanism
    entries: tuple[int, ...]
    unmeasured: tuple[int, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """What each equation is the torque of."""
        return tuple(entry_name(self.mechanism, entry) for entry in self.entries)

    def project(self, q: Floats, X: Floats, y: Floats) -> tuple[Floats, Floats]:
        """Regressors (samples, nv, columns) and torques (samples, nv) of the equations; nan where there is none."""
        if not self.mechanism.is_closed_kind:
            return X, y
        T = self._along(q)
        known = np.where(np.isin(np.arange(self.mechanism.nv), self.unmeasured), 0.0, y)
        return T @ X, np.einsum("nij,nj->ni", T, known)

    def _along(self, q: Floats) -> Floats:
        """The matrices T, shape (samples, equations, nv); nan near singular configurations."""
        N, chosen = motions(self.mechanism, q, self.unmeasured, len(self.entries)), list(self.entries)
        own = measured(self.mechanism).v
        left, values, right = np.linalg.svd(N[:, chosen])
        good = values[:, -1] > LEAST_TOLD
        inverse = right.transpose(0, 2, 1) / np.where(good[:, None], values, np.nan)[:, None] @ left.transpose(0, 2, 1)
        T = (N @ inverse).transpose(0, 2, 1)
        return np.asarray(T * own / own[chosen][:, None])


def find_freedoms(mechanism: Mechanism, q: Floats, tau: Floats) -> Freedoms:
    """The equations that a log of a mechanism gives."""
    if not mechanism.is_closed_kind:
        return Freedoms(mechanism, tuple(range(mechanism.nv)))
    measured_at_all = np.isfinite(tau).any(axis=0)
    unmeasured = tuple(np.flatnonzero(~measured_at_all).tolist())
    N = motions(mechanism, q[np.unique(np.linspace(0, len(q) - 1, 20).astype(int))], unmeasured)
    motors = mechanism.torque_entries() & measured_at_all
    if not N.shape[2]:
        raise InputError(
            f"The torques that were measured say nothing of mechanism {mechanism.name!r}: every motion that its loops "
            "allow moves a joint whose torque was not measured. Give the torques of all motors, and zero for passive "
            "joints."
        )
    entries = _independent(N, [np.flatnonzero(motors), np.flatnonzero(~motors & measured_at_all)])
    if len(entries) < N.shape[2]:
        raise InputError(
            f"Mechanism {mechanism.name!r} is near a singular configuration at the samples of q: no "
            f"{N.shape[2]} of its joints determine how it moves. Give samples away from there."
        )
    return Freedoms(mechanism, tuple(sorted(entries)), unmeasured)


def motions(mechanism: Mechanism, q: Floats, at_rest: tuple[int, ...], count: int | None = None) -> Floats:
    """Orthonormal motions that keep loops closed and some freedoms at rest, own units, (samples, nv, motions).

    Args:
        mechanism: The mechanism.
        q: Configurations, shape (samples, nq).
        at_rest: Entries of v that do not move.
        count: How many motions; by default as many as most configurations have. The least constrained ones.
    """
    J = closure_jacobians(mechanism, q)
    held = np.broadcast_to(np.eye(mechanism.nv)[list(at_rest)], (len(q), len(at_rest), mechanism.nv))
    _, values, right = np.linalg.svd(np.concatenate([J, held], axis=1))
    if count is None:
        ranks = (values > rank_tolerance(mechanism) * values.max(axis=1, initial=0.0)[:, None]).sum(axis=1)
        count = mechanism.nv - int(np.median(ranks))
    return np.asarray(right[:, mechanism.nv - count :].transpose(0, 2, 1))


def closure_jacobians(mechanism: Mechanism, q: Floats) -> Floats:
    """J of all loops and couplings in units of the mechanism's size, shape (samples, rows, nv)."""
    own = measured(mechanism)
    if any(constant_directions(loop) is None for loop in own.mechanism.loops):
        one_by_one = [stacked_jacobian(own.mechanism, constraints(own.mechanism, one / own.q)) for one in q]
        return np.array(one_by_one)

    def rows(here: Array) -> tuple[Array, ...]:
        found = Motions(own.mechanism, here)
        loops = [_loop(found, loop) for loop in own.mechanism.loops]
        couplings = [found.coupling(coupling).jacobian for coupling in own.mechanism.couplings]
        return (np.concatenate([*loops, *couplings]),)

    (J,) = at_states(rows, q / own.q)
    return J


def entry_name(mechanism: Mechanism, entry: int) -> str:
    """The name of a freedom: its joint's, with its number where the joint has several."""
    for joint in mechanism.movable_joints:
        place = mechanism.v_slices[joint.name]
        if place.start <= entry < place.stop:
            return joint.name if joint.nv == 1 else f"{joint.name}.{entry - place.start}"
    raise IndexError(entry)


def _loop(here: Motions, loop: Loop) -> Array:
    """The Jacobian of a loop whose joint constrains the same directions always, shape (rows, nv)."""
    _, columns, entries = here.relative(loop)
    C = np.asarray(constant_directions(loop))
    J = np.zeros((C.shape[1], here.mechanism.nv), dtype=columns.dtype)
    J[:, entries] = C.T @ columns
    return J


def _independent(N: Floats, candidates: list[npt.NDArray[np.int64]]) -> list[int]:
    """Entries whose velocities determine all motions at the samples, the first candidates preferred."""
    rest = N.copy()
    chosen: list[int] = []
    for group in candidates:
        while len(group) and len(chosen) < N.shape[2]:
            sizes = np.quantile(np.linalg.norm(rest[:, group], axis=2), 0.25, axis=0)  # a few samples may be singular
            best = int(group[sizes.argmax()])
            if sizes.max() <= LEAST_TOLD:
                break
            chosen.append(best)
            lengths = np.linalg.norm(rest[:, best], axis=1)[:, None]
            direction = rest[:, best] / np.where(lengths > 0, lengths, 1.0)
            rest = rest - (rest @ direction[:, :, None]) * direction[:, None]
            group = group[group != best]
    return chosen
