"""What a search wants to be small.

Takes an ordering; gives a number, infinite where the ordering is refused. A threshold lets a score give up
early on an ordering that cannot come below it.

    operations   multiplications, additions and divisions of the kernel, from remembered steps
    time         estimated instructions: fused pairs count once, a division as much as several
    depth        levels of the clique tree, then block operations
    blocks       operations of the block cost model

The work runs thousands of times a search, about a millisecond each.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from typing import Literal, get_args

from factorgraph_dyn.compiler.pivots import GOOD_QUALITY
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.equations.problem import Problem, problem_graph
from factorgraph_dyn.errors import CompileError, FactorGraphDynError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import eliminate_structure
from factorgraph_dyn.ordering.halves import halves
from factorgraph_dyn.search.exact import BlockModel
from factorgraph_dyn.search.steps import Stepper
from factorgraph_dyn.search.tape_cost import TapeCost, TapeScorer

Objective = Literal["operations", "time", "depth", "blocks"]
OBJECTIVES: tuple[str, ...] = get_args(Objective)
STEADY = 0.02  # of its usual size, the smallest that a pivot may become in the sampled states
SLACK = 1.15  # how far the values made may run ahead of the threshold before a score gives up
PER_LEVEL = 1e12  # a level outweighs any number of operations


class Score(ABC):
    """Gives what is to be small; may give infinity for anything above the threshold.

    Attributes:
        graph: Whose variables an ordering has to list.
        factors: Names of the variables, and of the steps inside joints, that each equation holds.
    """

    graph: LinearGraph
    factors: Sequence[Sequence[str]]

    @abstractmethod
    def __call__(self, ordering: Sequence[str], threshold: float = math.inf) -> float:
        """The score of an ordering."""

    def apart(self, ordering: Sequence[str]) -> tuple[str, ...]:
        """The ordering with everything apart that may be moved by itself."""
        return tuple(ordering)


class TapeScore(Score):
    """Operations or instructions of the kernel."""

    def __init__(self, mechanism: Mechanism, problem: Problem, objective: str) -> None:
        self._mechanism, self._problem = mechanism, problem
        self.stepper = Stepper(mechanism, problem)
        self.graph, self.factors = self.stepper.graph, self.stepper.factors
        self._instructions = objective == "time"
        self._made_per_score = math.inf

    def __call__(self, ordering: Sequence[str], threshold: float = math.inf) -> float:
        """Operations or instructions of an ordering."""
        if math.isinf(threshold):  # a new run starts: nothing of the last one may sway it
            self._made_per_score = math.inf
        limit = SLACK * threshold * self._made_per_score
        if self.stepper.is_full:
            self.stepper = Stepper(self._mechanism, self._problem)
        cost = TapeScorer(self.stepper).cost(ordering, limit, instructions=self._instructions)
        if cost is None or not is_safe(cost):
            return math.inf
        score = cost.instructions if self._instructions else float(cost.operations.total)
        self._made_per_score = cost.made / score if score else math.inf
        return score

    def apart(self, ordering: Sequence[str]) -> tuple[str, ...]:
        """The ordering with all steps inside joints and all halves of variables."""
        return tuple(half for name in self.stepper.listed(ordering) for half in halves(name))


class TraceScore(Score):
    """Operations of the kernel, each ordering traced by itself: for problems with undetermined parts."""

    def __init__(self, mechanism: Mechanism, problem: Problem) -> None:
        self.graph = problem_graph(mechanism, problem)
        self.factors = _factors(self.graph)
        self._mechanism, self._problem = mechanism, problem

    def __call__(self, ordering: Sequence[str], threshold: float = math.inf) -> float:
        """Operations of an ordering."""
        try:
            return float(trace(self._mechanism, self._problem, tuple(ordering)).program.operations.total)
        except FactorGraphDynError:
            return math.inf


class StructureScore(Score):
    """Levels of the clique tree, or operations of the block model."""

    def __init__(self, graph: LinearGraph, objective: str) -> None:
        self.graph, self.factors = graph, _factors(graph)
        self._model = BlockModel(graph)
        self._by_depth = objective == "depth"

    def __call__(self, ordering: Sequence[str], threshold: float = math.inf) -> float:
        """The score of an ordering."""
        operations = self._model.cost(ordering)
        if operations is None:
            return math.inf
        if not self._by_depth:
            return float(operations)
        structure = eliminate_structure(self.graph, [self.graph.by_name[name] for name in ordering])
        return PER_LEVEL * structure.depth + operations


def _factors(graph: LinearGraph) -> list[list[str]]:
    return [[str(v) for v, _ in factor.blocks] for factor in graph.factors]


def is_safe(cost: TapeCost) -> bool:
    """Whether no pivot comes near zero in the sampled states."""
    return cost.steady >= STEADY and cost.quality >= GOOD_QUALITY


def make_score(mechanism: Mechanism, problem: Problem, objective: str) -> Score:
    """The score of an objective."""
    if objective in ("depth", "blocks"):
        return StructureScore(problem_graph(mechanism, problem), objective)
    try:
        score = TapeScore(mechanism, problem, objective)
    except CompileError:
        return TraceScore(mechanism, problem)
    # What repeated equations of loops leave looks unsafe to shared steps; the compiler itself tells it from values.
    is_blind = bool(mechanism.loops) and math.isinf(score(score.stepper.classical))
    return TraceScore(mechanism, problem) if is_blind else score
