"""Sensors as factors: what each one reads of the graph's variables, written once for floats and symbols.

    reading = sum over variables of block_x x + offset + noise

    Torque                 tau_j                              Velocity         v_j
    Acceleration           a_j                                Gyroscope        angular part of Ad_fi V_i
    ForceTorque            F_j, or some components            PointVelocity    linear part of Ad_fi V_i
    ExternalWrench         W_f, or some components
    AngularAcceleration    angular part of Ad_fi A_i
    Accelerometer          linear part of Ad_fi A_i + w_f x v_f: the proper acceleration, since A has gravity in it
    Combination            any blocks over variables by name

f a link or frame on link i; its readings are of its origin, in its own axes or the world's. Those of the right column
are about velocities and belong to ``fgd.estimate_velocity``. A sensor is a small frozen part with a value and its noise
(see ``noise``); without a value it describes an input of a compiled estimator.
"""

from factorgraph_dyn.equations.sensors.combination import Combination
from factorgraph_dyn.equations.sensors.of_frames import (
    Accelerometer,
    AngularAcceleration,
    ExternalWrench,
    Gyroscope,
    PointVelocity,
)
from factorgraph_dyn.equations.sensors.of_joints import Acceleration, ForceTorque, Torque, Velocity
from factorgraph_dyn.equations.sensors.sensor import Sensor

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
