"""A compiled estimator's answers, beside least squares in plain floats.

Takes a mechanism, a problem and a compiled function; gives how exact its answers are, at trial states and for random
readings that fit the mechanism up to their noise. True values come from rows of Newton and Euler (``plain``) by
``equations.posterior``; nothing of it knows a tape. Errors are measured by the norm of the answer or, where that is
larger, by a part of its terms. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.compiler.estimator.basis import dependence
from factorgraph_dyn.compiler.estimator.plain import PlainRows
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.compiler.proof.plain_system import CANCELLED, SOLVABLE, TINY
from factorgraph_dyn.compiler.proof.proof import REGULAR, Function, Proof
from factorgraph_dyn.compiler.proof.trials import SEED, make_trials
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.posterior import Evidence, Posterior, of_unit_length, posterior
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from factorgraph_dyn.spatial import Floats

_ROUNDED_ROW = 1e-13  # of the terms that a row is summed from
_MOST_SILENT = 0.5  # share of the special states that may go unanswered: one choice of readings does not see all


class EstimateTrial:
    """An estimator's true answers at trial states."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        self.mechanism, self.problem = mechanism, problem
        rng = np.random.default_rng(SEED)
        self.states = make_trials(mechanism, rng)
        with np.errstate(all="ignore"):
            here = ManyStates(mechanism, self.states.q, self.states.v, natural(mechanism).length)
            self.plain = PlainRows(here, problem)
            rate = (natural_rate(mechanism) or 1.0) ** 2
            self.drawn = rng.normal(size=(here.states, len(self.plain.units))) * rate
            self.values = self.plain.readings(self._allowed()) + self._noise(rng)
            evidence = [self.plain.evidence(state, self.values[state]) for state in range(here.states)]
            self.posteriors = [self._posterior(rows) for rows in evidence]
            self.terms = self._terms(evidence)
        self.condition = np.array([_condition(found) for found in self.posteriors])

    def _allowed(self) -> Floats:
        """What the mechanism can do at every state that is nearest to what was drawn."""
        unsaid, found = dependence(self.mechanism), []
        for state, z in enumerate(self.drawn):
            exact, _ = of_unit_length(self.plain.exact(state), unsaid)
            found.append(z + np.linalg.lstsq(exact.K, exact.y - exact.K @ z, rcond=unsaid)[0])
        return np.array(found)

    def _noise(self, rng: np.random.Generator) -> Floats:
        noises = [sensor.noise(self.mechanism) for sensor in self.problem.measurements]
        drawn = [rng.normal(size=(len(self.states.q), noise.spoken.shape[1])) @ noise.spoken.T for noise in noises]
        return np.concatenate(drawn, axis=1)

    def _posterior(self, evidence: Evidence) -> Posterior:
        # The mechanism's own exact rows agree or do not matter here: closure is what the states are chosen for.
        return posterior(evidence, dependence(self.mechanism), None)

    def _terms(self, evidence: list[Evidence]) -> list[Floats]:
        """Sizes of what means of the basis' rows are made of at each state: of the terms of all rows they follow.

        Locked joints keep nothing of theirs.
        """
        everything = np.eye(len(self.plain.units))
        z = np.array([found.mean(found.basis.combinations(everything)) for found in self.posteriors])
        found = []
        for rows, sizes, known in zip(evidence, self.plain.row_sizes(z), self.posteriors, strict=True):
            unit, lengths = of_unit_length(rows, dependence(self.mechanism))
            terms = unit.y_terms + sizes / lengths
            found.append(terms[known.basis.chosen] + np.abs(known.gain * lengths) @ terms)
        return found

    def explains(self, refusal: CompileError) -> bool:
        """Whether the measurements determine next to nothing, so that it is not how they were taken that failed."""
        return not np.median(self.condition) < REGULAR

    def judge(self, function: Function) -> Proof:
        """How exact a kernel's function is."""
        with np.errstate(all="ignore"):
            results = function(self.states.q, self.states.v, self.values)
        results = results if isinstance(results, tuple) else (results,)
        answers = dict(zip(self.problem.outputs, results, strict=True))
        flat = [answer.reshape(len(answer), -1) for answer in answers.values()]
        answered = np.isfinite(np.concatenate(flat, axis=1)).all(axis=1)
        judged = answered & (self.condition < SOLVABLE)
        accuracy, worst = 0.0 if judged.any() else np.inf, "nothing"
        for name, answer in answers.items():
            errors = self._errors(name, answer, np.flatnonzero(judged).tolist())
            found = float(np.max(np.nan_to_num(errors, nan=np.inf), initial=0.0))
            if found > accuracy:
                accuracy, worst = found, name
        regular = self.condition < REGULAR
        return Proof(accuracy, worst, self._counts(regular), self._counts(regular & ~answered), _MOST_SILENT)

    def _counts(self, states: Mask) -> tuple[int, int]:
        ordinary = self.states.ordinary
        return int((states & ~ordinary).sum()), int((states & ordinary).sum())

    def _errors(self, name: str, answers: Floats, states: Sequence[int]) -> list[float]:
        """The largest error of a result at each of some states, relative to its size or terms."""
        kind, owner = split_name(name)
        of = owner if kind == "gain" else name
        sizes = self.plain.sizes_at(of, self.drawn)
        least = _ROUNDED_ROW * self.plain.sizes_at(of, np.ones_like(self.drawn), whole=False)
        return [self._error(kind, of, state, answers[state], sizes[state], least[state]) for state in states]

    def _error(self, kind: str, of: str, state: int, answer: Floats, size: Floats, least: Floats) -> float:
        """The same at one state; rows that are less than the least are rounding, and follow nothing."""
        N = self.plain.named(self.plain.columns, of)[state].T
        N = np.where((np.linalg.norm(N, axis=1) > least)[:, None], N, 0.0)
        found = self.posteriors[state]
        lengths = np.maximum(np.linalg.norm(N, axis=1), TINY)
        if found.basis.open(N / lengths[:, None]).any():
            return float("inf")
        C = found.basis.combinations(N / lengths[:, None]) * lengths[:, None]
        if kind == "gain":
            return self._gain_error(answer, C @ found.gain, lengths[:, None] * self._usual_gain(of, found))
        offset = self.plain.named(self.plain.offset, of)[state, 0]
        true = offset + found.mean(C)
        size = size + np.abs(C) @ (np.abs(found.expected) + self.terms[state])
        size = size + np.linalg.norm(found.square_root(C), axis=1)
        return _relative(answer - true, true, size)

    def _usual_gain(self, name: str, found: Posterior) -> Floats:
        """The most that a free unknown in its unit follows each row, of accelerations or of forces, too.

        What is locked, or is a torque without a motor, follows none, and has no other size. Where exact readings tell
        all of the motion, accelerations follow no other, and forces tell the size.
        """
        followed = np.abs(found.basis.combinations(np.eye(len(self.plain.units))) @ found.gain)
        everything = followed.max(axis=0, initial=0.0)
        if split_name(name)[0] not in ("a", "A"):
            return np.asarray(everything)
        motion = followed[: self.mechanism.nv].max(axis=0, initial=0.0)
        return np.asarray(np.where(motion > 0, motion, everything))

    def _gain_error(self, answer: Floats, gain: Floats, terms: Floats) -> float:
        """Errors of gains beside the largest of rows that are alike, or part of their terms, in the readings' noise."""
        noises = [sensor.noise(self.mechanism) for sensor in self.problem.measurements]
        s = np.concatenate([noise.s for noise in noises])
        spoken = np.isfinite(s)
        exact = gain.shape[1] - int(spoken.sum())
        true, sizes = np.zeros(answer.shape), np.zeros(answer.shape)
        true[:, spoken], sizes[:, spoken] = gain[:, exact:], CANCELLED * terms[:, exact:]
        weights = np.where(spoken & (s > 0), s, 1.0)
        alike = (-1, 3, answer.shape[1]) if len(answer) == 6 else (-1, 1, answer.shape[1])
        largest = (np.maximum(np.abs(true), sizes) * weights).reshape(alike).max(axis=(1, 2), initial=TINY)
        missed = (np.abs(answer - true) * weights).reshape(alike).max(axis=(1, 2), initial=0.0)
        return float((missed / largest).max(initial=0.0))


def _condition(found: Posterior) -> float:
    """How much the chosen rows grow what they are given."""
    least = min(found.basis.left, default=1.0)
    return float(1.0 / least**2)


def _relative(difference: Floats, true: Floats, size: Floats) -> float:
    """The largest error beside the answer or its terms, in groups of what is alike: three by three, or one by one."""
    alike = (-1, 3) if len(true) == 6 else (-1, 1)
    scale = np.linalg.norm(true.reshape(alike), axis=1)
    terms = CANCELLED * np.linalg.norm(size.reshape(alike), axis=1)
    errors = np.linalg.norm(difference.reshape(alike), axis=1) / np.maximum(np.maximum(scale, terms), TINY)
    return float(errors.max(initial=0.0))
