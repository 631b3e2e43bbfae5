"""The dense answers that closed loops are compared with: KKT on Pinocchio's M and h, and Pinocchio itself."""

from __future__ import annotations

import numpy as np
import pinocchio as pin

import factorgraph_dyn as fgd
from factorgraph_dyn.motion import closure
from factorgraph_dyn.motion.kinematics import integrate
from tests.oracles.engines import pinocchio_oracle

ZERO = 1e-9  # singular values below this share of the largest count as zero


class DenseOracle:
    """[M -J^T; J 0] [a; lambda] = [tau - h; -Jdot v], by an SVD; M and h are Pinocchio's."""

    def __init__(self, mechanism, q, v):
        engine = pinocchio_oracle(mechanism)
        self.M = engine.mass_matrix(q)
        # Pinocchio leaves damping, friction and springs out; the bias has its own tests.
        lossless = all(joint.is_lossless for joint in mechanism.joints)
        engine_bias = engine.inverse_dynamics(q, v, np.zeros(mechanism.nv))
        self.h = engine_bias if lossless else fgd.bias(mechanism, q, v)
        found = fgd.constraints(mechanism, q, v)
        self.J, self.Jdot_v = found.J, found.Jdot_v

    def accelerations(self, tau):
        rows = len(self.J)
        K = np.block([[self.M, -self.J.T], [self.J, np.zeros((rows, rows))]])
        x = np.linalg.lstsq(K, np.append(tau - self.h, -self.Jdot_v), rcond=ZERO)[0]
        return x[: len(self.M)]

    def torques(self, a, sought):
        """Torques of the sought entries (of least norm), the others zero."""
        B = np.eye(len(self.M))[:, sought]
        x, *_ = np.linalg.lstsq(np.hstack([B, self.J.T]), self.M @ a + self.h, rcond=ZERO)
        tau = np.zeros(len(self.M))
        tau[sought] = x[: B.shape[1]]
        return tau

    def least_torques(self, a, sought, weights):
        """Torques with least weighted squares among those that cause the motion."""
        Z = null_space(self.J)
        scaled = Z[sought].T / weights  # Z^T B tau = Z^T (M a + h)
        tau = np.zeros(len(self.M))
        tau[sought] = np.linalg.lstsq(scaled, Z.T @ (self.M @ a + self.h), rcond=ZERO)[0] / weights
        return tau


def null_space(matrix):
    values, rows = np.linalg.svd(matrix)[1:]
    return rows[int((values > ZERO * values[0]).sum()) :].T


def rate_by_differences(mechanism, q, v, step=1e-5):
    """Jdot v from two neighbouring configurations."""

    def at(sign):
        there = integrate(mechanism, q, v, sign * step)
        return closure.stacked_jacobian(mechanism, closure.constraints(mechanism, there)) @ v

    return (at(1) - at(-1)) / (2 * step)


def pinocchio_accelerations(mechanism, q, v, tau):
    """Pinocchio's constraint dynamics, for fixed and spherical loops."""
    engine = pinocchio_oracle(mechanism)
    models = []
    for loop in mechanism.loops:
        kind = {"fixed": pin.ContactType.CONTACT_6D, "spherical": pin.ContactType.CONTACT_3D}[loop.kind]
        sides = []
        for link, placement in (
            (loop.predecessor, loop.predecessor_placement),
            (loop.successor, loop.successor_placement),
        ):
            joint, T_joint_link = engine.link_frames[link]
            sides += [joint, T_joint_link * pin.SE3(np.array(placement))]
        models.append(pin.RigidConstraintModel(kind, engine.model, *sides, pin.ReferenceFrame.LOCAL))
    datas = [model.createData() for model in models]
    settings = pin.ProximalSettings(1e-14, 1e-10, 50)
    try:
        pin.initConstraintDynamics(engine.model, engine.data, models, datas)
    except Exception:
        pin.initConstraintDynamics(engine.model, engine.data, models)
    a = pin.constraintDynamics(
        engine.model, engine.data, engine.q(q), engine.v(v), engine.v(tau), models, datas, settings
    )
    return engine.back(np.array(a))


def relative(found, expected):
    return float(np.abs(found - expected).max() / max(1.0, np.abs(expected).max()))


def free_entries(graph):
    """Entries of the graph's variables that its equations leave free, by an SVD of all of them."""
    A, _ = graph.dense()
    A = A / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    N = null_space(A)
    free = {}
    for variable in graph.variables:
        moved = np.flatnonzero(np.abs(N[graph.column_slices[variable]]).max(axis=1, initial=0.0) > 1e-7)
        if len(moved):
            free[str(variable)] = tuple(int(i) for i in moved)
    return free
