"""Pinocchio, fed with our mechanisms and answering in our conventions; nothing of it is the package's.

Pinocchio's spatial vectors put the linear part first, its planar joint has a cosine and a sine and lies in its own x-y
plane; damping, friction and springs it does not know.
"""

from __future__ import annotations

import numpy as np
import pinocchio as pin

from factorgraph_dyn.spatial import perpendicular_axes  # the convention: where a planar joint's x and y lie


class PinocchioOracle:
    """A mechanism's tree in Pinocchio; q, v, a, tau in our order and conventions."""

    def __init__(self, mechanism):
        self.mechanism = mechanism
        self.model = pin.Model()
        self.model.gravity = pin.Motion(np.asarray(mechanism.gravity), np.zeros(3))
        self.link_frames = {mechanism.base: (0, pin.SE3.Identity())}  # Pinocchio's joint, the link's pose in its frame
        for joint in mechanism.topology.outward:
            self._add(joint)
        self.data = self.model.createData()
        self._to_theirs = np.zeros((self.model.nv, mechanism.nv))  # v_theirs = P v_ours
        for joint in mechanism.movable_joints:
            theirs = self._joint(joint)
            block = np.eye(joint.nv)
            if joint.kind == "floating":
                block = np.roll(block, 3, axis=0)
            rows = slice(theirs.idx_v, theirs.idx_v + theirs.nv)
            self._to_theirs[rows, mechanism.v_slice(joint.name)] = block
            self.model.armature[rows] = block @ joint.armature

    def _joint(self, joint):
        return self.model.joints[self.model.getJointId(joint.name)]

    def _add(self, joint):
        parent, pose = self.link_frames[joint.parent]
        pose = pose * pin.SE3(np.array(joint.placement))
        tilt = pin.SE3.Identity()
        if joint.kind != "fixed":
            if joint.kind == "planar":
                tilt.rotation = np.column_stack([*perpendicular_axes(joint.axes[0]), joint.axes[0]])
            parent = self.model.addJoint(parent, _joint_model(joint), pose * tilt, joint.name)
            pose = tilt.inverse()
        self.link_frames[joint.child] = parent, pose
        link = self.mechanism.link_by_name[joint.child]
        self.model.appendBodyToJoint(parent, pin.Inertia(link.mass, np.array(link.com), np.array(link.inertia)), pose)

    def q(self, q):
        """Our coordinates in Pinocchio's layout."""
        theirs = pin.neutral(self.model)
        for joint in self.mechanism.movable_joints:
            ours, model = q[self.mechanism.q_slice(joint.name)], self._joint(joint)
            if joint.kind == "planar":
                ours = [*ours[:2], np.cos(ours[2]), np.sin(ours[2])]
            theirs[model.idx_q : model.idx_q + model.nq] = ours
        return theirs

    def v(self, v):
        """A joint vector (v, a, tau) in Pinocchio's layout."""
        return self._to_theirs @ v

    def back(self, v):
        """A joint vector of Pinocchio's in our layout."""
        return self._to_theirs.T @ v

    def inverse_dynamics(self, q, v, a, wrenches=None):
        """Joint torques by recursive Newton-Euler, shape (nv,)."""
        forces = self._forces(wrenches)
        return self.back(pin.rnea(self.model, self.data, self.q(q), self.v(v), self.v(a), forces))

    def forward_dynamics(self, q, v, tau, wrenches=None):
        """Joint accelerations by the articulated-body algorithm, shape (nv,)."""
        forces = self._forces(wrenches)
        return self.back(pin.aba(self.model, self.data, self.q(q), self.v(v), self.v(tau), forces))

    def mass_matrix(self, q):
        """The mass matrix, shape (nv, nv)."""
        return self._matrix(pin.crba(self.model, self.data, self.q(q)))

    def inverse_mass_matrix(self, q):
        """The inverse of the mass matrix, shape (nv, nv)."""
        return self._matrix(pin.computeMinverse(self.model, self.data, self.q(q)))

    def _matrix(self, upper):
        full = np.triu(upper) + np.triu(upper, 1).T
        return self._to_theirs.T @ full @ self._to_theirs

    def link_pose(self, q, link):
        """Pose of a link in the world, shape (4, 4)."""
        pin.forwardKinematics(self.model, self.data, self.q(q))
        joint, T_joint_link = self.link_frames[link]
        return (self.data.oMi[joint] * T_joint_link).homogeneous

    def place_pose(self, q, name):
        """Pose of a link or frame in the world, shape (4, 4)."""
        link, T_link_place = self._place(name)
        return self.link_pose(q, link) @ T_link_place

    def jacobian(self, q, name, axes="local"):
        """Jacobian of a link or frame, the angular part first, shape (6, nv)."""
        link, T_link_place = self._place(name)
        joint, T_joint_link = self.link_frames[link]
        if joint == 0:
            return np.zeros((6, self.mechanism.nv))
        frame = self.model.addFrame(
            pin.Frame(f"{name} {axes} frame", joint, T_joint_link * pin.SE3(T_link_place), pin.FrameType.OP_FRAME)
        )
        reference = {"local": pin.ReferenceFrame.LOCAL, "world": pin.ReferenceFrame.LOCAL_WORLD_ALIGNED}[axes]
        J = pin.computeFrameJacobian(self.model, self.model.createData(), self.q(q), frame, reference)
        return np.roll(J, 3, axis=0) @ self._to_theirs

    def center_of_mass(self, q):
        """Of what moves, shape (3,)."""
        return np.array(pin.centerOfMass(self.model, self.data, self.q(q)))

    def center_of_mass_rates(self, q, v, a):
        """Velocity and acceleration of the centre of mass, without gravity, shape (3,) each."""
        pin.centerOfMass(self.model, self.data, self.q(q), self.v(v), self.v(a))
        return np.array(self.data.vcom[0]), np.array(self.data.acom[0])

    def momentum(self, q, v):
        """About the centre of mass, the angular part first, shape (6,)."""
        h = pin.computeCentroidalMomentum(self.model, self.data, self.q(q), self.v(v))
        return np.concatenate([h.angular, h.linear])

    def energy(self, q, v):
        """Kinetic and potential."""
        theirs = self.q(q), self.v(v)
        kinetic = pin.computeKineticEnergy(self.model, self.data, *theirs)
        return kinetic, pin.computePotentialEnergy(self.model, self.data, theirs[0])

    def integrate(self, q, v):
        """The configuration reached from q, in Pinocchio's layout."""
        return pin.integrate(self.model, self.q(q), self.v(v))

    def difference(self, start, end):
        """The velocity that leads from one configuration to another in unit time, shape (nv,)."""
        return self.back(pin.difference(self.model, self.q(start), self.q(end)))

    def _place(self, name):
        frames = {frame.name: (frame.link, np.array(frame.placement)) for frame in self.mechanism.frames}
        return frames.get(name, (name, np.eye(4)))

    def _forces(self, wrenches):
        forces = [pin.Force.Zero() for _ in range(self.model.njoints)]
        for link, wrench in (wrenches or {}).items():
            joint, T_joint_link = self.link_frames[link]
            forces[joint] += T_joint_link.act(pin.Force(wrench[3:], wrench[:3]))
        return forces


def _joint_model(joint):
    """Pinocchio's model of a joint."""
    axis = joint.axes[0] if len(joint.axes) else None
    match joint.kind:
        case "revolute" | "continuous":
            return pin.JointModelRevoluteUnaligned(axis)
        case "prismatic":
            return pin.JointModelPrismaticUnaligned(axis)
        case "helical":
            return pin.JointModelHelicalUnaligned(axis, joint.pitch)
        case "universal":  # one turn after the other
            turns = pin.JointModelComposite()
            for each in joint.axes:
                turns.addJoint(pin.JointModelRevoluteUnaligned(each))
            return turns
        case "spherical":
            return pin.JointModelSpherical()
        case "planar":
            return pin.JointModelPlanar()
        case "floating":
            return pin.JointModelFreeFlyer()
    raise ValueError(joint.kind)


def pinocchio_oracle(mechanism):
    """The mechanism's tree as a Pinocchio model, with armature and gravity."""
    return PinocchioOracle(mechanism)
