"""The mass matrix family, from the same graph: one elimination, then one more right-hand side for each column.

    tau = M a + h               with a kept out of the elimination, tau's response to unit a is M
    T (M a + h - tau) = 0       is what the crba ordering leaves when only a and tau are left
    a   = M^-1 (tau - h)        a's response to unit tau is M^-1
    log det M = sum log det D   over the joints' articulated inertias

All of them speak of the tree: loops and couplings constrain a, they do not change M. Once a state.
"""

from __future__ import annotations

import gtsam
import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.factors import joint_acceleration, torque
from factorgraph_dyn.equations.inputs import motor_inputs
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import crba, rnea
from factorgraph_dyn.solve.elimination import eliminate, solve_graph
from factorgraph_dyn.solve.gtsam_factors import ordering_of_keys, unit_factors
from factorgraph_dyn.solve.matrices.methods import input_response
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.solve.singularity import regular_bodies
from factorgraph_dyn.solve.template import filled_template
from factorgraph_dyn.spatial import Floats, stacked


def mass_matrix(mechanism: Mechanism, q: npt.ArrayLike, *, method: str = "columns") -> Floats:
    """The joint-space mass matrix M of the tree, armature included, shape (nv, nv).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        method: "columns" (torques for unit accelerations, rnea ordering) or "crba" (what the crba ordering
            leaves between a and tau).

    Examples:
        >>> M = fgd.mass_matrix(fgd.robots.puma560(), np.zeros(6))
        >>> M.shape, np.allclose(M, M.T)
        ((6, 6), True)
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

    Examples:
        >>> arm, q = fgd.robots.puma560(), np.zeros(6)
        >>> np.allclose(fgd.inverse_mass_matrix(arm, q) @ fgd.mass_matrix(arm, q), np.eye(6))
        True
    """
    respond, state = input_response(method), _at_rest(mechanism, q)
    inverse = respond(regular_bodies(state), motor_inputs(state.mechanism, state.mechanism.joint_names))
    return 0.5 * (inverse + inverse.T)


def log_determinant(mechanism: Mechanism, q: npt.ArrayLike) -> float:
    """The logarithm of det M of the tree: the sum of log det D over its joints.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.

    Examples:
        >>> arm, q = fgd.robots.puma560(), np.zeros(6)
        >>> bool(np.isclose(fgd.log_determinant(arm, q), np.linalg.slogdet(fgd.mass_matrix(arm, q))[1]))
        True
    """
    bodies = regular_bodies(_at_rest(mechanism, q))
    return float(sum(np.linalg.slogdet(joint.D)[1] for joint in bodies.joints if joint.D.size))


def bias(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Floats:
    """The torques h(q, v) of gravity, velocities, damping, friction and springs, shape (nv,).

    M a + h = tau.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).

    Examples:
        >>> arm = fgd.robots.pendulum(1)
        >>> float(fgd.bias(arm, [np.pi / 2], [0.0])[0].round(3))  # gravity alone: 1 kg half a metre out
        4.905
    """
    state = evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), mechanism.check_v(v))
    tree = state.mechanism
    graph = dynamics_graph(state, Known.inverse(np.zeros(tree.nv)))
    ordering = Ordering("rnea", tuple(name for name in rnea(tree) if name in graph.by_name))
    values = solve_graph(graph, ordering, units=graph_units(tree)).values
    return stacked(values[torque(joint.name, joint.nv)] for joint in tree.movable_joints)


def mass_matrix_at(state: State) -> Floats:
    """The mass matrix of a tree at a state, shape (nv, nv)."""
    mechanism, graph = state.mechanism, dynamics_graph(state, Known.nothing(state.mechanism.nv))
    names = tuple(name for name in rnea(mechanism) if name in graph.by_name and graph.by_name[name].kind != "a")
    net, identity = eliminate(graph, Ordering("rnea", names), graph_units(mechanism)), np.eye(mechanism.nv)
    unit = {joint_acceleration(j.name, j.nv): identity[mechanism.v_slices[j.name]] for j in mechanism.movable_joints}
    answer = net.respond(unit)
    M = np.vstack([identity[:0], *(answer[torque(joint.name, joint.nv)] for joint in mechanism.movable_joints)])
    return 0.5 * (M + M.T)


def _left_by_crba(state: State) -> Floats:
    """M from the rows between a and tau that are left when wrenches and accelerations are gone."""
    mechanism = state.mechanism
    graph = dynamics_graph(state, Known.nothing(state.mechanism.nv))
    names = (name for name in crba(mechanism) if name in graph.by_name)
    gone = Ordering("crba", tuple(name for name in names if graph.by_name[name].kind in ("F", "A")))
    factors = filled_template(graph, graph_units(mechanism), unit_factors).factors
    _, left = factors.eliminatePartialSequential(ordering_of_keys(graph.variables, gone), gtsam.EliminateQR)
    kept = tuple(f"{kind}[{name}]" for kind in ("a", "tau") for name in mechanism.joint_names)
    T, _ = left.jacobian(ordering_of_keys(graph.variables, Ordering("kept", kept)))
    units = graph_units(mechanism).variables
    a, tau = (stacked(units[kind, joint.name] for joint in mechanism.movable_joints) for kind in ("a", "tau"))
    M = -np.linalg.solve(T[:, mechanism.nv :], T[:, : mechanism.nv]) * tau[:, None] / a
    return np.asarray(0.5 * (M + M.T), dtype=np.float64)


def _at_rest(mechanism: Mechanism, q: npt.ArrayLike) -> State:
    return evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), np.zeros(mechanism.nv))
