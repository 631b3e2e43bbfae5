"""All joints of a tree at a state of numbers, in a few operations on stacked arrays.

Where a joint turns about one axis or slides along it, what carries twists to its child is affine in three numbers,

    Ad_child_parent = K_0 + cos q K_1 + sin q K_2 + q K_3

and the matrices K are had once a mechanism by asking the joint's own pose for them. Other joints are asked at every
state. Twists follow from the base outward.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.motion.kinematics import child_twist, joint_motion
from factorgraph_dyn.spatial import Array, Floats


class TreeMotion(NamedTuple):
    """The joints of a tree at (q, v), from the base outward, each in its child's frame.

    Attributes:
        Ad: What carries twists from parents to children, shape (joints, 6, 6).
        S: Motion subspaces, shape (6, nv) each.
        own: What the joints add to twists, S v, shape (joints, 6).
        rates: The products dS/dt v by joint, where subspaces vary.
        V: Twists of the base and of the children, shape (1 + joints, 6).
    """

    Ad: Floats
    S: Sequence[Array]
    own: Floats
    rates: dict[int, Floats]
    V: Floats


class _Coordinate:
    """A coordinate whose cosine and sine are numbers of their own."""

    __slots__ = ("cosine", "sine", "value")

    def __init__(self, cosine: float, sine: float, value: float) -> None:
        self.cosine, self.sine, self.value = cosine, sine, value

    def __rmul__(self, number: Any) -> Any:
        return number * self.value

    def cos(self) -> float:
        return self.cosine

    def sin(self) -> float:
        return self.sine


class Tree:
    """What of a mechanism's joints is the same at all states."""

    def __init__(self, mechanism: Mechanism) -> None:
        joints = mechanism.topology.outward
        places = {mechanism.base: 0} | {joint.child: k for k, joint in enumerate(joints, start=1)}
        self._parents = [places[joint.parent] for joint in joints]
        self._S = [_subspace(joint) for joint in joints]
        affine = [k for k, joint in enumerate(joints) if joint.nq == 1 and joint.type.pose_is_affine]
        self._affine = slice(None) if len(affine) == len(joints) else np.array(affine, dtype=int)
        self._q, self._v = (
            np.array([slices[joints[k].name].start for k in affine], dtype=int)
            for slices in (mechanism.q_slices, mechanism.v_slices)
        )
        self._K = np.array([_coefficients(joints[k]) for k in affine]).reshape(len(affine), 36, 4)
        self._axes = np.array([self._S[k] for k in affine]).reshape(len(affine), 6)
        self._Ad, self._own = np.zeros((len(joints), 6, 6)), np.zeros((len(joints), 6))
        self._others = []
        for k, joint in enumerate(joints):
            if not joint.nq:
                self._Ad[k] = spatial.inverse_adjoint(joint.pose(np.zeros(0)))
            elif k not in affine:
                self._others.append((k, joint, mechanism.q_slices[joint.name], mechanism.v_slices[joint.name]))

    def at(self, q: Floats, v: Floats) -> TreeMotion:
        """The joints at a state."""
        Ad, own, S, rates = self._Ad.copy(), self._own.copy(), [*self._S], {}
        x = q[self._q]
        shares = np.empty((4, len(x)))
        shares[0], shares[3] = 1.0, x
        np.cos(x, out=shares[1])
        np.sin(x, out=shares[2])
        Ad[self._affine] = (self._K @ shares.T[:, :, None]).reshape(-1, 6, 6)
        own[self._affine] = self._axes * v[self._v, None]
        for k, joint, q_slice, v_slice in self._others:
            T_parent_child, S[k] = joint_motion(joint, q[q_slice])
            Ad[k], own[k] = spatial.inverse_adjoint(T_parent_child), S[k] @ v[v_slice]
            rate = joint.type.subspace_rate(S[k], v[v_slice])
            if rate is not None:
                rates[k] = rate
        V = np.zeros((1 + len(Ad), 6))
        for k, parent in enumerate(self._parents):
            V[k + 1] = child_twist(Ad[k], own[k], V[parent])
        return TreeMotion(Ad, S, own, rates, V)


@kept_with_first
def tree_of(mechanism: Mechanism) -> Tree:
    """What of a mechanism's joints is the same at all states."""
    return Tree(mechanism)


def _subspace(joint: Joint) -> Floats:
    """The subspace of a joint, zeros where it varies."""
    S = joint.constant_subspace
    return np.zeros((6, joint.nv)) if S is None else S


def _coefficients(joint: Joint) -> Floats:
    """The matrices K of a joint, shape (6, 6, 4)."""
    # As far as the joint is from its parent: of less, digits would be lost beside that.
    away = float(np.linalg.norm(joint.placement[:3, 3])) or 1.0
    corners = np.diag([1.0, 1.0, 1.0, away])
    K = np.array([_adjoint(joint, _Coordinate(*corner)) for corner in corners[:, 1:].tolist()])
    K[1:] -= K[0]
    K[3] /= away
    return np.moveaxis(K, 0, -1)


def _adjoint(joint: Joint, coordinate: _Coordinate) -> Floats:
    q = np.array([coordinate], dtype=object)
    return spatial.inverse_adjoint(joint.pose(q)).astype(np.float64)
