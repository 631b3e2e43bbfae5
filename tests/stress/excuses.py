"""Where having no number is no fault: states that are singular in the mechanism's own units, or of another branch.

The oracle scales its equations at every state, and so finds answers where a needle lies along its axis and a joint
moves next to nothing of the inertia that bodies have: there the mass matrix has a condition of one over that share,
whatever the units. And a kernel of loops is for one branch of them, as it says; in others it may be silent. Both are
reasons for no answer only, never for a wrong one.
"""

from __future__ import annotations

import numpy as np

import factorgraph_dyn as fgd
from tests.stress import constraints
from tests.stress.asking import mobility
from tests.stress.kinematics import LD, array, bodies, hat, slices
from tests.stress.oracle import Oracle, freedom_units, own_length
from tests.stress.questions import MATRICES, Case, Question
from tests.stress.recipe import State, normalised

NOTHING = 1e-8  # of the inertia that bodies have: one over the largest condition of what has to be answered
INDEPENDENT = 1e-6  # least eigenvalue of motions that are told apart
STILL = 1e-9  # of the largest motion
APART = 1e-6  # of rotations and of the mechanism's length: two ways to assemble
BESIDE = 0.05  # rad or lengths: far enough from where joints stand still for an instant


def excuse(mechanism, case: Case, question: Question) -> str | None:
    """The class of a question without an answer: "singular", "branch", or None where it ought to have one."""
    if question.problem == "estimate":
        return None
    if _least_share_of_inertia(mechanism, case, question) < NOTHING:
        return "singular"
    if question.way == "kernel" and mechanism.loops and is_elsewhere(mechanism, case.state):
        return "branch"
    return None


def _least_share_of_inertia(mechanism, case: Case, question: Question) -> float:
    """The least that an unknown motion moves of the inertia that it would if bodies were balls of their largest."""
    oracle = Oracle(mechanism, case.state.q, case.state.v)
    unknown = ~case.a_known
    if question.problem == "mass_matrix" or not unknown.any():
        return 1.0
    motions = np.eye(mechanism.nv) if question.problem in MATRICES[1:] else mobility(mechanism, case.state)[1]
    known = motions[~unknown]
    motions = motions @ _null_space(known) if len(known) else motions
    rough = _rough_mass_matrix(oracle)
    size = np.sqrt(np.maximum(np.diag(rough).astype(float), np.finfo(float).tiny))
    M, R = (motions.T @ (matrix / np.outer(size, size)).astype(float) @ motions for matrix in (oracle.M, rough))
    values, vectors = np.linalg.eigh(R)
    kept = values > INDEPENDENT * values.max(initial=0.0)
    moving = vectors[:, kept] / np.sqrt(values[kept])
    return float(np.linalg.eigvalsh(moving.T @ M @ moving).min(initial=1.0))


def _null_space(A) -> np.ndarray:
    _, s, right = np.linalg.svd(A)
    return right[int((s > INDEPENDENT * s.max(initial=0.0)).sum()) :].T


def _rough_mass_matrix(oracle: Oracle) -> np.ndarray:
    """The mass matrix of balls: bodies with the largest of their inertia about every axis."""
    rough = np.diag(oracle.armature)
    for link in oracle.mechanism.links:
        body = oracle.bodies[link.name]
        arms = body.U - hat(body.R @ array(link.com)) @ body.W
        largest = np.abs(array(link.inertia)).max(initial=LD(0))
        rough = rough + largest * body.W.T @ body.W + LD(link.mass) * arms.T @ arms
    return rough


def is_elsewhere(mechanism, state: State) -> bool:
    """Whether other joints move than at the package's random states, or those that do not are assembled otherwise.

    Links that lie upon each other turn as one and hold joints that move in the usual branch: here, and beside it along
    the freedoms. What loops lock does so in several ways, some of which no random start leads to.
    """
    try:
        usual = State(*mechanism.random_state(0), state.tau, {})
    except fgd.ClosureError:
        return False
    here, there = _still(mechanism, state), _still(mechanism, usual)
    if (here == there).all():
        return _are_locked_elsewhere(mechanism, state, usual, here)
    units = freedom_units(mechanism)
    _, motions = mobility(mechanism, state)
    along = motions @ np.random.default_rng(0).normal(size=motions.shape[1])
    step = array(BESIDE * along / np.abs(along).max(initial=1e-300)) * units
    q = constraints.close(mechanism, constraints.moved(mechanism, state.q, step), units)
    if q is None:
        return False
    beside = State(normalised(mechanism, q), np.zeros(mechanism.nv), state.tau, {})
    return bool((_still(mechanism, beside) != there).any())


def _are_locked_elsewhere(mechanism, state: State, usual: State, still) -> bool:
    """Whether joints none of whose freedoms moves hold their links elsewhere than at another state."""
    found, there = (bodies(mechanism, at.q, np.zeros(mechanism.nv)) for at in (state, usual))
    at_v, length = slices(mechanism, 1), own_length(mechanism)
    for joint in mechanism.joints:
        if still[at_v[joint.name]].all():
            (R, p), (R_there, p_there) = (
                (
                    at[joint.parent].R.T @ at[joint.child].R,
                    at[joint.parent].R.T @ (at[joint.child].p - at[joint.parent].p),
                )
                for at in (found, there)
            )
            if max(np.abs(R - R_there).max(), np.abs(p - p_there).max() / length) > APART:
                return True
    return False


def _still(mechanism, state: State) -> np.ndarray:
    """Which freedoms closure leaves no motion."""
    _, motions = mobility(mechanism, state)
    return np.abs(motions).max(axis=1, initial=0.0) < STILL
