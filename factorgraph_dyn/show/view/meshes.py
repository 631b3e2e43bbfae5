"""Triangles of meshes: files of STL, OBJ and Collada become few enough for a page.

Files are untrusted: their size is bounded, and so are the numbers made of them; what cannot be read gives no mesh.
Meshes of too many triangles are made coarser: corners in one cell of a grid become one. The work runs once a page.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn import storage
from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.show.view.collada import read_collada
from factorgraph_dyn.show.view.obj import read_obj
from factorgraph_dyn.show.view.stl import read_stl
from factorgraph_dyn.show.view.triangles import Corners, Mesh, Quota, Triangles

# A format's reader, and the most bytes of a file: XML takes several times its size.
READERS: dict[str, tuple[Callable[[bytes, Quota], Mesh], int]] = {
    ".stl": (read_stl, 64_000_000),
    ".obj": (read_obj, 64_000_000),
    ".dae": (read_collada, 32_000_000),
}
MOST_NUMBERS = 12_000_000  # made of one file
MOST_READ = 60_000_000  # numbers made of all files of a page, and of ...
BYTES = 8  # ... of a file, which count as a number
MOST_TRIANGLES = 6_000  # of one mesh in a page
MOST_CORNERS = 0xFFFF  # so that a number of a corner takes two bytes
FINEST = 256  # cells along the longest edge, where a mesh has to be made coarser
STEPS = 0xFFFF  # into which an edge of a mesh's box is divided in a page


def read_mesh(path: Path, page: Quota | None = None) -> Mesh | None:
    """The mesh of a file, made coarse enough for a page, or None where it cannot be read or is too large.

    Args:
        path: The file.
        page: What may still be read for the page; what this file takes of it is gone afterwards.
    """
    try:
        with np.errstate(over="ignore", invalid="ignore"):
            return _coarse(_in_use(_read(path, page or Quota(MOST_READ))))
    except (OSError, ValueError, OverflowError, IndexError, KeyError, ModelError, RecursionError):
        return None


def _read(path: Path, page: Quota) -> Mesh:
    """All triangles of a file, whose numbers are counted."""
    reader, most_bytes = READERS[path.suffix.lower()]
    content = storage.read(path, min(most_bytes, BYTES * max(page.left, 0)))
    page.take(len(content) // BYTES)
    numbers = Quota(min(MOST_NUMBERS, page.left))
    given = numbers.left
    try:
        return reader(content, numbers)
    finally:
        page.left -= given - numbers.left


def packed(mesh: Mesh) -> dict[str, Any]:
    """A mesh as text: corners in steps of its box, and numbers of corners, two bytes each."""
    low, high = mesh.corners.min(axis=0), mesh.corners.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    steps = np.round((mesh.corners - low) / span * STEPS).astype("<u2")
    words = {"corners": steps.tobytes(), "triangles": mesh.triangles.astype("<u2").tobytes()}
    box = {"low": low.tolist(), "step": (span / STEPS).tolist()}
    return box | {name: base64.b64encode(content).decode() for name, content in words.items()}


def _in_use(mesh: Mesh) -> Mesh:
    """The triangles whose corners there are, all of them finite, and no other corners."""
    there = np.asarray(((mesh.triangles >= 0) & (mesh.triangles < len(mesh.corners))).all(axis=1))
    finite = np.asarray(np.isfinite(mesh.corners).all(axis=1))
    there[there] = finite[mesh.triangles[there]].all(axis=1)
    used = np.zeros(len(mesh.corners), dtype=bool)
    used[mesh.triangles[there]] = True
    number = np.cumsum(used, dtype=np.int32) - 1
    return Mesh(mesh.corners[used], number[mesh.triangles[there]])


def _merged(mesh: Mesh, cells: float) -> Mesh:
    """The mesh with corners in one of so many cells along its longest edge made one."""
    _, number = np.unique(_cells(mesh.corners, cells), return_inverse=True)
    first = np.empty(number.max(initial=-1) + 1, dtype=np.int32)
    first[number[::-1]] = np.arange(len(number), dtype=np.int32)[::-1]
    triangles = number.astype(np.int32)[mesh.triangles]
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    _, once = np.unique(_key(np.sort(triangles), len(first)), return_index=True)
    return Mesh(mesh.corners[first], triangles[once])


def _cells(corners: Corners, cells: float) -> Triangles:
    """One number for every corner, the same for those in one cell."""
    low, high = corners.min(axis=0).astype(float), corners.max(axis=0).astype(float)
    size = (high - low).max() or 1.0
    key = np.zeros(len(corners), dtype=np.int64)
    for x, least in zip(corners.T, low, strict=True):
        key *= STEPS + 1
        key += np.floor((x - least) / size * cells).astype(np.int64)
    return key


def _key(rows: Triangles, base: int) -> Triangles:
    """One number for every row of three that are below the base."""
    return np.asarray((rows[:, 0].astype(np.int64) * base + rows[:, 1]) * base + rows[:, 2])


def _coarse(mesh: Mesh) -> Mesh | None:
    """The mesh with as few triangles as a page takes, or None where nothing is left of it."""
    cells = float(STEPS)
    while len(mesh.triangles):
        mesh = _merged(mesh, cells)
        if len(mesh.triangles) <= MOST_TRIANGLES and len(mesh.corners) <= MOST_CORNERS:
            break
        cells = min(FINEST, cells / 1.5)
    return Mesh(mesh.corners.astype(float), mesh.triangles) if len(mesh.triangles) else None
