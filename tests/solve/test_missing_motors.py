"""Joints of trees that are marked to have no motor: inverse dynamics says where they would need one."""

import warnings

import numpy as np
import pytest

import factorgraph_dyn as fgd

MJCF = """<mujoco><worldbody><body name="b"><joint name="slide" type="slide" axis="1 0 0"/><geom size="0.1"/>
<body name="p" pos="0 0 1"><joint name="hinge" axis="0 1 0"/><geom size="0.1" pos="0.1 0 1"/></body></body>
</worldbody>{}
</mujoco>"""
MOTOR = '<actuator><motor joint="hinge"/></actuator>'


def cart(name="cart", length=1.0, mass=1.0, **slide):
    """A cart without a motor under a driven pole, in units of a length (m) and a mass (kg)."""
    pole = fgd.Link("pole", 0.1 * mass, (0, 0, 0.5 * length), 0.01 * mass * length**2 * np.eye(3))
    return fgd.Mechanism(
        name,
        (fgd.Link("base"), fgd.Link("cart", mass), pole),
        (
            fgd.Joint("slide", "prismatic", "base", "cart", axis=(1, 0, 0), actuated=False, **slide),
            fgd.Joint("hinge", "revolute", "cart", "pole", axis=(0, 1, 0)),
        ),
        gravity=(0, 0, -9.81 * length),
    )


def silent(mechanism, q, v, a, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return fgd.inverse_dynamics(mechanism, q, v, a, **options)


@pytest.mark.parametrize(("length", "mass"), [(1.0, 1.0), (1e-6, 1e-9), (1e3, 1e6)])
def test_a_joint_without_a_motor_that_carries_a_force_is_named_once(length, mass):
    robot = cart(length=length, mass=mass)
    with pytest.warns(
        fgd.DoubtfulInputWarning, match=r"Joints slide of mechanism 'cart'.*actuated=\[.*hybrid_dyn"
    ) as told:
        needed = fgd.inverse_dynamics(robot, [0, 0.3], [0, 0], [10 * length, 0])
    assert told[0].filename == __file__
    assert needed.tau[0] == pytest.approx(11 * mass * length)
    assert silent(robot, [0, 0.3], [0, 0], [10 * length, 0]).tau[0] == pytest.approx(11 * mass * length)
    with pytest.warns(fgd.DoubtfulInputWarning):  # another mechanism
        fgd.inverse_dynamics(cart(length=length, mass=mass), [0, 0.3], [0, 0], [10 * length, 0])


def test_motions_that_motors_cause_are_no_reason_for_a_warning():
    robot = cart(stiffness=3.0, damping=2.0)
    q, v = np.array([0.2, 0.3]), np.array([1.0, -2.0])
    a = fgd.forward_dynamics(robot, q, v, [0.0, 0.7]).a
    np.testing.assert_allclose(silent(robot, q, v, a).tau, [0.0, 0.7], atol=1e-12)
    np.testing.assert_allclose(silent(robot, q, v, a, actuated=["hinge"]).tau, [0.0, 0.7], atol=1e-12)


def test_a_floating_base_keeps_its_wrench():
    for robot in (fgd.robots.humanoid(), fgd.robots.rrr().float_base()):
        q, v = robot.random_state(0)
        assert np.abs(silent(robot, q, v, np.ones(robot.nv)).tau[:6]).max() > 1.0


def test_files_without_motors_drive_every_joint():
    state = np.zeros(2), np.zeros(2), np.ones(2)
    silent(fgd.loads(MJCF.format("")), *state)
    with pytest.warns(fgd.DoubtfulInputWarning, match="Joints slide of"):
        fgd.inverse_dynamics(fgd.loads(MJCF.format(MOTOR)), *state)


@pytest.mark.parametrize("ordering", ["rnea", "aba", "colamd"])
def test_motors_that_cannot_cause_a_motion_say_which_joint_lacks_one(ordering):
    with pytest.raises(
        fgd.ResidualError, match=r"motors at joints hinge .* missing along joints slide\. .*hybrid"
    ) as error:
        fgd.inverse_dynamics(cart(), [0, 0.3], [0, 0], [10, 0], actuated=["hinge"], ordering=ordering)
    assert error.value.details["joints"] == ("slide",)
    robot = fgd.robots.rrr().float_base()
    q, v = robot.random_state(0)
    with pytest.raises(fgd.ResidualError, match=f"missing along joints {robot.joint_names[0]}"):
        fgd.inverse_dynamics(robot, q, v, np.ones(9), actuated=robot.motors, ordering=ordering)
