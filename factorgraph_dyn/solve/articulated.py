"""Articulated bodies, read off the elimination of the dynamics graph in the aba ordering.

Just before the wrench F_j of a joint is eliminated, everything further out has been, and one factor of six
rows is left on the wrench and the acceleration of the joint's child c:

    T (F_j - P_c A_c) = T z_c        so that   F_j = P_c A_c + z_c

P_c is the articulated-body inertia of the link with all that it carries, z_c the wrench that its motors,
velocities and outside forces ask for. With it the joint's own equation gives

    D_j = S_j^T P_c S_j + armature     G_j = P_c S_j D_j^-1     a_j = D_j^-1 (tau_j - S_j^T z_c) - G_j^T Ad_cp A_p

Another right-hand side changes only z: it is gathered inward, and accelerations are scattered outward, for all
columns at once. (The conditionals of the Bayes net hold the same facts mixed with the parent's balance, because
orthogonal elimination mixes rows; the free answer is back-substituted from them.)

Elimination runs once a state, a sweep over all columns once a set of inputs.
Sources: Featherstone (2008), chapter 7; Jain, Robot and Multibody Dynamics (2011), chapters 6 and 7.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import gtsam
import numpy as np

from factorgraph_dyn.equations import Known, State, Variable, dynamics_graph
from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.model.units import natural
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import aba
from factorgraph_dyn.solve import singularity
from factorgraph_dyn.solve.elimination import BayesNet, eliminate
from factorgraph_dyn.solve.scaling import graph_units, scale_graph
from factorgraph_dyn.spatial import Floats

SUSPICIOUS_INERTIA = 1e-7  # of the largest joint inertia; where one is smaller the tree is looked at closely


class ArticulatedJoint(NamedTuple):
    """A joint with all that it carries.

    Attributes:
        parent: Index of the parent link's joint in the list from the base outward; -1 at the base.
        entries: Where the joint lies in v.
        Ad_child_parent: shape (6, 6).
        S: Motion subspace, shape (6, k).
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
    P: Floats
    D: Floats
    D_inverse: Floats
    G: Floats


@dataclass(frozen=True, eq=False)
class ArticulatedBodies:
    """A tree at a state after elimination.

    Attributes:
        joints: Every joint, fixed ones included, from the base outward.
        net: The Bayes net of forward dynamics without inputs, in the aba ordering and units of the mechanism.
    """

    state: State
    joints: tuple[ArticulatedJoint, ...]
    net: BayesNet

    @cached_property
    def free(self) -> Floats:
        """Joint accelerations without inputs: gravity, velocities, losses, shape (nv,)."""
        mechanism = self.state.mechanism
        a, units = np.empty(mechanism.nv), graph_units(mechanism).variables
        for variable, value in self.net.values().items():
            if variable.kind == "a":
                a[mechanism.v_slices[variable.owner]] = value * units["a", variable.owner]
        return a

    def respond(self, inputs: Inputs) -> Floats:
        """Joint accelerations for unit inputs, M^-1 B, shape (nv, m): one sweep inward, one outward."""
        joints, m = self.joints, inputs.size
        index = {joint.child: i for i, joint in enumerate(joints)}
        z: list[Floats | None] = [None] * len(joints)  # None while nothing has pushed
        for link, W in inputs.wrenches.items():
            if link in index:  # the base does not move
                z[index[link]] = -W
        pushed = np.abs(inputs.torques).max(axis=1, initial=0.0).tolist()
        nu = np.zeros((self.state.mechanism.nv, m))
        for i in range(len(joints) - 1, -1, -1):
            joint, z_here = joints[i], z[i]
            driven = any(pushed[joint.entries])
            if z_here is None and not driven:
                continue
            epsilon = inputs.torques[joint.entries]
            if z_here is not None:
                epsilon = epsilon - joint.S.T @ z_here
            nu[joint.entries] = joint.D_inverse @ epsilon
            if joint.parent >= 0:
                passed = joint.G @ epsilon if z_here is None else z_here + joint.G @ epsilon
                passed = joint.Ad_child_parent.T @ passed
                before = z[joint.parent]
                z[joint.parent] = passed if before is None else before + passed
        return self._scatter(nu)

    def _scatter(self, nu: Floats) -> Floats:
        """Joint accelerations from what each joint would do if its parent stood still; overwrites nu."""
        A: list[Floats | None] = []
        for joint in self.joints:
            a = nu[joint.entries]
            A_moved = None
            if joint.parent >= 0 and (A_parent := A[joint.parent]) is not None:
                A_moved = joint.Ad_child_parent @ A_parent
                a -= joint.G.T @ A_moved
            if len(a):
                A.append(joint.S @ a if A_moved is None else A_moved + joint.S @ a)
            else:
                A.append(A_moved)
        return nu


def articulated_bodies(state: State) -> ArticulatedBodies:
    """The articulated bodies of a tree at a state.

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.
    """
    mechanism = state.mechanism
    graph = dynamics_graph(state, Known.forward(np.zeros(mechanism.nv)))
    units = graph_units(mechanism)
    names = tuple(name for name in aba(mechanism) if name in graph.by_name)
    left: dict[str, tuple[Floats, Floats, Floats]] = {}

    def watch(variable: Variable, gathered: gtsam.GaussianFactorGraph) -> None:
        if variable.kind == "F":
            child = mechanism.joint_by_name[variable.owner].child
            T, TP = _blocks_left(variable, child, graph.variables, gathered)
            scale = units.variables["F", variable.owner][:, None] / units.variables["A", child]
            left[variable.owner] = T, TP, scale

    scaled = scale_graph(graph, units)
    try:
        net = eliminate(scaled, Ordering("aba", names), watch)
        joints = _joints(state, _inertias(left))
    except (SingularSystemError, np.linalg.LinAlgError) as error:
        singularity.check_inertia(state, np.ones(mechanism.nv, dtype=bool))
        raise _not_regular(mechanism) from error
    return ArticulatedBodies(state, joints, net)


def _blocks_left(
    wrench: Variable, link: str, variables: tuple[Variable, ...], gathered: gtsam.GaussianFactorGraph
) -> tuple[Floats, Floats]:
    """The blocks T and -T P of the one factor that holds a wrench and the acceleration of its link."""
    for index in reversed(range(gathered.size())):  # what elimination leaves comes last
        factor = gathered.at(index)
        at_wrench = at_link = -1
        for place, key in enumerate(factor.keys()):
            variable = variables[key]
            if variable is wrench:
                at_wrench = 6 * place
            elif variable.kind == "A" and variable.owner == link:
                at_link = 6 * place
        if at_link >= 0:
            T, _ = factor.jacobian()
            return T[:, at_wrench : at_wrench + 6], T[:, at_link : at_link + 6]
    raise AssertionError("this elimination does not follow the aba ordering")


def _inertias(left: Mapping[str, tuple[Floats, Floats, Floats]]) -> dict[str, Floats]:
    """The articulated-body inertia beyond every joint, all solved for at once, shape (6, 6) each.

    Args:
        left: The blocks T and -T P by joint name, and the units of P.
    """
    if not left:
        return {}
    T = np.array([block for block, _, _ in left.values()])
    P = -np.linalg.solve(T, np.array([block for _, block, _ in left.values()]))
    P *= np.array([units for _, _, units in left.values()])
    return dict(zip(left, 0.5 * (P + P.transpose(0, 2, 1)), strict=True))


def _joints(state: State, inertias: Mapping[str, Floats]) -> tuple[ArticulatedJoint, ...]:
    """Every joint's share of the answer, computed for all joints of as many freedoms at once."""
    mechanism = state.mechanism
    outward = mechanism.topology.outward
    index = {joint.child: i for i, joint in enumerate(outward)}
    sizes = defaultdict(list)
    for joint in outward:
        sizes[joint.nv].append(joint)
    joints: dict[str, ArticulatedJoint] = {}
    felt = {}
    for nv, alike in sizes.items():
        S = np.array([state.joints[joint.name].S for joint in alike])
        P = np.array([inertias[joint.name] for joint in alike])
        U = P @ S
        D = S.transpose(0, 2, 1) @ U
        D[:, range(nv), range(nv)] += np.array([joint.armature for joint in alike])
        felt[nv] = (alike, S, P, U, D)
    _look_at_small_inertias(state, [(alike, D) for alike, *_, D in felt.values() if D.size])
    for alike, S, P, U, D in felt.values():
        D_inverse = small_inverse(D)
        G = U @ D_inverse
        for k, joint in enumerate(alike):
            joints[joint.name] = ArticulatedJoint(
                joint.name,
                joint.child,
                index.get(joint.parent, -1),
                mechanism.v_slices[joint.name],
                state.joints[joint.name].Ad_child_parent,
                S[k],
                P[k],
                D[k],
                D_inverse[k],
                G[k],
            )
    return tuple(joints[joint.name] for joint in outward)


def small_inverse(D: Floats) -> Floats:
    """The inverse of joint inertias (..., k, k); most joints have one freedom, for which dividing is cheaper.

    Where freedoms turn and slide the inertias are scaled to a diagonal of ones first.
    """
    if D.shape[-1] <= 1:
        return np.asarray(1.0 / D, dtype=np.float64)
    balanced, scale = _balanced(D)
    return np.asarray(np.linalg.inv(balanced) * scale, dtype=np.float64)


def _balanced(D: Floats) -> tuple[Floats, Floats]:
    """Inertias (..., k, k) with a diagonal of ones, and what each entry was multiplied by."""
    diagonal = np.diagonal(D, axis1=-2, axis2=-1)
    scale = 1.0 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    both = scale[..., :, None] * scale[..., None, :]
    return D * both, both


def _look_at_small_inertias(state: State, felt: list[tuple[list[Joint], Floats]]) -> None:
    """Raise a SingularSystemError if an inertia is suspiciously small and the tree, looked at closely, singular."""
    units, slices = natural(state.mechanism).v, state.mechanism.v_slices
    least, largest, regular = np.inf, 0.0, True
    for joints, D in felt:
        scale = np.array([units[slices[joint.name]] for joint in joints])
        sizes = np.diagonal(D, axis1=1, axis2=2) * scale**2
        share = 1.0 if D.shape[-1] == 1 else float(np.linalg.eigvalsh(_balanced(D)[0]).min())
        least, largest = min(least, float(sizes.min()) * share), max(largest, float(sizes.max()))
        regular &= bool(share > 0 and sizes.min() > 0)
    if not least > SUSPICIOUS_INERTIA * largest:  # nan must not hide
        singularity.check_inertia(state, np.ones(state.mechanism.nv, dtype=bool))
    if not regular:
        raise _not_regular(state.mechanism)


def _not_regular(mechanism: Mechanism) -> SingularSystemError:
    return SingularSystemError(
        f"The mass matrix of mechanism {mechanism.name!r} is not positive definite at this q. Check the masses "
        "and inertias of its links (see mechanism.warnings)."
    )
