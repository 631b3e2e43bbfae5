"""Units in which every equation and unknown of a graph is of order one, for a watch as for a crane.

QR mixes the rows that hold a variable, so a row must be of the order of the rows it is mixed with: the balance of a
link of 1e-9 kg would drown in the rounding of its heavy parent's, and "G A - F" in that of the accelerations. With
the mass m_i that the joint into link i carries and the radius l_i at which it does,

    A_i, acceleration rows    [1, l_i]                a_j         1 or l_i, as the freedom turns or slides
    F_i, balance rows         m_i [l_i^2, l_i]        tau_j       m_i l_i^2 / unit of a_j

and velocities V_i, v_j have the units of A_i and a_j: time stays as it is. All units are powers of two, so that nothing
is rounded: the answers are those of another description of the same mechanism. Found once a mechanism.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Joint, Loop, Mechanism
from factorgraph_dyn.model.sizes.carried import Carried, carried
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
        if units is not None and len(units) == factor.rows:
            return units
        return self._of_combined(factor)

    def _of_combined(self, factor: Factor) -> Floats:
        """The units of rows that combine equations of a loop, from what they do to its first unknown."""
        if not factor.blocks or factor.blocks[0][0][:2] not in self.variables:
            return np.ones(factor.rows)
        variable, block = factor.blocks[0]
        sizes = self.variables[variable[:2]]
        units = np.abs(block * (sizes if len(sizes) == variable.size else sizes[:1])).max(axis=1)
        return np.asarray(np.exp2(np.round(np.log2(np.where(units > 0, units, 1.0)))))


NO_UNITS = GraphUnits()


@kept_with_first
def graph_units(mechanism: Mechanism) -> GraphUnits:
    """The units of a mechanism's dynamics graphs."""
    exact = _units(mechanism, carried(mechanism))
    return GraphUnits(_rounded(exact.variables), _rounded(exact.equations))


@kept_with_first
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
    for part in parts:
        here = sizes[part.name]
        equations["acceleration", part.name] = equations["velocity", part.name] = here.motion
        variables["F", part.name] = here.wrench
        variables["a", part.name] = variables["v", part.name] = here.freedoms(part)
        variables["tau", part.name] = equations["torque", part.name] = here.torque(part)
    for joint in mechanism.joints:
        variables["A", joint.child] = variables["V", joint.child] = sizes[joint.name].motion
        equations["wrench", joint.child] = sizes[joint.name].wrench
    for loop in mechanism.loops:
        equations["planar", loop.name] = sizes[loop.name].wrench[[0, 1, 3]]
    for coupling in mechanism.couplings:
        ends = [mechanism.joint_by_name[name] for name in (coupling.joint, coupling.source)]
        motions = [float(sizes[joint.name].freedoms(joint)[0]) for joint in ends]
        unit = max(motions[0], abs(coupling.ratio) * motions[1])
        equations["coupling", coupling.name] = np.array([unit])
        variables["lambda", coupling.name] = np.array([min(sizes[joint.name].work for joint in ends) / unit])
    return GraphUnits(variables, equations)


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
