"""Rival engines that are handed a mechanism answer as each other and as the tests' own oracle."""

import sys

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.benchmark import benchmark_kernels
from factorgraph_dyn.compare.peers import casadi_code, jax_code, mujoco, pinocchio
from factorgraph_dyn.compare.peers.engines import handed_engine
from tests.helpers import mixed_tree
from tests.oracles.engines import pinocchio_oracle

AGREES = 1e-11


def test_engines_that_are_handed_a_mechanism():
    humanoid = fgd.robots.humanoid()
    q, v = humanoid.random_state(0)
    one, other, oracle = handed_engine(humanoid), mujoco.ADAPTER.build(humanoid), pinocchio_oracle(humanoid)
    h = oracle.inverse_dynamics(q, v, 0 * v)
    for engine in (one, other):
        np.testing.assert_allclose(engine.mass_matrix(q), oracle.mass_matrix(q), rtol=AGREES, atol=AGREES)
        np.testing.assert_allclose(engine.forces(q, v), h, rtol=AGREES, atol=AGREES * np.abs(h).max())


@pytest.mark.parametrize("seed", range(4))
def test_joints_of_every_kind(seed):
    tree = mixed_tree(seed)
    q, _ = tree.random_state(seed)
    M = pinocchio_oracle(tree).mass_matrix(q)
    np.testing.assert_allclose(handed_engine(tree).mass_matrix(q), M, rtol=AGREES, atol=AGREES * np.abs(M).max())


def test_a_kind_that_an_engine_does_not_have_is_refused(monkeypatch):
    monkeypatch.delitem(pinocchio.JOINTS, "revolute")
    with pytest.raises(fgd.InputError, match=r"'revolute' is not in Pinocchio.*prismatic"):
        handed_engine(fgd.robots.rrr())
    rows = benchmark_kernels(fgd.robots.rrr(), repeats=1)
    assert [row["problem"] for row in rows] == ["inverse", "forward"]
    assert all("MuJoCo ns one call" in row and "times faster" not in row for row in rows)


def test_code_of_casadi_is_skipped_with_a_reason(monkeypatch):
    monkeypatch.setattr(casadi_code.shutil, "which", lambda name: None)
    (row, _) = benchmark_kernels(fgd.robots.rrr(), repeats=1, casadi=True)
    assert row["CasADi C ns a state"] == "skipped: CasADi's C needs gcc and g++, which are not installed."


def test_engines_in_jax_are_skipped_with_a_reason(monkeypatch):
    monkeypatch.setitem(sys.modules, "jax", None)
    (row, _) = benchmark_kernels(fgd.robots.rrr(), repeats=1, jax=True)
    assert row["MJX ns a state"] == "skipped: MJX is not installed: pip install mujoco-mjx"
    assert row["frax ns a state"] == "skipped: frax is not installed: pip install frax"


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["MJX", "frax"])
@pytest.mark.parametrize("problem", ["inverse", "forward"])
def test_engines_in_jax_answer_as_kernels_do(problem, engine):
    robot = fgd.robots.ur5()  # MuJoCo mends the inertias of the PUMA 560
    batch = np.random.default_rng(0).normal(size=(3, 20, robot.nv))
    try:
        _, found = jax_code.jax_call(engine, robot, problem, batch)
    except fgd.InputError as error:
        pytest.skip(str(error))
    expected = fgd.compile(robot, problem)(*batch)
    np.testing.assert_allclose(found(), expected, rtol=AGREES, atol=AGREES * np.abs(expected).max())


@pytest.mark.slow
@pytest.mark.parametrize("problem", ["inverse", "forward"])
def test_code_of_casadi_answers_as_kernels_do(problem):
    """Compiles the program that writes the code, which takes a minute or two the first time."""
    robot = fgd.robots.puma560()
    try:
        code = casadi_code.CasadiCode(robot, problem)
    except fgd.InputError as error:
        pytest.skip(str(error))
    q, v, x = np.random.default_rng(0).normal(size=(3, 20, robot.nv))
    run, found = code.call([q, v, x])
    run()
    expected = fgd.compile(robot, problem)(q, v, x)
    np.testing.assert_allclose(found, expected, rtol=AGREES, atol=AGREES * np.abs(expected).max())
