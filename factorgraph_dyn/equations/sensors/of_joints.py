"""Sensors in joints and loops."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.linear_graph import Variable
from factorgraph_dyn.equations.sensors.sensor import WRENCH, OfComponents, Reading, Sensor
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism


@dataclass(frozen=True, eq=False)
class OfJoint(Sensor):
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


class Torque(OfJoint):
    """The torque or force of a joint's motor, N m or N: Torque(joint, value, sigma).

    A joint without a motor has none, whatever it reads; ``actuated`` of ``fgd.estimate`` says which have one.
    """

    def _variable(self, nv: int) -> Variable:
        return factors.torque(self.place, nv)


class Acceleration(OfJoint):
    """The acceleration of a joint, rad/s^2 or m/s^2: Acceleration(joint, value, sigma)."""

    def _variable(self, nv: int) -> Variable:
        return factors.joint_acceleration(self.place, nv)


class Velocity(OfJoint):
    """The velocity of a joint, rad/s or m/s, as encoders give it: Velocity(joint, value, sigma)."""

    of_velocities = True

    def _variable(self, nv: int) -> Variable:
        return factors.joint_velocity(self.place, nv)


@dataclass(frozen=True, eq=False)
class ForceTorque(OfComponents):
    """The wrench that a joint or loop passes to its child: ForceTorque(joint, value, sigma).

    Attributes:
        frame: A frame on the child in whose axes it is read, about whose origin; the child's own by default.
    """

    joint: str
    value: Any = None
    sigma: Any = None
    components: Any = None
    frame: str | None = None
    names: ClassVar[tuple[str, ...]] = WRENCH

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        ends = {joint.name: joint.child for joint in mechanism.joints}
        ends |= {loop.name: loop.successor for loop in mechanism.loops}
        check_name(self.place, list(ends), "joint or loop", f"mechanism {mechanism.name!r}", InputError)
        child, read_on = ends[self.place], mechanism.place(self.frame or ends[self.place])[0]
        if read_on != child:
            raise InputError(
                f"{self.label} reads what is passed to link {child!r} in frame {self.frame!r}, which is on link "
                f"{read_on!r}; give a frame on {child!r}."
            )

    def _whole(self, state: State, classical: bool) -> Reading:
        block = np.eye(6) if self.frame is None else spatial.adjoint(state.mechanism.place(self.frame)[1]).T
        return Reading(((factors.wrench(self.place), block),), np.zeros(6))
