"""Samples, block by block, become small triangles: all that least squares needs of them.

For every equation i, over the blocks of its rows [X_i y_i],

    [R_i z_i]  <-  R of QR([R_i z_i; X_i y_i])        |X_i beta - y_i| = |R_i beta - z_i|

so that a million samples need the memory of one block, weights of equations may be found afterwards, and the condition
number is not squared, as normal equations do. Equations hold only some base parameters; the others' columns are left
out. Runs once a block.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.base import Base
from factorgraph_dyn.identification.columns import Columns
from factorgraph_dyn.identification.freedoms import Freedoms
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.spatial import Floats

BLOCK = 1024  # samples whose regressors are in memory at once
Watch = Callable[[Sequence[int]], Iterable[int]]  # goes through the starts of blocks, and may show how far


@dataclass(frozen=True, eq=False)
class Triangle:
    """The samples of one equation.

    Attributes:
        name: The freedom whose torque it is.
        entry: Its place in tau.
        columns: Base parameters that it holds.
        R: The triangle with the torques' column last, shape (columns + 1, columns + 1).
        count: Number of samples.
        total: Sum of the torques.
    """

    name: str
    entry: int
    columns: list[int]
    R: Floats
    count: int = 0
    total: float = 0.0

    @property
    def square(self) -> float:
        """Sum of squares of the torques."""
        return float(self.R[:, -1] @ self.R[:, -1])

    @property
    def size(self) -> float:
        """Root mean square of the torques."""
        return float(np.sqrt(self.square / max(self.count, 1)))

    def with_rows(self, X: Floats, y: Floats) -> Triangle:
        """The same with more samples of its columns and torques, those that are nan left out."""
        told = np.isfinite(y)
        if not told.all():
            X, y = X[told], y[told]
        stacked = np.concatenate([self.R, np.empty((len(y), len(self.R)))])
        stacked[len(self.R) :, :-1], stacked[len(self.R) :, -1] = X, y
        R: Floats = np.asarray(np.linalg.qr(stacked, mode="r"))
        return Triangle(self.name, self.entry, self.columns, R, self.count + len(y), self.total + float(y.sum()))

    def residual(self, beta: Floats) -> float:
        """Sum of squares of what base parameters leave of the torques."""
        left = self.R[:, :-1] @ beta[self.columns] - self.R[:, -1]
        return float(left @ left)

    def wide(self, size: int) -> Floats:
        """The triangle over all base parameters, the torques' column last, shape (columns + 1, size + 1)."""
        rows = np.zeros((len(self.R), size + 1))
        rows[:, [*self.columns, size]] = self.R
        return rows


def equations_of(columns: Columns, freedoms: Freedoms, samples: Samples) -> tuple[Floats, Floats]:
    """Regressors (samples, equations, columns) of unknowns and the torques that are left for them."""
    return freedoms.project(samples.q, columns.regressor(samples), samples.tau - columns.known(samples))


def find_triangles(
    columns: Columns, freedoms: Freedoms, base: Base, samples: Samples, watch: Watch = iter
) -> tuple[Triangle, ...]:
    """The triangles of all equations that have samples."""
    seen = [np.flatnonzero(row).tolist() for row in base.seen]
    found = [
        Triangle(name, entry, own, np.zeros((len(own) + 1, len(own) + 1)))
        for name, entry, own in zip(freedoms.names, freedoms.entries, seen, strict=True)
    ]
    places = [np.array(base.kept)[own] for own in seen]
    for start in watch(range(0, len(samples), BLOCK)):
        X, y = equations_of(columns, freedoms, samples.part(slice(start, start + BLOCK)))
        for k, triangle in enumerate(found):
            found[k] = triangle.with_rows(X[:, k, places[k]], y[:, k])
    told = tuple(triangle for triangle in found if triangle.count)
    if not told:
        raise InputError("No sample has the torques that it takes: too many are nan.")
    return told
