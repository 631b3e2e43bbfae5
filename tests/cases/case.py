"""Cases: mechanisms that once broke something, each a JSON file with the answers that are acceptable.

A file has

    story       the trouble with the mechanism, and what went wrong, in one line
    source      where it was found: a seed and trial of the stress test, or a test
    mechanism   the package's own format, {"robot": name, ...arguments} or {"example_robot_data": file}
    meant       the mechanism that answers are judged by, where the file's numbers stand for others (optional)
    tolerance   relative, 1e-8 if nothing is said
    states      q, v, tau, a, wrenches by link; "meant": {"q", "v"} of the mechanism that is meant
    questions   route ("graph" or "kernel"), problem, ordering, the words of ``tests.stress.questions.Question``,
                the numbers of the states, for all or each of these a verdict, "slow" where it takes seconds, and
                "due", what has to be done first, where the answer is not acceptable today

A verdict is the weakest answer that is acceptable, in this order:

    right       the numbers are those of an independent dense solve in extended precision, ``tests.stress.oracle``,
                up to the tolerance and what rounding of the equations' terms can do at the problem's condition
    nan         a kernel has no number at this state, and compiles
    refused     a FactorGraphDynError with a message

Wrong numbers, numbers where there is no unique answer, numbers that rounding makes of any size, and exceptions of other
kinds are never acceptable. Nothing of the package's equations is used to find what is right.
"""

from __future__ import annotations

import json
import warnings
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

import factorgraph_dyn as fgd
from scripts.validate_models import package_folders
from tests.stress import estimates, further, questions
from tests.stress.kinematics import LD
from tests.stress.oracle import ROUNDING, Oracle
from tests.stress.questions import FURTHER, MATRICES, Case, Question, entries_of, known_of
from tests.stress.recipe import State

FOLDER = Path(__file__).parent
TOLERANCE = 1e-8
SMALL = 1e-4  # of usual results, below which a result counts as zero
CONTRADICTED = 1e-7  # of their terms, by which given values contradict the equations
VERDICTS = ("right", "nan", "refused")  # the best first
FAILURES = ("wrong", "foreign", "undecided")
DECISIVE = 1e-3  # of a result, that rounding at its condition may change, above which nobody knows the right one
REGULAR = 1e8  # condition below which a result that is smaller than its rounding is zero
SENSORS = {
    sensor.__name__: sensor
    for sensor in (
        fgd.sensors.Torque,
        fgd.sensors.Acceleration,
        fgd.sensors.Accelerometer,
        fgd.sensors.AngularAcceleration,
        fgd.sensors.ForceTorque,
        fgd.sensors.ExternalWrench,
    )
}


@dataclass(frozen=True)
class Outcome:
    """The outcome of a question at a state: one of VERDICTS or FAILURES, with the relative error and a message."""

    kind: str
    error: float = 0.0
    message: str = ""

    def is_acceptable(self, verdict: str) -> bool:
        """True of the verdict, and of anything better."""
        return self.kind in VERDICTS[: VERDICTS.index(verdict) + 1]


@dataclass(frozen=True)
class Asked:
    """A question of a case with the states it is asked at and their verdicts."""

    question: Question
    states: tuple[int, ...]
    verdicts: tuple[str, ...]
    is_slow: bool = False
    due: str = ""
    extra: dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """Route, problem, and ordering or method in a few words."""
        ordering = self.question.ordering
        named = "own" if isinstance(ordering, list) else ordering or self.question.method or "default"
        problem = "-".join(filter(None, (self.question.problem, self.question.of)))
        return f"{self.question.way}-{problem}-{named}"


@dataclass(frozen=True)
class Frozen:
    """A case as its file has it."""

    path: Path
    content: dict[str, Any]

    @classmethod
    def load(cls, path: Path) -> Frozen:
        """The case of a file."""
        return cls(path, json.loads(path.read_text()))

    @property
    def name(self) -> str:
        """The file's name without its ending."""
        return self.path.stem

    @cached_property
    def mechanism(self) -> fgd.Mechanism | None:
        """The mechanism that is asked; None where it is of a package that is not installed."""
        return mechanism_of(self.content["mechanism"])

    @cached_property
    def meant(self) -> fgd.Mechanism:
        """The mechanism that answers are judged by."""
        return mechanism_of(self.content["meant"]) if "meant" in self.content else self.mechanism

    @property
    def story(self) -> str:
        """The trouble with it, in a sentence."""
        return str(self.content["story"])

    @property
    def asked(self) -> list[Asked]:
        """All questions."""
        return [_asked(entry) for entry in self.content["questions"]]

    @property
    def tolerance(self) -> float:
        """Relative error that is allowed beside rounding."""
        return float(self.content.get("tolerance", TOLERANCE))


def all_cases() -> list[Frozen]:
    """The cases of all files, by name."""
    return [Frozen.load(path) for path in sorted(FOLDER.glob("*.json"))]


def mechanism_of(description: dict[str, Any]) -> fgd.Mechanism | None:
    """The mechanism that a case describes."""
    if "robot" in description:
        words = {word: value for word, value in description.items() if word != "robot"}
        return getattr(fgd.robots, description["robot"])(**words)
    if "file" in description:
        return fgd.load(description["file"])
    if "example_robot_data" in description:
        folder = next((each / "robots" for each in package_folders() if each.name == "example-robot-data"), None)
        return None if folder is None else fgd.load(folder / description["example_robot_data"], folder=folder)
    return fgd.loads(json.dumps(description))


def outcomes(frozen: Frozen, asked: Asked) -> list[Outcome]:
    """The outcomes of a question at its states."""
    mechanism, question = frozen.mechanism, asked.question
    given = [frozen.content["states"][k] for k in asked.states]
    cases = _cases(frozen.meant, given, asked, meant="meant" in frozen.content)
    shown = [_at(case, entry) for case, entry in zip(cases, given, strict=True)] if "meant" in frozen.content else cases
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if question.way == "graph" and question.problem not in FURTHER:
            found = [_answer(lambda c=case: questions.ask_graph(mechanism, c, question, question.ordering))
                     for case in shown]  # fmt: skip
        else:
            found = _answers(mechanism, shown, question)
    return [
        each if isinstance(each, Outcome) else judged(frozen.meant, case, question, each, frozen.tolerance)
        for case, each in zip(cases, found, strict=True)
    ]


def _answer(ask) -> Any:
    try:
        return ask()
    except fgd.FactorGraphDynError as error:
        return Outcome("refused", np.inf, f"{type(error).__name__}: {error}") if str(error) else Outcome("foreign")
    except Exception as error:
        return Outcome("foreign", np.inf, f"{type(error).__name__}: {error}")


def _answers(mechanism, cases: list[Case], question: Question) -> list[Any]:
    def ask():
        if question.problem in FURTHER:
            return further.ask(mechanism, cases, question)
        kernel = questions.compile_kernel(mechanism, question, cases[0].state.wrenches, question.ordering)
        return questions.ask_kernel(kernel, cases, question)

    found = _answer(ask)
    return [found] * len(cases) if isinstance(found, Outcome) else found


# ---- right answers


def _cases(mechanism, given: list[dict], asked: Asked, meant: bool) -> list[Case]:
    question = asked.question
    states = [_state(mechanism, entry | entry["meant"] if meant else entry) for entry in given]
    if question.problem == "estimate":
        if question.way == "kernel":
            states = [replace(state, wrenches={}) for state in states]  # which estimators do not take
        sensors = [_sensor(words) for words in asked.extra["sensors"]]
        readings = [np.array(y) for y in asked.extra["readings"]]
        return [
            _estimate_case(mechanism, state, question, sensors, y) for state, y in zip(states, readings, strict=True)
        ]
    if question.problem in FURTHER:
        joints = {
            joint.name: {"a": np.array(given[0].get("a", np.zeros(mechanism.nv)))[mechanism.v_slices[joint.name]]}
            for joint in mechanism.joints
        }
        return further.cases_of(_Accelerations(joints), mechanism, states, question)
    if question.problem in MATRICES:
        return [questions.case_of(None, mechanism, state, question) for state in states]
    return [_case(mechanism, state, entry, question) for state, entry in zip(states, given, strict=True)]


@dataclass(frozen=True)
class _Accelerations:
    """A recipe as far as further questions read it."""

    joints: dict


def _state(mechanism, entry: dict) -> State:
    def vector(word: str) -> np.ndarray:
        return np.array(entry.get(word, np.zeros(mechanism.nv)), dtype=float)

    wrenches = {name: np.array(wrench) for name, wrench in entry.get("wrenches", {}).items()}
    return State(np.array(entry["q"], dtype=float), vector("v"), vector("tau"), wrenches)


def _case(mechanism, state: State, entry: dict, question: Question) -> Case:
    """A dynamics problem with the values as they are given."""
    everything, nothing = np.ones(mechanism.nv, dtype=bool), np.zeros(mechanism.nv, dtype=bool)
    sought = everything
    if question.problem == "inverse" and (question.actuated is not None or mechanism.is_closed_kind):
        sought = entries_of(mechanism, questions.motors(mechanism, question))
    a_known, tau_known = {
        "forward": (nothing, everything),
        "inverse": (everything, ~sought),
        "hybrid": (known := known_of(mechanism, question), ~known),
    }[question.problem]
    a = np.array(entry.get("a", np.zeros(mechanism.nv)), dtype=float)
    tau = np.where(sought, 0.0, 0.0) if question.problem == "inverse" else state.tau
    answered = Oracle(mechanism, state.q, state.v, state.wrenches).ask(a, tau, a_known, tau_known)
    answers = {name: answered[name] for name in ("a", "tau", *(question.outputs or ()))}
    asked = question.outputs or {"forward": ["a"], "inverse": ["tau"], "hybrid": ["a", "tau"]}[question.problem]
    regular = all(answers[name].unique for name in asked) and answered.contradiction < CONTRADICTED
    return Case(state, a, tau, a_known, tau_known, answers, answered.condition, regular)


def _at(case: Case, entry: dict) -> Case:
    """The same values at the state of the mechanism that is asked."""
    state = replace(case.state, q=np.array(entry["q"], float), v=np.array(entry["v"], float))
    return replace(case, state=state)


def _sensor(words: dict):
    words = dict(words)
    kind, place = SENSORS[words.pop("kind")], words.pop("place")
    if words.get("components") is not None:
        words["components"] = tuple(words["components"])
    sigma = np.array(words.pop("sigma"))
    return kind(place, None, sigma, **words)


def _estimate_case(mechanism, state: State, question: Question, sensors: list, y: np.ndarray) -> Case:
    usual = estimates.Usual.at(mechanism, state)
    frames = [sensor.place for sensor in sensors if isinstance(sensor, fgd.sensors.ExternalWrench)]
    unknowns = estimates.Unknowns(mechanism, state, frames)
    optimum = estimates.Optimum(unknowns, estimates.Readings(unknowns, sensors, usual), y, usual)
    answers, units = {}, {}
    for name in dict.fromkeys(["a", "tau", *question.outputs]):
        if name.startswith(("covariance", "gain")):
            kind, about = name[:-1].split("[")
            answers[name], units[name] = getattr(optimum, kind)(about, usual)
        else:
            answers[name] = optimum.answer(name, usual)
    regular = all(answers[name].unique for name in ("a", "tau")) and optimum.contradiction < CONTRADICTED
    none = np.zeros(mechanism.nv, dtype=bool)
    given = {"y": y, "sensors": sensors, "units": units}
    zero = np.zeros(mechanism.nv)
    return Case(state, zero, state.tau, none, none, answers, optimum.solved.condition, regular, given)


# ---- the judgement


def judged(mechanism, case: Case, question: Question, found: dict[str, np.ndarray], tolerance: float) -> Outcome:
    """The outcome of numbers."""
    if any(not np.isfinite(value).all() for value in found.values()):
        return Outcome("nan", np.inf, "nan")
    if not case.regular:
        return Outcome("wrong", np.inf, "numbers where there is no unique answer")
    worst = Outcome("right")
    for name, value in found.items():
        answer = case.answers.get(name)
        if answer is None or not answer.unique:
            continue
        asked = further if question.problem in FURTHER else questions
        units = asked.result_units(mechanism, name, question)
        error = np.abs((np.asarray(value, dtype=LD) - answer.value) / units).max(initial=LD(0))
        size = max(_size(answer.value, units), SMALL * _family(mechanism, case, question, name))
        if answer.usual is not None:
            size = max(size, SMALL * _size(answer.usual, units))
        allowed = tolerance * size + ROUNDING * _size(answer.bound, units)
        share = float(error / size) if size else (np.inf if error else 0.0)
        if error > tolerance * size and allowed > DECISIVE * size and case.condition > REGULAR:
            return Outcome("undecided", share, f"{name} has no digits at condition {case.condition:.0e}")
        if error > allowed:
            return Outcome("wrong", share, f"{name} is off by {share:.1e} of its size, {found[name]!r}"[:500])
        if share > worst.error:
            worst = Outcome("right", share, name)
    return worst


def _size(values, units):
    return np.abs(values / units).max(initial=LD(0))


def _family(mechanism, case: Case, question: Question, name: str):
    """The largest result of one kind, motions or forces: what locked joints and links are zero beside."""
    if question.problem in FURTHER:
        return LD(0)
    motions = name[0] in "aAV"
    return max(
        (
            _size(answer.value, questions.result_units(mechanism, other, question))
            for other, answer in case.answers.items()
            if answer.unique and (other[0] in "aAV") == motions
        ),
        default=LD(0),
    )


def _asked(entry: dict) -> Asked:
    words = {("way" if word == "route" else word): value for word, value in entry.items()}
    states, verdicts = words.pop("states", [0]), words.pop("verdict")
    verdicts = verdicts if isinstance(verdicts, list) else [verdicts] * len(states)
    extra = {word: words.pop(word) for word in ("sensors", "readings") if word in words}
    is_slow, due = words.pop("slow", False), words.pop("due", "")
    return Asked(Question(**words), tuple(states), tuple(verdicts), is_slow, due, extra)
