"""The force at a hand, felt by the joints and an IMU in the last link, with the ellipse of its errors."""

from dataclasses import replace

import numpy as np

import factorgraph_dyn as fgd

S = fgd.sensors
arm = fgd.robots.puma560()
tip = arm.links[-1].name
hand = np.eye(4)
hand[:3, 3] = (0.0, 0.0, 0.15)  # m, from the wrist
arm = replace(arm, frames=(fgd.Frame("hand", tip, hand),))

# The truth that the sensors measure: somebody pushes the hand with 20 N.
rng = np.random.default_rng(1)
q = np.array([0.3, -0.8, 0.4, 0.2, 0.9, -0.1])  # rad
v, a = 0.5 * rng.normal(size=6), rng.normal(size=6)  # rad/s, rad/s^2
force = np.array([12.0, -16.0, 0.0])  # N, in the hand's axes
push = {"hand": np.concatenate([np.zeros(3), force])}
true = fgd.inverse_dynamics(arm, q, v, a, external_wrenches=push)

# The sensors: joint torques, an accelerometer in the hand, accelerations from differences of encoders.
A, V = (fgd.spatial.inverse_adjoint(hand) @ motion[tip] for motion in (true.accelerations, true.twists))
proper = A[3:] + np.cross(V[:3], V[3:])  # m/s^2: gravity is in A
sensors = [S.Torque(name, true.tau[k] + 0.3 * rng.normal(), 0.3) for k, name in enumerate(arm.joint_names)]
sensors += [S.Acceleration(name, a[k] + 0.2 * rng.normal(), 0.2) for k, name in enumerate(arm.joint_names)]
sensors += [S.Accelerometer("hand", proper + 0.05 * rng.normal(size=3), 0.05)]
# A point contact: no moment, and a force of which nothing is known.
contact = S.ExternalWrench("hand", np.zeros(6), [0.0, 0.0, 0.0, np.inf, np.inf, np.inf])

estimate = fgd.estimate(arm, q, v, [*sensors, contact])
found, covariance = estimate.external["hand"][3:], estimate.covariance("W[hand]")[3:, 3:]
print("force  true     ", force, "N")
print("       estimated", found.round(2), "N")
print("       deviation", estimate.standard_deviation["W[hand]"][3:].round(2), "N")

sizes, axes = np.linalg.eigh(covariance)
print("\nellipse of one standard deviation, in the hand's axes:")
for size, axis in zip(np.sqrt(sizes), axes.T, strict=True):
    print(f"  {size:5.2f} N along {axis.round(2)}")
miss = found - force
print(f"the error is {np.sqrt(miss @ np.linalg.solve(covariance, miss)):.2f} standard deviations long")
print(f"chi-square {estimate.chi_square:.1f} of {estimate.degrees_of_freedom} redundant readings")

# A torque sensor that sticks shows in the innovations.
stuck = [replace(sensors[1], value=0.0) if k == 1 else sensor for k, sensor in enumerate(sensors)]
wrong = fgd.estimate(arm, q, v, [*stuck, contact])
worst = max(wrong.innovations, key=lambda name: np.nanmax(np.abs(wrong.innovations[name]), initial=0.0))
print(f"\nwith a stuck sensor: chi-square {wrong.chi_square:.0f}; largest innovation {worst}")
