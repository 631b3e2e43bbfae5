"""fgdyn estimate: logs and sensors from files, answers in tables and files, bad ones refused in one message."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn.cli import app

SENSORS = """
[[sensor]]
kind = "Torque"
joint = "*"
sigma = 0.05

[[sensor]]
kind = "Acceleration"
joint = ["joint1", "joint2", "joint3"]
sigma = 0.2
columns = ["acc1", "acc2", "acc3"]

[[sensor]]
kind = "ExternalWrench"
frame = "link3"
value = 0.0
sigma = [0.0, 0.0, 0.0, 20.0, 20.0, 20.0]
"""


def log(samples=12, seed=0):
    """Columns of a log, and the force at the tip that it was made with."""
    mechanism, rng = fgd.robots.rrr(), np.random.default_rng(seed)
    force = np.array([0.0, 0.0, 0.0, 2.0, -3.0, 0.0])
    rows = []
    for k in range(samples):
        (q, v), a = mechanism.random_state(rng), rng.normal(size=3)
        tau = fgd.inverse_dynamics(mechanism, q, v, a, external_wrenches={"link3": force}).tau
        rows.append([0.1 * k, *q, *v, *(tau + 0.05 * rng.normal(size=3)), *(a + 0.2 * rng.normal(size=3))])
    joints = mechanism.joint_names
    names = ["t", *(f"{kind}[{name}]" for kind in ("q", "v", "Torque") for name in joints), "acc1", "acc2", "acc3"]
    return names, np.array(rows), force


def write(tmp_path, names, rows, sensors=SENSORS):
    (tmp_path / "sensors.toml").write_text(sensors)
    text = "\n".join([",".join(names), *(",".join(map(repr, row)) for row in rows.tolist())])
    (tmp_path / "log.csv").write_text(text.replace("nan", ""))
    return ["estimate", "rrr", str(tmp_path / "log.csv"), "--sensors", str(tmp_path / "sensors.toml")]


def test_a_log_becomes_rows_a_file_and_a_plot(tmp_path):
    names, rows, force = log()
    words = write(tmp_path, names, rows)
    out, plot = tmp_path / "estimates.npz", tmp_path / "bands.svg"
    done = CliRunner().invoke(app, [*words, "--format", "json", "-o", str(out), "--plot", str(plot)])
    assert done.exit_code == 0, done.exception
    found = {row["name"]: row for row in json.loads(done.stdout)}
    row = found["W[link3].fx"]
    assert abs(row["mean"] - force[3]) < 3 * row["standard deviation"]
    assert found["W[link3].mx"]["standard deviation"] == 0
    assert 0.01 < found["Torque[joint1]"]["innovation"] < 3
    written = np.load(out)
    assert written["tau"].shape == (12, 3)
    mechanism, S = fgd.robots.rrr(), fgd.sensors
    k = 5
    sensors = [S.Torque(name, rows[k, 7 + i], 0.05) for i, name in enumerate(mechanism.joint_names)]
    sensors += [S.Acceleration(name, rows[k, 10 + i], 0.2) for i, name in enumerate(mechanism.joint_names)]
    sensors += [S.ExternalWrench("link3", np.zeros(6), [0, 0, 0, 20, 20, 20])]
    exact = fgd.estimate(mechanism, rows[k, 1:4], rows[k, 4:7], sensors)
    assert np.allclose(written["tau"][k], exact.tau, rtol=1e-9)
    assert np.allclose(written["W[link3]"][k], exact.external["link3"], rtol=1e-8, atol=1e-9)
    assert np.allclose(written["sigma(tau)"][k], exact.standard_deviation["tau"], rtol=1e-9)
    assert np.allclose(written["sigma(W[link3])"][k], exact.standard_deviation["W[link3]"], rtol=1e-8, atol=1e-9)
    assert "<svg" in plot.read_text()


def test_arrays_of_an_archive_are_columns_and_their_gaps_have_names(tmp_path):
    names, rows, _ = log(3)
    words = write(tmp_path, names, rows)
    columns = {name: rows[:, k] for k, name in enumerate(names) if name[0] not in "qv"}
    columns |= {"q": rows[:, 1:4], "v": rows[:, 4:7], "rate": np.array(10.0)}
    words[2] = str(tmp_path / "log.npz")
    np.savez(words[2], **columns)
    assert CliRunner().invoke(app, words).exit_code == 0
    np.savez(words[2], **{**columns, "v": np.where(rows[:, 4:7] == rows[1, 6], np.nan, rows[:, 4:7])})
    done = CliRunner().invoke(app, words)
    assert "sample 2 of column 'v'" in str(done.exception)


def _with_gap(rows):
    return np.where(np.arange(rows.size).reshape(rows.shape) == rows.shape[1] + 7, np.nan, rows)


@pytest.mark.parametrize(
    ("spoil", "message"),
    [
        (lambda n, r, s: (n, _with_gap(r), s), "sample 2 of column 'Torque[joint1]'"),
        (lambda n, r, s: (["x" if c == "acc2" else c for c in n], r, s), "has no column acc2"),
        (lambda n, r, s: (n, r[::-1], s), "do not increase at sample 2"),
        (lambda n, r, s: (n, r[:0], s), "no samples"),
        (lambda n, r, s: (n[:-1], r, s), "Line 2 of the log"),
        (lambda n, r, s: (n, r, s.replace('"Torque"', '"Torq"')), "Sensor 'Torq' is not in fgd.sensors"),
        (lambda n, r, s: (n, r, s.replace("sigma = 0.2", "sigm = 0.2")), "Key 'sigm' is not in"),
        (lambda n, r, s: (n, r, s.replace('"joint3"]', '"joint4"]')), "Joint 'joint4' is not in"),
        (lambda n, r, s: (n, r, s.replace("sigma = 0.2", "sigma = -1")), "0 (exact) or positive"),
        (
            lambda n, r, s: (n, r, s.replace('joint = "*"', 'joint = "joint1"').replace("sigma = 0.2", "sigma = inf")),
            "not determine",
        ),
        (lambda n, r, s: (n, r, "[[sensor"), "is not TOML"),
        (lambda n, r, s: (n, r, "sensor = [1]"), "must be a table with kind"),
        (lambda n, r, s: (n, r, s.replace('kind = "Torque"', 'joints = "*"')), "has no kind"),
        (lambda n, r, s: (n, r, s.replace("value = 0.0", "value = [0.0, 1.0]")), "has shape (2,); it must be (6,)"),
        (lambda n, r, s: (n, r, s.replace("value = 0.0", 'value = "none"')), "must be real numbers"),
        (lambda n, r, s: (["acc1" if c == "acc2" else c for c in n], r, s), "several columns acc1"),
        (lambda n, r, s: (n, r, ""), "has no [[sensor]]"),
        (lambda n, r, s: (n, r, s.replace('["acc1", "acc2", "acc3"]', "5")), "columns of the Acceleration"),
        (lambda n, r, s: (n, r, s.replace('"*"', "[]")), "is on no joint; name one or more"),
    ],
)
def test_bad_logs_and_sensors_are_refused_in_words(tmp_path, spoil, message):
    names, rows, _ = log(3)
    names, rows, sensors = spoil(names, rows, SENSORS)
    done = CliRunner().invoke(app, write(tmp_path, names, rows, sensors))
    assert isinstance(done.exception, fgd.FactorGraphDynError)
    assert message in str(done.exception)


def test_estimates_are_compiled_with_their_sensors_and_not_searched(tmp_path):
    words = ["compile", "rrr", "--problem", "estimate", "--format", "json"]
    (tmp_path / "sensors.toml").write_text(SENSORS)
    sensors = ["--sensors", str(tmp_path / "sensors.toml")]
    done = CliRunner().invoke(app, [*words, *sensors])
    assert done.exit_code == 0, done.exception
    assert json.loads(done.output)[0]["problem"] == "estimate"
    for wrong in (words, ["compile", "rrr", *sensors]):
        assert "--sensors FILE" in str(CliRunner().invoke(app, wrong).exception)
    assert "estimate" not in CliRunner().invoke(app, ["search", "--help"]).output


TORQUES = '[[sensor]]\nkind = "Torque"\njoint = "*"\nsigma = 0.05\n'


def accelerometer(*components, more=""):
    chosen = f"components = {list(components)}\n" if components else ""
    return f'[[sensor]]\nkind = "Accelerometer"\nframe = "link3"\nsigma = 0.01\n{chosen}{more}'


def accelerated(samples=4):
    """A log with an accelerometer's x, y and z in its last columns, and the accelerations of its joints."""
    names, rows, _ = log(samples)
    mechanism, rng, read, moved = fgd.robots.rrr(), np.random.default_rng(3), [], []
    for row in rows:
        q, v, a = row[1:4], row[4:7], rng.normal(size=3)
        made = fgd.inverse_dynamics(mechanism, q, v, a)
        A, V = made.accelerations["link3"], made.twists["link3"]
        read.append([*made.tau, *(A[3:] + np.cross(V[:3], V[3:]))])
        moved.append(a)
    suffixed = [f"Accelerometer[link3].{axis}" for axis in "xyz"]
    return [*names[:10], *suffixed], np.column_stack([rows[:, :7], read]), np.array(moved)


def found_accelerations(words, tmp_path):
    out = tmp_path / "estimates.npz"
    done = CliRunner().invoke(app, [*words, "-o", str(out)])
    assert done.exit_code == 0, done.exception
    return np.load(out)["a"]


@pytest.mark.parametrize("chosen", [[("x",)], [("x",), ("z",)], [("z", "x")], [("z", "y", "x")], [()]])
def test_components_are_read_from_columns_or_arrays_of_their_own(tmp_path, chosen):
    names, rows, exact = accelerated()
    words = write(tmp_path, names, rows, TORQUES + "".join(accelerometer(*each) for each in chosen))
    assert np.allclose(found_accelerations(words, tmp_path), exact, atol=1e-8)
    words[2] = str(tmp_path / "log.npz")
    np.savez(words[2], **dict(zip(names[:10], rows.T[:10], strict=True)), **{"Accelerometer[link3]": rows[:, 10:]})
    assert np.allclose(found_accelerations(words, tmp_path), exact, atol=1e-8)


def test_a_plain_name_is_what_the_only_sensor_reads(tmp_path):
    names, rows, exact = accelerated()
    plain = [*names[:10], "Accelerometer[link3]"]
    words = write(tmp_path, plain, rows[:, :11], TORQUES + accelerometer("x"))
    assert np.allclose(found_accelerations(words, tmp_path), exact, atol=1e-8)
    both = TORQUES + accelerometer("x") + accelerometer("z")
    for columns, sensors in (
        (plain, both),
        ([*plain, *names[11:]], both),
        ([*plain, *names[11:]], TORQUES + accelerometer("x")),
    ):
        done = CliRunner().invoke(app, write(tmp_path, columns, rows[:, : len(columns)], sensors))
        assert "has no column Accelerometer[link3].x." in str(done.exception)


def test_no_column_is_read_twice(tmp_path):
    names, rows, _ = accelerated()
    for sensors, words in (
        (TORQUES + TORQUES, "Torque[joint1] and Torque[joint1] both read the column Torque[joint1]"),
        (
            TORQUES + accelerometer("x") + accelerometer("z", more=f'columns = "{names[10]}"\n'),
            "Accelerometer[link3] (x) and Accelerometer[link3] (z) both read the column Accelerometer[link3].x",
        ),
    ):
        done = CliRunner().invoke(app, write(tmp_path, names, rows, sensors))
        assert isinstance(done.exception, fgd.InputError)
        assert words in str(done.exception)
