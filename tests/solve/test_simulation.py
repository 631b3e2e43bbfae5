"""Simulations: what is recorded, engines that do not fit, and how a trajectory shows itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.solve import trajectory as trajectories
from tests.helpers import relative_error
from tests.oracles.engines import pinocchio_oracle

RRR = fgd.robots.rrr()
START = np.array([0.3, -0.4, 0.5]), np.array([0.1, 0.2, -0.3])


def spring(t, q, v):
    return -20.0 * q - 2.0 * v + np.sin(t)


@pytest.fixture(scope="module")
def swing():
    return fgd.simulate(RRR, *START, spring, 0.05, 1e-3, engine=fgd.compile(RRR))


def test_a_simulation_equals_a_loop_over_pinocchio(swing):
    engine, step = pinocchio_oracle(RRR), 1e-3
    states = [START]
    for k in range(50):
        (q, v), t = states[-1], k * step

        def rates(time, q, v):
            return v, engine.forward_dynamics(q, v, spring(time, q, v))

        v_1, a_1 = rates(t, q, v)
        v_2, a_2 = rates(t + step / 2, q + step / 2 * v_1, v + step / 2 * a_1)
        v_3, a_3 = rates(t + step / 2, q + step / 2 * v_2, v + step / 2 * a_2)
        v_4, a_4 = rates(t + step, q + step * v_3, v + step * a_3)
        states.append((q + step / 6 * (v_1 + 2 * v_2 + 2 * v_3 + v_4), v + step / 6 * (a_1 + 2 * a_2 + 2 * a_3 + a_4)))
    assert relative_error(swing.q, np.array([q for q, _ in states])) < 1e-12
    assert relative_error(swing.v, np.array([v for _, v in states])) < 1e-12
    torques = [spring(t, q, v) for t, q, v in zip(swing.t, swing.q, swing.v, strict=True)]
    np.testing.assert_array_equal(swing.tau, torques)


def test_energies_are_those_of_the_states_in_any_block(swing, monkeypatch):
    engine = pinocchio_oracle(RRR)
    expected = np.array([engine.energy(q, v) for q, v in zip(swing.q, swing.v, strict=True)])
    assert relative_error(swing.kinetic, expected[:, 0]) < 1e-12
    assert np.ptp(swing.potential - expected[:, 1]) < 1e-12  # where the zero is, is a matter of taste
    monkeypatch.setattr(trajectories, "BLOCK", 7)
    again = fgd.simulate(RRR, *START, spring, 0.05, 1e-3, engine=fgd.compile(RRR))
    np.testing.assert_allclose(again.energy, swing.energy, rtol=1e-14)


def test_energies_are_not_computed_step_by_step(monkeypatch):
    """Recording one state at a time took three quarters of a simulation."""
    calls = []
    monkeypatch.setattr(trajectories, "energy", lambda *words: calls.append(1) or fgd.energy(*words))
    fgd.simulate(RRR, *START, spring, 0.2, 1e-3, engine=fgd.compile(RRR))
    assert len(calls) == 1


def test_torques_are_asked_for_once_an_instant():
    asked = []

    def torque(t, q, v):
        asked.append(t)
        return np.zeros(3)

    fgd.simulate(RRR, *START, torque, 3e-3, 1e-3, method="semi_implicit", engine=fgd.compile(RRR))
    np.testing.assert_allclose(asked, [0.0, 1e-3, 2e-3, 3e-3])


def test_other_kernels_are_refused_in_words():
    pendulum, heavier = fgd.robots.pendulum(3), RRR.add_payload("link3", 1.0)
    for engine, words in (
        (fgd.compile(pendulum), r"kernel of another mechanism, 'pendulum3' .* the simulation is of 'rrr'"),
        (fgd.compile(heavier), r"which differs in its numbers\. Use fgd\.compile\(mechanism, 'forward'\)"),
        (fgd.compile(RRR, "inverse"), r"takes \(q, v, tau\) and gives a"),
        (fgd.compile(RRR, outputs=["a", "F[joint1]"]), r"takes \(q, v, tau\) and gives a"),
    ):
        with pytest.raises(fgd.InputError, match=words):
            fgd.simulate(RRR, *START, engine=engine)


@pytest.mark.parametrize("bad", [np.array([1.0, np.nan, 0.0]), [np.inf, 0.0, 0.0]])
def test_torques_that_are_not_finite_are_named(bad):
    with pytest.raises(fgd.InputError, match="tau is not finite"):
        fgd.simulate(RRR, *START, lambda t, q, v: bad if t > 1e-3 else np.zeros(3), 0.01, 1e-3, engine=fgd.compile(RRR))


def test_controllers_and_engines_may_write_into_what_they_are_given():
    """Neither the simulation nor the caller's arrays change by it."""
    kernel, q0 = fgd.compile(RRR), np.array(START[0], dtype=float)
    buffer = np.zeros(3)

    def torque(t, q, v):
        q -= 0.5
        v *= -0.1
        return v - q

    def engine(q, v, tau):
        buffer[:] = kernel(q, v, tau)
        q[:], v[:], tau[:] = 1.0, 2.0, 3.0
        return buffer

    true = fgd.simulate(RRR, q0.copy(), START[1], lambda t, q, v: -0.1 * v - (q - 0.5), 0.01, 1e-3, engine=kernel)
    for how in (kernel, engine):
        found = fgd.simulate(RRR, q0, START[1], torque, 0.01, 1e-3, engine=how)
        assert relative_error(found.q, true.q) < 1e-13
        assert (q0 == START[0]).all()


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (1.0, r"The engine's a has shape \(\); it must be \(3,\)"),
        (np.ones(2), r"The engine's a has shape \(2,\)"),
        ("abc", "The engine's a is 'abc'; it must be real numbers"),
        ([1j, 0, 0], "The engine's a is .* it must be real numbers"),
        ([1.0, np.nan, 0.0], r"The engine says: a = \[1.0, nan, 0.0\] for finite q, v and tau"),
    ],
)
def test_answers_of_engines_are_checked(answer, words):
    with pytest.raises(fgd.InputError, match=words):
        fgd.simulate(RRR, *START, None, 0.01, 1e-3, engine=lambda q, v, tau: answer)


@pytest.mark.parametrize("answer", [1.0, np.ones(2), "abc", [1j, 0, 0], None, [[1], [2, 3]]])
def test_answers_of_torque_functions_are_checked(answer):
    with pytest.raises(fgd.InputError, match="The torque function's tau"):
        fgd.simulate(RRR, *START, lambda t, q, v: answer, 0.01, 1e-3)


def test_a_trajectory_shows_itself(swing, tmp_path):
    assert repr(swing).startswith("<Trajectory of 'rrr': 51 rows, t = 0 to 0.05 s, energy ")
    assert len(repr(swing)) < 120
    five_bar = fgd.robots.five_bar()
    closed = fgd.simulate(five_bar, five_bar.neutral(), np.zeros(4), None, 3e-3, 1e-3)
    assert "closure error up to" in repr(closed)
    page = swing._repr_html_()
    assert page.count("<tr>") == 1 + len(swing.to_dict())
    named = replace(RRR, name="<script>")
    assert "<script>" not in fgd.simulate(named, *START, None, 1e-3, 1e-3)._repr_html_()
    figure = swing.plot(tmp_path / "swing.svg")
    assert (tmp_path / "swing.svg").stat().st_size > 1000
    assert len(figure.axes) == 3
    assert len(closed.plot().axes) == 3
    with pytest.raises(fgd.InputError, match=r"\.svg, \.png, \.pdf"):
        swing.plot("swing.xyz")


def test_a_trajectory_is_a_table_of_columns(swing):
    columns = swing.to_dict()
    assert list(columns)[:4] == ["t", "q[joint1]", "q[joint2]", "q[joint3]"]
    assert {column.shape for column in columns.values()} == {(51,)}
    np.testing.assert_array_equal(columns["v[joint2]"], swing.v[:, 1])
    ball = fgd.Mechanism(
        "ball",
        [fgd.Link("base"), fgd.Link("arm", 1.0, (0.1, 0.0, 0.0), 0.1 * np.eye(3))],
        [fgd.Joint("socket", "spherical", "base", "arm")],
    )
    columns = fgd.simulate(ball, ball.neutral(), np.ones(3), None, 2e-3, 1e-3).to_dict()
    assert [name for name in columns if name.startswith("q")] == [f"q[socket][{k}]" for k in range(4)]
    assert [name for name in columns if name.startswith("v")] == [f"v[socket][{k}]" for k in range(3)]


def test_energy_that_is_kept_has_not_drifted_where_nothing_swings():
    links = fgd.Link("ground"), fgd.Link("body", 1.0, (0.1, 0.0, 0.0), np.diag([1.0, 2.0, 2.5]))
    body = fgd.Mechanism("body", links, (fgd.Joint("free", "floating", "ground", "body"),), gravity=(0, 0, 0))
    v = [1.0, 2.0, 3.0, 0.1, 0.2, 0.3]
    fine, coarse = (fgd.simulate(body, body.neutral(), v, duration=0.4, step=step) for step in (1e-2, 0.2))
    for path in (fine, coarse):
        assert path.energy_drift == pytest.approx(np.abs(path.energy / path.energy[0] - 1.0).max(), rel=0.2)
    assert fine.energy_drift < 1e-7 < coarse.energy_drift < 0.1


@pytest.mark.parametrize(("duration", "end"), [(0.2, 0.3), (0.4, 0.3), (0.5, 0.6), (0.6, 0.6)])
def test_durations_are_rounded_to_whole_steps(duration, end):
    path = fgd.simulate(fgd.robots.pendulum(1), [1.0], [0.0], duration=duration, step=0.3)
    assert path.t[-1] == pytest.approx(end)
    assert "rounded to whole steps" in fgd.simulate.__doc__


def test_durations_of_no_step_are_refused():
    with pytest.raises(fgd.InputError, match=r"duration is 0\.1 s and the step 1 s.*shorter step or a longer duration"):
        fgd.simulate(fgd.robots.pendulum(1), [1.0], [0.0], duration=0.1, step=1)


class Controller:
    """One whose method has the right signature."""

    def torque(self, t, q, v, gain=1.0):
        return -gain * v

    def __call__(self, q):
        return q


@pytest.mark.parametrize(
    "torque", [lambda t, q: q, lambda: 0, lambda t, q, v, w: q, lambda *, t, q, v: q, Controller()]
)
def test_controllers_of_another_signature_are_refused_in_words(torque):
    words = r"The torque function .*cannot be called with \(t, q, v\): .*a function of \(t, q, v\) that gives torques"
    with pytest.raises(fgd.InputError, match=words):
        fgd.simulate(RRR, *START, torque, 0.01, 1e-3)
    with pytest.raises(fgd.InputError, match=r"The engine .*cannot be called with \(q, v, tau\)"):
        fgd.simulate(RRR, *START, None, 0.01, 1e-3, engine=torque)


def test_controllers_may_be_methods_and_their_own_errors_come_through():
    kernel, step = fgd.compile(RRR), 1e-3
    found = fgd.simulate(RRR, *START, Controller().torque, 0.01, step, engine=kernel)
    expected = fgd.simulate(RRR, *START, lambda *given: -given[2], 0.01, step, engine=kernel)
    np.testing.assert_array_equal(found.q, expected.q)
    with pytest.raises(TypeError, match="has no len"):
        fgd.simulate(RRR, *START, lambda t, q, v: len(3), 0.01, step, engine=kernel)
