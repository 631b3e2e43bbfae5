"""The command line answers in tables, JSON and CSV, and its errors are one message without a traceback."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.folded import parallelogram


def run(*words: str, expect: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", *words], capture_output=True, text=True)
    assert done.returncode == expect, done.stderr
    return done


def test_robots_lists_every_built_in():
    rows = json.loads(run("robots", "--format", "json").stdout)
    assert {row["robot"] for row in rows} == set(fgd.robots.BUILT_IN)


def test_version():
    assert run("--version").stdout.split() == ["fgdyn", fgd.__version__]


@pytest.mark.parametrize("problem", ["forward", "inverse", "hybrid"])
def test_compare(problem):
    text = run("compare", "rrr", "--problem", problem, "--orderings", "rnea,aba,colamd", "--format", "csv").stdout
    rows = {row["ordering"]: row for row in csv.DictReader(io.StringIO(text))}
    assert set(rows) == {"rnea", "aba", "colamd"}
    assert float(rows["aba"]["error"]) < 1e-9
    assert float(rows["aba"]["time_us"]) > 0
    assert bool(rows["rnea"]["note"]) == (problem != "inverse")


@pytest.mark.slow
def test_compare_takes_the_known_accelerations_of_a_hybrid_problem():
    words = ("compare", "rrr", "--problem", "hybrid", "--orderings", "colamd", "--format", "json")
    two, one = (json.loads(run(*words, "--known", known).stdout)[0] for known in ("joint1,joint2", "joint1"))
    assert two["operations"] < one["operations"]


@pytest.mark.slow
def test_compare_prints_a_table():
    text = run("compare", "pendulum:3").stdout
    assert "forward dynamics of pendulum3" in text
    assert "metis" in text


@pytest.mark.parametrize(
    ("problem", "given"),
    [
        ("forward", {"tau": [1, 2, 3]}),
        ("inverse", {"a": [1, 2, 3]}),
        ("hybrid", {"a": [1, None, None], "tau": [None, 2, 3]}),
        ("hybrid", {"a": {"joint1": 1}, "tau": {"joint2": 2, "joint3": 3}}),
    ],
)
def test_solve(tmp_path, problem, given):
    push = {"external_wrenches": {"link3": [0, 0, 0, 1, 0, 0]}, "axes": "world"}
    state = {"q": [0.1, 0.2, 0.3], "v": [1, 1, 1], **given, **push}
    path = tmp_path / "state.json"
    path.write_text(json.dumps(state))
    rows = json.loads(run("solve", "rrr", "--problem", problem, "--state", str(path), "--format", "json").stdout)
    a = np.array([row["a"] for row in rows])
    tau = np.array([row["tau"] for row in rows])
    mechanism = fgd.robots.rrr()
    expected = fgd.inverse_dynamics(mechanism, state["q"], state["v"], a, **push).tau
    assert np.abs(tau - expected).max() < 1e-9


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["compare", "nobody" * 1000], "no robot or file 'nobodynobody"),
        (["compare", "nobody"], "no robot or file 'nobody'. Built-in robots: rrr"),
        (["compare", "rrr", "--orderings", "abba"], "no ordering 'abba'"),
        (["compare", "rrr:4"], "only pendulum, five_bar, four_bar_chain take ':N'"),
        (["compare", "pendulum:1.5"], "a whole number"),
        (["iwim", "pendulum:²"], "a whole number"),
        (["compare", f"pendulum:{'9' * 20}"], "it must be a whole number, 1 to 10000"),
        (["compare", f"four_bar_chain:{'9' * 5000}"], "a whole number"),
        (["draw", "rrr", "-o", "arm.svg", "--ordering", "abba"], "no ordering 'abba'"),
        (["simulate", "rrr", "--plot", "arm.xyz"], ".svg, .png, .pdf"),
        (["bench", "rrr", "--plot", "arm.svg"], "bench papers --plot"),
        (["solve", "rrr", "--state", "missing.json"], "cannot be read"),
    ],
)
def test_errors_are_one_message(words, message):
    done = run(*words, expect=2)
    assert message in done.stderr
    assert "Traceback" not in done.stderr
    assert not done.stdout


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "not JSON"),
        ("[]", "must hold an object"),
        ('{"q": [0, 0, 0]}', "needs q, v, tau"),
        ("[" * 100_000, "cannot be read: it is nested too deeply"),
        ("9" * 5000, "cannot be read: a whole number has too many digits"),
    ],
)
def test_bad_state_files(tmp_path, content, message):
    path = tmp_path / "state.json"
    path.write_text(content)
    assert message in run("solve", "rrr", "--state", str(path), expect=2).stderr


@pytest.mark.parametrize("parameters", ["", "all,gravity"])
def test_compile_counts_what_is_asked_for(tmp_path, parameters):
    words = ["--outputs", "a,da/dtau", "--parameters", parameters, "-o", str(tmp_path / "arm.c")]
    (row,) = json.loads(run("compile", "rrr", *words, "--format", "json").stdout)
    kernel = fgd.compile(
        fgd.robots.rrr(), "forward", outputs=["a", "da/dtau"], parameters=parameters.split(",") if parameters else None
    )
    assert row["multiplications"] == kernel.operations.multiplications
    assert row["accuracy"] == pytest.approx(kernel.accuracy, rel=1e-3)
    assert ("gravity" in (tmp_path / "arm.h").read_text()) == bool(parameters)


def test_simulate_tells_what_damping_takes_in_joules(tmp_path):
    arm = fgd.robots.pendulum(2)
    damped = replace(arm, joints=[replace(joint, damping=0.4) for joint in arm.joints])
    damped.save(tmp_path / "arm.json")
    words = ["simulate", str(tmp_path / "arm.json"), "--seed", "1", "--duration", "0.1", "--format", "json"]
    (row,) = json.loads(run(*words).stdout)
    path = fgd.simulate(damped, *damped.random_state(1), duration=0.1)
    assert row["energy change J"] == pytest.approx(-np.trapezoid(0.4 * (path.v**2).sum(axis=1), path.t), rel=1e-4)


def test_simulate_of_folded_loops_says_how_to_begin_elsewhere(tmp_path):
    parallelogram(1.0, 2.0).save(tmp_path / "linkage.json")
    done = run("simulate", str(tmp_path / "linkage.json"), "--duration", "0.01", expect=2)
    assert "--seed 1 begins elsewhere" in done.stderr
    run("simulate", str(tmp_path / "linkage.json"), "--duration", "0.01", "--seed", "1")


def test_simulate_compiles_by_default():
    row = json.loads(run("simulate", "rrr", "--duration", "0.01", "--format", "json").stdout)[0]
    graph = json.loads(run("simulate", "rrr", "--duration", "0.01", "--engine", "graph", "--format", "json").stdout)[0]
    assert row["steps"] == graph["steps"] == 10
    assert row["energy J"] == pytest.approx(graph["energy J"], rel=1e-12)
    assert "[default: kernel]" in " ".join(run("simulate", "--help").stdout.replace("│", " ").split())
