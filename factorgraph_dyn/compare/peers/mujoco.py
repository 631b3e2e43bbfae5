"""MuJoCo, which reads an MJCF file or is handed a mechanism, and answers in this package's conventions.

Importing this module needs MuJoCo (``pip install mujoco``). MuJoCo has hinges, slides, balls and free joints;
a mechanism with other kinds cannot be handed over. What MuJoCo has beyond a mechanism (contacts, fluids, gravity
compensation, tendons) is turned off.

Its free joint has velocities v_theirs = X v_ours with X = diag(R; 1), so that

    a_theirs = X a_ours + X_dot v_ours,   M = X^T M_theirs X,   h = X^T (h_theirs + M_theirs X_dot v)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import mujoco
import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.compare.peers.engines import Call, joint_effect
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Link, Loop, Mechanism
from factorgraph_dyn.spatial import Floats

CALLS = {"forward": mujoco.mj_forward, "inverse": mujoco.mj_inverse}
JOINTS = {
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "continuous": mujoco.mjtJoint.mjJNT_HINGE,
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
    "spherical": mujoco.mjtJoint.mjJNT_BALL,
    "floating": mujoco.mjtJoint.mjJNT_FREE,
}


@dataclass
class MujocoEngine:
    """A mechanism's tree in MuJoCo.

    Attributes:
        name: The engine and its version.
        mechanism: The tree.
        model, data: MuJoCo's.
        addresses: Of each of our joints in qpos and qvel.
    """

    name: str
    mechanism: Mechanism
    model: mujoco.MjModel
    data: mujoco.MjData
    addresses: dict[str, tuple[int, int]]

    @classmethod
    def load(cls, mechanism: Mechanism, path: Path) -> MujocoEngine:
        """Read a file; joints without a name are matched by their order."""
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except (ValueError, RuntimeError) as error:
            raise InputError(f"MuJoCo cannot read {str(path)!r}: {error}") from None
        if model.njnt != len(mechanism.joint_names) or model.nv != mechanism.nv:
            raise InputError(
                f"MuJoCo reads {model.njnt} joints and {model.nv} freedoms from {str(path)!r}; found here: "
                f"{len(mechanism.joint_names)} and {mechanism.nv}."
            )
        for i, joint in enumerate(mechanism.movable_joints):
            theirs = mujoco.mj_id2name(model, mujoco.mjtObj.mjOBJ_JOINT, i)
            if theirs and theirs != joint.name:
                raise InputError(f"MuJoCo has joint {theirs!r} where {joint.name!r} is expected.")
        model.opt.density = model.opt.viscosity = 0.0
        model.opt.wind[:] = 0.0
        for name in ("body_gravcomp", "tendon_stiffness"):
            getattr(model, name)[:] = 0.0
        for i in range(model.ntendon):
            over_joint = model.wrap_type[model.tendon_adr[i]] == mujoco.mjtWrap.mjWRAP_JOINT
            if not over_joint or model.tendon_num[i] != 1:  # such tendons are noted and left out
                model.tendon_damping[i] = model.tendon_armature[i] = 0.0
        for i, joint in enumerate(mechanism.movable_joints):
            if joint.nq != joint.nv:
                model.jnt_stiffness[i] = 0.0  # such springs are noted and left out
        return cls._of(mechanism, model, range(model.njnt))

    @classmethod
    def build(cls, mechanism: Mechanism, *, soft_loops: bool = False) -> MujocoEngine:
        """Hand over a mechanism joint by joint, without a file.

        Args:
            mechanism: Links, joints and gravity; couplings are left out.
            soft_loops: Tie loops that turn about a point by MuJoCo's ``connect``, which is a stiff spring: for times,
                not for numbers. By default loops are left out.

        Raises:
            InputError: A kind of joint or loop that MuJoCo does not have.
        """
        model = _model(mechanism, mechanism.loops if soft_loops else ())
        return cls._of(mechanism, model, [model.joint(name).id for name in mechanism.joint_names])

    @classmethod
    def _of(cls, mechanism: Mechanism, model: mujoco.MjModel, ids: Sequence[int]) -> MujocoEngine:
        addresses = {
            name: (int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i]))
            for name, i in zip(mechanism.joint_names, ids, strict=True)
        }
        return cls(f"mujoco {mujoco.__version__}", mechanism, model, mujoco.MjData(model), addresses)

    def call(self, problem: str) -> Call:
        """Forward or inverse dynamics as users call it, one state."""
        self.data.qvel[:] = 0.1
        return partial(CALLS[problem], self.model, self.data)

    def set_state(self, q: Floats, v: Floats) -> None:
        """Put MuJoCo's data to a state of ours."""
        for joint in self.mechanism.movable_joints:
            at_q = self.addresses[joint.name][0]
            values = q[self.mechanism.q_slice(joint.name)].copy()
            if joint.nq != joint.nv:
                values[-4:] = values[[-1, -4, -3, -2]]
            self.data.qpos[at_q : at_q + joint.nq] = values
        self.data.qvel[:] = self._X(q) @ v
        mujoco.mj_forward(self.model, self.data)

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""
        self.set_state(q, np.zeros(self.model.nv))
        X = self._X(q)
        M: Floats = X.T @ self._M() @ X
        return M

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""
        self.set_state(q, v)
        theirs = np.array(self.data.qfrc_bias) - np.array(self.data.qfrc_passive)
        # our armature acts on the body twist itself, theirs on the velocity in the world
        inertia = self._M() - np.diag(self.model.dof_armature)
        h = self._X(q).T @ (theirs + inertia @ self._X_dot_v(q, v))
        return np.asarray(h + joint_effect(self.mechanism, "friction") * np.sign(v))

    def accelerations(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        """a under tau by factors of M, as MuJoCo solves, shape (nv,)."""
        return np.asarray(np.linalg.solve(self.mass_matrix(q), tau - self.forces(q, v)))

    def _M(self) -> Floats:
        M = np.zeros((self.model.nv, self.model.nv))
        try:
            mujoco.mj_fullM(self.model, self.data, M)
        except TypeError:  # before version 3.4 or so the arguments were others
            mujoco.mj_fullM(self.model, M, self.data.qM)
        return M

    def _X(self, q: Floats) -> Floats:
        X = np.zeros((self.model.nv, self.model.nv))
        for joint in self.mechanism.movable_joints:
            start, ours = self.addresses[joint.name][1], self.mechanism.v_slice(joint.name)
            block = np.eye(joint.nv)
            if joint.kind == "floating":
                R = spatial.rotation_of_quaternion(q[self.mechanism.q_slice(joint.name)][3:])
                block = np.block([[np.zeros((3, 3)), R], [np.eye(3), np.zeros((3, 3))]])
            X[start : start + joint.nv, ours] = block
        return X

    def _X_dot_v(self, q: Floats, v: Floats) -> Floats:
        rate = np.zeros(self.model.nv)
        for joint in self.mechanism.movable_joints:
            if joint.kind == "floating":
                start, own = self.addresses[joint.name][1], v[self.mechanism.v_slice(joint.name)]
                R = spatial.rotation_of_quaternion(q[self.mechanism.q_slice(joint.name)][3:])
                rate[start : start + 3] = R @ np.cross(own[:3], own[3:])
        return rate


def _model(mechanism: Mechanism, loops: Sequence[Loop]) -> mujoco.MjModel:
    spec = mujoco.MjSpec()
    spec.option.gravity = np.array(mechanism.gravity)
    spec.compiler.boundmass = 1e-6  # MuJoCo refuses moving bodies without mass
    spec.compiler.boundinertia = 1e-9
    spec.compiler.balanceinertia = True  # and inertias that no body can have
    bodies = {mechanism.base: spec.worldbody}
    for joint in mechanism.topology.outward:
        T = joint.placement
        x, y, z, w = spatial.quaternion_of_rotation(T[:3, :3])
        body = bodies[joint.parent].add_body(name=joint.child, pos=T[:3, 3], quat=[w, x, y, z])
        bodies[joint.child] = body
        _set_inertia(body, mechanism.link_by_name[joint.child])
        if not joint.nv:
            continue
        if joint.kind not in JOINTS or (joint.kind == "floating" and joint.parent != mechanism.base):
            raise InputError(f"MuJoCo has no {joint.kind} joint at {joint.name!r}; joints: {', '.join(JOINTS)}.")
        added = body.add_joint(name=joint.name, type=JOINTS[joint.kind], axis=joint.axes[0])
        if joint.kind != "floating":
            added.armature = float(joint.armature[0])
    for loop in loops:
        if loop.kind not in ("revolute", "spherical"):
            raise InputError(f"MuJoCo's connect ties a point, not the {loop.kind} loop {loop.name!r}.")
        tie = spec.add_equality(name=loop.name, type=mujoco.mjtEq.mjEQ_CONNECT, objtype=mujoco.mjtObj.mjOBJ_BODY)
        tie.name1, tie.name2 = loop.predecessor, loop.successor
        tie.data[:3] = loop.predecessor_placement[:3, 3]
    return spec.compile()


def _set_inertia(body: mujoco.MjsBody, link: Link) -> None:
    inertia: Floats = link.inertia
    body.explicitinertial = True
    body.mass = link.mass
    body.ipos = link.com
    body.fullinertia = inertia[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]


ADAPTER = MujocoEngine
