"""Triangles of meshes: files of STL, OBJ and Collada become few enough for a page.

Files are untrusted: their size is bounded, and what cannot be read gives no mesh. Meshes of too many triangles are made
coarser: corners in one cell of a grid become one. The work runs once a page.
"""

from __future__ import annotations

import base64
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import storage
from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.show.view.collada import read_collada
from factorgraph_dyn.spatial import Floats

MOST_BYTES = 64_000_000  # of one file
MOST_TRIANGLES = 6_000  # of one mesh in a page
MOST_CORNERS = 0xFFFF  # so that a number of a corner takes two bytes
FINEST = 256  # cells along the longest edge, where a mesh has to be made coarser
FACET = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]  # of a binary STL file
STEPS = 0xFFFF  # into which an edge of a mesh's box is divided in a page

Triangles = npt.NDArray[np.int64]


class Mesh(NamedTuple):
    """Corners, shape (n, 3), and triangles as their numbers, shape (m, 3)."""

    corners: Floats
    triangles: Triangles


def read_mesh(path: Path) -> Mesh | None:
    """The mesh of a file, made coarse enough for a page, or None where it cannot be read."""
    reader = {".stl": _read_stl, ".obj": _read_obj, ".dae": _read_dae}.get(path.suffix.lower())
    try:
        if reader is None:
            return None
        mesh = reader(storage.read(path, MOST_BYTES))
    except (OSError, ValueError, IndexError, KeyError, ModelError, RecursionError):
        return None
    mesh = Mesh(mesh.corners, mesh.triangles[_good_triangles(mesh)])
    return _coarse(mesh) if len(mesh.triangles) else None


def packed(mesh: Mesh) -> dict[str, Any]:
    """A mesh as text: corners in steps of its box, and numbers of corners, two bytes each."""
    low, high = mesh.corners.min(axis=0), mesh.corners.max(axis=0)
    span = np.where(high > low, high - low, 1.0)
    steps = np.round((mesh.corners - low) / span * STEPS).astype("<u2")
    words = {"corners": steps.tobytes(), "triangles": mesh.triangles.astype("<u2").tobytes()}
    box = {"low": low.tolist(), "step": (span / STEPS).tolist()}
    return box | {name: base64.b64encode(content).decode() for name, content in words.items()}


def _read_stl(content: bytes) -> Mesh:
    """Binary, told by its length, or text."""
    count = int.from_bytes(content[80:84], "little")
    if len(content) >= 84 + 50 * count > 84:
        facets = np.frombuffer(content, np.dtype(FACET), count, offset=84)
        corners = facets["corners"].reshape(-1, 3).astype(float)
    else:
        words = content.split()
        starts = [k + 1 for k, word in enumerate(words) if word == b"vertex"]
        corners = np.array([words[k : k + 3] for k in starts], dtype=float).reshape(-1, 3)
    return Mesh(corners, np.arange(len(corners) // 3 * 3).reshape(-1, 3))


def _read_obj(content: bytes) -> Mesh:
    """Corners (v) and polygons (f), which are cut into fans."""
    corners: list[list[float]] = []
    triangles: list[tuple[int, int, int]] = []
    for line in content.decode("utf-8", "replace").splitlines():
        words = line.split()
        if words[:1] == ["v"]:
            corners.append([float(x) for x in words[1:4]])
        elif words[:1] == ["f"]:
            numbers = [int(word.partition("/")[0]) for word in words[1:]]
            first, *others = [k - 1 if k > 0 else len(corners) + k for k in numbers]
            triangles += [(first, a, b) for a, b in pairwise(others)]
    return Mesh(np.array(corners).reshape(-1, 3), np.array(triangles, dtype=np.int64).reshape(-1, 3))


def _read_dae(content: bytes) -> Mesh:
    return Mesh(*read_collada(content))


def _good_triangles(mesh: Mesh) -> npt.NDArray[np.bool_]:
    """Which triangles have corners that there are, all of them finite."""
    there = np.asarray(((mesh.triangles >= 0) & (mesh.triangles < len(mesh.corners))).all(axis=1))
    finite = np.asarray(np.isfinite(mesh.corners).all(axis=1))
    there[there] = finite[mesh.triangles[there]].all(axis=1)
    return there


def _merged(mesh: Mesh, cells: float) -> Mesh:
    """The mesh with corners in one of so many cells along its longest edge made one."""
    corners = mesh.corners[mesh.triangles.ravel()]
    low, high = corners.min(axis=0), corners.max(axis=0)
    cell = np.floor((corners - low) / ((high - low).max() or 1.0) * cells).astype(np.int64)
    _, first, number = np.unique(_key(cell, STEPS + 1), return_index=True, return_inverse=True)
    triangles = number.reshape(-1, 3)
    a, b, c = triangles.T
    triangles = triangles[(a != b) & (b != c) & (c != a)]
    _, once = np.unique(_key(np.sort(triangles), len(first)), return_index=True)
    return Mesh(corners[first], triangles[once])


def _key(rows: Triangles, base: int) -> Triangles:
    """One number for every row of three that are below the base."""
    return np.asarray((rows[:, 0] * base + rows[:, 1]) * base + rows[:, 2])


def _coarse(mesh: Mesh) -> Mesh | None:
    """The mesh with as few triangles as a page takes, or None where nothing is left of it."""
    found, cells = _merged(mesh, STEPS), float(FINEST)
    while len(found.triangles) > MOST_TRIANGLES or len(found.corners) > MOST_CORNERS:
        found, cells = _merged(found, cells), cells / 1.5
    return found if len(found.triangles) else None
