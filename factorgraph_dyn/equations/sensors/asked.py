"""What may be asked of an estimate: its measurements and its outputs, checked in words.

The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.equations.quantities import QUANTITIES, check_output, quantity, split_name
from factorgraph_dyn.equations.sensors.of_frames import ExternalWrench
from factorgraph_dyn.equations.sensors.sensor import Sensor
from factorgraph_dyn.equations.sensors.together import check_sensors, outside_frames
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism

ESTIMATED = ("a", "tau", "A", "F")  # kinds of outputs of estimates, besides wrenches from outside and gains


def check_measurements(mechanism: Mechanism, problem: str, measurements: Sequence[Sensor]) -> tuple[Sensor, ...]:
    """The sensors of a problem; raises an InputError where an estimate has none, or another problem some."""
    sensors = check_sensors(measurements, of_velocities=False)
    if bool(sensors) != (problem == "estimate"):
        raise InputError(
            f"The problem is {problem!r} and has {len(sensors)} measurements; the estimate problem, and no other, has "
            "some, such as measurements=[fgd.sensors.Torque('elbow', sigma=0.1)]."
        )
    for sensor in sensors:
        if np.isinf(sensor.noise(mechanism).s).any() and not isinstance(sensor, ExternalWrench):
            raise InputError(f"{sensor.label} has an infinite sigma; name the components it reads instead.")
    return sensors


def check_estimated(mechanism: Mechanism, sensors: Sequence[Sensor], name: str) -> None:
    """Raise an InputError unless an estimator has this output."""
    kind, owner = split_name(name)
    if kind == "gain":
        check_estimated(mechanism, sensors, owner)
    elif quantity(name).follows_state if kind in QUANTITIES else False:
        raise InputError(f"{name} follows from q and v alone; take problem 'kinematics' for it.")
    elif kind == "W":
        frames = outside_frames(sensors)
        check_name(owner, frames, "frame", "what the measurements name an external wrench at", InputError)
    elif kind in ESTIMATED:
        check_output(mechanism, name, ())
    else:
        raise InputError(
            f"There is no output {name!r} of an estimate. Outputs: a, tau, A[link or frame], F[joint or loop], "
            "W[frame], if the measurements name one, and gain[...] of each of them."
        )
