"""Warnings of motions that leave limits of joints or reverse under Coulomb friction."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.unmodelled import ALL_LOOKED_AT

STEP = 0.01


def rail(**words):
    """Masses that slide along x and turn about it, without gravity."""
    links = [fgd.Link("ground"), fgd.Link("cart", 1.0), fgd.Link("wheel", 1.0, (0, 0, 0), np.eye(3))]
    joints = [
        fgd.Joint("slide", "prismatic", "ground", "cart", axis=(1, 0, 0), **words),
        fgd.Joint("turn", "revolute", "cart", "wheel", axis=(1, 0, 0), limits=(-2.0, 2.0)),
    ]
    return fgd.Mechanism("rail", links, joints, gravity=(0, 0, 0))


def said(call):
    """What a call warns of."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    assert all(each.filename == __file__ for each in caught)
    return [str(each.message) for each in caught if each.category is fgd.UnmodelledWarning]


def of_both(mechanism, v, tau, steps=200):
    """What a simulation and a rollout of the same motion warn of."""
    kernel, v, tau = fgd.compile(mechanism), np.array(v), np.array(tau)
    simulated = said(
        lambda: fgd.simulate(
            mechanism, np.zeros(2), v, tau, steps * STEP, STEP, method="semi_implicit", engine=kernel, record_every=50
        )
    )
    rolled = said(lambda: fgd.rollout(mechanism, np.zeros(2), v, np.tile(tau, (steps, 1)), STEP))
    assert simulated == rolled
    return simulated


def test_limits_that_are_left_are_named_with_the_first_time():
    (words,) = of_both(rail(limits=(-0.5, 0.5)), [1.0, -3.0], [0.0, 0.0])
    assert words.startswith(
        "Joint 'slide' of mechanism 'rail' is beyond its limits -0.5 to 0.5 at t = 0.51 s: q = 0.51."
    )
    assert "Stops are not modelled" in words
    (words,) = of_both(rail(), [1.0, -3.0], [0.0, 0.0])
    assert words.startswith("Joint 'turn' of mechanism 'rail' is beyond its limits -2 to 2 at t = 0.67 s")
    assert of_both(rail(limits=(0.0, np.inf)), [0.0, 0.0], [0.0, 0.0]) == []
    assert of_both(rail(limits=(0.0, 0.0)), [1.0, 0.5], [0.0, 0.0]) == []  # nobody has set these


def test_a_start_beyond_limits_is_told_at_once():
    mechanism, q = rail(limits=(-0.5, 0.5)), np.array([0.7, 0.0])
    start = "beyond its limits -0.5 to 0.5 at t = 0 s: q = 0.7"
    (words,) = said(lambda: fgd.simulate(mechanism, q, np.zeros(2), None, 0.02, STEP))
    assert start in words
    (words,) = said(lambda: fgd.rollout(mechanism, q, np.zeros(2), np.zeros((2, 2)), STEP))
    assert start in words


def test_friction_that_reverses_a_joint_is_told_once():
    (words,) = of_both(rail(friction=2.0), [0.505, 0.0], [0.0, 0.0])
    assert words.startswith("The velocity of joint 'slide' of mechanism 'rail', on which Coulomb friction acts")
    assert "changes its sign at t = 0.51 s." in words
    assert "Sticking is not modelled" in words
    assert of_both(rail(friction=2.0), [0.505, 0.0], [3.0, 0.0]) == []  # pushed on
    assert of_both(rail(damping=2.0), [0.505, 0.0], [-1.0, 0.0]) == []  # reverses without friction


def test_rollouts_are_named_by_their_place_in_the_batch():
    mechanism = rail(limits=(-0.5, 0.5))
    v = np.zeros((2, 3, 2))
    v[1, 2, 0] = -2.0
    (words,) = said(lambda: fgd.rollout(mechanism, np.zeros(2), v, np.zeros((100, 2)), STEP, record_every=3))
    assert "at t = 0.27 s in rollout (1, 2): q = -0.54" in words


def test_rollouts_with_friction_of_their_own():
    friction = np.array([[0.0], [2.0]])
    given = {"parameters": {"friction[slide]": friction}}
    v, tau = np.array([0.505, 0.0]), np.tile([-1.0, 0.0], (40, 1))
    (words,) = said(lambda: fgd.rollout(rail(), np.zeros(2), v, tau, STEP, **given))
    assert "changes its sign at t = 0.34 s in rollout (1,)" in words
    assert said(lambda: fgd.rollout(rail(), np.zeros(2), v, tau, STEP, parameters={"friction[slide]": [0.0]})) == []
    own = rail(friction=1.0)
    assert said(lambda: fgd.rollout(own, np.zeros(2), v, tau, STEP, parameters={"friction[slide]": [0.0]})) == []


@pytest.mark.parametrize("steps", [100, 101])
def test_large_batches_are_looked_at_in_part(steps):
    mechanism, count = rail(limits=(-0.5, 0.5), friction=8.0), ALL_LOOKED_AT // 100
    v = np.zeros((count, 2))
    v[-1, 0] = 3.01
    tau = np.zeros((count, steps, 2))
    limits, friction = said(lambda: fgd.rollout(mechanism, np.zeros(2), v, tau, STEP))
    assert f"at t = 0.2 s in rollout ({count - 1},)" in limits
    assert f"in rollout ({count - 1},)" in friction
    v[-1, 0] = 0.0
    tau[-2, steps - 1 :, 0] = 1e5
    (words,) = said(lambda: fgd.rollout(mechanism, np.zeros(2), v, tau, STEP))
    assert f"at t = {steps * STEP:g} s in rollout ({count - 2},)" in words


def test_motions_that_end_in_nan_are_told_up_to_there():
    ball = fgd.Joint("ball", "spherical", "ground", "cart")
    links = [
        fgd.Link("ground"),
        fgd.Link("cart", 1.0, (0, 0, 0), np.eye(3)),
        fgd.Link("tip", 1.0, (1, 0, 0), np.eye(3)),
    ]
    hinge = fgd.Joint("hinge", "revolute", "cart", "tip", limits=(-0.1, 0.1))
    mechanism = fgd.Mechanism("ball", links, [ball, hinge], gravity=(0, 0, 0))
    tau = np.zeros((20, 4))
    tau[10:, :3] = 1e7
    v = np.array([0.0, 0.0, 0.0, 2.0])
    (words,) = said(lambda: fgd.rollout(mechanism, mechanism.neutral(), v, tau, STEP))
    assert "Joint 'hinge'" in words
    assert said(lambda: fgd.rollout(mechanism, np.zeros((0, 5)) + mechanism.neutral(), v, tau, STEP)) == []


def test_no_limits_no_words():
    for mechanism in (replace(fgd.robots.puma560(), gravity=(0, 0, 0)), fgd.robots.five_bar()):
        q, v = mechanism.random_state(0)
        assert said(lambda m=mechanism, q=q, v=v: fgd.rollout(m, q, v, np.zeros((50, m.nv)), 1e-3)) == []
