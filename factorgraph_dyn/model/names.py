"""Which texts are names, of parts made in Python and of those in files alike.

A name may be in any script. What it must not hold are characters that act where it is shown, and it has an end: names
are printed, drawn, written to files and into comments of code. Runs once a part.
"""

from __future__ import annotations

from collections.abc import Iterable

from factorgraph_dyn.checks import shown
from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.text import acting_character

LONGEST_NAME = 1000  # characters; the name of a part of nested models holds those of all around it


def check_own_name(name: object, noun: str) -> None:
    """Raise a ModelError unless a part's name is one, which the error's detail ``name`` then is."""
    if not isinstance(name, str) or not name:
        raise ModelError(f"A {noun} has the name {shown(name)}; give it a text that is not empty.")
    if len(name) > LONGEST_NAME:
        raise ModelError(
            f"A {noun} has the name {shown(name)} of {len(name)} characters; {LONGEST_NAME} are allowed.", name=name
        )
    if (found := acting_character(name)) is not None:
        raise ModelError(
            f"A {noun} has the name {shown(name)}, which holds the character {found}: names are shown on terminals, "
            "written to files and into code. Leave control characters, line breaks, marks of writing direction and "
            "lone surrogates out.",
            name=name,
        )


class TakenNames(set[str]):
    """Names that are taken, and new ones beside them: the wanted one, or else with ``_2``, ``_3`` and so on."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        super().__init__(names)
        self._next: dict[str, int] = {}  # so that a name wanted ten thousand times is not sought from 2 each time

    def new(self, wanted: str) -> str:
        """A name that was not taken and now is."""
        name, index = wanted, self._next.get(wanted, 2)
        while name in self:
            name, index = f"{wanted}_{index}", index + 1
        self._next[wanted] = index
        self.add(name)
        return name
