"""fgdyn identify: a log becomes tables, a picture and a robot; bad logs are refused in one message."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn.cli import app
from factorgraph_dyn.motion.logs import joint_columns
from tests.helpers import relative_error
from tests.identification.logs import states, torques, waves


def columns(samples=400):
    """A log of the three-joint arm, by column, and its motion."""
    arm = fgd.robots.rrr()
    motion = waves(arm, samples, 1, duration=4.0)
    table = {"t": np.linspace(0.0, 4.0, samples)}
    for kind, values in zip(("q", "v", "a", "tau"), (*motion, torques(arm, motion)), strict=True):
        table |= dict(zip(joint_columns(arm, kind), values.T, strict=True))
    return table


def run(tmp_path, table, *options, robot="rrr"):
    path = tmp_path / "log.csv"
    rows = np.column_stack(list(table.values())).tolist()
    path.write_text("\n".join([",".join(table), *(",".join(map(repr, row)) for row in rows)]).replace("nan", ""))
    return CliRunner().invoke(app, ["identify", robot, str(path), *options])


def test_a_log_becomes_tables_a_picture_and_a_robot(tmp_path):
    robot, picture = tmp_path / "found.json", tmp_path / "fit.svg"
    done = run(tmp_path, columns(), "-o", str(robot), "--plot", str(picture))
    assert done.exit_code == 0, done.exception
    for words in ("base parameters from 400 samples", "What the log determines", "link3.I_zz", "damping[joint2]"):
        assert words in done.stdout
    assert "measured" in picture.read_text()
    arm, found = fgd.robots.rrr(), fgd.load(robot)
    other = waves(arm, 50, 2)
    assert relative_error(torques(found, other), torques(arm, other)) < 1e-6


@pytest.mark.parametrize(("show", "key"), [("fit", "r2"), ("base", "standard deviation"), ("parameters", "determined")])
def test_rows_for_programs(tmp_path, show, key):
    done = run(tmp_path, columns(), "--format", "json", "--show", show, "--links", "link3", "--effects", "none")
    assert done.exit_code == 0, done.exception
    rows = json.loads(done.stdout)
    assert all(key in row for row in rows)
    assert len(rows) == {"fit": 3, "parameters": 10}.get(show, len(rows))


def test_accelerations_from_velocities_and_joints_without_torques(tmp_path):
    table = {name: column for name, column in columns(4000).items() if not name.startswith(("a[", "tau[joint1"))}
    done = run(tmp_path, table, "--format", "json", "--show", "fit", "--prior", "none", "--no-physical")
    assert done.exit_code == 0, done.exception
    rows = json.loads(done.stdout)
    assert [row["joint"] for row in rows] == ["joint2", "joint3"]
    assert all(row["relative"] < 1e-4 and row["samples"] == 3996 for row in rows)
    assert "Warning: The log has no accelerations" in done.stderr
    assert "standard deviations too small" in done.stderr


def test_logs_with_accelerations_are_read_without_a_warning(tmp_path):
    assert not run(tmp_path, columns(), "--format", "json").stderr


def test_closed_mechanisms_from_an_npz_of_motors(tmp_path):
    loop = fgd.robots.five_bar()
    q, v, a = states(loop, 40, 1)
    np.savez(tmp_path / "log.npz", q=q, v=v, a=a, tau=torques(loop, (q, v, a))[:, loop.torque_entries()])
    words = [
        "identify",
        "five_bar",
        str(tmp_path / "log.npz"),
        "--effects",
        "none",
        "--format",
        "json",
        "--show",
        "base",
    ]
    done = CliRunner().invoke(app, [*words, "--show", "base"])
    assert done.exit_code == 0, done.exception
    assert len(json.loads(done.stdout)) == 11


def test_bad_logs_are_refused(tmp_path):
    table = columns(60)
    gap = {**table, "tau[joint2]": np.where(table["t"] > 2, np.nan, table["tau[joint2]"])}
    without = {name: column for name, column in table.items() if not name.startswith("a[")}
    pause = {**without, "t": without["t"] + (without["t"] > 2)}
    for given, options, words in (
        ({k: x for k, x in table.items() if k != "v[joint3]"}, (), "has no column v[joint3]"),
        ({k: x for k, x in table.items() if not k.startswith("tau")}, (), "has no torque, such as tau[joint1]"),
        ({k: x for k, x in without.items() if k != "t"}, (), "neither accelerations, such as a[joint1], nor times t"),
        (gap, (), "gaps; the first is sample"),
        (pause, (), "The log has a gap: from t = 1.9"),
        (without, ("--window", "4"), "window is 4; it must be an odd number of samples"),
        (table, ("--prior", "much"), "prior is 'much'; it must be a number, such as 0.3, or 'none'"),
        (table, ("-o", "fit.svg"), "must end in .json or .urdf; --plot FILE draws"),
        (table, ("--links", "elbow"), "'elbow' is not in mechanism"),
    ):
        done = run(tmp_path, given, *options)
        assert isinstance(done.exception, fgd.InputError)
        assert words in str(done.exception), done.exception


@pytest.mark.parametrize(
    ("write", "words"),
    [
        (lambda path: path.write_text("q,v"), "is not an .npz archive"),
        (lambda path: path.write_bytes(b""), "is not an .npz archive"),
        (lambda path: np.savez(path, q=np.array([{}])), "other things than arrays of numbers"),
    ],
)
def test_files_that_are_no_archives_of_arrays_are_refused(tmp_path, write, words):
    path = tmp_path / "log.npz"
    write(path)
    error = CliRunner().invoke(app, ["identify", "rrr", str(path)]).exception
    assert isinstance(error, fgd.InputError)
    assert words in str(error)
    assert "pickle" not in str(error)


def test_the_table_says_whether_what_is_open_has_moved(tmp_path):
    table = columns()
    noise = np.random.default_rng(0).normal(size=400)
    noisy = {name: column + noise * (name == "tau[joint1]") for name, column in table.items()}
    for options, words in (((), "is moved to what bodies can have"), (("--no-physical",), "is as it was")):
        assert f"what is not determined at all {words}" in run(tmp_path, noisy, *options).stdout


def test_the_picture_has_a_panel_a_link_and_leaves_out_what_is_not_determined(tmp_path):
    picture = tmp_path / "fit.svg"
    done = run(tmp_path, columns(), "--plot", str(picture))
    assert done.exit_code == 0, done.exception
    drawn = picture.read_text()
    for words in ("link1", "link3", "armature", "damping", "friction", "not determined", "before", "% left"):
        assert words in drawn
    found = json.loads(run(tmp_path, columns(), "--format", "json").stdout)
    open_ones = sum(row["name"].startswith("link1.") and row["determined"] == "not at all" for row in found)
    assert f"{open_ones} of 10 not determined" in drawn
