"""The mass matrix family, from the same graph: one elimination, then one back-substitution.

    tau = M a + h            with a kept out of the elimination, tau's response to unit a is M
    a   = M^-1 (tau - h)     with tau kept out, a's response to unit tau is M^-1

All of them speak of the tree: loops and couplings constrain a, they do not change M.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Known, State, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import aba, rnea
from factorgraph_dyn.solve import singularity
from factorgraph_dyn.solve.elimination import BayesNet, eliminate
from factorgraph_dyn.spatial import Floats


def mass_matrix(mechanism: Mechanism, q: npt.ArrayLike) -> Floats:
    """The joint-space mass matrix M of the tree, armature included, shape (nv, nv)."""
    return mass_matrix_at(_at_rest(mechanism, q))


def inverse_mass_matrix(mechanism: Mechanism, q: npt.ArrayLike) -> Floats:
    """The inverse of the tree's mass matrix, shape (nv, nv).

    Raises:
        SingularSystemError: Some joint moves nothing that has inertia.
    """
    state = _at_rest(mechanism, q)
    singularity.check_inertia(state, np.ones(mechanism.nv, dtype=bool))
    net = eliminate_keeping(state, "tau", Ordering("aba", tuple(aba(state.mechanism))))
    inverse = _joint_rows(state, "a", net.respond(_unit_columns(state, "tau")))
    return 0.5 * (inverse + inverse.T)


def bias(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Floats:
    """The torques h(q, v) of gravity, velocities, damping, friction and springs, shape (nv,).

    M a + h = tau.
    """
    state = evaluate_state(mechanism.tree, mechanism.check_q(q), mechanism.check_v(v))
    net = eliminate_keeping(state, "a", Ordering("rnea", tuple(rnea(state.mechanism))))
    return _joint_rows(state, "tau", net.respond({}, offset=True))[:, 0]


def mass_matrix_at(state: State) -> Floats:
    """The mass matrix of a tree at a state, shape (nv, nv)."""
    net = eliminate_keeping(state, "a", Ordering("rnea", tuple(rnea(state.mechanism))))
    M = _joint_rows(state, "tau", net.respond(_unit_columns(state, "a")))
    return 0.5 * (M + M.T)


def eliminate_keeping(state: State, kept: str, ordering: Ordering) -> BayesNet:
    """The Bayes net with neither a nor tau known and one kind of variable kept as parents."""
    nothing = np.zeros(state.mechanism.nv, dtype=bool)
    unknown = np.full(state.mechanism.nv, np.nan)
    graph = dynamics_graph(state, Known(unknown, unknown, nothing, nothing))
    names = (name for name in ordering if name in graph.by_name)
    eliminated = tuple(name for name in names if graph.by_name[name].kind != kept)
    return eliminate(graph, Ordering(ordering.name, eliminated))


def _at_rest(mechanism: Mechanism, q: npt.ArrayLike) -> State:
    return evaluate_state(mechanism.tree, mechanism.check_q(q), np.zeros(mechanism.nv))


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
