"""Why a system has no unique answer, in names of joints and links.

In a tree the wrenches and torques always follow from the accelerations, so a dynamics problem is
determined exactly when the articulated-body D = S^T I^A S + armature of every joint with unknown
acceleration is regular. D is measured against the sizes of the terms it is summed from: light links
are no singularity, links without inertia are.

Looking costs more than solving, so a quick estimate of the elimination's condition comes first.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.solve.matrices.articulated import (
    ArticulatedBodies,
    ArticulatedJoint,
    articulated_joints,
    balanced_inertia,
)
from factorgraph_dyn.solve.own_units import own_state
from factorgraph_dyn.spatial import Floats

SUSPICIOUS_TREE_GROWTH = 1e7  # of a right-hand side: light tips grow it too, singular trees to 1e15
SUSPICIOUS_INERTIA = 1e-7  # of the largest joint inertia; where one is smaller the tree is looked at closely
ZERO_INERTIA = 1e-14  # of the terms that D is summed from
LOOSE_SHARE = 1e-6  # joints that move less than this share of the fastest stand still

Mask = npt.NDArray[np.bool_]


def check_determined(state: State, known: Known, growth: float) -> None:
    """Raise a SingularSystemError if an elimination that grows this much was singular up to rounding."""
    if growth > SUSPICIOUS_TREE_GROWTH and not state.mechanism.is_closed_kind:
        check_inertia(state, ~known.a_mask)


def moves_little(state: State, growth: float) -> bool:
    """Whether some joint of a tree may move next to nothing beside what others do, by an elimination's growth.

    Where that is infinite, because nobody knows it, the articulated bodies tell.
    """
    if math.isfinite(growth):
        return growth > SUSPICIOUS_TREE_GROWTH
    try:
        return not _least_share(ArticulatedBodies(state, articulated_joints(state))) > SUSPICIOUS_INERTIA
    except np.linalg.LinAlgError:
        return True


def explain(state: State, known: Known, error: SingularSystemError) -> SingularSystemError:
    """The same error with its cause found."""
    try:
        check_determined(state, known, np.inf)
    except SingularSystemError as explained:
        explained.details.update(error.details)
        return explained
    return error


def regular_bodies(state: State) -> ArticulatedBodies:
    """The articulated bodies of a tree at a state, every joint of which moves some inertia.

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.
    """
    everything = np.ones(state.mechanism.nv, dtype=bool)
    try:
        bodies = ArticulatedBodies(state, articulated_joints(state))
    except np.linalg.LinAlgError as error:
        check_inertia(state, everything)
        raise SingularSystemError(
            f"The mass matrix of mechanism {state.mechanism.name!r} is not positive definite at this q. Check the "
            "masses and inertias of its links (see mechanism.warnings)."
        ) from error
    if not _least_share(bodies) > SUSPICIOUS_INERTIA:  # nan must not hide
        check_inertia(state, everything)
    return bodies


def check_inertia(state: State, unknown: Mask) -> None:
    """Raise a SingularSystemError naming the joints that can move without moving any inertia.

    Args:
        state: The mechanism at a state; loops and couplings are not looked at.
        unknown: Which joint accelerations are not given, shape (nv,).
    """
    loose = _motion_without_inertia(own_state(state), unknown)
    if not loose.any():
        return
    mechanism = state.mechanism
    names = [n for n in mechanism.joint_names if loose[mechanism.v_slices[n]].any()]
    raise SingularSystemError(
        f"The accelerations of joints {', '.join(names)} of mechanism {mechanism.name!r} are undetermined: "
        f"moving them at this q moves no inertia. {_massless_beyond(mechanism, names)}"
        "Give those links mass and inertia, give the joints armature, or give their accelerations.",
        joints=tuple(names),
    )


def _motion_without_inertia(state: State, unknown: Mask) -> Mask:
    """Which entries of a take part in a motion that needs no torque, shape (nv,)."""
    mechanism, terms = state.mechanism, _terms(state, unknown)
    unresisted: dict[int, Floats] = {}  # directions of a_j that nothing resists

    def invert(place: int, D: Floats) -> Floats:
        D_inverse, unresisted[place] = _inverse_and_null_space(D, terms[place])
        return D_inverse

    joints = articulated_joints(state, unknown, invert)
    loose = np.zeros(mechanism.nv, dtype=bool)
    for place, directions in unresisted.items():
        for direction in directions.T:
            loose |= _response(joints, unknown, place, direction)
    return loose


def _terms(state: State, unknown: Mask) -> list[Floats]:
    """The sizes of the terms that each joint's D would be summed from if all joints further out were locked."""
    mechanism, terms = state.mechanism, []
    composite = {link.name: link.spatial_inertia for link in mechanism.links}
    for joint in reversed(mechanism.topology.outward):
        entries, body = unknown[mechanism.v_slices[joint.name]], composite[joint.child]
        Ad, S = state.joints[joint.name].Ad_child_parent, np.abs(state.joints[joint.name].S[:, entries])
        terms.append(S.T @ np.abs(body) @ S + np.diag(joint.armature[entries]))
        composite[joint.parent] = composite[joint.parent] + Ad.T @ body @ Ad
    return terms[::-1]


def _inverse_and_null_space(D: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """The inverse of a symmetric matrix on its range, and a basis of its null space.

    Zero is what is at most rounding of the terms each entry was summed from.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(terms), np.finfo(float).tiny))
    eigenvalues, vectors = np.linalg.eigh(scale[:, None] * D * scale)
    regular = np.abs(eigenvalues) > ZERO_INERTIA
    range_basis = scale[:, None] * vectors[:, regular]
    return range_basis / eigenvalues[regular] @ range_basis.T, scale[:, None] * vectors[:, ~regular]


def _response(joints: Sequence[ArticulatedJoint], unknown: Mask, start: int, direction: Floats) -> Mask:
    """Which entries of a move when one joint is pushed along a direction that nothing resists."""
    a = np.zeros(len(unknown))
    motions: list[Floats] = []
    for place, joint in enumerate(joints):
        carried = joint.Ad_child_parent @ motions[joint.parent] if joint.parent >= 0 else np.zeros(6)
        moved = direction if place == start else -joint.G.T @ carried
        a[joint.entries.start + np.flatnonzero(unknown[joint.entries])] = moved
        motions.append(carried + joint.S @ moved)
    return np.asarray(np.abs(a) > LOOSE_SHARE * np.abs(a).max(initial=0.0), dtype=bool)


def _least_share(bodies: ArticulatedBodies) -> float:
    """The least inertia that a motor feels, as a share of the largest, in the mechanism's own units."""
    units = natural(bodies.state.mechanism).v
    moving = [joint for joint in bodies.joints if joint.D.size]
    sizes = [np.diag(joint.D) * units[joint.entries] ** 2 for joint in moving]
    shares = [1.0 if len(j.D) == 1 else np.linalg.eigvalsh(balanced_inertia(j.D)[0])[0] for j in moving]
    least = min((size.min() * share for size, share in zip(sizes, shares, strict=True)), default=1.0)
    return float(least / max((size.max() for size in sizes), default=1.0))


def _massless_beyond(mechanism: Mechanism, joints: list[str]) -> str:
    links = [mechanism.joint_by_name[name].child for name in joints]
    massless = [link for link in links if not mechanism.link_by_name[link].spatial_inertia.any()]
    if not massless:
        return ""
    return f"Links without mass and inertia: {', '.join(massless)}. "
