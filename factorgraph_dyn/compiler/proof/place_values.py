"""Poses, Jacobians, momentum and energies in plain floats, at many states at once: what kernels' are proved against.

Takes a mechanism at states; gives values of shape (states, 1, entries) and, beside them, the sizes of the terms they
are made of. Bodies are looked at one by one, by the motion of their centres of mass,

    P = sum m v_c        L = sum R I w + (c - C) x m v_c        kinetic = sum m v_c^2 / 2 + w^T I w / 2

and nothing is carried from link to link but poses and twists. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import (
    adjoints,
    column_norms,
    cross,
    inverse_adjoints,
    inverse_poses,
    shifted_sizes,
    transposed,
)
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.spatial import Floats

Sized = tuple[Floats, Floats]


def pose_value(here: ManyStates, name: str) -> Sized:
    """The pose of a link or frame, row by row."""
    T, reach = _pose(here, name)
    sizes = np.ones(T.shape)
    sizes[:, :3, 3] = reach[:, None]
    return _flat(T), _flat(sizes)


def jacobian_value(here: ManyStates, name: str) -> Sized:
    """The Jacobian of a link or frame in its own axes, row by row."""
    mechanism, (T_place, reach) = here.mechanism, _pose(here, name)
    J, sizes = np.zeros((2, here.states, 6, mechanism.nv))
    for joint in mechanism.topology.path_to_base(mechanism.place(name)[0]):
        T_place_child = inverse_poses(T_place) @ here.poses[joint.child]
        S, part = here.joints[joint.name].S, mechanism.v_slices[joint.name]
        J[..., part] = adjoints(T_place_child) @ S
        turned, slid = np.moveaxis(column_norms(S), 1, 0)
        sizes[:, :3, part] = turned[:, None]
        sizes[:, 3:, part] = (slid + reach[:, None] * turned)[:, None]
    return _flat(J), _flat(sizes)


def twist_value(here: ManyStates, name: str) -> Sized:
    """The twist of a link or frame in its own axes."""
    link, _ = here.mechanism.place(name)
    return at_place(here, name, here.V[link][:, None], here.V_size[link][:, None])


def at_place(here: ManyStates, name: str, motion: Floats, size: Floats) -> Sized:
    """A twist or acceleration of a link, seen from a link or frame on it, shapes (states, columns, 6 and 2)."""
    placement = np.asarray(here.mechanism.place(name)[1])
    lever = np.linalg.norm(placement[:3, 3])
    return motion @ inverse_adjoints(placement).T, shifted_sizes(size, np.asarray(lever))


def link_wrench(here: ManyStates, name: str, wrench: Floats, in_world: bool, point: Floats | None = None) -> Floats:
    """A wrench about a point of a link or frame, by default its origin, as the link feels it in its own frame.

    Args:
        here: The states.
        name: Of the link or frame.
        wrench: [moment; force], shape (states, columns, 6).
        in_world: Whether it is in the axes of the world instead of the link's or frame's.
        point: In the axes of the link or frame, shape (3,).
    """
    link, placement = here.mechanism.place(name)
    R = transposed(here.poses[link][:, :3, :3]) if in_world else np.asarray(placement)[:3, :3]
    arm = np.asarray(placement)[:3, 3] + np.asarray(placement)[:3, :3] @ (np.zeros(3) if point is None else point)
    moment, force = wrench[..., :3] @ transposed(R), wrench[..., 3:] @ transposed(R)
    return np.concatenate([moment + cross(arm, force), force], axis=-1)


def com_value(here: ManyStates) -> Sized:
    """The centre of mass of all that moves."""
    bodies = list(_moving_bodies(here))
    mass = sum((body.mass for body in bodies), np.zeros(1))
    com = sum((body.mass[:, None] * body.place for body in bodies), np.zeros((here.states, 3))) / mass[:, None]
    size = sum((body.mass * body.reach for body in bodies), np.zeros(here.states)) / mass
    return com[:, None], size[:, None, None]


def momentum_value(here: ManyStates) -> Sized:
    """The momentum of all that moves, about its centre of mass."""
    com, far = (value[:, 0] for value in com_value(here))
    L, P, sizes = np.zeros((here.states, 3)), np.zeros((here.states, 3)), np.zeros((here.states, 2))
    for body in _moving_bodies(here):
        P += body.mass[:, None] * body.velocity
        L += body.spin + cross(body.place - com, body.mass[:, None] * body.velocity)
        slow = body.mass * body.speed
        sizes += np.stack([body.spin_size + (body.reach + far[:, 0]) * slow, slow], axis=-1)
    return np.concatenate([L, P], axis=-1)[:, None], sizes[:, None]


def kinetic_energy_value(here: ManyStates) -> Sized:
    """The kinetic energy of links and rotors."""
    value, size = np.zeros((2, here.states))
    for body in _moving_bodies(here):
        value += 0.5 * (body.mass * (body.velocity**2).sum(axis=-1) + (body.spin * body.turning).sum(axis=-1))
        size += 0.5 * (body.mass * body.speed**2 + body.spin_size * np.linalg.norm(body.turning, axis=-1))
    for joint in here.mechanism.movable_joints:
        v = here.v[:, here.mechanism.v_slices[joint.name]]
        rotors = 0.5 * (v**2 * here.numbers.effect("armature", joint)).sum(axis=-1)
        value, size = value + rotors, size + rotors
    return value[:, None, None], size[:, None, None]


def potential_energy_value(here: ManyStates) -> Sized:
    """The potential energy of gravity and springs."""
    g = here.numbers.gravity
    value, size = np.zeros((2, here.states))
    for body in _moving_bodies(here):
        value -= body.mass * (body.place * g).sum(axis=-1)
        size += body.mass * body.reach * np.linalg.norm(g, axis=-1)
    for joint in here.mechanism.movable_joints:
        if joint.nq == joint.nv:
            q = here.q[:, here.mechanism.q_slices[joint.name]]
            value += 0.5 * (q - joint.rest) ** 2 @ joint.stiffness
            size += (q**2 + joint.rest**2) @ joint.stiffness
    return value[:, None, None], size[:, None, None]


class _Body(NamedTuple):
    """A link at many states, in world axes: its centre of mass, and sizes of what it is made of."""

    mass: Floats
    place: Floats
    reach: Floats
    velocity: Floats
    speed: Floats
    turning: Floats
    spin: Floats
    spin_size: Floats


def _moving_bodies(here: ManyStates) -> Iterator[_Body]:
    """The links beyond movable joints."""
    mechanism = here.mechanism
    for link in mechanism.links:
        if not any(joint.nv for joint in mechanism.topology.path_to_base(link.name)):
            continue
        T, reach = _pose_of(here, link.name, np.eye(4))
        R, (mass, com, inertia) = T[:, :3, :3], here.numbers.body(link)
        w, v = here.V[link.name][:, :3], here.V[link.name][:, 3:]
        w_size, v_size = here.V_size[link.name].T
        arm = np.linalg.norm(com, axis=-1)
        yield _Body(
            mass,
            _turned(R, com) + T[:, :3, 3],
            reach + arm,
            _turned(R, v + cross(w, com)),
            v_size + arm * w_size,
            _turned(R, w),
            _turned(R, (w[:, None] @ inertia)[:, 0]),
            np.linalg.norm(inertia, axis=(-2, -1)) * w_size,
        )


def _pose(here: ManyStates, name: str) -> tuple[Floats, Floats]:
    """The pose of a link or frame, shape (states, 4, 4), and the length of the way there, shape (states,)."""
    return _pose_of(here, *here.mechanism.place(name))


def _pose_of(here: ManyStates, link: str, placement: Floats) -> tuple[Floats, Floats]:
    """The pose of a place on a link, and the length of the way there."""
    levers = [here.joints[joint.name].lever for joint in here.mechanism.topology.path_to_base(link)]
    reach = sum(levers, np.full(here.states, np.linalg.norm(np.asarray(placement)[:3, 3])))
    return here.poses[link] @ np.asarray(placement), reach


def _turned(R: Floats, vectors: Floats) -> Floats:
    """Vectors turned by rotations, shape (states, 3)."""
    turned: Floats = np.einsum("sij,sj->si", R, np.broadcast_to(vectors, (len(R), 3)))
    return turned


def _flat(matrices: Floats) -> Floats:
    """Matrices as one column of all their entries, shape (states, 1, entries)."""
    return matrices.reshape(len(matrices), 1, -1)
