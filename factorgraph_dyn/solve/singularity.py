"""Why a system has no unique answer, in names of joints and links.

In a tree the wrenches and torques always follow from the accelerations, so a dynamics problem is
determined exactly when the part M_uu of the mass matrix that belongs to unknown accelerations is
regular. M is scaled by its diagonal first, and the diagonal is measured against the sizes of the
terms it is summed from: light links are no singularity, links without inertia are.

Looking costs more than solving, so a quick estimate of the elimination's condition comes first.
"""

from __future__ import annotations

import gtsam
import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, LinearGraph, State, evaluate_state
from factorgraph_dyn.errors import SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.solve.elimination import BayesNet
from factorgraph_dyn.spatial import Floats

SUSPICIOUS_GROWTH = 1e7  # answers that grow a right-hand side by more than this are looked into
ZERO_INERTIA = 1e-13  # of the terms a diagonal entry of M is summed from
ZERO_EIGENVALUE = 1e-13  # of the mass matrix scaled to unit diagonal

Mask = npt.NDArray[np.bool_]


def check_determined(state: State, known: Known, graph: LinearGraph, net: BayesNet | None) -> None:
    """Raise a SingularSystemError if the elimination was singular up to rounding."""
    if state.mechanism.is_closed_kind:
        return
    if net is not None and _growth(graph, net) < SUSPICIOUS_GROWTH:
        return
    at_rest = evaluate_state(state.mechanism, state.q, np.zeros(state.mechanism.nv))
    check_mass_matrix(_mass_matrix(at_rest), state, ~known.a_mask)


def explain(state: State, known: Known, error: SingularSystemError) -> SingularSystemError:
    """The same error with its cause found."""
    try:
        check_determined(state, known, error.details["graph"], None)
    except SingularSystemError as explained:
        explained.details.update(error.details)
        return explained
    return error


def check_mass_matrix(M: Floats, state: State, unknown: Mask) -> None:
    """Raise a SingularSystemError naming the joints along which M_uu has no inertia."""
    loose = _directions_without_inertia(state, M, unknown)
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


def _directions_without_inertia(state: State, M: Floats, unknown: Mask) -> Mask:
    """Which entries of v take part in a motion of the unknown joints that needs no torque, shape (nv,)."""
    loose = np.zeros(len(M), dtype=bool)
    entries = np.flatnonzero(unknown)
    diagonal = np.diag(M)[entries]
    zero = diagonal <= ZERO_INERTIA * _diagonal_terms(state)[entries]
    loose[entries[zero]] = True
    rest = entries[~zero]
    if len(rest):
        scale = 1.0 / np.sqrt(diagonal[~zero])
        eigenvalues, vectors = np.linalg.eigh(scale[:, None] * M[np.ix_(rest, rest)] * scale)
        null = np.abs(eigenvalues) < ZERO_EIGENVALUE * len(rest)
        if null.any():
            loose[rest] = np.abs(vectors[:, null]).max(axis=1) > 1e-6
    return loose


def _diagonal_terms(state: State) -> Floats:
    """The sum of the sizes of all terms in each diagonal entry of M, shape (nv,)."""
    mechanism = state.mechanism
    composite = {link.name: np.abs(link.spatial_inertia) for link in mechanism.links}
    terms = np.zeros(mechanism.nv)
    for joint in reversed(mechanism.topology.outward):
        here = state.joints[joint.name]
        size = np.abs(here.Ad_child_parent)
        composite[joint.parent] = composite[joint.parent] + size.T @ composite[joint.child] @ size
        S = np.abs(here.S)
        terms[mechanism.v_slices[joint.name]] = np.diag(S.T @ composite[joint.child] @ S) + joint.armature
    return terms


def _massless_beyond(mechanism: Mechanism, joints: list[str]) -> str:
    links = [mechanism.joint_by_name[name].child for name in joints]
    massless = [link for link in links if not mechanism.link_by_name[link].spatial_inertia.any()]
    if not massless:
        return ""
    return f"Links without mass and inertia: {', '.join(massless)}. "


def _growth(graph: LinearGraph, net: BayesNet) -> float:
    """How much back-substitution grows a right-hand side of ones: an estimate of 1 / least pivot."""
    ones = gtsam.VectorValues()
    for key, variable in enumerate(graph.variables):
        ones.insert(key, np.ones(variable.size))
    try:
        grown = float(np.abs(net.net.backSubstitute(ones).vector()).max(initial=0.0))
    except RuntimeError:
        return np.inf
    return grown if np.isfinite(grown) else np.inf


def _mass_matrix(state: State) -> Floats:
    from factorgraph_dyn.solve.mass_matrix import mass_matrix_at  # it checks its own answers here

    return mass_matrix_at(state)
