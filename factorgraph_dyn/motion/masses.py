"""What the masses of a mechanism do at a state: centre of mass, momentum and energy.

    first moment   H = sum m_i p_i            gathered from the tips:  H_p = m_p c_p + sum (R H_c + m p), in links' axes
    its rates      of a joint's child with twist [w; u] beside the parent, all in the child's axes:
                   H_p' += R (w x H_c + H_c' + m u) = R e,      H_p'' += R (w x e + e')
    momentum       h = sum Ad_i^T G_i V_i     [angular; linear], about the world's origin, then about H / m
    kinetic        sum V_i^T G_i V_i / 2  +  sum over joints of armature v^2 / 2
    potential      - g . H  +  sum over joints of stiffness (q - rest)^2 / 2

All functions take arrays of any scalar type. They ask links for their spatial inertia alone, so that inertia moved
between links, as a compiler does, gives the same. Every link counts, the base too: who asks for what moves, as the
public functions do, asks `moving_bodies`. Work is done once a state.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Link
from factorgraph_dyn.motion.kinematics import joint_motion, link_twists
from factorgraph_dyn.spatial import Array


def still_links(mechanism: Mechanism) -> set[str]:
    """Names of the links that never move: the base, and what is fixed to it."""
    still = {mechanism.base}
    for joint in mechanism.topology.outward:
        if joint.parent in still and not joint.nv:
            still.add(joint.child)
    return still


@kept_with_first
def moving_bodies(mechanism: Mechanism) -> Mechanism:
    """The tree with mass and inertia only beyond movable joints: none of the base and what is fixed to it."""
    still = still_links(mechanism)
    links = tuple(Link(link.name) if link.name in still else link for link in mechanism.links)
    return replace(mechanism.tree, links=links)


def check_mass(mechanism: Mechanism) -> None:
    """Raise an InputError unless something that moves has mass."""
    if not any(link.mass for link in moving_bodies(mechanism).links):
        raise InputError(
            f"Nothing that moves in mechanism {mechanism.name!r} has mass, so it has no centre of mass. Give mass to "
            "links beyond its movable joints."
        )


def mass(mechanism: Mechanism) -> Any:
    """The mass of all links, kg."""
    return sum(link.spatial_inertia[5, 5] for link in mechanism.links)


def first_moment(mechanism: Mechanism, q: Array) -> Array:
    """The sum of m p over all links, kg m in the world, shape (3,)."""
    G = {link.name: link.spatial_inertia for link in mechanism.links}
    moment, carried = {name: _first_moment(of) for name, of in G.items()}, {name: of[5, 5] for name, of in G.items()}
    for joint in reversed(mechanism.topology.outward):
        T, _ = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        # H_p += R H_c + m p
        moment[joint.parent] = moment[joint.parent] + T[:3, :3] @ moment[joint.child] + carried[joint.child] * T[:3, 3]
        carried[joint.parent] = carried[joint.parent] + carried[joint.child]
    return moment[mechanism.base]


def moving_moment(mechanism: Mechanism, q: Array, v: Array, a: Array | None = None) -> tuple[Array, Array, Array]:
    """The sum of m p over all links and its two rates, the momentum and its rate, in the world, shape (3,) each.

    Only what joints add to twists is looked at, which takes fewer operations than the twists of links.

    Args:
        mechanism: The mechanism.
        q, v: The state.
        a: Accelerations; without, the second rate is not computed, and zero.
    """
    G = {link.name: link.spatial_inertia for link in mechanism.links}
    carried = {name: of[5, 5] for name, of in G.items()}
    H: dict[str, Array] = {name: _first_moment(of) for name, of in G.items()}
    dH: dict[str, Array] = dict.fromkeys(G, np.zeros(3))
    ddH = dict(dH)
    for joint in reversed(mechanism.topology.outward):
        parent, child, here = joint.parent, joint.child, mechanism.v_slices[joint.name]
        T, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        R, m, twist = T[:3, :3], carried[child], S @ v[here]
        w = twist[:3]
        e = spatial.cross(w, H[child]) + dH[child] + m * twist[3:]
        if a is not None:
            rate, varied = S @ a[here], joint.type.subspace_rate(S, v[here])
            rate = rate if varied is None else rate + varied
            turned = spatial.cross(rate[:3], H[child]) + spatial.cross(w, e + dH[child])
            ddH[parent] = ddH[parent] + R @ (turned + ddH[child] + m * rate[3:])
        H[parent] = H[parent] + R @ H[child] + m * T[:3, 3]
        dH[parent] = dH[parent] + R @ e
        carried[parent] = carried[parent] + m
    return H[mechanism.base], dH[mechanism.base], ddH[mechanism.base]


def center_of_mass(mechanism: Mechanism, q: Array) -> Array:
    """The centre of mass, m in the world, shape (3,)."""
    found: Array = first_moment(mechanism, q) * (1.0 / mass(mechanism))
    return found


def momentum(mechanism: Mechanism, q: Array, twists: Mapping[str, Array]) -> Array:
    """The momentum [angular; linear] about the centre of mass, in world axes, shape (6,)."""
    h = {link.name: link.spatial_inertia @ twists[link.name] for link in mechanism.links}
    for joint in reversed(mechanism.topology.outward):
        T, _ = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        h[joint.parent] = h[joint.parent] + spatial.inverse_adjoint(T).T @ h[joint.child]
    about_origin, linear = h[mechanism.base][:3], h[mechanism.base][3:]
    # L_c = L_o - c x P
    return np.concatenate([about_origin - spatial.cross(center_of_mass(mechanism, q), linear), linear])


def kinetic_energy(mechanism: Mechanism, v: Array, twists: Mapping[str, Array]) -> Array:
    """The kinetic energy, J, shape ()."""
    total: Any = 0.0
    for joint in mechanism.topology.outward:
        V, own = twists[joint.child], v[mechanism.v_slices[joint.name]]
        total = total + 0.5 * (V @ (mechanism.link_by_name[joint.child].spatial_inertia @ V))
        if joint.armature.dtype == object or joint.armature.any():
            total = total + 0.5 * (own @ (joint.armature * own))
    return np.asarray(total)


def potential_energy(mechanism: Mechanism, q: Array) -> Array:
    """The potential energy of gravity, zero at the world's origin, and of springs, J, shape ()."""
    total: Any = -(np.asarray(mechanism.gravity) @ first_moment(mechanism, q))
    for joint in mechanism.movable_joints:
        if joint.stiffness.any():
            stretch = q[mechanism.q_slices[joint.name]] - joint.rest
            total = total + 0.5 * (stretch @ (joint.stiffness * stretch))
    return np.asarray(total)


def energies(bodies: Mechanism, q: Array, v: Array) -> tuple[Array, Array]:
    """Kinetic and potential energy of `moving_bodies`, J, shape () each."""
    return kinetic_energy(bodies, v, link_twists(bodies, q, v)), potential_energy(bodies, q)


def _first_moment(G: Array) -> Array:
    """The mass times the centre of mass of a spatial inertia, from its block m [c], shape (3,)."""
    return np.array([G[2, 4], G[0, 5], G[1, 3]])
