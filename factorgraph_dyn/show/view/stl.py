"""The triangles of an STL file, binary or text."""

from __future__ import annotations

import re
from itertools import islice

import numpy as np

from factorgraph_dyn.show.view.triangles import Corners, Mesh, Quota

FACET = [("normal", "<f4", 3), ("corners", "<f4", (3, 3)), ("attribute", "<u2")]  # of a binary file
VERTEX = re.compile(rb"(?<!\S)vertex\s+(\S+\s+\S+\s+\S+)")  # of a text
AT_ONCE = 50_000  # vertices that become an array


def read_stl(content: bytes, quota: Quota) -> Mesh:
    """The triangles of a file; a binary one is known by its length.

    Raises:
        ValueError: Not STL, or more than may be read.
    """
    count = int.from_bytes(content[80:84], "little")
    if len(content) >= 84 + 50 * count > 84:
        quota.take(9 * count)
        corners = np.frombuffer(content, np.dtype(FACET), count, offset=84)["corners"].reshape(-1, 3)
    else:
        corners = _vertices(content, quota)
    return Mesh(corners, np.arange(len(corners) // 3 * 3, dtype=np.int32).reshape(-1, 3))


def _vertices(content: bytes, quota: Quota) -> Corners:
    pieces = [np.zeros((0, 3))]
    found = VERTEX.finditer(content)
    while words := b" ".join(match[1] for match in islice(found, AT_ONCE)).split():
        quota.take(len(words))
        pieces.append(np.array(words, dtype=float).reshape(-1, 3))
    return np.concatenate(pieces)
