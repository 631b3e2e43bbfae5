"""Simulated annealing over orderings (Kirkpatrick, Gelatt & Vecchi 1983), and a beam of insertions.

Takes a score and an ordering to start from; gives the best orderings seen. A move takes a variable, or a part of
one, to just before or after one that shares equations with it, directly or once removed; moves past strangers
change nothing. Variables of repeated substructures move together. The acceptance threshold is drawn before a
candidate is scored,

    threshold = score - temperature ln(u),   u uniform in (0, 1)

which is the Metropolis rule and tells the score when to give up. Deterministic for a seed and a number of
evaluations.

The work runs once a task, thousands of scores each.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from factorgraph_dyn.ordering.halves import halves, whole
from factorgraph_dyn.search.scores import Score
from factorgraph_dyn.search.twins import Twins

Names = tuple[str, ...]
Progress = Callable[[int], float]
"""Which part of a run is over after so many evaluations; the run ends at 1."""

ELITES = 8
TWIN_MOVES = 0.75  # share of the moves that are repeated in twins
BLOCK_MOVES = 0.25  # share of the moves that take neighbours in the ordering along
REMEMBERED = 100_000  # scores


@dataclass(frozen=True)
class Found:
    """The best orderings of a task.

    Attributes:
        elites: (score, ordering) of the best ones, best first, scores distinct.
        last: Score and ordering where annealing stood in the end.
        evaluations: Candidates scored.
        interrupted: Whether the user stopped it.
    """

    elites: tuple[tuple[float, Names], ...]
    last: tuple[float, Names]
    evaluations: int
    interrupted: bool = False


class Elites:
    """The few best orderings seen, one a score."""

    def __init__(self) -> None:
        self._best: dict[float, Names] = {}

    def offer(self, score: float, ordering: Names) -> None:
        """Keep the ordering if it is among the best."""
        if math.isfinite(score) and score not in self._best:
            self._best[score] = ordering
            if len(self._best) > ELITES:
                del self._best[max(self._best)]

    def sorted(self) -> tuple[tuple[float, Names], ...]:
        """Score and ordering, best first."""
        return tuple(sorted(self._best.items()))


class Mover:
    """Random moves of variables and of parts of them."""

    def __init__(self, factors: Iterable[Sequence[str]], twins: Twins) -> None:
        beside: dict[str, set[str]] = {}
        for held in factors:
            for name in held:
                beside.setdefault(name, set()).update(held)
        near = {name: set().union(*(beside[other] for other in beside[name])) for name in beside}
        self._near = {name: sorted(others) for name, others in near.items()}
        self._twins = twins

    def move(self, ordering: Names, rng: random.Random) -> Names:
        """The ordering after a random move."""
        variable = rng.choice(ordering)
        anchor = rng.choice(self._near[whole(variable)])
        if anchor not in ordering:
            anchor = rng.choice(halves(anchor))
        after = rng.random() < 0.5
        along = rng.randint(2, 4) if rng.random() < BLOCK_MOVES else 1
        moved = _moved(ordering, variable, anchor, after, along)
        if along == 1 and rng.random() < TWIN_MOVES:
            present = set(ordering)
            for counterpart in self._twins.of(variable):
                twin, its_anchor = counterpart[variable], counterpart.get(anchor, anchor)
                if twin in present and its_anchor in present:
                    moved = _moved(moved, twin, its_anchor, after, 1)
        return moved


def _moved(ordering: Names, variable: str, anchor: str, after: bool, along: int) -> Names:
    """The ordering with a variable, and what follows it, taken to a place beside another one."""
    if variable == anchor:
        return ordering
    start = ordering.index(variable)
    block = ordering[start : start + along]
    if anchor in block:
        block = block[: block.index(anchor)]
    rest = ordering[:start] + ordering[start + len(block) :]
    place = rest.index(anchor) + after
    return rest[:place] + block + rest[place:]


def anneal(
    score: Score,
    mover: Mover,
    start: Names,
    *,
    seed: int,
    hot: float,
    cold: float,
    progress: Progress,
) -> Found:
    """The best orderings on an annealing run.

    Args:
        score: What is to be small.
        mover: Makes candidates.
        start: Where to start.
        seed: Of the random moves.
        hot, cold: First and last temperature, as parts of the score of the start.
        progress: How much of the run is over after so many evaluations; it ends at 1.
    """
    rng = random.Random(seed)
    elites, known = Elites(), dict[Names, float]()
    current, value = start, score(start)
    elites.offer(value, start)
    scale = value if math.isfinite(value) else 1.0
    done = tried = 0
    interrupted = False
    try:
        # Candidates that are known cost next to nothing, but where all are known there must be an end.
        while (part := progress(max(done, tried // 20))) < 1:
            tried += 1
            temperature = scale * hot * (cold / hot) ** part
            threshold = value - temperature * math.log(1.0 - rng.random())
            candidate = mover.move(current, rng)
            if candidate == current:
                continue
            found = known.get(candidate)
            if found is None:
                found = score(candidate, threshold)
                done += 1
                if math.isfinite(found) and len(known) < REMEMBERED:
                    known[candidate] = found
            if found <= threshold:
                current, value = candidate, found
                elites.offer(found, candidate)
    except KeyboardInterrupt:
        interrupted = True
    return Found(elites.sorted(), (value, current), done, interrupted)


def beam(score: Score, start: Sequence[Names], *, width: int, progress: Progress) -> Found:
    """The best orderings that differ from some start by insertions, position by position.

    At position k every later variable is tried there, the rest left as it is, and the ``width`` best
    orderings go on to position k + 1.
    """
    elites = Elites()
    states = {ordering: score(ordering) for ordering in start}
    for ordering, value in states.items():
        elites.offer(value, ordering)
    done, interrupted = len(states), False
    try:
        for position in range(len(start[0]) - 1):
            kept = sorted(states.items(), key=lambda item: item[1])[:width]
            states = dict(kept)
            worst = kept[-1][1]
            for ordering, _ in kept:
                for candidate in _insertions(ordering, position):
                    if candidate in states:
                        continue
                    if progress(done) >= 1:
                        return Found(elites.sorted(), _best(elites, start), done)
                    found = score(candidate, worst)
                    done += 1
                    if math.isfinite(found):
                        states[candidate] = found
                        elites.offer(found, candidate)
    except KeyboardInterrupt:
        interrupted = True
    return Found(elites.sorted(), _best(elites, start), done, interrupted)


def _insertions(ordering: Names, position: int) -> Iterator[Names]:
    """The orderings in which a later variable stands at a position."""
    for k in range(position + 1, len(ordering)):
        yield (*ordering[:position], ordering[k], *ordering[position:k], *ordering[k + 1 :])


def _best(elites: Elites, start: Sequence[Names]) -> tuple[float, Names]:
    return elites.sorted()[0] if elites.sorted() else (math.inf, start[0])
