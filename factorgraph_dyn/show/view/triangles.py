"""Meshes as corners and triangles, and what all readers of mesh files need: numbers of texts, polygons as triangles.

A text of numbers takes many times its size as words, and a small file may place one part often. So texts are split
piece by piece, and whoever is about to make numbers asks a quota first.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeVar

import numpy as np
import numpy.typing as npt

PIECE = re.compile(r".{1,1000000}\S*", re.DOTALL)  # of a text: up to the end of a word
NO_CORNER = -1

Corners = npt.NDArray[np.floating[Any]]
Triangles = npt.NDArray[np.integer[Any]]
Number = TypeVar("Number", bound=np.generic)


class Mesh(NamedTuple):
    """Corners, shape (n, 3), and triangles as their numbers, shape (m, 3)."""

    corners: Corners
    triangles: Triangles


@dataclass
class Quota:
    """How much may still be made of untrusted files.

    Attributes:
        left: As a count, of numbers if nothing else is said.
    """

    left: int

    def take(self, count: int) -> None:
        """Count what is about to be made.

        Raises:
            ValueError: It is more than may be made.
        """
        self.left -= count
        if self.left < 0:
            raise ValueError("The file holds more than is read.")


def parse_numbers(text: str, kind: type[Number], quota: Quota) -> npt.NDArray[Number]:
    """The numbers of a text.

    Raises:
        ValueError, OverflowError: Other words, numbers that are too large, or more of them than may be read.
    """
    pieces = [np.zeros(0, kind)]
    for piece in PIECE.finditer(text):
        words = piece.group().split()
        quota.take(len(words))
        pieces.append(np.array(words, kind))
    return np.concatenate(pieces)


def fans(numbers: npt.NDArray[np.int64], counts: npt.NDArray[np.int64], quota: Quota) -> Triangles:
    """Polygons cut into triangles that share their first corner, shape (m, 3).

    Args:
        numbers: Numbers of corners, a polygon after the other.
        counts: How many corners each polygon has.
        quota: What may be made.

    Raises:
        ValueError: The polygons have more corners than there are, or there are more than may be read.
    """
    if counts.min(initial=0) < 0 or counts.max(initial=0) > len(numbers) or counts.sum() > len(numbers):
        raise ValueError("The polygons have more corners than there are.")
    each = np.maximum(counts - 2, 0)
    total = int(each.sum())
    quota.take(3 * total)
    start = np.repeat(np.cumsum(counts) - counts, each)
    along = np.arange(total) - np.repeat(np.cumsum(each) - each, each)
    return np.asarray(in_four_bytes(numbers)[np.column_stack([start, start + along + 1, start + along + 2])])


def in_four_bytes(numbers: npt.NDArray[np.int64]) -> Triangles:
    """Numbers of corners; those that do not fit are of no corner."""
    fits = (numbers >= 0) & (numbers <= np.iinfo(np.int32).max)
    return np.where(fits, numbers, NO_CORNER).astype(np.int32)
