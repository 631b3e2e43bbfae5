"""Spatial operators: the mass matrix and its inverse as products of gathers and scatters over the tree.

Link quantities are stacked from the tips to the base (``links``), six numbers each, so that phi and psi are lower
triangular; joint quantities follow the mechanism's v. In link frames, with p the parent of link k:

    phi(p, k) = Ad_kp^T       carries wrenches inward; phi* carries twists outward
    E_phi has the blocks phi(p, k);     phi = (1 - E_phi)^-1;      H(k) = S_k^T;      M(k) = G_k
    E_psi has the blocks psi(p, k) = phi(p, k) tau_bar(k);         psi = (1 - E_psi)^-1

    R(k) = M(k) + sum phi(k, i) R(i) phi*(k, i)          Lyapunov: composite bodies
    P(k) = M(k) + sum psi(k, i) P(i) phi*(k, i)          Riccati: articulated bodies (``articulated``)
    D = H P H* + J     G = P H* D^-1     K = E_phi G     tau = G H     tau_bar = 1 - tau     P+ = tau_bar P

    mass matrix   H phi M phi* H* + J                     Newton-Euler factorisation
                = (1 + H phi K) D (1 + H phi K)*          innovations factorisation
    its inverse   (1 - H psi K)* D^-1 (1 - H psi K)
    det         = prod det D

J is the motors' armature, which the source leaves out; with it the two forms of the Riccati equation differ,
psi P psi* = psi P phi* - K J K*, and H psi M psi* H* = D - (1 - H psi K) J (1 - H psi K)*.
Bodies once a state; products take O(n).
Source: Jain, "Spatial Operator Algebra: 6. Mass Matrix Inverse" (2024), equation numbers of Robot and Multibody
Dynamics (2011).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import evaluate_state
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.solve.matrices.articulated import ArticulatedBodies, ArticulatedJoint
from factorgraph_dyn.solve.singularity import regular_bodies
from factorgraph_dyn.spatial import Floats, bracket
from factorgraph_dyn.textbook.operator_algebra import BlockOperator, Identity, Operator, Resolvent

Blocks = list[Floats]


def spatial_operators(mechanism: Mechanism, q: npt.ArrayLike) -> SpatialOperators:
    """The spatial operators of a mechanism's tree at a configuration.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.

    Examples:
        >>> arm, q = fgd.robots.puma560(), np.zeros(6)
        >>> operators = fgd.spatial_operators(arm, q)
        >>> np.allclose(operators.mass_matrix @ np.ones(6), fgd.mass_matrix(arm, q) @ np.ones(6))
        True
    """
    state = evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), np.zeros(mechanism.nv))
    return SpatialOperators(regular_bodies(state))


@dataclass(frozen=True, eq=False)
class SpatialOperators:
    """The operators of a tree at a configuration; each is an ``Operator`` with ``@``, ``.T`` and ``.dense()``.

    Examples:
        >>> operators = fgd.spatial_operators(fgd.robots.rrr(), np.zeros(3))
        >>> operators.phi.dense().shape
        (18, 18)
    """

    bodies: ArticulatedBodies

    def __repr__(self) -> str:
        return f"<SpatialOperators of {self.mechanism.name!r}: {len(self.joints)} joints, nv {self.mechanism.nv}>"

    @property
    def mechanism(self) -> Mechanism:
        """The tree."""
        return self.bodies.state.mechanism

    @cached_property
    def joints(self) -> tuple[ArticulatedJoint, ...]:
        """The joints from the tips to the base."""
        return self.bodies.joints[::-1]

    @cached_property
    def links(self) -> tuple[str, ...]:
        """Names of the moving links in the order of link quantities, tips first."""
        return tuple(joint.child for joint in self.joints)

    @cached_property
    def parents(self) -> tuple[int, ...]:
        """The place of each link's parent among ``links``; -1 for those on the base."""
        last = len(self.joints) - 1
        return tuple(last - joint.parent if joint.parent >= 0 else -1 for joint in self.joints)

    # ---- kinematics and bodies

    @cached_property
    def H(self) -> Operator:
        """The joint map matrices S^T, shape (nv, 6 n)."""
        return BlockOperator(
            (self.mechanism.nv, 6 * len(self.joints)),
            tuple((joint.entries, _link(k), joint.S.T) for k, joint in enumerate(self.joints)),
        )

    @cached_property
    def E_phi(self) -> BlockOperator:
        """The rigid-body transformations between neighbours, shape (6 n, 6 n)."""
        return self._between(self._phi)

    @cached_property
    def phi(self) -> Operator:
        """All rigid-body transformations: the resolvent of E_phi, shape (6 n, 6 n)."""
        return Resolvent(self.E_phi)

    @cached_property
    def M(self) -> Operator:
        """The links' spatial inertias, block diagonal, shape (6 n, 6 n)."""
        return self._links(self._inertias)

    @cached_property
    def J(self) -> Operator:
        """The motors' armature, diagonal, shape (nv, nv)."""
        return self._joints([np.diag(joint.armature) for joint in self.joints])

    @cached_property
    def R(self) -> Operator:
        """Composite-body inertias, block diagonal, shape (6 n, 6 n)."""
        return self._links(self.composite_inertias)

    @cached_property
    def composite_inertias(self) -> Blocks:
        """R(k) of each link by the Lyapunov recursion, shape (6, 6) each."""
        R = [G.copy() for G in self._inertias]
        for k, p in enumerate(self.parents):
            if p >= 0:
                R[p] += self._phi[k] @ R[k] @ self._phi[k].T
        return R

    # ---- articulated bodies

    @cached_property
    def P(self) -> Operator:
        """Articulated-body inertias, block diagonal, shape (6 n, 6 n)."""
        return self._links([joint.P for joint in self.joints])

    @cached_property
    def D(self) -> Operator:
        """What the motors feel, block diagonal, shape (nv, nv)."""
        return self._joints([joint.D for joint in self.joints])

    @cached_property
    def D_inverse(self) -> Operator:
        """The inverse of D, shape (nv, nv)."""
        return self._joints([joint.D_inverse for joint in self.joints])

    @cached_property
    def G(self) -> Operator:
        """The gains P H* D^-1, shape (6 n, nv)."""
        return BlockOperator(
            (6 * len(self.joints), self.mechanism.nv),
            tuple((_link(k), joint.entries, joint.G) for k, joint in enumerate(self.joints)),
        )

    @cached_property
    def K(self) -> Operator:
        """The gains seen by the parents, E_phi G, shape (6 n, nv)."""
        return BlockOperator(
            (6 * len(self.joints), self.mechanism.nv),
            tuple(
                (_link(p), joint.entries, self._phi[k] @ joint.G)
                for k, (p, joint) in enumerate(zip(self.parents, self.joints, strict=True))
                if p >= 0
            ),
        )

    @cached_property
    def tau(self) -> Operator:
        """The projection G H, block diagonal, shape (6 n, 6 n)."""
        return self._links([joint.G @ joint.S.T for joint in self.joints])

    @cached_property
    def tau_bar(self) -> Operator:
        """1 - G H, block diagonal, shape (6 n, 6 n)."""
        return self._links(self._tau_bar)

    @cached_property
    def P_plus(self) -> Operator:
        """What of P gets through the joint, tau_bar P, block diagonal, shape (6 n, 6 n)."""
        return self._links([bar @ joint.P for bar, joint in zip(self._tau_bar, self.joints, strict=True)])

    @cached_property
    def E_psi(self) -> BlockOperator:
        """The articulated-body transformations between neighbours, shape (6 n, 6 n)."""
        return self._between(self._psi)

    @cached_property
    def psi(self) -> Operator:
        """All articulated-body transformations: the resolvent of E_psi, shape (6 n, 6 n)."""
        return Resolvent(self.E_psi)

    # ---- the mass matrix

    @cached_property
    def joint_identity(self) -> Operator:
        """The identity on joint quantities, shape (nv, nv)."""
        return Identity(self.mechanism.nv)

    @cached_property
    def link_identity(self) -> Operator:
        """The identity on link quantities, shape (6 n, 6 n)."""
        return Identity(6 * len(self.joints))

    @cached_property
    def mass_matrix(self) -> Operator:
        """The mass matrix by its Newton-Euler factorisation, shape (nv, nv)."""
        return self.H @ self.phi @ self.M @ self.phi.T @ self.H.T + self.J

    @cached_property
    def innovations(self) -> Operator:
        """The factor 1 + H phi K with mass matrix = innovations D innovations*, shape (nv, nv)."""
        return self.joint_identity + self.H @ self.phi @ self.K

    @cached_property
    def inverse_innovations(self) -> Operator:
        """Its inverse 1 - H psi K, shape (nv, nv)."""
        return self.joint_identity - self.H @ self.psi @ self.K

    @cached_property
    def inverse_mass_matrix(self) -> Operator:
        """(1 - H psi K)* D^-1 (1 - H psi K), shape (nv, nv)."""
        return self.inverse_innovations.T @ self.D_inverse @ self.inverse_innovations

    @cached_property
    def fixman_potential(self) -> float:
        """log det of the mass matrix: the sum of log det D."""
        return float(sum(np.linalg.slogdet(joint.D)[1] for joint in self.joints if joint.D.size))

    @cached_property
    def upsilon(self) -> Blocks:
        """The diagonal blocks of psi* H* D^-1 H psi, from the base to the tips, shape (6, 6) each."""
        found: Blocks = [np.empty(0)] * len(self.joints)
        for k in reversed(range(len(self.joints))):
            joint, p = self.joints[k], self.parents[k]
            found[k] = joint.S @ joint.D_inverse @ joint.S.T
            if p >= 0:
                found[k] = found[k] + self._psi[k].T @ found[p] @ self._psi[k]
        return found

    @cached_property
    def fixman_gradient(self) -> Floats:
        """The rate of the Fixman potential along each entry of v, shape (nv,).

        With the parent p of link k and a freedom s of its joint,

            dU = -2 trace( ad_s^T P(k) psi*(p, k) upsilon(p) phi(p, k) )

        which for joints of one freedom is the source's 2 trace(P upsilon(k) s~); where the joint's axes turn with
        its own coordinates (universal joints) their rate dS adds 2 trace( dS^T (G - P psi* upsilon K) ).
        """
        gradient = np.zeros(self.mechanism.nv)
        for k, (joint, p) in enumerate(zip(self.joints, self.parents, strict=True)):
            outer = np.zeros((6, 6)) if p < 0 else joint.P @ self._psi[k].T @ self.upsilon[p] @ self._phi[k]
            for freedom in range(joint.S.shape[1]):
                s = joint.S[:, freedom]
                value = -2.0 * np.trace(_bracket_matrix(s).T @ outer)
                dS = self._subspace_rate(joint, freedom)
                if dS is not None:
                    value += 2.0 * np.trace(dS.T @ (joint.G - outer @ joint.G))
                gradient[joint.entries.start + freedom] = value
        return gradient

    # ---- blocks

    @cached_property
    def _phi(self) -> Blocks:
        return [joint.Ad_child_parent.T for joint in self.joints]

    @cached_property
    def _tau_bar(self) -> Blocks:
        return [np.eye(6) - joint.G @ joint.S.T for joint in self.joints]

    @cached_property
    def _psi(self) -> Blocks:
        return [phi @ bar for phi, bar in zip(self._phi, self._tau_bar, strict=True)]

    @cached_property
    def _inertias(self) -> Blocks:
        return [self.mechanism.link_by_name[link].spatial_inertia for link in self.links]

    def _links(self, blocks: Blocks) -> Operator:
        size = 6 * len(self.joints)
        return BlockOperator((size, size), tuple((_link(k), _link(k), block) for k, block in enumerate(blocks)))

    def _joints(self, blocks: Blocks) -> Operator:
        size = self.mechanism.nv
        entries = (joint.entries for joint in self.joints)
        return BlockOperator((size, size), tuple((e, e, block) for e, block in zip(entries, blocks, strict=True)))

    def _between(self, blocks: Blocks) -> BlockOperator:
        size = 6 * len(self.joints)
        return BlockOperator(
            (size, size),
            tuple((_link(p), _link(k), blocks[k]) for k, p in enumerate(self.parents) if p >= 0),
        )

    def _subspace_rate(self, joint: ArticulatedJoint, freedom: int) -> Floats | None:
        """How the joint's axes turn as one freedom moves, shape (6, k), or None where they do not."""
        rate = self.mechanism.joint_by_name[joint.name].type.subspace_rate
        if rate(joint.S, np.ones(joint.S.shape[1])) is None:
            return None
        # Seen from the child, an axis turns backwards with every freedom that comes after it.
        dS = np.zeros_like(joint.S)
        for earlier in range(freedom):
            dS[:, earlier] = -bracket(joint.S[:, freedom], joint.S[:, earlier])
        return dS


def _link(k: int) -> slice:
    return slice(6 * k, 6 * k + 6)


def _bracket_matrix(s: Floats) -> Floats:
    """The matrix ad_s with ad_s V = [s, V], shape (6, 6)."""
    return np.column_stack([bracket(s, column) for column in np.eye(6)])
