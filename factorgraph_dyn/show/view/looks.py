"""The shapes and meshes of a mechanism's links as plain data for a page, with those that cannot be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.model import Mechanism, Visual
from factorgraph_dyn.show.view.mesh_files import find_mesh
from factorgraph_dyn.show.view.meshes import MOST_READ, packed, read_mesh
from factorgraph_dyn.show.view.triangles import Mesh, Quota
from factorgraph_dyn.spatial import Floats

MOST_IN_ALL = 300_000  # triangles of a page


def looks(mechanism: Mechanism, folders: Sequence[Path] = ()) -> dict[str, Any]:
    """Visuals, the meshes they show, each once, and the names of links with meshes that cannot be drawn.

    Args:
        mechanism: The mechanism.
        folders: Where meshes may lie, too.
    """
    number = {name: index for index, name in enumerate(mechanism.link_names)}
    found = _Meshes(folders)
    visuals, missing = [], []
    for visual in mechanism.visuals:
        index = found.index_of(visual) if visual.shape == "mesh" else None
        if visual.shape == "mesh" and index is None:
            missing.append(visual.link)
        else:
            box = _half_box(visual) if index is None else found.meshes[index].corners * visual.size
            visuals.append(_visual(visual, number[visual.link], index, box))
    return {
        "visuals": visuals,
        "meshes": [packed(mesh) for mesh in found.meshes],
        "missing": [number[name] for name in dict.fromkeys(missing)],
    }


class _Meshes:
    """The meshes that have been read, each once, as many as a page takes."""

    def __init__(self, folders: Sequence[Path]) -> None:
        self.folders = folders
        self.quota, self.room = Quota(MOST_READ), MOST_IN_ALL
        self.meshes: list[Mesh] = []
        self.indices: dict[Path, int | None] = {}

    def index_of(self, visual: Visual) -> int | None:
        """The number of a visual's mesh, or None where it cannot be drawn."""
        path = find_mesh(visual, self.folders)
        if path is not None and path not in self.indices:
            self.indices[path] = self._read(path)
        return None if path is None else self.indices[path]

    def _read(self, path: Path) -> int | None:
        mesh = read_mesh(path, self.quota)
        if mesh is None or len(mesh.triangles) > self.room:
            return None
        self.room -= len(mesh.triangles)
        self.meshes.append(mesh)
        return len(self.meshes) - 1


def _visual(visual: Visual, link: int, mesh: int | None, points: Floats) -> dict[str, Any]:
    T = np.asarray(visual.placement)
    bounds = np.array(list(product(*zip(points.min(axis=0), points.max(axis=0), strict=True))))
    return {
        "link": link,
        "shape": visual.shape,
        "size": visual.size.tolist(),
        "T": T.ravel().tolist(),
        "colour": None if visual.colour is None else visual.colour.tolist(),
        "mesh": mesh,
        "box": np.round(bounds @ T[:3, :3].T + T[:3, 3], 12).tolist(),
    }


def _half_box(visual: Visual) -> Floats:
    """Two corners of the box around a shape in its own frame, shape (2, 3)."""
    size = visual.size
    if visual.shape in ("cylinder", "capsule"):
        half = np.array([size[0], size[0], size[1] / 2 + (size[0] if visual.shape == "capsule" else 0.0)])
    else:
        half = np.broadcast_to(size / 2 if visual.shape == "box" else size, 3)
    return np.array([-half, half])
