"""Pieces of a search that run anywhere: in this process, in another one, on another machine.

Takes a task that can be pickled; gives what was found. Every process keeps the scores of the problems
it has met, so that steps found in one task serve the next.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from factorgraph_dyn.equations.problem import Problem, make_problem
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.search.anneal import Found, Mover, Names, Progress, anneal, beam
from factorgraph_dyn.search.scores import Score, make_score
from factorgraph_dyn.search.twins import Twins

KEPT_SCORES = 4
SHORTEST = 1e-3  # s, of a task


@dataclass(frozen=True)
class Asked:
    """What is searched for.

    Attributes:
        mechanism: The mechanism.
        problem: Name of the compiler's problem.
        objective: One of `scores.OBJECTIVES`.
        known_accelerations: Of a hybrid problem, the joints whose acceleration is given.
        actuated: Of inverse and iwim problems, the joints that have a motor; None for the default.
        parameters: What the kernel takes as arguments instead of constants, as words of ``fgd.compile``.
    """

    mechanism: Mechanism
    problem: str
    objective: str
    known_accelerations: tuple[str, ...] = ()
    actuated: tuple[str, ...] | None = None
    parameters: tuple[str, ...] = ()

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two questions the same."""
        return (self.mechanism.fingerprint, self.problem, self.objective, self.known_accelerations,
                self.actuated, self.parameters)  # fmt: skip

    def make_problem(self) -> Problem:
        """The compiler's problem."""
        return make_problem(
            self.mechanism, self.problem, self.known_accelerations, self.actuated, parameters=self.parameters
        )


@dataclass(frozen=True)
class Task:
    """One run of annealing, or of the beam where ``width`` is not zero.

    Attributes:
        asked: What is searched for.
        start: Orderings to start from; annealing takes the first.
        seconds: After which the task stops.
        evaluations: After which it stops, so that its length does not depend on the machine; None for no limit.
        seed, hot, cold: Of annealing.
        width: Of the beam.
    """

    asked: Asked
    start: tuple[Names, ...]
    seconds: float
    evaluations: int | None = None
    seed: int = 0
    hot: float = 0.0
    cold: float = 0.0
    width: int = 0

    def progress(self) -> Progress:
        """A function that tells which part of the task is over, from now on."""
        began, seconds = monotonic(), max(self.seconds, SHORTEST)

        def part(done: int) -> float:
            over = (monotonic() - began) / seconds
            return over if self.evaluations is None or over >= 1 else done / self.evaluations

        return part


class _Memory(threading.local):
    """The scores that a thread has met: scoring writes to its tape, so that threads must not share it."""

    def __init__(self) -> None:
        self.scores: OrderedDict[tuple[object, ...], tuple[Score, Mover]] = OrderedDict()


_memory = _Memory()


def new_score(asked: Asked) -> tuple[Score, Mover]:
    """The score and the moves of a problem."""
    score = make_score(asked.mechanism, asked.make_problem(), asked.objective)
    return score, Mover(score.factors, Twins(asked.mechanism))


def score_of(asked: Asked) -> tuple[Score, Mover]:
    """The score and the moves of a problem, kept for the next task."""
    scores = _memory.scores
    found = scores.pop(asked.key, None) or new_score(asked)
    scores[asked.key] = found
    while len(scores) > KEPT_SCORES:
        scores.popitem(last=False)
    return found


def run(task: Task) -> Found:
    """What a task finds."""
    # Estimates depend a little on what was scored before: a task that is to be repeatable begins anew.
    score, mover = score_of(task.asked) if task.evaluations is None else new_score(task.asked)
    if task.width:
        return beam(score, task.start, width=task.width, progress=task.progress())
    start = score.apart(task.start[0])
    return anneal(score, mover, start, seed=task.seed, hot=task.hot, cold=task.cold, progress=task.progress())
