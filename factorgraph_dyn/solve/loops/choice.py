"""The choice among forces that move nothing: one aim after the other, each as well as those before it allow.

    x = x_0 + N z          x_0 the graph's answer, N the force freedoms
    z = argmin |E_1 x - e_1|,  then of these argmin |E_2 x - e_2|,  and so on

Each aim takes its part of z by least squares and leaves its null space to the next. The last one, the least forces, is
one small problem for each group of loops where no aim before it ties groups together.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.numerics.rank import null_space
from factorgraph_dyn.solve.loops import force_limits
from factorgraph_dyn.solve.loops.force_freedoms import Columns, ForceFreedoms
from factorgraph_dyn.solve.scaling import force_measures, graph_units
from factorgraph_dyn.spatial import Floats, stacked

Values = dict[Variable, Floats]

MOVED = 1e-6  # a force freedom of unit size moves an entry by more than this where it is not unique
AIMED = 1e-10  # share of a size below which a force freedom does not change an aim
SATISFIED = 1e-8  # misfit of a hard aim, of the largest force


class Choice:
    """The forces of a solved graph, while they are chosen."""

    def __init__(
        self, mechanism: Mechanism, graph: LinearGraph, freedoms: Sequence[ForceFreedoms], values: Values
    ) -> None:
        self.mechanism, self.graph, self.values = mechanism, graph, dict(values)
        self._measures = force_measures(mechanism)
        some = [freedom for freedom in freedoms if freedom.size]
        self._groups = [self._of_unit_size(freedom.columns) for freedom in some]
        ends = np.cumsum([freedom.size for freedom in some]).tolist()
        self._places = [slice(end - freedom.size, end) for end, freedom in zip(ends, some, strict=True)]
        self._count = ends[-1] if ends else 0
        self._groups_of: dict[Variable, list[tuple[slice, Columns]]] = defaultdict(list)
        for place, columns in zip(self._places, self._groups, strict=True):
            for variable in columns:
                self._groups_of[variable].append((place, columns))
        self._left: Floats | None = None  # what aims have left, as columns; None where that is all
        self._left_by_hard_aims: Floats | None = None  # the same of hard aims alone

    @property
    def torques(self) -> list[Variable]:
        """The torques that are sought."""
        joints = self.mechanism.joint_by_name
        return [variable for variable in self.graph.variables if variable.kind == "tau" and variable.owner in joints]

    # ---- aims

    def satisfy(self, rows: Sequence[Factor]) -> str | None:
        """Meet equations; the owner of one that cannot be met."""
        self.minimise(rows)
        self._left_by_hard_aims = self._left
        scale = max((float(np.abs(v / self._measure(x)).max(initial=0.0)) for x, v in self._forces()), default=0.0)
        for row in rows:
            size = max(float(np.abs(block * self._measure(x)).max(initial=0.0)) for x, block in row.blocks)
            if np.abs(self._misfit(row)).max(initial=0.0) > SATISFIED * scale * size:
                return row.owner
        return None

    def minimise(self, rows: Sequence[Factor]) -> None:
        """Bring soft equations as close as possible, by what is left."""
        if not rows or not self._count:
            return
        e, E, sizes = self._aim(rows)
        left = np.eye(self._count) if self._left is None else self._left
        z, rest = _least_squares(_without_rounding(E @ left, sizes), e)
        self._move(left @ z)
        self._left = left @ rest

    def minimise_forces(self) -> None:
        """Take the least forces, by what is left; moments over the mechanism's length beside forces."""
        if self._left is not None:
            N = np.vstack([np.zeros((0, self._count)), *(self._scaled(x) for x, _ in self._forces())])
            f = stacked(value / self._measure(x) for x, value in self._forces())
            z, _ = _least_squares(_without_rounding(N @ self._left, np.ones(len(N))), -f)
            self._move(self._left @ z)
            return
        for place, columns in zip(self._places, self._groups, strict=True):
            moved = [x for x in columns if x.kind != "tau"]
            N = np.vstack([columns[x] / self._measure(x)[:, None] for x in moved])
            f = stacked(self.values[x] / self._measure(x) for x in moved)
            z = np.zeros(self._count)
            z[place], _ = _least_squares(N, -f)
            self._move(z)

    def move_within(self, lower: Floats, upper: Floats, rows: Sequence[Factor]) -> None:
        """Move torques into their limits, at the least cost to soft equations, after these and forces were minimised.

        What torques leave free follows the soft equations.
        """
        sought = self.torques
        units = stacked(self._measure(x) for x in sought)
        tau = stacked(self.values[x] for x in sought) / units
        if not force_limits.violated(tau, lower / units, upper / units):
            return
        left = np.eye(self._count) if self._left_by_hard_aims is None else self._left_by_hard_aims
        N = np.vstack([np.zeros((0, self._count)), *(self._scaled(x) for x in sought)]) @ left
        _, sizes, right = np.linalg.svd(N)
        turning = int((sizes > MOVED).sum())
        pushes, rest = left @ right[:turning].T, left @ right[turning:].T
        e, E, sizes_of_rows = self._aim(rows)
        answer = _without_rounding(E @ rest, sizes_of_rows)
        follow = np.eye(len(e)) - answer @ np.linalg.pinv(answer, rcond=AIMED)
        names = [x.owner for x in sought for _ in range(x.size)]
        t = force_limits.choose_within(
            tau, N @ right[:turning].T, -follow @ e, follow @ E @ pushes, lower / units, upper / units, names, units
        )
        self._move(pushes @ t)
        self._left = rest
        self.minimise(rows)
        self.minimise_forces()

    # ---- what is free

    def not_unique(self) -> dict[str, tuple[int, ...]]:
        """Entries of wrenches that what is left moves, by variable name, in the order of the graph."""
        found: dict[str, tuple[int, ...]] = {}
        for variable, _ in self._forces():
            moved = self._moved_entries(variable)
            if len(moved):
                found[str(variable)] = tuple(moved.tolist())
        return found

    def free_torques(self) -> list[str]:
        """Joints whose sought torques what is left moves."""
        return [variable.owner for variable in self.torques if len(self._moved_entries(variable))]

    # ---- parts

    def _moved_entries(self, variable: Variable) -> npt.NDArray[np.intp]:
        """Entries of a force that what is left moves."""
        if self._left is not None:
            moved = self._scaled(variable) @ self._left
        else:  # those of its own groups, so that the work is linear in the number of groups
            own = [columns[variable] for _, columns in self._groups_of.get(variable, ())]
            moved = np.hstack([np.zeros((variable.size, 0)), *own]) / self._measure(variable)[:, None]
        return np.flatnonzero(np.linalg.norm(moved, axis=1) > MOVED)

    def _forces(self) -> list[tuple[Variable, Floats]]:
        """The wrenches and coupling forces that force freedoms move, in the order of the graph."""
        moved = {x for columns in self._groups for x in columns if x.kind != "tau"}
        return [(x, self.values[x]) for x in self.graph.variables if x in moved]

    def _measure(self, variable: Variable) -> Floats:
        """What the entries of a force are measured by."""
        sizes = self._measures[variable.kind, variable.owner]
        if len(sizes) == variable.size:
            return sizes
        return graph_units(self.mechanism).of_variable(variable, self.graph)

    def _of_unit_size(self, columns: Columns) -> dict[Variable, Floats]:
        """How variables follow the freedoms of a group, the largest force being of order one."""
        size = max(float(np.abs(column / self._measure(x)[:, None]).max()) for x, column in columns.items())
        return {x: column / size for x, column in columns.items()}

    def _scaled(self, variable: Variable) -> Floats:
        """How a force follows all freedoms, measured, shape (size, count)."""
        return self._column(variable) / self._measure(variable)[:, None]

    def _column(self, variable: Variable) -> Floats:
        found = np.zeros((variable.size, self._count))
        for place, columns in self._groups_of.get(variable, ()):
            found[:, place] += columns[variable]
        return found

    def _aim(self, rows: Sequence[Factor]) -> tuple[Floats, Floats, Floats]:
        """What soft equations miss, how their left sides follow the freedoms, and how far unit forces move them."""
        E = [np.zeros((0, self._count))]
        E += [
            sum((block @ self._column(x) for x, block in row.blocks), np.zeros((row.rows, self._count))) for row in rows
        ]
        moved = {x for columns in self._groups for x in columns}
        sizes = stacked(
            sum((np.abs(block) @ self._measure(x) for x, block in row.blocks if x in moved), np.zeros(row.rows))
            for row in rows
        )
        return stacked(self._misfit(row) for row in rows), _without_rounding(np.vstack(E), sizes), sizes

    def _misfit(self, row: Factor) -> Floats:
        return np.asarray(row.rhs - sum(block @ self.values[x] for x, block in row.blocks))

    def _move(self, z: Floats) -> None:
        for place, columns in zip(self._places, self._groups, strict=True):
            if z[place].any():
                for variable, column in columns.items():
                    if variable in self.values:
                        self.values[variable] = self.values[variable] + column @ z[place]


def _without_rounding(matrix: Floats, sizes: Floats) -> Floats:
    """A matrix whose rows are of some size, with zeros in place of rounding of it."""
    return np.where(np.abs(matrix) <= AIMED * sizes[:, None], 0.0, matrix)


def _least_squares(E: Floats, e: Floats) -> tuple[Floats, Floats]:
    """The shortest z of least |E z - e|, and the null space of E; columns may be of very different size."""
    sizes = np.linalg.norm(E, axis=0)
    sizes[sizes == 0.0] = 1.0
    rest = null_space(E / sizes, AIMED)
    z = np.linalg.lstsq(E / sizes, e, rcond=AIMED)[0] / sizes
    free, _ = np.linalg.qr(rest / sizes[:, None])
    return z - free @ (free.T @ z), free
