"""Mechanisms that nothing ties to the world but one floating joint: their momentum, by every integrator."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.step import program
from factorgraph_dyn.model.robots.trees import random_tree
from factorgraph_dyn.motion.flight import flight_of
from tests.helpers import relative_error
from tests.oracles.engines import pinocchio_oracle

ROUNDING = 1e-12
STEP = 0.01
INTEGRATORS = ["semi_implicit", "rk4"]


def body(com=(0.0, 0.0, 0.0), gravity=(0.0, 0.0, 0.0), **effects):
    """A body that floats."""
    links = fgd.Link("ground"), fgd.Link("body", 1.3, com, np.diag([1.0, 2.0, 2.5]))
    return fgd.Mechanism("body", links, [fgd.Joint("free", "floating", "ground", "body", **effects)], gravity=gravity)


def floating_bar():
    """Five bars that close a loop and float, a massive one among them."""
    bar = fgd.robots.five_bar()
    heavy = {"mass": 2.0, "com": (0.1, 0.2, 0.1), "inertia": 0.1 * np.eye(3)}
    links = [replace(link, **heavy) if link.name == bar.base else link for link in bar.links]
    return replace(replace(bar, links=links).float_base(), gravity=(0.3, 1.0, -3.0))


def turned_arms(arms=2):
    """Arms on a body whose floating joint has armature and losses, on a fixed link, not along the world's axes."""
    T = fgd.translation(0.1, 0.2, 0.3)
    tilted = np.array([[0.0, -1.0, 0.0, 1.0], [0.6, 0.0, -0.8, 2.0], [0.8, 0.0, 0.6, 3.0], [0.0, 0.0, 0.0, 1.0]])
    links = [
        *body((0.1, 0.2, -0.3)).links,
        fgd.Link("stand", 5.0),
        fgd.Link("arm", 0.7, (0.1, 0.2, 0.3), np.diag([0.1, 0.2, 0.25])),
        fgd.Link("tip", 0.3, (0.1, 0.0, 0.3), np.diag([0.01, 0.02, 0.025])),
    ]
    effects = {"damping": 0.3, "friction": 0.2, "armature": (0.1, 0.2, 0.3, 0.05, 0.1, 0.2)}
    joints = [
        fgd.Joint("mount", "fixed", "ground", "stand", tilted),
        fgd.Joint("free", "floating", "stand", "body", tilted, **effects),
        fgd.Joint("cross", "universal", "body", "arm", T, damping=0.1),
        fgd.Joint("ball", "spherical", "arm", "tip", T),
    ]
    return fgd.Mechanism("arms", links[: 3 + arms], joints[: 2 + arms], gravity=(0.3, 0.4, -9.0))


def gain(mechanism, q, v, impulse=0.0):
    """The largest change of momentum that no impulse explains, beside the largest momentum."""
    p = fgd.momentum(mechanism, q, v)[..., 3:]
    return np.abs(p - p[..., :1, :] - impulse).max() / np.abs(p).max()


def weight_impulse(mechanism, steps):
    mass = sum(link.mass for link in mechanism.links if link.name != mechanism.base)
    return mass * STEP * np.arange(steps + 1)[:, None] * np.asarray(mechanism.gravity)


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("com", [(0.0, 0.0, 0.0), (0.1, 0.2, -0.3)], ids=["centred", "off"])
def test_a_thrown_spinning_body_keeps_its_momentum_and_flies_straight(com, integrator):
    mechanism, v = body(com), np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6])
    q_rows, v_rows = fgd.rollout(mechanism, mechanism.neutral(), v, np.zeros((1000, 6)), STEP, integrator=integrator)
    assert gain(mechanism, q_rows, v_rows) < ROUNDING
    way = np.diff(fgd.center_of_mass(mechanism, q_rows), axis=0)
    assert np.abs(way - STEP * fgd.momentum(mechanism, q_rows[0], v)[3:] / 1.3).max() < ROUNDING


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_a_humanoid_in_flight_keeps_its_momentum_whatever_its_motors_do(integrator):
    robot = fgd.robots.humanoid()
    q, v = robot.random_state(0)
    tau = np.random.default_rng(1).normal(size=(1000, robot.nv))
    tau[:, :6] = 0.0
    rows = fgd.rollout(robot, q, 0.2 * v, tau, STEP, integrator=integrator)
    assert gain(robot, *rows, weight_impulse(robot, 1000)) < ROUNDING


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_loops_that_fly_keep_closed_and_their_momentum(integrator):
    mechanism = floating_bar()
    q, v = mechanism.random_state(3)
    tau = 0.3 * np.random.default_rng(0).normal(size=(200, mechanism.nv))
    tau[:, :6] = 0.0
    q_rows, v_rows = fgd.rollout(mechanism, q, v, tau, STEP, integrator=integrator)
    assert gain(mechanism, q_rows, v_rows, weight_impulse(mechanism, 200)) < ROUNDING
    assert max(mechanism.closure_error(*state) for state in zip(q_rows, v_rows, strict=True)) < ROUNDING
    path = fgd.simulate(mechanism, q, v, tau[0], 0.2, STEP, method=integrator, engine=fgd.compile(mechanism))
    assert gain(mechanism, path.q, path.v, weight_impulse(mechanism, 20)) < ROUNDING


@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_bodies_and_gravity_of_their_own(integrator):
    mechanism, rng = floating_bar(), np.random.default_rng(0)
    q, v = mechanism.random_state(3)
    bodies, gravity = mechanism.parameters() * rng.uniform(0.8, 1.3, (3, 1, 1)), rng.normal(size=(3, 3))
    given = {"all": bodies, "gravity": gravity}
    tau = np.zeros((100, mechanism.nv))
    found = fgd.rollout(mechanism, q, v, tau, STEP, integrator=integrator, parameters=given)
    for k in range(3):
        own = replace(mechanism.with_parameters(bodies[k]), gravity=gravity[k])
        assert gain(own, found[0][k], found[1][k], weight_impulse(own, 100)) < ROUNDING


@pytest.mark.parametrize("integrator", INTEGRATORS)
@pytest.mark.parametrize("engine", ["kernel", "foreign", "graph"])
def test_simulations_go_where_rollouts_go(engine, integrator):
    """Also under the floating joint's own torques, losses and armature; and by an engine nobody knows anything of."""
    mechanism = turned_arms()
    q, v = mechanism.random_state(0)
    tau = np.random.default_rng(0).normal(size=mechanism.nv)
    kernel = fgd.compile(mechanism)
    how = {"kernel": kernel, "foreign": lambda q, v, tau: kernel(q, v, tau), "graph": "graph"}[engine]
    path = fgd.simulate(mechanism, q, v, tau, 0.2, STEP, method=integrator, engine=how)
    rows = fgd.rollout(mechanism, q, v, np.tile(tau, (20, 1)), STEP, integrator=integrator)
    assert relative_error(rows[0], path.q) < ROUNDING
    assert relative_error(rows[1], path.v) < ROUNDING


def test_forces_that_only_an_engine_knows_of_count():
    mechanism = body((0.1, 0.2, -0.3))
    kernel, wind = fgd.compile(mechanism), np.array([0.0, 0.0, 0.0, 0.5, 0.0, 0.0])
    v = np.array([1.0, 2.0, 3.0, 0.4, 0.5, 0.6])
    path = fgd.simulate(
        mechanism, mechanism.neutral(), v, None, 0.5, STEP, engine=lambda q, v, tau: kernel(q, v, tau + wind)
    )
    expected = fgd.simulate(mechanism, mechanism.neutral(), v, wind, 0.5, STEP, engine=kernel)
    assert relative_error(path.v, expected.v) < ROUNDING
    assert gain(mechanism, path.q, path.v) > 0.05


@pytest.mark.parametrize("affordable", [program.AFFORDABLE, 0], ids=["code", "chain"])
@pytest.mark.parametrize("integrator", INTEGRATORS)
def test_steps_with_derivatives_go_where_rollouts_go(integrator, affordable, monkeypatch):
    monkeypatch.setattr(program, "AFFORDABLE", affordable)
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    mechanism, apart = turned_arms(1 if integrator == "semi_implicit" else 0), 1e-4
    step, nv = fgd.compile_step(mechanism, integrator), mechanism.nv
    assert (step.operations is None) == (affordable == 0)
    (q, v), tau = mechanism.random_state(0), np.random.default_rng(0).normal(size=nv)
    here = step(q, v, tau, STEP)
    rows = fgd.rollout(mechanism, q, v, tau[None], STEP, integrator=integrator)
    assert relative_error(here.q, rows[0][-1]) < ROUNDING
    assert relative_error(here.v, rows[1][-1]) < ROUNDING

    def changed(z):
        there = step(fgd.integrate(mechanism, q, z[:nv]), v + z[nv : 2 * nv], tau + z[2 * nv :], STEP)
        return np.concatenate([fgd.difference(mechanism, here.q, there.q), there.v])

    weights, places = np.array([1.0, -8.0, 8.0, -1.0]) / (12 * apart), np.array([-2, -1, 1, 2]) * apart
    expected = np.array([weights @ [changed(k * unit) for k in places] for unit in np.eye(3 * nv)]).T
    found = np.concatenate([here.A, here.B], axis=-1)
    assert np.abs(found - expected).max() < 1e-9 * np.abs(expected).max()


def test_centres_of_mass_move_as_pinocchio_has_it():
    mechanism = fgd.robots.humanoid()
    flight, engine = flight_of(mechanism), pinocchio_oracle(mechanism)
    (q, v), a = mechanism.random_state(1), np.random.default_rng(1).normal(size=mechanism.nv)
    velocity, acceleration = engine.center_of_mass_rates(q, v, a)
    c, u = flight.centre(q, v)
    assert relative_error(c, engine.center_of_mass(q)) < ROUNDING
    assert relative_error(u, velocity) < ROUNDING
    assert relative_error(flight.acceleration(q, v, a), acceleration) < ROUNDING


def test_what_flies():
    loose, arm, bar = body(), fgd.robots.rrr(), floating_bar()
    two = [*loose.links, fgd.Link("other", 1.0)]
    beside = fgd.Joint("beside", "floating", "ground", "other")
    behind = fgd.Joint("behind", "prismatic", "body", "other")
    chain = fgd.Mechanism("chain", two, [*loose.joints, behind])
    held = fgd.Loop("held", "spherical", "ground", "other")
    assert flight_of(loose) is not None
    assert flight_of(bar) is not None
    assert flight_of(chain) is not None
    assert flight_of(replace(chain, loops=[replace(held, kind="floating")])) is not None
    assert flight_of(turned_arms()).joint.name == "free"
    for tied in (
        arm,
        fgd.robots.five_bar(),
        fgd.Mechanism("two", two, [*loose.joints, beside]),
        fgd.Mechanism("rail", two, [*loose.joints, fgd.Joint("rail", "prismatic", "ground", "other")]),
        replace(chain, loops=[held]),
        fgd.Mechanism("rotor", [fgd.Link("ground"), fgd.Link("body")], body(armature=1.0).joints),
        random_tree(3, seed=0, kinds=("spherical",)),
    ):
        assert flight_of(tied) is None, tied.name
