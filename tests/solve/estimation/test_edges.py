"""Estimates of mechanisms that are hardly any: nothing that moves, nothing that weighs, nothing measured."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd

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
