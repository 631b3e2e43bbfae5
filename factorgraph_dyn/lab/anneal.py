"""Simulated annealing over orderings (Kirkpatrick, Gelatt & Vecchi 1983), and a beam of insertions.

Takes a score and an ordering to start from; gives the best orderings seen. A move takes a variable to just
before or after one that shares equations with it, directly or once removed; moves past strangers change
nothing. Variables of repeated substructures move together. The acceptance threshold is drawn before a
candidate is scored,

    threshold = score - temperature ln(u),   u uniform in (0, 1)

which is the Metropolis rule and tells the score when to give up. Deterministic for a seed and a number of
evaluations.

The work runs once a task, thousands of scores each.
"""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.lab.scores import Score
from factorgraph_dyn.lab.twins import Twins
from factorgraph_dyn.ordering import halves as halving

Names = tuple[str, ...]
ELITES = 8
TWIN_MOVES = 0.75  # share of the moves that are repeated in twins
BLOCK_MOVES = 0.25  # share of the moves that take neighbours in the ordering along
HALVING_MOVES = 0.2  # share of the moves that split a variable or join its halves, where allowed
REMEMBERED = 100_000  # scores


@dataclass(frozen=True)
class Found:
    """The best orderings of a task.

    Attributes:
        elites: (score, ordering) of the best ones, best first, scores distinct.
        last: Where annealing stood in the end.
        evaluations: Candidates scored.
        interrupted: Whether the user stopped it.
    """

    elites: tuple[tuple[float, Names], ...]
    last: Names
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
    """Random moves of the variables of a graph, and of their halves where these may stand apart."""

    def __init__(self, graph: LinearGraph, twins: Twins, *, halves: bool = False) -> None:
        beside: dict[str, set[str]] = {name: set() for name in graph.by_name}
        for factor in graph.factors:
            held = [str(v) for v, _ in factor.blocks if str(v) in beside]
            for name in held:
                beside[name].update(held)
        near = {name: set().union(*(beside[other] for other in beside[name])) for name in beside}
        self._near = {name: sorted(others) for name, others in near.items()}
        self._twins = twins
        self._halves = halves

    @property
    def leaving_halves(self) -> Mover:
        """The same moves, but for splitting and joining."""
        other = copy.copy(self)
        other._halves = False
        return other

    def move(self, ordering: Names, rng: random.Random) -> Names:
        """The ordering after a random move."""
        variable = rng.choice(ordering)
        if self._halves and rng.random() < HALVING_MOVES:
            return self._halved(ordering, variable, rng)
        anchor = _element(ordering, rng.choice(self._near[halving.whole(variable)]), rng)
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

    def _halved(self, ordering: Names, variable: str, rng: random.Random) -> Names:
        """The ordering with a whole variable split and one half moved, or with two halves joined."""
        name = halving.whole(variable)
        parts = halving.halves(name)
        if variable != name:  # join where one of the halves stands
            stays = rng.choice(parts)
            return tuple(name if x == stays else x for x in ordering if x not in parts or x == stays)
        if len(parts) == 1:
            return ordering
        if rng.random() < 0.5:
            parts = parts[::-1]
        place = ordering.index(name)
        split = (*ordering[:place], *parts, *ordering[place + 1 :])
        anchor = _element(split, rng.choice(self._near[name]), rng)
        return _moved(split, rng.choice(parts), anchor, rng.random() < 0.5, 1)


def _element(ordering: Names, variable: str, rng: random.Random) -> str:
    """The variable itself if it is whole in the ordering, else one of its halves."""
    return variable if variable in ordering else rng.choice(halving.halves(variable))


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
    evaluations: int,
    hot: float,
    cold: float,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Found:
    """The best orderings on an annealing run.

    Args:
        score: What is to be small.
        mover: Makes candidates.
        start: Where to start.
        seed: Of the random moves.
        evaluations: Candidates to score.
        hot, cold: First and last temperature, as parts of the score of the start.
        out_of_time: Asked before every candidate; true stops the run.
    """
    rng = random.Random(seed)
    elites, known = Elites(), dict[Names, float]()
    current, value = start, score(start)
    elites.offer(value, start)
    scale = value if math.isfinite(value) else 1.0
    done = tried = 0
    interrupted = False
    try:
        while done < evaluations and tried < 20 * evaluations and not out_of_time():
            tried += 1
            part = done / evaluations
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
    return Found(elites.sorted(), current, done, interrupted)


def beam(
    score: Score,
    start: Sequence[Names],
    *,
    width: int,
    out_of_time: Callable[[], bool] = lambda: False,
) -> Found:
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
                for k in range(position + 1, len(ordering)):
                    if out_of_time():
                        return Found(elites.sorted(), kept[0][0], done)
                    candidate = (
                        *ordering[:position], ordering[k], *ordering[position:k], *ordering[k + 1 :]
                    )  # fmt: skip
                    if candidate in states:
                        continue
                    found = score(candidate, worst)
                    done += 1
                    if math.isfinite(found):
                        states[candidate] = found
                        elites.offer(found, candidate)
    except KeyboardInterrupt:
        interrupted = True
    best = elites.sorted()
    return Found(best, best[0][1] if best else start[0], done, interrupted)
