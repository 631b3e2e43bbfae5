"""Inertial parameters moved to where they cost nothing.

Takes a mechanism; gives one with the same motion and torques whose links have fewer inertial parameters. A
body that is symmetric about a joint's axis and has no inertia about it does not feel the joint, so it may as
well be fixed to the parent link (Khalil & Dombre 2002, minimal inertial parameters):

    fixed joint          the whole child
    revolute, about n    mass m,  first moment m (c.n) n,  inertia y (1 - n n^T)
    prismatic            the rotational inertia about the child's origin, which turns as the parent does
    spherical, universal the mass, as a point at the joint's centre

From the tips to the base, each link hands this part of its parameters to the link that carries its joint,
p_child -= B s, p_carrier += X B s: B says what one of each is, X what another frame makes of it, and s, how much of
each, is free. It is chosen so that the child's mass, its moment along n and one of its moments of inertia across n
vanish; where the motion of all links is known (``equations/known_motion``, with the matrix B that is there), so that

    mass      a component of the carrier's first moment h vanishes instead, s = -h_k / r_k with r from carrier to child,
              where the carrier turns and its origin moves: the six operations of m a stay, the ten of h_k go, with a
              column of B and in h x a
    inertia   a flat body is left where there are two products of inertia, s = (I_aa + I_bb - I_nn) / 2: its moments of
              inertia need the same entries of B as its products

Where links' accelerations are unknowns, both cost more than they save, and slender bodies keep their inertia: a carrier
without any, which turns about where they lie, would have the difference of what it is handed and of what is left.

All of it is linear, so that parameters may be numbers, or symbols where they are arguments of a kernel. Wrenches
between links change; a and tau do not. The links that remain need not be bodies that could be built. The work runs once
a kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.model import Joint, Link, Mechanism
from factorgraph_dyn.model.parameters import COUNT, inertia_of, moving_parameters, parameters_of
from factorgraph_dyn.spatial import Array, Floats

_DIFFERENCE_ROUNDING = 1e-14  # of a difference beside its terms, and of the entries of an axis
_BLOCK_ROUNDING = 1e-15  # of the largest entry of a block
_LEAST_LEVER = 1 / 64  # of the longest: over shorter ones first moments become masses that swamp the others
_SLENDER = 1e-4  # of a body's largest moment of inertia across an axis: below, more than four digits may cancel
_MOMENT, _ROTATIONAL = slice(1, 4), slice(4, COUNT)
_SQUARES, _PRODUCTS = [4, 6, 9], [5, 7, 8]  # moments and products of inertia


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


class _Carrier(NamedTuple):
    """The link that carries a joint: the parent or, where that is fixed to another, the link it is fixed to.

    Attributes:
        link: Its name.
        joint: The joint that moves it; None for the base.
        T: The joint's placement in its frame.
    """

    link: str
    joint: Joint | None
    T: Floats


def regrouped(mechanism: Mechanism, *, moving: bool = False) -> Mechanism:
    """The mechanism with as few inertial parameters as its joints allow.

    Args:
        mechanism: The mechanism.
        moving: Whether it is for equations in which the motion of all links is known.
    """
    parameters = {link.name: parameters_of(link.spatial_inertia) for link in mechanism.links}
    inward = mechanism.topology.outward[::-1]
    for joint in inward:
        if not joint.nv:
            _hand(parameters, joint.child, joint.parent, np.asarray(joint.placement), np.eye(COUNT), np.eye(COUNT))
    carriers = _carriers(mechanism)
    levers = _levers(mechanism, carriers) if moving else {}
    for joint in inward:
        if joint.nv:
            link, _, T = carriers[joint.name]
            lever = levers.get(joint.name)
            flattens = moving and joint.is_hinge and _has_products(parameters[joint.child])
            slender = not moving and joint.is_hinge and _is_slender(parameters[joint.child], joint.axes[0])
            read, unit = unfelt(joint, flat=flattens, disc=not slender)
            if lever is not None:
                read, unit = read[1:], unit[:, 1:]
            _hand(parameters, joint.child, link, T, read, unit)
            if lever is not None:
                _balance(parameters, joint.child, link, T, lever)
            if flattens:
                parameters[joint.child] = _flattened(parameters[joint.child], joint.axes[0])
    return replace(mechanism, links=tuple(lump(link, _cleaned(parameters[link.name])) for link in mechanism.links))


def _hand(parameters: dict[str, Array], child: str, carrier: str, T: Floats, read: Floats, unit: Floats) -> None:
    """Move what is read off the child's parameters to its carrier."""
    own = parameters[child]
    share = read @ own
    parameters[child] = _without_rounding(own - unit @ share, own)
    parameters[carrier] = parameters[carrier] + moving_parameters(T) @ unit @ share


def _balance(parameters: dict[str, Array], child: str, carrier: str, T: Floats, k: int) -> None:
    """Move so much mass that the carrier has no first moment along its axis k."""
    share = parameters[carrier][_MOMENT][k] * (-1.0 / T[k, 3])
    mass = np.eye(COUNT)[0]
    parameters[child] = parameters[child] - mass * share
    parameters[carrier] = parameters[carrier] + moving_parameters(T) @ mass * share
    parameters[carrier][_MOMENT][k] *= 0.0


def _flattened(parameters: Array, axis: Floats) -> Array:
    """The parameters of a body that is flat but for rounding; a tape knows that of its symbols."""
    normal = np.flatnonzero(np.abs(axis) >= _DIFFERENCE_ROUNDING)
    if parameters.dtype == object or len(normal) > 1:
        return parameters
    moments, others = np.array(parameters), [k for k in range(3) if k != normal[0]]
    moments[_SQUARES[normal[0]]] = sum(moments[_SQUARES[k]] for k in others)
    return moments


def _carriers(mechanism: Mechanism) -> dict[str, _Carrier]:
    """What carries the movable joints."""
    into, found = {one.child: one for one in mechanism.joints}, {}
    for joint in mechanism.topology.outward:
        T, link = np.asarray(joint.placement), joint.parent
        while link in into and not into[link].nv:
            T, link = np.asarray(into[link].placement) @ T, into[link].parent
        if joint.nv:
            found[joint.name] = _Carrier(link, into.get(link), T)
    return found


def _levers(mechanism: Mechanism, carriers: Mapping[str, _Carrier]) -> dict[str, int]:
    """The joints whose children's masses balance the links that carry them, and along which axis of these.

    One joint a link, the one that is regrouped last; across the axis of the hinge that turns the link, along which it
    has no first moment left.
    """
    swinging = _swinging(mechanism, carriers)
    longest = max((float(np.linalg.norm(T[:3, 3])) for _, hinge, T in carriers.values() if hinge), default=0.0)
    first: dict[str, Joint] = {}
    for joint in mechanism.topology.outward:
        if joint.nv:
            first.setdefault(carriers[joint.name].link, joint)
    found = {}
    for link, joint in first.items():
        _, hinge, T = carriers[joint.name]
        if hinge is not None and link in swinging and not joint.slides.any():
            across = np.abs(hinge.axes[0]) < _DIFFERENCE_ROUNDING if hinge.is_hinge else True
            arms = np.where(across, np.abs(T[:3, 3]), 0.0)
            if arms.max() > _LEAST_LEVER * longest:
                found[joint.name] = int(arms.argmax())
    return found


def _swinging(mechanism: Mechanism, carriers: Mapping[str, _Carrier]) -> set[str]:
    """Links that turn, and whose origins move."""
    turning: set[str] = set()
    moved: set[str] = set()
    for joint in mechanism.topology.outward:
        if joint.nv:
            link, hinge, T = carriers[joint.name]
            arm, spun = T[:3, 3], link in turning
            if hinge is not None and hinge.is_hinge and carriers[hinge.name].link not in turning:
                arm = np.cross(hinge.axes[0], arm)  # on the axis nothing moves
            if joint.turns.any() or spun:
                turning.add(joint.child)
            swung = spun and np.linalg.norm(arm) > _DIFFERENCE_ROUNDING * np.linalg.norm(T[:3, 3])
            if joint.slides.any() or link in moved or swung:
                moved.add(joint.child)
    return turning & moved


def _has_products(parameters: Array) -> bool:
    """Whether a body has products of inertia enough that it costs less when it is flat."""
    return sum(bool(product != 0.0) for product in parameters[_PRODUCTS]) > 1


def _is_slender(parameters: Array, axis: Floats) -> bool:
    """Whether a body has next to no inertia about some direction across an axis."""
    if parameters.dtype == object:
        return False
    across = np.eye(3) - np.outer(axis, axis)
    _, least, largest = np.sort(np.abs(np.linalg.eigvalsh(across @ inertia_of(parameters)[:3, :3] @ across)))
    return bool(least < _SLENDER * largest)


def unfelt(joint: Joint, *, flat: bool = False, disc: bool = True) -> tuple[Floats, Floats]:
    """What a joint's motion does not feel: how to read it off the child's parameters, and what a unit of each is.

    Args:
        joint: The joint.
        flat: Leave a flat body beyond a hinge, instead of one without one of its moments of inertia.
        disc: Whether moments of inertia across a hinge are among it.

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
        if disc and len(across) == 2:  # about an axis between the frame's axes nothing would become zero
            thin = np.zeros((6, 6))
            thin[:3, :3] = np.eye(3) - np.outer(axis, axis)
            probe = np.zeros((6, 6))
            probe[across[-1], across[-1]] = 1.0
            if flat:
                probe[:3, :3] = np.eye(3) / 2 - np.outer(axis, axis)
            reads.append(parameters_of(probe))
            shares.append(parameters_of(thin))
    return np.array(reads).reshape(-1, COUNT), np.array(shares).reshape(-1, COUNT).T


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
