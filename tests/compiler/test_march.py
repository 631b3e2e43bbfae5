"""Rollouts as many short calls of machine code: the same numbers, and an end when somebody wants one."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.rollout import march
from factorgraph_dyn.compiler.rollout.compiled import compiled_rollout

STEP = 2e-3
STEPS = 23
COUNT = 19  # two full tiles and a rest
PATIENCE = 60.0  # s; what is waited for takes seconds, and took minutes where nothing could interrupt it


class Portions:
    """A pace that is given."""

    def __init__(self, rollouts: int, steps: int) -> None:
        self.rollouts, self.steps, self.calls = rollouts, steps, []

    def most_rollouts(self, steps: int) -> int:
        return self.rollouts

    def most_steps(self, rollouts: int) -> int:
        return self.steps

    def learn(self, began: float, rollouts: int, steps: int) -> None:
        self.calls.append((rollouts, steps))


@pytest.fixture
def paced(monkeypatch):
    """Makes rollouts take so many rollouts and steps a call, and gives the calls."""

    def at(rollouts, steps):
        pace = Portions(rollouts, steps)
        monkeypatch.setattr("factorgraph_dyn.compiler.rollout.compiled.Pace", lambda _: pace)
        return pace.calls

    return at


@pytest.mark.parametrize("robot", [fgd.robots.rrr, fgd.robots.five_bar, fgd.robots.humanoid])
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_short_calls_give_the_same_numbers(robot, integrator, paced):
    mechanism = robot()
    states = [mechanism.random_state(k) for k in range(COUNT)]
    q, v = np.array([q for q, _ in states]), 0.1 * np.array([v for _, v in states])
    tau = np.random.default_rng(0).normal(size=(COUNT, STEPS, mechanism.nv))
    own = {"gravity": np.random.default_rng(1).normal(size=(COUNT, 3))} if robot is fgd.robots.rrr else None
    words = {"integrator": integrator, "parameters": own}
    for every in (1, 4, 23, 1000):
        expected = fgd.rollout(mechanism, q, v, tau, STEP, record_every=every, **words)
        for rollouts, steps in ((8, 1), (16, 3), (24, 5), (24, 9), (8, 22)):
            calls = paced(rollouts, steps)
            found = fgd.rollout(mechanism, q, v, tau, STEP, record_every=every, **words)
            for states, wanted in zip(found, expected, strict=True):
                np.testing.assert_array_equal(states, wanted)
            assert max(n for n, _ in calls) <= rollouts
            assert max(length for _, length in calls) <= steps
            assert sum(n * length for n, length in calls) == COUNT * STEPS


def test_short_calls_write_over_what_was_there(paced):
    """Where rollouts end in the place of their starts, and in places that are wider than one call."""
    arm, tau = fgd.robots.rrr(), np.ones((COUNT, STEPS, 3))
    expected = fgd.rollout(arm, np.zeros(3), np.zeros(3), tau, STEP, record_every=5)
    paced(8, 3)
    out = np.full((COUNT, 6, 3), np.nan), np.full((COUNT, 6, 3), np.nan)
    fgd.rollout(arm, np.zeros(3), np.zeros(3), tau, STEP, record_every=5, out=out, threads=2)
    np.testing.assert_array_equal(out, expected)


def test_no_steps_are_one_row():
    q, v = fgd.rollout(
        fgd.robots.rrr(), np.ones((COUNT, 3)), np.ones(3), np.zeros((0, 3)), STEP, record_every=2**63 - 1
    )
    np.testing.assert_array_equal(q, np.ones((COUNT, 1, 3)))
    np.testing.assert_array_equal(v, np.ones((COUNT, 1, 3)))


def test_a_number_of_steps_that_no_word_holds_is_bounded_where_machine_code_is_called():
    """Whoever asks the compiled loop itself gets the first and the last state, not what is behind them in memory."""
    rollout = compiled_rollout(fgd.robots.rrr(), "semi_implicit")
    starts = march.Starts(np.zeros((1, 3)), np.zeros((1, 3)), np.ones((1, 400, 3)), np.zeros((1, 0)))
    for every in (2**64 + 1, 2**63, 400):
        q, _ = rollout.run(starts, STEP, every)
        assert q.shape == (1, 2, 3)
        np.testing.assert_array_equal(q[:, 1], rollout.run(starts, STEP)[0][:, -1])


def test_a_pace_follows_what_was_measured(monkeypatch):
    clock = iter([1.0, 11.0])
    monkeypatch.setattr(march.time, "perf_counter", lambda: next(clock))
    pace = march.Pace(operations=100)
    assert pace.most_rollouts(1) > pace.most_rollouts(1000) > pace.most_rollouts(10**9) == march.TILE
    pace.learn(0.0, 8, 1000)  # a second
    assert pace.most_rollouts(10) == 80
    assert pace.most_steps(3) == 100
    pace.learn(0.0, 8, 10)
    assert (pace.most_rollouts(10), pace.most_steps(8)) == (march.TILE, 1)


ENDLESS = """
import sys, time
import numpy as np
import factorgraph_dyn as fgd

arm = fgd.robots.puma560()
tau = np.broadcast_to(np.zeros(6), ({count}, {steps}, 6))
words = {{"record_every": {steps}, "threads": {threads}}}
fgd.rollout(arm, np.zeros(6), np.zeros(6), tau[:, :2], 1e-3, **words)
try:
    print("ready", flush=True)
    fgd.rollout(arm, np.zeros(6), np.zeros(6), tau, 1e-9, **words)
except KeyboardInterrupt:
    print("interrupted", flush=True)
"""


@pytest.mark.skipif(os.name != "posix", reason="sends a signal as POSIX has it")
@pytest.mark.parametrize("threads", [1, 2])
@pytest.mark.parametrize(("count", "steps"), [(2, 10**11), (10**6, 10**6)])
def test_a_rollout_is_interrupted(count, steps, threads):
    program = ENDLESS.format(count=count, steps=steps, threads=threads)
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as run:
        try:
            assert run.stdout.readline() == "ready\n"
            run.send_signal(signal.SIGINT)
            said, _ = run.communicate(timeout=PATIENCE)
        finally:
            run.kill()
    assert said == "interrupted\n"
    assert run.returncode == 0
