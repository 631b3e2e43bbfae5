"""Articulated bodies: the inertia of every link with all that it carries, and what any forces do to the tree.

The wrench that joint j must pass to its child c is F_j = P_c A_c + z_c: P_c is the articulated-body inertia of the link
with all beyond it, z_c the wrench that velocities, motors and outside forces ask for. Inward, with p the parent,

    D_j = S_j^T P_c S_j + armature     G_j = P_c S_j D_j^-1     P_p = I_p + sum of ``passed_inertia``

Right-hand sides change only z; they are gathered inward and scattered outward, all columns at once, with
epsilon_j = tau_j - S_j^T z_c and the part d_j of A_c that velocities (and gravity, on the base) bring:

    z_p += Ad_cp^T (z_c + G_j epsilon_j + P_c (1 - S_j G_j^T) d_j)
    a_j  = D_j^-1 epsilon_j - G_j^T (Ad_cp A_p + d_j)     A_c = Ad_cp A_p + d_j + S_j a_j

Eliminated in the aba ordering, the dynamics graph leaves T (F_j - P_c A_c) = T z_c before each wrench: the same P_c,
mixed with other rows by QR. The recursion runs once a state, a sweep once a set of inputs.
Sources: Featherstone (2008), chapter 7; Jain, Robot and Multibody Dynamics (2011), chapters 6 and 7.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State, dynamics_graph
from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.spatial import Floats

Invert = Callable[[int, Floats], Floats]  # of a joint's place from the base outward, and its D


class ArticulatedJoint(NamedTuple):
    """A joint with all that it carries.

    Attributes:
        parent: Index of the parent link's joint in the list from the base outward; -1 at the base.
        entries: Where the joint lies in v.
        Ad_child_parent: shape (6, 6).
        S: Motion subspace, shape (6, k).
        armature: Inertia of the motor, shape (k,).
        P: Articulated-body inertia of the child, shape (6, 6).
        D: Inertia that the motor feels, armature included, shape (k, k).
        D_inverse: Its inverse, shape (k, k).
        G: The gain P S D^-1, shape (6, k).
    """

    name: str
    child: str
    parent: int
    entries: slice
    Ad_child_parent: Floats
    S: Floats
    armature: Floats
    P: Floats
    D: Floats
    D_inverse: Floats
    G: Floats

    def passed_inertia(self) -> Floats:
        """What the parent feels of P through the joint, shape (6, 6).

        It is Ad^T (P - G D G^T) Ad, where a heavy child leaves rounding behind that is large for a light parent. As a
        sum of squares it leaves none:

            L^T P L + K^T armature K,     K = G^T Ad,   L = Ad - S K
        """
        K = self.G.T @ self.Ad_child_parent
        L = self.Ad_child_parent - self.S @ K
        passed: Floats = L.T @ self.P @ L + K.T @ (self.armature[:, None] * K)
        return passed

    def passed_wrench(self, drift: Floats) -> Floats:
        """The wrench P (1 - S G^T) d that a drift d of the child asks for, the same way, shape of d."""
        follows = self.G.T @ drift
        resisted = self.P @ (drift - self.S @ follows)
        passed: Floats = resisted + self.G @ (self.armature[:, None] * follows - self.S.T @ resisted)
        return passed


def articulated_joints(
    state: State, unknown: npt.NDArray[np.bool_] | None = None, invert: Invert | None = None
) -> tuple[ArticulatedJoint, ...]:
    """Every joint of a tree, fixed ones included, from the base outward.

    Args:
        state: The tree at a state.
        unknown: The entries of v that are free to accelerate, shape (nv,); the others have no column. All by default.
        invert: What inverts each D, from the tips to the base; ``small_inverse`` by default.

    Raises:
        LinAlgError: Some D is not positive definite.
    """
    mechanism = state.mechanism
    outward = mechanism.topology.outward
    index = {joint.child: i for i, joint in enumerate(outward)}
    inertia = [mechanism.link_by_name[joint.child].spatial_inertia for joint in outward]
    joints: list[ArticulatedJoint] = []
    for i in reversed(range(len(outward))):
        joint, entries, P = outward[i], mechanism.v_slices[outward[i].name], inertia[i]
        S, armature, Ad = state.joints[joint.name].S, joint.armature, state.joints[joint.name].Ad_child_parent
        if unknown is not None:
            S, armature = S[:, unknown[entries]], armature[unknown[entries]]
        U = P @ S
        D = S.T @ U
        D[np.diag_indices(len(D))] += armature
        D_inverse = small_inverse(D) if invert is None else invert(i, D)
        parent = index.get(joint.parent, -1)
        G = U @ D_inverse
        here = ArticulatedJoint(joint.name, joint.child, parent, entries, Ad, S, armature, P, D, D_inverse, G)
        joints.append(here)
        if parent >= 0:
            inertia[parent] = inertia[parent] + here.passed_inertia()
    return tuple(reversed(joints))


@dataclass(frozen=True, eq=False)
class ArticulatedBodies:
    """A tree at a state, ready for any right-hand side.

    Attributes:
        joints: Every joint, fixed ones included, from the base outward.
    """

    state: State
    joints: tuple[ArticulatedJoint, ...]

    @cached_property
    def free(self) -> Floats:
        """Joint accelerations without inputs: gravity, velocities, losses, shape (nv,).

        The graph's own right-hand sides are what is swept over the tree.
        """
        mechanism = self.state.mechanism
        graph = dynamics_graph(self.state, Known.forward(np.zeros(mechanism.nv)))
        rhs = {(factor.kind, factor.owner): factor.rhs[:, None] for factor in graph.factors}
        torques = np.zeros((mechanism.nv, 1))
        for joint in mechanism.movable_joints:
            torques[mechanism.v_slices[joint.name]] = rhs["torque", joint.name]
        z: list[Floats | None] = [-rhs["wrench", joint.child] for joint in self.joints]
        return self._swept(torques, z, [rhs["acceleration", joint.name] for joint in self.joints])[:, 0]

    def respond(self, inputs: Inputs) -> Floats:
        """Joint accelerations for unit inputs, M^-1 B, shape (nv, m)."""
        pushes = inputs.wrenches
        return self._swept(inputs.torques, [-pushes[j.child] if j.child in pushes else None for j in self.joints])

    def _swept(self, torques: Floats, z: list[Floats | None], drifts: Sequence[Floats] = ()) -> Floats:
        """Joint accelerations by one sweep inward and one outward, shape (nv, m).

        Args:
            torques: On the joints, shape (nv, m).
            z: Wrenches that each joint's child asks for, shape (6, m), None for nothing; used up.
            drifts: Accelerations of the children that no joint causes, shape (6, m); none by default.
        """
        pushed = np.abs(torques).max(axis=1, initial=0.0).tolist()
        a = np.zeros(torques.shape)
        for i in range(len(self.joints) - 1, -1, -1):
            joint, z_here = self.joints[i], z[i]
            if z_here is None and not any(pushed[joint.entries]):
                continue
            epsilon = torques[joint.entries]
            if z_here is not None:
                epsilon = epsilon - joint.S.T @ z_here
            a[joint.entries] = joint.D_inverse @ epsilon
            if joint.parent >= 0:
                passed = joint.G @ epsilon if z_here is None else z_here + joint.G @ epsilon
                if drifts:
                    passed = passed + joint.passed_wrench(drifts[i])
                passed, before = joint.Ad_child_parent.T @ passed, z[joint.parent]
                z[joint.parent] = passed if before is None else before + passed
        A: list[Floats | None] = []
        for i, joint in enumerate(self.joints):
            A_above = A[joint.parent] if joint.parent >= 0 else None
            carried = None if A_above is None else joint.Ad_child_parent @ A_above
            if drifts:
                carried = drifts[i] if carried is None else carried + drifts[i]
            here = a[joint.entries]
            if carried is not None:
                here -= joint.G.T @ carried
            if len(here):
                carried = joint.S @ here if carried is None else carried + joint.S @ here
            A.append(carried)
        return a


def small_inverse(D: Floats) -> Floats:
    """The inverse of a joint's inertia (k, k); most joints have one freedom, for which dividing is cheaper.

    Raises:
        LinAlgError: It is not positive definite.
    """
    if len(D) > 1:
        balanced, scale = balanced_inertia(D)
        root = np.linalg.inv(np.linalg.cholesky(balanced))
        return np.asarray((root.T @ root) * scale, dtype=np.float64)
    if len(D) and not D[0, 0] > 0:
        raise np.linalg.LinAlgError("a joint's inertia is not positive")
    return np.asarray(1.0 / D, dtype=np.float64)


def balanced_inertia(D: Floats) -> tuple[Floats, Floats]:
    """An inertia with a diagonal of ones, as its freedoms may turn and slide, and what entries were multiplied by."""
    diagonal = np.diag(D)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    both = np.outer(scale, scale)
    return D * both, both
