"""Forward, inverse and hybrid dynamics: build the graph, order it, eliminate it, read the answer.

The steps are public, for those who want to look:

    state = evaluate_state(mechanism, q, v)             once a state
    graph = dynamics_graph(state, known)
    ordering = choose_ordering(mechanism, graph, "aba")     once a mechanism and problem
    solution = solve_dynamics(state, known, ordering=...)   all of it
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy.typing as npt

from factorgraph_dyn.equations import Known, State, dynamics_graph, evaluate_state, given
from factorgraph_dyn.equations.problem import PROBLEMS
from factorgraph_dyn.equations.wrenches import LINK, check_axes, link_wrenches
from factorgraph_dyn.errors import ResidualError, SingularSystemError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.sizes.units import usual_acceleration
from factorgraph_dyn.motion.closure import check_closed
from factorgraph_dyn.motion.questions import Axes
from factorgraph_dyn.ordering import OrderingLike, choose_ordering
from factorgraph_dyn.solve import singularity
from factorgraph_dyn.solve.elimination import check_method, solve_graph
from factorgraph_dyn.solve.loops.closed import InternalWrenches, LoopOptions, solve_closed
from factorgraph_dyn.solve.loops.singularity import contradiction
from factorgraph_dyn.solve.missing_motors import warn_of_missing_motors
from factorgraph_dyn.solve.objectives import Objective, as_objectives
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.solve.solution import Solution, check_residual, joint_vectors

Wrenches = Mapping[str, npt.ArrayLike]
NO_OPTIONS = LoopOptions()
_SAFEST = "aba"  # every joint is solved for by the inertia that it moves itself


def forward_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    ordering: OrderingLike = PROBLEMS["forward"].solved_in,
    external_wrenches: Wrenches | None = None,
    axes: Axes = "local",
    method: str = "sequential",
    internal_wrenches: InternalWrenches = "least_norm",
) -> Solution:
    """The accelerations that torques cause, with all internal wrenches.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        tau: Joint torques, N m and N, shape (nv,).
        ordering: Name of an ordering, or variable names in the order of elimination.
        external_wrenches: Wrench [moment; force] about the origin of a link or frame, by its name.
        axes: "local": wrenches in the link's or frame's own axes; "world": in those of the world.
        method: "sequential" or "multifrontal" elimination; with loops always sequential.
        internal_wrenches: Where loops leave wrenches free: "least_norm" takes the least (moments over the
            mechanism's length beside forces) and names them in ``Solution.not_unique``, "error" refuses, "planar"
            lets loops pass nothing out of the plane.

    Raises:
        FactorGraphDynError: Bad input, or a state that leaves an acceleration undetermined.

    Examples:
        >>> arm = fgd.robots.puma560()
        >>> q, v = arm.random_state(0)
        >>> falling = fgd.forward_dynamics(arm, q, v, tau=np.zeros(6))
        >>> falling.a.shape, falling.wrenches["joint3"].shape, falling.residual < 1e-12
        ((6,), (6,), True)
    """
    known = Known.forward(check_mechanism(mechanism).check_v(tau, "tau"))
    options = LoopOptions((), internal_wrenches)
    return _solve(mechanism, q, v, known, ordering, external_wrenches, axes, method, options)


def inverse_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    actuated: Iterable[str] | None = None,
    ordering: OrderingLike = PROBLEMS["inverse"].solved_in,
    external_wrenches: Wrenches | None = None,
    axes: Axes = "local",
    method: str = "sequential",
    objective: Objective | Sequence[Objective] | None = None,
    internal_wrenches: InternalWrenches = "least_norm",
) -> Solution:
    """The torques that accelerations need, with all internal wrenches.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        a: Joint accelerations, rad/s^2 and m/s^2, shape (nv,).
        actuated: Joints whose torque is sought; the others have none. By default every joint of a
            tree, and the joints marked actuated where there are loops; of joints coupled to each other, as by
            mimic, one. Where a joint of a tree that is marked to have no motor carries a torque, a warning says so,
            once a mechanism; a floating base has its wrench in tau without one.
        ordering: Name of an ordering, or variable names in the order of elimination. Where there are tens of
            loops, "colamd" is faster: its time grows with their number, not with its third power.
        external_wrenches: Wrench [moment; force] about the origin of a link or frame, by its name.
        axes: "local": wrenches in the link's or frame's own axes; "world": in those of the world.
        method: "sequential" or "multifrontal" elimination; with loops always sequential.
        objective: What to minimise where the physics leaves torques free, such as MinimumTorque().
        internal_wrenches: Where loops leave wrenches free: "least_norm" takes the least (moments over the
            mechanism's length beside forces) and names them in ``Solution.not_unique``, "error" refuses, "planar"
            lets loops pass nothing out of the plane.

    Raises:
        FactorGraphDynError: Bad input, or motors that cannot produce the motion.

    Examples:
        >>> five_bar = fgd.robots.five_bar()
        >>> held = fgd.inverse_dynamics(five_bar, five_bar.neutral(), np.zeros(4), np.zeros(4))
        >>> dict(zip(five_bar.joint_names, held.tau.round(2).tolist()))
        {'left_shoulder': -7.03, 'left_elbow': 0.0, 'right_shoulder': 7.03, 'right_elbow': 0.0}
    """
    known = Known.inverse(check_mechanism(mechanism).check_v(a, "a"), mechanism.torque_entries(actuated))
    options = LoopOptions(as_objectives(objective), internal_wrenches)
    solution = _solve(mechanism, q, v, known, ordering, external_wrenches, axes, method, options)
    if actuated is None and not mechanism.loops:
        warn_of_missing_motors(mechanism, solution.state.v, solution.tau)
    return solution


def hybrid_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    a: given.Partial,
    tau: given.Partial,
    ordering: OrderingLike = PROBLEMS["hybrid"].solved_in,
    external_wrenches: Wrenches | None = None,
    axes: Axes = "local",
    method: str = "sequential",
    objective: Objective | Sequence[Objective] | None = None,
    internal_wrenches: InternalWrenches = "least_norm",
) -> Solution:
    """Accelerations where torques are given and torques where accelerations are, both in full.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        a: Known joint accelerations: an array with nan where unknown, or values by joint name.
        tau: Known joint torques, in the same way.
        ordering: Name of an ordering, or variable names in the order of elimination.
        external_wrenches: Wrench [moment; force] about the origin of a link or frame, by its name.
        axes: "local": wrenches in the link's or frame's own axes; "world": in those of the world.
        method: "sequential" or "multifrontal" elimination; with loops always sequential.
        objective: What to minimise where the physics leaves torques free, such as MinimumTorque().
        internal_wrenches: Where loops leave wrenches free: "least_norm" takes the least (moments over the
            mechanism's length beside forces) and names them in ``Solution.not_unique``, "error" refuses, "planar"
            lets loops pass nothing out of the plane.

    Raises:
        FactorGraphDynError: Bad input, or a problem without a unique answer.

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> a, tau = {"joint1": 1.0, "joint3": 0.0}, {"joint2": 0.5}
        >>> moved = fgd.hybrid_dynamics(arm, np.zeros(3), np.zeros(3), a=a, tau=tau)
        >>> float(moved.a[0]), float(moved.tau[1]), bool(np.isfinite([moved.a, moved.tau]).all())
        (1.0, 0.5, True)
    """
    known = given.hybrid_known(mechanism, a, tau)
    options = LoopOptions(as_objectives(objective), internal_wrenches)
    return _solve(mechanism, q, v, known, ordering, external_wrenches, axes, method, options)


def check_state(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> State:
    """The mechanism at a state whose shapes, values and closure have been checked."""
    check_mechanism(mechanism)
    q_checked, v_checked = mechanism.check_q(q), mechanism.check_v(v)
    if mechanism.is_closed_kind:
        check_closed(mechanism, q_checked, v_checked)
    return evaluate_state(mechanism, q_checked, v_checked)


def solve_dynamics(
    state: State,
    known: Known,
    *,
    ordering: OrderingLike,
    external_wrenches: Wrenches | None = None,
    axes: Axes = "local",
    method: str = "sequential",
    options: LoopOptions = NO_OPTIONS,
) -> Solution:
    """The answer for a mechanism at a state, given what is known."""
    mechanism = state.mechanism
    placed = given.check_wrenches(mechanism, external_wrenches)
    external = link_wrenches(mechanism, state.q, placed, check_axes(axes))
    if mechanism.is_closed_kind or options.objectives:
        check_method(method)
        return solve_closed(state, known, ordering, external, options)
    graph = dynamics_graph(state, known, external, axes=LINK)
    chosen = choose_ordering(mechanism, graph, ordering)
    try:
        usual, units = usual_acceleration(mechanism, state.v), graph_units(mechanism)
        solved = solve_graph(graph, chosen, method, units, usual)
        if chosen.name != _SAFEST and singularity.moves_little(state, solved.growth):
            # A needle's own inertia drowns in what other orderings add to it first; the net stays as asked for.
            safest = choose_ordering(mechanism, graph, _SAFEST)
            solved = solve_graph(graph, safest, units=units, usual=usual)._replace(net=solved.net)
    except SingularSystemError as error:
        raise singularity.explain(state, known, error) from error
    singularity.check_determined(state, known, solved.growth)
    try:
        check_residual(solved.residual, solved.worst, graph, chosen)
    except ResidualError as error:
        if (known.a_mask & known.tau_mask).any():  # more than a tree leaves open
            raise contradiction(state, known, external, error) from error
        raise
    return Solution(
        *joint_vectors(state, known, solved.values),
        solved.residual,
        chosen,
        graph,
        state,
        solved.values,
        solved.net,
    )


def _solve(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    known: Known,
    ordering: OrderingLike,
    external_wrenches: Wrenches | None,
    axes: Axes,
    method: str,
    options: LoopOptions,
) -> Solution:
    state = check_state(mechanism, q, v)
    return solve_dynamics(
        state,
        known,
        ordering=ordering,
        external_wrenches=external_wrenches,
        axes=axes,
        method=method,
        options=options,
    )
