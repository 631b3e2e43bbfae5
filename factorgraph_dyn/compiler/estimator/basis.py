"""Which readings of an estimator determine everything: the same at all states, chosen once a kernel.

Takes the problem at sampled states in plain floats; gives indices of readings. At each of some states the best readings
are chosen (``equations.posterior``), and of all the choices the one whose other readings follow with the smallest
coefficients at the worst of the states. Readings of torques, accelerations of joints and wrenches from outside are
preferred unless others are far more exact: with these the graph is that of hybrid dynamics, which the classical
orderings eliminate cheaply and well at any state. What is lost is bounded, since coefficients are at most `PREFERENCE`
times as large. The choice has to determine everything where axes line up, too, as far as there is one that does.
"""

from __future__ import annotations

from functools import cache

import numpy as np

from factorgraph_dyn.compiler.estimator.plain import PlainRows
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.posterior import INDEPENDENT, Basis, Evidence, of_unit_length
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.sensors import Acceleration, ExternalWrench, Sensor, Torque
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.motion.closure import rank_tolerance
from factorgraph_dyn.spatial import Floats

PREFERENCE = 32.0
PREFERRED = (Torque, Acceleration, ExternalWrench)
FORCES = (Torque, ExternalWrench)  # with these alone the graph is that of forward dynamics, which trees never fail
TRIED = 8  # ordinary states at which readings are chosen
WEAK = 30.0  # times less than all readings say: a choice of them that says so little at some state loses digits there
BLIND = 1e6  # the same where nothing is left
NEARLY_DEPENDENT = 1e-10  # share of the longest of orthogonal parts below which rows may depend on each other
MOST_GROWTH = 1e4  # of coefficients, up to which a choice that sees more is taken: their squares lose digits

Rows = tuple[Floats, Floats]
Choice = tuple[int, ...]


def dependence(mechanism: Mechanism) -> float:
    """Part of a row that others do not say, below which it says nothing new."""
    return rank_tolerance(mechanism) if mechanism.is_closed_kind else INDEPENDENT


def basis_readings(mechanism: Mechanism, problem: Problem, seed: int) -> tuple[int, ...]:
    """Indices of the readings that determine everything, among all of them, sorted.

    Raises:
        CompileError: An exact reading repeats what others say exactly.
    """
    states, unsaid = sampled_states(mechanism, seed), dependence(mechanism)
    first = states.special
    tried = slice(0, first + TRIED)
    here = ManyStates(mechanism, states.q[tried], states.v[tried], natural(mechanism).length)
    plain, nothing = PlainRows(here, problem), np.zeros(problem.size_of(mechanism, "values"))
    found = [plain.evidence(state, nothing) for state in range(here.states)]
    liked, forces = (_of_kinds(mechanism, problem, len(found[0].y), kinds) for kinds in (PREFERRED, FORCES))
    units = [of_unit_length(evidence, unsaid) for evidence in found]

    def weighed(some: Mask, preference: float) -> list[Rows]:
        return [(unit.K, np.where(some, unit.s / preference, unit.s)) for unit, _ in units]

    rows = weighed(liked, PREFERENCE)
    special, ordinary = rows[:first], rows[first:]
    usual = np.median([length for _, length in units[first:]], axis=0)

    def choices(at: list[Rows]) -> set[Choice]:
        return {tuple(sorted(Basis(K, s, unsaid).chosen)) for K, s in at}

    @cache
    def growth(choice: Choice) -> float:
        return max(_growth(K, s, choice) for K, s in ordinary)

    def unseen(choice: Choice) -> list[float]:
        return [_unseen(unit.K * (length / usual)[:, None], choice) for unit, length in units[:first]]

    def loss(choice: Choice) -> tuple[int, float]:
        shares = unseen(choice)
        seen = [share for share in shares if share < BLIND]
        return len(shares) - len(seen), max([growth(choice), *seen])

    best = min(choices(ordinary), key=growth)
    if max(unseen(best)) > WEAK:  # where axes line up others may say more, and cost little elsewhere
        candidates = choices(special) | choices(weighed(liked, MOST_GROWTH)) | choices(weighed(forces, MOST_GROWTH))
        others = [choice for choice in candidates if len(choice) == len(best) and growth(choice) <= MOST_GROWTH]
        best = min((best, *others), key=loss)
    return _readings(mechanism, problem, found[first], best)


def _unseen(K: Floats, chosen: Choice) -> float:
    """How many times less the chosen rows say at a state than all rows together, of as many freedoms.

    What none of them tells, as what presses a planar loop out of its plane, leaves all rows with fewer.
    """
    if not chosen:
        return 1.0
    said, all_said = (np.linalg.svd(rows, compute_uv=False)[len(chosen) - 1] for rows in (K[list(chosen)], K))
    return float(all_said / said) if said else np.inf if all_said else 1.0


def _of_kinds(mechanism: Mechanism, problem: Problem, rows: int, kinds: tuple[type[Sensor], ...]) -> Mask:
    """Which rows are of sensors of some kinds, shape (rows,)."""
    sensors = problem.measurements
    asked = [np.full(sensor.size(mechanism), isinstance(sensor, kinds)) for sensor in sensors]
    said = np.concatenate(asked)[_spoken(mechanism, problem)]
    return np.concatenate([np.zeros(rows - len(said), dtype=bool), said])


def _growth(K: Floats, s: Floats, chosen: Choice) -> float:
    """The largest coefficient with which readings follow from the chosen ones, in standard deviations."""
    first, noisy = list(chosen), s > 0
    C = _coefficients(K[first], K[noisy])
    return float(np.max(np.abs(C) * s[first] / s[noisy][:, None], initial=0.0))


def _coefficients(chosen: Floats, rows: Floats) -> Floats:
    """C of rows = C chosen, in the sense of least squares."""
    Q, R = np.linalg.qr(chosen.T)
    diagonal = np.abs(np.diag(R))
    if diagonal.min(initial=np.inf) > NEARLY_DEPENDENT * diagonal.max(initial=0.0):
        return np.asarray(np.linalg.solve(R, Q.T @ rows.T).T)
    return np.asarray(np.linalg.lstsq(chosen.T, rows.T, rcond=None)[0].T)  # twenty times as long


def _readings(mechanism: Mechanism, problem: Problem, evidence: Evidence, chosen: Choice) -> tuple[int, ...]:
    """Rows of evidence as indices of readings."""
    exact = len(evidence.y) - _spoken(mechanism, problem).sum()
    places = np.flatnonzero(_spoken(mechanism, problem))
    others = set(range(exact, len(evidence.y))) - set(chosen)
    repeated = sorted({evidence.labels[row] for row in others if evidence.s[row] == 0})
    if repeated:
        raise CompileError(
            f"The exact readings of {', '.join(repeated)} follow from others that are exact, and may contradict them; "
            "give them a standard deviation, or leave them out."
        )
    return tuple(int(places[row - exact]) for row in sorted(chosen) if row >= exact)


def _spoken(mechanism: Mechanism, problem: Problem) -> Mask:
    """Which readings say something, shape (readings,)."""
    return np.concatenate([np.isfinite(sensor.noise(mechanism).s) for sensor in problem.measurements])
