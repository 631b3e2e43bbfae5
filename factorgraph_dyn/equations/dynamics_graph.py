"""Forward, inverse, hybrid and closed-loop dynamics: one graph, with different variables known.

Takes a mechanism at a state, what is known of a and tau, and wrenches from outside; gives the graph
of acceleration, wrench, torque and coupling factors. Work is done once a state.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from factorgraph_dyn.checks import check_kind, check_mapping, check_parts, shown
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.given import Known
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph, Value, Variable, make_graph
from factorgraph_dyn.equations.state import JointState, State
from factorgraph_dyn.equations.wrenches import check_axes, link_wrenches
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Joint, Mechanism
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
) -> LinearGraph:
    """The dynamics of a mechanism at a state, given what is known.

    Args:
        state: The mechanism at (q, v).
        known: Which accelerations and torques are given, and their values.
        external_wrenches: Wrench [moment; force] from outside, about its origin, by the name of a link or frame.
        axes: "local": in the link's or frame's own axes; "world": in those of the world.
        classical: Let A be the classical accelerations of the links' origins instead of the spatial ones.
        pushes: Variables that push links, and the wrenches of their units in the link's frame, by link name.
        moving: How all links of the tree move, and what that takes, where it is known (``equations/known_motion``).

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
    external = link_wrenches(state.mechanism, state.q, external, check_axes(axes))
    equations = _accelerations(state, classical, moving)
    equations += _wrenches(state, external, _checked_pushes(state.mechanism, pushes), classical, moving)
    equations += _torques(state)
    equations += [factors.coupling_factor(c.name, c.joint, c.source, c.ratio) for c in state.mechanism.couplings]
    return make_graph(equations, _known_values(state.mechanism, known))


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
    return make_graph(equations, base)


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


@lru_cache(maxsize=256)
def _constant_base_acceleration(mechanism: Mechanism) -> Array:
    A = np.concatenate([np.zeros(3), -mechanism.gravity])
    A.setflags(write=False)
    return A


def _acceleration(joint: JointState, state: State, classical: bool) -> Factor:
    return factors.acceleration_factor(
        joint.name,
        joint.parent,
        joint.child,
        joint.Ad_child_parent,
        joint.S,
        joint.v,
        state.twists[joint.child],
        joint.S_rate_v,
        state.twists[joint.parent][:3] if classical else None,
    )


def _accelerations(state: State, classical: bool, moving: LinkMotion | None) -> list[Factor]:
    tree, loops = state.joints.values(), state.loops.values()
    if moving is None:
        return [_acceleration(joint, state, classical) for joint in (*tree, *loops)]
    known = [factors.known_acceleration_factor(joint.name, joint.child, moving.A[joint.child]) for joint in tree]
    return known + [_acceleration(loop, state, classical) for loop in loops]


def _wrenches(
    state: State, external: Mapping[str, Array], pushes: Pushes, classical: bool, moving: LinkMotion | None
) -> list[Factor]:
    joints_in, joints_out = defaultdict(list), defaultdict(list)
    for joint in (*state.joints.values(), *state.loops.values()):
        joints_in[joint.child].append(joint.name)
        joints_out[joint.parent].append((joint.name, joint.Ad_child_parent))
    return [
        factors.wrench_factor(
            joint.child,
            state.mechanism.link_by_name[joint.child].spatial_inertia,
            state.twists[joint.child],
            joints_in[joint.child],
            joints_out[joint.child],
            external.get(joint.child),
            pushes.get(joint.child, ()),
            classical=classical,
            taken=None if moving is None else moving.taken[joint.child],
        )
        for joint in state.joints.values()
    ]


def _torques(state: State) -> list[Factor]:
    mechanism = state.mechanism
    coupled = defaultdict(list)
    for coupling in mechanism.couplings:
        coupled[coupling.joint].append((coupling.name, 1.0))
        coupled[coupling.source].append((coupling.name, -coupling.ratio))
    equations = []
    for joint in mechanism.movable_joints:
        if joint.is_lossless and joint.constant_subspace is not None and joint.name not in coupled:
            equations.append(_constant_torque(joint))
            continue
        here = state.joints[joint.name]
        q = state.q[mechanism.q_slices[joint.name]]
        losses = factors.joint_losses(q, here.v, joint.damping, joint.friction, joint.stiffness, joint.rest)
        equations.append(factors.torque_factor(joint.name, here.S, joint.armature_matrix, losses, coupled[joint.name]))
    for loop in state.loops.values():
        nv = loop.S.shape[1]
        if nv:
            equations.append(factors.torque_factor(loop.name, loop.S, None, np.zeros(nv)))
    return equations


@lru_cache(maxsize=4096)
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
