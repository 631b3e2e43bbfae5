"""Answers that are kept as long as what they are about, and no longer.

A mechanism is asked the same questions again and again, and compiling makes some mechanisms of its own on the way.
Answers that a table of the module holds would keep all of them alive, with every array that is theirs.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from functools import cached_property, lru_cache, partial, wraps
from typing import Any, Concatenate, ParamSpec, TypeVar

Thing = TypeVar("Thing")
More = ParamSpec("More")
Answer = TypeVar("Answer")
_MOST_ANSWERS = 1024  # of one function about one thing; those asked for longest ago go first
_ANSWERS = "_answers"  # the entry of a thing's own dictionary that holds them


class _Answers(dict[Callable[..., Any], Callable[..., Any]]):
    """Answers about one thing, by function; they are no part of its copies and pickles."""

    def __init__(self, about: object = None) -> None:
        super().__init__()
        self.about = about

    def __reduce__(self) -> tuple[Any, ...]:
        return _Answers, ()


def kept_with_first(
    function: Callable[Concatenate[Thing, More], Answer],
) -> Callable[Concatenate[Thing, More], Answer]:
    """The function, whose answers are kept with its first argument and freed together with it.

    The first argument is of a frozen type with a dictionary of its own; the others are hashed.
    """

    @wraps(function)
    def kept(thing: Thing, /, *rest: More.args, **words: More.kwargs) -> Answer:
        answers = vars(thing).get(_ANSWERS)
        if answers is None or answers.about is not thing:  # as in a copy
            answers = vars(thing)[_ANSWERS] = _Answers(thing)
        if (ask := answers.get(function)) is None:
            ask = answers.setdefault(function, lru_cache(_MOST_ANSWERS)(partial(function, thing)))
        answer: Answer = ask(*rest, **words)
        return answer

    return kept


def _renew_property_locks() -> None:
    """Give cached properties locks that are free: another thread's, held while the process was forked, stay locked."""
    modules = [module for name, module in list(sys.modules.items()) if name.startswith(__package__)]
    for kind in {thing for module in modules for thing in list(vars(module).values()) if isinstance(thing, type)}:
        for item in vars(kind).values():
            if isinstance(item, cached_property):
                item.lock = threading.RLock()  # type: ignore[attr-defined]


if hasattr(os, "register_at_fork") and sys.version_info < (3, 12):  # later ones have no locks
    os.register_at_fork(after_in_child=_renew_property_locks)
