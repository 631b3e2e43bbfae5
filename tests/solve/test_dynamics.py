"""Forward, inverse and hybrid dynamics against Pinocchio and a dense solve, in every ordering."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.solve import elimination
from scripts.validate_models import package_folders
from tests.helpers import MOVABLE_KINDS, lossy, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle
from tests.stress.oracle import Oracle

AGREEMENT = 1e-9  # relative, with Pinocchio and with a dense solve
TREES = range(60)
STATES = 5
ROBOTS = next((folder / "robots" for folder in package_folders() if folder.name == "example-robot-data"), None)
GENERAL = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")


def dense_solution(solution: fgd.Solution) -> np.ndarray:
    A, b = solution.graph.dense()
    return np.linalg.solve(A, b)


def stacked(solution: fgd.Solution) -> np.ndarray:
    return np.concatenate([solution.values[variable] for variable in solution.graph.variables])


@pytest.mark.parametrize("seed", TREES)
def test_random_trees_agree_with_pinocchio(seed):
    mechanism = mixed_tree(seed)
    if mechanism.nv == 0:
        pytest.skip("all joints of this tree are fixed")
    oracle = pinocchio_oracle(mechanism)
    rng = np.random.default_rng(seed)
    for index in range(STATES):
        q, v = mechanism.random_state(rng)
        a, tau = rng.normal(size=(2, mechanism.nv))
        wrenches = {mechanism.links[-1].name: rng.normal(size=6)}
        # One ordering a state, so that every ordering meets every tree over the seeds.
        ordering = GENERAL[(seed + index) % len(GENERAL)]

        forward = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering, external_wrenches=wrenches)
        expected = oracle.forward_dynamics(q, v, tau, wrenches)
        assert relative_error(forward.a, expected) < AGREEMENT * oracle_condition(oracle, q)
        assert relative_error(stacked(forward), dense_solution(forward)) < AGREEMENT

        inverse = fgd.inverse_dynamics(
            mechanism, q, v, a, ordering="rnea" if index % 2 else ordering, external_wrenches=wrenches
        )
        assert relative_error(inverse.tau, oracle.inverse_dynamics(q, v, a, wrenches)) < AGREEMENT
        assert relative_error(stacked(inverse), dense_solution(inverse)) < AGREEMENT

        known = rng.uniform(size=mechanism.nv) < 0.5
        hybrid = fgd.hybrid_dynamics(
            mechanism,
            q,
            v,
            a=np.where(known, inverse.a, np.nan),
            tau=np.where(known, np.nan, inverse.tau),
            ordering=ordering,
            external_wrenches=wrenches,
        )
        assert relative_error(hybrid.a, a) < AGREEMENT * oracle_condition(oracle, q)
        assert relative_error(hybrid.tau, inverse.tau) < AGREEMENT * oracle_condition(oracle, q)


def oracle_condition(oracle, q) -> float:
    """How much more than the tolerance the mass matrix's condition entitles an answer to be off."""
    return max(1.0, 1e-7 * np.linalg.cond(oracle.mass_matrix(q)))


@pytest.mark.parametrize("kind", MOVABLE_KINDS)
def test_every_joint_kind_in_every_ordering(kind):
    mechanism = fgd.robots.random_tree(4, seed=3, branching=1.5, kinds=(kind,))
    oracle = pinocchio_oracle(mechanism)
    q, v = mechanism.random_state(1)
    tau = np.random.default_rng(1).normal(size=mechanism.nv)
    expected = oracle.forward_dynamics(q, v, tau)
    for ordering in GENERAL:
        for method in ("sequential", "multifrontal"):
            solution = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering, method=method)
            assert relative_error(solution.a, expected) < AGREEMENT
            assert solution.residual < 1e-12
    poses = link_poses(mechanism, q)
    for link in mechanism.link_names:
        assert relative_error(poses[link], oracle.link_pose(q, link)) < AGREEMENT


@pytest.mark.parametrize("seed", range(6))
def test_mass_matrix_bias_and_inverse(seed):
    mechanism = lossy(mixed_tree(seed + 100), seed)
    oracle = pinocchio_oracle(mechanism)
    q, v = mechanism.random_state(seed)
    M = fgd.mass_matrix(mechanism, q)
    assert relative_error(M, oracle.mass_matrix(q)) < AGREEMENT
    assert relative_error(fgd.inverse_mass_matrix(mechanism, q), oracle.inverse_mass_matrix(q)) < AGREEMENT
    a = np.random.default_rng(seed).normal(size=mechanism.nv)
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    assert relative_error(M @ a + fgd.bias(mechanism, q, v), tau) < AGREEMENT


@pytest.mark.parametrize("seed", range(6))
def test_losses_enter_the_torque_equation(seed):
    """tau = rnea + armature a + damping v + friction sign(v) + stiffness (q - rest)."""
    plain = fgd.robots.random_tree(6, seed=seed, branching=1.5, kinds=("revolute", "universal", "planar"))
    mechanism = lossy(plain, seed)
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    a = rng.normal(size=mechanism.nv)
    expected = pinocchio_oracle(plain).inverse_dynamics(q, v, a)
    for joint in mechanism.movable_joints:
        s = mechanism.v_slice(joint.name)
        expected[s] += joint.armature * a[s] + joint.damping * v[s] + joint.friction * np.sign(v[s])
        expected[s] += joint.stiffness * (q[mechanism.q_slice(joint.name)] - joint.rest)
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    assert relative_error(tau, expected) < AGREEMENT
    assert relative_error(fgd.forward_dynamics(mechanism, q, v, tau).a, a) < AGREEMENT


def test_hybrid_with_all_torques_is_forward_and_with_all_accelerations_inverse():
    mechanism = fgd.robots.puma560()
    q, v = mechanism.random_state(0)
    tau = np.arange(6.0)
    forward = fgd.forward_dynamics(mechanism, q, v, tau)
    nothing = np.full(6, np.nan)
    assert relative_error(fgd.hybrid_dynamics(mechanism, q, v, a=nothing, tau=tau).a, forward.a) < AGREEMENT
    named = dict(zip(mechanism.joint_names, forward.a, strict=True))
    assert relative_error(fgd.hybrid_dynamics(mechanism, q, v, a=named, tau={}).tau, tau) < AGREEMENT


def test_power_balance():
    """What motors and gravity put in is what the kinetic energy gains."""
    mechanism = fgd.robots.random_tree(8, seed=4, branching=2.0, kinds=("all",))
    mechanism = replace(mechanism, gravity=(0, 0, 0))
    rng = np.random.default_rng(4)
    q, v = mechanism.random_state(rng)
    tau = rng.normal(size=mechanism.nv)
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    gained = 0.0
    for link in mechanism.links:
        G, V = link.spatial_inertia, solution.twists[link.name]
        gained += V @ G @ solution.accelerations[link.name]  # d/dt (V^T G V / 2) in the body frame
    assert abs(gained - tau @ v) < AGREEMENT * max(abs(gained), np.abs(tau * v).sum())


def test_free_fall():
    """A floating tree without torques falls with g, and nothing inside it feels a wrench."""
    mechanism = fgd.robots.humanoid()
    solution = fgd.forward_dynamics(mechanism, mechanism.neutral(), np.zeros(24), np.zeros(24))
    expected = np.zeros(24)
    expected[5] = -9.81
    assert np.abs(solution.a - expected).max() < 1e-12
    for wrench in solution.wrenches.values():
        assert np.abs(wrench).max() < 1e-10


def test_links_of_a_billionth_of_a_kilogram():
    mechanism = fgd.robots.random_tree(12, seed=2, branching=1.5, kinds=("revolute",))
    light = [
        replace(link, mass=link.mass * 1e-9, inertia=link.inertia * 1e-9) if i % 3 == 0 else link
        for i, link in enumerate(mechanism.links)
    ]
    mechanism = replace(mechanism, links=light)
    oracle = pinocchio_oracle(mechanism)
    q, v = mechanism.random_state(2)
    a = np.random.default_rng(2).normal(size=mechanism.nv)
    tau = oracle.inverse_dynamics(q, v, a)
    for ordering in GENERAL:
        solution = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering)
        assert relative_error(solution.a, a) < AGREEMENT
        assert relative_error(fgd.inverse_dynamics(mechanism, q, v, a).tau, tau) < AGREEMENT


def test_chain_of_100_links_agrees_with_pinocchio():
    mechanism = fgd.robots.pendulum(100)
    oracle = pinocchio_oracle(mechanism)
    rng = np.random.default_rng(0)
    q, v, a = rng.normal(size=(3, 100))
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    assert relative_error(tau, oracle.inverse_dynamics(q, v, a)) < AGREEMENT
    forward = fgd.forward_dynamics(mechanism, q, v, tau)
    assert relative_error(forward.a, oracle.forward_dynamics(q, v, tau)) < AGREEMENT * oracle_condition(oracle, q)


@pytest.mark.parametrize("ordering", ["aba", "colamd", "metis", "min_degree"])
def test_chain_of_500_links_solves(ordering):
    mechanism = fgd.robots.pendulum(500)
    rng = np.random.default_rng(0)
    q, v, a = 0.1 * rng.normal(size=(3, 500))
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    forward = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering)
    # cond(M) is 1e11 here: a is known no better than 1e-16 of that, tau very well
    assert relative_error(forward.a, a) < 1e-4
    assert relative_error(fgd.inverse_dynamics(mechanism, q, v, forward.a).tau, tau) < 1e-8


def test_gravity_is_the_mechanisms():
    moon = replace(fgd.robots.pendulum(), gravity=(0, 0, -1.62))
    earth = fgd.robots.pendulum()
    q, zero = np.array([0.3]), np.zeros(1)
    ratio = fgd.bias(moon, q, zero) / fgd.bias(earth, q, zero)
    assert ratio == pytest.approx(1.62 / 9.81)


def test_puma_mass_matrix_is_the_published_one():
    """Diagonal of M at the nominal pose, from Corke's Robotics Toolbox."""
    mechanism = fgd.robots.puma560()
    M = fgd.mass_matrix(mechanism, np.array([0, np.pi / 4, np.pi, 0, np.pi / 4, 0]))
    assert np.diag(M) == pytest.approx([3.6594, 4.4137, 0.9378, 0.1925, 0.1713, 0.1941], abs=5e-5)


def test_solution_reads_like_the_equations():
    mechanism = fgd.robots.rrr()
    q, v = mechanism.random_state(0)
    solution = fgd.forward_dynamics(mechanism, q, v, np.zeros(3))
    assert set(solution.wrenches) == {"joint1", "joint2", "joint3"}
    assert set(solution.accelerations) == set(solution.twists) == set(mechanism.link_names)
    tip = mechanism.link_by_name["link3"]
    A, V = solution.accelerations["link3"], solution.twists["link3"]
    w, vel = V[:3], V[3:]
    momentum = tip.spatial_inertia @ V
    rate = np.concatenate([np.cross(momentum[:3], w) + np.cross(momentum[3:], vel), np.cross(momentum[3:], w)])
    assert np.abs(tip.spatial_inertia @ A - rate - solution.wrenches["joint3"]).max() < 1e-12


@pytest.mark.parametrize("name", ["puma560", "five_bar"])
@pytest.mark.parametrize("ordering", ["aba", "colamd", "min_fill"])
def test_the_bayes_net_is_the_one_that_was_solved(name, ordering, monkeypatch):
    mechanism = fgd.robots.BUILT_IN[name]()
    q, v = mechanism.random_state(0)
    at = fgd.forward_dynamics(mechanism, q, v, np.ones(mechanism.nv), ordering=ordering)
    monkeypatch.setattr("factorgraph_dyn.solve.solution.eliminate", None)  # nothing is eliminated a second time
    assert [str(conditional.variable) for conditional in at.bayes_net] == list(at.ordering)
    loose = 1e-9 if name == "puma560" else 1e-2  # ties of loops are taken out after the elimination
    for variable, column in at.bayes_net.respond({}, offset=True).items():
        assert np.abs(column[:, 0] - at.values[variable]).max() <= loose * max(1.0, np.abs(at.values[variable]).max())


def test_the_bayes_net_of_cliques_is_that_of_the_same_elimination():
    mechanism = fgd.robots.puma560()
    q, v = mechanism.random_state(0)
    one, other = (
        fgd.forward_dynamics(mechanism, q, v, np.ones(6), method=method).bayes_net
        for method in ("sequential", "multifrontal")
    )
    assert str(one) == str(other)
    for here, there in zip(one, other, strict=True):
        (R, d), (R_other, d_other) = (_with_positive_pivots(conditional) for conditional in (here, there))
        np.testing.assert_allclose(R, R_other, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(d, d_other, rtol=1e-9, atol=1e-9)


def _with_positive_pivots(conditional):
    signs = np.sign(np.diag(conditional.R))
    return signs[:, None] * conditional.R, signs * conditional.d


def test_answers_do_not_depend_on_what_was_solved_before_or_in_other_threads():
    from concurrent.futures import ThreadPoolExecutor

    mechanism = fgd.robots.puma560()
    states = [mechanism.random_state(seed) for seed in range(40)]
    alone = [fgd.forward_dynamics(mechanism, q, v, np.ones(6)).a for q, v in states]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda s: fgd.forward_dynamics(mechanism, *s, np.ones(6)).a, states))
    assert (np.array(together) == np.array(alone)).all()


@pytest.mark.slow
@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("coupled", [False, True])
def test_pr2_moves_its_light_links_and_its_heavy_ones_exactly(coupled):
    """Accelerations of some and of 1e5 rad/s^2 beside each other, each in its own scale."""
    mechanism = fgd.load(ROBOTS / "pr2_description/urdf/pr2.urdf", folder=ROBOTS)
    if not coupled:
        mechanism = replace(mechanism, couplings=())
    rng = np.random.default_rng(0)
    nothing = np.zeros(mechanism.nv, dtype=bool)
    q, v = mechanism.random_state(rng)
    tau = rng.normal(size=mechanism.nv)
    oracle = Oracle(mechanism, q, v).ask(np.zeros(mechanism.nv), tau, nothing, ~nothing)["a"]
    for ordering in GENERAL:
        off = np.abs(fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering).a - oracle.value)
        assert (off <= 1e-12 * np.abs(oracle.value)).all(), ordering


@pytest.mark.parametrize("spread", [1.0, 1e2, 1e5])
@pytest.mark.parametrize("seed", range(4))
def test_answers_from_squares_are_as_good_as_those_of_rows(seed, spread, monkeypatch):
    """Links of masses that differ by so much: Cholesky is refined to rounding, or left to QR."""
    tree, rng = fgd.robots.random_tree(7, seed=seed), np.random.default_rng(seed)
    factors = dict(zip(tree.link_names, spread ** rng.uniform(-1, 1, len(tree.links)), strict=True))
    links = [replace(x, mass=x.mass * factors[x.name], inertia=x.inertia * factors[x.name]) for x in tree.links]
    mechanism = replace(tree, links=links)
    q, v = mechanism.random_state(rng)
    given = (mechanism, q, v, rng.normal(size=mechanism.nv))
    found, nothing = fgd.forward_dynamics(*given), np.zeros(mechanism.nv, dtype=bool)
    expected = Oracle(mechanism, q, v).ask(np.zeros(mechanism.nv), given[-1], nothing, ~nothing)["a"]
    np.testing.assert_allclose(found.a, expected.value, rtol=1e-12)
    monkeypatch.setattr(elimination, "_from_squares", lambda *_: None)
    assert found.residual <= max(elimination.ROUNDED, fgd.forward_dynamics(*given).residual)


def test_a_hinge_that_coasts_needs_no_motor():
    """Without gravity nothing but rounding accelerates it, which is judged beside what its speed could cause."""
    axis = np.array([-1.1454, 0.2993, -1.1188])
    placement = spatial.pose(spatial.rotation_about(np.array([0.6, 0.0, 0.8]), 2.1), np.array([-0.68, 0.02, 0.7]))
    hinge = fgd.Joint("hinge", "revolute", "ground", "wheel", placement, axis=axis)
    wheel = fgd.Link("wheel", 4.2, (0.003, -0.1, -0.25), np.diag([0.16, 0.25, 0.27]))
    mechanism = fgd.Mechanism("wheel", [fgd.Link("ground"), wheel], [hinge], gravity=(0.0, 0.0, 0.0))
    for v in (-0.1368, 3.0, 1e-4):
        for ordering in ("crba", "rnea", "aba", "colamd"):
            solution = fgd.inverse_dynamics(mechanism, [0.3], [v], [0.0], actuated=[], ordering=ordering)
            assert solution.tau == [0.0]
            assert solution.residual < 1e-9


@pytest.mark.parametrize("method", ["sequential", "multifrontal"])
@pytest.mark.parametrize("ordering", ["natural", "crba", "colamd"])
@pytest.mark.parametrize("tilt", [1e-8, 1e-6])
def test_needles_turn_about_axes_next_to_their_own_in_every_ordering(tilt, ordering, method):
    needle = fgd.Link("needle", 2.0, (0.0, 0.0, 0.0), np.diag([0.04, 0.04, 0.0]))
    links = (fgd.Link("base"), fgd.Link("arm", 1.0, (0.0, 0.0, 0.0), np.eye(3)), needle)
    axis = np.array([tilt, 0.0, 1.0])
    joints = (fgd.Joint("turn", "revolute", "base", "arm"), fgd.Joint("spin", "revolute", "arm", "needle", axis=axis))
    mechanism = fgd.Mechanism("needle", links, joints, gravity=np.zeros(3))
    tau = np.array([0.0, -2.0])
    solution = fgd.forward_dynamics(mechanism, np.array([0.0, 2.0]), np.zeros(2), tau, ordering=ordering, method=method)
    assert solution.a[1] == pytest.approx(-2.0 * (1.0 + tilt**2) / (0.04 * tilt**2), rel=1e-9)
    assert solution.ordering.name == ordering
