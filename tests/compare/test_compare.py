"""Costs and comparisons: what a row says is what the compiler and the graph say."""

import pytest
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn.cli import app

KERNEL_ERROR = 1e-11


@pytest.mark.parametrize("problem", ["forward", "inverse", "hybrid"])
def test_rows_have_the_kernels_columns(problem):
    rows = fgd.compare_orderings(fgd.robots.rrr(), problem, ["aba", "crba"], repeats=1)
    for row in rows:
        assert row["operations"] > 0
        assert row["kernel_ns"] > 0
        assert row["kernel_error"] < KERNEL_ERROR
        assert 0 < row["pivot"] <= 1


def test_hybrid_rows_of_the_joints_asked_for():
    arm = fgd.robots.rrr()
    for given in (["joint1"], ["joint2", "joint3"]):
        (row,) = fgd.compare_orderings(arm, "hybrid", ["aba"], repeats=1, known_accelerations=given)
        kernel = fgd.compile(arm, "hybrid", ordering="aba", known_accelerations=given)
        assert row["operations"] == kernel.operations.total
    with pytest.raises(fgd.InputError, match="hybrid problem"):
        fgd.compare_orderings(arm, "forward", known_accelerations=["joint1"])


def test_cost_of_an_ordering():
    arm = fgd.robots.rrr()
    cost = fgd.ordering_cost(arm, "forward", "crba")
    assert cost.operations == fgd.compile(arm, "forward", ordering="crba").operations
    assert cost.instructions < cost.operations.total + 12 * cost.operations.divisions + 30 * 3
    assert cost.estimated_ns > 0
    assert sum(cost.structure.level_work) == cost.structure.operations


def test_search_command(tmp_path):
    path = tmp_path / "pendulum.json"
    result = CliRunner().invoke(app, ["search", "pendulum:2", "--budget", "1", "-o", str(path), "--format", "json"])
    assert result.exit_code == 0, result.output
    assert '"ordering": "search"' in result.output
    assert path.exists()


@pytest.mark.parametrize("robot", [fgd.robots.ur5(), fgd.robots.panda(), fgd.robots.general_6r()])
def test_more_arms_are_bodies(robot):
    assert robot.warnings == ()
    q, v = robot.random_state(0)
    assert fgd.forward_dynamics(robot, q, v, v).residual < 1e-9


@pytest.mark.slow
def test_large_kernels_are_measured_too():
    row = fgd.compare_orderings(fgd.robots.humanoid(), "forward", ["aba"])[0]
    assert row["operations"] > 4500
    assert row["kernel_ns"] > 0
    assert not row["note"]


def test_what_kernels_have_by_default_is_beside_the_others():
    """A shipped ordering has a row of its own, "auto" stands for the cheapest."""
    arm = fgd.robots.puma560()
    rows = {row["ordering"]: row for row in fgd.compare_orderings(arm, repeats=1, kernels=False)}
    assert set(rows) == {*fgd.ORDERING_NAMES, "shipped"}
    (row,) = fgd.compare_orderings(arm, orderings=["auto"], repeats=1)
    assert row["ordering"] == fgd.compile(arm).ordering.name
    assert row["operations"] == fgd.compile(arm).operations.total
    (row,) = fgd.compare_orderings(fgd.robots.rrr(), orderings=["auto"], repeats=1, kernels=False)
    assert row["ordering"] == fgd.compile(fgd.robots.rrr()).ordering.name
