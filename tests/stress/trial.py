"""One trial: a random mechanism and some questions, decided by a seed and an index alone."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from tests.stress.asking import mobility, random_question
from tests.stress.further import random_further
from tests.stress.generator import random_recipe
from tests.stress.questions import FURTHER, Question
from tests.stress.recipe import NoMechanismError, Recipe, mechanism_of, states_of
from tests.stress.verdicts import Verdict, judge

ATTEMPTS = 20
FURTHER_SHARE = 0.07  # of trials that have a further question, too


@dataclass
class Trial:
    """A recipe and what is asked of it."""

    recipe: Recipe
    questions: list[Question] = field(default_factory=list)


def make_trial(seed: int, index: int, only: str | None = None, problem: str | None = None) -> Trial:
    """The trial of a seed and an index."""
    for attempt in range(ATTEMPTS):
        rng = np.random.default_rng([seed, index, attempt])
        recipe = random_recipe(rng)
        if problem == "branches" and not recipe.loops:
            continue
        try:
            mechanism = mechanism_of(recipe)
            states = states_of(recipe, mechanism)
        except NoMechanismError:
            continue
        if mobility(mechanism, states[-1])[0] and len({mobility(mechanism, state)[0] for state in states}) == 1:
            break
    else:
        raise AssertionError(f"no mechanism from seed {seed}, index {index}")
    if problem in FURTHER:
        asked = [random_further(rng, mechanism, states, problem)]
        return Trial(recipe, [question for question in asked if question is not None])
    ways = {"graph": ["graph"] * 3, "kernels": ["kernel"]}.get(str(only), ["graph"] * 3 + ["kernel"])
    asked = [random_question(rng, mechanism, states, way, problem) for way in ways]
    if problem is None and only != "graph" and rng.random() < FURTHER_SHARE:
        asked.append(random_further(rng, mechanism, states))
    return Trial(recipe, [question for question in asked if question is not None])


def run_trial(trial: Trial) -> list[Verdict]:
    """All verdicts of a trial."""
    return [verdict for question in trial.questions for verdict in judge(trial.recipe, question)]
