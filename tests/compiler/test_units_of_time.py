"""Answers do not depend on the unit of time: milliseconds, seconds or hours, with gravity, springs or neither."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from itertools import product

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.proof.proof import Trial
from factorgraph_dyn.compiler.proof.trials import make_trials
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from tests.helpers import lossy

TIMES = {"ms": 1e-3, "h": 3600.0, "ns": 1e-9, "years": 3e7}
SAME = 1e-12  # relative to the largest quantity of its kind, in the mechanism's own units
CLOSED = ("four_bar", "delta")
KINDS = ("heavy", "weightless", "sprung")


def timed(mechanism: fgd.Mechanism, time: float) -> fgd.Mechanism:
    """The mechanism described in a unit of time of so many seconds."""
    joints = [
        replace(j, damping=j.damping * time, friction=j.friction * time**2, stiffness=j.stiffness * time**2)
        for j in mechanism.joints
    ]
    return replace(mechanism, joints=tuple(joints), gravity=np.asarray(mechanism.gravity) * time**2)


@cache
def sample(name: str, kind: str) -> fgd.Mechanism:
    """A mechanism under gravity, or without, or with springs and losses instead."""
    mechanism = fgd.robots.random_tree(5, seed=3) if name == "tree" else getattr(fgd.robots, name)()
    mechanism = lossy(mechanism, 1) if kind == "sprung" else mechanism
    return mechanism if kind == "heavy" else replace(mechanism, gravity=(0.0, 0.0, 0.0))


def drawn(mechanism: fgd.Mechanism, seed: int = 2):
    """A state and torques as they are usual in seconds."""
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    return q, v, rng.normal(size=mechanism.nv) * natural(mechanism).tau


def assert_same(found, expected, units):
    expected = np.asarray(expected) / units
    np.testing.assert_allclose(np.asarray(found) / units, expected, rtol=0, atol=SAME * np.abs(expected).max())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tree", *CLOSED])
@pytest.mark.parametrize("unit", TIMES)
def test_time_changes_no_answer(name, kind, unit):
    t, mechanism = TIMES[unit], sample(name, kind)
    other, own = timed(mechanism, t), natural(mechanism)
    q, v, tau = drawn(mechanism)
    first, second = fgd.forward_dynamics(mechanism, q, v, tau), fgd.forward_dynamics(other, q, v * t, tau * t**2)
    assert_same(second.a / t**2, first.a, own.v)
    if name == "tree":
        for method in ("eufm", "iim"):
            M, M2 = (fgd.inverse_mass_matrix(m, q, method=method) for m in (mechanism, other))
            assert_same(M2, M, np.outer(own.v, own.v))
        return
    back, there = (fgd.inverse_dynamics(*at) for at in ((mechanism, q, v, first.a), (other, q, v * t, first.a * t**2)))
    assert_same(there.tau / t**2, back.tau, own.tau)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", TIMES)
def test_time_changes_no_contradiction(kind, unit):
    t, mechanism = TIMES[unit], sample("four_bar", kind)
    q, v, tau = drawn(mechanism)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    given = fgd.constraints(timed(mechanism, t), q, v * t)
    assert not given.broken(a * t**2)
    assert given.broken((a + np.eye(mechanism.nv)[0]) * t**2)
    other = timed(mechanism, t)
    with pytest.raises(fgd.ClosureError, match="v breaks"):
        fgd.forward_dynamics(other, q, (v + 1e-3 * np.eye(mechanism.nv)[0]) * t, tau * t**2)


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("name", "problem", "unit"),
    [*product(("tree", "four_bar"), ("forward", "inverse"), ("ms", "h")), ("delta", "inverse", "h")],
)
def test_time_changes_no_kernel(name, problem, kind, unit):
    t, mechanism = TIMES[unit], sample(name, kind)
    other, own = timed(mechanism, t), natural(mechanism)
    q, v, tau = drawn(mechanism)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    first, second = (fgd.compile(m, problem) for m in (mechanism, other))
    assert second.operations == first.operations
    given, units = (tau, own.v) if problem == "forward" else (a, own.tau)
    assert_same(second(q, v * t, given * t**2) / t**2, first(q, v, given), units)
    rest = second(q, 0 * v, 0 * given)
    assert np.isfinite(rest).all()
    if name in CLOSED:  # what a kernel refuses it refuses in any unit
        for m, unit_of_time in ((first, 1.0), (second, t)):
            slipping = (v + np.abs(v).max() * np.eye(mechanism.nv)[0]) * unit_of_time
            assert np.isnan(m(q, slipping, given * unit_of_time**2)).any()
            if problem == "inverse":
                broken = (a + 0.1 * np.abs(a).max() * np.eye(mechanism.nv)[0]) * unit_of_time**2
                assert np.isnan(m(q, v * unit_of_time, broken)).any()


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", ["tree", "four_bar"])
def test_proofs_try_the_same_states_in_any_unit_of_time(name, kind):
    mechanism = sample(name, kind)
    here = make_trials(mechanism, np.random.default_rng(0))
    rate = natural_rate(mechanism)
    for t in TIMES.values():
        there = make_trials(timed(mechanism, t), np.random.default_rng(0))
        time = t if rate else 1.0  # where nothing has a time, any speed will do
        np.testing.assert_allclose(there.v, here.v * time, rtol=1e-9, atol=0)
        np.testing.assert_allclose(there.a, here.a * time**2, rtol=1e-9, atol=0)


@pytest.mark.parametrize("kind", KINDS)
def test_a_mechanism_that_comes_to_rest_without_gravity_is_not_refused(kind):
    """Of a velocity that decays, what was rounding before stays, and is in the end all there is."""
    mechanism = sample("four_bar", kind)
    kernel = fgd.compile(mechanism, "forward")
    q, v, _ = drawn(mechanism)
    noise = 1e-13 * np.eye(mechanism.nv)[0]
    for speed in (1.0, 1e-6, 1e-12, 0.0):
        slow = speed * v + noise
        assert np.isfinite(kernel(q, slow, -1e-3 * slow)).all(), speed


def test_wrenches_from_outside_are_proved_in_any_unit_of_time():
    mechanism = sample("tree", "heavy")
    link = mechanism.links[-1].name
    sizes = []
    for t in (1.0, *TIMES.values()):
        trial = Trial(timed(mechanism, t), make_problem(mechanism, "forward", external_wrenches=(link,)))
        sizes.append(trial.pushes[link] / t**2)
    for size in sizes[1:]:
        np.testing.assert_allclose(size, sizes[0], rtol=1e-9, atol=0)


@pytest.mark.parametrize("unit", TIMES)
def test_limits_of_torques_hold_in_any_unit_of_time(unit):
    t, mechanism = TIMES[unit], fgd.robots.five_bar()
    other, everywhere = timed(mechanism, t), mechanism.joint_names
    q, v, tau = drawn(mechanism)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    least = fgd.inverse_dynamics(mechanism, q, v, a, actuated=everywhere, objective=fgd.MinimumTorque()).tau
    limit = 0.9 * np.abs(least).max()
    first, second = (fgd.MinimumTorque(limits=size) for size in (limit, limit * t**2))
    expected = fgd.inverse_dynamics(mechanism, q, v, a, actuated=everywhere, objective=first).tau
    found = fgd.inverse_dynamics(other, q, v * t, a * t**2, actuated=everywhere, objective=second).tau
    np.testing.assert_allclose(found / t**2, expected, rtol=0, atol=1e-9 * np.abs(expected).max())
    tight = fgd.MinimumTorque(limits=0.01 * limit * t**2)
    with pytest.raises(fgd.InputError, match="limits cannot hold") as refusal:
        fgd.inverse_dynamics(other, q, v * t, a * t**2, actuated=everywhere, objective=tight)
    assert refusal.value.details["violation"] > 0.01 * limit * t**2


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("unit", TIMES)
def test_simulations_in_any_unit_of_time(kind, unit):
    t, mechanism = TIMES[unit], sample("four_bar", kind)
    q, v, _ = drawn(mechanism)
    expected = fgd.simulate(mechanism, q, v, duration=0.02, step=2e-3)
    found = fgd.simulate(timed(mechanism, t), q, v * t, duration=0.02 / t, step=2e-3 / t)
    np.testing.assert_allclose(found.q, expected.q, rtol=0, atol=1e-11)
    np.testing.assert_allclose(found.v / t, expected.v, rtol=0, atol=1e-11 * np.abs(expected.v).max())
