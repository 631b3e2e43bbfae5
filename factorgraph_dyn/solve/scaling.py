"""Units in which every equation and unknown of a graph is of order one, for a watch as for a crane.

QR mixes the rows that hold a variable, so a row must be of the order of the rows it is mixed with: the balance of a
link of 1e-9 kg would drown in the rounding of its heavy parent's, and "G A - F" in that of the accelerations. With
the mass m_i that the joint into link i carries and the radius l_i at which it does,

    A_i, acceleration rows    [1, l_i]                a_j         1 or l_i, as the freedom turns or slides
    F_i, balance rows         m_i [l_i^2, l_i]        tau_j       m_i l_i^2 / unit of a_j

Where gears tie joints, a_j is as large as their ratios make it (``sizes.gears``), links that they turn move at that
pace, and torques in a train do the work that its heaviest joint takes: x_j = x_k is then what a coupling says.

All units are powers of two, so that nothing is rounded: the answers are those of another description of the same
mechanism. Found once a mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.model import Joint, Loop, Mechanism
from factorgraph_dyn.model.sizes.carried import Carried, carried
from factorgraph_dyn.model.sizes.gears import geared
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats, stacked

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
    exact = _units(mechanism, carried(mechanism))
    return GraphUnits(_rounded(exact.variables), _rounded(exact.equations))


@lru_cache(maxsize=256)
def force_measures(mechanism: Mechanism) -> Mapping[Name, Floats]:
    """What forces are divided by to say which are the least, by kind and owner.

    It is what moves the mechanism's largest inertia, moments beside forces by the mechanism's length, and less only
    for joints that carry next to nothing. No powers of two: the least forces are the same ones in every description.
    """
    own = natural(mechanism)
    masses = {name: min(own.weight, here.mass / LEAST_SHARE) for name, here in carried(mechanism).items()}
    return _units(mechanism, {name: Carried(length=own.extent, mass=mass) for name, mass in masses.items()}).variables


def _rounded(units: Mapping[Name, Floats]) -> dict[Name, Floats]:
    """The units as powers of two."""
    return {name: np.exp2(np.round(np.log2(sizes))) for name, sizes in units.items()}


def _units(mechanism: Mechanism, sizes: Mapping[str, Carried]) -> GraphUnits:
    """Units from what joints and loops carry, by name."""
    variables: dict[Name, Floats] = {}
    equations: dict[Name, Floats] = {}
    parts: tuple[Joint | Loop, ...] = (*mechanism.joints, *mechanism.loops)
    trains = _trains(mechanism, sizes)
    paces = _paces(mechanism, trains)
    for part in parts:
        here, pace = sizes[part.name], paces[part.name]
        train = trains.get(part.name)
        equations["acceleration", part.name] = pace * here.motion
        force = pace if train is None else max(pace, train.work / (train.turned * here.work))
        variables["F", part.name] = force * here.wrench
        variables["a", part.name] = here.freedoms(part) * (1.0 if train is None else train.turned)
        torque = force * here.torque(part) if train is None else train.work / variables["a", part.name]
        variables["tau", part.name] = equations["torque", part.name] = torque
    for joint in mechanism.joints:
        variables["A", joint.child] = equations["acceleration", joint.name]
        equations["wrench", joint.child] = variables["F", joint.name]
    for loop in mechanism.loops:
        equations["planar", loop.name] = variables["F", loop.name][[0, 1, 3]]
    for coupling in mechanism.couplings:
        ends = [float(variables["a", name][0]) for name in (coupling.joint, coupling.source)]
        unit = max(ends[0], abs(coupling.ratio) * ends[1])
        equations["coupling", coupling.name] = np.array([unit])
        variables["lambda", coupling.name] = variables["tau", coupling.joint] * ends[0] / unit
    return GraphUnits(variables, equations)


class _Train(NamedTuple):
    """How far a geared joint moves with its train, in units of its own, and the work of all forces in the train."""

    turned: float
    work: float


def _trains(mechanism: Mechanism, sizes: Mapping[str, Carried]) -> dict[str, _Train]:
    """The trains that joints are geared to, by joint; what is light there passes on what moves the heaviest of it."""
    gears, turned, works = geared(mechanism), dict[str, float](), dict[str, float]()
    for name, gear in gears.items():
        joint, leader = mechanism.joint_by_name[name], gear.leader
        motion = gear.ratio * float(sizes[leader.name].freedoms(leader)[0])
        turned[name] = motion / float(sizes[name].freedoms(joint)[0])
        work = float(sizes[name].torque(joint)[0]) * motion * turned[name]
        works[leader.name] = max(work, works.get(leader.name, 0.0))
    return {name: _Train(turned[name], works[gear.leader.name]) for name, gear in gears.items()}


def _paces(mechanism: Mechanism, trains: Mapping[str, _Train]) -> dict[str, float]:
    """How fast the child of each joint and loop moves: as gears make it, or as fast as what carries it; else 1."""
    links, found = {mechanism.base: 0.0}, {}
    for joint in mechanism.topology.outward:
        own = trains[joint.name].turned if joint.name in trains else float(joint.nv > 0)
        links[joint.child] = max(own, links[joint.parent])
        found[joint.name] = links[joint.child] or 1.0
    for loop in mechanism.loops:
        found[loop.name] = max(links[loop.predecessor], links[loop.successor]) or 1.0
    return found


def column_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all unknowns of a graph, one after the other."""
    return stacked(units.of_variable(variable, graph) for variable in graph.variables)


def row_units(graph: LinearGraph, units: GraphUnits) -> Floats:
    """The units of all rows of a graph, one below the other."""
    return stacked(units.of_equation(factor) for factor in graph.factors)


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
