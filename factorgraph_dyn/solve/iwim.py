"""The inertia-weighted input matrix: how motors and contacts accelerate a mechanism and its tasks.

    a   = a_0 + Bhat u                    Bhat = M^-1 B, under the closure of loops and couplings
    y'' = J_t Bhat u + (J_t a_0 + J_t' v)     of tasks y' = J_t v
    Lambda^-1 = J_t M^-1 J_t^T              the inverse operational-space inertia

One elimination serves all columns: motors, contacts, tasks' forces and the forces that close loops. The routes of
the papers are there to be compared: ``columns`` (the graph; ``articulated``), ``iim`` (closed form), ``eufm`` (one
solve a column) and ``carpentier`` (M^-1 in three passes, times B).
Source: Kroeg, Gattringer & Mueller, "Closed-form method for the inertia-weighted input matrix utilizing O(n)
forward dynamics", equations 3 to 5 and 13. Once a state.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_finite
from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.inputs import (
    ContactLike,
    Inputs,
    as_contact,
    contact_inputs,
    contact_pose,
    contact_wrenches,
    join_inputs,
    motor_inputs,
)
from factorgraph_dyn.errors import InputError, SingularSystemError, check_name
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.units import natural
from factorgraph_dyn.motion.kinematics import link_jacobian, link_poses
from factorgraph_dyn.solve.articulated import articulated_bodies
from factorgraph_dyn.solve.dynamics import check_state
from factorgraph_dyn.solve.loops.response import ClosureRows, bias_accelerations, closure_rows
from factorgraph_dyn.solve.mass_matrix import bias, mass_matrix_at
from factorgraph_dyn.solve.own_units import own_inputs, own_state
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.textbook.carpentier import three_pass_inverse
from factorgraph_dyn.textbook.iim import implicit_inversion
from factorgraph_dyn.textbook.unit_forces import solve_once, unit_force_method

SINGULAR_CLOSED = 1e-13  # least eigenvalue, scaled to unit diagonal, of a closed mechanism's inertia


@dataclass(frozen=True, eq=False)
class InputDynamics:
    """Accelerations as an affine function of inputs, a = free + matrix u, for joints and tasks.

    Attributes:
        names: A name for each input: the joint of a motor, ``place.fz`` of a contact.
        free: Joint accelerations without inputs, rad/s^2 or m/s^2, shape (nv,).
        matrix: Bhat = M^-1 B, shape (nv, m).
        task_names: A name for each row of the tasks.
        task_jacobian: J_t, shape (t, nv).
        task_bias: J_t' v, shape (t,).
        inverse_task_inertia: Lambda^-1 = J_t M^-1 J_t^T, shape (t, t).
    """

    names: tuple[str, ...]
    free: Floats
    matrix: Floats
    task_names: tuple[str, ...]
    task_jacobian: Floats
    task_bias: Floats
    inverse_task_inertia: Floats

    @property
    def task_matrix(self) -> Floats:
        """J_t Bhat: task accelerations for unit inputs, shape (t, m)."""
        return self.task_jacobian @ self.matrix

    @property
    def free_task(self) -> Floats:
        """Task accelerations without inputs, shape (t,)."""
        return self.task_jacobian @ self.free + self.task_bias

    def acceleration(self, u: npt.ArrayLike) -> Floats:
        """The joint accelerations that inputs cause, shape (nv,)."""
        return self.free + self.matrix @ check_finite(u, (len(self.names),), "The inputs u")


def iwim(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    contacts: Sequence[ContactLike] = (),
    method: str = "columns",
) -> Floats:
    """The inertia-weighted input matrix M^-1 B, under the closure of loops, shape (nv, inputs).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        actuated: Joints with motors, each a column for every freedom; by default those marked actuated.
        contacts: Places where forces act, after the motors: names of links or frames, or ``Contact``.
        method: "columns", "iim", "eufm" or "carpentier".

    Raises:
        FactorGraphDynError: Bad input, no input at all, or a joint that moves no inertia.
    """
    v = np.zeros(check_mechanism(mechanism).nv)
    return input_dynamics(mechanism, q, v, actuated=actuated, contacts=contacts, method=method).matrix


def input_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    contacts: Sequence[ContactLike] = (),
    tasks: Sequence[ContactLike] = (),
    method: str = "columns",
) -> InputDynamics:
    """How inputs accelerate joints and tasks: free accelerations, Bhat, J_t Bhat and Lambda^-1.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        actuated: Joints with motors, each a column for every freedom; by default those marked actuated.
        contacts: Places where forces act, after the motors: names of links or frames, or ``Contact``.
        tasks: Places whose motion is sought, described as contacts are: a "force" contact is the motion of its
            point, a "wrench" contact its twist [omega; v]. In world axes task accelerations are those of
            the point; in link axes they are the rates of its velocity's components.
        method: "columns", "iim", "eufm" or "carpentier".

    Raises:
        FactorGraphDynError: Bad input, no input at all, or a joint that moves no inertia.
    """
    check_name(method, METHODS, "method", "the ways to M^-1 B", InputError)
    state = check_state(mechanism, q, v)
    motors, forces = motor_inputs(mechanism, actuated), contact_inputs(state, contacts)
    if not motors.size + forces.size:
        raise InputError(
            f"No inputs: mechanism {mechanism.name!r} has no actuated joint here and no contact is given. "
            + _offer(mechanism)
        )
    places = contact_inputs(state, tasks)
    parts = [motors, forces, places]
    free, columns = _response(own_state(state), own_inputs(state, join_inputs(parts)), method)
    units = natural(mechanism).v
    free, columns = units * free, units[:, None] * columns
    m = motors.size + forces.size
    J_t, J_rate_v = _tasks(state, tasks)
    return InputDynamics(
        (*motors.names, *forces.names), free, columns[:, :m], places.names, J_t, J_rate_v, J_t @ columns[:, m:]
    )


def _response(state: State, inputs: Inputs, method: str) -> tuple[Floats, Floats]:
    """The free acceleration (nv,) and M^-1 B (nv, m) under the closure, in the mechanism's own units."""
    if not state.mechanism.is_closed_kind:
        return METHODS[method](state, inputs)
    closure = closure_rows(state)
    tree = replace(state, mechanism=state.mechanism.tree, loops={})
    everything = join_inputs([inputs, closure.inputs])
    try:
        free, columns = METHODS[method](tree, everything)
    except SingularSystemError as error:
        free, columns = _with_closure_stiffened(tree, everything, closure, error)
    return closure.close(free, columns)


def _offer(mechanism: Mechanism) -> str:
    """What a caller without inputs can do."""
    if not mechanism.nv:
        return "It has no movable joint, so nothing can accelerate it."
    return f"Name joints by actuated=[...] ({', '.join(mechanism.joint_names)}), or give contacts=[...]."


def input_matrix(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    contacts: Sequence[ContactLike] = (),
) -> Floats:
    """The input matrix B of motors and contacts, tau = B u, shape (nv, inputs)."""
    state = check_state(mechanism, q, np.zeros(check_mechanism(mechanism).nv))
    return joint_forces(state, join_inputs([motor_inputs(mechanism, actuated), contact_inputs(state, contacts)]))


def joint_forces(state: State, inputs: Inputs) -> Floats:
    """The joint torques that are as good as inputs, B = E + sum J_i^T W_i, shape (nv, m)."""
    B = inputs.torques.copy()
    for link, W in inputs.wrenches.items():
        B += link_jacobian(state.mechanism, state.q, link).T @ W
    return B


def _by_columns(state: State, inputs: Inputs) -> tuple[Floats, Floats]:
    bodies = articulated_bodies(state)
    return bodies.free, bodies.respond(inputs)


def _by_three_passes(state: State, inputs: Inputs) -> tuple[Floats, Floats]:
    columns = three_pass_inverse(state) @ joint_forces(state, inputs)
    return solve_once(state, np.zeros(state.mechanism.nv), {}), columns


def _with_closure_stiffened(
    state: State, inputs: Inputs, closure: ClosureRows, error: SingularSystemError
) -> tuple[Floats, Floats]:
    """The response of a tree that is singular by itself but not with its loops closed, densely.

    Where J a = gamma holds, M + s J^T J with bias h - s J^T gamma moves as M with h does, whatever s is.
    """
    M, J = mass_matrix_at(state), closure.J
    s = np.abs(M).max(initial=0.0) / max(np.abs(J.T @ J).max(initial=0.0), np.finfo(float).tiny)
    stiffened = M + s * J.T @ J
    scale = 1.0 / np.sqrt(np.maximum(np.diag(stiffened), np.finfo(float).tiny))
    if np.linalg.eigvalsh(scale[:, None] * stiffened * scale)[0] < SINGULAR_CLOSED:
        raise error
    h = bias(state.mechanism, state.q, state.v)
    pushes = np.column_stack([s * J.T @ closure.gamma - h, joint_forces(state, inputs)])
    answer = scale[:, None] * np.linalg.solve(scale[:, None] * stiffened * scale, scale[:, None] * pushes)
    return answer[:, 0], answer[:, 1:]


METHODS: dict[str, Callable[[State, Inputs], tuple[Floats, Floats]]] = {
    "columns": _by_columns,
    "iim": implicit_inversion,
    "eufm": unit_force_method,
    "carpentier": _by_three_passes,
}


def _tasks(state: State, tasks: Sequence[ContactLike]) -> tuple[Floats, Floats]:
    """The task Jacobian J_t = W^T J (t, nv) and J_t' v (t,)."""
    rows, biases = [np.zeros((0, state.mechanism.nv))], [np.zeros(0)]
    if not tasks:
        return rows[0], biases[0]
    velocity_parts, poses = bias_accelerations(state), link_poses(state.mechanism, state.q)
    for task in map(as_contact, tasks):
        link, R, p = contact_pose(state.mechanism, task, poses)
        W = contact_wrenches(task, R, p)
        rows.append(W.T @ link_jacobian(state.mechanism, state.q, link))
        A = velocity_parts[link]
        if task.axes == "world":
            # Seen from axes that do not turn with the link, the point's velocity turns: omega x v_point.
            omega, velocity = state.twists[link][:3], state.twists[link][3:]
            turning = np.cross(omega, velocity + np.cross(omega, p))
            A = A + np.concatenate([np.zeros(3), turning])
        biases.append(W.T @ A)
    return np.vstack(rows), np.concatenate(biases)
