"""Pieces of a search that run anywhere: in this process, in another one, on another machine.

Takes a task that can be pickled; gives what was found. Every process keeps the scores of the problems
it has met, so that steps found in one task serve the next.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from dataclasses import dataclass
from time import monotonic

from factorgraph_dyn.compiler.problem import Problem, make_problem
from factorgraph_dyn.lab.anneal import Found, Mover, Names, anneal, beam
from factorgraph_dyn.lab.scores import KERNEL_OBJECTIVES, Score, make_score
from factorgraph_dyn.lab.twins import Twins
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering.halves import halves

KEPT_SCORES = 4


@dataclass(frozen=True)
class Asked:
    """What is searched for.

    Attributes:
        mechanism: The mechanism.
        problem: Name of the compiler's problem.
        objective: One of `scores.OBJECTIVES`.
        known_accelerations: Of a hybrid problem, the joints whose acceleration is given.
        actuated: Of inverse and iwim problems, the joints that have a motor; None for the default.
    """

    mechanism: Mechanism
    problem: str
    objective: str
    known_accelerations: tuple[str, ...] = ()
    actuated: tuple[str, ...] | None = None

    @property
    def key(self) -> tuple[object, ...]:
        """What makes two questions the same."""
        return (self.mechanism.fingerprint, self.problem, self.objective, self.known_accelerations,
                self.actuated)  # fmt: skip

    def make_problem(self) -> Problem:
        """The compiler's problem."""
        return make_problem(self.mechanism, self.problem, self.known_accelerations, self.actuated)


@dataclass(frozen=True)
class Task:
    """One run of annealing, or of the beam where ``width`` is not zero.

    Attributes:
        asked: What is searched for.
        start: Orderings to start from; annealing takes the first.
        seed, evaluations, hot, cold: Of annealing.
        width: Of the beam.
        apart: Whether annealing starts with all halves of variables apart and leaves them so.
        seconds: After which the task stops.
    """

    asked: Asked
    start: tuple[Names, ...]
    seed: int = 0
    evaluations: int = 0
    hot: float = 0.02
    cold: float = 0.0005
    width: int = 0
    apart: bool = False
    seconds: float = math.inf


class _Memory(threading.local):
    """The scores that a thread has met: scoring writes to its tape, so that threads must not share it."""

    def __init__(self) -> None:
        self.scores: OrderedDict[tuple[object, ...], tuple[Score, Mover]] = OrderedDict()


_memory = _Memory()


def score_of(asked: Asked) -> tuple[Score, Mover]:
    """The score and the moves of a problem, kept for the next task."""
    scores = _memory.scores
    found = scores.pop(asked.key, None)
    if found is None:
        score = make_score(asked.mechanism, asked.make_problem(), asked.objective)
        kernels = asked.objective in KERNEL_OBJECTIVES
        found = score, Mover(score.graph, Twins(asked.mechanism), halves=kernels)
    scores[asked.key] = found
    while len(scores) > KEPT_SCORES:
        scores.popitem(last=False)
    return found


def run(task: Task) -> Found:
    """What a task finds."""
    deadline = monotonic() + task.seconds
    score, mover = score_of(task.asked)

    def out_of_time() -> bool:
        return monotonic() > deadline

    if task.width:
        return beam(score, task.start, width=task.width, out_of_time=out_of_time)
    start = task.start[0]
    if task.apart:
        start, mover = tuple(half for name in start for half in halves(name)), mover.leaving_halves
    return anneal(
        score,
        mover,
        start,
        seed=task.seed,
        evaluations=task.evaluations,
        hot=task.hot,
        cold=task.cold,
        out_of_time=out_of_time,
    )
