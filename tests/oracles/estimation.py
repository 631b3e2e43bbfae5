"""Estimates by another road: what sensors read in extended precision, and least squares in sixty digits.

Nothing of the package's equations is used. The unknowns are

    z = [a; forces that hold loops; wrenches from outside W; mu]

with the equations of ``tests.stress.oracle`` (Kane's, in the world's axes). Loops that repeat each other are made to do
so exactly: J = C J_r with independent rows J_r, so that the forces act through mu = C^T lambda alone.
"""

from __future__ import annotations

import numpy as np

import factorgraph_dyn as fgd
from tests.oracles import least_squares
from tests.stress.kinematics import LD, array, cross, hat
from tests.stress.oracle import Oracle

S = fgd.sensors


class PlainEstimate:
    """What estimates should be: ``names``, and the ``mean`` (n,) and ``covariance`` (n, n) of their entries."""

    def __init__(self, mechanism, q, v, sensors):
        self.mechanism, self.state, self.here = mechanism, (q, v), Oracle(mechanism, q, v)
        self.frames = [sensor.frame for sensor in sensors if isinstance(sensor, S.ExternalWrench)]
        self.nv, self.forces = mechanism.nv, len(self.here.J)
        self.kept = least_squares.independent_rows(self.here.J.astype(float)) if self.forces else []
        self.outside = self.nv + self.forces
        self.mu = self.outside + 6 * len(self.frames)
        self.size = self.mu + len(self.kept)
        self.rows = self._variables()
        results = {name: rows for name, rows in self.rows.items() if name not in ("closure", "motors")}
        self.names = list(results)
        P, p = _below([self.rows["closure"], self.rows["motors"]])
        H, y, Sigma = self._readings(sensors)
        X, x = _below(list(results.values()))
        mean, covariance = least_squares.solve_for(P, -p, H, y, Sigma, X)
        self.mean, self.covariance = mean + x.astype(float), covariance

    def _variables(self):
        """Every variable as rows over z and an offset."""
        here, nv = self.here, self.nv
        found = {"a": (self._wide(np.eye(nv), 0), np.zeros(nv, dtype=LD))}
        J = here.J[self.kept]
        tau = self._wide(here.M, 0) - self._wide(J.T, self.mu)
        F = {name: [self._moved(L), c] for name, (L, c) in self._wrenches(here).items()}
        for k, frame in enumerate(self.frames):
            for i, pushed in enumerate(self._pushed(frame)):
                column = self.outside + 6 * k + i
                tau[:, column] = pushed.h - here.h
                for name, (_, c) in self._wrenches(pushed).items():
                    F[name][0][:, column] = c - F[name][1]
            found[f"W[{frame}]"] = self._wide(np.eye(6), self.outside + 6 * k), np.zeros(6, dtype=LD)
        found["tau"] = tau, here.h
        found |= {f"F[{name}]": tuple(rows) for name, rows in F.items()}
        found |= {f"A[{joint.child}]": self._spatial(joint.child) for joint in self.mechanism.joints}
        passive = [k for joint in self._passive for k in range(nv)[self.mechanism.v_slices[joint.name]]]
        found["motors"] = tau[passive], here.h[passive]
        closure = np.vstack([self._wide(J, 0), self._through() - self._wide(np.eye(len(self.kept)), self.mu)])
        found["closure"] = closure, np.append(-here.gamma[self.kept], np.zeros(len(self.kept), dtype=LD))
        return found

    @property
    def _passive(self):
        return [joint for joint in self.mechanism.movable_joints if joint.name not in self.mechanism.motors]

    def _through(self):
        """C^T lambda over z."""
        J, own = self.here.J, self.here.J[self.kept]
        C, inverse = np.zeros((self.forces, len(own)), dtype=LD), np.linalg.pinv(own.astype(float))
        for _ in range(4):  # the pseudo-inverse is of double precision
            C += (J - C @ own) @ inverse
        C[np.abs(C) < least_squares.ROUNDING * np.abs(C).max(initial=0.0)] = 0.0
        C[self.kept] = np.eye(len(own))
        return self._wide(C.T, self.nv)

    def _wide(self, block, first):
        rows = np.zeros((len(block), self.size), dtype=LD)
        rows[:, first : first + block.shape[1]] = block
        return rows

    def _wrenches(self, oracle):
        """What joints and loops pass on, linear in (a, tau, lambda), and for zeros."""
        nothing = np.zeros(self.nv)
        answered = oracle.ask(nothing, nothing, nothing == 0, nothing != 0)
        return {name: (L, c) for name, (L, c, _) in answered._wrenches.items()}

    def _moved(self, L):
        return self._wide(L[:, : self.nv], 0) + self._wide(L[:, 2 * self.nv :], self.nv)

    def _pushed(self, frame):
        """The mechanism with each unit of a wrench at a frame."""
        link, T = self.mechanism.place(frame)
        R, p = array(T)[:3, :3], array(T)[:3, 3]
        units = np.block([[R, hat(p) @ R], [np.zeros((3, 3), dtype=LD), R]])
        return [Oracle(self.mechanism, *self.state, {link: unit}) for unit in units.T]

    def _motion(self, place):
        """Angular and proper linear acceleration of a place's origin in its axes: rows and offsets."""
        link, T = self.mechanism.place(place)
        body, T = self.here.bodies[link], array(T)
        R, r = body.R @ T[:3, :3], body.R @ T[:3, 3]
        linear = body.beta - hat(r) @ body.alpha + cross(body.w, cross(body.w, r)) - self.here.gravity
        turns = self._wide(R.T @ body.W, 0), R.T @ body.alpha
        return turns, (self._wide(R.T @ (body.U - hat(r) @ body.W), 0), R.T @ linear)

    def _spatial(self, link):
        turns, (rows, offset) = self._motion(link)
        body = self.here.bodies[link]
        offset = offset - cross(body.R.T @ body.w, body.R.T @ body.u)
        return np.vstack([turns[0], rows]), np.append(turns[1], offset)

    def _readings(self, sensors):
        read = [self._reading(sensor) for sensor in sensors]
        values = np.concatenate([array(np.atleast_1d(sensor.value)) for sensor in sensors])
        H, offset = _below(read)
        Sigma, start = np.zeros((len(values), len(values)), dtype=LD), 0
        for sensor, (rows, _) in zip(sensors, read, strict=True):
            sigma, here = array(sensor.sigma), slice(start, start + len(rows))
            Sigma[here, here] = sigma if sigma.ndim == 2 else np.diag(np.broadcast_to(sigma, (len(rows),)) ** 2)
            start += len(rows)
        return H, values - offset, Sigma

    def _reading(self, sensor):
        if isinstance(sensor, S.Torque | S.Acceleration):
            rows, offset = self.rows["tau" if isinstance(sensor, S.Torque) else "a"]
            here = self.mechanism.v_slices[sensor.joint]
            return rows[here], offset[here]
        if isinstance(sensor, S.ForceTorque | S.ExternalWrench):
            return self.rows[f"{'F' if isinstance(sensor, S.ForceTorque) else 'W'}[{sensor.place}]"]
        return self._motion(sensor.frame)[isinstance(sensor, S.Accelerometer)]


def _below(parts):
    """Rows and offsets below each other."""
    return np.vstack([rows for rows, _ in parts]), np.concatenate([offset for _, offset in parts])
