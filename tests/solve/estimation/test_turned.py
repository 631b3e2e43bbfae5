"""Mounted otherwise, with gravity turned as well, a mechanism moves as before: what planar loops cannot do stays zero.

Out of their plane the equations of planar loops are rounding in any plane but those of the axes, and rounding tells
nothing.
"""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.helpers import relative_error, turned

S = fgd.sensors
ROBOTS = {name: fgd.robots.BUILT_IN[name] for name in ("five_bar", "four_bar", "four_bar_chain", "rrr")}
TURNS = ((0.0, 0.0, np.pi / 6), (0.3, 0.7, -0.2), (1e-7, 0.0, 0.0), (2.0, -1.0, 0.5))


def readings(mechanism, rng):
    """Torques of all motors and two accelerations: more than it takes."""
    motors = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    ends = (mechanism.joint_names[0], mechanism.joint_names[-1])
    return [
        *(S.Torque(name, rng.normal(), 0.1) for name in motors),
        *(S.Acceleration(name, rng.normal(), 0.2) for name in ends),
    ]


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ROBOTS)
def test_estimates_do_not_depend_on_the_mounting(name, turn):
    flat = ROBOTS[name]()
    there, rng = turned(flat, turn), np.random.default_rng(1)
    for seed in range(4):
        q, v = flat.random_state(seed)
        sensors = readings(flat, rng)
        one, other = (fgd.estimate(mechanism, q, v, sensors) for mechanism in (flat, there))
        for found, expected in ((other.a, one.a), (other.tau, one.tau)):
            assert relative_error(found, expected) < 1e-9
        deviations = [estimate.standard_deviation["a"] for estimate in (other, one)]
        assert relative_error(*deviations) < 1e-9
        assert deviations[0].max() > 0
        assert other.chi_square == pytest.approx(one.chi_square, rel=1e-8)


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ROBOTS)
def test_estimated_velocities_do_not_depend_on_the_mounting(name, turn):
    flat = ROBOTS[name]()
    q, v = flat.random_state(0)
    sensors = [S.Velocity(joint, value + 0.1, 0.1) for joint, value in zip(flat.joint_names, v, strict=True)]
    one, other = (fgd.estimate_velocity(mechanism, q, sensors) for mechanism in (flat, turned(flat, turn)))
    assert relative_error(other.v, one.v) < 1e-9
    assert np.abs(one.v).max() > 0


@pytest.mark.parametrize("turn", TURNS)
@pytest.mark.parametrize("name", ["five_bar", "four_bar"])
def test_compiled_estimates_do_not_depend_on_the_mounting(name, turn):
    mechanism = turned(ROBOTS[name](), turn)
    sensors = readings(mechanism, np.random.default_rng(2))
    kernel = fgd.compile(mechanism, "estimate", measurements=sensors, outputs=["a", "tau"])
    values = np.array([sensor.value for sensor in sensors]).ravel()
    for seed in range(4):
        q, v = mechanism.random_state(seed)
        expected = fgd.estimate(mechanism, q, v, sensors)
        for found, true in zip(kernel(q, v, values), (expected.a, expected.tau), strict=True):
            assert relative_error(found, true) < 1e-9


def test_a_reading_out_of_the_plane_tells_nothing():
    """An accelerometer across the plane reads nothing of the motion."""
    flat = fgd.robots.five_bar()
    q, v = flat.random_state(1)
    link = flat.joints[1].child
    for mechanism in (flat, turned(flat, TURNS[1])):
        across = S.Accelerometer(link, [0.0], 1e-3, components="y")
        sensors = readings(mechanism, np.random.default_rng(3))
        alone = fgd.estimate(mechanism, q, v, sensors)
        both = fgd.estimate(mechanism, q, v, [*sensors, across])
        assert relative_error(both.a, alone.a) < 1e-9
        with pytest.raises(fgd.FactorGraphDynError, match="do not determine"):
            fgd.estimate(mechanism, q, v, [across])
