"""What sensors read, as rows over free unknowns z at many states, in plain floats.

    z = [a; wrenches from outside W; forces that hold loops and couplings]

By Newton and Euler at many states (``proof.newton_euler``), which shares nothing with equations on a tape; sensors are
read anew here, too, by what they are:

    accelerometer     R^T (A_linear + alpha x p + w x (v + w x p))      at p, in axes R of the link

Work is done once a kernel.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import cross, inverse_adjoints, norms, shifted_sizes, skews
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.equations import sensors as kinds
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.equations.posterior import Evidence, joined
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.together import outside_frames
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.spatial import Floats

LEAST_CLOSURE = (
    1e-6  # of what a loop constrains where everything moves: terms of its rows are no less, if only rounding
)

_OF_LINKS = ("A", "F", "W")  # kinds with a size of their angular part and one of their linear part

Part = tuple[str, Floats]  # a variable by name, and what it is multiplied by, shape (size, n) or (states, size, n)
Plain = tuple[list[Part], Floats]
Reader = Callable[[ManyStates, Any], Plain]


class PlainRows:
    """The unknowns of a problem, and what is said of them, at many states.

    Attributes:
        here: The mechanism at the states.
        offset: Every variable by name for z = 0, shape (states, 1, size).
        columns: The same for units of z, without gravity and velocities, shape (states, k, size).
        sizes: Of the terms that the columns are summed from, likewise; one of the angular part and one of the linear
            part of wrenches and accelerations of links.
        offset_sizes: The same of offset.
        units: Of z, shape (k,).
    """

    def __init__(self, here: ManyStates, problem: Problem) -> None:
        self.here, self.problem, mechanism = here, problem, here.mechanism
        self.frames = outside_frames(problem.measurements)
        self.forces = here.closure_jacobian()[0].shape[1]
        own = natural(mechanism)
        held = np.full(self.forces, own.work)
        self.units = np.concatenate([own.v, *(own.wrench for _ in self.frames), held])
        self.offset, self.offset_sizes = self._variables(np.zeros((here.states, 1, len(self.units))), still=False)
        unit = np.broadcast_to(np.diag(self.units), (here.states, len(self.units), len(self.units)))
        self.columns, self.sizes = self._variables(unit, still=True)

    def _variables(self, z: Floats, *, still: bool) -> tuple[dict[str, Floats], dict[str, Floats]]:
        """Every variable for columns of z, by name, what closure misses as "closure"; and sizes of terms."""
        here, mechanism, nv = self.here, self.here.mechanism, self.here.mechanism.nv
        a, held = z[..., :nv], z[..., len(self.units) - self.forces :]
        found, sizes = {"a": a}, {"a": np.abs(a)}
        loads, wrenches = here.loop_loads(held, np.abs(held))
        for k, frame in enumerate(self.frames):
            W = z[..., nv + 6 * k : nv + 6 * k + 6]
            link, T = mechanism.place(frame)
            loads.add(link, W @ inverse_adjoints(np.asarray(T)))
            found[f"W[{frame}]"], sizes[f"W[{frame}]"] = W, norms(W)
        response = here.response(a, still=still, loads=loads)
        coupled = self._coupled(held)
        found["tau"] = response.tau - coupled
        found["closure"] = response.missed
        found |= {f"A[{link}]": A for link, A in response.A.items()}
        found |= {f"F[{joint}]": F for joint, F in response.F.items()}
        found |= {f"F[{loop}]": F for loop, (F, _) in wrenches.items()}
        sizes |= {"tau": response.tau_size + np.abs(coupled), "closure": response.missed_size + self._faint()}
        sizes |= {f"A[{link}]": size for link, size in response.A_size.items()}
        sizes |= {f"F[{joint}]": size for joint, size in response.F_size.items()}
        sizes |= {f"F[{loop}]": size for loop, (_, size) in wrenches.items()}
        return found, sizes

    def _faint(self) -> Floats:
        """The least sizes of terms of closure, (states, 1, rows): those of a loop may all be rounding."""
        sizes = [self.here.unit @ np.abs(C) for C in self.here.directions.values()]
        sizes += [np.zeros((self.here.states, len(self.here.mechanism.couplings)))]
        return LEAST_CLOSURE * np.concatenate(sizes, axis=-1)[:, None]

    def _coupled(self, held: Floats) -> Floats:
        """The torques of couplings, which come after the loops."""
        mechanism = self.here.mechanism
        torques = np.zeros((*held.shape[:2], mechanism.nv))
        first = self.forces - len(mechanism.couplings)
        for k, coupling in enumerate(mechanism.couplings):
            torques[..., mechanism.v_slices[coupling.joint]] += held[..., first + k, None]
            torques[..., mechanism.v_slices[coupling.source]] -= coupling.ratio * held[..., first + k, None]
        return torques

    def named(self, variables: dict[str, Floats], name: str) -> Floats:
        """A variable, or that of one joint, shape (states, columns, size); A is of any link or frame by its name."""
        kind, owner = split_name(name)
        if kind in ("a", "tau") and owner:
            return variables[kind][..., self.here.mechanism.v_slices[owner]]
        if kind == "A":
            link, T = self.here.mechanism.place(owner)
            return variables[f"A[{link}]"] @ inverse_adjoints(np.asarray(T)).T
        return variables[name]

    def sizes_at(self, name: str, z: Floats, *, whole: bool = True) -> Floats:
        """Sizes of the terms that a variable is summed from at z of every state, shape (states, size).

        Those of the whole, or of what follows z alone.
        """
        kind, owner = split_name(name)
        link, placement = self.here.mechanism.place(owner) if kind == "A" else (owner, np.eye(4))
        known = f"{kind}[{link}]" if kind in _OF_LINKS else kind
        size = np.einsum("skn,sk->sn", self.sizes[known], np.abs(z)) + (self.offset_sizes[known][:, 0] if whole else 0)
        if kind == "A":
            size = shifted_sizes(size, np.asarray(np.linalg.norm(np.asarray(placement)[:3, 3])))
        if kind in _OF_LINKS:
            return np.repeat(size, 3, axis=-1)
        return np.asarray(size[:, self.here.mechanism.v_slices[owner]] if owner else size)

    def row_sizes(self, z: Floats) -> Floats:
        """Sizes of the terms that rows of ``evidence`` are summed from at z of every state, shape (states, rows)."""
        sizes = [self.sizes_at("closure", z), self.sizes_at("tau", z)[:, self.problem.known_tau]]
        for sensor in self.problem.measurements:
            parts, expected = self._parts(sensor)
            read = [(np.abs(rows) @ self.sizes_at(name, z)[..., None])[..., 0] for name, rows in parts]
            says = np.isfinite(sensor.noise(self.here.mechanism).s)
            sizes.append(sum(read, np.abs(expected))[:, says])
        return np.concatenate(sizes, axis=1)

    def evidence(self, state: int, values: Floats) -> Evidence:
        """What is said of z at a state: by the mechanism, and by sensors whose readings are given."""
        parts = [self.exact(state)]
        start = 0
        for sensor in self.problem.measurements:
            size = sensor.size(self.here.mechanism)
            parts.append(self._said(state, sensor, values[start : start + size]))
            start += size
        return joined(parts, len(self.units))

    def exact(self, state: int) -> Evidence:
        """What the mechanism says of z at a state: closure, and joints without a motor."""
        closure = self._exact(state, "closure", np.ones(self.forces, dtype=bool))
        return joined([closure, self._exact(state, "tau", self.problem.known_tau)], len(self.units))

    def readings(self, z: Floats) -> Floats:
        """What all sensors read without noise, for z at every state, shape (states, readings)."""
        found = []
        for sensor in self.problem.measurements:
            K, expected, _ = self._reading(sensor)
            found.append(expected + np.einsum("smk,sk->sm", K, z))
        return np.concatenate(found, axis=1)

    def _exact(self, state: int, name: str, entries: Mask) -> Evidence:
        K, y = self.columns[name][state].T[entries], -self.offset[name][state, 0][entries]
        terms = np.linalg.norm(self.sizes[name][state].T[entries], axis=1)
        sizes = self.offset_sizes[name][state, 0][entries]
        return Evidence(K, y, np.zeros((len(y), 0)), terms, sizes, (name,) * len(y))

    def _said(self, state: int, sensor: Sensor, values: Floats) -> Evidence:
        K, expected, terms = (part[state] for part in self._reading(sensor))
        noise = sensor.noise(self.here.mechanism)
        says = np.isfinite(noise.s)
        y, sizes = values - expected, np.abs(values) + np.abs(expected)
        label = (sensor.label,) * int(says.sum())
        return Evidence(K[says], y[says], noise.spoken[says], terms[says], sizes[says], label)

    def _reading(self, sensor: Sensor) -> tuple[Floats, Floats, Floats]:
        """Rows over z (states, size, k), what is read at z = 0 (states, size), and lengths of the rows' terms."""
        parts, expected = self._parts(sensor)
        K = np.zeros((self.here.states, sensor.size(self.here.mechanism), len(self.units)))
        terms = np.zeros(K.shape)
        for name, rows in parts:
            responses = np.swapaxes(self.named(self.columns, name), 1, 2)
            K += rows @ responses
            terms += np.abs(rows) @ np.abs(responses)
            expected = expected + (rows @ self.named(self.offset, name)[:, 0, :, None])[..., 0]
        return K, expected, np.linalg.norm(terms, axis=-1)

    def _parts(self, sensor: Sensor) -> Plain:
        """The variables that a sensor reads, each with its rows, and what it reads besides, shape (states, size)."""
        known = next((kind for kind in type(sensor).__mro__ if kind in READINGS), None)
        if known is None:
            raise CompileError(
                f"{sensor.label} cannot be compiled: nothing says in plain numbers what a {type(sensor).__name__} "
                "reads, by which its kernel would be proved. Give compiler.estimator.plain.READINGS an entry."
            )
        return READINGS[known](self.here, sensor)


def _chosen(sensor: Any) -> list[int]:
    """Indices of the components that a sensor reads."""
    components = sensor.names if sensor.components is None else np.atleast_1d(sensor.components).tolist()
    return [sensor.names.index(name) for name in components]


def _nothing(here: ManyStates, sensor: Sensor) -> Floats:
    return np.zeros((here.states, sensor.size(here.mechanism)))


def _of_joint(kind: str) -> Reader:
    """Reads a variable of a joint's freedoms."""

    def read(here: ManyStates, sensor: Any) -> Plain:
        return [(f"{kind}[{sensor.place}]", np.eye(sensor.size(here.mechanism)))], _nothing(here, sensor)

    return read


def _force_torque(here: ManyStates, sensor: Any) -> Plain:
    place = np.eye(4) if sensor.frame is None else np.asarray(here.mechanism.place(sensor.frame)[1])
    R, p = place[:3, :3], place[:3, 3]
    rows = np.block([[R.T, -R.T @ skews(p)], [np.zeros((3, 3)), R.T]])  # moments about p lose p x f
    return [(f"F[{sensor.place}]", rows[_chosen(sensor)])], _nothing(here, sensor)


def _external_wrench(here: ManyStates, sensor: Any) -> Plain:
    return _of_frame(here, sensor, f"W[{sensor.place}]", np.eye(6), np.zeros((here.states, 6)))


def _angular_acceleration(here: ManyStates, sensor: Any) -> Plain:
    return _of_frame(here, sensor, f"A[{sensor.place}]", np.eye(6)[:3], np.zeros((here.states, 3)))


def _accelerometer(here: ManyStates, sensor: Any) -> Plain:
    link, T = here.mechanism.place(sensor.place)
    R, p = np.asarray(T)[:3, :3], np.asarray(T)[:3, 3]
    w, v = here.V[link][:, :3], here.V[link][:, 3:]
    bias = cross(w, v + cross(w, np.broadcast_to(p, w.shape))) @ R
    return _of_frame(here, sensor, f"A[{sensor.place}]", np.eye(6)[3:], bias)


def _of_frame(here: ManyStates, sensor: Any, name: str, rows: Floats, bias: Floats) -> Plain:
    """Rows and bias of three or six components in a frame's axes, as a sensor has them: which, and in which axes."""
    chosen = _chosen(sensor)
    if sensor.axes == "local":
        return [(name, rows[chosen])], bias[:, chosen]
    link, T = here.mechanism.place(sensor.place)
    R = here.poses[link][:, :3, :3] @ np.asarray(T)[:3, :3]
    turned = [R @ rows[k : k + 3] for k in range(0, len(rows), 3)]
    moved = [(R @ bias[:, k : k + 3, None])[..., 0] for k in range(0, len(rows), 3)]
    return [(name, np.concatenate(turned, axis=1)[:, chosen])], np.concatenate(moved, axis=1)[:, chosen]


# What gives a sensor's rows over variables by name, and what it reads besides, by its class.
READINGS: dict[type[Sensor], Reader] = {
    kinds.Torque: _of_joint("tau"),
    kinds.Acceleration: _of_joint("a"),
    kinds.ForceTorque: _force_torque,
    kinds.ExternalWrench: _external_wrench,
    kinds.AngularAcceleration: _angular_acceleration,
    kinds.Accelerometer: _accelerometer,
    kinds.Combination: lambda here, sensor: (list(sensor.terms.items()), _nothing(here, sensor)),
}
