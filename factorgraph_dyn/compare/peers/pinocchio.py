"""Pinocchio, fed with a mechanism and answering in this package's conventions.

Importing this module needs Pinocchio (``pip install pin``). Pinocchio's spatial vectors put the linear part first, its
planar joint has four coordinates and lies in its own x-y plane, and it ignores damping and friction; armature
and gravity are handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.spatial import Floats, perpendicular_axes

Wrenches = Mapping[str, Floats] | None
SWAP = np.array([3, 4, 5, 0, 1, 2])  # [omega; v] <-> [v; omega]
JOINTS: dict[str, Callable[[Joint], Any]] = {
    "revolute": lambda joint: pin.JointModelRevoluteUnaligned(joint.axes[0]),
    "continuous": lambda joint: pin.JointModelRevoluteUnaligned(joint.axes[0]),
    "prismatic": lambda joint: pin.JointModelPrismaticUnaligned(joint.axes[0]),
    "helical": lambda joint: pin.JointModelHelicalUnaligned(joint.axes[0], joint.pitch),
    "universal": lambda joint: pin.JointModelUniversal(joint.axes[0], joint.axes[1]),
    "spherical": lambda _: pin.JointModelSpherical(),
    "planar": lambda _: pin.JointModelPlanar(),
    "floating": lambda _: pin.JointModelFreeFlyer(),
}


@dataclass
class PinocchioOracle:
    """A mechanism's tree in Pinocchio; q, v, a, tau in our order and conventions."""

    mechanism: Mechanism
    model: pin.Model
    data: pin.Data
    joint_ids: dict[str, int]
    link_frames: dict[str, tuple[int, pin.SE3]]  # Pinocchio joint and the link's pose in its frame

    def q(self, q: Floats) -> Floats:
        """Our coordinates in Pinocchio's layout."""
        theirs: Floats = pin.neutral(self.model)
        for joint in self.mechanism.movable_joints:
            ours = q[self.mechanism.q_slice(joint.name)]
            model = self.model.joints[self.joint_ids[joint.name]]
            if joint.kind == "planar":
                ours = np.array([ours[0], ours[1], np.cos(ours[2]), np.sin(ours[2])])
            theirs[model.idx_q : model.idx_q + model.nq] = ours
        return theirs

    def v(self, v: Floats) -> Floats:
        """A joint vector (v, a, tau) in Pinocchio's layout."""
        return v[self.order]

    def back(self, v: Floats) -> Floats:
        """A joint vector of Pinocchio's in our layout."""
        ours = np.empty_like(v)
        ours[self.order] = v
        return ours

    @property
    def order(self) -> npt.NDArray[np.int64]:
        """Where in our vectors each entry of Pinocchio's lies."""
        order = np.empty(self.model.nv, dtype=int)
        for joint in self.mechanism.movable_joints:
            model = self.model.joints[self.joint_ids[joint.name]]
            entries = np.arange(self.mechanism.nv)[self.mechanism.v_slice(joint.name)]
            order[model.idx_v : model.idx_v + model.nv] = entries[SWAP] if joint.kind == "floating" else entries
        return order

    def inverse_dynamics(self, q: Floats, v: Floats, a: Floats, wrenches: Wrenches = None) -> Floats:
        """Joint torques by recursive Newton-Euler, shape (nv,)."""
        forces = self._forces(wrenches)
        return self.back(pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(a), forces))

    def forward_dynamics(self, q: Floats, v: Floats, tau: Floats, wrenches: Wrenches = None) -> Floats:
        """Joint accelerations by the articulated-body algorithm, shape (nv,)."""
        forces = self._forces(wrenches)
        return self.back(pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau), forces))

    def mass_matrix(self, q: Floats) -> Floats:
        """The mass matrix, shape (nv, nv)."""
        upper: Floats = np.triu(pin.crba(self.model, self.data, self.q(q)))
        M: Floats = upper + np.triu(upper, 1).T
        inverse_order = np.argsort(self.order)
        return M[np.ix_(inverse_order, inverse_order)]

    def inverse_mass_matrix(self, q: Floats) -> Floats:
        """The inverse of the mass matrix, shape (nv, nv)."""
        upper: Floats = np.triu(pin.computeMinverse(self.model, self.data, self.q(q)))
        M_inverse: Floats = upper + np.triu(upper, 1).T
        inverse_order = np.argsort(self.order)
        return M_inverse[np.ix_(inverse_order, inverse_order)]

    def link_pose(self, q: Floats, link: str) -> Floats:
        """Pose of a link in the world, shape (4, 4)."""
        pin.forwardKinematics(self.model, self.data, self.q(q))
        joint, T_joint_link = self.link_frames[link]
        pose: Floats = (self.data.oMi[joint] * T_joint_link).homogeneous
        return pose

    def _forces(self, wrenches: Wrenches) -> list[pin.Force]:
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, wrench in (wrenches or {}).items():
            joint, T_joint_link = self.link_frames[link]
            forces[joint] += T_joint_link.act(pin.Force(np.asarray(wrench)[SWAP]))
        return forces


def pinocchio_oracle(mechanism: Mechanism) -> PinocchioOracle:
    """The mechanism's tree as a Pinocchio model, with armature and gravity."""
    model = pin.Model()
    model.gravity.linear = np.asarray(mechanism.gravity)
    frames = {mechanism.base: (0, pin.SE3.Identity())}
    ids, armature = {}, {}
    for joint in mechanism.topology.outward:
        parent, T_parent_link = frames[joint.parent]
        T_link_joint = pin.SE3(np.array(joint.placement))
        if not joint.nv:
            frames[joint.child] = (parent, T_parent_link * T_link_joint)
        else:
            joint_model, T_joint_frame = _joint_model(joint)
            placement = T_parent_link * T_link_joint * T_joint_frame
            index = model.addJoint(parent, joint_model, placement, joint.name)
            ids[joint.name] = index
            armature[index] = np.asarray(joint.armature)
            frames[joint.child] = (index, T_joint_frame.inverse())
        link = mechanism.link_by_name[joint.child]
        inertia = pin.Inertia(float(link.mass), np.array(link.com), np.array(link.inertia))
        model.appendBodyToJoint(frames[joint.child][0], inertia, frames[joint.child][1])
    for index, values in armature.items():
        here = model.joints[index]
        reflected = values[SWAP] if here.nv == 6 else values
        model.armature[here.idx_v : here.idx_v + here.nv] = reflected
    return PinocchioOracle(mechanism, model, model.createData(), ids, frames)


def _joint_model(joint: Joint) -> tuple[Any, pin.SE3]:
    """Pinocchio's joint model, and the pose of its frame in ours (planar joints lie in its x-y plane)."""
    if joint.kind not in JOINTS:
        raise InputError(f"Pinocchio has no {joint.kind} joint at {joint.name!r}; joints: {', '.join(JOINTS)}.")
    frame = np.eye(3)
    if joint.kind == "planar":
        frame = np.column_stack([*perpendicular_axes(joint.axes[0]), joint.axes[0]])
    return JOINTS[joint.kind](joint), pin.SE3(frame, np.zeros(3))
