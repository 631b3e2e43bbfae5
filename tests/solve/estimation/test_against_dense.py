"""Estimates equal generalised least squares in sixty digits, whatever the noises' scales.

Once on the package's own equations, which tries the solver alone, and once on equations and readings of sensors that
share nothing with it.
"""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.equations import Known, dynamics_graph, evaluate_state, velocity_graph
from factorgraph_dyn.equations.sensors.together import outside_frames, outside_wrenches
from tests.helpers import lossy, turned
from tests.mechanisms import random_planar, random_spatial
from tests.oracles import least_squares
from tests.oracles.estimation import PlainEstimate
from tests.solve.estimation.random_sensors import random_sensors
from tests.stress.constraints import close, closing_velocity
from tests.stress.kinematics import array
from tests.stress.oracle import freedom_units

TOLERANCE = 1e-9
DECADES = 6  # noises from 1e-6 to 1e6 of what is usual
# Beside equations that are not rounded alike: one unit in the last place of a mass or a length, seen by a noise of 1e6
# beside one of 1e-6, moves covariances of entries that are almost exact by up to 1e-5.
ROUNDED_DECADES = 3


def determined(mechanism, state, rng, decades):
    """Random sensors that determine everything, and the estimate."""
    for _ in range(50):
        sensors = random_sensors(mechanism, rng, decades)
        try:
            return sensors, fgd.estimate(mechanism, *state, sensors)
        except fgd.SingularSystemError:
            continue
    raise AssertionError("no sensors determine everything")


def physics(mechanism, graph):
    """The equations of motion and the missing motors, without those that repeat others."""
    P, p = graph.dense()
    for joint in mechanism.movable_joints:
        if not joint.actuated:
            rows = np.zeros((joint.nv, graph.columns))
            rows[:, graph.column_slices[graph.variable(f"tau[{joint.name}]")]] = np.eye(joint.nv)
            P, p = np.vstack([P, rows]), np.append(p, np.zeros(joint.nv))
    kept = least_squares.independent_rows(P) if mechanism.is_closed_kind else slice(None)
    return P[kept], p[kept]


def compare(graph, estimate, P, p, sensors, rng):
    entries = rng.choice(graph.columns, min(6, graph.columns), replace=False)
    x, C = least_squares.solve(P, p, *least_squares.stacked(graph, estimate.state, sensors), entries)
    names = [str(variable) for variable in graph.variables]
    found, covariance = np.concatenate([estimate.mean(name) for name in names]), estimate.covariance(*names)
    kinds = [v.kind for v in graph.variables for _ in range(v.size)]
    check_close(found, covariance, x, C, kinds, entries)


def check_close(found, covariance, x, C, kinds, entries=slice(None)):
    """Means beside their size or deviation, and covariances, of which those with some entries, beside deviations."""
    sizes = np.array([max(abs(x[i]) for i, other in enumerate(kinds) if other == kind) for kind in kinds])
    s = np.sqrt(np.diag(covariance))
    assert (np.abs(found - x) <= TOLERANCE * (sizes + s)).all()
    s = s + 1e-7 * sizes  # deviations of what is exact are rounding
    assert (np.abs(covariance[:, entries] - C) <= TOLERANCE * np.outer(s, s[entries])).all()


def check_dynamics(mechanism, seed, decades):
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    sensors, estimate = determined(mechanism, (q, v), rng, decades)
    pushes = outside_wrenches(mechanism, outside_frames(sensors))
    graph = dynamics_graph(evaluate_state(mechanism, q, v), Known.nothing(mechanism.nv), pushes=pushes)
    compare(graph, estimate, *physics(mechanism, graph), sensors, rng)
    assert estimate.residual <= 1e-10


def compare_plainly(mechanism, seed, decades):
    """All means and covariances beside those of the other equations, at a state that closes in extended precision."""
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    if mechanism.is_closed_kind:
        units = freedom_units(mechanism)
        q = close(mechanism, array(q), units)
        v = closing_velocity(mechanism, q, v, units)
    state = np.asarray(q, dtype=float), np.asarray(v, dtype=float)
    sensors, estimate = determined(mechanism, state, rng, decades)
    true = PlainEstimate(mechanism, q, v, sensors)
    found, covariance = np.concatenate([estimate.mean(name) for name in true.names]), estimate.covariance(*true.names)
    check_close(found, covariance, true.mean, true.covariance, [n[0] for n in true.names for _ in estimate.mean(n)])


def random_tree(seed):
    mechanism = fgd.robots.random_tree(1 + seed % 4, seed=seed, branching=1.5, kinds=("all",))
    return lossy(mechanism, seed) if seed % 2 else mechanism


def random_closed(seed):
    mechanism = (fgd.robots.four_bar, fgd.robots.five_bar)[seed % 2]() if seed < 2 else None
    return mechanism or (random_planar if seed % 2 else random_spatial)(seed)


@pytest.mark.parametrize("seed", range(40))
def test_random_trees(seed):
    check_dynamics(random_tree(seed), seed, DECADES)
    compare_plainly(random_tree(seed), seed, ROUNDED_DECADES)


@pytest.mark.parametrize("seed", range(15))
def test_closed_mechanisms(seed):
    compare_plainly(random_closed(seed), seed, DECADES)


@pytest.mark.parametrize("seed", [0, *range(1, 15, 2)])
def test_planar_mechanisms_in_any_plane(seed):
    turn = np.random.default_rng(seed).normal(size=3)
    compare_plainly(turned(random_closed(seed), turn), seed, 2)  # rounding tilts the plane


@pytest.mark.parametrize("seed", range(6))
def test_velocities(seed):
    rng = np.random.default_rng(seed)
    mechanism = fgd.robots.five_bar() if seed == 0 else fgd.robots.random_tree(3, seed=seed, kinds=("all",))
    q, _ = mechanism.random_state(rng)
    S = fgd.sensors
    places = [link.name for link in mechanism.links if link.name != mechanism.base]
    sensors = [S.Gyroscope(link, rng.normal(size=3), 10.0 ** rng.uniform(-6, 6)) for link in places]
    sensors += [S.PointVelocity(link, rng.normal(size=3), 10.0 ** rng.uniform(-6, 6, 3)) for link in places]
    for joint in mechanism.movable_joints:
        sensors.append(S.Velocity(joint.name, rng.normal(size=joint.nv), 10.0 ** rng.uniform(-4, 4)))
    estimate = fgd.estimate_velocity(mechanism, q, sensors)
    graph = velocity_graph(evaluate_state(mechanism, q, np.zeros(mechanism.nv)), unknown=True)
    P, p = graph.dense()
    kept = least_squares.independent_rows(P)
    compare(graph, estimate, P[kept], p[kept], sensors, rng)
    assert np.allclose(estimate.twists[places[-1]], estimate.mean(f"V[{places[-1]}]"))
