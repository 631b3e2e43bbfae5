"""Identification against dense least squares on Pinocchio's regressor, and against what a log was made with."""

from __future__ import annotations

from dataclasses import replace

import mujoco
import numpy as np
import pinocchio as pin
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.urdf.writer import to_urdf
from factorgraph_dyn.model.parameters import NAMES, impossible_parameters
from factorgraph_dyn.model.sizes.units import described_in
from tests.helpers import lossy, relative_error
from tests.identification.logs import states, torques, waves, wrong
from tests.oracles.engines import pinocchio_oracle

RECOVERED = 1e-9
KINDS = ("revolute", "prismatic", "continuous", "helical", "spherical", "universal")
COUNTS = {"puma560": 36, "ur5": 36, "panda": 43, "general_6r": 38, "five_bar": 11}


def tree(seed):
    return fgd.robots.random_tree(int(2 + seed % 5), seed=seed, branching=1.5, kinds=KINDS)


def pinocchio_regressor(mechanism, motion):
    """Pinocchio's columns, ten a link, of all samples one below the other; every joint carries one link."""
    oracle = pinocchio_oracle(mechanism)
    order = [mechanism.link_names[1:].index(joint.child) for joint in mechanism.topology.outward]
    rows = []
    for q, v, a in zip(*motion, strict=True):
        Y = pin.computeJointTorqueRegressor(oracle.model, oracle.data, oracle.q(q), oracle.v(v), oracle.v(a))
        ours = np.zeros((mechanism.nv, 10 * len(order)))
        for k, link in enumerate(order):
            ours[:, 10 * link : 10 * link + 10] = oracle.back(Y[:, 10 * k : 10 * k + 10])
        rows.append(ours)
    return np.concatenate(rows)


@pytest.mark.parametrize("name", COUNTS)
def test_the_number_of_base_parameters(name):
    mechanism = getattr(fgd.robots, name)()
    assert len(fgd.base_parameters(mechanism)) == COUNTS[name]


@pytest.mark.parametrize("name", ["five_bar", "four_bar"])
def test_base_parameters_of_loops_are_the_rank_of_their_torques(name):
    mechanism = getattr(fgd.robots, name)()
    motors = mechanism.torque_entries()
    motion = states(mechanism, 30, 5)
    kernel = fgd.compile(mechanism, "inverse", parameters="all")
    units = np.eye(10 * (len(mechanism.links) - 1)).reshape(-1, len(mechanism.links) - 1, 10)
    columns = [kernel(*motion, unit)[:, motors].ravel() for unit in units]
    sizes = np.linalg.svd(np.array(columns), compute_uv=False)
    assert len(fgd.base_parameters(mechanism)) == (sizes > 1e-9 * sizes[0]).sum()


@pytest.mark.parametrize("seed", range(6))
def test_trees_without_noise_are_recovered_as_dense_least_squares_does(seed):
    truth = tree(seed)
    motion = states(truth, 120, seed)
    Y = pinocchio_regressor(truth, motion)
    tau = (Y @ truth.parameters().ravel()).reshape(-1, truth.nv)
    found = fgd.identify(wrong(truth, seed), *motion, tau, effects=(), prior=None, physical=False)
    assert len(found.base) == found.structural == np.linalg.matrix_rank(Y, tol=1e-9 * np.linalg.norm(Y, 2))
    expected = np.linalg.lstsq(Y, tau.ravel(), rcond=1e-10)[0]
    for one in found.base:
        names = [name.split(".") for name in one.terms]
        places = [10 * found.links.index(link) + NAMES.index(p) for link, p in names]
        value = np.array(list(one.terms.values())) @ expected[places]
        assert abs(one.value - value) < RECOVERED * np.abs(expected).max()
    assert relative_error(Y @ found.parameters.ravel(), tau.ravel()) < RECOVERED


@pytest.mark.parametrize("seed", range(3))
def test_effects_and_springs(seed):
    truth = lossy(tree(seed), seed)
    motion = states(truth, 150, seed)
    found = fgd.identify(wrong(truth, seed), *motion, torques(truth, motion), prior=None, physical=False)
    other = states(truth, 50, seed + 100)
    assert relative_error(torques(found.mechanism, other), torques(truth, other)) < RECOVERED
    assert relative_error(found.damping, np.concatenate([j.damping for j in truth.movable_joints])) < RECOVERED
    assert relative_error(found.friction, np.concatenate([j.friction for j in truth.movable_joints])) < RECOVERED


@pytest.mark.parametrize("name", ["five_bar", "four_bar"])
def test_closed_mechanisms_from_torques_of_motors(name):
    truth = getattr(fgd.robots, name)()
    motion, other = states(truth, 40, 1), states(truth, 5, 2)
    tau = torques(truth, motion)[:, truth.torque_entries()]
    found = fgd.identify(wrong(truth, 1), *motion, tau, effects=(), prior=None, physical=False)
    assert len(found.base) == found.structural
    assert relative_error(torques(found.mechanism, other), torques(truth, other)) < RECOVERED


def test_coupled_joints_share_a_torque():
    arm = fgd.robots.rrr()
    geared = replace(arm, couplings=[fgd.Coupling("gear", "joint3", "joint2", ratio=-0.5)])
    motion, other = states(geared, 80, 1), states(geared, 20, 2)
    found = fgd.identify(wrong(geared, 1), *motion, torques(geared, motion)[:, :2], effects=(), physical=False)
    assert relative_error(torques(found.mechanism, other), torques(geared, other)) < 1e-7


def test_a_floating_base_with_its_torques_left_out():
    truth = fgd.robots.rrr().float_base()
    motion, other = states(truth, 200, 1), states(truth, 20, 2)
    tau = torques(truth, motion)
    tau[:, :6] = np.nan
    found = fgd.identify(wrong(truth, 1), *motion, tau, effects=(), prior=None, physical=False)
    predicted, expected = (torques(mechanism, other)[:, 6:] for mechanism in (found.mechanism, truth))
    assert relative_error(predicted, expected) < RECOVERED
    assert {one.joint for one in found.fit} == set(truth.joint_names[1:])
    assert {"base.m", "base.I_zz"} <= set(found.undetermined)


@pytest.mark.parametrize("scale", [(1e-6, 1e-9), (1e3, 1e6)])
def test_units_do_not_matter(scale):
    arm = lossy(fgd.robots.puma560(), 1)
    arm = replace(arm, joints=[replace(j, stiffness=0.0) for j in arm.joints])
    motion = waves(arm, 400, 1)
    tau = torques(arm, motion)
    tau = tau + 0.01 * np.abs(tau).max(axis=0) * np.random.default_rng(0).normal(size=tau.shape)
    length, mass = scale
    guess = wrong(arm, 1)
    here = fgd.identify(guess, *motion, tau)
    there = fgd.identify(described_in(guess, length, mass), *motion, tau / (mass * length**2))
    back = mass * length ** np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])
    assert relative_error(there.parameters * back, here.parameters) < 1e-6
    assert relative_error(there.standard_deviation * back, here.standard_deviation) < 1e-6
    assert [one.joint for one in here.fit] == [one.joint for one in there.fit]
    assert here.determined == there.determined


def test_a_noisy_log_predicts_another_one_and_all_bodies_are_possible():
    truth = lossy(fgd.robots.puma560(), 3)
    truth = replace(truth, joints=[replace(j, stiffness=0.0) for j in truth.joints])
    motion, other = waves(truth, 4000, 1), waves(truth, 500, 2)
    tau = torques(truth, motion)
    tau += 0.01 * np.sqrt((tau**2).mean(axis=0)) * np.random.default_rng(0).normal(size=tau.shape)
    known = wrong(truth, 2)
    found = fgd.identify(known, *motion, tau)
    open_ones = [name in found.undetermined for name in list(found.determined)[: found.parameters.size]]
    for one, stays in ((found, False), (fgd.identify(known, *motion, tau, physical=False), True)):
        moved = (one.parameters != known.parameters(one.links)).ravel()[open_ones]
        assert moved.size
        assert moved.any() != stays
    expected = torques(truth, other)
    missed = torques(found.mechanism, other) - expected
    assert (np.linalg.norm(missed, axis=0) < 0.02 * np.linalg.norm(expected, axis=0)).all()
    assert not found.mechanism.warnings
    assert not impossible_parameters(found.parameters, 1.0).any()
    assert found.adjusted
    assert (found.armature >= 0).all()
    assert (found.friction >= 0).all()
    assert pinocchio_oracle(found.mechanism).model.nv == 6
    assert mujoco.MjModel.from_xml_string(to_urdf(found.mechanism, lossy=True)).nv == 6


def test_what_fits_is_left_as_it_is_where_bodies_are_possible():
    truth = fgd.robots.random_tree(4, seed=3)
    motion = states(truth, 200, 1)
    tau = torques(truth, motion)
    free, possible = (fgd.identify(truth, *motion, tau, effects=(), physical=kind) for kind in (False, True))
    assert not possible.adjusted
    assert (free.parameters == possible.parameters).all()
    assert relative_error(possible.parameters, truth.parameters()) < RECOVERED


def test_confidence_intervals_cover():
    truth = fgd.robots.rrr()
    motion, rng = waves(truth, 300, 1), np.random.default_rng(4)
    tau, noise = torques(truth, motion), np.array([0.3, 0.05, 0.01])
    rounds, squares = 60, []
    for _ in range(rounds):
        noisy = tau + noise * rng.normal(size=tau.shape)
        found = fgd.identify(wrong(truth, 1), *motion, noisy, effects=("damping",), prior=None, physical=False)
        exact = {f"{link}.{p}": x for link, row in zip(found.links, truth.parameters(), strict=True)
                 for p, x in zip(NAMES, row, strict=True)}  # fmt: skip
        squares += [
            ((one.value - sum(c * exact.get(name, 0.0) for name, c in one.terms.items())) / one.standard_deviation) ** 2
            for one in found.base
        ]
        assert np.allclose([one.noise for one in found.fit], noise, rtol=0.2)
    assert 0.85 < np.mean(squares) < 1.15  # 60 draws of 12 parameters


def test_a_payload():
    arm = fgd.robots.puma560()
    loaded = arm.add_payload("link6", mass=2.5, com=(0.02, 0.0, 0.1), inertia=np.diag([0.01, 0.012, 0.005]))
    motion = waves(arm, 300, 1)
    found = fgd.identify(arm, *motion, torques(loaded, motion), links="link6", effects=())
    assert relative_error(found.parameters, loaded.parameters(["link6"])) < RECOVERED
    assert set(found.determined.values()) == {"alone"}


def test_what_data_do_not_show_stays_as_it_was_and_as_uncertain():
    arm = fgd.robots.puma560()
    guess = wrong(arm, 1)
    q, v, _ = waves(arm, 200, 1)
    at_rest = np.zeros_like(v)
    tau = torques(arm, (q, at_rest, at_rest)) + 0.01 * np.random.default_rng(0).normal(size=v.shape)
    for prior in (None, 1.0):
        found = fgd.identify(guess, q, at_rest, at_rest, tau, prior=prior, physical=False)
        assert len(found.base) < found.structural
        assert {name.partition(".")[2] for one in found.base for name in one.terms} <= {"m", "mc_x", "mc_y", "mc_z"}
        moments = found.parameters[:, 4:]
        assert (moments == guess.parameters()[:, 4:]).all()
        deviations = found.standard_deviation[:, 4:]
        assert np.isinf(deviations).all() if prior is None else (deviations > 0.9 * np.abs(moments)).all()
        assert "damping[joint1]" in found.undetermined
        assert found.determined["link6.I_zz"] == "not at all"


def test_a_prior_of_ones_own():
    arm = fgd.robots.rrr()
    motion = waves(arm, 100, 1)
    tau = torques(arm, motion) + 0.1 * np.random.default_rng(0).normal(size=(100, 3))
    mean = 1.1 * arm.parameters()
    kept = fgd.identify(arm, *motion, tau, effects=(), prior=(mean, 1e-9), physical=False)
    assert relative_error(kept.parameters, mean) < 1e-6
    covariance = np.diag(np.full(30, 0.04))
    one, other = (
        fgd.identify(arm, *motion, tau, effects=(), prior=(mean, spread), physical=False)
        for spread in (0.2, covariance)
    )
    assert relative_error(one.parameters, other.parameters) < 1e-12
    assert relative_error(one.covariance, other.covariance) < 1e-12


def lopsided():
    covariance = np.eye(30)
    covariance[0, 1] = 0.9
    return covariance


def excluding():
    covariance = np.full((30, 30), -0.5)
    np.fill_diagonal(covariance, 1.0)
    return covariance


@pytest.mark.parametrize(
    ("spread", "words"),
    [
        (lopsided(), r"not symmetric: correlations differ by 0\.9"),
        (excluding(), "not positive definite: some of its correlations"),
        (np.zeros((30, 30)), "not positive definite: a variance on its diagonal is 0"),
        (np.full((30, 30), np.nan), "covariance of the prior holds values that are not finite"),
        (np.diag(np.full(30, np.inf)), "covariance of the prior holds values that are not finite"),
        ("abc", "sigma of the prior is 'abc'; it must be real numbers, .* covariance of shape"),
        ([1.0, 2.0], r"sigma of the prior has shape \(2,\); it must be .*shape \(3, 10\)"),
        ([[1.0], [2.0, 3.0]], "must be real numbers"),
        ({"link1": 1.0}, "must be real numbers"),
        (1j * np.eye(30), "must be real numbers"),
        (np.inf, "must be positive and finite"),
        (0.0, "must be positive and finite"),
        (1e308, "so wide"),
    ],
)
def test_priors_that_are_none_are_refused(spread, words):
    arm = fgd.robots.rrr()
    motion = waves(arm, 50, 1)
    with pytest.raises(fgd.InputError, match=words):
        fgd.identify(arm, *motion, torques(arm, motion), effects=(), prior=(arm.parameters(), spread), physical=False)


@pytest.mark.parametrize("spread", [1e160, 1e308])
def test_relative_spreads_beyond_numbers_are_refused(spread):
    arm = fgd.robots.rrr()
    motion = waves(arm, 50, 1)
    with pytest.raises(fgd.InputError, match="so wide that its variances"):
        fgd.identify(arm, *motion, torques(arm, motion), prior=spread, physical=False)


def test_without_clarabel(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "clarabel", None)
    arm = fgd.robots.puma560()
    motion = waves(arm, 200, 1)
    tau = torques(arm, motion)
    with pytest.raises(fgd.FactorGraphDynError, match=r"pip install 'factorgraph_dyn\[identify\]'"):
        fgd.identify(arm, *motion, tau)
    assert fgd.identify(arm, *motion, tau, physical=False).samples == 200


def test_samples_in_any_shape_and_gaps_in_torques():
    arm = fgd.robots.rrr()
    motion = waves(arm, 300, 1)
    tau = torques(arm, motion)
    tau[10:40, 1] = np.nan
    flat = fgd.identify(arm, *motion, tau)
    folded = fgd.identify(arm, *(x.reshape(3, 100, 3) for x in (*motion, tau)))
    assert (flat.parameters == folded.parameters).all()
    assert [one.samples for one in flat.fit] == [300, 270, 300]


def test_bad_input():
    arm = fgd.robots.rrr()
    q, v, a = waves(arm, 50, 1)
    tau = torques(arm, (q, v, a))
    for given, words in (
        ((q[:, :2], v, a, tau), r"q has shape \(50, 2\)"),
        ((q, v, a, tau[:, :2]), r"tau has shape \(50, 2\); its last axis must have length 3"),
        ((q, v, a[:40], tau), "do not go together"),
        ((q, np.where(v > 1, np.nan, v), a, tau), "v is not finite at joints"),
        ((q, v, a, tau * np.nan), "no torque that is a number"),
        ((q, v, a, tau + np.inf), "tau is infinite"),
        ((q[:2], v[:2], a[:2], tau[:2]), "give more samples"),
    ):
        with pytest.raises(fgd.InputError, match=words):
            fgd.identify(arm, *given)
    for options, words in (
        ({"links": ["elbow"]}, "'elbow' is not in mechanism"),
        ({"effects": ("wear",)}, "'wear'; it must be one of: armature, damping, friction"),
        ({"links": (), "effects": ()}, "nothing to identify"),
        ({"prior": -1}, "must be positive"),
        ({"prior": (np.zeros((3, 10)), -np.eye(30))}, "not positive definite"),
        ({"prior": (np.zeros((2, 10)), 1.0)}, r"shape \(2, 10\); it must be \(3, 10\)"),
    ):
        with pytest.raises(fgd.InputError, match=words):
            fgd.identify(arm, q, v, a, tau, **options)
    loop = fgd.robots.five_bar()
    q, v, a = states(loop, 40, 1)
    with pytest.raises(fgd.InputError, match="Sample 0 of q misses the closure"):
        fgd.identify(loop, q + 0.3, v, a, np.zeros((40, 2)))
    with pytest.raises(fgd.InputError, match="whose torque was not measured"):
        fgd.identify(loop, q, v, a, np.where(loop.torque_entries(), np.nan, np.zeros((40, 4))))
