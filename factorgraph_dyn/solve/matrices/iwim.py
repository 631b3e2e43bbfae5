"""The inertia-weighted input matrix: how motors and contacts accelerate a mechanism and its tasks.

    a   = a_0 + Bhat u                    Bhat = M^-1 B, under the closure of loops and couplings
    y'' = J_t Bhat u + (J_t a_0 + J_t' v)     of tasks y' = J_t v
    Lambda^-1 = J_t M^-1 J_t^T              the inverse operational-space inertia

One recursion serves all columns: motors, contacts, tasks' forces and the forces that close loops. The ways of the
papers are there to be compared (``methods``): ``columns`` (``articulated``), ``iim`` (closed form), ``eufm`` (one
solve a column) and ``carpentier`` (M^-1 in three passes, times B).
Source: Kroeg, Gattringer & Mueller, "Closed-form method for the inertia-weighted input matrix utilizing O(n)
forward dynamics", equations 3 to 5 and 13. Once a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_finite
from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.inputs import (
    Contact,
    ContactLike,
    Inputs,
    as_contacts,
    contact_inputs,
    contact_pose,
    contact_wrenches,
    join_inputs,
    joint_forces,
    motor_inputs,
    no_inputs,
)
from factorgraph_dyn.equations.quantities import unique_names
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.motion.kinematics import link_jacobian, link_poses
from factorgraph_dyn.notebook import html_table
from factorgraph_dyn.solve.dynamics import check_state
from factorgraph_dyn.solve.loops.closure_rows import bias_accelerations
from factorgraph_dyn.solve.loops.response import closed_response
from factorgraph_dyn.solve.matrices.methods import input_response
from factorgraph_dyn.solve.own_units import own_inputs, own_state
from factorgraph_dyn.spatial import Floats


@dataclass(frozen=True, eq=False)
class InputDynamics:
    """Accelerations as an affine function of inputs, a = free + matrix u, for joints and tasks.

    Attributes:
        names: A name for each input: the joint of a motor, ``place.fz`` of a contact; ``place.fz #2`` of the second
            contact of that name.
        free: Joint accelerations without inputs, rad/s^2 or m/s^2, shape (nv,).
        matrix: Bhat = M^-1 B, shape (nv, m).
        task_names: A name for each row of the tasks.
        task_jacobian: J_t, shape (t, nv).
        task_bias: J_t' v, shape (t,).
        inverse_task_inertia: Lambda^-1 = J_t M^-1 J_t^T, shape (t, t).

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> fgd.input_dynamics(arm, np.zeros(3), np.zeros(3)).matrix.shape
        (3, 3)
    """

    names: tuple[str, ...]
    free: Floats
    matrix: Floats
    task_names: tuple[str, ...]
    task_jacobian: Floats
    task_bias: Floats
    inverse_task_inertia: Floats

    def __repr__(self) -> str:
        tasks = f", {len(self.task_names)} task rows" if self.task_names else ""
        return f"<InputDynamics: a = free + matrix u, {len(self.free)} freedoms, {len(self.names)} inputs{tasks}>"

    def _repr_html_(self) -> str:
        headings = unique_names(["freedom", "free", *self.names])
        rows = [
            dict(zip(headings, (k, free, *row), strict=True))
            for k, (free, row) in enumerate(zip(self.free, self.matrix, strict=True))
        ]
        return html_table(rows, "Accelerations: free, and of a unit of each input")

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
        actuated: Joints with motors, each a column for every freedom, in the order in which they are listed; by
            default ``mechanism.motors``, in that of ``joint_names``.
        contacts: Places where forces act, after the motors: names of links or frames, or ``Contact``.
        method: "columns", "iim", "eufm" or "carpentier".

    Raises:
        FactorGraphDynError: Bad input, no input at all, or a joint that moves no inertia.

    Examples:
        >>> robot = fgd.robots.humanoid()
        >>> fgd.iwim(robot, robot.neutral(), contacts=["left_foot_front_left"]).shape  # 18 motors and a force
        (24, 21)
    """
    state = check_state(mechanism, q, np.zeros(check_mechanism(mechanism).nv))
    return _response(state, _inputs(state, actuated, contacts), method, free=False)[1]


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
        actuated: Joints with motors, each a column for every freedom, in the order in which they are listed; by
            default ``mechanism.motors``, in that of ``joint_names``.
        contacts: Places where forces act, after the motors: names of links or frames, or ``Contact``.
        tasks: Places whose motion is sought, described as contacts are: a "force" contact is the motion of its
            point, a "wrench" contact its twist [omega; v]. In world axes task accelerations are those of
            the point; in link axes they are the rates of its velocity's components.
        method: "columns", "iim", "eufm" or "carpentier".

    Raises:
        FactorGraphDynError: Bad input, no input at all, or a joint that moves no inertia.

    Examples:
        >>> arm = fgd.robots.puma560()
        >>> q, v = arm.random_state(0)
        >>> known = fgd.input_dynamics(arm, q, v, tasks=["link6"])
        >>> np.allclose(known.acceleration(np.ones(6)), fgd.forward_dynamics(arm, q, v, np.ones(6)).a)
        True
    """
    state = check_state(mechanism, q, v)
    sought = as_contacts(tasks)
    inputs, places = _inputs(state, actuated, contacts), contact_inputs(state, sought)
    free, columns = _response(state, join_inputs([inputs, places]), method, free=True)
    J_t, J_rate_v = _tasks(state, sought)
    m = inputs.size
    return InputDynamics(inputs.names, free, columns[:, :m], places.names, J_t, J_rate_v, J_t @ columns[:, m:])


def _inputs(state: State, actuated: Iterable[str] | None, contacts: Sequence[ContactLike]) -> Inputs:
    """Motors, then contacts: at least one of them."""
    inputs = join_inputs([motor_inputs(state.mechanism, actuated), contact_inputs(state, contacts)])
    if not inputs.size:
        raise no_inputs(state.mechanism)
    return inputs


def _response(state: State, inputs: Inputs, method: str, *, free: bool) -> tuple[Floats, Floats]:
    """The free acceleration (nv,), where asked for, and M^-1 B (nv, m) under the closure."""
    respond, units = input_response(method), natural(state.mechanism).v
    a_0, columns = closed_response(own_state(state), own_inputs(state, inputs), respond, free=free)
    return units * a_0, units[:, None] * columns


def input_matrix(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    contacts: Sequence[ContactLike] = (),
) -> Floats:
    """The input matrix B of motors and contacts, tau = B u, shape (nv, inputs).

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        actuated: Joints with motors, in this order; by default ``mechanism.motors``.
        contacts: Places where forces act, after the motors: names of links or frames, or ``Contact``.

    Examples:
        >>> five_bar = fgd.robots.five_bar()
        >>> fgd.input_matrix(five_bar, five_bar.neutral()).tolist()  # two motors, four joints
        [[1.0, 0.0], [0.0, 0.0], [0.0, 1.0], [0.0, 0.0]]
    """
    state = check_state(mechanism, q, np.zeros(check_mechanism(mechanism).nv))
    return joint_forces(state, join_inputs([motor_inputs(mechanism, actuated), contact_inputs(state, contacts)]))


def _tasks(state: State, tasks: Sequence[Contact]) -> tuple[Floats, Floats]:
    """The task Jacobian J_t = W^T J (t, nv) and J_t' v (t,)."""
    rows, biases = [np.zeros((0, state.mechanism.nv))], [np.zeros(0)]
    if not tasks:
        return rows[0], biases[0]
    velocity_parts, poses = bias_accelerations(state), link_poses(state.mechanism, state.q)
    for task in tasks:
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
