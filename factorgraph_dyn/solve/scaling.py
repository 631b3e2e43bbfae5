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

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.units import Natural, natural
from factorgraph_dyn.spatial import Floats

LEAST_SHARE = 1e-3  # of the mechanism's mass: forces of joints that carry less are measured by what they carry

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
    shares = {link: float(_power_of_two(share)) for link, share in _carried(own.mechanism).items()}
    return _units(own, shares, _power_of_two)


@lru_cache(maxsize=256)
def force_measures(mechanism: Mechanism) -> Mapping[Name, Floats]:
    """What forces are divided by to say which are the least, by kind and owner.

    It is what moves the mechanism's largest inertia, moments beside forces by the mechanism's length, and less only
    for joints that carry next to nothing. No powers of two: the least forces are the same ones in every description.
    """
    own = natural(mechanism)
    exact = replace(own, length=own.extent, mass=own.weight)
    shares = {link: min(1.0, share / LEAST_SHARE) for link, share in _carried(exact.mechanism).items()}
    return _units(exact, shares, np.asarray).variables


def _units(own: Natural, shares: Mapping[str, float], rounded: Callable[[Floats], Floats]) -> GraphUnits:
    """Units from a length and a mass, and from the share of the mass that moves with each link, by its name."""
    mechanism = own.given
    variables: dict[Name, Floats] = {}
    equations: dict[Name, Floats] = {}
    for joint in mechanism.joints:
        share, entries = shares[joint.child], mechanism.v_slices[joint.name]
        variables["A", joint.child] = equations["acceleration", joint.name] = own.motion
        variables["F", joint.name] = equations["wrench", joint.child] = share * own.wrench
        variables["a", joint.name] = own.v[entries]
        variables["tau", joint.name] = equations["torque", joint.name] = share * own.tau[entries]
    for loop in mechanism.loops:  # the lighter of its links feels it most
        share = min(shares.get(link, np.inf) for link in (loop.predecessor, loop.successor))
        equations["acceleration", loop.name] = own.motion
        variables["F", loop.name] = share * own.wrench
        equations["planar", loop.name] = share * own.wrench[[0, 1, 3]]
        variables["a", loop.name] = own.freedoms(loop)
        variables["tau", loop.name] = equations["torque", loop.name] = share * own.work / own.freedoms(loop)
    for coupling in mechanism.couplings:
        ends = [mechanism.joint_by_name[name] for name in (coupling.joint, coupling.source)]
        sizes = np.array([1.0, abs(coupling.ratio)]) * np.concatenate([own.freedoms(joint) for joint in ends])
        unit = rounded(sizes.max(keepdims=True))
        equations["coupling", coupling.name] = unit
        variables["lambda", coupling.name] = min(shares[joint.child] for joint in ends) * own.work / unit
    return GraphUnits(variables, equations)


def _carried(mechanism: Mechanism) -> dict[str, float]:
    """The inertia that the joint into each link carries; where it carries none, the largest; by link name."""
    carried = mechanism.carried_inertia
    largest = max(carried.values(), default=0.0) or 1.0
    return {joint.child: carried[joint.name] or largest for joint in mechanism.joints}


def _power_of_two(sizes: npt.ArrayLike) -> Floats:
    return np.asarray(np.exp2(np.round(np.log2(sizes))), dtype=np.float64)


def column_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all unknowns of a graph, one after the other."""
    return _stacked(units.of_variable(variable, graph) for variable in graph.variables)


def row_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all rows of a graph, one below the other."""
    return _stacked(units.of_equation(factor) for factor in graph.factors)


def scale_graph(graph: LinearGraph, units: GraphUnits) -> LinearGraph:
    """The same equations with rows and variables measured in the given units; nothing is known of it."""
    sizes = variable_units(graph, units)
    return LinearGraph(graph.variables, tuple(scale_factor(factor, sizes, units) for factor in graph.factors))


def variable_units(graph: LinearGraph, units: GraphUnits) -> dict[Variable, Floats]:
    """The units of each variable's entries, shape (size,)."""
    return {variable: units.of_variable(variable, graph) for variable in graph.variables}


def scale_factor(factor: Factor, sizes: Mapping[Variable, Floats], units: GraphUnits) -> Factor:
    """One equation in the given units; sizes are those of its variables."""
    row = 1.0 / units.of_equation(factor)
    blocks = tuple((variable, row[:, None] * block * sizes[variable]) for variable, block in factor.blocks)
    return Factor(factor.kind, factor.owner, blocks, row * factor.rhs)


def _stacked(parts: Iterable[Floats]) -> Floats:
    return np.concatenate([np.zeros(0), *parts])
