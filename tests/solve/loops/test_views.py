"""The lecture's projectors, the diagnosis, the simulation and the commands."""

import json
import subprocess
import sys
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Joint, Link, Loop, Mechanism
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.model.robots.bodies import rod
from tests.mechanisms import random_planar, random_spatial
from tests.oracles.closed import relative

AGREES = 1e-9
CLOSED = 1e-10


@pytest.mark.parametrize("build", [fgd.robots.five_bar, fgd.robots.delta, lambda: random_planar(4),
                                   lambda: random_spatial(2)])  # fmt: skip
def test_projectors_equal_the_graph(build):
    mechanism = build()
    q, v = mechanism.random_state(0)
    tau = np.random.default_rng(1).normal(size=mechanism.nv)
    view = fgd.constraints(mechanism, q, v)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    assert relative(view.accelerations_by_schur(tau), a) < AGREES
    assert relative(view.accelerations_by_qr(tau), a) < AGREES
    scale = np.abs(view.H @ a + view.h - tau).max() + 1
    for P in (view.schur_projector, view.qr_projector):
        assert np.abs(P @ (view.H @ a + view.h - tau)).max() < 1e-8 * scale
        assert np.abs(P @ view.J.T).max() < 1e-8
    assert np.abs(view.schur_projector @ view.schur_projector - view.schur_projector).max() < 1e-7
    forces = view.J.T @ view.multipliers(tau)
    np.testing.assert_allclose(view.H @ a + view.h, tau + forces, atol=1e-8 * scale)
    assert len(view.names) == len(view.J)
    assert view.qr_projector.shape == (mechanism.nv - view.rank, mechanism.nv)


@pytest.mark.parametrize(
    ("robot", "mobility", "redundant", "too_many", "too_few"),
    [
        (fgd.robots.four_bar(), 1, 3, 0, 0),
        (fgd.robots.five_bar(), 2, 3, 0, 0),
        (fgd.robots.five_bar(1), 2, 3, 0, 1),
        (fgd.robots.five_bar(5), 2, 3, 3, 0),
        (fgd.robots.four_bar_chain(3), 3, 9, 0, 0),
        (fgd.robots.stewart(), 6, 0, 0, 0),
        (fgd.robots.delta(), 3, 0, 0, 0),
        (fgd.robots.rrr(), 3, 0, 0, 0),
    ],
)
def test_diagnosis_counts(robot, mobility, redundant, too_many, too_few):
    found = fgd.diagnose(robot, robot.neutral())
    assert found.mobility == found.usual_mobility == mobility
    assert sum(found.redundant.values()) + found.shared_redundant == redundant
    assert (found.redundant_motors, found.missing_motors) == (too_many, too_few)
    assert bool(found.undetermined) == bool(redundant)
    assert not found.is_singular
    assert f"mobility: {mobility}" in str(found)


def test_diagnosis_of_singular_places_and_problems():
    crank = fgd.robots.four_bar()
    # a parallelogram laid flat can turn over: one freedom more than usual
    links = crank.links
    place = fgd.spatial.pose
    joints = (
        fgd.Joint("a", "revolute", "base", "crank", axis=(0, -1, 0)),
        fgd.Joint("b", "revolute", "crank", "coupler", place(np.eye(3), np.array([0.3, 0, 0])), (0, -1, 0)),
        fgd.Joint("c", "revolute", "base", "rocker", place(np.eye(3), np.array([0.5, 0, 0])), (0, -1, 0)),
    )
    ends = (place(np.eye(3), np.array([0.3, 0, 0])), place(np.eye(3), np.array([0.5, 0, 0])))
    loop = fgd.Loop("pin", "revolute", "rocker", "coupler", *ends, axis=(0, -1, 0))
    mechanism = fgd.Mechanism("parallelogram", links, joints, (loop,))
    flat = fgd.diagnose(mechanism, np.zeros(3))
    assert (flat.mobility, flat.usual_mobility) == (2, 1)
    assert flat.is_singular
    with pytest.raises(fgd.SingularSystemError, match=r"'pin' closed.*singular configuration"):
        fgd.forward_dynamics(mechanism, np.zeros(3), [1.0, -0.7, 1.5], np.zeros(3))
    five = fgd.robots.five_bar()
    problem = fgd.diagnose(five, five.neutral(), a={"left_shoulder": 1.0}, tau={})
    assert "a[right_shoulder]" in problem.undetermined
    assert "tau[left_shoulder]" in problem.undetermined


@pytest.mark.parametrize("method", ["rk4", "semi_implicit"])
def test_a_swing_keeps_closure_and_energy(method):
    mechanism = fgd.robots.five_bar()
    start = mechanism.neutral()
    step = 2e-3
    trajectory = fgd.simulate(mechanism, start, np.zeros(4), None, 0.2, step, method=method)
    assert trajectory.t[-1] == pytest.approx(0.2)
    assert len(trajectory.t) == 101
    assert trajectory.closure_error.max() < CLOSED
    assert trajectory.energy_drift < (1e-7 if method == "rk4" else 0.1)
    assert trajectory.kinetic[-1] > 0.1


def test_trees_and_quaternions_simulate_too():
    mechanism = fgd.robots.stewart()
    q, v = mechanism.random_state(0)
    trajectory = fgd.simulate(mechanism, q, v, np.zeros(24), 0.01, 1e-3, record_every=5)
    assert trajectory.closure_error.max() < CLOSED
    assert trajectory.energy_drift < 1e-8
    assert len(trajectory.t) == 3
    pendulum = fgd.robots.pendulum(2)

    def brake(t, q, v):
        return -0.5 * v

    slowed = fgd.simulate(pendulum, [1.0, 0.5], [0.0, 0.0], brake, 0.5, 5e-3)
    assert slowed.energy[-1] < slowed.energy[0]
    free = fgd.simulate(pendulum, [1.0, 0.5], [0.0, 0.0], None, 0.5, 5e-3)
    assert free.energy_drift < 1e-7


def test_any_engine_drives_a_simulation():
    mechanism = fgd.robots.five_bar()
    start, rest = mechanism.close([2.2, 0.9, -2.2, -0.9]), np.zeros(4)
    kernel = fgd.compile(mechanism, "forward")
    fast = fgd.simulate(mechanism, start, rest, [0.1, 0, 0, 0], 0.05, 1e-3, engine=kernel)
    slow = fgd.simulate(mechanism, start, rest, [0.1, 0, 0, 0], 0.05, 1e-3)
    np.testing.assert_allclose(fast.q, slow.q, atol=1e-10)
    assert fast.closure_error.max() < CLOSED


def test_simulation_refuses_nonsense():
    pendulum = fgd.robots.pendulum()
    for bad, words in (
        ({"step": 0.0}, "step is 0"),
        ({"duration": -1.0}, "duration is -1"),
        ({"method": "euler"}, "rk4, semi_implicit"),
        ({"engine": "magic"}, "engine is 'magic'"),
        ({"record_every": 0}, "record_every"),
        ({"torque": [1.0, 2.0]}, "shape"),
    ):
        with pytest.raises(fgd.InputError, match=words):
            fgd.simulate(pendulum, [0.1], [0.0], **bad)
    with pytest.raises(fgd.ClosureError, match="'tip'"):
        fgd.simulate(fgd.robots.five_bar(), np.full(4, 0.1), np.zeros(4))
    with pytest.raises(fgd.InputError, match="not finite"):
        fgd.simulate(pendulum, [0.1], [0.0], lambda t, q, v: [np.nan])


def parallelogram() -> Mechanism:
    """Two cranks of one length and a coupler between them: singular where all lie in one line."""
    axis, up, right = (0, -1, 0), translation(0, 0, 0.5), translation(1, 0, 0)
    links = [rod(name, 1.0, (0, 0, 0), (0, 0, 0.5), 0.02) for name in ("left", "top", "right")]
    joints = [
        Joint("crank", "revolute", "base", "left", axis=axis),
        Joint("top_pin", "revolute", "left", "top", up, axis, actuated=False),
        Joint("follower", "revolute", "base", "right", right, axis, actuated=False),
    ]
    pin = Loop("pin", "revolute", "right", "top", up, right, axis)
    return Mechanism("parallelogram", (Link("base"), *links), joints, (pin,))


@pytest.mark.parametrize("torque", [None, lambda t, q, v: -v])
def test_a_kernel_without_an_answer_says_why(torque):
    mechanism = parallelogram()
    flat = mechanism.close(np.array([0.5, -0.5, 0.5]) * np.pi)
    with pytest.raises(
        fgd.InputError, match=r"stopped at t = 0\.01 s.*The engine says: The pivot of .* has to be more"
    ):
        fgd.simulate(mechanism, flat, np.zeros(3), torque, 0.1, 0.01, engine=fgd.compile(mechanism))


def test_only_the_first_cause_of_a_refusal_is_told():
    mechanism = parallelogram()
    flat = mechanism.close(np.array([0.5, -0.5, 0.5]) * np.pi)
    (message,) = fgd.compile(mechanism).check(flat, np.zeros(3), np.zeros(3))
    assert message.startswith("The pivot of ")


def test_losses_are_no_drift():
    damped = replace(fgd.robots.pendulum(), joints=[replace(fgd.robots.pendulum().joints[0], damping=0.1)])
    assert not fgd.simulate(damped, [0.1], [0.0], None, 0.01, 1e-3).is_conservative
    assert not fgd.simulate(fgd.robots.pendulum(), [0.1], [0.0], [1.0], 0.01, 1e-3).is_conservative
    assert fgd.simulate(fgd.robots.pendulum(), [0.1], [0.0], None, 0.01, 1e-3).is_conservative


@pytest.mark.slow
def test_commands(tmp_path):
    def run(*words):
        done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", *words], capture_output=True, text=True)
        return done.returncode, done.stdout, done.stderr

    code, out, _ = run("diagnose", "five_bar", "--format", "json")
    assert code == 0
    assert {row["question"]: row["answer"] for row in json.loads(out)}["mobility"] == 2
    picture = tmp_path / "swing.png"
    code, out, _ = run("simulate", "four_bar", "--duration", "0.02", "--plot", str(picture), "--format", "json")
    assert code == 0
    assert picture.stat().st_size > 1000
    assert json.loads(out)[0]["closure error"] < CLOSED
    assert json.loads(out)[0]["energy drift"] < 1e-9
    damped = tmp_path / "damped.json"
    replace(fgd.robots.rrr(), joints=[replace(j, damping=0.1) for j in fgd.robots.rrr().joints]).save(damped)
    code, out, _ = run("simulate", str(damped), "--duration", "0.02")
    assert "energy change" in out
    assert "damping and friction" in out
    code, _, err = run("diagnose", "five_bar", "--actuated", "nobody")
    assert code == 2
    assert "left_shoulder" in err
