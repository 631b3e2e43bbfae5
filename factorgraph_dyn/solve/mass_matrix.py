"""The mass matrix family, from the same graph: one elimination, then one more right-hand side for each column.

    tau = M a + h               with a kept out of the elimination, tau's response to unit a is M
    T (M a + h - tau) = 0       is what the crba ordering leaves when only a and tau are left
    a   = M^-1 (tau - h)        a's response to unit tau is M^-1
    log det M = sum log det D   over the joints' articulated inertias

All of them speak of the tree: loops and couplings constrain a, they do not change M. Once a state.
"""

from __future__ import annotations

from collections.abc import Mapping

import gtsam
import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, LinearGraph, State, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.inputs import motor_inputs
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import crba, rnea
from factorgraph_dyn.solve.articulated import articulated_bodies
from factorgraph_dyn.solve.elimination import BayesNet, eliminate, gtsam_ordering, to_gtsam
from factorgraph_dyn.solve.scaling import graph_units, scale_graph
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.textbook.carpentier import three_pass_inverse
from factorgraph_dyn.textbook.iim import implicit_inversion
from factorgraph_dyn.textbook.unit_forces import unit_force_method

INVERSE_METHODS = ("columns", "iim", "eufm", "carpentier")


def mass_matrix(mechanism: Mechanism, q: npt.ArrayLike, *, method: str = "columns") -> Floats:
    """The joint-space mass matrix M of the tree, armature included, shape (nv, nv).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        method: "columns" (torques for unit accelerations, rnea ordering) or "crba" (what the crba ordering
            leaves between a and tau).
    """
    check_name(method, ("columns", "crba"), "method", "the ways to M", InputError)
    state = _at_rest(mechanism, q)
    return mass_matrix_at(state) if method == "columns" else _left_by_crba(state)


def inverse_mass_matrix(mechanism: Mechanism, q: npt.ArrayLike, *, method: str = "columns") -> Floats:
    """The inverse of the tree's mass matrix, symmetric, shape (nv, nv).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        method: "columns", "iim", "eufm" or "carpentier".

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.
    """
    check_name(method, INVERSE_METHODS, "method", "the ways to M^-1", InputError)
    state = _at_rest(mechanism, q)
    if method == "carpentier":
        return three_pass_inverse(state)
    unit = motor_inputs(state.mechanism, state.mechanism.joint_names)
    if method == "columns":
        inverse = articulated_bodies(state).respond(unit)
    else:
        solve = implicit_inversion if method == "iim" else unit_force_method
        _, inverse = solve(state, unit)
    return 0.5 * (inverse + inverse.T)


def log_determinant(mechanism: Mechanism, q: npt.ArrayLike) -> float:
    """The logarithm of det M of the tree: the sum of log det D over its joints.

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.
    """
    bodies = articulated_bodies(_at_rest(mechanism, q))
    return float(sum(np.linalg.slogdet(joint.D)[1] for joint in bodies.joints if joint.D.size))


def bias(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Floats:
    """The torques h(q, v) of gravity, velocities, damping, friction and springs, shape (nv,).

    M a + h = tau.
    """
    state = evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), mechanism.check_v(v))
    return _joint_rows(state, "tau", _newton_euler(state).respond({}, offset=True))[:, 0] * _units(state, "tau")


def mass_matrix_at(state: State) -> Floats:
    """The mass matrix of a tree at a state, shape (nv, nv)."""
    M = _joint_rows(state, "tau", _newton_euler(state).respond(_unit_columns(state, "a")))
    return _measured(state, M)


def _newton_euler(state: State) -> BayesNet:
    """The Bayes net, in units of the mechanism, with neither a nor tau known and a kept as parents."""
    graph = _nothing_known(state)
    names = tuple(name for name in rnea(state.mechanism) if name in graph.by_name and graph.by_name[name].kind != "a")
    return eliminate(graph, Ordering("rnea", names))


def _left_by_crba(state: State) -> Floats:
    """M from the rows between a and tau that are left when wrenches and accelerations are gone."""
    mechanism = state.mechanism
    graph = _nothing_known(state)
    names = (name for name in crba(mechanism) if name in graph.by_name)
    gone = tuple(name for name in names if graph.by_name[name].kind in ("F", "A"))
    _, left = to_gtsam(graph).eliminatePartialSequential(
        gtsam_ordering(graph, Ordering("crba", gone)), gtsam.EliminateQR
    )
    kept = tuple(f"{kind}[{name}]" for kind in ("a", "tau") for name in mechanism.joint_names)
    T, _ = left.jacobian(gtsam_ordering(graph, Ordering("kept", kept)))
    M = -np.linalg.solve(T[:, mechanism.nv :], T[:, : mechanism.nv])
    return _measured(state, np.asarray(M, dtype=np.float64))


def _measured(state: State, M: Floats) -> Floats:
    """A mass matrix in the units of the caller, and symmetric."""
    M = M * _units(state, "tau")[:, None] / _units(state, "a")
    return 0.5 * (M + M.T)


def _units(state: State, kind: str) -> Floats:
    """The units of a or tau in which the graph is eliminated, shape (nv,)."""
    units = graph_units(state.mechanism).variables
    return np.concatenate([np.zeros(0), *(units[kind, joint.name] for joint in state.mechanism.movable_joints)])


def _nothing_known(state: State) -> LinearGraph:
    """The dynamics in units of the mechanism."""
    graph = dynamics_graph(state, Known.nothing(state.mechanism.nv))
    return scale_graph(graph, graph_units(state.mechanism))


def _at_rest(mechanism: Mechanism, q: npt.ArrayLike) -> State:
    return evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), np.zeros(mechanism.nv))


def _unit_columns(state: State, kind: str) -> dict[Variable, Floats]:
    """For each joint its rows of the identity, as columns for ``BayesNet.respond``."""
    mechanism = state.mechanism
    identity = np.eye(mechanism.nv)
    return {
        Variable(kind, joint.name, joint.nv): identity[mechanism.v_slices[joint.name]]
        for joint in mechanism.movable_joints
    }


def _joint_rows(state: State, kind: str, values: Mapping[Variable, Floats]) -> Floats:
    """The rows of a or tau from the responses of all variables, shape (nv, columns)."""
    mechanism = state.mechanism
    rows = [values[Variable(kind, joint.name, joint.nv)] for joint in mechanism.movable_joints]
    return np.vstack(rows) if rows else np.zeros((0, 0))
