"""What becomes of a question: right, wrong, refused, or something foreign.

wrong      a result is off by more than 1e-8 of its size and by more than rounding explains, though the
           problem is regular: unique and of a condition below 1e8 in its own units
refused    an error, or nan, although the problem is regular
foreign    an exception that is not the package's own, a crash, or no answer within a minute
ordering   refused with a permutation of the variables or a found ordering, but answered with the default one
branch     nan of a kernel in another branch of the loops than that which it is for (see `excuses`)
invented   numbers for a problem that has no unique answer
singular   not regular, and refused or answered near a singular state: nothing to say
"""

from __future__ import annotations

import re
import signal
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

import numpy as np

import factorgraph_dyn as fgd
from tests.stress import further, questions
from tests.stress.excuses import excuse
from tests.stress.kinematics import LD
from tests.stress.oracle import ROUNDING
from tests.stress.questions import (
    FURTHER,
    SEARCH,
    SHUFFLED,
    Case,
    Question,
    ask_graph,
    ask_kernel,
    cases_of,
    chosen_ordering,
    compile_kernel,
    quietly,
)
from tests.stress.recipe import Recipe, mechanism_of, states_of

TOLERANCE = 1e-8
SMALL = 1e-4  # of usual results, below which a result counts as zero
WORST_CONDITION = 1e8
PATIENCE = 60  # seconds
FAILURES = ("wrong", "refused", "foreign")
CLASSES = ("right", *FAILURES, "ordering", "branch", "invented", "singular")


@dataclass
class Verdict:
    """Of one question at one state (or at all, where a kernel does not compile)."""

    kind: str
    question: Question
    state: int
    error: float = 0.0
    condition: float = 1.0
    words: str = ""
    result: str = ""
    warned: bool = False
    details: dict = field(default_factory=dict)

    @property
    def signature(self) -> tuple[str, ...]:
        """What two failures have in common that fail the same way."""
        return (self.kind, self.question.way, _pattern(self.words))


def _pattern(words: str) -> str:
    """A message without its names and numbers."""
    words = re.sub(r"'[^']*'|\[[^\]]*\]", "_", words)
    words = re.sub(r"[-+]?\d[\d.]*(e[-+]?\d+)?", "#", words)
    words = re.sub(r"\b(joint|link|loop|gear)s? ?#(, (joint|link|loop|gear)#)*", "_", words)
    return words[:90]


class NoAnswerError(Exception):
    """An answer took too long."""


@contextmanager
def patience(seconds: int = PATIENCE) -> Iterator[None]:
    """Raise NoAnswerError after some seconds of this process's time."""

    def ring(*_: object) -> None:
        raise NoAnswerError(f"no answer in {seconds} s")

    before = signal.signal(signal.SIGPROF, ring)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def judge(recipe: Recipe, question: Question, only_state: int | None = None) -> list[Verdict]:
    """The verdicts of a question at the recipe's states."""
    mechanism = mechanism_of(recipe)
    states = states_of(recipe, mechanism)
    if only_state is not None:
        states = states[only_state : only_state + 1]
    if question.problem in FURTHER:
        cases = further.cases_of(recipe, mechanism, states, question)
        return _excused(mechanism, cases, _of_further(mechanism, cases, question))
    cases = cases_of(recipe, mechanism, states, question)
    answer = _of_kernel if question.way == "kernel" else _of_graph
    verdicts = _excused(mechanism, cases, answer(mechanism, cases, question))
    failed = [v for v in verdicts if v.kind == "refused"]
    if failed and question.ordering in (SHUFFLED, SEARCH):
        plain = Question(**{**vars(question), "ordering": None})
        fine = {v.state for v in answer(mechanism, cases, plain) if v.kind == "right"}
        for verdict in failed:
            if verdict.state in fine or (verdict.state < 0 and fine):
                verdict.kind = "ordering"
    return verdicts


def _excused(mechanism, cases: list[Case], verdicts: list[Verdict]) -> list[Verdict]:
    """The verdicts, where no answer is no fault by that name; a kernel that does not compile has none anywhere."""
    for verdict in verdicts:
        if verdict.kind == "refused":
            asked = cases if verdict.state < 0 else cases[verdict.state : verdict.state + 1]
            excuses = [excuse(mechanism, case, verdict.question) for case in asked]
            if all(excuses):
                verdict.kind = str(excuses[0])
    return verdicts


def is_regular(case: Case) -> bool:
    return case.regular and case.condition < WORST_CONDITION


def _of_graph(mechanism, cases: list[Case], question: Question) -> list[Verdict]:
    try:
        with patience():
            ordering = quietly(chosen_ordering, mechanism, cases, question)[0]
    except fgd.FactorGraphDynError:
        return []  # the default ordering's failure is another question's
    verdicts = []
    for index, case in enumerate(cases):
        try:
            with patience():
                found, warned = quietly(ask_graph, mechanism, case, question, ordering)
        except fgd.FactorGraphDynError as error:
            verdicts.append(_refusal(question, index, [case], error))
        except Exception as error:
            verdicts.append(_foreign(question, index, error))
        else:
            verdict = compare(mechanism, case, question, found, index)
            verdict.warned = warned
            verdicts.append(verdict)
    return verdicts


def _of_kernel(mechanism, cases: list[Case], question: Question) -> list[Verdict]:
    def answers():
        ordering = quietly(chosen_ordering, mechanism, cases, question)[0]
        kernel = quietly(compile_kernel, mechanism, question, cases[0].state.wrenches, ordering)[0]
        return ask_kernel(kernel, cases, question)

    return _judged(mechanism, cases, question, answers)


def _of_further(mechanism, cases: list[Case], question: Question) -> list[Verdict]:
    return _judged(mechanism, cases, question, lambda: quietly(further.ask, mechanism, cases, question)[0])


def _judged(mechanism, cases: list[Case], question: Question, answers) -> list[Verdict]:
    """A verdict on the answer to each case, or one on all of them where there are no answers."""
    try:
        with patience():
            found = answers()
    except fgd.FactorGraphDynError as error:
        return [_refusal(question, -1, cases, error)]
    except Exception as error:
        return [_foreign(question, -1, error)]
    return [
        compare(mechanism, case, question, answer, i) for i, (case, answer) in enumerate(zip(cases, found, strict=True))
    ]


def result_units(mechanism, name: str, question: Question) -> np.ndarray:
    """Units that make a result's entries comparable."""
    asked = further if question.problem in FURTHER else questions
    return asked.result_units(mechanism, name, question)


def _refusal(question, index, cases: list[Case], error) -> Verdict:
    kind = "refused" if all(is_regular(case) for case in cases) else "singular"
    words = f"{type(error).__name__}: {error}"
    return Verdict(kind, question, index, np.inf, max(case.condition for case in cases), words)


def _foreign(question, index, error) -> Verdict:
    place = traceback.extract_tb(error.__traceback__)[-1]
    words = f"{type(error).__name__}: {error} ({place.filename.rsplit('/', 1)[-1]})"
    return Verdict("foreign", question, index, np.inf, 1.0, words)


def _family_size(mechanism, case: Case, question: Question, name: str):
    """The largest of all results of one kind, motions or forces: what a locked joint or link is zero beside."""
    if question.problem in FURTHER:
        return LD(0)
    motions = name[0] in "aAV"
    sizes = [
        np.abs(answer.value / result_units(mechanism, other, question)).max(initial=LD(0))
        for other, answer in case.answers.items()
        if answer.unique and (other[0] in "aAV") == motions
    ]
    return max(sizes, default=LD(0))


def compare(mechanism, case: Case, question: Question, found: dict, index: int) -> Verdict:
    """The verdict on numbers."""
    verdict = Verdict("right", question, index, 0.0, case.condition)
    nan = [name for name, value in found.items() if not np.isfinite(value).all()]
    if nan:
        verdict.kind = "refused" if is_regular(case) else "singular"
        verdict.error, verdict.result, verdict.words = np.inf, nan[0], "nan"
        return verdict
    if not case.regular:
        verdict.kind = "singular" if case.condition >= WORST_CONDITION else "invented"
        return verdict
    if case.condition >= WORST_CONDITION:
        verdict.kind = "singular"
        return verdict
    for name, value in found.items():
        answer = case.answers[name]
        if not answer.unique:
            continue
        units = result_units(mechanism, name, question)
        error = np.abs((np.asarray(value, dtype=LD) - answer.value) / units).max(initial=LD(0))
        size = np.abs(answer.value / units).max(initial=LD(0))
        bound = np.abs(answer.bound / units).max(initial=LD(0))
        if answer.usual is not None:
            size = max(size, SMALL * np.abs(answer.usual / units).max())
        size = max(size, SMALL * _family_size(mechanism, case, question, name))
        share = float(error / size) if size else (np.inf if error else 0.0)
        if error > TOLERANCE * size + ROUNDING * bound:
            if verdict.kind == "right" or share > verdict.error:
                verdict.kind, verdict.result, verdict.error = "wrong", name, share
        elif verdict.kind == "right":
            verdict.error = max(verdict.error, share)
    return verdict
