"""Integration steps with derivatives: values of rollouts, derivatives of differences."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.step import program

STEP, APART = 0.03, 1e-4
MIXED = ("revolute", "spherical", "floating", "planar", "universal")
SEEDS = {"semi_implicit": 6, "rk4": 4}  # floating and planar, spherical and planar


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_steps_change_as_differences_say(integrator):
    mechanism = fgd.robots.random_tree(2, seed=SEEDS[integrator], kinds=MIXED)
    step, nv = fgd.compile_step(mechanism, integrator), mechanism.nv
    rng = np.random.default_rng(0)
    (q, v), tau = mechanism.random_state(rng), rng.normal(size=nv)
    here = step(q, v, tau, STEP)

    def changed(z):
        there = step(fgd.integrate(mechanism, q, z[:nv]), v + z[nv : 2 * nv], tau + z[2 * nv :], STEP)
        return np.concatenate([fgd.difference(mechanism, here.q, there.q), there.v])

    weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12 * APART)
    places = np.array([-2, -1, 1, 2]) * APART
    expected = np.array([weights @ [changed(k * unit) for k in places] for unit in np.eye(3 * nv)]).T
    found = np.concatenate([here.A, here.B], axis=-1)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_steps_go_where_rollouts_go_in_batches(integrator):
    mechanism = fgd.robots.rrr()
    rng = np.random.default_rng(2)
    q, v, tau = rng.normal(size=(3, 5, mechanism.nv))
    step = fgd.compile_step(mechanism, integrator)
    there = step(q, v, tau, STEP)
    q_all, v_all = fgd.rollout(mechanism, q, v, tau[:, None], STEP, integrator=integrator)
    assert np.allclose(there.q, q_all[:, -1], rtol=1e-12)
    assert np.allclose(there.v, v_all[:, -1], rtol=1e-12)
    one = step(q[2], v[2], tau[2], STEP)
    assert np.allclose(one.A, there.A[2], rtol=1e-12)
    assert np.allclose(one.B, there.B[2], rtol=1e-12)


@pytest.mark.parametrize("affordable", [program.AFFORDABLE, 0])  # machine code, and calls of the kernel
@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("kind", ["spherical", "floating"])
def test_quaternions_of_any_length_stand_for_their_rotation(kind, integrator, affordable, monkeypatch):
    monkeypatch.setattr(program, "AFFORDABLE", affordable)
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    body = fgd.Link("body", 1.0, (0, 0, 0), np.diag([0.2, 0.3, 0.4]))
    mechanism = fgd.Mechanism("body", [fgd.Link("base"), body], [fgd.Joint("joint", kind, "base", "body")])
    step = fgd.compile_step(mechanism, integrator)
    assert (step.operations is None) == (affordable == 0)
    (q, v), tau = mechanism.random_state(3), np.ones(mechanism.nv)
    expected = step(q, v, tau, STEP)
    lengths = np.array([1.0001, 1.7, 2.0, 10.0, 1e-3])
    longer = np.tile(q, (len(lengths), 1))
    longer[:, -4:] *= lengths[:, None]
    for given, at in ((longer, slice(None)), (longer[1], 1), (longer[3].tolist(), 3)):
        for found, true in zip(step(given, v, tau, STEP), expected, strict=True):
            assert np.allclose(found, true, rtol=1e-12, atol=1e-13), at
    nothing = step(np.where(np.arange(len(q)) < len(q) - 4, q, 0.0), v, tau, STEP)
    assert np.isnan(nothing.q).any()
    with pytest.raises(fgd.InputError, match="q has shape"):
        step(q[1:], v, tau, STEP)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_long_steps_are_chained_calls_of_the_kernel(integrator, monkeypatch):
    mechanism = fgd.robots.pendulum(2)
    compiled = fgd.compile_step(mechanism, integrator)
    monkeypatch.setattr(program, "AFFORDABLE", 0)
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    chained = fgd.compile_step(mechanism, integrator)
    assert compiled.operations is not None
    assert chained.operations is None
    q, v, tau = np.random.default_rng(1).normal(size=(3, 2, 700, 2))  # more than a block
    steps = np.linspace(0.01, 0.02, 700)
    for one, other in zip(compiled(q, v, tau, steps), chained(q, v, tau, steps), strict=True):
        assert one.shape == other.shape
        assert np.allclose(one, other, rtol=1e-11)
    assert np.allclose(compiled(q[0, 3], v[0, 3], tau[0, 3], steps[3]).B, chained(q, v, tau, steps).B[0, 3], rtol=1e-11)


def test_bad_steps_are_refused_in_words():
    with pytest.raises(fgd.InputError, match="rk4"):
        fgd.compile_step(fgd.robots.rrr(), "euler")
    with pytest.raises(fgd.CompileError, match="loops or couplings"):
        fgd.compile_step(fgd.robots.four_bar())
    step = fgd.compile_step(fgd.robots.rrr())
    with pytest.raises(fgd.InputError, match=r"q has shape \(2,\)"):
        step([0.0, 0.0], np.zeros(3), np.zeros(3), 0.1)
    with pytest.raises(fgd.InputError, match="number of seconds"):
        step(np.zeros(3), np.zeros(3), np.zeros(3), np.nan)
    with pytest.raises(fgd.InputError, match=r"do not go together: q \(2, 3\), v \(4, 3\)"):
        step(np.zeros((2, 3)), np.zeros((4, 3)), np.zeros(3), 0.1)
