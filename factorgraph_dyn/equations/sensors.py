"""Sensors as factors: what each one reads of the graph's variables, written once for floats and symbols.

    reading = sum over variables of block_x x + offset + noise

    Torque                 tau_j                              Velocity         v_j
    Acceleration           a_j                                Gyroscope        angular part of Ad_fi V_i
    ForceTorque            F_j, or some components            PointVelocity    linear part of Ad_fi V_i
    ExternalWrench         W_f, or some components
    AngularAcceleration    angular part of Ad_fi A_i
    Accelerometer          linear part of Ad_fi A_i + w_f x v_f: the proper acceleration, since A has gravity in it
    Combination            any blocks over variables by name

f a link or frame on link i; its readings are in its own axes, about its origin. Those of the right column are about
velocities and belong to ``fgd.estimate_velocity``. A sensor is a small frozen part with a value and its noise (see
``noise``); without a value it describes an input of a compiled estimator.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, cast

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import (
    as_names,
    check_entries,
    check_finite,
    check_mapping,
    check_parts,
    real_numbers,
    shown,
)
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.linear_graph import Factor, Variable
from factorgraph_dyn.equations.noise import Noise, make_noise
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Array, Floats

__all__ = [
    "Acceleration",
    "Accelerometer",
    "AngularAcceleration",
    "Combination",
    "ExternalWrench",
    "ForceTorque",
    "Gyroscope",
    "PointVelocity",
    "Sensor",
    "Torque",
    "Velocity",
]

AXES = ("x", "y", "z")
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")
Blocks = tuple[tuple[Variable, Array], ...]


class Reading(NamedTuple):
    """What a sensor reads: the sum of block @ variable, plus an offset."""

    blocks: Blocks
    offset: Array


class Sensor:
    """Something that reads variables of a mechanism's graph with noise.

    Attributes:
        value: What it reads, a number or an array; None for an input of a compiled estimator.
        sigma: A standard deviation, one for each entry (0 exact, inf unknown), or a covariance matrix.
    """

    value: Any
    sigma: Any
    of_velocities: ClassVar[bool] = False  # or of accelerations and forces

    @property
    def place(self) -> str:
        """Name of the joint, link or frame it is on."""
        return str(getattr(self, fields(cast(Any, self))[0].name))

    @property
    def label(self) -> str:
        """What messages and innovations call it, such as ``Torque[elbow]``."""
        return f"{type(self).__name__}[{self.place}]"

    @property
    def key(self) -> str:
        """Text that differs wherever two sensors do, their values apart."""
        others = {field.name: getattr(self, field.name) for field in fields(cast(Any, self)) if field.name != "value"}
        return repr((self.label, {name: _plain(value) for name, value in others.items()}))

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless the mechanism has what the sensor is on."""
        raise NotImplementedError

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        raise NotImplementedError

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state; ``classical`` as for ``dynamics_graph``."""
        raise NotImplementedError

    def noise(self, mechanism: Mechanism) -> Noise:
        """Its noise."""
        self.check(mechanism)
        return make_noise(self.sigma, self.size(mechanism), self.label)

    def values(self, mechanism: Mechanism) -> Floats:
        """What it reads, as an array; anything where it is known not to know."""
        self.check(mechanism)
        if self.value is None and np.isinf(self.noise(mechanism).s).all():
            return np.zeros(self.size(mechanism))
        if self.value is None:
            raise InputError(f"{self.label} has no value; give {self.size(mechanism)} numbers.")
        read = check_entries(self.value, self.size(mechanism), f"The value of {self.label}")
        return check_finite(read, read.shape, f"The value of {self.label}")

    def factor(self, state: State, values: Array, *, classical: bool = False) -> Factor:
        """Its equation, for given values."""
        blocks, offset = self.reading(state, classical=classical)
        return Factor("sensor", self.label, blocks, values - offset)


@dataclass(frozen=True, eq=False)
class _OfJoint(Sensor):
    """A sensor that reads one variable of a joint."""

    joint: str
    value: Any = None
    sigma: Any = None

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        mechanism.check_joint(self.place)
        if not mechanism.joint_by_name[self.place].nv:
            raise InputError(f"{self.label} reads a fixed joint, which has no freedom; use ForceTorque there.")

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        return mechanism.joint_by_name[self.place].nv

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state."""
        nv = self.size(state.mechanism)
        return Reading(((self._variable(nv), np.eye(nv)),), np.zeros(nv))

    def _variable(self, nv: int) -> Variable:
        raise NotImplementedError


class Torque(_OfJoint):
    """The torque or force of a joint's motor, N m or N: Torque(joint, value, sigma)."""

    def _variable(self, nv: int) -> Variable:
        return factors.torque(self.place, nv)


class Acceleration(_OfJoint):
    """The acceleration of a joint, rad/s^2 or m/s^2: Acceleration(joint, value, sigma)."""

    def _variable(self, nv: int) -> Variable:
        return factors.joint_acceleration(self.place, nv)


class Velocity(_OfJoint):
    """The velocity of a joint, rad/s or m/s, as encoders give it: Velocity(joint, value, sigma)."""

    of_velocities = True

    def _variable(self, nv: int) -> Variable:
        return factors.joint_velocity(self.place, nv)


class _OfComponents(Sensor):
    """A sensor of a vector, or of some of its components.

    Attributes:
        components: Names of the components it reads, such as ("x", "z") or ("fx", "fz"); all by default.
    """

    components: Any
    names: ClassVar[tuple[str, ...]] = AXES

    def __post_init__(self) -> None:
        for name in self._components:
            check_name(name, self.names, "component", f"what {self.label} reads", InputError)
        if len(set(self._components)) < len(self._components) or not self._components:
            raise InputError(f"The components of {self.label} are {shown(self.components)}; name each at most once.")

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        return len(self._components)

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state."""
        chosen = [self.names.index(name) for name in self._components]
        blocks, offset = self._whole(state, classical)
        return Reading(tuple((variable, block[chosen]) for variable, block in blocks), offset[chosen])

    def _whole(self, state: State, classical: bool) -> Reading:
        """What a sensor of all components reads."""
        raise NotImplementedError

    @property
    def _components(self) -> tuple[str, ...]:
        return self.names if self.components is None else as_names(self.components, f"The components of {self.label}")


@dataclass(frozen=True, eq=False)
class _OfFrame(_OfComponents):
    """A sensor in a link or frame."""

    frame: str
    value: Any = None
    sigma: Any = None
    components: Any = None

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        mechanism.place(self.frame)


@dataclass(frozen=True, eq=False)
class ForceTorque(_OfComponents):
    """The wrench that a joint or loop passes to its child, in the child's frame: ForceTorque(joint, value, sigma)."""

    joint: str
    value: Any = None
    sigma: Any = None
    components: Any = None
    names: ClassVar[tuple[str, ...]] = WRENCH

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        names = [*mechanism.joint_by_name, *(loop.name for loop in mechanism.loops)]
        check_name(self.place, names, "joint or loop", f"mechanism {mechanism.name!r}", InputError)

    def _whole(self, state: State, classical: bool) -> Reading:
        return Reading(((factors.wrench(self.place), np.eye(6)),), np.zeros(6))


class ExternalWrench(_OfFrame):
    """A wrench from outside at a frame: ExternalWrench(frame, value, sigma).

    It is a prior where sigma is wide, a known load where it is narrow, and entries of sigma inf are unknown
    altogether: sigma=[0, 0, 0, inf, inf, inf] with value 0 is a point contact.
    """

    names = WRENCH

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        link, _ = mechanism.place(self.place)
        if link == mechanism.base:
            raise InputError(
                f"{self.label} is on the base {link!r}, which is fixed in the world and feels nothing; give a frame on "
                "a link that moves."
            )

    def _whole(self, state: State, classical: bool) -> Reading:
        return Reading(((factors.outside_wrench(self.place), np.eye(6)),), np.zeros(6))


def _plain(value: Any) -> Any:
    """A field as plain Python, exact and without what arrays print of themselves."""
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    return np.asarray(value).tolist()


def _seen(state: State, name: str) -> tuple[str, Floats]:
    """The link of a frame, and Ad_frame_link."""
    link, T_link_frame = state.mechanism.place(name)
    return link, spatial.inverse_adjoint(T_link_frame)


class AngularAcceleration(_OfFrame):
    """The angular acceleration of a frame in its own axes, rad/s^2: AngularAcceleration(frame, value, sigma)."""

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.acceleration(link), Ad_frame_link[:3]),), np.zeros(3))


class Accelerometer(_OfFrame):
    """The proper acceleration of a frame's origin in its own axes, m/s^2: Accelerometer(frame, value, sigma).

    At rest it reads g upward, as a real one does.
    """

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad = _seen(state, self.place)
        V = state.twists[link]
        # v_f, or of it what the classical acceleration of the link's origin does not have yet
        v_frame = Ad[3:, :3] @ V[:3] if classical else Ad[3:] @ V
        return Reading(((factors.acceleration(link), Ad[3:]),), spatial.cross(Ad[:3, :3] @ V[:3], v_frame))


class Gyroscope(_OfFrame):
    """The angular velocity of a frame in its own axes, rad/s: Gyroscope(frame, value, sigma)."""

    of_velocities = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[:3]),), np.zeros(3))


@dataclass(frozen=True, eq=False)
class PointVelocity(_OfFrame):
    """The velocity of a frame's origin in its own axes, m/s: PointVelocity(frame) is a foot at rest."""

    value: Any = (0.0, 0.0, 0.0)
    sigma: Any = 0.0
    of_velocities: ClassVar[bool] = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[3:]),), np.zeros(3))


KINDS = {
    "A": "link",
    "V": "link",
    "F": "joint or loop",
    "a": "joint",
    "tau": "joint",
    "v": "joint",
    "W": "link or frame",
}


@dataclass(frozen=True, eq=False)
class Combination(Sensor):
    """Any linear combination of variables: Combination(name, {"tau[elbow]": 1.0, "tau[wrist]": -0.5}, value, sigma).

    Attributes:
        name: A name of its own.
        terms: What each variable is multiplied by: a number for one of size one, a row, or rows, by variable name.
            Variables: tau[joint], a[joint], F[joint], A[link], W[frame]; of velocities v[joint] and V[link].
    """

    name: str
    terms: Any
    value: Any = None
    sigma: Any = None

    def __post_init__(self) -> None:
        what = f"The terms of {self.label}"
        check_mapping(self.terms, what, "numbers or rows by variable name, such as {'tau[elbow]': 1.0}")
        rows = {str(key): np.atleast_2d(real_numbers(row, what, InputError)) for key, row in self.terms.items()}
        if len({len(row) for row in rows.values()}) != 1 or not all(np.isfinite(row).all() for row in rows.values()):
            raise InputError(f"{what} are {shown(self.terms)}; give finite rows, as many for each variable.")
        of_velocities = {split_name(key)[0] in "vV" for key in rows}
        if len(of_velocities) > 1:
            raise InputError(f"{what} mix velocities with accelerations and forces: {', '.join(rows)}.")
        object.__setattr__(self, "terms", rows)
        object.__setattr__(self, "of_velocities", of_velocities.pop())

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        for name, rows in self.terms.items():
            variable = _variable(mechanism, name, self.label)
            if rows.shape[1] != variable.size:
                raise InputError(f"The row of {name} in {self.label} has {rows.shape[1]} numbers, not {variable.size}.")

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        return len(next(iter(self.terms.values())))

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state."""
        offset: Array = np.zeros(self.size(state.mechanism))
        blocks = tuple((_variable(state.mechanism, name, self.label), rows) for name, rows in self.terms.items())
        for variable, rows in blocks:
            if classical and variable.kind == "A":  # terms are about the spatial acceleration
                V = state.twists[variable.owner]
                offset = offset - rows[:, 3:] @ spatial.cross(V[:3], V[3:])
        return Reading(blocks, offset)


def _variable(mechanism: Mechanism, name: str, label: str) -> Variable:
    """The variable of a name that a combination may use."""
    kind, owner = split_name(name)
    check_name(kind, KINDS, "variable", f"what {label} may combine", InputError)
    loops = [loop.name for loop in mechanism.loops]
    frames = [*mechanism.link_names, *(frame.name for frame in mechanism.frames)]
    owners: Mapping[str, Sequence[str]] = {
        "link": mechanism.link_names,
        "joint": mechanism.joint_names,
        "joint or loop": [*mechanism.joint_by_name, *loops],
        "link or frame": frames,
    }
    check_name(owner, owners[KINDS[kind]], KINDS[kind], f"mechanism {mechanism.name!r} ({label})", InputError)
    return Variable(kind, owner, mechanism.joint_by_name[owner].nv if KINDS[kind] == "joint" else 6)


def check_sensors(measurements: object, *, of_velocities: bool) -> tuple[Sensor, ...]:
    """The measurements as a tuple, if they all belong to the question."""
    made = "fgd.sensors, such as fgd.sensors.Torque(joint, value, sigma)"
    sensors = check_parts(measurements, Sensor, "measurements", made)
    for sensor in sensors:
        if sensor.of_velocities != of_velocities:
            right, about = (
                ("fgd.estimate_velocity", "velocities") if sensor.of_velocities else ("fgd.estimate", "forces")
            )
            raise InputError(f"{sensor.label} is about {about}; give it to {right}.")
    return sensors


def outside_frames(sensors: Sequence[Sensor]) -> tuple[str, ...]:
    """The frames at which an unknown wrench acts: those of the sensors that read one."""
    named = [s.place for s in sensors if isinstance(s, ExternalWrench)]
    named += [
        split_name(name)[1]
        for s in sensors
        if isinstance(s, Combination)
        for name in s.terms
        if split_name(name)[0] == "W"
    ]
    return tuple(dict.fromkeys(named))


def outside_wrenches(mechanism: Mechanism, frames: Sequence[str]) -> dict[str, list[tuple[Variable, Floats]]]:
    """Unknown wrenches that push links, for ``dynamics_graph``, by link: each with the wrenches of its units there."""
    found: dict[str, list[tuple[Variable, Floats]]] = {}
    for frame in frames:
        link, T_link_frame = mechanism.place(frame)
        found.setdefault(link, []).append((factors.outside_wrench(frame), spatial.inverse_adjoint(T_link_frame).T))
    return found
