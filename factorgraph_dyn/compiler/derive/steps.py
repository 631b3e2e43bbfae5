"""One integration step with its derivatives: what iLQR and MPC call.

Takes a tree and an integrator; gives a callable

    (q, v, tau, step)  ->  q', v', A, B             A (2 nv, 2 nv), B (2 nv, nv), any leading batch axes

with [q'; v'] changed by A [q; v] + B tau to first order: changes of q and q' are along velocities, as `fgd.integrate`
moves, so that A is square where quaternions make q longer than v. The integrator's own function
(`motion.integrators`) is called with arrays that carry their changes along; accelerations and their derivatives come
from one kernel, in machine code. Where a joint's motions compose, q (+) u, the change follows the exponential map,

    (q (+) u)' = Ad(exp(-S u)) q' + (1 - ad/2! + ad^2/3! - ...) u'            ad of S u

The work runs once a mechanism; a step costs one call of the kernel a stage and some products of matrices.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.compiler.kernel.compile import compile
from factorgraph_dyn.compiler.kernel.kernel import Kernel
from factorgraph_dyn.errors import CompileError, InputError
from factorgraph_dyn.model import Joint, Mechanism, check_mechanism
from factorgraph_dyn.motion.integrators import INTEGRATORS
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.spatial import Floats, bracket

_OUTPUTS = ("a", "da/dq", "da/dv", "da/dtau")
_TERMS = 24  # of the series of the exponential map, enough for a turn of pi in one step
_LARGEST_TURN = np.pi


class Linearised(NamedTuple):
    """A step and its derivatives.

    Attributes:
        q, v: The next state, shapes (..., nq) and (..., nv).
        A: Its change with q and v, shape (..., 2 nv, 2 nv).
        B: Its change with tau, shape (..., 2 nv, nv).
    """

    q: Floats
    v: Floats
    A: Floats
    B: Floats


@dataclass(frozen=True, eq=False)
class StepKernel:
    """An integration step of a mechanism, with derivatives.

    Attributes:
        mechanism: What moves.
        integrator: "semi_implicit" or "rk4".
        kernel: Gives accelerations and their derivatives.
    """

    mechanism: Mechanism
    integrator: str
    kernel: Kernel

    def __repr__(self) -> str:
        return f"<StepKernel {self.integrator} of {self.mechanism.name!r}: (q, v, tau, step) -> q, v, A, B>"

    def __call__(self, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, step: float) -> Linearised:
        """The next state and how it changes with the state and the torques.

        Args:
            q, v, tau: Coordinates, velocities and torques, which are held over the step; leading axes broadcast.
            step: s.
        """
        nv, (q, v, tau) = self.mechanism.nv, self._arrays(q, v, tau)
        if not (np.isscalar(step) and np.isfinite(step)):
            raise InputError(f"step is {step!r}; it must be a number of seconds.")
        unit = np.broadcast_to(np.eye(3 * nv), (*v.shape[:-1], 3 * nv, 3 * nv))
        start = Varied(q, unit[..., :nv, :]), Varied(v, unit[..., nv : 2 * nv, :])
        torque = Varied(tau, unit[..., 2 * nv :, :])
        integrator: Any = INTEGRATORS[self.integrator]  # written for whatever adds and multiplies
        places = integrator(self._move, lambda _, q, v: self._accelerate(q, v, torque), *start, step)
        change = np.concatenate([place.change for place in places], axis=-2)
        return Linearised(places[0].value, places[1].value, change[..., : 2 * nv], change[..., 2 * nv :])

    def _arrays(self, *given: npt.ArrayLike) -> list[Floats]:
        """q, v and tau with the same leading axes."""
        arrays = [np.asarray(value, dtype=np.float64) for value in given]
        sizes = (self.mechanism.nq, self.mechanism.nv, self.mechanism.nv)
        for name, array, size in zip(("q", "v", "tau"), arrays, sizes, strict=True):
            if array.shape[-1:] != (size,):
                raise InputError(
                    f"{name} has shape {array.shape}; its last axis must have length {size} for mechanism "
                    f"{self.mechanism.name!r}, whose joints are {', '.join(self.mechanism.joint_names)}."
                )
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        return [np.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays]

    def _accelerate(self, q: Varied, v: Varied, tau: Varied) -> Varied:
        a, by_q, by_v, by_tau = self.kernel(q.value, v.value, tau.value)
        return Varied(a, by_q @ q.change + by_v @ v.change + by_tau @ tau.change)

    def _move(self, q: Varied, way: Varied) -> Varied:
        """The configuration a motion leads to."""
        change = q.change + way.change
        for joint in self.mechanism.movable_joints:
            if not joint.type.rate_is_v:
                part = self.mechanism.v_slices[joint.name]
                here, moved = q.change[..., part, :], way.change[..., part, :]
                change[..., part, :] = _composed(joint, way.value[..., part], here, moved)
        return Varied(integrate(self.mechanism, q.value, way.value), change)


class Varied:
    """An array (..., n) and its changes (..., n, directions)."""

    __slots__ = ("change", "value")
    __array_ufunc__ = None

    def __init__(self, value: Floats, change: Floats) -> None:
        self.value, self.change = value, change

    def __add__(self, other: Varied) -> Varied:
        return Varied(self.value + other.value, self.change + other.change)

    def __sub__(self, other: Varied) -> Varied:
        return Varied(self.value - other.value, self.change - other.change)

    def __mul__(self, factor: float) -> Varied:
        return Varied(factor * self.value, factor * self.change)

    __rmul__ = __mul__


def compile_step(mechanism: Mechanism, integrator: str = "semi_implicit") -> StepKernel:
    """One integration step of a tree with its derivatives by state and torque: ``step(q, v, tau, h) -> q, v, A, B``.

    Args:
        mechanism: A mechanism without loops and couplings.
        integrator: "semi_implicit" or "rk4", as in `fgd.rollout`.

    Raises:
        InputError: An integrator that there is not.
        CompileError: A mechanism with loops or couplings, or what `compile` raises.
    """
    check_choice(integrator, INTEGRATORS, "The integrator")
    if check_mechanism(mechanism).is_closed_kind:
        raise CompileError(
            f"Mechanism {mechanism.name!r} has loops or couplings: a step closes them again, and derivatives of "
            "that are not known here. Take outputs=('a', 'da/dq', 'da/dv', 'da/dtau') of fgd.compile along the closure."
        )
    return StepKernel(mechanism, integrator, compile(mechanism, "forward", outputs=_OUTPUTS))


def _composed(joint: Joint, way: Floats, change: Floats, way_change: Floats) -> Floats:
    """The change of q (+) u for a joint whose motions compose, from those of q and u, (..., nv, directions)."""
    if np.abs(way[..., joint.turns]).max(initial=0.0) > _LARGEST_TURN:
        raise InputError(f"Joint {joint.name!r} turns by more than half a turn in one step; take smaller steps.")
    ad = np.einsum("...k,kij->...ij", way, _algebra(joint))
    term_q, term_u = change, way_change
    moved = change + way_change
    for k in range(1, _TERMS):
        term_q, term_u = -ad @ term_q / k, -ad @ term_u / (k + 1)
        moved = moved + term_q + term_u
    return moved


def _algebra(joint: Joint) -> Floats:
    """Brackets of a joint's motions: [S_k, S_j] = sum over i of S_i found[k, i, j], shape (nv, nv, nv)."""
    S = joint.constant_subspace
    assert S is not None  # only kinds whose motions are a group have coordinates other than sums of velocities
    read = np.linalg.pinv(S)
    return np.array([[read @ bracket(a, b) for b in S.T] for a in S.T]).transpose(0, 2, 1)
