"""Newton and Euler in plain floats, at many states at once: what kernels are proved against.

Takes a mechanism as the user gave it and states; gives what joint accelerations ask for. Nothing here knows of
tapes, regrouped inertias or other frames, and no equation is solved: accelerations go outward by the acceleration
equations, wrenches inward by the balances of the links,

    A_c = Ad_cp A_p + S_j a_j + ad(V_c) S_j v_j + dS_j v_j
    F_j = G_c A_c - ad(V_c)^T G_c V_c - F_ext + sum over joints k out of c of Ad_k^T F_k
    tau_j = S_j^T F_j + armature a_j + losses

and loops and couplings say by how much their own acceleration equations are missed. Beside every value goes a size:
the root of the sum of squares of the norms of the terms it is made of, which is what rounding is measured by: it adds
up as chance does, and turns keep norms.

Arrays have the axes (states, columns, entries); the columns are right-hand sides. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import (
    adjoints,
    block_norms,
    bracket_sizes,
    brackets,
    column_norms,
    dual_brackets,
    dual_sizes,
    dual_terms,
    inverse_adjoints,
    inverse_poses,
    norms,
    shifted_sizes,
    shifted_wrench_sizes,
    skews,
    transposed,
)
from factorgraph_dyn.compiler.proof.numbers import Numbers
from factorgraph_dyn.model import Joint, Loop, Mechanism
from factorgraph_dyn.model.sizes.lengths import reaches
from factorgraph_dyn.motion.kinematics import joint_motion
from factorgraph_dyn.spatial import Floats, left_inverse

LEVERS = 0.1  # of a link's reach: so much of a lever has what acts on the link, if only up to rounding
_CLOSURE_ROUNDING = 1e-12  # of the largest terms that a joint brings into closure


@dataclass(frozen=True, eq=False)
class JointAtStates:
    """A joint of the tree, or a loop, at many states; everything in the child's frame.

    Attributes:
        Ad: Carries twists from the parent to the child, shape (states, 6, 6).
        S: Motion subspace, shape (states, 6, nv).
        bias: Acceleration that the velocities make, shape (states, 6).
        bias_size: Sizes of its terms: of loops, of the velocities whose difference their own is, shape (states, 2).
        lever: Distance of the frames, at least a part of the parent's reach, shape (states,); sizes are shifted by it.
    """

    name: str
    parent: str
    child: str
    Ad: Floats
    S: Floats
    bias: Floats
    bias_size: Floats
    lever: Floats


@dataclass(frozen=True, eq=False)
class Response:
    """What accelerations ask for; sizes have a part for moments and turns and one for forces and shifts.

    Attributes:
        tau, tau_size: Torques, shape (states, columns, nv), and the sizes of their terms.
        A, A_size: Link accelerations by link, shapes (states, columns, 6) and (states, columns, 2).
        F, F_size: Joint wrenches by joint.
        missed, missed_size: By how much closure is missed, shape (states, columns, rows).
        loads: Wrenches from outside that were acting.
        still: Whether gravity, velocities and losses were left out.
    """

    tau: Floats
    tau_size: Floats
    A: Mapping[str, Floats]
    A_size: Mapping[str, Floats]
    F: Mapping[str, Floats]
    F_size: Mapping[str, Floats]
    missed: Floats
    missed_size: Floats
    loads: Loads
    still: bool


@dataclass(frozen=True, eq=False)
class Loads:
    """Wrenches on links from outside, in their frames, shapes (states, columns, 6) and (states, columns, 2)."""

    wrench: dict[str, Any] = field(default_factory=dict)
    size: dict[str, Any] = field(default_factory=dict)

    def add(self, link: str, wrench: Floats, size: Floats | None = None) -> None:
        """Put one more wrench on a link; its size is its own unless it is said."""
        self.wrench[link] = self.wrench.get(link, 0.0) + wrench
        self.size[link] = np.hypot(self.size.get(link, 0.0), norms(wrench) if size is None else size)


class ManyStates:
    """A mechanism at many states.

    Attributes:
        V, V_size: Twists of the links by name, shapes (states, 6) and (states, 2).
        joints, loops: What moves, by name, from the base outward.
        directions: What each loop constrains, shape (states, 6, rows), lengths in the given unit.
        slip: How the sides of each loop move against each other, shape (states, 6).
        losses: Torques that springs, damping and friction take, shape (states, nv).
        numbers: Inertias, effects of joints and gravity, which may differ from state to state.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        q: Floats,
        v: Floats,
        length: float,
        numbers: Numbers | None = None,
        near: ManyStates | None = None,
    ) -> None:
        """Evaluate the states.

        Args:
            mechanism: The mechanism.
            q, v: The states, shapes (states, nq) and (states, nv).
            length: The unit of lengths where directions of loops are taken.
            numbers: What the states bring along of inertias and the like.
            near: States to which these are close, once or several times over: what jumps, as the signs of
                friction and the directions of loops may, is taken from there.
        """
        self.mechanism, self.q, self.v, self.near = mechanism, q, v, near
        self.numbers = Numbers(mechanism) if numbers is None else numbers
        self.unit = np.array([1.0, 1.0, 1.0, length, length, length])
        self.states = len(q)
        self.V: dict[str, Floats] = {mechanism.base: np.zeros((self.states, 6))}
        self.V_size: dict[str, Floats] = {mechanism.base: np.zeros((self.states, 2))}
        self.poses: dict[str, Floats] = {mechanism.base: np.broadcast_to(np.eye(4), (self.states, 4, 4))}
        self.joints: dict[str, JointAtStates] = {}
        self._least_levers = {name: LEVERS * reach for name, reach in reaches(mechanism).items()}
        self._least_levers[mechanism.base] = 0.0  # no balance is about it
        for joint in mechanism.topology.outward:
            self._add(joint)
        self.directions: dict[str, Floats] = {}
        self.slip: dict[str, Floats] = {}
        self.loops = {loop.name: self._closed(loop) for loop in mechanism.loops}
        self.losses = self._losses()

    def _add(self, joint: Joint) -> None:
        mechanism = self.mechanism
        v = self.v[:, mechanism.v_slices[joint.name]]
        T, S = _motions(joint, self.q[:, mechanism.q_slices[joint.name]])
        Ad = inverse_adjoints(T)
        u = (S @ v[..., None])[..., 0]
        self.poses[joint.child] = self.poses[joint.parent] @ T
        V = (Ad @ self.V[joint.parent][..., None])[..., 0] + u
        lever = np.hypot(np.linalg.norm(T[:, :3, 3], axis=-1), self._least_levers[joint.parent])
        self.V[joint.child] = V
        self.V_size[joint.child] = np.hypot(shifted_sizes(self.V_size[joint.parent], lever), norms(u))
        bias = brackets(V, u) + _subspace_rates(joint, S, v)
        self.joints[joint.name] = JointAtStates(joint.name, joint.parent, joint.child, Ad, S, bias, norms(bias), lever)

    def _closed(self, loop: Loop) -> JointAtStates:
        """The loop joint in its successor's frame, moving as the links make it move."""
        T_child_parent = inverse_poses(self.poses[loop.successor]) @ self.poses[loop.predecessor]
        frame = self.poses[loop.predecessor] @ loop.predecessor_placement
        T_frame_child = inverse_poses(frame) @ self.poses[loop.successor] @ loop.successor_placement
        S_child = np.array([loop.type.subspace(loop.axes, loop.pitch, T) for T in T_frame_child])
        Ad_link_child = adjoints(np.asarray(loop.successor_placement)[None])[0]
        S, Ad = Ad_link_child @ S_child, adjoints(T_child_parent)
        slip = self.V[loop.successor] - (Ad @ self.V[loop.predecessor][..., None])[..., 0]
        # The joint's own velocity is read where it is, in its frame, as the graph does: so it is off the closure, too.
        seen = slip @ inverse_adjoints(np.asarray(loop.successor_placement)[None])[0].T
        v = (left_inverse(S_child) @ seen[..., None])[..., 0]
        u = (S @ v[..., None])[..., 0]
        bias = brackets(self.V[loop.successor], u) + _subspace_rates(loop, S_child, v) @ Ad_link_child.T
        lever = np.linalg.norm(T_child_parent[:, :3, 3], axis=-1)
        V_size = self.V_size[loop.successor]
        size = bracket_sizes(V_size, np.hypot(V_size, shifted_sizes(self.V_size[loop.predecessor], lever)))
        self.slip[loop.name] = slip
        self.directions[loop.name] = self._across(loop, S)
        return JointAtStates(loop.name, loop.predecessor, loop.successor, Ad, S, bias, size, lever)

    def _across(self, loop: Loop, S: Floats) -> Floats:
        """What a loop constrains, shape (states, 6, rows)."""
        unit = self.unit[:, None]
        if self.near is None:
            left, _, _ = np.linalg.svd(S / unit)
            return np.asarray(left[:, :, loop.nv :] / unit)
        C, S = self._of_near(self.near.directions[loop.name]) * unit, S / unit
        return np.asarray((C - S @ (np.linalg.pinv(S) @ C)) / unit)

    def _of_near(self, values: Floats) -> Floats:
        """Values of the near states, once for each of these."""
        return np.tile(values, (self.states // len(values), *[1] * (values.ndim - 1)))

    def slips(self) -> Floats:
        """By how much velocities miss loops and couplings, in their directions, shape (states, 1, rows)."""
        missed = [np.zeros((self.states, 1, 0))]
        missed += [self.slip[name][:, None] @ C for name, C in self.directions.items()]
        missed += [here - source for here, source in self._coupled(self.v[:, None])]
        return np.concatenate(missed, axis=-1)

    def _losses(self) -> Floats:
        mechanism = self.mechanism
        signs = np.sign(self.v if self.near is None else self._of_near(self.near.v))
        losses = np.zeros((self.states, mechanism.nv))
        for joint in mechanism.movable_joints:
            part = mechanism.v_slices[joint.name]
            v = self.v[:, part]
            damping, friction = (self.numbers.effect(kind, joint) for kind in ("damping", "friction"))
            losses[:, part] = damping * v + friction * signs[:, part]
            if joint.nq == joint.nv:
                losses[:, part] += joint.stiffness * (self.q[:, mechanism.q_slices[joint.name]] - joint.rest)
        return losses

    def response(self, a: Floats, *, still: bool = False, loads: Loads | None = None) -> Response:
        """What joint accelerations ask for, shape (states, columns, nv).

        Args:
            a: The accelerations.
            still: Whether gravity, velocities and losses are left out, so that the answer is linear in a.
            loads: Wrenches from outside.
        """
        loads = Loads() if loads is None else loads
        A, A_size = self._outward(a, still)
        F, F_size = self._inward(A, A_size, still, loads)
        mechanism = self.mechanism
        tau, tau_size = np.zeros(a.shape), np.zeros(a.shape)
        for joint in mechanism.movable_joints:
            here, part = self.joints[joint.name], mechanism.v_slices[joint.name]
            own = self.numbers.effect("armature", joint)[:, None] * a[..., part]
            tau[..., part] = F[joint.name] @ here.S + own
            tau_size[..., part] = F_size[joint.name] @ column_norms(here.S) + np.abs(own)
        if not still:
            tau += self.losses[:, None]
            tau_size = np.hypot(tau_size, self.losses[:, None])
        missed, missed_size = self._missed(a, A, still), self._missed_size(a, A_size, still)
        return Response(tau, tau_size, A, A_size, F, F_size, missed, missed_size, loads, still)

    def torque_terms(self, asked: Response) -> Floats:
        """What torques are summed from entry by entry in the links' frames, shape (states, columns, nv).

        The sizes of a response are norms, which know nothing of what a needle has along itself.
        """
        terms = {link: np.abs(wrench) for link, wrench in asked.loads.wrench.items()}
        tau = np.abs(asked.tau)
        for joint in reversed(self.joints.values()):
            G, V = self.numbers.inertia[joint.child], self.V[joint.child][:, None]
            here = np.abs(asked.A[joint.child]) @ np.abs(G) + terms.get(joint.child, 0.0)
            if not asked.still:
                here = here + dual_terms(V, V @ G)
            terms[joint.parent] = terms.get(joint.parent, 0.0) + here @ np.abs(joint.Ad)
            tau[..., self.mechanism.v_slices[joint.name]] += here @ np.abs(joint.S)
        return tau

    def mass_matrix(self) -> Floats:
        """The responses of the tree's torques to unit accelerations, shape (states, nv, nv).

        Every joint moves all that it carries as one body: M_kj = S_k^T F_j, F_j = G_carried S_j, carried to the base.
        """
        mechanism = self.mechanism
        M = np.zeros((self.states, mechanism.nv, mechanism.nv))
        G = dict(self.numbers.inertia)
        wrenches: dict[str, list[Floats]] = {link.name: [] for link in mechanism.links}
        carried: dict[str, list[int]] = {link.name: [] for link in mechanism.links}
        for joint in reversed(self.joints.values()):
            own = mechanism.v_slices[joint.name]
            F = np.concatenate([*wrenches[joint.child], G[joint.child] @ joint.S], axis=-1)
            reached = [*carried[joint.child], *range(own.start, own.stop)]
            felt = transposed(joint.S) @ F
            M[:, own, reached] = felt
            M[:, reached, own] = transposed(felt)
            Ad_back = transposed(joint.Ad)
            G[joint.parent] = G[joint.parent] + Ad_back @ G[joint.child] @ joint.Ad
            wrenches[joint.parent].append(Ad_back @ F)
            carried[joint.parent] += reached
        for part in mechanism.movable_joints:
            places = np.arange(mechanism.nv)[mechanism.v_slices[part.name]]
            M[:, places, places] += self.numbers.effect("armature", part)
        return M

    def closure_jacobian(self) -> tuple[Floats, Floats]:
        """The responses of what closure misses to unit accelerations, and their sizes, shape (states, rows, nv)."""
        nv = self.mechanism.nv
        if not self.mechanism.is_closed_kind:
            return np.zeros((self.states, 0, nv)), np.zeros((self.states, 0, nv))
        units = np.broadcast_to(np.eye(nv), (self.states, nv, nv))
        A, A_size = self._outward(units, still=True)
        missed, size = self._missed(units, A, still=True), self._missed_size(units, A_size, still=True)
        least = _CLOSURE_ROUNDING * size.max(axis=-1, keepdims=True, initial=0.0)
        return transposed(np.where(np.abs(missed) > least, missed, 0.0)), transposed(size)

    def _outward(self, a: Floats, still: bool) -> tuple[dict[str, Floats], dict[str, Floats]]:
        mechanism = self.mechanism
        start = np.zeros((*a.shape[:2], 6))
        if not still:
            start[..., 3:] = -self.numbers.gravity[:, None]
        A, A_size = {mechanism.base: start}, {mechanism.base: norms(start)}
        for joint in self.joints.values():
            own = a[..., mechanism.v_slices[joint.name]] @ transposed(joint.S)
            A[joint.child] = A[joint.parent] @ transposed(joint.Ad) + own
            A_size[joint.child] = np.hypot(shifted_sizes(A_size[joint.parent], joint.lever[:, None]), norms(own))
            if not still:
                A[joint.child] += joint.bias[:, None]
                A_size[joint.child] = np.hypot(A_size[joint.child], joint.bias_size[:, None])
        return A, A_size

    def _inward(
        self, A: dict[str, Floats], A_size: dict[str, Floats], still: bool, loads: Loads
    ) -> tuple[dict[str, Floats], dict[str, Floats]]:
        balance = {link: -wrench for link, wrench in loads.wrench.items()}
        balance_size = dict(loads.size)
        F: dict[str, Floats] = {}
        F_size: dict[str, Floats] = {}
        for joint in reversed(self.joints.values()):
            G = self.numbers.inertia[joint.child]
            g = block_norms(G)
            own, own_size = A[joint.child] @ G, A_size[joint.child] @ g
            if not still:
                V, V_size = self.V[joint.child][:, None], self.V_size[joint.child][:, None]
                own -= dual_brackets(V, V @ G)
                own_size = np.hypot(own_size, dual_sizes(V_size, V_size @ g))
            F[joint.name] = own + balance.get(joint.child, 0.0)
            F_size[joint.name] = np.hypot(own_size, balance_size.get(joint.child, 0.0))
            balance[joint.parent] = balance.get(joint.parent, 0.0) + F[joint.name] @ joint.Ad
            carried = shifted_wrench_sizes(F_size[joint.name], joint.lever[:, None])
            balance_size[joint.parent] = np.hypot(balance_size.get(joint.parent, 0.0), carried)
        return F, F_size

    def _missed(self, a: Floats, A: dict[str, Floats], still: bool) -> Floats:
        """By how much the acceleration equations of loops and couplings are missed, in their directions."""
        missed = [np.zeros((*a.shape[:2], 0))]
        for loop in self.loops.values():
            slip = A[loop.child] - A[loop.parent] @ transposed(loop.Ad)
            slip = slip if still else slip - loop.bias[:, None]
            missed.append(slip @ self.directions[loop.name])
        missed += [here - source for here, source in self._coupled(a)]
        return np.concatenate(missed, axis=-1)

    def _missed_size(self, a: Floats, A_size: dict[str, Floats], still: bool) -> Floats:
        """The sizes of the terms of `_missed`."""
        sizes = [np.zeros((*a.shape[:2], 0))]
        for loop in self.loops.values():
            size = np.hypot(A_size[loop.child], shifted_sizes(A_size[loop.parent], loop.lever[:, None]))
            size = size if still else np.hypot(size, loop.bias_size[:, None])
            sizes.append(size @ column_norms(self.directions[loop.name]))
        sizes += [np.abs(here) + np.abs(source) for here, source in self._coupled(a)]
        return np.concatenate(sizes, axis=-1)

    def _coupled(self, a: Floats) -> list[tuple[Floats, Floats]]:
        """The two sides of every coupling's equation a_j = ratio a_k."""
        slices = self.mechanism.v_slices
        return [(a[..., slices[c.joint]], c.ratio * a[..., slices[c.source]]) for c in self.mechanism.couplings]

    def beside_loop(self, name: str, sizes: Mapping[str, Floats]) -> Floats:
        """The sizes of the wrenches of joints that carry the links of a loop, as its child feels them."""
        loop, found = self.loops[name], np.zeros((self.states, 1, 2))
        for joint in self.joints.values():
            if joint.child == loop.child:
                found = np.hypot(found, sizes[joint.name])
            if joint.child == loop.parent:
                carried = shifted_wrench_sizes(sizes[joint.name], loop.lever[:, None])
                found = np.hypot(found, carried)
        return found

    def loop_loads(self, forces: Floats, sizes: Floats) -> tuple[Loads, dict[str, tuple[Floats, Floats]]]:
        """The loads on links, and the wrenches of loops with their sizes, of forces along what closure demands."""
        loads, wrenches, first = Loads(), {}, 0
        for loop in self.loops.values():
            C = self.directions[loop.name]
            part = slice(first, first + C.shape[-1])
            first = part.stop
            F = forces[..., part] @ transposed(C)
            F_size = sizes[..., part] @ transposed(column_norms(C))
            wrenches[loop.name] = F, F_size
            loads.add(loop.child, F, F_size)
            loads.add(loop.parent, -F @ loop.Ad, shifted_wrench_sizes(F_size, loop.lever[:, None]))
        return loads, wrenches


def _motions(joint: Joint, q: Floats) -> tuple[Floats, Floats]:
    """The poses T_parent_child and subspaces of a joint, shapes (states, 4, 4) and (states, 6, nv)."""
    S = joint.constant_subspace
    if S is not None and joint.nq == joint.nv == 1:
        return np.asarray(joint.placement) @ _screw_motions(S[:, 0], q[:, 0]), np.broadcast_to(S, (len(q), 6, 1))
    if joint.nv == 0:
        return np.broadcast_to(np.asarray(joint.placement), (len(q), 4, 4)), np.zeros((len(q), 6, 0))
    found = [joint_motion(joint, here) for here in q]
    return np.array([T for T, _ in found]), np.array([S for _, S in found])


def _screw_motions(screw: Floats, q: Floats) -> Floats:
    """The exponentials of a screw with a unit or no turn, shape (states, 4, 4)."""
    w, v = screw[:3], screw[3:]
    W = skews(w)
    c, s = 1.0 - np.cos(q)[:, None, None], np.sin(q)[:, None, None]
    T = np.zeros((len(q), 4, 4))
    T[:, :3, :3] = np.eye(3) + s * W + c * (W @ W)
    # The pitch is along the axis: v = pitch w, or w = 0, so that nothing turns it.
    T[:, :3, 3] = q[:, None] * v
    T[:, 3, 3] = 1.0
    return T


def _subspace_rates(part: Joint | Loop, S: Floats, v: Floats) -> Floats:
    """The products dS/dt v, shape (states, 6)."""
    if part.type.subspace_rate(S[0], v[0]) is None:
        return np.zeros((len(S), 6))
    return np.array([part.type.subspace_rate(*here) for here in zip(S, v, strict=True)])
