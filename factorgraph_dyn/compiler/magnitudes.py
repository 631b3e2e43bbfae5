"""How large the unknowns of a graph are beside each other, column by column.

Takes a mechanism; gives a size for every column of its equations, from what its joints carry, whatever the units.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations import LinearGraph, Variable
from factorgraph_dyn.equations.problem import CONTACT_FORCE
from factorgraph_dyn.model import Joint, Loop, Mechanism
from factorgraph_dyn.model.sizes.carried import carried
from factorgraph_dyn.spatial import Floats


class Magnitudes:
    """Sizes of the unknowns of a mechanism's equations."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._carried = carried(mechanism, stretched=True)
        self._place = mechanism.place
        parts: tuple[Joint | Loop, ...] = (*mechanism.joints, *mechanism.loops)
        self._parts = {part.name: part for part in parts}
        self._into = {joint.child: joint.name for joint in mechanism.joints}
        self._coupled = {coupling.name: coupling.joint for coupling in mechanism.couplings}

    def of(self, graph: LinearGraph) -> dict[int, float]:
        """The size of every column of a graph's unknowns; those known in part have one column an unknown entry."""
        sizes: dict[int, float] = {}
        for variable, part in graph.column_slices.items():
            columns = range(part.start, part.stop)
            sizes |= dict(zip(columns, np.resize(self._of(variable), len(columns)).tolist(), strict=True))
        return sizes

    def _of(self, variable: Variable) -> Floats:
        kind, owner = variable.kind, variable.owner
        if kind == CONTACT_FORCE:
            return np.ones(variable.size)  # never eliminated
        if kind == "A":
            return self._carried[self._into[owner]].motion
        if kind == "F":
            return self._carried[owner].wrench
        if kind == "W":
            return self._carried[self._into[self._place(owner)[0]]].wrench
        part = self._parts[self._coupled[owner] if kind == "lambda" else owner]
        here = self._carried[part.name]
        return here.freedoms(part) if kind == "a" else here.torque(part)
