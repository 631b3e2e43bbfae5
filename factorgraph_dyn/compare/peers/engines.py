"""Pinocchio and MuJoCo read the same file, and answer in this package's coordinates.

Each engine reads the file with its own reader, or is handed the mechanism joint by joint, and gives the mass
matrix M and the forces h of

    M(q) a + h(q, v) = tau

for the open tree, loops and couplings left out, in our order of joints, with quaternions x, y, z, w
and body twists [omega; v]. Damping, friction and springs that an engine ignores are added here from
the mechanism; what MuJoCo has beyond a mechanism (contacts, fluids, gravity compensation, tendons)
is turned off.

MuJoCo's free joint has velocities v_theirs = X v_ours with X = diag(R; 1), so that

    a_theirs = X a_ours + X_dot v_ours,   M = X^T M_theirs X,   h = X^T (h_theirs + M_theirs X_dot v)
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from factorgraph_dyn import solve, spatial
from factorgraph_dyn.errors import InputError, SingularSystemError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.files.formats import format_of
from factorgraph_dyn.spatial import Floats

SINGULAR = 1e14  # condition numbers of M above it leave no digits
NEGLIGIBLE = 1e-6  # of the largest entry: smaller ones are measured against this
SWAP = np.array([3, 4, 5, 0, 1, 2])  # [omega; v] to [v; omega] and back


class Engine(Protocol):
    """Another engine with the tree of a mechanism."""

    name: str

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""


def engine_of(mechanism: Mechanism, path: Path) -> Engine:
    """The engine that fits a model file: Pinocchio for URDF, MuJoCo for MJCF.

    Raises:
        InputError: The engine is not installed, cannot read the file or reads other joints from it.
    """
    load = MujocoEngine.load if format_of(path) == "MJCF" else PinocchioEngine.load
    return load(mechanism.tree, path)


@dataclass
class PinocchioEngine:
    """A URDF file in Pinocchio."""

    name: str
    mechanism: Mechanism
    pin: Any
    model: Any
    data: Any
    order: Any  # where in our vectors each of Pinocchio's entries lies

    @classmethod
    def load(cls, mechanism: Mechanism, path: Path) -> PinocchioEngine:
        """Read a file; a floating base of the mechanism becomes Pinocchio's free flyer."""
        pin = _import("pinocchio")
        first = mechanism.topology.joints_out[mechanism.base]
        floats = len(first) == 1 and first[0].kind == "floating" and f'"{first[0].name}"' not in path.read_text()
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
        model.gravity.linear = np.asarray(mechanism.gravity)
        order = np.zeros(model.nv, dtype=int)
        for joint in mechanism.movable_joints:
            entries = np.arange(mechanism.nv)[mechanism.v_slice(joint.name)]
            start = model.joints[model.getJointId(joint.name)].idx_v
            order[start : start + joint.nv] = entries[SWAP] if joint.kind == "floating" else entries
        model.armature = _effect(mechanism, "armature")[order]
        return cls(f"pinocchio {pin.__version__}", mechanism, pin, model, model.createData(), order)

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""
        upper = np.triu(np.array(self.pin.crba(self.model, self.data, self._q(q))))
        M = np.empty_like(upper)
        M[np.ix_(self.order, self.order)] = upper + np.triu(upper, 1).T
        return M

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""
        h = np.empty(self.model.nv)
        h[self.order] = self.pin.nonLinearEffects(self.model, self.data, self._q(q), v[self.order])
        return h + _joint_forces(self.mechanism, q, v)

    def _q(self, q: Floats) -> Floats:
        theirs = np.array(self.pin.neutral(self.model))
        for joint in self.mechanism.movable_joints:
            values = q[self.mechanism.q_slice(joint.name)]
            model = self.model.joints[self.model.getJointId(joint.name)]
            if model.nq == joint.nq + 1:  # an angle as cosine and sine
                values = np.array([*values[:-1], np.cos(values[-1]), np.sin(values[-1])])
            theirs[model.idx_q : model.idx_q + model.nq] = values
        return theirs


@dataclass
class HandedEngine:
    """A mechanism that is handed to Pinocchio joint by joint, without a file."""

    name: str
    mechanism: Mechanism
    peer: Any

    @classmethod
    def build(cls, mechanism: Mechanism) -> HandedEngine:
        """Hand over the mechanism's tree."""
        pin = _import("pinocchio")
        from factorgraph_dyn.compare.peers.pinocchio import pinocchio_oracle

        return cls(f"pinocchio {pin.__version__}", mechanism.tree, pinocchio_oracle(mechanism.tree))

    def mass_matrix(self, q: Floats) -> Floats:
        """M at q, shape (nv, nv)."""
        M: Floats = self.peer.mass_matrix(q)
        return M

    def forces(self, q: Floats, v: Floats) -> Floats:
        """h at q, v, shape (nv,)."""
        h: Floats = self.peer.inverse_dynamics(q, v, np.zeros(self.mechanism.nv))
        return h + _joint_forces(self.mechanism, q, v)


@dataclass
class MujocoEngine:
    """An MJCF file in MuJoCo."""

    name: str
    mechanism: Mechanism
    mujoco: Any
    model: Any
    data: Any
    addresses: dict[str, tuple[int, int]]  # of each of our joints in qpos and qvel

    @classmethod
    def load(cls, mechanism: Mechanism, path: Path) -> MujocoEngine:
        """Read a file; joints without a name are matched by their order."""
        mujoco = _import("mujoco")
        try:
            model = mujoco.MjModel.from_xml_path(str(path))
        except (ValueError, RuntimeError) as error:
            raise InputError(f"MuJoCo cannot read {str(path)!r}: {error}") from None
        if model.njnt != len(mechanism.joint_names) or model.nv != mechanism.nv:
            raise InputError(
                f"MuJoCo reads {model.njnt} joints and {model.nv} freedoms from {str(path)!r}; found here: "
                f"{len(mechanism.joint_names)} and {mechanism.nv}."
            )
        addresses = {
            joint.name: (int(model.jnt_qposadr[i]), int(model.jnt_dofadr[i]))
            for i, joint in enumerate(mechanism.movable_joints)
        }
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
        return cls(f"mujoco {mujoco.__version__}", mechanism, mujoco, model, mujoco.MjData(model), addresses)

    def set_state(self, q: Floats, v: Floats) -> None:
        """Put MuJoCo's data to a state of ours."""
        for joint in self.mechanism.movable_joints:
            at_q = self.addresses[joint.name][0]
            values = q[self.mechanism.q_slice(joint.name)].copy()
            if joint.nq != joint.nv:
                values[-4:] = values[[-1, -4, -3, -2]]
            self.data.qpos[at_q : at_q + joint.nq] = values
        self.data.qvel[:] = self._X(q) @ v
        self.mujoco.mj_forward(self.model, self.data)

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
        return np.asarray(h + _effect(self.mechanism, "friction") * np.sign(v))

    def _M(self) -> Floats:
        M = np.zeros((self.model.nv, self.model.nv))
        try:
            self.mujoco.mj_fullM(self.model, self.data, M)
        except TypeError:  # before version 3.4 or so the arguments were others
            self.mujoco.mj_fullM(self.model, M, self.data.qM)
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


@dataclass(frozen=True)
class Agreement:
    """The largest relative differences from an engine over some states; nan where M is singular."""

    engine: str
    states: int
    mass_matrix: float
    inverse_mass_matrix: float
    inverse: float
    forward: float
    condition: float  # the largest condition number of M

    def within(self, tolerance: float, rounding: float = 1e-14) -> bool:
        """Whether all differences are below a tolerance, or what rounding makes of an ill-conditioned M."""
        solved = max(tolerance, rounding * self.condition)
        return not (
            max(self.mass_matrix, self.inverse) > tolerance
            or self.inverse_mass_matrix > solved
            or self.forward > solved
        )


def compare_with_engine(mechanism: Mechanism, engine: Engine, *, states: int = 20, seed: int = 0) -> Agreement:
    """The agreement of a mechanism's open tree with an engine on random states.

    Differences are relative entry by entry, so that heavy joints do not hide light ones:

        M_ij to sqrt(M_ii M_jj)     tau_i to (|M| |a| + |h|)_i     a_i to (|M^-1| |tau - h|)_i

    Where the engine's M is singular to working precision, or not positive definite because the file's
    inertias are not, forward dynamics and M^-1 are left out or measured against the largest entry.
    """
    tree = mechanism.tree
    rng = np.random.default_rng(seed)
    rows = [_compare_at_state(tree, engine, rng) for _ in range(states)]
    worst = [float(np.nanmax(c)) if not np.isnan(c).all() else np.nan for c in zip(*rows, strict=True)]
    return Agreement(engine.name, states, worst[0], worst[1], worst[2], worst[3], worst[4])


def _compare_at_state(tree: Mechanism, engine: Engine, rng: np.random.Generator) -> tuple[float, ...]:
    q, v = tree.random_state(rng)
    a, tau = rng.normal(size=(2, tree.nv))
    M, h = engine.mass_matrix(q), engine.forces(q, v)
    condition = float(np.linalg.cond(M)) if tree.nv else 1.0
    mass = _difference(solve.mass_matrix(tree, q), M, _matrix_scale(M))
    inverse = _difference(solve.inverse_dynamics(tree, q, v, a).tau, M @ a + h, np.abs(M) @ abs(a) + abs(h))
    if condition > SINGULAR:
        return mass, np.nan, inverse, np.nan, condition
    try:
        M_inverse = np.asarray(np.linalg.inv(M), dtype=np.float64)
        inverse_mass = _difference(solve.inverse_mass_matrix(tree, q), M_inverse, _matrix_scale(M_inverse))
        forward = _difference(
            solve.forward_dynamics(tree, q, v, tau).a,
            np.linalg.solve(M, tau - h),
            np.abs(M_inverse) @ np.abs(tau - h),
        )
    except SingularSystemError:
        return mass, np.nan, inverse, np.nan, condition
    return mass, inverse_mass, inverse, forward, condition


def _matrix_scale(M: Floats) -> Floats:
    """The natural size of each entry of a positive definite matrix; else that of the largest."""
    diagonal = np.diag(M)
    if (diagonal <= 0).any():
        return np.full(M.shape, np.abs(M).max(initial=0.0))
    return np.sqrt(np.outer(diagonal, diagonal))


def _difference(ours: Floats, theirs: Floats, scale: Floats) -> float:
    smallest = NEGLIGIBLE * float(scale.max(initial=0.0)) or 1.0  # rounding of what passes through
    return float((np.abs(ours - theirs) / np.maximum(scale, smallest)).max(initial=0.0))


def _joint_forces(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    """Damping, friction and springs of all joints, shape (nv,)."""
    forces = _effect(mechanism, "damping") * v + _effect(mechanism, "friction") * np.sign(v)
    for joint in mechanism.movable_joints:
        if joint.nq == joint.nv:
            away = q[mechanism.q_slice(joint.name)] - np.asarray(joint.rest)
            forces[mechanism.v_slice(joint.name)] += np.asarray(joint.stiffness) * away
    return forces


def _effect(mechanism: Mechanism, name: str) -> Floats:
    """One of the joints' per-freedom numbers for the whole mechanism, shape (nv,)."""
    return np.concatenate([np.zeros(0), *(np.asarray(getattr(j, name)) for j in mechanism.movable_joints)])


def _import(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError:
        package = {"pinocchio": "pin"}.get(name, name)
        raise InputError(f"Checking needs {name}, which is not installed: pip install {package}") from None
