"""Configurations and velocities that close loops and couplings."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.joint_kinds import KINDS, axes_of
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.motion import closure
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.numerics.tolerances import RANK_TOLERANCE
from tests.mechanisms import random_planar, random_spatial, single_loop
from tests.oracles.closed import rate_by_differences

CLOSED = 1e-10
DIFFERENCES = 1e-7  # accuracy of central differences
LINKAGES = ("four_bar", "five_bar", "four_bar_chain", "stewart", "delta")
LOOP_KINDS = ("fixed", "revolute", "prismatic", "helical", "universal", "spherical", "planar", "floating")


@pytest.fixture(params=[*LINKAGES, *(f"planar{i}" for i in range(3)), *(f"spatial{i}" for i in range(3))])
def mechanism(request):
    name = request.param
    if name in LINKAGES:
        return fgd.robots.BUILT_IN[name]()
    return (random_planar if name.startswith("planar") else random_spatial)(int(name[-1]))


def test_linkages_are_drawn_closed():
    for name in LINKAGES:
        mechanism = fgd.robots.BUILT_IN[name]()
        drawn = np.concatenate([joint.type.neutral() for joint in mechanism.joints])
        assert mechanism.closure_error(drawn) < 1e-15
    for motors in range(1, 6):
        assert sum(joint.actuated for joint in fgd.robots.five_bar(motors).joints) == motors


def test_random_states_are_closed_and_differ(mechanism):
    first, second = mechanism.random_state(1), mechanism.random_state(2)
    for q, v in (first, second):
        assert mechanism.closure_error(q, v) < CLOSED
    assert np.abs(first[0] - second[0]).max() > 1e-3


def test_jacobian_and_its_rate_agree_with_differences(mechanism):
    q, v = mechanism.random_state(3)
    found = closure.constraints(mechanism, q)
    J = closure.stacked_jacobian(mechanism, found)
    way, step = np.random.default_rng(0).normal(size=mechanism.nv), 1e-6

    def errors(there):
        return np.concatenate([c.error for c in closure.constraints(mechanism, there)])

    ahead, behind = (errors(integrate(mechanism, q, way, s * step)) for s in (1, -1))
    np.testing.assert_allclose((ahead - behind) / (2 * step), J @ way, atol=DIFFERENCES)
    rate = fgd.constraints(mechanism, q, v).Jdot_v
    np.testing.assert_allclose(rate, rate_by_differences(mechanism, q, v), atol=DIFFERENCES)


def test_loops_apart_are_solved_apart_with_the_same_answer(mechanism):
    rng = np.random.default_rng(1)
    q, _ = mechanism.random_state(4)
    found = closure.constraints(mechanism, q)
    J, b = closure.stacked_jacobian(mechanism, found), [rng.normal(size=len(c.error)) for c in found]
    held = rng.random(mechanism.nv) < 0.2
    for free in (None, ~held):
        x, rank = closure.least_norm(mechanism, found, b, free)
        columns = J if free is None else J * free
        dense, _, dense_rank, _ = np.linalg.lstsq(columns, np.concatenate(b), rcond=RANK_TOLERANCE)
        np.testing.assert_allclose(x, dense, atol=1e-9 * np.abs(dense).max())
        assert rank == dense_rank


def test_groups_hold_loops_and_couplings_that_share_joints():
    chain = fgd.robots.four_bar_chain(3)
    assert [group.members for group in loop_groups(chain)] == [(0,), (1,), (2,)]
    geared = replace(chain, couplings=[fgd.Coupling("gear", "motor3", "motor1", 2.0)])
    assert [group.members for group in loop_groups(geared)] == [(0, 2, 3), (1,)]
    assert [group.members for group in loop_groups(fgd.robots.stewart())] == [tuple(range(6))]


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_every_loop_kind_constrains_what_its_joint_does(kind):
    mechanism = single_loop(kind)
    q, v = mechanism.random_state(0)
    (constraint,) = closure.constraints(mechanism, q)
    assert len(constraint.error) == 6 - mechanism.loops[0].nv
    assert mechanism.closure_error(q, v) < CLOSED
    np.testing.assert_allclose(
        fgd.constraints(mechanism, q, v).Jdot_v, rate_by_differences(mechanism, q, v), atol=DIFFERENCES
    )


@pytest.mark.parametrize("length", [1e-9, 1e9])
@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_what_a_loop_constrains_is_the_same_in_any_unit_of_length(kind, length):
    loop = single_loop(kind).loops[0]
    S = loop.type.subspace(loop.axes, loop.pitch, np.eye(4)) / np.array([1.0] * 3 + [length] * 3)[:, None]
    C = spatial.constraint_directions(S)
    assert C.shape[1] == 6 - loop.nv
    np.testing.assert_allclose(C.T @ (S / np.linalg.norm(S, axis=0)), 0.0, atol=1e-12)


def test_close_moves_little_and_holds_joints():
    mechanism = fgd.robots.five_bar()
    q, _ = mechanism.random_state(0)
    nudged = q + 1e-3
    closed = mechanism.close(nudged, hold=["left_shoulder", "right_shoulder"])
    assert mechanism.closure_error(closed) < CLOSED
    assert closed[mechanism.q_slice("left_shoulder")] == nudged[mechanism.q_slice("left_shoulder")]
    assert np.abs(closed - q).max() < 0.1
    np.testing.assert_array_equal(mechanism.close(q), q)


def test_what_stands_still_has_no_speed_through_gears_either():
    """Two bars that are welded and geared by 14400: once projected their speed was 1e-13 of others', not zero."""
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("arm", "left", "right"))]
    oblique = spatial.pose(spatial.rotation_about(np.array([0.36, 0.48, 0.8]), 1.1), np.array([0.3, -0.7, 0.5]))
    joints = [
        fgd.Joint("turn", "revolute", "base", "arm"),
        fgd.Joint("slow", "revolute", "arm", "left"),
        fgd.Joint("fast", "revolute", "arm", "right", oblique),
    ]
    weld = fgd.Loop("weld", "fixed", "left", "right", oblique)
    mechanism = fgd.Mechanism("locked", links, joints, [weld], [fgd.Coupling("gear", "fast", "slow", 14400.0)])
    v = closure.nearest_velocity(mechanism, np.zeros(3), np.array([1.0, 2.0, -3.0]))
    assert v[0] == 1.0
    assert np.abs(v[1:]).max() < 1e-20


def test_complete_velocity_follows_the_motors():
    mechanism = fgd.robots.five_bar()
    q, _ = mechanism.random_state(0)
    wanted = np.array([1.0, 0, -2.0, 0])
    v = mechanism.complete_velocity(q, wanted, given=["left_shoulder", "right_shoulder"])
    assert mechanism.closure_error(q, v) < CLOSED
    np.testing.assert_array_equal(v[[0, 2]], wanted[[0, 2]])


def test_couplings_close_too():
    tree = fgd.robots.rrr()
    gear = fgd.Coupling("gear", "joint3", "joint2", ratio=-2.0, offset=0.3)
    mechanism = fgd.Mechanism("geared", tree.links, tree.joints, couplings=(gear,))
    q, v = mechanism.random_state(0)
    assert q[2] == pytest.approx(-2 * q[1] + 0.3)
    assert v[2] == pytest.approx(-2 * v[1])
    with pytest.raises(fgd.ClosureError, match="'gear'"):
        fgd.forward_dynamics(mechanism, q + 0.1, v, np.zeros(3))


def test_errors_name_loop_distance_and_way_out():
    mechanism = fgd.robots.five_bar()
    q, v = mechanism.random_state(0)
    with pytest.raises(fgd.ClosureError, match=r"'tip' by .*mechanism\.close"):
        fgd.forward_dynamics(mechanism, q + np.array([0.01, 0, 0, 0]), v, np.zeros(4))
    with pytest.raises(fgd.ClosureError, match=r"v breaks the closure of 'tip' by .*complete_velocity"):
        fgd.forward_dynamics(mechanism, q, v + np.array([0.01, 0, 0, 0]), np.zeros(4))
    with pytest.raises(fgd.ClosureError, match="leave 1 freedom"):
        mechanism.complete_velocity(q, v, given=["left_shoulder"])
    with pytest.raises(fgd.ClosureError, match="contradict the closure of 'tip'"):
        mechanism.complete_velocity(q, v + np.array([1, 2, 3, 5]), given=mechanism.joint_names)
    with pytest.raises(fgd.ClosureError, match="'tip' stays open by"):
        mechanism.close(q + np.array([0.5, 0, 0, 0]), hold=mechanism.joint_names)


def test_a_loop_that_cannot_close_says_how_far_it_got():
    bar = fgd.robots.four_bar()
    far = fgd.Loop("far", "revolute", "rocker", "coupler", translation(5, 0, 0), axis=(0, -1, 0))
    mechanism = fgd.Mechanism("open", bar.links, bar.joints, (far,))
    with pytest.raises(fgd.ClosureError, match="'far' stays open by") as caught:
        mechanism.close(np.zeros(3))
    assert 1.0 < caught.value.details["distance"] < 10.0


def test_a_loop_between_unknown_links_is_refused():
    bar = fgd.robots.four_bar()
    with pytest.raises(fgd.ModelError, match="'nowhere' is not in"):
        fgd.Mechanism("bad", bar.links, bar.joints, (fgd.Loop("x", "fixed", "crank", "nowhere"),))


@pytest.mark.parametrize("kind", LOOP_KINDS)
def test_the_misfit_of_a_pose_tells_what_the_joint_forbids(kind):
    rng = np.random.default_rng(3)
    joint_kind = KINDS[kind]
    axes = axes_of(KINDS[kind], rng.normal(size=(2 if kind == "universal" else 1, 3)))
    T = joint_kind.pose(axes, 0.3, joint_kind.random(rng))
    np.testing.assert_allclose(joint_kind.misfit(axes, T), 0.0, atol=1e-14)
    forbidden = spatial.constraint_directions(joint_kind.subspace(axes, 0.3, T))
    if kind == "helical":  # not looked at along the axis
        forbidden = forbidden[:, np.abs(forbidden.T @ np.concatenate([axes[0], -axes[0]])) < 1e-9]
    for direction in forbidden.T:
        moved = T @ spatial.exponential(0.1 * direction)
        assert np.linalg.norm(joint_kind.misfit(axes, moved)) > 0.02
