"""Why a system has no unique answer, in names of joints and links.

In a tree the wrenches and torques always follow from the accelerations, so a dynamics problem is
determined exactly when the articulated-body D = S^T I^A S + armature of every joint with unknown
acceleration is regular. D is measured against the sizes of the terms it is summed from: light links
are no singularity, links without inertia are.

Looking costs more than solving, so a quick estimate of the elimination's condition comes first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.solve.own_units import own_state
from factorgraph_dyn.spatial import Floats

SUSPICIOUS_GROWTH = 1e7  # answers that grow a right-hand side by more than this are looked into
ZERO_INERTIA = 1e-14  # of the terms that D is summed from
LOOSE_SHARE = 1e-6  # joints that move less than this share of the fastest stand still

Mask = npt.NDArray[np.bool_]


def check_determined(state: State, known: Known, growth: float) -> None:
    """Raise a SingularSystemError if an elimination that grows this much was singular up to rounding."""
    if growth > SUSPICIOUS_GROWTH and not state.mechanism.is_closed_kind:
        check_inertia(state, ~known.a_mask)


def explain(state: State, known: Known, error: SingularSystemError) -> SingularSystemError:
    """The same error with its cause found."""
    try:
        check_determined(state, known, np.inf)
    except SingularSystemError as explained:
        explained.details.update(error.details)
        return explained
    return error


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
    mechanism = state.mechanism
    inertia = {link.name: link.spatial_inertia for link in mechanism.links}
    rigid = dict(inertia)  # composite bodies: what D would be if all joints further out were locked
    gain: dict[str, Floats] = {}  # a_j = -gain_j A_child's part that the parent brings
    free: dict[str, Floats] = {}  # directions of a_j that nothing resists
    for joint in reversed(mechanism.topology.outward):
        entries = unknown[mechanism.v_slices[joint.name]]
        Ad, S = state.joints[joint.name].Ad_child_parent, state.joints[joint.name].S[:, entries]
        U = inertia[joint.child] @ S
        D = S.T @ U + np.diag(joint.armature[entries])
        terms = np.abs(S).T @ np.abs(rigid[joint.child]) @ np.abs(S) + np.diag(joint.armature[entries])
        D_inverse, free[joint.name] = _inverse_and_null_space(D, terms)
        gain[joint.name] = D_inverse @ U.T
        passed = passed_inertia(inertia[joint.child], Ad, S, gain[joint.name], joint.armature[entries])
        inertia[joint.parent] = inertia[joint.parent] + passed
        rigid[joint.parent] = rigid[joint.parent] + Ad.T @ rigid[joint.child] @ Ad
    loose = np.zeros(mechanism.nv, dtype=bool)
    for start in mechanism.movable_joints:
        for direction in free[start.name].T:
            loose |= _response(state, unknown, gain, start.name, direction)
    return loose


def passed_inertia(inertia: Floats, Ad: Floats, S: Floats, gain: Floats, armature: Floats) -> Floats:
    """What a parent feels of a child's articulated inertia through their joint, shape (6, 6).

    With U = I S, D = S^T U + armature and the gain K = D^-1 U^T it is Ad^T (I - U D^-1 U^T) Ad, where a heavy child
    leaves rounding behind that is large for a light parent. As a sum of squares it leaves none:

        L^T I L + (K Ad)^T armature (K Ad),     L = Ad - S K Ad
    """
    follows = gain @ Ad
    left = Ad - S @ follows
    passed: Floats = left.T @ inertia @ left + follows.T @ (armature[:, None] * follows)
    return passed


def _inverse_and_null_space(D: Floats, terms: Floats) -> tuple[Floats, Floats]:
    """The inverse of a symmetric matrix on its range, and a basis of its null space.

    Zero is what is at most rounding of the terms each entry was summed from.
    """
    scale = 1.0 / np.sqrt(np.maximum(np.diag(terms), np.finfo(float).tiny))
    eigenvalues, vectors = np.linalg.eigh(scale[:, None] * D * scale)
    regular = np.abs(eigenvalues) > ZERO_INERTIA
    range_basis = scale[:, None] * vectors[:, regular]
    return range_basis / eigenvalues[regular] @ range_basis.T, scale[:, None] * vectors[:, ~regular]


def _response(state: State, unknown: Mask, gain: dict[str, Floats], start: str, direction: Floats) -> Mask:
    """Which entries of a move when one joint is pushed along a direction that nothing resists."""
    mechanism = state.mechanism
    a = np.zeros(mechanism.nv)
    motion = {link.name: np.zeros(6) for link in mechanism.links}
    for joint in mechanism.topology.outward:
        here = state.joints[joint.name]
        entries = np.flatnonzero(unknown[mechanism.v_slices[joint.name]])
        carried = here.Ad_child_parent @ motion[joint.parent]
        moved = direction if joint.name == start else -gain[joint.name] @ carried
        a[mechanism.v_slices[joint.name].start + entries] = moved
        motion[joint.child] = carried + here.S[:, entries] @ moved
    return np.asarray(np.abs(a) > LOOSE_SHARE * np.abs(a).max(initial=0.0), dtype=bool)


def _massless_beyond(mechanism: Mechanism, joints: list[str]) -> str:
    links = [mechanism.joint_by_name[name].child for name in joints]
    massless = [link for link in links if not mechanism.link_by_name[link].spatial_inertia.any()]
    if not massless:
        return ""
    return f"Links without mass and inertia: {', '.join(massless)}. "
