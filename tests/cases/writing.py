"""Case files as text, and trials of the stress test as cases."""

from __future__ import annotations

import json
from dataclasses import asdict, fields
from typing import Any

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.native.writer import to_json
from tests.stress import further, questions
from tests.stress.questions import FURTHER, SEARCH, SHUFFLED, Question, quietly
from tests.stress.recipe import mechanism_of, stacked, states_of
from tests.stress.trial import Trial
from tests.stress.verdicts import judge

DEFAULTS = {word.name: word.default for word in fields(Question)}
UNREPEATED = ("assembly",)  # questions about the code, not about the answer


def text_of(content: dict[str, Any]) -> str:
    """The content of a case file, an entry of a list a line."""
    lines = [f"  {json.dumps(word)}: {_shown(value, 2)}" for word, value in content.items()]
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _shown(value: Any, depth: int) -> str:
    indent = " " * (depth + 2)
    if isinstance(value, dict) and any(isinstance(part, list) and part and isinstance(part[0], dict)
                                       for part in value.values()):  # fmt: skip
        lines = [f"{indent}{json.dumps(word)}: {_shown(part, depth + 2)}" for word, part in value.items()]
        return "{\n" + ",\n".join(lines) + f"\n{' ' * depth}}}"
    if isinstance(value, list) and value and isinstance(value[0], dict):
        return "[\n" + ",\n".join(indent + json.dumps(part) for part in value) + f"\n{' ' * depth}]"
    return json.dumps(value, allow_nan=False)


def described(mechanism: fgd.Mechanism) -> dict[str, Any]:
    """A mechanism in the package's own format."""
    return json.loads(to_json(mechanism))


def question_entry(question: Question, states: list[int], verdict: str | list[str], **extra: Any) -> dict[str, Any]:
    """A question as its file has it: the words that are not the usual ones."""
    words = {word: value for word, value in asdict(question).items() if value != DEFAULTS.get(word) and value != {}}
    route = words.pop("way")
    return {"route": route, **words, **extra, "states": states, "verdict": verdict}


def of_trial(trial: Trial) -> dict[str, Any]:
    """Mechanism, states and questions of a trial, all to be answered right where it is regular."""
    recipe = trial.recipe
    mechanism = mechanism_of(recipe)
    states = states_of(recipe, mechanism)
    entries = [state_entry(state, stacked(recipe, "a")) for state in states]
    asked = []
    for question in trial.questions:
        if question.problem in UNREPEATED or question.ordering == SEARCH:
            continue
        asked += _questions(trial, mechanism, states, question, entries)
    return {"mechanism": described(mechanism), "states": entries, "questions": asked}


def state_entry(state, a=None) -> dict[str, Any]:
    """A state as its file has it."""
    entry = {word: np.asarray(getattr(state, word), float).tolist() for word in ("q", "v", "tau")}
    if a is not None:
        entry["a"] = np.asarray(a, float).tolist()
    if state.wrenches:
        entry["wrenches"] = {name: np.asarray(wrench).tolist() for name, wrench in state.wrenches.items()}
    return entry


def _questions(trial: Trial, mechanism, states, question: Question, entries: list) -> list[dict[str, Any]]:
    verdicts = judge(trial.recipe, question)
    if not any(verdict.kind == "right" for verdict in verdicts):
        return []
    right = [verdict.state for verdict in verdicts if verdict.kind == "right"]
    if question.problem == "estimate":
        return [_estimate(trial, mechanism, states, question)]
    if question.problem == "branches":
        first = len(entries)
        there = further.states_for(mechanism, states, question)
        entries += [state_entry(state, stacked(trial.recipe, "a")) for state in there]
        plain = Question("kernel", question.of)
        return [question_entry(plain, [0, *range(first, len(entries))], ["right"] + ["nan"] * len(there))]
    if question.problem in FURTHER:
        return [question_entry(question, right, "right")]
    cases = questions.cases_of(trial.recipe, mechanism, states, question)
    if question.ordering == SHUFFLED:
        ordering = quietly(questions.chosen_ordering, mechanism, cases, question)[0]
        question = Question(**{**vars(question), "ordering": [str(name) for name in ordering], "seed": 0})
    question = Question(**{**vars(question), "seed": 0})
    if question.problem in ("inverse", "hybrid"):  # each state has accelerations of its own, which loops allow
        first = len(entries)
        for k in right:
            entries.append(state_entry(cases[k].state, cases[k].a))
        right = list(range(first, len(entries)))
    return [question_entry(question, right, "right")]


def _estimate(trial: Trial, mechanism, states, question: Question) -> dict[str, Any]:
    cases = further.cases_of(trial.recipe, mechanism, states, question)
    sensors = [sensor_entry(sensor) for sensor in cases[0].given["sensors"]]
    names = [name for name in cases[0].answers if all(case.answers[name].unique for case in cases)]
    plain = Question(question.way, "estimate", outputs=list(dict.fromkeys(["a", "tau", *names])))
    readings = [case.given["y"].tolist() for case in cases]
    return question_entry(plain, list(range(len(cases))), "right", sensors=sensors, readings=readings)


def sensor_entry(sensor) -> dict[str, Any]:
    """A sensor without its value."""
    entry = {"kind": type(sensor).__name__, "place": sensor.place, "sigma": np.asarray(sensor.sigma).tolist()}
    for word in ("components", "axes", "frame"):
        value = getattr(sensor, word, None)
        if value is not None and value not in ("local", sensor.place):
            entry[word] = list(value) if isinstance(value, tuple) else value
    return entry
