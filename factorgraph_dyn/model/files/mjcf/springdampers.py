"""Springs and dampers that MJCF says by a time constant and a damping ratio, from the inertia that a joint moves.

    inertia    1 / mean over the joint's freedoms of (M^-1)_ii      M: of the tree at the reference configuration
    stiffness  inertia / (time ratio)^2
    damping    2 inertia / time

as MuJoCo finds ``jnt_stiffness`` and ``dof_damping``; where M is singular, joints that can move without mass have none,
and the others those of the limit of M + epsilon. Loops, couplings and locks are left out there, armatures are not.
Runs once a file.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.model.assembly import Connection, assemble
from factorgraph_dyn.model.files.mjcf.effects import note_spring
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link
from factorgraph_dyn.spatial import Floats, inverse_adjoint

MASSLESS = 1e-10  # of the largest eigenvalue of M, and of a freedom's part in a motion: below it there is none

LARGEST = 1000  # freedoms of a file with springdampers: the work grows with their third power


class SpringDamper(NamedTuple):
    """The time constant, s, and damping ratio of a joint, and where they are written."""

    time: float
    ratio: float
    element: Element


def with_springdampers(
    connections: Sequence[Connection],
    links: Sequence[Link],
    wanted: Mapping[str, SpringDamper],
    references: Mapping[str, float],
    notes: list[str],
) -> list[Connection]:
    """The connections, joints with the springs and dampers that they want.

    Args:
        connections: Those of the tree, with all armatures.
        links: Its links, the first of which is the base.
        wanted: By joint.
        references: The coordinate of each hinge and slide at the reference configuration.
        notes: Told what is not used.
    """
    if not wanted:
        return list(connections)
    if sum(connection.joint.nv for connection in connections) > LARGEST:
        next(iter(wanted.values())).element.fail(
            f"springdamper needs the mass matrix of all joints, which is found for {LARGEST} freedoms at most; give "
            "stiffness and damping."
        )
    tree = assemble(Mechanism, "tree", list(links), list(connections), base=links[0].name, notes=[])
    yielding = _inverse_diagonal(_mass_matrix(tree, references))
    inertias = {name: 1.0 / float(yielding[tree.v_slices[name]].mean()) for name in wanted}
    notes.extend(
        wanted[name].element.note(
            "springdamper is not used: at the reference configuration the joint moves no mass, alone or together with "
            "others that undo its motion."
        )
        for name, inertia in inertias.items()
        if not inertia
    )
    notes.extend(
        wanted[joint.name].element.note(
            "the armature counts in springdamper's inertia; MuJoCo leaves it out where it calls the body simple."
        )
        for joint in _slides_alone(tree)
        if joint.name in wanted and np.any(joint.armature)
    )
    return [
        replace(c, joint=_sprung(c.joint, wanted[c.joint.name], inertias[c.joint.name], notes))
        if inertias.get(c.joint.name)
        else c
        for c in connections
    ]


def _slides_alone(tree: Mechanism) -> list[Joint]:
    """Slides of links that only slide; for some of their bodies MuJoCo has a rule of its own."""
    slides, sliding = [], {tree.base}
    for joint in tree.topology.outward:
        if joint.parent in sliding and joint.kind in ("fixed", "prismatic"):
            sliding.add(joint.child)
            slides += [joint] * joint.nv
    return slides


def _sprung(joint: Joint, wanted: SpringDamper, inertia: float, notes: list[str]) -> Joint:
    """The joint with its spring and damper added to what acts on it already."""
    damped = replace(joint, damping=np.asarray(joint.damping) + 2.0 * inertia / wanted.time)
    if joint.nv > 1:
        note_spring(wanted.element, joint.kind, joint.name, notes)
        return damped
    stiffness = inertia / (wanted.time * wanted.ratio) ** 2
    return replace(damped, stiffness=np.asarray(joint.stiffness) + stiffness)


def _inverse_diagonal(M: Floats) -> Floats:
    """The diagonal of (M + epsilon)^-1 as epsilon vanishes, shape (nv,); infinite where a freedom moves without mass.

    The entries of the others are those of any generalised inverse, so that each is measured by its own inertia.
    """
    own = np.sqrt(np.maximum(np.diag(M), 0.0))
    unit = np.where(own > 0, own, 1.0)
    values, vectors = np.linalg.eigh(M / np.outer(unit, unit))
    massless = values < MASSLESS * values.max(initial=0.0)
    massless |= values <= 0.0
    shares = vectors**2
    found = shares[:, ~massless] @ (1.0 / values[~massless]) / unit**2
    return np.where(shares[:, massless].sum(axis=1) > MASSLESS, np.inf, found)


def _mass_matrix(tree: Mechanism, references: Mapping[str, float]) -> Floats:
    """M = sum over links of J^T G J, with armatures, at the reference configuration, shape (nv, nv)."""
    M = np.diag(np.concatenate([np.zeros(0), *(joint.armature for joint in tree.movable_joints)]))
    J = {tree.base: np.zeros((6, tree.nv))}
    for joint in tree.topology.outward:
        q = np.array([references[joint.name]]) if joint.nv == 1 else joint.type.neutral()
        J[joint.child] = inverse_adjoint(joint.pose(q)) @ J[joint.parent]
        if joint.constant_subspace is not None and joint.nv:  # of the format's kinds it always is
            J[joint.child][:, tree.v_slices[joint.name]] += joint.constant_subspace
        M += J[joint.child].T @ tree.link_by_name[joint.child].spatial_inertia @ J[joint.child]
    return M
