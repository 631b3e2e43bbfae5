"""Sensors in links and frames, and wrenches from outside at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.sensors.sensor import WRENCH, OfComponents, Reading
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.kinematics import in_world_axes, place_pose
from factorgraph_dyn.motion.questions import AXES
from factorgraph_dyn.spatial import Floats


@dataclass(frozen=True, eq=False)
class OfFrame(OfComponents):
    """A sensor in a link or frame.

    Attributes:
        axes: "local", those of the link or frame, or "world"; value, sigma and components are along them. What is read
            is of the frame's origin, or about it, in either case.
    """

    frame: str
    value: Any = None
    sigma: Any = None
    components: Any = None
    axes: str = "local"

    def __post_init__(self) -> None:
        super().__post_init__()
        check_choice(self.axes, AXES, f"The axes of {self.label}")

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        mechanism.place(self.frame)

    def _seen_from(self, state: State, whole: Reading) -> Reading:
        if self.axes == "local":
            return whole
        T = place_pose(state.mechanism, state.q, self.frame)
        blocks = tuple((variable, in_world_axes(T, block)) for variable, block in whole.blocks)
        return Reading(blocks, in_world_axes(T, whole.offset))


class ExternalWrench(OfFrame):
    """A wrench from outside at a frame: ExternalWrench(frame, value, sigma).

    It is a prior where sigma is wide, a known load where it is narrow, and entries of sigma inf are unknown
    altogether: sigma=[0, 0, 0, inf, inf, inf] with value 0 is a point contact. Estimates give W[frame] in the frame's
    own axes, about its origin, whichever axes the sensor has.
    """

    names = WRENCH

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        check_feels(mechanism, self.place, self.label)

    def _whole(self, state: State, classical: bool) -> Reading:
        return Reading(((factors.outside_wrench(self.place), np.eye(6)),), np.zeros(6))


def check_feels(mechanism: Mechanism, frame: str, label: str) -> None:
    """Raise an InputError unless there is a frame at which a wrench does something."""
    link, _ = mechanism.place(frame)
    if link == mechanism.base:
        raise InputError(
            f"{label} is about a wrench on the base {link!r}, which is fixed in the world and feels nothing; give a "
            "frame on a link that moves."
        )


def _seen(state: State, name: str) -> tuple[str, Floats]:
    """The link of a frame, and Ad_frame_link."""
    link, T_link_frame = state.mechanism.place(name)
    return link, spatial.inverse_adjoint(T_link_frame)


class AngularAcceleration(OfFrame):
    """The angular acceleration of a frame, rad/s^2: AngularAcceleration(frame, value, sigma)."""

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.acceleration(link), Ad_frame_link[:3]),), np.zeros(3))


class Accelerometer(OfFrame):
    """The proper acceleration of a frame's origin, m/s^2: Accelerometer(frame, value, sigma).

    At rest it reads g upward, as a real one does.
    """

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad = _seen(state, self.place)
        V = state.twists[link]
        # v_f, or of it what the classical acceleration of the link's origin does not have yet
        v_frame = Ad[3:, :3] @ V[:3] if classical else Ad[3:] @ V
        return Reading(((factors.acceleration(link), Ad[3:]),), spatial.cross(Ad[:3, :3] @ V[:3], v_frame))


class Gyroscope(OfFrame):
    """The angular velocity of a frame, rad/s: Gyroscope(frame, value, sigma)."""

    of_velocities = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[:3]),), np.zeros(3))


@dataclass(frozen=True, eq=False)
class PointVelocity(OfFrame):
    """The velocity of a frame's origin, m/s: PointVelocity(frame) is a foot at rest.

    One that may slide: PointVelocity(frame, components=("z",), axes="world").
    """

    value: Any = 0.0
    sigma: Any = 0.0
    of_velocities: ClassVar[bool] = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[3:]),), np.zeros(3))
