"""Which sensor to add next: the one that shrinks the error of a foot's force most, told before it is bought."""

import numpy as np

import factorgraph_dyn as fgd

S = fgd.sensors
robot = fgd.robots.humanoid()
q, v = robot.random_state(3)
wanted = "W[left_foot]"

# What there is: torque sensors in all joints, an accelerometer in the torso, and both feet perhaps on the ground.
there = [S.Torque(name, 0.0, 1.0) for name in robot.joint_names[1:]]
there += [S.Accelerometer("torso", np.zeros(3), 0.1)]
there += [
    S.ExternalWrench(foot, np.zeros(6), [50.0, 50.0, 50.0, 500.0, 500.0, 500.0]) for foot in ("left_foot", "right_foot")
]

# What could be bought. Covariances do not depend on readings: zeros will do.
offers = {
    "angular acceleration of the torso": S.AngularAcceleration("torso", np.zeros(3), 0.5),
    "accelerometer in the left shin": S.Accelerometer("left_shin", np.zeros(3), 0.1),
    "accelerometer in the left foot": S.Accelerometer("left_foot", np.zeros(3), 0.1),
    "force sensor in the left ankle": S.ForceTorque("left_ankle_roll", np.zeros(6), [1, 1, 1, 5, 5, 5]),
    "force sensor in the right ankle": S.ForceTorque("right_ankle_roll", np.zeros(6), [1, 1, 1, 5, 5, 5]),
    "knee torque three times as exact": S.Torque("left_knee", 0.0, 0.35),
}


def deviation(sensors):
    """The standard deviation of the foot's force, root of the sum over its components, N."""
    covariance = fgd.estimate(robot, q, v, sensors).covariance(wanted)
    return float(np.sqrt(np.trace(covariance[3:, 3:])))


now = deviation(there)
print(f"deviation of the left foot's force now: {now:6.1f} N")
gains = {name: deviation([*there, sensor]) for name, sensor in offers.items()}
for name, size in sorted(gains.items(), key=lambda pair: pair[1]):
    print(f"  {size:6.1f} N with {name}")

best = min(gains, key=gains.get)
rest = {name: deviation([*there, offers[best], sensor]) for name, sensor in offers.items() if name != best}
second = min(rest, key=rest.get)
print(f"add first: {best}; then: {second} ({rest[second]:.1f} N)")
