"""Warnings that are alike, counted: a file of ten thousand faulty joints gives as many, which nobody reads.

Runs once a mechanism.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

MOST_ALIKE = 50  # warnings that differ in names and numbers only
MOST = 1000  # warnings in all
_NAMES_AND_NUMBERS = re.compile(r"""'[^']*'|"[^"]*"|[\d.]+""")


def merged(notes: Iterable[str]) -> tuple[str, ...]:
    """The notes; of many that are alike only the first ones, with how many more there are."""
    kept: list[str] = []
    last: dict[str, int] = {}  # where the last one of a sort is kept
    alike, more, rest = Counter[str](), Counter[str](), 0
    for note in notes:
        sort = _NAMES_AND_NUMBERS.sub("_", note)
        if alike[sort] < MOST_ALIKE and len(kept) < MOST:
            alike[sort] += 1
            last[sort] = len(kept)
            kept.append(note)
        elif sort in last:
            more[sort] += 1
        else:
            rest += 1
    for sort, count in more.items():
        kept[last[sort]] += f" ... and {count} more like it."
    return (*kept, f"... and {rest} more warnings.") if rest else tuple(kept)
