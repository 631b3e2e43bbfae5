"""All unknowns of a mechanism at a state as functions of free ones: x = x_0 + N z.

    dynamics      z: a of joints and loops, wrenches of loops, forces of couplings, wrenches from outside
    velocities    z: v of joints and loops

The equations of the tree are eliminated through GTSAM with z kept, in the order of the recursive Newton-Euler
algorithm: every step solves one equation for its own unknown, nothing is mixed, and one back-substitution gives N.
What loops, couplings and missing motors ask of z are equations besides (``held``). Columns of N are in units of the
mechanism, in which z is of order one. Once a state.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable, dynamics_graph, velocity_graph
from factorgraph_dyn.equations.dynamics_graph import Pushes
from factorgraph_dyn.equations.wrenches import LINK
from factorgraph_dyn.motion.independence import all_rows
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.elimination import eliminate
from factorgraph_dyn.solve.scaling import GraphUnits, graph_units
from factorgraph_dyn.spatial import Array, Floats, inverse_adjoint, stacked

LEAST_ROW = 1e-12  # of its unit, below which what an unknown does is rounding


@dataclass(frozen=True, eq=False)
class FreeForm:
    """The unknowns as functions of the free ones.

    Attributes:
        state: The mechanism at (q, v).
        graph: All equations, those that are held included.
        variables: All unknowns.
        offset: x_0, all unknowns below each other, shape (n,).
        N: How they follow the free ones, each in its own unit, shape (n, k).
        units: Of all unknowns, shape (n,).
        held: Equations that are not in x_0 + N z yet.
    """

    state: State
    graph: LinearGraph
    variables: tuple[Variable, ...]
    offset: Floats
    N: Floats
    units: Floats
    held: tuple[Factor, ...]

    @cached_property
    def places(self) -> Mapping[Variable, slice]:
        """Where each unknown lies among all."""
        ends = np.cumsum([variable.size for variable in self.variables]).tolist()
        return {x: slice(end - x.size, end) for x, end in zip(self.variables, ends, strict=True)}

    @cached_property
    def by_name(self) -> Mapping[str, Variable]:
        """Every unknown by its printed name."""
        return {str(variable): variable for variable in self.variables}

    def at_own_places(self) -> FreeForm:
        """The same with motions of links seen from where a link is by its name (``mechanism.own_placements``)."""
        own = self.state.mechanism.own_placements
        moved = [x for x in self.variables if x.kind in ("A", "V") and x.owner in own]
        if not moved:
            return self
        offset, N, units = self.offset.copy(), self.N.copy(), self.units.copy()
        for variable in moved:
            place, Ad = self.places[variable], inverse_adjoint(own[variable.owner])
            offset[place], N[place], units[place] = Ad @ offset[place], Ad @ N[place], np.abs(Ad) @ units[place]
        return replace(self, offset=offset, N=N, units=units)

    def units_of(self, factor: Factor) -> Floats:
        """What an equation's rows are for unknowns of one unit each, shape (rows,)."""
        terms = [np.abs(block) @ self.units[self.places[x]] for x, block in factor.substitute(self.graph.known).blocks]
        return np.asarray(sum(terms, np.zeros(factor.rows)))

    @cached_property
    def sizes(self) -> Floats:
        """Lengths of the rows of N; of rows that are rounding of zero the least length that is not, shape (n,)."""
        return np.asarray(np.maximum(np.linalg.norm(self.N, axis=1), LEAST_ROW * self.units))

    @cached_property
    def unit_rows(self) -> Floats:
        """Rows of N at unit length, and zero where they are rounding: such unknowns follow nothing, shape (n, k)."""
        rounding = self.sizes <= LEAST_ROW * self.units
        return np.where(rounding[:, None], 0.0, self.N / self.sizes[:, None])


def dynamics_form(state: State, pushes: Pushes, external: Mapping[str, Array]) -> FreeForm:
    """The accelerations, torques and wrenches of a mechanism of which nothing is known."""
    mechanism = state.mechanism
    graph = dynamics_graph(
        state, Known.nothing(mechanism.nv), external, axes=LINK, pushes=pushes, closure=all_rows(mechanism)
    )
    outward = mechanism.topology.outward
    names = [f"tau[{joint.name}]" for joint in outward if joint.nv]
    names += [f"F[{joint.name}]" for joint in outward]
    names += [f"A[{joint.child}]" for joint in reversed(outward)]
    return _free_form(state, graph, names, _with_outside(graph_units(mechanism), state, pushes))


def velocity_form(state: State) -> FreeForm:
    """The twists and joint velocities of a mechanism of which nothing is known."""
    mechanism = state.mechanism
    names = [f"V[{joint.child}]" for joint in reversed(mechanism.topology.outward)]
    return _free_form(state, velocity_graph(state, unknown=True), names, graph_units(mechanism))


def _with_outside(units: GraphUnits, state: State, pushes: Pushes) -> GraphUnits:
    """The units of the dynamics and of wrenches from outside, which are those of the joint into their link."""
    into = {joint.child: joint.name for joint in state.mechanism.joints}
    pairs = [(link, x) for link, unknowns in pushes.items() for x, _ in unknowns]
    outside = {(x.kind, x.owner): units.variables["F", into[link]] for link, x in pairs}
    return GraphUnits({**units.variables, **outside}, units.equations)


def _free_form(state: State, graph: LinearGraph, names: Sequence[str], units: GraphUnits) -> FreeForm:
    recursion = tuple(factor for factor in graph.factors if _is_of_tree(factor, state))
    held = tuple(factor for factor in graph.factors if not _is_of_tree(factor, state))
    eliminated = set(names)
    free = tuple(variable for variable in graph.variables if str(variable) not in eliminated)
    net = eliminate(LinearGraph(graph.variables, recursion, graph.known), Ordering("rnea", tuple(names)), units)
    columns = _units_of_free(free, units, graph)
    responses, still = net.respond(columns), net.respond({x: np.zeros((x.size, 1)) for x in free}, offset=True)
    variables = tuple(variable for variable in graph.variables if variable in responses)
    sizes = stacked(units.of_variable(variable, graph) for variable in variables)
    offset = np.concatenate([still[x][:, 0] for x in variables]) if variables else np.zeros(0)
    k = sum(variable.size for variable in free)  # where it is 0, responses have a column of nothing
    N = np.vstack([np.zeros((0, k)), *(responses[x][:, :k] for x in variables)])
    return FreeForm(state, graph, variables, offset, N, sizes, held)


def _is_of_tree(factor: Factor, state: State) -> bool:
    """Whether an equation is a link's balance or a joint's own."""
    return factor.kind == "wrench" or (factor.kind != "coupling" and factor.owner in state.joints)


def _units_of_free(free: Sequence[Variable], units: GraphUnits, graph: LinearGraph) -> dict[Variable, Floats]:
    """Columns of one unit of every free entry, for each free variable, shape (size, k)."""
    k = sum(variable.size for variable in free)
    columns, start = {}, 0
    for variable in free:
        block = np.zeros((variable.size, k))
        block[range(variable.size), range(start, start + variable.size)] = units.of_variable(variable, graph)
        columns[variable] = block
        start += variable.size
    return columns
