"""Forward, inverse and hybrid dynamics of closed loops against dense solves and Pinocchio."""

import warnings

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.motion.independence import all_rows
from tests.mechanisms import random_planar, random_spatial, single_loop
from tests.oracles.closed import DenseOracle, free_entries, null_space, pinocchio_accelerations, relative

AGREES = 1e-9  # relative; measured 1e-12
CLOSED = 1e-10  # relative closure of accelerations
ORDERINGS = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")


def build(name):
    kind, _, seed = name.partition(":")
    if kind == "planar":
        return random_planar(int(seed))
    if kind == "spatial":
        return random_spatial(int(seed))
    return fgd.robots.BUILT_IN[kind]()


MECHANISMS = ["four_bar", "five_bar", "four_bar_chain", "stewart", "delta"]
MECHANISMS += [f"planar:{seed}" for seed in range(6)] + [f"spatial:{seed}" for seed in range(6)]


def sample(mechanism, seed):
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    return q, v, rng.normal(size=mechanism.nv)


@pytest.mark.parametrize("name", MECHANISMS)
def test_forward_and_inverse_agree_with_a_dense_solve(name):
    mechanism = build(name)
    for seed in range(2):
        q, v, tau = sample(mechanism, seed)
        dense = DenseOracle(mechanism, q, v)
        forward = fgd.forward_dynamics(mechanism, q, v, tau)
        assert relative(forward.a, dense.accelerations(tau)) < AGREES
        assert np.abs(dense.J @ forward.a + dense.Jdot_v).max() < CLOSED * max(1, np.abs(forward.a).max())
        assert forward.residual < 1e-12
        sought = motors(dense.J)
        given = np.where(sought, np.nan, 0.0)
        inverse = fgd.hybrid_dynamics(mechanism, q, v, a=forward.a, tau=given)
        assert relative(inverse.tau, dense.torques(forward.a, np.flatnonzero(sought))) < AGREES
        back = fgd.forward_dynamics(mechanism, q, v, inverse.tau)
        assert relative(back.a, forward.a) < AGREES


def motors(J):
    """A set of entries whose torques produce every motion: pivots of the free motions."""
    rest = null_space(J)
    sought = np.zeros(J.shape[1], dtype=bool)
    for _ in range(rest.shape[1]):
        best = int(np.argmax(np.linalg.norm(rest, axis=1)))
        sought[best] = True
        direction = rest[best] / np.linalg.norm(rest[best])
        rest = rest - np.outer(rest @ direction, direction)
    return sought


@pytest.mark.parametrize("name", ["stewart", "delta", "spatial:3", "spatial:6", "spatial:9"])
def test_forward_agrees_with_pinocchio(name):
    mechanism = build(name)
    q, v, tau = sample(mechanism, 0)
    expected = pinocchio_accelerations(mechanism, q, v, tau)
    assert relative(fgd.forward_dynamics(mechanism, q, v, tau).a, expected) < AGREES


@pytest.mark.parametrize("name", ["five_bar", "four_bar_chain", "delta", "spatial:2"])
def test_every_ordering_gives_the_same_answer(name):
    mechanism = build(name)
    q, v, tau = sample(mechanism, 1)
    first = fgd.forward_dynamics(mechanism, q, v, tau, ordering="aba")
    for ordering in ORDERINGS[1:]:
        other = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering)
        assert relative(other.a, first.a) < AGREES
        assert other.not_unique == first.not_unique
        for joint, wrench in first.wrenches.items():
            assert relative(other.wrenches[joint], wrench) < AGREES
    reverse = tuple(reversed(first.ordering.variables))
    assert relative(fgd.forward_dynamics(mechanism, q, v, tau, ordering=reverse).a, first.a) < AGREES
    usual, colamd = (
        fgd.inverse_dynamics(mechanism, q, v, first.a, actuated=mechanism.joint_names,
                             objective=fgd.MinimumTorque(), **ordering)
        for ordering in ({}, {"ordering": "colamd"})
    )  # fmt: skip
    assert (usual.ordering.name, colamd.ordering.name) == ("rnea", "colamd")
    assert relative(usual.tau, colamd.tau) < AGREES


@pytest.mark.parametrize("name", [*MECHANISMS[:3], "planar:0", "planar:4", "spatial:1", "spatial:5"])
def test_what_is_not_unique_is_named_and_of_least_norm(name):
    mechanism = build(name)
    q, v, tau = sample(mechanism, 0)
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    graph = fgd.dynamics_graph(solution.state, fgd.Known.forward(tau), closure=all_rows(mechanism))
    assert solution.not_unique == free_entries(graph)
    A, b = graph.dense()
    lengths = np.linalg.norm(A, axis=0)
    N = null_space(A / lengths) / lengths[:, None]
    forces = np.concatenate([np.full(x.size, x.kind == "F") for x in graph.variables])
    x = np.concatenate([solution.values[variable] for variable in graph.variables])
    np.testing.assert_allclose(A @ x, b, atol=1e-10)
    # least norm, moments divided by the mechanism's length: forces have no part along the free directions
    measure = np.tile([1.0, 1.0, 1.0, *[1.0 / natural(mechanism).extent] * 3], forces.sum() // 6)
    measured, along = x[forces] / measure, N[forces] / measure[:, None]
    assert np.abs(along.T @ measured).max(initial=0.0) < 1e-8 * np.abs(measured).max()


def folded_linkage(turn):
    """A parallelogram whose bars lie in a line at q = 0."""
    inertia = np.diag([0.02, 0.03, 0.04])
    links = [fgd.Link("base"), *(fgd.Link(n, 1.0, (0.5, 0, 0), inertia) for n in ("crank", "coupler", "rocker"))]
    joints = [
        fgd.Joint("motor", "revolute", "base", "crank", turn),
        fgd.Joint("elbow", "revolute", "crank", "coupler", fgd.translation(1, 0, 0)),
        fgd.Joint("pivot", "revolute", "base", "rocker", turn @ fgd.translation(1, 0, 0)),
    ]
    pin = fgd.Loop("pin", "revolute", "coupler", "rocker", fgd.translation(1, 0, 0), fgd.translation(1, 0, 0))
    return fgd.Mechanism("folded", links, joints, (pin,))


@pytest.mark.parametrize("turn", [np.eye(4), fgd.rotation((1, 2, 3), 0.7)], ids=["straight", "oblique"])
def test_bars_in_a_line_are_warned_of_and_others_are_not(turn):
    mechanism = folded_linkage(turn)
    still, tau = np.zeros(3), np.array([1.0, 0.0, 0.0])
    q, v = mechanism.random_state(1)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fgd.forward_dynamics(mechanism, q, v, tau)
    for _ in range(2):
        with pytest.warns(fgd.NearSingularWarning, match="singular configuration: closure by 'pin' leaves more"):
            fgd.forward_dynamics(mechanism, still, still, tau)
    assert np.isnan(fgd.compile(mechanism)(still, still, tau)).all()


def test_other_choices_for_internal_wrenches():
    mechanism = fgd.robots.five_bar()
    q, v, tau = sample(mechanism, 0)
    least = fgd.forward_dynamics(mechanism, q, v, tau)
    planar = fgd.forward_dynamics(mechanism, q, v, tau, internal_wrenches="planar")
    assert not planar.not_unique
    assert relative(planar.a, least.a) < AGREES
    np.testing.assert_allclose(planar.wrenches["tip"][[0, 2, 4]], 0, atol=1e-12)
    with pytest.raises(fgd.SingularSystemError, match=r"F\[tip\]"):
        fgd.forward_dynamics(mechanism, q, v, tau, internal_wrenches="error")
    with pytest.raises(fgd.InputError, match="least_norm, error, planar"):
        fgd.forward_dynamics(mechanism, q, v, tau, internal_wrenches="spatial")
    stewart = fgd.robots.stewart()
    q, v, tau = sample(stewart, 0)
    with pytest.raises(fgd.InputError, match="not planar"):
        fgd.forward_dynamics(stewart, q, v, tau, internal_wrenches="planar")
    fgd.forward_dynamics(stewart, q, v, tau, internal_wrenches="error")


@pytest.mark.parametrize("gravity", [(0, 0, -9.81), (1, 4, -3)])
def test_planar_wrenches_bear_loads_out_of_the_plane(gravity):
    drawn = fgd.robots.four_bar()
    mechanism = fgd.Mechanism("tilted", drawn.links, drawn.joints, drawn.loops, gravity=gravity)
    q, v, tau = sample(mechanism, 0)
    planar = fgd.forward_dynamics(mechanism, q, v, tau, internal_wrenches="planar")
    assert relative(planar.a, fgd.forward_dynamics(mechanism, q, v, tau).a) < AGREES


@pytest.mark.parametrize("kind", ["fixed", "revolute", "prismatic", "helical", "universal", "spherical", "planar"])
def test_every_loop_kind(kind):
    mechanism = single_loop(kind)
    q, v, tau = sample(mechanism, 0)
    forward = fgd.forward_dynamics(mechanism, q, v, tau)
    assert relative(forward.a, DenseOracle(mechanism, q, v).accelerations(tau)) < AGREES


def test_a_loop_joint_is_a_joint():
    """A pendulum whose second joint is described as a loop to a floating link moves as the tree does."""
    tree = fgd.robots.pendulum(2)
    floating = fgd.Joint("free", "floating", "base", "link2", actuated=False)
    joint = tree.joints[1]
    loop = fgd.Loop("joint2", "revolute", "link1", "link2", joint.placement, axis=joint.axis)
    closed = fgd.Mechanism("cut", tree.links, (tree.joints[0], floating), (loop,))
    q, v = closed.random_state(0)
    v = 0 * v
    a = fgd.forward_dynamics(closed, q, v, np.zeros(7))
    angle = closure_angle(closed, q)
    expected = fgd.forward_dynamics(tree, [q[0], angle], np.zeros(2), np.zeros(2))
    assert a.a[0] == pytest.approx(expected.a[0], rel=AGREES)
    np.testing.assert_allclose(a.wrenches["joint2"], expected.wrenches["joint2"], atol=1e-9)


def closure_angle(mechanism, q):
    from factorgraph_dyn.motion.kinematics import link_poses, loop_pose

    loop = mechanism.loops[0]
    return loop.type.coordinates(loop.axes, 0.0, loop_pose(loop, link_poses(mechanism, q)))[0]


def test_couplings_in_dynamics():
    tree = fgd.robots.rrr()
    gear = fgd.Coupling("gear", "joint3", "joint2", ratio=-2.0, offset=0.3)
    mechanism = fgd.Mechanism("geared", tree.links, tree.joints, couplings=(gear,))
    q, v, tau = sample(mechanism, 0)
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    assert relative(solution.a, DenseOracle(mechanism, q, v).accelerations(tau)) < AGREES
    assert solution.a[2] == pytest.approx(-2 * solution.a[1])


def test_external_wrenches_reach_closed_loops():
    mechanism = fgd.robots.five_bar()
    q, v, tau = sample(mechanism, 0)
    push = {"left_distal": [0.1, 1, 0.2, 3, 0.1, -2], "right_proximal": [0, 2, 0, 0, 0, 1.0]}
    forward = fgd.forward_dynamics(mechanism, q, v, tau, external_wrenches=push)
    inverse = fgd.inverse_dynamics(mechanism, q, v, forward.a, external_wrenches=push)
    dense = DenseOracle(mechanism, q, v)
    free = fgd.bias(mechanism, q, v)
    every = mechanism.joint_names
    pushed = fgd.inverse_dynamics(mechanism.tree, q, v, np.zeros(4), actuated=every, external_wrenches=push).tau
    dense.h = dense.h + pushed - free
    assert relative(forward.a, dense.accelerations(tau)) < AGREES
    assert relative(inverse.tau, dense.torques(forward.a, [0, 2])) < AGREES


def test_light_and_heavy_links_do_not_matter():
    drawn = fgd.robots.five_bar()
    for mass in (1e-6, 1e6):
        links = [fgd.Link(x.name, x.mass * mass, x.com, x.inertia * mass) for x in drawn.links]
        mechanism = fgd.Mechanism("scaled", tuple(links), drawn.joints, drawn.loops)
        q, v, _ = sample(mechanism, 0)
        a = fgd.forward_dynamics(mechanism, q, v, np.zeros(4)).a
        assert relative(a, fgd.forward_dynamics(drawn, q, v, np.zeros(4)).a) < AGREES
    mixed = [
        fgd.Link(x.name, x.mass * s, x.com, x.inertia * s)
        for x, s in zip(drawn.links, (1, 1, 1e-6, 1e3, 1e-3), strict=True)
    ]
    mechanism = fgd.Mechanism("mixed", tuple(mixed), drawn.joints, drawn.loops)
    q, v, tau = sample(mechanism, 0)
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    assert relative(solution.a, DenseOracle(mechanism, q, v).accelerations(tau)) < 1e-7


@pytest.mark.slow
def test_a_long_chain_of_loops_solves():
    mechanism = fgd.robots.four_bar_chain(200)
    q, rest = mechanism.neutral(), np.zeros(mechanism.nv)
    solution = fgd.forward_dynamics(mechanism, q, rest, rest, ordering="colamd")
    assert solution.residual < 1e-10
    assert len(solution.not_unique) == 800
    holding = fgd.inverse_dynamics(mechanism, q, rest, rest, ordering="colamd")
    assert holding.residual < 1e-10
    assert np.isfinite(holding.tau).all()


def test_inverse_dynamics_of_coupled_joints():
    """Where both accelerations of a coupling are given, its equation has no unknown left."""
    inertia = 0.1 * np.eye(3)
    links = [fgd.Link("base"), fgd.Link("x", 1, (0.1, 0, 0), inertia), fgd.Link("y", 2, (0, 0.1, 0), inertia)]
    joints = [
        fgd.Joint("jx", "revolute", "base", "x", axis=(0, 1, 0)),
        fgd.Joint("jy", "revolute", "base", "y", axis=(1, 0, 0), actuated=False),
    ]
    gear = fgd.Mechanism("gear", links, joints, couplings=[fgd.Coupling("c", "jy", "jx", ratio=2)])
    q, v = gear.random_state(0)
    a = fgd.forward_dynamics(gear, q, v, [1.0, 0.0]).a
    assert np.allclose(fgd.inverse_dynamics(gear, q, v, a).tau, [1, 0], rtol=0, atol=1e-12)
    with pytest.raises(fgd.ResidualError, match="closure of 'c'"):
        fgd.inverse_dynamics(gear, q, v, a + np.array([0.0, 1.0]))
