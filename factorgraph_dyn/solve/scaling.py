"""Units in which every equation and unknown of a graph is of order one, for a watch as for a crane.

QR mixes the rows that hold a variable, so a row must be of the order of the rows it is mixed with: the balance of a
link of 1e-9 kg would drown in the rounding of its heavy parent's, and "G A - F" in that of the accelerations. With a
length l of the mechanism and a mass m_i that the joint into link i carries,

    A_i, acceleration rows    [1, l]                  a_j         1 or l, as the freedom turns or slides
    F_i, balance rows         m_i [l^2, l]            tau_j       m_i l^2 / unit of a_j

All units are powers of two, so that nothing is rounded: the answers are those of another description of the same
mechanism. Found once a mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.units import natural
from factorgraph_dyn.spatial import Floats

Name = tuple[str, str]  # kind and owner


@dataclass(frozen=True, eq=False)
class GraphUnits:
    """Units of the variables and equations of a mechanism's graphs; one where nothing is said.

    Attributes:
        variables: Units of all entries of a variable, by kind and owner.
        equations: Units of the rows of a factor, by kind and owner.
    """

    variables: Mapping[Name, Floats] = field(default_factory=dict)
    equations: Mapping[Name, Floats] = field(default_factory=dict)

    def of_variable(self, variable: Variable, graph: LinearGraph) -> Floats:
        """The units of a variable's unknown entries, shape (size,)."""
        units = self.variables.get(variable[:2])
        if units is None:
            return np.ones(variable.size)
        if len(units) == variable.size:
            return units
        known = graph.known[Variable(variable.kind, variable.owner, len(units))]
        assert known.mask is not None
        return units[~known.mask]

    def of_equation(self, factor: Factor) -> Floats:
        """The units of a factor's rows, shape (rows,)."""
        units = self.equations.get((factor.kind, factor.owner))
        return np.ones(factor.rows) if units is None else units


NO_UNITS = GraphUnits()


@lru_cache(maxsize=256)
def graph_units(mechanism: Mechanism) -> GraphUnits:
    """The units of a mechanism's dynamics graphs."""
    own = natural(mechanism)
    carried = _carried(mechanism)
    variables: dict[Name, Floats] = {}
    equations: dict[Name, Floats] = {}
    for joint in mechanism.joints:
        share, entries = carried[joint.child], mechanism.v_slices[joint.name]
        variables["A", joint.child] = equations["acceleration", joint.name] = own.motion
        variables["F", joint.name] = equations["wrench", joint.child] = share * own.wrench
        variables["a", joint.name] = own.v[entries]
        variables["tau", joint.name] = equations["torque", joint.name] = share * own.tau[entries]
    for loop in mechanism.loops:
        share = min(carried.get(link, np.inf) for link in (loop.predecessor, loop.successor))
        equations["acceleration", loop.name] = own.motion
        variables["F", loop.name] = share * own.wrench
        freedoms = own.freedoms(loop)
        variables["a", loop.name] = freedoms
        variables["tau", loop.name] = equations["torque", loop.name] = share * own.work / freedoms
    for coupling in mechanism.couplings:
        ends = [mechanism.joint_by_name[name] for name in (coupling.joint, coupling.source)]
        units = [own.v[mechanism.v_slices[joint.name]] for joint in ends]
        sizes = np.array([1.0, abs(coupling.ratio)]) * np.concatenate(units)
        share = min(carried[joint.child] for joint in ends)
        equations["coupling", coupling.name] = _powers_of_two(sizes.max(keepdims=True))
        variables["lambda", coupling.name] = share * own.work / equations["coupling", coupling.name]
    return GraphUnits(variables, equations)


def _carried(mechanism: Mechanism) -> dict[str, float]:
    """What the joint into each link carries, as a share of the mechanism's mass, powers of two, by link name."""
    carried = natural(mechanism).mechanism.carried_inertia
    largest = max(carried.values(), default=0.0) or 1.0
    return {
        joint.child: float(_powers_of_two(np.array(carried[joint.name] or largest))) for joint in mechanism.joints
    }


def _powers_of_two(sizes: Floats) -> Floats:
    return np.asarray(np.exp2(np.round(np.log2(sizes))), dtype=np.float64)


def column_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all unknowns of a graph, one after the other."""
    return _stacked(units.of_variable(variable, graph) for variable in graph.variables)


def row_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all rows of a graph, one below the other."""
    return _stacked(units.of_equation(factor) for factor in graph.factors)


def scale_graph(graph: LinearGraph, units: GraphUnits) -> LinearGraph:
    """The same equations with rows and variables measured in the given units; nothing is known of it."""
    sizes = {variable: units.of_variable(variable, graph) for variable in graph.variables}
    return LinearGraph(graph.variables, tuple(scale_factor(factor, sizes, units) for factor in graph.factors))


def scale_factor(factor: Factor, sizes: Mapping[Variable, Floats], units: GraphUnits) -> Factor:
    """One equation in the given units; sizes are those of its variables."""
    row = 1.0 / units.of_equation(factor)
    blocks = tuple((variable, row[:, None] * block * sizes[variable]) for variable, block in factor.blocks)
    return Factor(factor.kind, factor.owner, blocks, row * factor.rhs)


def _stacked(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])
