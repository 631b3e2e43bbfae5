"""Every case is answered as well as its file says, or better; wrong numbers are never acceptable."""

from __future__ import annotations

import warnings

import pytest

from tests.cases.case import VERDICTS, all_cases, outcomes

CASES = all_cases()


def _marks(asked):
    due = [pytest.mark.xfail(reason=asked.due, strict=True)] if asked.due else []
    return [pytest.mark.slow, *due] if asked.is_slow else due


ASKED = [
    pytest.param(case, asked, id=f"{case.name}-{number}-{asked.name}", marks=_marks(asked))
    for case in CASES
    for number, asked in enumerate(case.asked)
]


class BetterThanItsVerdictWarning(UserWarning):
    """A case is answered better than its file asks for: ``python -m tests.cases --update`` writes that down."""


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")


@pytest.mark.parametrize(("case", "asked"), ASKED)
def test_case(case, asked):
    if case.mechanism is None:
        pytest.skip("example-robot-data is not installed")
    found = outcomes(case, asked)
    for state, outcome, verdict in zip(asked.states, found, asked.verdicts, strict=True):
        assert outcome.is_acceptable(verdict), f"{case.story}\nstate {state}: {verdict} expected, {outcome}"
    if any(outcome.kind != verdict for outcome, verdict in zip(found, asked.verdicts, strict=True)):
        better = ", ".join(outcome.kind for outcome in found)
        warnings.warn(f"{case.name}: {asked.name} is {better} now", BetterThanItsVerdictWarning, stacklevel=1)


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_files_say_what_they_are_about(case):
    """A story in a sentence or two, where it comes from, and questions about states that there are."""
    assert case.story.endswith(".")
    assert len(case.story) > 40
    assert case.content["source"]
    for asked in case.asked:
        assert asked.states
        assert max(asked.states) < len(case.content["states"])
        assert len(asked.states) == len(asked.verdicts)
        assert set(asked.verdicts) <= set(VERDICTS)
        if "nan" in asked.verdicts:
            assert "right" in asked.verdicts, "a kernel that has no number at one state has one at another"
    assert {state for asked in case.asked for state in asked.states} == set(range(len(case.content["states"])))


@pytest.mark.parametrize(("verdict", "acceptable"), [("right", 1), ("nan", 2), ("refused", 3)])
def test_verdicts_are_the_weakest_acceptable_answers(verdict, acceptable):
    from tests.cases.case import FAILURES, Outcome

    accepted = [kind for kind in (*VERDICTS, *FAILURES) if Outcome(kind).is_acceptable(verdict)]
    assert accepted == list(VERDICTS[:acceptable])
