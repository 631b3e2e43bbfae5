"""Pinocchio, which reads a URDF file or is handed a mechanism, and answers in this package's conventions.

Importing this module needs Pinocchio (``pip install pin``). Pinocchio's spatial vectors put the linear part first, its
planar joint has four coordinates and lies in its own x-y plane, and it ignores damping and friction; armature
and gravity are handed over.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pinocchio as pin

from factorgraph_dyn.compare.peers.engines import Call, joint_effect, joint_losses
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.model.files.xml_tree import read_bytes
from factorgraph_dyn.spatial import Floats, perpendicular_axes

SWAP = np.array([3, 4, 5, 0, 1, 2])  # [omega; v] to [v; omega] and back
CALLS = {"inverse": (pin.rneaInParallel, pin.rnea), "forward": (pin.abaInParallel, pin.aba)}
REVOLUTE = (pin.JointModelRX, pin.JointModelRY, pin.JointModelRZ, pin.JointModelRevoluteUnaligned)
PRISMATIC = (pin.JointModelPX, pin.JointModelPY, pin.JointModelPZ, pin.JointModelPrismaticUnaligned)
JOINTS: dict[str, Callable[[Joint], Any]] = {
    "revolute": lambda joint: _about(joint, REVOLUTE),
    "continuous": lambda joint: _about(joint, REVOLUTE),
    "prismatic": lambda joint: _about(joint, PRISMATIC),
    "helical": lambda joint: pin.JointModelHelicalUnaligned(joint.axes[0], joint.pitch),
    "universal": lambda joint: pin.JointModelUniversal(joint.axes[0], joint.axes[1]),
    "spherical": lambda joint: pin.JointModelSpherical(),
    "planar": lambda joint: pin.JointModelPlanar(),
    "floating": lambda joint: pin.JointModelFreeFlyer(),
}


@dataclass
class PinocchioEngine:
    """A mechanism's tree in Pinocchio.

    Attributes:
        name: The engine and its version.
        mechanism: The tree.
        model, data: Pinocchio's.
        order: Where in our vectors each of Pinocchio's entries lies.
    """

    name: str
    mechanism: Mechanism
    model: pin.Model
    data: pin.Data
    order: npt.NDArray[np.int64]

    @classmethod
    def load(cls, mechanism: Mechanism, path: Path) -> PinocchioEngine:
        """Read a file; a floating base of the mechanism becomes Pinocchio's free flyer."""
        first = mechanism.topology.joints_out[mechanism.base]
        text = read_bytes(path).decode(errors="replace")
        floats = len(first) == 1 and first[0].kind == "floating" and f'"{first[0].name}"' not in text
        try:
            if floats:
                model = pin.buildModelFromUrdf(str(path), pin.JointModelFreeFlyer(), first[0].name)
            else:
                model = pin.buildModelFromUrdf(str(path))
        except (ValueError, RuntimeError) as error:
            raise InputError(f"Pinocchio cannot read {str(path)!r}: {error}") from None
        theirs = [name for name in model.names if name != "universe"]
        if sorted(theirs) != sorted(mechanism.joint_names):  # it reads a joint twice where a link has two parents
            raise InputError(
                f"Pinocchio reads other movable joints from {str(path)!r}: {', '.join(theirs[:40])}; found here: "
                f"{', '.join(mechanism.joint_names[:40])}."
            )
        return cls._of(mechanism, model)

    @classmethod
    def build(cls, mechanism: Mechanism) -> PinocchioEngine:
        """Hand over a mechanism joint by joint, without a file.

        Raises:
            InputError: A kind of joint that Pinocchio does not have.
        """
        model = pin.Model()
        frames = {mechanism.base: (0, pin.SE3.Identity())}  # of each link: Pinocchio's joint, the pose in its frame
        for joint in mechanism.topology.outward:
            parent, T_parent_link = frames[joint.parent]
            placement = T_parent_link * pin.SE3(np.array(joint.placement))
            if not joint.nv:
                frames[joint.child] = (parent, placement)
            else:
                check_name(joint.kind, JOINTS, "joint kind", "Pinocchio", InputError)
                T_joint_frame = _turned(joint)
                index = model.addJoint(parent, JOINTS[joint.kind](joint), placement * T_joint_frame, joint.name)
                frames[joint.child] = (index, T_joint_frame.inverse())
            link = mechanism.link_by_name[joint.child]
            inertia = pin.Inertia(float(link.mass), np.array(link.com), np.array(link.inertia))
            model.appendBodyToJoint(frames[joint.child][0], inertia, frames[joint.child][1])
        return cls._of(mechanism, model)

    @classmethod
    def _of(cls, mechanism: Mechanism, model: pin.Model) -> PinocchioEngine:
        model.gravity.linear = np.asarray(mechanism.gravity)
        order = np.zeros(model.nv, dtype=int)
        for joint in mechanism.movable_joints:
            entries = np.arange(mechanism.nv)[mechanism.v_slice(joint.name)]
            start = model.joints[model.getJointId(joint.name)].idx_v
            order[start : start + joint.nv] = entries[SWAP] if joint.kind == "floating" else entries
        model.armature = joint_effect(mechanism, "armature")[order]
        return cls(f"pinocchio {pin.__version__}", mechanism, model, model.createData(), order)

    def calls(self, problem: str, batch: Sequence[Floats]) -> tuple[Call, Call]:
        """Forward or inverse dynamics as users call it: its own loop over a batch, and one state of it."""
        in_loop, one_call = CALLS[problem]
        columns = self.columns(batch)
        one, pool = [np.ascontiguousarray(values[:, 0]) for values in columns], pin.ModelPool(self.model, 1)
        return partial(in_loop, 1, pool, *columns), partial(one_call, self.model, self.data, *one)

    def columns(self, batch: Sequence[Floats]) -> list[Floats]:
        """Configurations and vectors of a batch in Pinocchio's order, a state a column."""
        columns = [np.asfortranarray(np.array([self._q(q) for q in batch[0]]).T)]
        return columns + [np.asfortranarray(values[:, self.order].T) for values in batch[1:]]

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""
        upper = np.triu(np.array(pin.crba(self.model, self.data, self._q(q))))
        M = np.empty_like(upper)
        M[np.ix_(self.order, self.order)] = upper + np.triu(upper, 1).T
        return M

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""
        h = np.empty(self.model.nv)
        h[self.order] = pin.nonLinearEffects(self.model, self.data, self._q(q), v[self.order])
        return h + joint_losses(self.mechanism, q, v)

    def accelerations(self, q: Floats, v: Floats, tau: Floats) -> Floats:
        """a under tau by articulated bodies, shape (nv,)."""
        a = np.empty(self.model.nv)
        driving = (tau - joint_losses(self.mechanism, q, v))[self.order]
        a[self.order] = pin.aba(self.model, self.data, self._q(q), v[self.order], driving)
        return a

    def _q(self, q: Floats) -> Floats:
        theirs = np.array(pin.neutral(self.model))
        for joint in self.mechanism.movable_joints:
            values = q[self.mechanism.q_slice(joint.name)]
            model = self.model.joints[self.model.getJointId(joint.name)]
            if model.nq == joint.nq + 1:  # an angle as cosine and sine
                values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
            theirs[model.idx_q : model.idx_q + model.nq] = values
        return theirs


def _about(joint: Joint, models: Sequence[Any]) -> Any:
    """The joint as Pinocchio's own readers make it: about x, y or z where it is, else about any axis."""
    axis = np.asarray(joint.axes[0])
    for unit, model in zip(np.eye(3), models, strict=False):
        if np.array_equal(axis, unit):
            return model()
    return models[-1](axis)


def _turned(joint: Joint) -> pin.SE3:
    """The pose of Pinocchio's joint frame in ours: planar joints lie in its x-y plane."""
    if joint.kind != "planar":
        return pin.SE3.Identity()
    axis = joint.axes[0]
    return pin.SE3(np.column_stack([*perpendicular_axes(axis), axis]), np.zeros(3))


ADAPTER = PinocchioEngine
