"""Bad input never returns numbers: each fault is an error that says what was asked, found and allowed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Joint, Link, Mechanism

RRR = fgd.robots.rrr()
ZERO = np.zeros(3)
NAN = np.full(3, np.nan)
MASKED = np.ma.masked_array(ZERO, mask=[False, True, False])


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: fgd.forward_dynamics(RRR, np.zeros(2), ZERO, ZERO),
            r"q has shape \(2,\).*needs \(3,\).*joint1, joint2",
        ),
        (lambda: fgd.forward_dynamics(RRR, ZERO, np.zeros((3, 1)), ZERO), r"v has shape \(3, 1\)"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, 1.0), r"tau has shape \(\)"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, "fast"), "tau is 'fast'"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, [0, np.nan, 0]), "tau is not finite at joints joint2"),
        (lambda: fgd.forward_dynamics(RRR, [0, 0, np.inf], ZERO, ZERO), "q is not finite at joints joint3"),
        (lambda: fgd.inverse_dynamics(RRR, ZERO, ZERO, NAN), "a is not finite"),
        (lambda: fgd.inverse_dynamics(RRR, ZERO, MASKED, ZERO), "v has masked entries.*fill"),
        (lambda: fgd.pose(RRR, MASKED, "link3"), "q has masked entries"),
        (lambda: fgd.compile_step(RRR)(ZERO, ZERO, MASKED, 0.01), "tau has masked entries"),
        (lambda: fgd.rollout(RRR, ZERO, ZERO, [MASKED, MASKED], 0.01), "tau has masked entries"),
        (lambda: fgd.Link("ball", 1.0, MASKED), "com of link 'ball' has masked entries"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, [10**400, 0, 0], ZERO), r"v is \[1000.*it must be real numbers, 3"),
        (lambda: fgd.inverse_dynamics(RRR, ZERO, ZERO, ZERO, actuated=["elbow"]), "'elbow' is not in.*joint1, joint2"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a=NAN, tau=NAN), "Neither .* joint1, joint2, joint3"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a=ZERO, tau=ZERO), "Both .* joint1"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a={"joint1": 0}, tau={"joint1": 0}), "Both|Neither"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a={"knee": 0}, tau=ZERO), "'knee' is not in"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a=NAN, tau=[0, np.inf, 0]), "infinite at joints joint2"),
        (lambda: fgd.hybrid_dynamics(RRR, ZERO, ZERO, a={"joint1": [1, 2]}, tau=NAN), "shape"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, ZERO, external_wrenches={"foot": np.zeros(6)}), "'foot'.*link1"),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, ZERO, external_wrenches={"link1": ZERO}), "shape"),
        (
            lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, ZERO, external_wrenches={"link1": np.full(6, np.nan)}),
            "not finite",
        ),
        (lambda: fgd.forward_dynamics(RRR, ZERO, ZERO, ZERO, method="magic"), "sequential, multifrontal"),
        (lambda: fgd.mass_matrix(RRR, np.zeros(4)), "q has shape"),
        (lambda: fgd.compare_orderings(RRR, "sideways"), "forward, inverse, hybrid"),
        (lambda: fgd.robots.pendulum(0), "whole number, 1 to 10000"),
        (lambda: fgd.robots.random_tree(3, seed=0, kinds=("hinge",)), "'hinge'"),
    ],
)
def test_faults_are_named(call, message):
    with pytest.raises(fgd.FactorGraphDynError, match=message):
        call()


def test_quaternions_must_have_unit_length():
    mechanism = fgd.robots.humanoid()
    q = mechanism.neutral()
    q[6] = 2.0
    with pytest.raises(fgd.InputError, match=r"quaternion .* of joint 'root' has length 2"):
        fgd.forward_dynamics(mechanism, q, np.zeros(24), np.zeros(24))


def chain_ending_in(*tips: Link) -> Mechanism:
    """Three solid links and then the given ones, on parallel axes."""
    body = [replace(fgd.robots.pendulum(3).links[i]) for i in range(4)]
    links = [*body, *tips]
    joints = [
        Joint(f"joint{i}", "revolute", links[i - 1].name, links[i].name, axis=(0, 1, 0)) for i in range(1, len(links))
    ]
    return Mechanism("chain", tuple(links), tuple(joints))


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "metis", "min_fill", "natural"])
@pytest.mark.parametrize("method", ["sequential", "multifrontal"])
def test_massless_tip_is_named(ordering, method):
    mechanism = chain_ending_in(Link("ghost"))
    n = mechanism.nv
    with pytest.raises(fgd.SingularSystemError, match=r"joint4.*undetermined.*without mass and inertia: ghost"):
        fgd.forward_dynamics(mechanism, np.ones(n), np.ones(n), np.zeros(n), ordering=ordering, method=method)


def test_point_mass_on_the_axis_is_named():
    mechanism = chain_ending_in(Link("bead", 0.7, com=(0, 0.3, 0)))
    n = mechanism.nv
    with pytest.raises(fgd.SingularSystemError, match="joint4") as caught:
        fgd.forward_dynamics(mechanism, 0.3 * np.ones(n), np.ones(n), np.ones(n))
    assert caught.value.details["joints"] == ("joint4",)


def test_two_joints_about_one_axis_with_nothing_between_are_both_named():
    solid = Link("flag", 1.0, com=(0.1, 0, 0), inertia=np.eye(3))
    mechanism = chain_ending_in(Link("ghost"), solid)
    n = mechanism.nv
    with pytest.raises(fgd.SingularSystemError) as caught:
        fgd.forward_dynamics(mechanism, 0.3 * np.ones(n), np.ones(n), np.ones(n))
    assert {"joint4", "joint5"} <= set(caught.value.details["joints"])
    with pytest.raises(fgd.SingularSystemError):
        fgd.inverse_mass_matrix(mechanism, 0.3 * np.ones(n))


def test_given_acceleration_or_armature_cures_a_massless_tip():
    mechanism = chain_ending_in(Link("ghost"))
    n = mechanism.nv
    a, tau = np.full(n, np.nan), np.zeros(n)
    a[-1], tau[-1] = 0.5, np.nan
    solution = fgd.hybrid_dynamics(mechanism, np.ones(n), np.ones(n), a=a, tau=tau)
    assert solution.residual < 1e-12
    geared = [replace(joint, armature=0.1) for joint in mechanism.joints]
    solution = fgd.forward_dynamics(replace(mechanism, joints=geared), np.ones(n), np.ones(n), np.ones(n))
    assert solution.a[-1] == pytest.approx(10.0)


def test_massless_links_inside_are_fine():
    mechanism = chain_ending_in(Link("ghost"), Link("flag", 1.0, com=(0.3, 0, 0), inertia=np.eye(3)))
    joints = [*mechanism.joints[:-1], replace(mechanism.joints[-1], axis=(1, 0, 0))]
    mechanism = replace(mechanism, joints=joints)
    q, v = mechanism.random_state(0)
    a = np.arange(mechanism.nv, dtype=float)
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    assert np.abs(fgd.forward_dynamics(mechanism, q, v, tau).a - a).max() < 1e-9


def test_a_mechanism_without_movable_joints_has_nothing_to_solve():
    mechanism = Mechanism("statue", (Link("base"), Link("head", 1.0)), (Joint("neck", "fixed", "base", "head"),))
    solution = fgd.forward_dynamics(mechanism, [], [], [])
    assert solution.a.shape == (0,)
    assert solution.wrenches["neck"] == pytest.approx([0, 0, 0, 0, 0, 9.81])
    assert fgd.mass_matrix(mechanism, []).shape == (0, 0)
