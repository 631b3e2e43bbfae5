"""Redundant motors, objectives and limits; what cannot be done is said in names."""

import sys
import warnings

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.oracles.closed import DenseOracle, relative

AGREES = 1e-8
EXACT = 1e-10


@pytest.fixture(scope="module")
def case():
    mechanism = fgd.robots.five_bar(4)
    rng = np.random.default_rng(0)
    q, v = mechanism.random_state(rng)
    a = fgd.forward_dynamics(mechanism, q, v, 5 * rng.normal(size=4)).a
    return mechanism, q, v, a


@pytest.mark.parametrize("motors", [2, 3, 4, 5])
@pytest.mark.parametrize("seed", [0, 1])
def test_least_torques_agree_with_a_dense_solve(motors, seed):
    mechanism = fgd.robots.five_bar(motors)
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(rng)
    a = fgd.forward_dynamics(mechanism, q, v, rng.normal(size=mechanism.nv)).a
    names = [joint.name for joint in mechanism.joints if joint.actuated]
    weights = dict(zip(names, rng.uniform(0.2, 5.0, len(names)), strict=True))
    sought = [mechanism.v_slice(name).start for name in names]
    expected = DenseOracle(mechanism, q, v).least_torques(a, sought, np.array(list(weights.values())))
    for ordering in ("rnea", "colamd"):
        solution = fgd.inverse_dynamics(mechanism, q, v, a, ordering=ordering, objective=fgd.MinimumTorque(weights))
        assert relative(solution.tau, expected) < AGREES
        assert solution.residual < EXACT


def test_targets_and_other_objectives(case):
    mechanism, q, v, a = case
    target = {"left_shoulder": 2.0, "right_elbow": -1.0}
    near = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(target=target))
    least = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque())
    wanted = np.array([2.0, 0, 0, -1.0])
    assert np.linalg.norm(near.tau - wanted) < np.linalg.norm(least.tau - wanted)
    gentle = fgd.inverse_dynamics(
        mechanism, q, v, a, objective=[fgd.MinimumTorque(1e-3), fgd.MinimumWrench({"tip": 1.0})]
    )
    assert np.linalg.norm(gentle.wrenches["tip"]) < np.linalg.norm(least.wrenches["tip"])
    assert max(near.residual, gentle.residual, least.residual) < EXACT


def test_own_soft_factors(case):
    mechanism, q, v, a = case
    left, right = fgd.Variable("tau", "left_elbow", 1), fgd.Variable("tau", "right_elbow", 1)
    equal = fgd.Factor("objective", "elbows", ((left, np.eye(1)), (right, -np.eye(1))), np.zeros(1))
    solution = fgd.inverse_dynamics(mechanism, q, v, a, objective=[fgd.MinimumTorque(1e-2), fgd.SoftFactors((equal,))])
    assert solution.tau[1] == pytest.approx(solution.tau[3], abs=5e-3)
    with pytest.raises(fgd.InputError, match="is no objective"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective="least")
    stranger = fgd.Factor("objective", "x", ((fgd.Variable("tau", "x", 1), np.eye(1)),), np.zeros(1))
    with pytest.raises(fgd.InputError, match=r"tau\[x\]"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.SoftFactors((stranger,)))


def test_limits_hold_and_cost_least(case):
    mechanism, q, v, a = case
    free = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque())
    worst = int(np.argmax(np.abs(free.tau)))
    name = mechanism.joint_names[worst]
    bound = 0.8 * abs(free.tau[worst])
    held = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits={name: bound}))
    assert abs(held.tau[worst]) <= bound * (1 + 1e-9)
    assert held.residual < EXACT
    assert relative(fgd.forward_dynamics(mechanism, q, v, held.tau).a, a) < AGREES
    # the dense optimum: one active limit, so an equality-constrained least-squares problem
    dense = DenseOracle(mechanism, q, v)
    others = [i for i in range(4) if i != worst]
    Z = np.linalg.svd(dense.J)[2][2:].T
    fixed = np.zeros(4)
    fixed[worst] = np.copysign(bound, free.tau[worst])
    fixed[others] = np.linalg.lstsq(Z[others].T, Z.T @ (dense.M @ a + dense.h - fixed), rcond=None)[0]
    assert relative(held.tau, fixed) < 1e-6
    loose = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits=1e6))
    assert relative(loose.tau, free.tau) < AGREES


def test_limits_that_cannot_hold(case):
    mechanism, q, v, a = case
    with pytest.raises(fgd.InputError, match=r"limits cannot hold.*exceeds some limit by") as caught:
        fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits=1e-3))
    assert caught.value.details["violation"] > 0
    unique = fgd.robots.five_bar(2)
    tau = fgd.inverse_dynamics(unique, q, v, a).tau
    with pytest.raises(fgd.InputError, match="limits cannot hold"):
        fgd.inverse_dynamics(unique, q, v, a, objective=fgd.MinimumTorque(limits=0.5 * np.abs(tau).max()))
    with pytest.raises(fgd.InputError, match=r"limits.* are -3"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits=-3.0))
    with pytest.raises(fgd.InputError, match="'elbow' is not in"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits={"elbow": 1.0}))


def test_limits_of_all_objectives_hold(case):
    mechanism, q, v, a = case
    free = fgd.inverse_dynamics(mechanism, q, v, a, objective=[fgd.MinimumTorque(), fgd.MinimumTorque()]).tau
    first, second = mechanism.joint_names[0], mechanism.joint_names[2]
    limits = {first: 0.9 * abs(free[0]), second: 0.9 * abs(free[2])}
    together = fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits=limits)).tau
    apart = [fgd.MinimumTorque(limits={name: bound}) for name, bound in limits.items()]
    for objectives in (apart, apart[::-1]):
        held = fgd.inverse_dynamics(mechanism, q, v, a, objective=objectives).tau
        assert relative(held, together) < AGREES
    contrary = [fgd.MinimumTorque(limits={first: pair}) for pair in ((-9.0, 1.0), (2.0, 3.0))]
    with pytest.raises(fgd.InputError, match=rf"limits of joint '{first}' contradict each other: .* 2 .* 1 or less"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective=contrary)


def test_limits_without_a_solver_say_what_to_install(case, monkeypatch):
    mechanism, q, v, a = case
    monkeypatch.setitem(sys.modules, "quadprog", None)
    with pytest.raises(fgd.InputError, match=r"factorgraph_dyn\[qp\]"):
        fgd.inverse_dynamics(mechanism, q, v, a, objective=fgd.MinimumTorque(limits=1e-3))


def test_redundant_motors_without_objective_are_refused(case):
    mechanism, q, v, a = case
    with pytest.raises(fgd.SingularSystemError, match=r"left_shoulder.*not unique.*MinimumTorque"):
        fgd.inverse_dynamics(mechanism, q, v, a)


def test_motors_that_cannot_produce_the_motion(case):
    mechanism, q, v, a = case
    with pytest.raises(fgd.ResidualError, match=r"motors at joints left_shoulder .*cannot produce"):
        fgd.inverse_dynamics(mechanism, q, v, a, actuated=["left_shoulder"])
    with pytest.raises(fgd.ResidualError, match="none"):
        fgd.inverse_dynamics(mechanism, q, v, a, actuated=[])


def test_accelerations_that_the_closure_forbids(case):
    mechanism, q, v, a = case
    with pytest.raises(fgd.ResidualError, match=r"break the closure of 'tip'.*complete_acceleration"):
        fgd.inverse_dynamics(mechanism, q, v, a + np.array([1.0, 0, 0, 0]), objective=fgd.MinimumTorque())
    wanted = np.array([1.0, 0, -2.0, 0])
    completed = fgd.constraints(mechanism, q, v).complete_acceleration(
        wanted, given=["left_shoulder", "right_shoulder"]
    )
    np.testing.assert_array_equal(completed[[0, 2]], wanted[[0, 2]])
    fgd.inverse_dynamics(mechanism, q, v, completed, objective=fgd.MinimumTorque())
    with pytest.raises(fgd.ClosureError, match="contradict"):
        fgd.constraints(mechanism, q, v).complete_acceleration(wanted, given=mechanism.joint_names)
    with pytest.raises(fgd.ClosureError, match="leave 1 freedom"):
        fgd.constraints(mechanism, q, v).complete_acceleration(wanted, given=["left_elbow"])


def test_hybrid_problems(case):
    mechanism, q, v, a = case
    solution = fgd.hybrid_dynamics(
        mechanism, q, v, a={"left_shoulder": a[0]}, tau={"left_elbow": 0.3, "right_elbow": 0, "right_shoulder": 1}
    )
    assert solution.a[0] == a[0]
    again = fgd.forward_dynamics(mechanism, q, v, solution.tau)
    assert relative(again.a, solution.a) < AGREES
    with pytest.raises(fgd.SingularSystemError, match=r"accelerations of joints .*right_shoulder.*undetermined"):
        fgd.hybrid_dynamics(mechanism, q, v, a={"left_shoulder": 1.0}, tau={})


def almost_flat(bend):
    """The five-bar with its distal links almost in one line: the shoulders hardly drive the tip across it."""
    x = -(0.5 * np.cos(bend) - 0.1)  # from the left shoulder to its elbow
    proximal = np.arctan2(np.sqrt(0.25 - x * x), x) - np.arctan2(0.4, -0.3)
    distal = bend - np.arctan2(0.3, 0.4) - proximal
    return np.array([proximal, distal, -proximal, -distal])


@pytest.mark.parametrize("bend", [1e-3, 1e-5, 1e-7, 1e-9, 0.0])
def test_singular_configurations_are_announced(bend):
    mechanism, rest = fgd.robots.five_bar(), np.zeros(4)
    q = almost_flat(bend)
    assert mechanism.closure_error(q) < 1e-12
    a = fgd.forward_dynamics(mechanism, q, rest, rest).a
    if bend == 1e-3:
        fgd.inverse_dynamics(mechanism, q, rest, a)
    elif bend == 1e-5:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", fgd.NearSingularWarning)
            solution = fgd.inverse_dynamics(mechanism, q, rest, a + 0 * rest)
        assert solution.residual < EXACT
    elif bend:
        with pytest.warns(fgd.NearSingularWarning, match="condition number"):
            fgd.inverse_dynamics(mechanism, q, rest, a)
    else:
        with pytest.raises((fgd.SingularSystemError, fgd.ResidualError), match="singular"):
            fgd.inverse_dynamics(mechanism, q, rest, a)
