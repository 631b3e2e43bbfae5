"""Sensors in links and frames, and wrenches from outside at them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.sensors.sensor import WRENCH, OfComponents, Reading
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats


@dataclass(frozen=True, eq=False)
class OfFrame(OfComponents):
    """A sensor in a link or frame."""

    frame: str
    value: Any = None
    sigma: Any = None
    components: Any = None

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        mechanism.place(self.frame)


class ExternalWrench(OfFrame):
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


def _seen(state: State, name: str) -> tuple[str, Floats]:
    """The link of a frame, and Ad_frame_link."""
    link, T_link_frame = state.mechanism.place(name)
    return link, spatial.inverse_adjoint(T_link_frame)


class AngularAcceleration(OfFrame):
    """The angular acceleration of a frame in its own axes, rad/s^2: AngularAcceleration(frame, value, sigma)."""

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.acceleration(link), Ad_frame_link[:3]),), np.zeros(3))


class Accelerometer(OfFrame):
    """The proper acceleration of a frame's origin in its own axes, m/s^2: Accelerometer(frame, value, sigma).

    At rest it reads g upward, as a real one does.
    """

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad = _seen(state, self.place)
        V = state.twists[link]
        # v_f, or of it what the classical acceleration of the link's origin does not have yet
        v_frame = Ad[3:, :3] @ V[:3] if classical else Ad[3:] @ V
        return Reading(((factors.acceleration(link), Ad[3:]),), spatial.cross(Ad[:3, :3] @ V[:3], v_frame))


class Gyroscope(OfFrame):
    """The angular velocity of a frame in its own axes, rad/s: Gyroscope(frame, value, sigma)."""

    of_velocities = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[:3]),), np.zeros(3))


@dataclass(frozen=True, eq=False)
class PointVelocity(OfFrame):
    """The velocity of a frame's origin in its own axes, m/s: PointVelocity(frame) is a foot at rest."""

    value: Any = (0.0, 0.0, 0.0)
    sigma: Any = 0.0
    of_velocities: ClassVar[bool] = True

    def _whole(self, state: State, classical: bool) -> Reading:
        link, Ad_frame_link = _seen(state, self.place)
        return Reading(((factors.twist(link), Ad_frame_link[3:]),), np.zeros(3))
