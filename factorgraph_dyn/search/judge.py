"""The last word on what a search found: the real compiler's count, the real error, the real time.

Takes the best orderings by score; gives the one to use. An ordering whose error is more than ten times the
classical one's is passed over. The work runs once a search, a tenth of a second an ordering and half a
second more where kernels are timed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from time import monotonic, perf_counter

import numpy as np

from factorgraph_dyn.compare.accuracy import AccuracyCheck
from factorgraph_dyn.compiler import Kernel, Operations
from factorgraph_dyn.compiler.kernel.compile import compile_problem
from factorgraph_dyn.compiler.sampled_parameters import own_values
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.errors import FactorGraphDynError, OrderingError
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.search.anneal import Names
from factorgraph_dyn.search.results import Baseline
from factorgraph_dyn.search.tasks import Asked
from factorgraph_dyn.spatial import Floats

BASELINES = ("aba", "crba", "rnea")
JUDGED = 5  # orderings
TIMING_ROUNDS = 60
BATCH = 4096


@dataclass(frozen=True)
class Verdict:
    """The chosen ordering and what is known of it and of those it is compared with."""

    variables: Names
    score: float
    operations: Operations | None
    error: float | None
    seconds_a_state: float | None
    baseline: Mapping[str, Baseline]


@dataclass(frozen=True, eq=False)
class _Candidate:
    name: str
    variables: Names
    score: float
    operations: Operations
    error: float
    times: list[float] = field(default_factory=list)

    @property
    def seconds_a_state(self) -> float | None:
        return min(self.times) / BATCH if self.times else None


class Judge:
    """Compiles and measures orderings of one problem."""

    def __init__(self, asked: Asked, problem: Problem, named: Mapping[str, Names]) -> None:
        self.asked, self.problem, self.named = asked, problem, named
        self._kernelless = asked.objective in ("depth", "blocks")

    def choose(self, elites: Sequence[tuple[float, Names]], deadline: float = math.inf) -> Verdict:
        """The best of the best.

        Args:
            elites: Score and ordering, best first.
            deadline: Monotonic time after which no more than one good one is judged, s.

        Raises:
            OrderingError: None of them is exact enough.
        """
        if self._kernelless:
            score, variables = elites[0]
            return Verdict(variables, score, None, None, None, {})
        check = AccuracyCheck(self.asked.mechanism, self.problem)
        scores = {names: score for score, names in elites}
        baseline = [
            found
            for name in BASELINES
            if name in self.named
            and (found := self._measure(name, self.named[name], scores.get(self.named[name]), check))
        ]
        allowed = check.allowed
        candidates: list[_Candidate] = []
        for score, names in elites:
            found = self._measure("search", names, score, check)
            if found is not None and found.error <= allowed:
                candidates.append(found)
            if len(candidates) == JUDGED or (candidates and monotonic() > deadline):
                break
        if not candidates:
            raise OrderingError(
                f"None of the {len(elites)} best orderings is as exact as {self.problem.classical}: errors "
                f"above {allowed:.1e}. Search longer, or with another seed."
            )
        # A score is an estimate: a classical ordering may turn out to be the best of all.
        best = self._best([*candidates, *(x for x in baseline if x.error <= allowed)], baseline)
        named = {x.name: Baseline(x.operations, x.error, x.seconds_a_state) for x in baseline}
        return Verdict(best.variables, best.score, best.operations, best.error, best.seconds_a_state, named)

    def _measure(self, name: str, variables: Names, score: float | None, check: AccuracyCheck) -> _Candidate | None:
        try:
            program = trace(self.asked.mechanism, self.problem, Ordering(name, variables)).program
        except FactorGraphDynError:
            return None
        count = program.operations
        return _Candidate(name, variables, count.total if score is None else score, count, check.error(program))

    def _best(self, candidates: list[_Candidate], baseline: list[_Candidate]) -> _Candidate:
        if self.asked.objective == "operations":
            return min(candidates, key=lambda x: x.operations.total)
        self._time(list(dict.fromkeys([*candidates, *baseline])))
        return min(candidates, key=lambda x: min(x.times))

    def _time(self, candidates: list[_Candidate]) -> None:
        """Time all kernels in turn, many times, so that a busy moment hits all alike."""
        kernels = [self._kernel(x) for x in candidates]
        rng = np.random.default_rng(0)
        mechanism = self.asked.mechanism
        drawn = [mechanism.random_state(rng) for _ in range(64)]
        q, v = (np.resize(np.array(column), (BATCH, len(column[0]))) for column in zip(*drawn, strict=True))
        values: dict[str, Floats] = {"q": q, "v": v}
        values |= {name: np.asarray(rng.normal(size=v.shape)) for name in ("a", "tau")}
        values |= {name: own_values(mechanism, name, self.problem.free.links) for name in self.problem.free.arguments}
        arguments = [values[name] for name in self.problem.arguments]
        for kernel in kernels:
            kernel(*arguments)
        for _ in range(TIMING_ROUNDS):
            for kernel, candidate in zip(kernels, candidates, strict=True):
                begin = perf_counter()
                kernel(*arguments)
                candidate.times.append(perf_counter() - begin)

    def _kernel(self, candidate: _Candidate) -> Kernel:
        return compile_problem(self.asked.mechanism, self.problem, Ordering(candidate.name, candidate.variables))
