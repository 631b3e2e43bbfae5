"""Sensors together: whether they belong to a question, and the wrenches from outside that they name."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_parts
from factorgraph_dyn.equations import factors
from factorgraph_dyn.equations.linear_graph import Variable
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.sensors.combination import Combination
from factorgraph_dyn.equations.sensors.of_frames import ExternalWrench
from factorgraph_dyn.equations.sensors.sensor import Sensor
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats


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


def stacked_noise(mechanism: Mechanism, sensors: Sequence[Sensor]) -> Floats:
    """What unit noises do to the readings of all sensors, one after the other (see ``Noise.spoken``)."""
    blocks = [sensor.noise(mechanism).spoken for sensor in sensors]
    L, row, column = np.zeros(np.sum([(0, 0), *(block.shape for block in blocks)], axis=0)), 0, 0
    for block in blocks:
        L[row : row + block.shape[0], column : column + block.shape[1]] = block
        row, column = row + block.shape[0], column + block.shape[1]
    return L
