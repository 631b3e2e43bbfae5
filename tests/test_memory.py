"""Answers are kept with what they are about, and go with it."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from dataclasses import dataclass, replace

import pytest

from factorgraph_dyn.memory import kept_with_first


@dataclass(frozen=True, eq=False)
class Thing:
    name: str


class Answer:
    """Something that can be watched, and cannot be pickled."""

    def __init__(self, about: Thing) -> None:
        self.about = about

    def __reduce__(self):
        raise TypeError("not to be pickled")


@kept_with_first
def answer(thing: Thing, size: int = 0, *, word: str = "") -> Answer:
    """What is asked."""
    if size < 0:
        raise ValueError("a size is missing")
    return Answer(thing)


def test_a_question_is_answered_once_by_thing_and_words():
    thing, other = Thing("a"), Thing("a")
    assert answer(thing) is answer(thing)
    assert answer(thing, 1, word="b") is answer(thing, 1, word="b")
    assert len({id(found) for found in (answer(thing), answer(thing, 1), answer(thing, word="b"), answer(other))}) == 4
    assert answer.__doc__ == "What is asked."
    for _ in range(2):
        with pytest.raises(ValueError, match="a size"):
            answer(thing, -1)


def test_answers_go_with_their_thing():
    thing = Thing("a")
    seen = weakref.ref(thing), weakref.ref(answer(thing))
    gc.collect()
    assert seen[1]() is answer(thing)
    del thing
    gc.collect()
    assert [each() for each in seen] == [None, None]


def test_answers_about_one_thing_are_bounded():
    thing = Thing("a")
    seen = [weakref.ref(answer(thing, size)) for size in range(5000)]
    gc.collect()
    assert seen[0]() is None
    assert sum(each() is not None for each in seen) < 2000


@pytest.mark.parametrize("same", [copy.copy, copy.deepcopy, replace, lambda thing: pickle.loads(pickle.dumps(thing))])
def test_copies_begin_without_answers(same):
    thing = Thing("a")
    found = answer(thing)
    other = same(thing)
    assert other.name == "a"
    assert answer(other) is not found
    assert answer(other).about is other
    assert answer(thing) is found
