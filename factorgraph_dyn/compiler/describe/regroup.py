"""Inertial parameters moved to where they cost nothing.

Takes a mechanism; gives one with the same motion and torques whose links have fewer inertial parameters. A
body that is symmetric about a joint's axis and has no inertia about it does not feel the joint, so it may as
well be fixed to the parent link (Khalil & Dombre 2002, minimal inertial parameters):

    fixed joint          the whole child
    revolute, about n    mass m,  first moment m (c.n) n,  inertia y (1 - n n^T)
    prismatic            the rotational inertia about the child's origin, which turns as the parent does
    spherical, universal the mass, as a point at the joint's centre

From the tips to the base, each link hands this part of its parameters to its parent, p_child -= B s, p_parent += X B s:
s are the numbers above, read off the child's ten parameters, B says what one of each is and X what another frame makes
of it. All of it is linear, so that parameters may be numbers, or symbols where they are arguments of a kernel. These
are moved at every state: a mass over a shift in more than one direction takes more than the six operations of m a that
it saves, and stays. Wrenches between links change; a and tau do not. The links that remain need not be bodies that
could be built. The work runs once a kernel.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from factorgraph_dyn.model import Joint, Link, Mechanism
from factorgraph_dyn.model.parameters import COUNT, inertia_of, moving_parameters, parameters_of
from factorgraph_dyn.spatial import Array, Floats

_DIFFERENCE_ROUNDING = 1e-14  # of a difference beside its terms, and of the entries of an axis
_BLOCK_ROUNDING = 1e-15  # of the largest entry of a block
_MASS, _MOMENT, _ROTATIONAL = slice(0, 1), slice(1, 4), slice(4, COUNT)


@dataclass(frozen=True, eq=False)
class Lump(Link):
    """A link that is known by its spatial inertia alone, of numbers or symbols, shape (6, 6)."""

    matrix: Array = field(default_factory=lambda: np.zeros((6, 6)))

    @property
    def spatial_inertia(self) -> Array:
        """The spatial inertia about the link frame's origin, shape (6, 6)."""
        return self.matrix


def lump(link: Link, parameters: Array) -> Lump:
    """The link with parameters that need not be a body's, nor numbers, shape (10,)."""
    return Lump(link.name, matrix=inertia_of(parameters))


def regrouped(mechanism: Mechanism) -> Mechanism:
    """The mechanism with as few inertial parameters as its joints allow."""
    parameters = {link.name: parameters_of(link.spatial_inertia) for link in mechanism.links}
    for joint in reversed(mechanism.topology.outward):
        own = parameters[joint.child]
        read, unit = unfelt(joint)
        if own.dtype == object and joint.nv and _bends(mechanism, joint):
            read, unit = read[unit[0] == 0], unit[:, unit[0] == 0]
        share = read @ own
        moved = moving_parameters(np.asarray(joint.placement)) @ unit
        parameters[joint.child] = _without_rounding(own - unit @ share, own)
        parameters[joint.parent] = parameters[joint.parent] + moved @ share
    return replace(mechanism, links=tuple(lump(link, _cleaned(parameters[link.name])) for link in mechanism.links))


def unfelt(joint: Joint) -> tuple[Floats, Floats]:
    """What a joint's motion does not feel: how to read it off the child's parameters, and what a unit of each is.

    Returns:
        Matrices of shape (shares, 10) and (10, shares).
    """
    units = np.eye(COUNT)
    if not joint.nv:
        return units, units
    if not joint.turns.any():
        return units[_ROTATIONAL], units[:, _ROTATIONAL]
    reads, shares = [], []
    if not joint.slides.any():
        reads.append(units[0])
        shares.append(units[:, 0])
    if joint.is_hinge:
        axis = joint.axes[0]
        along = np.concatenate([[0.0], axis, np.zeros(6)])
        reads.append(along)
        shares.append(along)
        across = np.flatnonzero(np.abs(axis) < _DIFFERENCE_ROUNDING)
        if len(across) == 2:  # about an axis between the frame's axes nothing would become zero
            disc = np.zeros((6, 6))
            disc[:3, :3] = np.eye(3) - np.outer(axis, axis)
            probe = np.zeros((6, 6))
            probe[across[-1], across[-1]] = 1.0
            reads.append(parameters_of(probe))
            shares.append(parameters_of(disc))
    return np.array(reads).reshape(-1, COUNT), np.array(shares).reshape(-1, COUNT).T


def _bends(mechanism: Mechanism, joint: Joint) -> bool:
    """Whether the shift from the link that moves a joint to its child has more than one direction."""
    into = {one.child: one for one in mechanism.joints}
    T, link = np.asarray(joint.placement), joint.parent
    while link in into and not into[link].nv:
        T, link = np.asarray(into[link].placement) @ T, into[link].parent
    return link in into and bool(np.count_nonzero(T[:3, 3]) > 1)


def _cleaned(parameters: Array) -> Array:
    """The parameters with zeros where numbers are rounding alone, beside the others of their sort."""
    if parameters.dtype == object:
        return parameters
    cleaned = np.array(parameters)
    for part in (_MOMENT, _ROTATIONAL):
        least = _BLOCK_ROUNDING * np.abs(cleaned[part]).max()
        cleaned[part] = np.where(np.abs(cleaned[part]) < least, 0.0, cleaned[part])
    return cleaned


def _without_rounding(difference: Array, before: Array) -> Array:
    """The difference with what is zero but for rounding made so; a tape knows that of its symbols."""
    if difference.dtype == object:
        return difference
    scale = np.maximum(np.abs(before), 1e-300)
    return np.where(np.abs(difference) <= _DIFFERENCE_ROUNDING * scale, 0.0, difference)
