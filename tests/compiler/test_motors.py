"""Kernels of mechanisms with fewer motors than motions, and the order of motors."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd

AGREES = 1e-9


def with_balls():
    """A five-bar whose loop is a ball: what closes it is looked at where its sides meet."""
    five_bar = fgd.robots.five_bar()
    return replace(five_bar, loops=tuple(replace(loop, kind="spherical") for loop in five_bar.loops))


def geared():
    gear = fgd.Coupling("gear", "joint3", "joint2", 2.0)
    return replace(fgd.robots.pendulum(3), couplings=(gear,))


def floating():
    robot = fgd.robots.humanoid()
    return robot, [name for name in robot.joint_names if robot.joint_by_name[name].kind != "floating"]


CASES = {
    "tree": lambda: (fgd.robots.pendulum(3), ["joint2"]),
    "floating": floating,
    "gears": lambda: (geared(), ["joint1"]),
    "loop": lambda: (fgd.robots.five_bar(), ["left_shoulder"]),
    "ball": lambda: (with_balls(), ["left_shoulder"]),
    "stewart": lambda: (fgd.robots.stewart(), [f"slide{k}" for k in range(1, 6)]),
}


@pytest.mark.parametrize("ordering", ["auto", "colamd"])
@pytest.mark.parametrize("case", CASES)
def test_motions_that_motors_cannot_cause_have_no_torques(case, ordering):
    mechanism, motors = CASES[case]()
    kernel = fgd.compile(mechanism, "inverse", actuated=motors, ordering=ordering)
    rng, driven = np.random.default_rng(0), mechanism.torque_entries(motors)
    for seed in range(3):
        q, v = mechanism.random_state(seed)
        tau = np.where(driven, rng.normal(size=mechanism.nv), 0.0)
        a = fgd.forward_dynamics(mechanism, q, v, tau).a
        again = fgd.forward_dynamics(mechanism, q, v, kernel(q, v, a)).a
        assert np.abs(again - a).max() <= AGREES * np.abs(a).max()
        other = fgd.forward_dynamics(mechanism, q, v, rng.normal(size=mechanism.nv)).a
        assert np.isnan(kernel(q, v, other)).all()
        assert any("the motors cannot cause it" in words for words in kernel.check(q, v, other))
        with pytest.raises(fgd.FactorGraphDynError):
            fgd.inverse_dynamics(mechanism, q, v, other, actuated=motors)


def test_columns_of_iwim_are_in_the_order_of_the_motors():
    robot = fgd.robots.humanoid()
    q, motors = robot.random_state(3)[0], ["right_elbow", "root", "left_knee"]
    kernel = fgd.compile(robot, "iwim", actuated=motors, contacts=["left_foot_front_left"])
    expected = fgd.iwim(robot, q, actuated=motors, contacts=["left_foot_front_left"])
    assert np.abs(kernel(q) - expected).max() <= AGREES * np.abs(expected).max()


def test_columns_of_derivatives_of_iwim_are_in_the_order_of_the_motors():
    arm = fgd.robots.pendulum(3)
    names, q = ["joint3", "joint1"], np.array([0.3, 0.4, 0.5])
    turned, plain = (
        fgd.compile(arm, "iwim", actuated=motors, outputs=["dmatrix/dq"])(q) for motors in (names, names[::-1])
    )
    assert np.abs(turned[:, ::-1] - plain).max() <= AGREES * np.abs(plain).max()


def test_motors_are_named_once():
    with pytest.raises(fgd.InputError, match="'joint1' is named twice"):
        fgd.compile(fgd.robots.pendulum(3), "iwim", actuated=["joint1", "joint1"])


def test_what_spins_by_itself_has_no_torques():
    """Without gravity and motors its acceleration is zero but for rounding, which contradicts nothing."""
    links = (fgd.Link("base"), fgd.Link("top", 0.5, (0.3, 0.0, 0.0), np.diag([0.05, 0.02, 0.06])))
    joint = fgd.Joint("spin", "helical", "base", "top", axis=(0.0, -1.0, 0.0), pitch=0.23)
    mechanism = fgd.Mechanism("top", links, (joint,), gravity=(0.0, 0.0, 0.0))
    kernel = fgd.compile(mechanism, "inverse", actuated=[])
    assert kernel([2.7], [-1.3], [4e-21]) == 0.0
    assert np.isnan(kernel([2.7], [-1.3], [1e-3])).all()
