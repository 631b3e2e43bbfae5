"""Estimates speak of links where they are by their names, as solutions, Jacobians and kernels do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd

S = fgd.sensors
SIGMA = 0.01
MJCF = """
<mujoco><worldbody>
  <body name="upper" pos="0 0 1" euler="0 20 0">
    <joint name="shoulder" type="hinge" axis="0 1 0" pos="0.1 0.2 -0.3"/>
    <geom type="box" size="0.1 0.05 0.3" mass="1"/>
    <body name="lower" pos="0.1 0 -0.6">
      <joint name="elbow" type="hinge" axis="1 0 0" pos="0 0.1 0.3"/>
      <geom type="box" size="0.05 0.05 0.2" mass="0.5"/>
    </body>
  </body>
</worldbody></mujoco>
"""


@pytest.fixture(params=["file", "change_base"])
def case(request, tmp_path):
    """A mechanism of links that are not on their joints, a state and accelerations."""
    if request.param == "file":
        path = tmp_path / "arm.xml"
        path.write_text(MJCF)
        mechanism = fgd.load(path)
    else:
        mechanism = fgd.robots.rrr().change_base("link3")
    assert mechanism.own_placements
    return mechanism, *mechanism.random_state(0), np.arange(1.0, mechanism.nv + 1)


def test_motions_are_those_of_solutions_and_jacobians(case):
    mechanism, q, v, a = case
    solution = fgd.inverse_dynamics(mechanism, q, v, a)
    encoders = [S.Acceleration(name, value, SIGMA) for name, value in zip(mechanism.joint_names, a, strict=True)]
    speeds = [S.Velocity(name, value, SIGMA) for name, value in zip(mechanism.joint_names, v, strict=True)]
    estimate, velocities = fgd.estimate(mechanism, q, v, encoders), fgd.estimate_velocity(mechanism, q, speeds)
    for link in mechanism.link_names:
        J = fgd.jacobian(mechanism, q, link)
        np.testing.assert_allclose(estimate.accelerations[link], solution.accelerations[link], atol=1e-12)
        np.testing.assert_allclose(velocities.twists[link], J @ v, atol=1e-12)
        if link != mechanism.base:
            np.testing.assert_allclose(estimate.covariance(f"A[{link}]"), SIGMA**2 * J @ J.T, atol=1e-14)
            np.testing.assert_allclose(estimate.gain(f"A[{link}]"), J, atol=1e-12)
            np.testing.assert_allclose(velocities.mean(f"V[{link}]"), J @ v, atol=1e-12)
            np.testing.assert_allclose(velocities.covariance(f"V[{link}]"), SIGMA**2 * J @ J.T, atol=1e-14)


def test_combinations_read_what_solutions_say(case):
    mechanism, q, v, a = case
    solution, tip = fgd.inverse_dynamics(mechanism, q, v, a), mechanism.topology.outward[-1].child
    whole = S.Combination("A", {f"A[{tip}]": np.eye(6)}, solution.accelerations[tip], SIGMA)
    encoders = [S.Acceleration(name, value, SIGMA) for name, value in zip(mechanism.joint_names, a, strict=True)]
    assert fgd.estimate(mechanism, q, v, [whole, *encoders]).chi_square < 1e-12
    speeds = [S.Velocity(name, value, SIGMA) for name, value in zip(mechanism.joint_names, v, strict=True)]
    twist = S.Combination("V", {f"V[{tip}]": np.eye(6)}, solution.twists[tip], SIGMA)
    assert fgd.estimate_velocity(mechanism, q, [twist, *speeds]).chi_square < 1e-12


@pytest.mark.parametrize(
    "sensor", [lambda link: S.Combination("A", {f"A[{link}]": np.eye(6)}), S.Accelerometer, S.AngularAcceleration]
)
def test_compiled_estimators_agree(case, sensor):
    mechanism, q, v, a = case
    tip = mechanism.topology.outward[-1].child
    reading = np.arange(1.0, sensor(tip).size(mechanism) + 1)
    sensors = [replace(sensor(tip), value=reading, sigma=SIGMA)]
    sensors += [S.Acceleration(name, value, SIGMA) for name, value in zip(mechanism.joint_names, a, strict=True)]
    outputs = ["a", f"A[{tip}]", f"gain[A[{tip}]]"]
    found = fgd.compile(mechanism, "estimate", measurements=sensors, outputs=outputs)(q, v, np.append(reading, a))
    estimate = fgd.estimate(mechanism, q, v, sensors)
    true = estimate.a, estimate.accelerations[tip], estimate.gain(f"A[{tip}]")
    for one, other in zip(found, true, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
