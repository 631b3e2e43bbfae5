"""The search for a better ordering, that is, for a better algorithm.

Takes a mechanism, a problem and an objective; gives the best ordering found, checked on the real compiler.

    starts     classical, general, dissected orderings and those between aba and crba; the exact block optimum
               of small graphs; a results file's best ones
    beam       whole variables inserted position by position, every lane from starts of its own
    annealing  one long cooling a lane, in rounds; all halves of variables and steps inside joints move by themselves
    judging    the best ones are compiled for real and must be nearly as exact as the classical ordering;
               with objective "time" they are also timed

Lanes are run by an executor; after a half and after three quarters of the rounds the worse half of them goes on
from where the better half stands. Rounds end by the clock, or after so many evaluations where their number is asked
for: then the result depends on the seed, the lanes and the rounds alone, never on which worker was faster.

The work runs once a mechanism and problem, for as long as the budget says.
"""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Sequence
from concurrent.futures import Executor
from numbers import Real
from pathlib import Path
from time import monotonic

from factorgraph_dyn.checks import as_names, check_choice, check_count, check_kind, check_path, shown
from factorgraph_dyn.equations.problem import SEARCHED_NAMES, problem_graph
from factorgraph_dyn.errors import FactorGraphDynError, InputError, OrderingError
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.ordering import ORDERING_NAMES, choose_ordering, saved
from factorgraph_dyn.ordering.dissection import dissection
from factorgraph_dyn.ordering.halves import joined
from factorgraph_dyn.search import tasks
from factorgraph_dyn.search.anneal import Elites, Found, Names
from factorgraph_dyn.search.exact import ExactResult, exact_ordering
from factorgraph_dyn.search.judge import Judge
from factorgraph_dyn.search.processes import ProcessExecutor
from factorgraph_dyn.search.progress import Progress
from factorgraph_dyn.search.results import SearchResult
from factorgraph_dyn.search.scores import OBJECTIVES, Score
from factorgraph_dyn.search.starts import mixed_orderings
from factorgraph_dyn.search.tasks import Asked, Task

ROUNDS = 16  # of annealing, where the clock ends them
ROUND = 200  # evaluations of a lane in one round, where the number of rounds is asked for
SHORTEST_ROUND = 40
USUAL_SIZE = 21  # variables of a seven-joint arm, for which rounds and temperatures are right
HOT, COLD = 0.004, 0.0004  # first and last temperature, as parts of the score
BEAM_WIDTH = 4
BEAM_SHARE = 0.05  # of the budget
FAR = 1.3
STARTING_SHARE = 0.15  # of the budget, for scoring what is known already
EXACT_SHARE = 0.1  # of the budget, for the block optimum
SETS_PER_SECOND = 10_000  # that the exact search is sure to manage
JUDGING_SHARE = 0.06  # of the budget, kept for compiling the best ones

Place = tuple[float, Names]
"""Score and ordering at which a lane stands."""


def search_orderings(
    mechanism: Mechanism,
    problem: str = "forward",
    *,
    budget: float = 60.0,
    objective: str = "operations",
    executor: Executor | None = None,
    seed: int = 0,
    known_accelerations: Sequence[str] = (),
    actuated: Iterable[str] | None = None,
    parameters: str | Sequence[str] | None = None,
    lanes: int | None = None,
    rounds: int | None = None,
    results: str | os.PathLike[str] | None = None,
    resume: bool = True,
    progress: bool | None = None,
    save: bool = True,
) -> SearchResult:
    """The best ordering found for a problem; it can be passed as ``ordering=``.

    Ctrl-C ends the search early and keeps the best so far.

    Args:
        mechanism: The mechanism.
        problem: "forward", "inverse", "hybrid", "iwim", "inverse_mass_matrix", "mass_matrix" or "regressor".
        budget: Seconds.
        objective: "operations" of the kernel, its "time", "depth" of the clique tree, or "blocks", the
            operations of the block cost model, which is searched completely where the graph is small.
        executor: Any ``concurrent.futures`` executor, such as a Dask client's ``get_executor()``; by default
            one process a core.
        seed: Same seed, lanes and rounds, same result.
        known_accelerations: Of a hybrid problem, the joints whose acceleration is given.
        actuated: Of inverse and iwim problems, the joints that have a motor.
        parameters: What the kernel takes as arguments instead of constants, as for ``fgd.compile``.
        lanes: Searches side by side; by default as many as the executor has workers.
        rounds: Cool in this many rounds of some hundred orderings, however much of the budget is left; by default
            as slowly as the budget allows.
        results: A results file to go on from, and to keep up to date.
        resume: Whether to go on from the results file, if it exists, and from what earlier searches have saved,
            or to start anew.
        progress: Whether to show a progress bar; by default where there is a terminal.
        save: Whether ``ordering="search"`` shall find the result, unless an earlier one is better; without it what
            was saved does not count either.

    Raises:
        InputError: A budget, objective, problem or path that cannot be.
        OrderingError: The results file is of another mechanism, problem or version.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> found = fgd.search_orderings(arm, "forward", budget=0.5)
        >>> fgd.compile(arm, "forward", ordering=found).operations.total == found.operations.total
        True
    """
    check_choice(problem, SEARCHED_NAMES, "The problem of a search")
    _check(budget, objective, lanes, rounds, executor)
    check_count(seed, "seed", least=0)
    for name, flag in (
        ("resume", resume),
        ("progress", bool(progress) if progress is None else progress),
        ("save", save),
    ):
        check_kind(flag, bool, name, "True or False")
    known = as_names(known_accelerations, "known_accelerations")
    asked = Asked(check_movable(mechanism, "search"), problem, objective, known,
                  None if actuated is None else as_names(actuated, "actuated"),
                  () if parameters is None else as_names(parameters, "parameters"))  # fmt: skip
    path = None if results is None else check_path(results, "The results file")
    search = _Search(asked, budget, seed, path)
    if path is not None:
        search.open(path, resume)
    if save:
        search.remember(resume)
    own = ProcessExecutor(os.cpu_count() or 1) if executor is None else None
    try:
        with Progress(progress, f"{problem} of {mechanism.name}", budget) as bar:
            search.start()
            if objective != "blocks" or not search.proved:
                search.run(own or executor, lanes or _workers(own or executor), rounds, bar)
            result = search.finish()
    finally:
        if own is not None:
            own.stop()
    if save:
        saved.keep_best(result.saved(), beaten=search.earlier if resume else None)
    return result


class _Search:
    """A search while it runs."""

    def __init__(self, asked: Asked, budget: float, seed: int, path: Path | None) -> None:
        self.asked, self.budget, self.seed, self.path = asked, budget, seed, path
        self.began = monotonic()
        self.problem = asked.make_problem()
        self.elites = Elites()
        self.named: dict[str, Names] = {}
        self.block_optimum: ExactResult | None = None
        self.history: list[tuple[float, int, float]] = []
        self.evaluations = 0
        self.interrupted = False
        self.earlier: saved.SavedOrdering | None = None
        self._resumed: tuple[tuple[float, Names], ...] = ()

    @property
    def seconds(self) -> float:
        return monotonic() - self.began

    @property
    def _is_free(self) -> bool:
        """Whether parameters are arguments."""
        return bool(self.problem.free.arguments)

    @property
    def proved(self) -> bool:
        """Whether nothing can be better."""
        return self.asked.objective == "blocks" and self.block_optimum is not None and self.block_optimum.proved

    def open(self, path: Path, resume: bool) -> None:
        """Read the results file where there is one, and make sure that it can be written."""
        if path.exists() and resume:
            known = saved.read(path)
            mechanism = self.asked.mechanism
            saved.check_found_for(known, mechanism.fingerprint, mechanism.name, path)
            asked = (self.asked.problem, self.asked.objective, self._is_free)
            if (known.problem, known.objective, known.free) != asked:
                raise OrderingError(
                    f"The results file {str(path)!r} is for problem {known.problem!r}{_with(known.free)} and objective "
                    f"{known.objective!r}; asked for are {self.asked.problem!r}{_with(self._is_free)} and "
                    f"{self.asked.objective!r}. Name another file, or pass resume=False."
                )
            self._go_on_from(known)
        elif path.is_dir() or not os.access(path.parent, os.W_OK):
            raise InputError(
                f"The results file {str(path)!r} cannot be written. Choose a path in a folder that exists and is yours."
            )

    def remember(self, resume: bool) -> None:
        """Look up what earlier searches have saved, to go on from it or to be measured by it."""
        mechanism = self.asked.mechanism
        variables = problem_graph(mechanism, self.problem).by_name
        try:
            known = saved.best(mechanism.fingerprint, mechanism.name, variables, free=self._is_free)
        except OrderingError:
            return  # nothing, or nothing of use
        if known.objective == self.asked.objective:
            if resume:
                self._go_on_from(known)
            elif self.earlier is None:
                self.earlier = known

    def _go_on_from(self, known: saved.SavedOrdering) -> None:
        self._resumed += ((known.score, known.variables), *known.elites)
        if self.earlier is None or known.score < self.earlier.score:
            self.earlier = known

    def start(self) -> None:
        """Score what is known already."""
        score, _ = tasks.new_score(self.asked)
        for name in ORDERING_NAMES:
            try:
                self.named[name] = choose_ordering(self.asked.mechanism, score.graph, name).variables
            except FactorGraphDynError:
                continue
        candidates = [names for _, names in self._resumed if set(joined(names)) == set(score.graph.by_name)]
        candidates += self.named.values()
        dissected = dissection(self.asked.mechanism, score.graph)
        # The likeliest first: scoring stops when its share of the budget is used up.
        candidates.insert(0 if self.asked.objective == "depth" else len(candidates), dissected)
        candidates += mixed_orderings(self.asked.mechanism, score.graph)
        self._find_block_optimum(score)
        if self.block_optimum is not None:
            candidates.insert(0, self.block_optimum.variables)
        best = math.inf
        for names in dict.fromkeys(candidates):
            # A start that is far from the best is of no use, so scoring it to the end is not either.
            value = score(names, FAR * best)
            self.elites.offer(value, names)
            self.evaluations += 1
            if self.seconds > STARTING_SHARE * self.budget and math.isfinite(best):
                break
            best = min(best, value)
        if not self.elites.sorted():
            raise OrderingError(
                f"None of the named orderings can be compiled for the {self.asked.problem!r} problem of "
                f"{self.asked.mechanism.name!r}, so that a search has nowhere to start. Try "
                "fgd.diagnose(mechanism, q), or objective='blocks'."
            )
        self._note()

    def _find_block_optimum(self, score: Score) -> None:
        count = len(score.graph.variables)
        share = self.budget * (0.9 if self.asked.objective == "blocks" else EXACT_SHARE)
        if 2**count <= SETS_PER_SECOND * share:
            self.block_optimum = exact_ordering(score.graph, share)

    def run(self, executor: Executor | None, lanes: int, rounds: int | None, bar: Progress) -> None:
        """Run the beam, then rounds of annealing until the budget is used up."""
        places = self._beams(executor, lanes, rounds is not None, bar)
        total = rounds or ROUNDS
        for number in range(total):
            if self.interrupted or self._left <= 0:
                break
            # Lanes stop by the clock, all at once, unless the number of rounds alone is to decide.
            seconds, evaluations = (self._left / (total - number), None) if rounds is None else (self._left, ROUND)
            work = [
                self._annealing(number, total, lane, place, seconds, evaluations)
                for lane, (_, place) in enumerate(places)
            ]
            self._keep(places, self._gather(executor, work), bar)
            if number + 1 in (total // 2, total * 3 // 4):
                _share(places)

    @property
    def _left(self) -> float:
        """Seconds until the best ones are to be judged."""
        return self.budget * (1 - JUDGING_SHARE) - self.seconds

    def _beams(self, executor: Executor | None, lanes: int, counted: bool, bar: Progress) -> list[Place]:
        """Where each lane's beam ends."""
        known = self.elites.sorted()
        places = [known[lane % len(known)] for lane in range(lanes)]
        seconds, evaluations = (self._left, ROUND) if counted else (BEAM_SHARE * self.budget, None)
        work = []
        for lane in range(lanes):
            starts = dict.fromkeys(joined(names) for _, names in known[lane % len(known) :: lanes][:BEAM_WIDTH])
            work.append(Task(self.asked, tuple(starts), seconds, evaluations, width=BEAM_WIDTH))
        ends = list(places)
        self._keep(ends, self._gather(executor, work), bar)
        return [min(pair) for pair in zip(places, ends, strict=True)]  # a resumed search may stand better already

    def _annealing(
        self, number: int, total: int, lane: int, place: Names, seconds: float, evaluations: int | None
    ) -> Task:
        # A move is local: the larger the graph, the smaller its part of the score, and the slower a score.
        share = min(1.0, USUAL_SIZE / len(joined(place)))
        hot, cold = (share * HOT * (COLD / HOT) ** (k / total) for k in (number, number + 1))
        counted = None if evaluations is None else max(SHORTEST_ROUND, int(share * evaluations))
        seed = (self.seed * 1_000_003 + number) * 1_000 + lane
        return Task(self.asked, (place,), seconds, counted, seed, hot, cold)

    def _keep(self, places: list[Place], found: list[Found], bar: Progress) -> None:
        """Take over what the lanes found and where they stand."""
        for lane, outcome in enumerate(found):
            self.evaluations += outcome.evaluations
            self.interrupted |= outcome.interrupted
            for value, names in outcome.elites:
                self.elites.offer(value, names)
            places[lane] = outcome.last
        self._note()
        bar.update(self.seconds, self.elites.sorted()[0][0], self.evaluations)

    def _gather(self, executor: Executor | None, work: list[Task]) -> list[Found]:
        if executor is None:
            return [tasks.run(task) for task in work]
        futures = [executor.submit(tasks.run, task) for task in work]
        try:
            return [future.result() for future in futures]
        except KeyboardInterrupt:
            self.interrupted = True
            for future in futures:
                future.cancel()
            return [f.result() for f in futures if f.done() and not f.cancelled() and not f.exception()]

    def _note(self) -> None:
        """Remember how the best went down, and write it to the results file."""
        best = self.elites.sorted()[0]
        if self.history and self.history[-1][2] <= best[0]:
            return
        self.history.append((round(self.seconds, 3), self.evaluations, best[0]))
        if self.path is not None:
            mechanism = self.asked.mechanism
            saved.write(self.path, saved.SavedOrdering(
                mechanism.name, mechanism.fingerprint, self.asked.problem, self.asked.objective, best[1],
                best[0], {"evaluations": self.evaluations, "seed": self.seed}, self.elites.sorted(),
                self._is_free))  # fmt: skip

    def finish(self) -> SearchResult:
        """Judge the best ones and choose."""
        judge = Judge(self.asked, self.problem, self.named)
        verdict = judge.choose(self.elites.sorted(), self.began + self.budget)
        result = SearchResult(
            mechanism=self.asked.mechanism,
            problem=self.asked.problem,
            objective=self.asked.objective,
            variables=verdict.variables,
            score=verdict.score,
            operations=verdict.operations,
            error=verdict.error,
            seconds_a_state=verdict.seconds_a_state,
            baseline=verdict.baseline,
            block_optimum=self.block_optimum,
            proved=self.proved,
            evaluations=self.evaluations,
            seconds=self.seconds,
            seed=self.seed,
            interrupted=self.interrupted,
            history=tuple(self.history),
            elites=self.elites.sorted(),
            earlier=self.earlier,
            free=self._is_free,
        )
        if self.path is not None:
            saved.write(self.path, result.saved())
        return result


def _with(free: bool) -> str:
    return " with free parameters" if free else ""


def _share(places: list[Place]) -> None:
    """Let the worse half of the lanes go on from where the better half stands."""
    by_score = sorted(range(len(places)), key=lambda lane: places[lane][0])
    half = (len(places) + 1) // 2
    for better, worse in zip(by_score, by_score[half:], strict=False):
        places[worse] = places[better]


def _workers(executor: Executor | None) -> int:
    """How many tasks an executor can run at once, as far as it says."""
    count = getattr(executor, "_max_workers", None)
    if isinstance(count, int):
        return count
    client = getattr(executor, "_client", None)  # Dask's
    if client is not None:
        return max(1, int(sum(client.ncores().values())))
    return os.cpu_count() or 1


def _check(budget: float, objective: str, lanes: int | None, rounds: int | None, executor: Executor | None) -> None:
    if isinstance(budget, bool) or not isinstance(budget, Real) or not 0 < budget < math.inf:
        raise InputError(f"budget is {shown(budget)}; it must be a number of seconds above zero, such as 60.")
    check_choice(objective, OBJECTIVES, "The objective")
    for name, value in (("lanes", lanes), ("rounds", rounds)):
        if value is not None:
            check_count(value, name)
    if executor is not None and (isinstance(executor, type) or not callable(getattr(executor, "submit", None))):
        raise InputError(
            f"executor is {shown(executor)}; it must be an instance of a concurrent.futures executor, such as "
            "ProcessPoolExecutor() or a Dask client's get_executor(). Leave it out for one process a core."
        )
