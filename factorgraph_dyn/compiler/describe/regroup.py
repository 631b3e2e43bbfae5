"""Inertial parameters moved to where they cost nothing.

Takes a mechanism; gives one with the same motion and torques whose links have fewer inertial parameters. A
body that is symmetric about a joint's axis and has no inertia about it does not feel the joint, so it may as
well be fixed to the parent link (Khalil & Dombre 2002, minimal inertial parameters):

    fixed joint          the whole child
    revolute, about n    mass m,  first moment m (c.n) n,  inertia y (1 - n n^T)
    prismatic            the rotational inertia about the child's origin, which turns as the parent does
    spherical, universal the mass, as a point at the joint's centre

From the tips to the base, each link hands this part of its spatial inertia to its parent:
G_child -= G_part,  G_parent += Ad^T G_part Ad. Wrenches between links change; a and tau do not. The links
that remain need not be bodies that could be built. The work runs once a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from factorgraph_dyn.model import Joint, Link, Mechanism
from factorgraph_dyn.spatial import Floats, inverse_adjoint, skew

_DIFFERENCE_ROUNDING = 1e-14  # of a difference beside its terms, and of the entries of an axis
_BLOCK_ROUNDING = 1e-15  # of the largest entry of a block


@dataclass(frozen=True, eq=False)
class Lump(Link):
    """A link that is known by its spatial inertia alone, shape (6, 6)."""

    matrix: Floats = field(default_factory=lambda: np.zeros((6, 6)))

    @property
    def spatial_inertia(self) -> Floats:
        """The spatial inertia about the link frame's origin, shape (6, 6)."""
        return self.matrix


def regrouped(mechanism: Mechanism) -> Mechanism:
    """The mechanism with as few inertial parameters as its joints allow."""
    inertia = {link.name: np.array(link.spatial_inertia) for link in mechanism.links}
    for joint in reversed(mechanism.topology.outward):
        G = inertia[joint.child]
        part = unfelt_part(joint, G)
        Ad_frame_parent = inverse_adjoint(np.asarray(joint.placement))
        inertia[joint.child] = _without_rounding(G - part, G)
        inertia[joint.parent] = inertia[joint.parent] + Ad_frame_parent.T @ part @ Ad_frame_parent
    links = tuple(Lump(link.name, matrix=_consistent(inertia[link.name])) for link in mechanism.links)
    return replace(mechanism, links=links)


def unfelt_part(joint: Joint, G: Floats) -> Floats:
    """The part of the child's spatial inertia that the joint's motion does not feel, shape (6, 6)."""
    part = np.zeros((6, 6))
    mass = G[3, 3]
    if not joint.nv:
        return G
    if not joint.turns.any():
        part[:3, :3] = G[:3, :3]
    elif not joint.slides.any():
        part[3:, 3:] = mass * np.eye(3)
    if joint.is_hinge:
        axis = joint.axes[0]
        first_moment = np.array([G[2, 4], G[0, 5], G[1, 3]])  # from the block m [c]
        part[:3, :3] = _across(axis, G[:3, :3]) * (np.eye(3) - np.outer(axis, axis))
        part[:3, 3:] = skew((first_moment @ axis) * axis)
        part[3:, :3] = part[:3, 3:].T
    return part


def _across(axis: Floats, rotational: Floats) -> float:
    """The moment of inertia to take away: one that leaves a zero on the diagonal."""
    places = np.flatnonzero(np.abs(axis) < _DIFFERENCE_ROUNDING)
    if len(places) < 2:
        return 0.0  # an axis between the frame's axes: nothing would become zero
    return float(rotational[places[-1], places[-1]])


def _consistent(G: Floats) -> Floats:
    """The spatial inertia with equal entries equal to the last bit, and zero where they are rounding alone."""
    h = 0.5 * np.array([G[2, 4] - G[1, 5], G[0, 5] - G[2, 3], G[1, 3] - G[0, 4]])
    exact = np.zeros((6, 6))
    exact[:3, :3] = _cleaned(0.5 * (G[:3, :3] + G[:3, :3].T))
    exact[:3, 3:] = skew(_cleaned(h))
    exact[3:, :3] = exact[:3, 3:].T
    exact[3:, 3:] = G[3, 3] * np.eye(3)
    return exact


def _cleaned(values: Floats) -> Floats:
    return np.where(np.abs(values) < _BLOCK_ROUNDING * np.abs(values).max(), 0.0, values)


def _without_rounding(difference: Floats, before: Floats) -> Floats:
    """The difference with what is zero but for rounding made so."""
    scale = np.maximum(np.abs(before), 1e-300)
    return np.where(np.abs(difference) <= _DIFFERENCE_ROUNDING * scale, 0.0, difference)
