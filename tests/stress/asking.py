"""Random questions that have an answer: which problems, orderings, masks, motors and outputs to try."""

from __future__ import annotations

import numpy as np

from tests.stress.constraints import constraint_rows, scaled_pseudo_inverse
from tests.stress.kinematics import SIZES
from tests.stress.oracle import Oracle, freedom_units
from tests.stress.questions import MATRICES, NAMED, PROBLEMS, SEARCH, SHUFFLED, Question, entries_of

WEIGHTS = (0.34, 0.24, 0.22, 0.08, 0.06, 0.06)
LARGEST_SHUFFLED = 5  # joints and loops of kernels whose variables are permuted: their code grows fast
FEW_MOTORS = 0.2  # of inverse dynamics of trees: motions that some of the joints' motors cause
METHODS = {"iwim": ("columns", "iim", "eufm", "carpentier"), "mass_matrix": ("columns", "crba")}
METHODS["inverse_mass_matrix"] = METHODS["iwim"]


def mobility(mechanism, state) -> tuple[int, np.ndarray]:
    """How many freedoms closure leaves, and a basis of them (nv, mobility)."""
    units = np.asarray(freedom_units(mechanism), float)
    rows = constraint_rows(mechanism, state.q, state.v)
    if not rows:
        return mechanism.nv, np.eye(mechanism.nv)
    inverse, rank = scaled_pseudo_inverse(rows, freedom_units(mechanism))
    J = np.concatenate([row.J for row in rows])
    projector = np.asarray((np.eye(mechanism.nv) - inverse @ J) * freedom_units(mechanism), float) / units[:, None]
    left, _, _ = np.linalg.svd(projector)
    return mechanism.nv - rank, left[:, : mechanism.nv - rank]


def random_question(rng, mechanism, states, way: str, problem: str | None = None) -> Question | None:
    """A question, or None where the mechanism has none of this kind."""
    problem = problem or str(rng.choice(PROBLEMS, p=WEIGHTS))
    question = Question(way, problem, seed=int(rng.integers(1 << 30)))
    closed = bool(mechanism.loops or mechanism.couplings)
    moving = [joint.name for joint in mechanism.joints if SIZES[joint.kind][1]]
    if problem == "iwim":
        if rng.random() < 0.5 or not mechanism.motors:
            count = int(rng.integers(1, len(moving) + 1))
            drawn = set(rng.choice(moving, count, replace=False))
            question.actuated = [name for name in moving if name in drawn]  # columns follow this order
    elif closed and problem in ("inverse", "hybrid"):
        chosen = independent_joints(rng, mechanism, states)
        if chosen is None:
            return None
        if problem == "inverse":
            question.actuated = chosen
        else:
            question.known = {name: _flags(mechanism, name, True) for name in chosen if rng.random() < 0.6}
    elif problem == "inverse" and rng.random() < FEW_MOTORS:
        question.actuated = [name for name in moving if rng.random() < 0.6]
    elif problem == "hybrid":
        whole = rng.random() < 0.5
        for name in moving:
            flags = rng.random(SIZES[mechanism.joint_by_name[name].kind][1]) < 0.5
            question.known[name] = [bool(flags[0])] * len(flags) if whole else [bool(flag) for flag in flags]
    _choose_ordering(rng, mechanism, question)
    if problem in MATRICES:
        if way == "graph":
            question.method = str(rng.choice(METHODS[problem]))
    else:
        question.outputs = _outputs(rng, mechanism, states, question)
    return question


def _flags(mechanism, name, value) -> list[bool]:
    return [value] * SIZES[mechanism.joint_by_name[name].kind][1]


def independent_joints(rng, mechanism, states) -> list[str] | None:
    """Joints whose freedoms are a clear choice of coordinates at all states."""
    freedom, _ = mobility(mechanism, states[0])
    bases = [mobility(mechanism, state)[1] for state in states]
    if not freedom or any(basis.shape[1] != freedom for basis in bases):
        return None
    names = [joint.name for joint in mechanism.joints if SIZES[joint.kind][1]]
    for _ in range(4):
        rng.shuffle(names)
        chosen = []
        for name in names:
            mask = entries_of(mechanism, [*chosen, name])
            if mask.sum() <= freedom and all(_least(basis[mask]) > 1e-3 for basis in bases):
                chosen.append(name)
        if entries_of(mechanism, chosen).sum() == freedom:
            return chosen
    return None


def _least(rows) -> float:
    return float(np.linalg.svd(rows, compute_uv=False).min(initial=1.0))


def _choose_ordering(rng, mechanism, question: Question) -> None:
    how = rng.random()
    parts = len(mechanism.joints) + len(mechanism.loops)
    is_whole = all(len(set(flags)) == 1 for flags in question.known.values())
    if question.way == "graph" and question.problem in MATRICES:
        return
    if how < 0.4:
        return
    if how < 0.8:
        allowed = [name for name in NAMED if name != "rnea" or question.problem in ("inverse", "mass_matrix")]
        question.ordering = str(rng.choice(allowed))
    elif how < 0.985:
        if question.way == "graph" or parts <= LARGEST_SHUFFLED:
            question.ordering = SHUFFLED
    elif question.way == "kernel" and is_whole and parts <= LARGEST_SHUFFLED:
        question.ordering = SEARCH


def _outputs(rng, mechanism, states, question: Question) -> list[str] | None:
    """Some results beside the usual ones that are unique at all states; None for the usual ones."""
    if rng.random() < 0.5:
        return None
    links = [link.name for link in mechanism.links]
    joints = [part.name for part in (*mechanism.joints, *mechanism.loops)]
    names = [f"{kind}[{rng.choice(links)}]" for kind in rng.choice(["A", "V"], int(rng.integers(0, 3)))]
    names += [f"F[{name}]" for name in rng.choice(joints, min(len(joints), int(rng.integers(0, 3))), replace=False)]
    names = list(dict.fromkeys(["a", "tau", *names]))
    rng.shuffle(names)
    return _unique(mechanism, states, question, names)


def _unique(mechanism, states, question, names) -> list[str]:
    nv = mechanism.nv
    known = np.zeros(nv, dtype=bool)
    answered = [
        Oracle(mechanism, state.q, state.v).ask(np.zeros(nv), np.zeros(nv), known, ~known) for state in states[:1]
    ]
    return [name for name in names if name in ("a", "tau") or all(found[name].unique for found in answered)]
