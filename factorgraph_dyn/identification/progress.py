"""A bar on standard error while things are gone through."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TypeVar

from rich.console import Console
from rich.progress import track

Item = TypeVar("Item")


def watched(items: Sequence[Item], what: str, shown: bool | None) -> Iterable[Item]:
    """The items, with a bar if it is to be shown; None means where there is a terminal."""
    console = Console(stderr=True)
    disabled = not (console.is_terminal if shown is None else shown)
    return track(items, what, console=console, transient=True, disable=disabled)
