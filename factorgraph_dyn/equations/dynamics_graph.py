"""Forward, inverse, hybrid and closed-loop dynamics: one graph, with different variables known.

Takes a mechanism at a state, what is known of a and tau, and wrenches from outside; gives the graph
of acceleration, wrench, torque and coupling factors. Work is done once a state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.checks import check_kind, check_mapping, check_parts, shown
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.closing import LoopClosure, checked_rows, loop_closures, placed_closure, rows_at
from factorgraph_dyn.equations.given import Known
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph, Value, Variable, make_graph
from factorgraph_dyn.equations.places import ONE, Places, Plan
from factorgraph_dyn.equations.state import JointState, NumericState, State
from factorgraph_dyn.equations.wrenches import LINK, check_axes, link_wrenches
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.motion.independence import Kept
from factorgraph_dyn.spatial import Array


class LinkMotion(NamedTuple):
    """How the links of a tree accelerate, by link.

    Attributes:
        A: Accelerations, shape (6,).
        taken: What moving the link takes, G A - ad(V)^T G V, shape (6,).
    """

    A: Mapping[str, Array]
    taken: Mapping[str, Array]


A_STATE = "a State, such as fgd.evaluate_state(mechanism, q, v)"
A_MOTION = "a LinkMotion, as link_motion(state, a) of equations/known_motion gives it"


Pushes = Mapping[str, Sequence[tuple[Variable, Array]]]


def dynamics_graph(
    state: State,
    known: Known,
    external_wrenches: Mapping[str, Array] | None = None,
    *,
    axes: str = "local",
    classical: bool = False,
    pushes: Pushes | None = None,
    moving: LinkMotion | None = None,
    closure: Kept | None = None,
) -> LinearGraph:
    """The dynamics of a mechanism at a state, given what is known.

    Args:
        state: The mechanism at (q, v).
        known: Which accelerations and torques are given, and their values.
        external_wrenches: Wrench [moment; force] from outside, about its origin, by the name of a link or frame.
        axes: "local": in the link's or frame's own axes; "world": in those of the world; "link": by link name, about
            the origin of its link frame.
        classical: Let A be the classical accelerations of the links' origins instead of the spatial ones.
        pushes: Variables that push links, and the wrenches of their units in the link's frame, by link name.
        moving: How all links of the tree move, and what that takes, where it is known (``equations/known_motion``).
        closure: Which rows of closure the graph has (``motion/independence``). By default as many as are independent
            at a state of numbers; all of them at a state of symbols.

    Examples:
        >>> state = fgd.evaluate_state(fgd.robots.pendulum(1), [0.0], [0.0])
        >>> graph = fgd.dynamics_graph(state, fgd.Known.forward(np.zeros(1)))
        >>> [str(factor) for factor in graph.factors]
        ['acceleration[joint1]', 'wrench[link1]', 'torque[joint1]']
    """
    check_kind(state, State, "The state", A_STATE)
    _check_known(known, state.mechanism.nv)
    if moving is not None:
        check_kind(moving, LinkMotion, "moving", A_MOTION)
    external = {} if external_wrenches is None else external_wrenches
    check_mapping(external, "external_wrenches", "wrenches by the name of a link or frame")
    for name, wrench in external.items():
        state.mechanism.place(name)
        _check_shape(wrench, 6, f"The external wrench on {name!r}")
    external = link_wrenches(state.mechanism, state.q, external, check_axes(axes, LINK))
    pushing, is_moving = _checked_pushes(state.mechanism, pushes), moving is not None
    kept = rows_at(state) if closure is None else checked_rows(state.mechanism, closure)
    if isinstance(state, NumericState) and not (classical or pushing or is_moving) and _is_numeric(known, external):
        return _planned_graph(state, known, external, kept)
    numbers = _numbers(state, external, classical, moving, kept)
    equations = _equations(state.mechanism, numbers, pushing, is_moving, kept)
    return make_graph(equations, _known_values(state.mechanism, known), state.mechanism)


def velocity_graph(state: State, *, unknown: bool = False) -> LinearGraph:
    """The velocity factors of a mechanism at a state, with the link twists as unknowns.

    Args:
        state: The mechanism at (q, v).
        unknown: Let the joint velocities v[joint] be unknowns too, tied by couplings; the state's v counts for nothing.

    Examples:
        >>> graph = fgd.velocity_graph(fgd.evaluate_state(fgd.robots.pendulum(2), np.zeros(2), np.ones(2)))
        >>> [str(variable) for variable in graph.variables]
        ['V[link1]', 'V[link2]']
    """
    check_kind(state, State, "The state", A_STATE)
    equations = [
        factors.velocity_factor(j.name, j.parent, j.child, j.Ad_child_parent, j.S, None if unknown else j.v)
        for j in (*state.joints.values(), *state.loops.values())
    ]
    if unknown:
        couplings, of = state.mechanism.couplings, factors.joint_velocity
        equations += [factors.coupling_factor(c.name, c.joint, c.source, c.ratio, of) for c in couplings]
    base = {factors.twist(state.mechanism.base): Value(np.zeros(6))}
    return make_graph(equations, base, state.mechanism)


def _checked_pushes(mechanism: Mechanism, pushes: Pushes | None) -> Pushes:
    """The variables that push links, or an InputError that says what they must be."""
    found = {} if pushes is None else pushes
    allowed = "pairs (variable, wrenches of shape (6, its size)) by link name"
    check_mapping(found, "pushes", allowed)
    for link, pairs in found.items():
        mechanism.check_link(link)
        for pair in check_parts(pairs, tuple, f"pushes of link {link!r}", allowed):
            if len(pair) != 2 or not isinstance(pair[0], Variable) or np.shape(pair[1]) != (6, pair[0].size):
                raise InputError(f"A push of link {link!r} is {shown(pair)}; give {allowed}.")
    return found


def _check_known(known: Known, nv: int) -> None:
    check_kind(known, Known, "What is known", "a Known(a, tau, a_mask, tau_mask), arrays of shape (nv,)")
    for name in ("a", "tau", "a_mask", "tau_mask"):
        _check_shape(getattr(known, name), nv, f"{name} of what is known")


def _check_shape(values: object, size: int, what: str) -> None:
    """Raise an InputError unless the values are an array of numbers or symbols of a size."""
    if not isinstance(values, np.ndarray) or values.shape != (size,) or values.dtype.kind not in "fiubO":
        raise InputError(f"{what} is {shown(values)}; it must be a NumPy array of shape {(size,)}.")


def base_acceleration(mechanism: Mechanism) -> Array:
    """The base's acceleration: gravity acts as if the base accelerated upward, read-only, shape (6,)."""
    if mechanism.gravity.dtype == object:  # symbols would keep their tape in the cache
        return np.concatenate([np.zeros(3), -mechanism.gravity])
    return _constant_base_acceleration(mechanism)


@kept_with_first
def _constant_base_acceleration(mechanism: Mechanism) -> Array:
    A = np.concatenate([np.zeros(3), -mechanism.gravity])
    A.setflags(write=False)
    return A


class _Numbers(NamedTuple):
    """What the equations have of the state.

    Attributes:
        Ad: Ad_child_parent of every joint of the tree, from the base outward, and of every loop.
        S: Their motion subspaces.
        accelerations: What products of velocities add to their children's accelerations, or a known acceleration.
        wrenches: What acts on the children of the tree's joints besides joints.
        losses: What the joints that have losses take from their motors, by name.
        closures: Of every loop, how its acceleration equations are combined and along what it passes no wrench.
    """

    Ad: Sequence[Array] | Array
    S: Sequence[Array]
    accelerations: Sequence[Array] | Array
    wrenches: Sequence[Array] | Array
    losses: Mapping[str, Array]
    closures: Sequence[LoopClosure | None]


def _numbers(
    state: State, external: Mapping[str, Array], classical: bool, moving: LinkMotion | None, kept: Kept
) -> _Numbers:
    tree, loops = [*state.joints.values()], [*state.loops.values()]
    if moving is None:
        accelerations = [_acceleration_bias(joint, state, classical) for joint in (*tree, *loops)]
    else:
        accelerations = [moving.A[joint.child] for joint in tree]
        accelerations += [_acceleration_bias(loop, state, classical) for loop in loops]
    wrenches = []
    for link in [joint.child for joint in tree]:
        G, V = state.mechanism.link_by_name[link].spatial_inertia, state.twists[link]
        if moving is not None:
            bias = -moving.taken[link]
        else:
            bias = factors.classical_wrench_bias(V[:3], G) if classical else factors.wrench_bias(G, V)
        wrenches.append(bias + external[link] if link in external else bias)
    joints = [*tree, *loops]
    return _Numbers(
        [joint.Ad_child_parent for joint in joints],
        [joint.S for joint in joints],
        accelerations,
        wrenches,
        _losses(state),
        loop_closures(state, kept),
    )


def _acceleration_bias(joint: JointState, state: State, classical: bool) -> Array:
    own = joint.S @ joint.v
    if classical:
        bias = factors.classical_bias(joint.Ad_child_parent, state.twists[joint.parent][:3], own)
    else:
        bias = factors.acceleration_bias(state.twists[joint.child], own) if joint.S.shape[1] else np.zeros(6)
    return bias if joint.S_rate_v is None else bias + joint.S_rate_v


def _losses(state: State) -> dict[str, Array]:
    found, (q_slices, v_slices) = {}, (state.mechanism.q_slices, state.mechanism.v_slices)
    for joint in state.mechanism.movable_joints:
        if not joint.is_lossless:
            q, v = state.q[q_slices[joint.name]], state.v[v_slices[joint.name]]
            effects = joint.damping, joint.friction, joint.stiffness, joint.rest
            found[joint.name] = factors.joint_losses(q, v, *effects)
    return found


def _stacked_numbers(state: NumericState, external: Mapping[str, Array], kept: Kept) -> _Numbers:
    """The same of a state of numbers, in a few operations on stacked arrays."""
    (Ad, S, own, rates, V), loops = state.motion, state.loops.values()
    V = V[1:]
    wrenches = factors.wrench_bias(_inertias(state.mechanism), V)
    accelerations = factors.acceleration_bias(V, own)
    for k, rate in rates.items():
        accelerations[k] += rate
    if external:
        for k, joint in enumerate(state.mechanism.topology.outward):
            if joint.child in external:
                wrenches[k] += external[joint.child]
    if loops:
        Ad = np.concatenate([Ad, [loop.Ad_child_parent for loop in loops]])
        biases = [_acceleration_bias(loop, state, classical=False) for loop in loops]
        S, accelerations = (*S, *[loop.S for loop in loops]), np.concatenate([accelerations, biases])
    return _Numbers(Ad, S, accelerations, wrenches, _losses(state), loop_closures(state, kept))


@kept_with_first
def _inertias(mechanism: Mechanism) -> Array:
    links = [mechanism.link_by_name[joint.child] for joint in mechanism.topology.outward]
    return np.array([link.spatial_inertia for link in links]).reshape(-1, 6, 6)


def _is_numeric(known: Known, external: Mapping[str, Array]) -> bool:
    return all(values.dtype != object for values in (known.a, known.tau, *external.values()))


def _planned_graph(state: NumericState, known: Known, external: Mapping[str, Array], kept: Kept) -> LinearGraph:
    mechanism, numbers = state.mechanism, _stacked_numbers(state, external, kept)
    plan = _plan(mechanism, known.a_mask.tobytes(), known.tau_mask.tobytes(), kept)
    varying = [S.ravel() for S, constant in zip(numbers.S, _subspaces(mechanism), strict=True) if constant is None]
    parts = numbers.Ad, numbers.accelerations, numbers.wrenches
    closures = zip(mechanism.loops, numbers.closures, strict=True)
    varying += [part.ravel() for loop, one in closures if one and loop.constant_subspace is None for part in one]
    w = np.concatenate(
        [ONE, *[np.asarray(part).ravel() for part in parts], *varying, *numbers.losses.values(), known.a, known.tau]
    )
    return plan.graph(w, lambda: _known_values(mechanism, known))


@kept_with_first
def _subspaces(mechanism: Mechanism) -> tuple[Array | None, ...]:
    """The subspaces of joints and loops, None where they vary with the state, as those of loops are taken to."""
    return (*[joint.constant_subspace for joint in mechanism.topology.outward], *[None] * len(mechanism.loops))


@kept_with_first
def _plan(mechanism: Mechanism, a_mask: bytes, tau_mask: bytes, kept: Kept) -> Plan:
    """Where the numbers of a state go in the graph, where these entries of a and tau are known."""
    places, parts = Places(), (*mechanism.topology.outward, *mechanism.loops)
    Ad, accelerations = places.array(len(parts), 6, 6), places.array(len(parts), 6)
    wrenches = places.array(len(mechanism.topology.outward), 6)
    subspaces = zip(parts, _subspaces(mechanism), strict=True)
    S = [places.array(6, part.nv) if constant is None else constant for part, constant in subspaces]
    closures = [placed_closure(loop, mask, places) for loop, mask in zip(mechanism.loops, kept, strict=False)]
    losses = {joint.name: places.array(joint.nv) for joint in mechanism.movable_joints if not joint.is_lossless}
    a, tau = places.array(mechanism.nv), places.array(mechanism.nv)
    known = Known(a, tau, np.frombuffer(a_mask, dtype=bool), np.frombuffer(tau_mask, dtype=bool))
    numbers = _Numbers(Ad, S, accelerations, wrenches, losses, closures)
    equations = _equations(mechanism, numbers, {}, is_moving=False, kept=kept)
    return Plan(make_graph(equations, _known_values(mechanism, known), mechanism))


def _equations(mechanism: Mechanism, numbers: _Numbers, pushes: Pushes, is_moving: bool, kept: Kept) -> list[Factor]:
    """All equations; with ``is_moving`` the accelerations of the tree's links are known."""
    tree = [(joint.name, joint.parent, joint.child) for joint in mechanism.topology.outward]
    loops = [(loop.name, loop.predecessor, loop.successor) for loop in mechanism.loops]
    joints = [*zip((*tree, *loops), numbers.Ad, numbers.S, numbers.accelerations, strict=True)]
    known = joints[: len(tree)] if is_moving else []
    equations = [factors.known_acceleration_factor(name, child, A) for (name, _, child), _, _, A in known]
    equations += [factors.acceleration_factor(*ends, Ad, S, bias) for ends, Ad, S, bias in joints[len(known) :]]
    redundant = [
        factors.redundant_factor(factors.wrench(loop.name), closure.dropped)
        for loop, closure in zip(mechanism.loops, numbers.closures, strict=True)
        if closure is not None
    ]
    equations[len(tree) :] = [
        whole if closure is None else factors.loop_acceleration_factor(whole, closure.kept)
        for whole, closure in zip(equations[len(tree) :], numbers.closures, strict=True)
    ]
    joints_in, joints_out = defaultdict(list), defaultdict(list)
    for (name, parent, child), Ad, _, _ in joints:
        joints_in[child].append(name)
        joints_out[parent].append((name, Ad))
    for (_, _, link), bias in zip(tree, numbers.wrenches, strict=True):
        G = None if is_moving else mechanism.link_by_name[link].spatial_inertia
        equations.append(factors.wrench_factor(link, G, joints_in[link], joints_out[link], bias, pushes.get(link, ())))
    S_of = {name: S for (name, _, _), _, S, _ in joints}
    equations += _torques(mechanism, S_of, numbers.losses)
    for coupling, (is_kept,) in zip(mechanism.couplings, kept[len(mechanism.loops) :], strict=True):
        if is_kept:
            equations.append(factors.coupling_factor(coupling.name, coupling.joint, coupling.source, coupling.ratio))
        else:
            redundant.append(factors.redundant_factor(factors.coupling_force(coupling.name), np.eye(1)))
    return equations + redundant


def _torques(mechanism: Mechanism, S: Mapping[str, Array], losses: Mapping[str, Array]) -> list[Factor]:
    coupled = defaultdict(list)
    for coupling in mechanism.couplings:
        coupled[coupling.joint].append((coupling.name, 1.0))
        coupled[coupling.source].append((coupling.name, -coupling.ratio))
    equations = []
    for joint in mechanism.movable_joints:
        name = joint.name
        if joint.is_lossless and joint.constant_subspace is not None and name not in coupled:
            equations.append(_constant_torque(joint))
            continue
        lost = losses[name] if name in losses else np.zeros(joint.nv)
        equations.append(factors.torque_factor(name, S[name], joint.armature_matrix, lost, coupled[name]))
    loops = [loop for loop in mechanism.loops if loop.nv]
    return equations + [factors.torque_factor(loop.name, S[loop.name], None, np.zeros(loop.nv)) for loop in loops]


@kept_with_first
def _constant_torque(joint: Joint) -> Factor:
    """The torque equation of a joint for which it is the same at every state."""
    S = joint.constant_subspace
    assert S is not None
    return factors.torque_factor(joint.name, S, joint.armature_matrix, np.zeros(joint.nv))


def _known_values(mechanism: Mechanism, known: Known) -> dict[Variable, Value]:
    values = {factors.acceleration(mechanism.base): Value(base_acceleration(mechanism))}
    for make, value, mask in (
        (factors.joint_acceleration, known.a, known.a_mask),
        (factors.torque, known.tau, known.tau_mask),
    ):
        if not mask.any():
            continue
        for joint in mechanism.movable_joints:
            entries = mechanism.v_slices[joint.name]
            known_entries = mask[entries].tolist()
            if all(known_entries):
                values[make(joint.name, joint.nv)] = Value(value[entries])
            elif any(known_entries):
                values[make(joint.name, joint.nv)] = Value(value[entries], mask[entries])
    for loop in mechanism.loops:  # a loop joint is passive
        values[factors.torque(loop.name, loop.nv)] = Value(np.zeros(loop.nv))
    return values
