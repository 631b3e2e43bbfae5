"""One integration step with its derivatives, by the chain rule on plain arrays.

Takes the kernel of accelerations and their derivatives, and an integrator; gives q', v', A and B for any leading batch
axes. The integrator's own function (`motion.integrators`) is called with arrays that carry their changes along. Where a
joint's motions compose, q (+) u, the change follows the exponential map,

    (q (+) u)' = Ad(exp(-S u)) q' + (1 - ad/2! + ad^2/3! - ...) u'            ad of S u

It is what steps in machine code are proved by, and what runs where these would be too long. A step costs one call of
the kernel a stage and some products of matrices.
"""

from __future__ import annotations

from math import prod
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.kernel.compile import compile
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.compiler.step.flight import VariedFlight
from factorgraph_dyn.compiler.step.varied import Varied
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.motion.flight import Beside, flight_of, flown
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import LARGEST_TURN, Floats, bracket, left_inverse

_BLOCK = 4096  # states at a time whose changes fit a processor's cache, for one freedom
_LEAST_TERM = 1e-17  # of the series of the exponential map; smaller ones count for nothing


def chained_step(
    kernel: Kernel, integrator: str, q: Floats, v: Floats, tau: Floats, step: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The next q and v, and A and B; leading axes of all are the same, of the step there may be none."""
    block, states = max(1, _BLOCK // kernel.mechanism.nv**2), v.shape[:-1]
    count = prod(states)
    if count <= block:
        return _block_step(kernel, integrator, q, v, tau, step)
    flat = [x.reshape(count, -1) for x in (q, v, tau)] + [np.broadcast_to(step, states).reshape(count)]
    parts = [_block_step(kernel, integrator, *(x[k : k + block] for x in flat)) for k in range(0, count, block)]
    q, v, A, B = (np.concatenate(found).reshape(*states, *found[0].shape[1:]) for found in zip(*parts, strict=True))
    return q, v, A, B


def _block_step(
    kernel: Kernel, integrator: str, q: Floats, v: Floats, tau: Floats, step: Floats
) -> tuple[Floats, Floats, Floats, Floats]:
    """The step of as many states as fit a processor's cache."""
    chain, nv = _Chain(kernel, tau), kernel.mechanism.nv
    unit = np.broadcast_to(np.eye(2 * nv, 3 * nv), (*v.shape[:-1], 2 * nv, 3 * nv))
    start = Varied(q, unit[..., :nv, :]), Varied(v, unit[..., nv:, :])
    places = flown(INTEGRATORS[integrator], chain.flight, chain.move, chain.accelerate, *start, step)
    change = np.concatenate([place.change for place in places], axis=-2)
    return places[0].value, places[1].value, change[..., : 2 * nv], change[..., 2 * nv :]


class _Chain:
    """What an integrator asks for."""

    def __init__(self, kernel: Kernel, tau: Floats) -> None:
        self.kernel, self.mechanism, self.tau = kernel, kernel.mechanism, tau
        flight = flight_of(kernel.mechanism)
        self.flight = None if flight is None else VariedFlight(flight, tau, self._centre)

    def _centre(self, q: Varied, v: Varied) -> tuple[Varied, Varied]:
        """The centre of mass and its velocity at a state."""
        assert self.flight is not None
        c, h, c_by_q, h_by_q, h_by_v = centre_kernel(self.mechanism)(q.value, v.value)
        per_mass = 1.0 / self.flight.flight.mass
        u_change = per_mass * (h_by_q[..., 3:, :] @ q.change + h_by_v[..., 3:, :] @ v.change)
        return Varied(c, c_by_q @ q.change), Varied(per_mass * h[..., 3:], u_change)

    def accelerate(self, _: float, q: Varied, v: Varied) -> Any:
        """The acceleration at a place."""
        a, by_q, by_v, by_tau = self.kernel(q.value, v.value, self.tau)
        change = np.concatenate([by_q, by_v], axis=-1) @ np.concatenate([q.change, v.change], axis=-2)
        change[..., 2 * self.mechanism.nv :] += by_tau
        found = Varied(a, change)
        return found if self.flight is None else Beside(found, self.flight.pushed(q, v, found))

    def move(self, q: Varied, way: Varied) -> Varied:
        """The configuration a motion leads to."""
        change = q.change + way.change
        for joint in self.mechanism.movable_joints:
            if not joint.type.rate_is_v:
                part = self.mechanism.v_slices[joint.name]
                here, moved = q.change[..., part, :], way.change[..., part, :]
                change[..., part, :] = _composed(joint, way.value[..., part], here, moved)
        return Varied(integrate(self.mechanism, q.value, way.value), change)


def _composed(joint: Joint, way: Floats, change: Floats, way_change: Floats) -> Floats:
    """The change of q (+) u for a joint whose motions compose, from those of q and u, (..., nv, directions)."""
    turns = np.abs(way[..., joint.turns]).max(axis=-1, initial=0.0, keepdims=True)
    way = np.where(turns > LARGEST_TURN, np.nan, way)  # as the kernels of steps have it
    ad = np.einsum("...k,kij->...ij", way, _algebra(joint))
    turn = float(turns.max(initial=0.0, where=turns <= LARGEST_TURN))
    carried = moved = term = np.eye(joint.nv)
    k, size = 0, 1.0  # of Ad(exp(-S u)) and of its mean along the way, the terms (-ad)^k / k! and (-ad)^k / (k + 1)!
    while size > _LEAST_TERM:
        k += 1
        term = -ad @ term / k
        carried, moved = carried + term, moved + term / (k + 1)
        size *= max(2.0 * turn, _LEAST_TERM) / k  # of turns; shifts occur once in a term
    return carried @ change + moved @ way_change


@kept_with_first
def centre_kernel(mechanism: Mechanism) -> Kernel:
    """The centre of mass and the momentum of a mechanism, and how they change with its state."""
    return compile(mechanism, "kinematics", outputs=("com", "momentum", "dcom/dq", "dmomentum/dq", "dmomentum/dv"))


@kept_with_first
def _algebra(joint: Joint) -> Floats:
    """Brackets of a joint's motions: [S_k, S_j] = sum over i of S_i found[k, i, j], shape (nv, nv, nv)."""
    S = joint.constant_subspace
    assert S is not None  # only kinds whose motions are a group have coordinates other than sums of velocities
    read = left_inverse(S)
    return np.array([[read @ bracket(a, b) for b in S.T] for a in S.T]).transpose(0, 2, 1)
