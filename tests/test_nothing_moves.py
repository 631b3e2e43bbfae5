"""Mechanisms in which nothing moves: every command and function answers, or refuses in words."""

from __future__ import annotations

import numpy as np
import pytest
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn.cli import HOMES, app

INERTIA = '<inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/>'
FILES = {
    "one_link": '<robot name="x"><link name="a"/></robot>',
    "fixed": f"""<robot name="x"><link name="a"/><link name="b"><inertial><mass value="1"/>{INERTIA}</inertial></link>
        <joint name="j" type="fixed"><parent link="a"/><child link="b"/></joint></robot>""",
}
NONE = np.zeros(0)
ANSWERS = ("info", "diagnose", "view", "convert")  # they have something to say of any mechanism
PICTURES = ("graph", "dag", "matrix", "tree", "steps")
WORDS = {
    "draw": [("-o", "p.svg", "--what", what) for what in (*PICTURES, "bars")],
    "report": [("-o", "r.html")],
    "view": [("-o", "v.html")],
    "convert": [("-o", "o.json")],
    "solve": [("--state", "s.json")],
    "iwim": [(), ("--contacts", "a")],
    "simulate": [("--engine", "graph"), ()],
    "estimate": [("log.csv", "--sensors", "s.toml")],
    "identify": [("log.csv",)],
    "search": [("--budget", "1")],
    "compare": [("--problem", problem) for problem in ("forward", "inverse", "hybrid")],
}
COMMANDS = [(name, *more) for name in HOMES if name != "robots" for more in WORDS.get(name, [()])]


@pytest.fixture(params=FILES)
def path(request, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "s.json").write_text('{"q": [], "v": [], "tau": []}')
    (tmp_path / "log.csv").write_text("t\n" + "\n".join(map(str, range(9))))
    (tmp_path / "s.toml").write_text('[[sensor]]\nkind = "Accelerometer"\nframe = "a"\nsigma = 0.1\n')
    path = tmp_path / f"{request.param}.urdf"
    path.write_text(FILES[request.param])
    return path


@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_commands_answer_or_refuse_in_words(path, words):
    name, *more = words
    done = CliRunner().invoke(app, [name, str(path), *more])
    drawn = path.stem == "fixed" and (name == "report" or (name == "draw" and words[-1] in PICTURES))
    if name in ANSWERS or drawn:
        assert done.exit_code == 0, done.output
    else:
        assert isinstance(done.exception, fgd.FactorGraphDynError), done.exception
        assert "has no movable joint" in str(done.exception)


@pytest.mark.parametrize(
    "call",
    [
        lambda m: fgd.simulate(m, NONE, NONE, None, 0.01, 1e-3),
        lambda m: fgd.rollout(m, NONE, NONE, np.zeros((3, 0)), 1e-3),
        lambda m: fgd.compare_orderings(m, kernels=False),
        lambda m: fgd.search_orderings(m, budget=1.0),
        fgd.compile,
        fgd.compile_step,
        lambda m: fgd.iwim(m, NONE),
        lambda m: fgd.forward_dynamics(m, [1.0], [1.0], [1.0]),
    ],
)
def test_functions_that_need_motion_say_that_there_is_none(path, call):
    with pytest.raises(fgd.FactorGraphDynError, match="no movable joint"):
        call(fgd.load(path))


def test_everything_else_is_empty(path):
    mechanism = fgd.load(path)
    assert fgd.forward_dynamics(mechanism, NONE, NONE, NONE).a.shape == (0,)
    assert fgd.mass_matrix(mechanism, NONE).shape == (0, 0)
    assert fgd.jacobian(mechanism, NONE, "a").shape == (6, 0)
    graph = fgd.dynamics_graph(fgd.evaluate_state(mechanism, NONE, NONE), fgd.Known.forward(NONE))
    A, b = graph.dense()
    assert A.shape == (graph.rows, graph.columns)
    assert b.shape == (graph.rows,)


def test_batches_and_estimates_of_nothing_are_empty(path):
    mechanism = fgd.load(path)
    assert fgd.pose(mechanism, np.zeros((5, 0)), "a").shape == (5, 4, 4)
    assert fgd.jacobian(mechanism, np.zeros((2, 3, 0)), "a").shape == (2, 3, 6, 0)
    assert fgd.estimate_velocity(mechanism, NONE, []).v.shape == (0,)
    assert fgd.estimate(mechanism, NONE, NONE, []).a.shape == (0,)
