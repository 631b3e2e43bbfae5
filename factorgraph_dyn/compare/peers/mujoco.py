"""MuJoCo, fed with a mechanism's tree, for timing: one call a state, as its users make it.

Importing this module needs MuJoCo (``pip install mujoco``). MuJoCo has hinges, slides, balls and free joints;
a mechanism with other kinds has no peer here.
"""

from __future__ import annotations

import mujoco
import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Link, Mechanism
from factorgraph_dyn.spatial import Floats

JOINTS = {
    "revolute": mujoco.mjtJoint.mjJNT_HINGE,
    "continuous": mujoco.mjtJoint.mjJNT_HINGE,
    "prismatic": mujoco.mjtJoint.mjJNT_SLIDE,
    "spherical": mujoco.mjtJoint.mjJNT_BALL,
    "floating": mujoco.mjtJoint.mjJNT_FREE,
}


class MujocoPeer:
    """A mechanism's tree in MuJoCo, at random states of its own."""

    def __init__(self, mechanism: Mechanism) -> None:
        self.model = _model(mechanism)
        self.data = mujoco.MjData(self.model)
        self.data.qvel[:] = 0.1

    def forward(self) -> None:
        """Accelerations from torques: mj_forward."""
        mujoco.mj_forward(self.model, self.data)

    def inverse(self) -> None:
        """Torques from accelerations: mj_inverse."""
        mujoco.mj_inverse(self.model, self.data)


def _model(mechanism: Mechanism) -> mujoco.MjModel:
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
    return spec.compile()


def _set_inertia(body: mujoco.MjsBody, link: Link) -> None:
    inertia: Floats = link.inertia
    body.explicitinertial = True
    body.mass = link.mass
    body.ipos = link.com
    body.fullinertia = inertia[(0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2)]
