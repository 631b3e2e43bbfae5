"""The triangles of an OBJ file: its corners (v) and its polygons (f), which are cut into fans."""

from __future__ import annotations

import re

import numpy as np

from factorgraph_dyn.show.view.triangles import Corners, Mesh, Quota, Triangles, fans

AT_ONCE = 1_000_000  # bytes that become arrays
LONGEST = 100_000  # bytes of a line
PIECE = re.compile(rb".{1,%d}[^\r\n]*" % AT_ONCE, re.DOTALL)  # up to the end of a line
LINE = re.compile(rb"(?<![^\r\n])[ \t]*([vf])(?!\S)([^\r\n]*)")


def read_obj(content: bytes, quota: Quota) -> Mesh:
    """The triangles of a file.

    Raises:
        ValueError, OverflowError: Not OBJ, or more than may be read.
    """
    corners: list[Corners] = [np.zeros((0, 3))]
    triangles: list[Triangles] = [np.zeros((0, 3), np.int32)]
    count = 0
    for piece in PIECE.finditer(content):
        if piece.end() - piece.start() > AT_ONCE + LONGEST:
            raise ValueError("A line is longer than those of corners and polygons are.")
        places: list[bytes] = []
        polygons: list[list[bytes]] = []
        before: list[int] = []  # corners before each polygon: negative numbers count back from there
        for kind, rest in LINE.findall(piece.group()):
            if kind == b"v":
                places.append(rest)
            else:
                polygons.append(rest.split())
                before.append(count + len(places))
        if places:
            corners.append(_corners(places, quota))
        if polygons:
            triangles.append(_triangles(polygons, before, quota))
        count += len(places)
    return Mesh(np.concatenate(corners), np.concatenate(triangles))


def _corners(lines: list[bytes], quota: Quota) -> Corners:
    quota.take(3 * len(lines))
    if max(map(len, lines)) > LONGEST:
        raise ValueError("A line is longer than those of corners are.")
    found = np.loadtxt(lines, usecols=(0, 1, 2), comments=None, ndmin=2)
    if len(found) < len(lines):  # empty ones are left out
        raise ValueError("A corner without coordinates.")
    return found


def _triangles(polygons: list[list[bytes]], before: list[int], quota: Quota) -> Triangles:
    counts = np.array([len(words) for words in polygons])
    numbers = np.array([word.partition(b"/")[0] for words in polygons for word in words], dtype=np.int64)
    return fans(np.where(numbers > 0, numbers - 1, np.repeat(before, counts) + numbers), counts, quota)
