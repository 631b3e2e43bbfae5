"""Estimates of mechanisms that are hardly any: nothing that moves, nothing that weighs, nothing measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.stress.trial import make_trial, run_trial

S = fgd.sensors


def test_nothing_moves():
    post = fgd.Link("post", 2.0, (0.0, 0.0, 0.1), np.eye(3) * 0.1)
    mechanism = fgd.Mechanism("post", [fgd.Link("ground"), post], [fgd.Joint("foot", "fixed", "ground", "post")])
    estimate = fgd.estimate(mechanism, [], [], [S.ForceTorque("foot", np.zeros(6), 1.0)])
    assert np.allclose(estimate.wrenches["foot"], [0, 0, 0, 0, 0, 2 * 9.81])
    assert np.allclose(estimate.innovations["ForceTorque[foot]"], [0, 0, 0, 0, 0, -2 * 9.81])
    assert estimate.covariance().shape == (0, 0)
    with pytest.raises(fgd.InputError, match="fixed joint"):
        fgd.estimate(mechanism, [], [], [S.Torque("foot", 0.0, 1.0)])


def test_nothing_weighs():
    joint = fgd.Joint("hinge", "revolute", "ground", "feather")
    mechanism = fgd.Mechanism("feather", [fgd.Link("ground"), fgd.Link("feather")], [joint])
    with pytest.raises(fgd.SingularSystemError, match=r"a\[hinge\].*Acceleration\[hinge\]"):
        fgd.estimate(mechanism, [0.0], [0.0], [S.Torque("hinge", 1.0, 0.1)])
    estimate = fgd.estimate(mechanism, [0.0], [0.0], [S.Acceleration("hinge", 1.0, 0.1)])
    assert estimate.tau == [0.0]
    assert estimate.standard_deviation["tau"] == [0.0]


def test_nothing_is_measured():
    arm = fgd.robots.rrr()
    state = arm.random_state(0)
    with pytest.raises(fgd.SingularSystemError, match=r"3 freedom\(s\).*Torque\[joint1\], Torque\[joint2\]"):
        fgd.estimate(arm, *state, [])
    assert np.isinf(fgd.estimate(arm, *state, [], undetermined="infinite").standard_deviation["a"]).all()
    with pytest.raises(fgd.InputError, match="measurements is None; it must be a sequence"):
        fgd.estimate(arm, *state, None)
    useless = [S.Torque(name, 0.0, 1.0) for name in arm.joint_names]
    useless.append(S.Accelerometer(arm.base, [0.0, 0.0, 9.81], 0.1))
    assert np.allclose(fgd.estimate(arm, *state, useless).innovations[f"Accelerometer[{arm.base}]"], 0.0)


def test_gears():
    plain = fgd.robots.pendulum(2)
    first, second = plain.joint_names
    geared = replace(plain, couplings=(fgd.Coupling("gear", second, first, 2.0),))
    q, v = geared.random_state(0)
    sensors = [S.Torque(first, 0.3, 0.1), S.Torque(second, -0.2, 0.1)]
    estimate = fgd.estimate(geared, q, v, sensors, actuated=[first, second])
    assert np.allclose(estimate.a, fgd.forward_dynamics(geared, q, v, [0.3, -0.2]).a, rtol=1e-10)
    a = estimate.covariance("a")
    assert np.allclose(a, a[0, 0] * np.outer([1, 2], [1, 2]), rtol=1e-12)
    follower = fgd.estimate(geared, q, v, sensors)  # what follows a gear has no motor of its own
    assert np.allclose(follower.a, fgd.forward_dynamics(geared, q, v, [0.3, 0.0]).a, rtol=1e-10)
    assert np.allclose(follower.innovations[f"Torque[{second}]"], -2.0)
    exact = [S.Acceleration(first, 1.0, 0.0), S.Acceleration(second, 1.0, 0.0)]
    with pytest.raises(fgd.InputError, match="the closure of 'gear'"):
        fgd.estimate(geared, q, v, [*exact, S.Torque(first, 0.3, 0.1)])


def test_the_base_feels_nothing_and_noises_have_squares():
    arm = fgd.robots.rrr()
    state, torques = arm.random_state(0), [S.Torque(name, 0.0, 1.0) for name in arm.joint_names]
    push = S.Combination("push", {f"W[{arm.base}]": np.eye(6)}, np.zeros(6), 1.0)
    with pytest.raises(fgd.InputError, match="feels nothing"):
        fgd.estimate(arm, *state, [*torques, push])
    with pytest.raises(fgd.InputError, match="feels nothing"):
        fgd.estimate(arm, *state, torques, model_noise={arm.base: 1.0})
    for sigma in (1e-300, 1e300):
        with pytest.raises(fgd.InputError, match="0 for what is exact"):
            fgd.estimate(arm, *state, [*torques, S.Torque(arm.joint_names[0], 0.0, sigma)])
    with pytest.raises(fgd.InputError, match="say of which joint"):
        fgd.estimate(arm, *state, [*torques, S.Combination("sum", {"tau": np.ones(3)}, 0.0, 1.0)])
    with pytest.raises(fgd.InputError, match="as many rows"):
        S.Combination("cube", {"tau[joint1]": np.ones((1, 1, 1))}, 0.0, 1.0)


def test_links_that_float_are_told_of_by_sensors_in_them():
    robot = fgd.robots.humanoid()
    q, v = robot.random_state(0)
    rates = [S.Velocity(name, 0.0, 0.1) for name in robot.joint_names[1:]]
    with pytest.raises(fgd.SingularSystemError, match=r"tell: Gyroscope\[torso\], PointVelocity\[torso\]"):
        fgd.estimate_velocity(robot, q, rates)
    torques = [S.Torque(name, 0.0, 0.1) for name in robot.joint_names[1:]]
    with pytest.raises(fgd.SingularSystemError, match=r"Accelerometer\[torso\], AngularAcceleration\[torso\]"):
        fgd.estimate(robot, q, v, [*torques, S.ExternalWrench("left_foot", sigma=np.inf)])


def test_a_wrench_that_follows_a_locked_loop_by_rounding_only_is_told():
    """A loop presses two links against each other as it likes; the joint that carries both feels nothing of it."""
    verdicts = run_trial(make_trial(4, 23, problem="estimate"))
    assert [verdict.kind for verdict in verdicts] == ["right", "right"]


def test_a_vague_reading_counts_as_little_as_it_says():
    """Along an axis that is off by 1e-7 a reading says 1e-7 of the acceleration, in mechanisms with loops, too."""
    tilt, sharp, vague, seen = 1e-7, 1e-3, 10.0, 2e-3
    joint = fgd.Joint("hinge", "revolute", "ground", "arm", axis=(np.sin(tilt), 0.0, np.cos(tilt)))
    arm = fgd.Link("arm", 1.0, inertia=np.eye(3))
    mechanism = fgd.Mechanism(
        "hinge", [fgd.Link("ground"), arm], [joint], [fgd.Loop("free", "floating", "ground", "arm")]
    )
    sensors = [
        S.Acceleration("hinge", 0.0, vague),
        S.AngularAcceleration("arm", [seen], sharp, components=("x",), axes="world"),
    ]
    expected = tilt * seen / sharp**2 / (tilt**2 / sharp**2 + 1 / vague**2)
    assert np.allclose(fgd.estimate(mechanism, [0.0], [0.0], sensors).a, expected, rtol=1e-9)


def test_a_needle_that_turns_about_itself_needs_no_motor():
    """Of the torque about its own axis nothing but rounding is left, which contradicts nothing."""
    needle = [fgd.Link(name, 2.0, (0.0, 0.0, 0.21), np.diag([0.11, 0.11, 0.0])) for name in ("arm", "tip")]
    turned = fgd.spatial.pose(fgd.spatial.rotation_about(np.array([0.0, 0.0, 1.0]), 0.7), np.array([0.0, 0.0, 0.3]))
    joints = [
        fgd.Joint("base", "spherical", "ground", "arm"),
        fgd.Joint("spin", "revolute", "arm", "tip", turned, actuated=False),
    ]
    mechanism = fgd.Mechanism("needles", [fgd.Link("ground"), *needle], joints)
    sensors = [S.Acceleration("base", [1.0, 2.0, 3.0], 0.1), S.Acceleration("spin", [0.5], 0.1)]
    for seed in range(5):
        estimate = fgd.estimate(mechanism, *mechanism.random_state(seed), sensors)
        assert np.allclose(estimate.a, [1.0, 2.0, 3.0, 0.5], rtol=1e-9)


@pytest.mark.parametrize(("seed", "index"), [(80, 10), (82, 611)])
def test_readings_of_all_sizes_cost_no_digits(seed, index):
    """Rows that are almost alike, of which the longest are chosen; torques of micrometres beside accelerations."""
    verdicts = run_trial(make_trial(seed, index, problem="estimate"))
    assert [verdict.kind for verdict in verdicts] == ["right"] * len(verdicts)
