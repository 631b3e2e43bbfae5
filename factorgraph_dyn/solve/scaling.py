"""Light links beside heavy ones: forces measured in units of what they move.

QR mixes the rows that hold a variable, so the balance of a link of 1e-9 kg would drown in the rounding
of its heavy parent's. Measuring the wrench and torque of every joint in units of the inertia it carries
makes all rows of order one; the units are powers of two, so that nothing is rounded.

    F_j = s_j F'_j,  tau_j = s_j tau'_j;   rows of the child's balance and of the torque divided by s_j
"""

from __future__ import annotations

from collections.abc import Mapping
from weakref import WeakKeyDictionary

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats

WIDE_RANGE = 1e4  # mechanisms whose joints carry more different inertias than this are scaled

Units = Mapping[tuple[str, str], float]
_UNITS: WeakKeyDictionary[Mechanism, Units] = WeakKeyDictionary()


def force_units(mechanism: Mechanism) -> Units:
    """The unit of each joint's force equations, by kind and owner; empty where none is needed."""
    if mechanism not in _UNITS:
        _UNITS[mechanism] = _force_units(mechanism)
    return _UNITS[mechanism]


def _force_units(mechanism: Mechanism) -> Units:
    carried = mechanism.carried_inertia
    sizes = [size for size in carried.values() if size > 0]
    if not sizes or max(sizes) <= WIDE_RANGE * min(sizes):
        return {}
    units: dict[tuple[str, str], float] = {}
    for joint in mechanism.joints:
        size = carried[joint.name] or max(sizes)
        unit = float(np.exp2(np.round(np.log2(size))))
        units["F", joint.name] = units["tau", joint.name] = units["torque", joint.name] = unit
        units["wrench", joint.child] = unit
    return units


def scale_graph(graph: LinearGraph, units: Units) -> LinearGraph:
    """The same equations with rows and variables measured in the given units."""
    return LinearGraph(graph.variables, tuple(_scale_factor(factor, units) for factor in graph.factors))


def unscale(values: Mapping[Variable, Floats], units: Units) -> dict[Variable, Floats]:
    """The values of the scaled graph's variables in the units of the original one."""
    return {variable: units.get((variable.kind, variable.owner), 1.0) * value for variable, value in values.items()}


def _scale_factor(factor: Factor, units: Units) -> Factor:
    row = 1.0 / units.get((factor.kind, factor.owner), 1.0)
    blocks = tuple(
        (variable, block * (row * units.get((variable.kind, variable.owner), 1.0))) for variable, block in factor.blocks
    )
    return Factor(factor.kind, factor.owner, blocks, factor.rhs * row)
