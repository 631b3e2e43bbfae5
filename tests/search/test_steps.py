"""Remembered steps give the count that the compiler gives, in any ordering."""

import random

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.ordering import choose_ordering
from factorgraph_dyn.ordering.halves import halves
from factorgraph_dyn.search.anneal import Mover
from factorgraph_dyn.search.steps import Stepper
from factorgraph_dyn.search.tape_cost import TapeScorer
from factorgraph_dyn.search.twins import Twins

# Constants of products are folded, and common factors drawn out, in another order than in the compiler.
COUNT_TOLERANCE = 0.05
# Rotations without a special angle: equal values differ in their last digit, and some are not recognised.
ROUNDED_TOLERANCE = 0.1


def apart(stepper):
    """The classical ordering with all steps inside joints and all halves of variables."""
    return tuple(half for name in stepper.listed(stepper.classical) for half in halves(name))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("robot", "problem", "tolerance"),
    [
        (fgd.robots.puma560(), "forward", COUNT_TOLERANCE),
        (fgd.robots.ur5(), "inverse", COUNT_TOLERANCE),
        (fgd.robots.random_tree(5, seed=4), "forward", ROUNDED_TOLERANCE),
        (fgd.robots.rrr(), "inverse_mass_matrix", COUNT_TOLERANCE),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_counts_of_random_orderings(robot, problem, tolerance):
    asked = make_problem(robot, problem)
    stepper = Stepper(robot, asked)
    scorer, mover, rng = TapeScorer(stepper), Mover(stepper.factors, Twins(robot)), random.Random(0)
    ordering, compared = apart(stepper), 0
    for _ in range(40):
        ordering = mover.move(ordering, rng)
        cost = scorer.cost(ordering)
        if cost is None or rng.random() < 0.6:
            continue
        real = trace(robot, asked, ordering).program.operations
        assert abs(cost.operations.total - real.total) <= max(3, tolerance * real.total)
        assert abs(cost.operations.divisions - real.divisions) <= 1
        compared += 1
    assert compared > 3


def test_the_same_ordering_costs_the_same_whatever_was_scored_before():
    robot = fgd.robots.rrr()
    asked = make_problem(robot, "forward")
    fresh, used = (TapeScorer(Stepper(robot, asked)) for _ in range(2))
    mover, rng = Mover(used.stepper.factors, Twins(robot)), random.Random(1)
    ordering = apart(used.stepper)
    for _ in range(100):
        ordering = mover.move(ordering, rng)
        used.cost(ordering)
    first, second = fresh.cost(used.stepper.classical), used.cost(used.stepper.classical)
    assert first.operations == second.operations
    assert first.quality == pytest.approx(second.quality, rel=1e-6)


def test_a_limit_gives_up_early():
    robot = fgd.robots.rrr()
    scorer = TapeScorer(Stepper(robot, make_problem(robot, "forward")))
    made = scorer.cost(scorer.stepper.classical).made
    assert scorer.cost(scorer.stepper.classical, made) is not None
    assert scorer.cost(scorer.stepper.classical, made - 1) is None


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd"])
@pytest.mark.parametrize("problem", ["inverse", "forward"])
def test_loops_are_counted_with_their_guards(problem, ordering):
    robot = fgd.robots.stewart()
    asked = make_problem(robot, problem)
    scorer = TapeScorer(Stepper(robot, asked))
    variables = choose_ordering(robot, scorer.stepper.graph, ordering).variables
    real = trace(robot, asked, ordering).program.operations
    assert scorer.cost(variables).operations.total == pytest.approx(real.total, rel=0.005)
