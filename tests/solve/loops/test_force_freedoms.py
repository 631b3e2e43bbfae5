"""Forces that move nothing are chosen among those that balance: gears, several loops, wishes that they cannot touch."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.independence import all_rows
from tests.mechanisms import single_loop

ROUNDING = 1e-11


def misfit(solution, closure=None):
    """The largest misfit of the solution's graph, or of the one that has all rows of closure."""
    graph = solution.graph
    if closure is not None:
        known = fgd.Known.forward(solution.tau)
        graph = fgd.dynamics_graph(solution.state, known, closure=closure)
    A, b = graph.dense()
    x = np.concatenate([solution.values[variable] for variable in graph.variables])
    return np.abs(A @ x - b).max() / max(1.0, np.abs(b).max())


def test_forces_of_gears_balance_redundant_motors():
    arm = fgd.robots.rrr()
    first, second, _ = arm.joint_names
    geared = replace(arm, couplings=(fgd.Coupling("gear", second, first, -0.8),))
    q, v = geared.random_state(0)
    moved = fgd.forward_dynamics(geared, q, v, np.ones(3))
    found = fgd.inverse_dynamics(geared, q, v, moved.a, actuated=arm.joint_names, objective=fgd.MinimumTorque())
    assert misfit(found) < ROUNDING
    again = fgd.forward_dynamics(geared, q, v, found.tau)
    np.testing.assert_allclose(again.a, moved.a, atol=ROUNDING * np.abs(moved.a).max())
    (force,) = (variable for variable in again.values if variable.kind == "lambda")
    np.testing.assert_allclose(found.values[force], again.values[force], rtol=1e-9)


@pytest.mark.parametrize("loops", [1, 2, 3])
def test_limits_cost_least_where_there_are_several_groups_of_loops(loops):
    """Against the dense program: motors of separate groups are chosen apart, and all limits hold."""
    quadprog = pytest.importorskip("quadprog")
    chain = fgd.robots.four_bar_chain(loops)
    rng = np.random.default_rng(loops)
    q, v = chain.random_state(rng)
    a = fgd.forward_dynamics(chain, q, v, rng.normal(size=chain.nv)).a
    joints = chain.joint_names
    least = fgd.inverse_dynamics(chain, q, v, a, actuated=joints, objective=fgd.MinimumTorque()).tau
    bound = 0.97 * np.abs(least).max()
    J = fgd.constraints(chain, q, v).J
    _, sizes, rows = np.linalg.svd(J)
    N = rows[: int((sizes > 1e-9 * sizes[0]).sum())].T  # torques along the rows of J move nothing
    C = np.hstack([N.T, -N.T])
    z = quadprog.solve_qp(N.T @ N, -N.T @ least, C, np.concatenate([-bound - least, -bound + least]))[0]
    found = fgd.inverse_dynamics(chain, q, v, a, actuated=joints, objective=fgd.MinimumTorque(limits=bound))
    np.testing.assert_allclose(found.tau, least + N @ z, atol=1e-7 * bound)
    moved = fgd.forward_dynamics(chain, q, v, found.tau).a
    np.testing.assert_allclose(moved, a, atol=1e-8 * np.abs(a).max())


@pytest.mark.parametrize("robot", ["four_bar", "five_bar"])
def test_wishes_for_what_physics_determines_change_nothing(robot):
    """A force in the plane of a linkage is unique: no internal wrench brings it nearer to a target."""
    mechanism = getattr(fgd.robots, robot)()
    q, v = mechanism.random_state(0)
    a = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv)).a
    plain = fgd.inverse_dynamics(mechanism, q, v, a)
    loop = mechanism.loops[0].name
    free = plain.not_unique[f"F[{loop}]"]
    for entry in set(range(6)) - set(free):
        wish = fgd.Factor("wish", loop, ((fgd.Variable("F", loop, 6), np.eye(6)[[entry]]),), np.array([100.0]))
        found = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.SoftFactors((wish,)))
        for name, F in plain.wrenches.items():
            np.testing.assert_allclose(found.wrenches[name], F, atol=1e-9)


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "helical", "universal"])
def test_a_loop_twice_is_a_loop_once(kind):
    once = single_loop(kind)
    (loop,) = once.loops
    twice = replace(once, loops=(loop, replace(loop, name="again")))
    q, v = once.random_state(0)
    tau = np.random.default_rng(0).normal(size=once.nv)
    expected, found = (fgd.forward_dynamics(mechanism, q, v, tau) for mechanism in (once, twice))
    np.testing.assert_allclose(found.a, expected.a, atol=1e-9 * np.abs(expected.a).max())
    assert misfit(found, all_rows(twice)) < ROUNDING
