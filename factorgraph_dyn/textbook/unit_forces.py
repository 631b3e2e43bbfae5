"""The extended unit force method: one whole O(n) solve for each input, for comparison.

    column k of M^-1 B  =  a(u = e_k) - a(u = 0)

It costs m + 1 eliminations where ``articulated`` costs one. Source: Kroeg, Gattringer & Mueller, "Closed-form
method for the inertia-weighted input matrix utilizing O(n) forward dynamics", section 4, equation 15.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorgraph_dyn.equations import Known, State, dynamics_graph
from factorgraph_dyn.equations.inputs import Inputs
from factorgraph_dyn.equations.wrenches import LINK
from factorgraph_dyn.model.sizes.units import natural, usual_acceleration
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import aba
from factorgraph_dyn.solve.elimination import solve_graph
from factorgraph_dyn.solve.matrices.articulated import ArticulatedBodies
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.spatial import Floats


def unit_force_method(bodies: ArticulatedBodies, inputs: Inputs) -> Floats:
    """M^-1 B, shape (nv, m), of a tree by m + 1 solves of its graph."""
    state = bodies.state
    free = solve_once(state, np.zeros(state.mechanism.nv), {})
    columns = np.empty((state.mechanism.nv, inputs.size))
    for k in range(inputs.size):
        force = _force(state, inputs, k, free)
        wrenches = {link: force * W[:, k] for link, W in inputs.wrenches.items() if W[:, k].any()}
        columns[:, k] = (solve_once(state, force * inputs.torques[:, k], wrenches) - free) / force
    return columns


def _force(state: State, inputs: Inputs, k: int, free: Floats) -> float:
    """How much of input k moves the mechanism about as fast as it moves without, so that no digits cancel."""
    own = natural(state.mechanism)
    pushes = [np.abs(inputs.torques[:, k] / own.tau).max(initial=0.0)]
    pushes += [np.abs(W[:, k] / own.wrench).max() for W in inputs.wrenches.values()]
    moves = max(float(np.abs(free / own.v).max(initial=0.0)), usual_acceleration(state.mechanism, state.v))
    return float((moves or 1.0) / (max(pushes) or 1.0))


def solve_once(state: State, tau: Floats, wrenches: Mapping[str, Floats]) -> Floats:
    """The accelerations of a tree by one O(n) solve: its graph, the aba elimination, back-substitution, (nv,)."""
    mechanism = state.mechanism
    graph = dynamics_graph(state, Known.forward(tau), wrenches, axes=LINK)
    names = tuple(name for name in aba(mechanism) if name in graph.by_name)
    values = solve_graph(graph, Ordering("aba", names), units=graph_units(mechanism)).values
    a = np.empty(mechanism.nv)
    for variable, value in values.items():
        if variable.kind == "a":
            a[mechanism.v_slices[variable.owner]] = value
    return a
