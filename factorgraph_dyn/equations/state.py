"""A mechanism at a state (q, v): what the equations need of every joint and link, once a state.

Twists are those of ``motion/kinematics``, which solve the velocity factors: eliminated from the tips to the base these
are triangular, and substitution goes from the base outward. The scalar type is that of q and v.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import shown
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Joint, Loop, Mechanism, check_mechanism
from factorgraph_dyn.motion.at_once import TreeMotion, tree_of
from factorgraph_dyn.motion.kinematics import child_twist, joint_motion, link_poses, loop_pose
from factorgraph_dyn.spatial import Array


class JointState(NamedTuple):
    """A joint of the tree, or a loop, at a state; everything in the child's frame.

    Attributes:
        Ad_child_parent: Carries twists from the parent to the child, shape (6, 6).
        S: Motion subspace, shape (6, nv).
        v: Joint velocity, shape (nv,).
        S_rate_v: The product dS/dt v, shape (6,), or None where S is constant.
    """

    name: str
    parent: str
    child: str
    Ad_child_parent: Array
    S: Array
    v: Array
    S_rate_v: Array | None


@dataclass(frozen=True, eq=False)
class State:
    """A mechanism at (q, v).

    Attributes:
        joints: Joints of the tree by name, from the base outward.
        loops: Loop joints by name.
        twists: V of every link by name, shape (6,), in the link's frame.
    """

    mechanism: Mechanism
    q: Array
    v: Array
    joints: Mapping[str, JointState]
    loops: Mapping[str, JointState]
    twists: Mapping[str, Array]

    def __repr__(self) -> str:
        return f"<State of {self.mechanism.name!r}: nq {self.mechanism.nq}, nv {self.mechanism.nv}>"


class NumericState(State):
    """A mechanism at a (q, v) of numbers, with its joints in stacked arrays.

    Attributes:
        motion: The joints of the tree, from the base outward.
    """

    motion: TreeMotion

    def __init__(self, mechanism: Mechanism, q: Array, v: Array) -> None:
        vars(self).update(mechanism=mechanism, q=q, v=v, motion=tree_of(mechanism).at(q, v))
        vars(self)["loops"] = _loops(mechanism, q, self.twists) if mechanism.loops else {}

    @cached_property
    def joints(self) -> Mapping[str, JointState]:
        """Joints of the tree by name, from the base outward."""
        (Ad, S, _, rates, _), slices = self.motion, self.mechanism.v_slices
        return {
            joint.name: JointState(
                joint.name, joint.parent, joint.child, Ad[k], S[k], self.v[slices[joint.name]], rates.get(k)
            )
            for k, joint in enumerate(self.mechanism.topology.outward)
        }

    @cached_property
    def twists(self) -> Mapping[str, Array]:
        """V of every link by name."""
        links = [self.mechanism.base, *[joint.child for joint in self.mechanism.topology.outward]]
        return dict(zip(links, self.motion.V, strict=True))


def evaluate_state(mechanism: Mechanism, q: Array, v: Array) -> State:
    """The mechanism at a state; q (nq,) and v (nv,) are floats or symbols.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).

    Examples:
        >>> state = fgd.evaluate_state(fgd.robots.rrr(), np.zeros(3), np.ones(3))
        >>> state.twists["link1"].tolist()
        [0.0, -1.0, 0.0, 0.0, 0.0, 0.0]
    """
    check_mechanism(mechanism)
    q, v = _entries(q, mechanism.nq, "q"), _entries(v, mechanism.nv, "v")
    if q.dtype != object and v.dtype != object:
        return NumericState(mechanism, q, v)
    joints: dict[str, JointState] = {}
    twists: dict[str, Array] = {mechanism.base: np.zeros(6)}
    for joint in mechanism.topology.outward:
        here = _tree_joint(joint, q[mechanism.q_slices[joint.name]], v[mechanism.v_slices[joint.name]])
        joints[joint.name] = here
        twists[joint.child] = child_twist(here.Ad_child_parent, here.S @ here.v, twists[joint.parent])
    loops = _loops(mechanism, q, twists) if mechanism.loops else {}
    return State(mechanism, q, v, joints, loops, twists)


def _entries(values: Array, size: int, what: str) -> Array:
    """The values as an array, if they are numbers or symbols of the right count."""
    try:
        array = np.asarray(values)
    except ValueError:  # lists of several lengths
        array = None
    if array is None or array.shape != (size,) or array.dtype.kind not in "fiuO":
        raise InputError(f"{what} is {shown(values)}; it must be {size} real numbers, or {size} symbols.")
    return array


def _tree_joint(joint: Joint, q: Array, v: Array) -> JointState:
    T_parent_child, S = joint_motion(joint, q)
    Ad_child_parent = spatial.inverse_adjoint(T_parent_child)
    S_rate_v = joint.type.subspace_rate(S, v)
    return JointState(joint.name, joint.parent, joint.child, Ad_child_parent, S, v, S_rate_v)


def _loops(mechanism: Mechanism, q: Array, twists: Mapping[str, Array]) -> dict[str, JointState]:
    poses = link_poses(mechanism, q)
    return {loop.name: _loop_joint(loop, poses, twists) for loop in mechanism.loops}


def _loop_joint(loop: Loop, poses: dict[str, Array], twists: Mapping[str, Array]) -> JointState:
    """The loop joint seen from its successor's link frame, moving as the links make it move."""
    T_frame_child = loop_pose(loop, poses)
    Ad_link_child = spatial.adjoint(loop.successor_placement)
    S_child = loop.type.subspace(loop.axes, loop.pitch, T_frame_child)
    S = Ad_link_child @ S_child
    T_child_parent = spatial.inverse_pose(poses[loop.successor]) @ poses[loop.predecessor]
    Ad_child_parent = spatial.adjoint(T_child_parent)
    V_relative = twists[loop.successor] - Ad_child_parent @ twists[loop.predecessor]
    # Read where the joint is: seen from far away, its turns look like slides.
    v = _left_inverse(S_child) @ spatial.inverse_adjoint(loop.successor_placement) @ V_relative
    rate = loop.type.subspace_rate(S_child, v)
    S_rate_v = None if rate is None else Ad_link_child @ rate
    return JointState(loop.name, loop.predecessor, loop.successor, Ad_child_parent, S, v, S_rate_v)


def _left_inverse(S: Array) -> Array:
    """The matrix that reads joint velocities off a twist S v, shape (nv, 6)."""
    if S.dtype != object:
        return spatial.left_inverse(S)
    # Only a universal joint has a subspace of symbols: two columns.
    (a, b), (_, d) = S.T @ S
    adjugate = np.array([[d, -b], [-b, a]])
    left_inverse: Array = adjugate @ S.T / (a * d - b * b)
    return left_inverse
