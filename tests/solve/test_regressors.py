"""Regressors against Pinocchio's and against the graph, for states and batches."""

import numpy as np
import pinocchio as pin
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.parameters import UNIT_INERTIAS, parameters_of
from factorgraph_dyn.motion import closure
from tests.helpers import lossy, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle

SAME = 1e-13
CLOSED = ("four_bar", "five_bar", "stewart")


def state_of(mechanism, seed):
    q, v = mechanism.random_state(seed)
    return q, v, np.random.default_rng(seed).normal(size=mechanism.nv)


def theirs_per_link(oracle, columns):
    """Pinocchio's columns, ten a joint, as ten a link: several links may ride on one joint, in other frames."""
    found = []
    for name in oracle.mechanism.link_names[1:]:
        joint, T_joint_link = oracle.link_frames[name]
        Ad = spatial.inverse_adjoint(T_joint_link.homogeneous)
        moved = np.array([parameters_of(Ad.T @ E @ Ad) for E in UNIT_INERTIAS]).T
        own = columns[..., 10 * (joint - 1) : 10 * joint] if joint else np.zeros((*columns.shape[:-1], 10))
        found.append(own @ moved)
    return np.concatenate(found, axis=-1)


@pytest.mark.parametrize("seed", range(6))
def test_trees_of_all_joints_agree_with_pinocchio(seed):
    tree = mixed_tree(seed)
    q, v, a = state_of(tree, seed)
    oracle = pinocchio_oracle(tree)
    model, data = oracle.model, oracle.data
    theirs = pin.computeJointTorqueRegressor(model, data, oracle.q(q), oracle.v(v), oracle.v(a))
    assert relative_error(fgd.regressor(tree, q, v, a), oracle.back(theirs_per_link(oracle, theirs))) < SAME
    kinetic, potential = fgd.energy_regressors(tree, q, v)
    theirs = pin.computeKineticEnergyRegressor(model, data, oracle.q(q), oracle.v(v))
    assert relative_error(kinetic, theirs_per_link(oracle, np.asarray(theirs))) < SAME
    theirs = pin.computePotentialEnergyRegressor(model, data, oracle.q(q))
    moves = np.repeat([oracle.link_frames[name][0] > 0 for name in tree.link_names[1:]], 10)  # not fixed to the base
    assert relative_error(potential * moves, theirs_per_link(oracle, np.asarray(theirs))) < SAME


@pytest.mark.parametrize("seed", range(4))
def test_other_parameters_are_those_of_another_mechanism(seed):
    tree = mixed_tree(seed)
    q, v, a = state_of(tree, seed)
    factors = np.random.default_rng(seed).uniform(0.5, 2.0, (len(tree.links) - 1, 1))
    other = tree.with_parameters(tree.parameters() * factors)
    tau = fgd.regressor(tree, q, v, a) @ other.parameters().ravel()
    assert relative_error(tau, fgd.inverse_dynamics(other, q, v, a).tau) < SAME


def test_what_is_no_inertia_is_added():
    arm = fgd.robots.puma560()
    worn = lossy(arm, 1)
    q, v, a = state_of(arm, 1)
    assert (fgd.regressor(worn, q, v, a) == fgd.regressor(arm, q, v, a)).all()
    added = np.concatenate(
        [
            j.armature * a[i] + j.damping * v[i] + j.friction * np.sign(v[i]) + j.stiffness * (q[i] - j.rest)
            for i, j in enumerate(worn.movable_joints)
        ]
    )
    tau = fgd.regressor(worn, q, v, a) @ worn.parameters().ravel() + added
    assert relative_error(tau, fgd.inverse_dynamics(worn, q, v, a).tau) < SAME


@pytest.mark.parametrize("name", CLOSED)
def test_motors_of_closed_mechanisms_balance_the_tree_along_its_freedoms(name):
    mechanism = getattr(fgd.robots, name)()
    q, v = mechanism.random_state(2)
    tau = np.where(mechanism.torque_entries(), 1.0, 0.0)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    left = fgd.regressor(mechanism, q, v, a) @ mechanism.parameters().ravel() - tau
    J = closure.stacked_jacobian(mechanism, closure.constraints(mechanism, q))
    N = np.linalg.svd(J)[2][np.linalg.matrix_rank(J, tol=1e-9) :]
    assert np.abs(N @ left).max() < 1e-9 * np.abs(left).max()


def test_links_fixed_to_the_base_have_no_energy():
    links = (
        fgd.Link("base"),
        fgd.Link("post", 5.0, (0, 0, 1), np.eye(3)),
        fgd.Link("arm", 1.0, (0.5, 0, 0), np.eye(3)),
    )
    joints = (fgd.Joint("weld", "fixed", "base", "post"), fgd.Joint("hinge", "revolute", "post", "arm", axis=(0, 1, 0)))
    mechanism = fgd.Mechanism("post", links, joints)
    q, v = np.array([[0.3], [1.0]]), np.array([[1.0], [-2.0]])
    outputs = ["kinetic_regressor", "potential_regressor"]
    kernel = fgd.compile(mechanism, "regressor", outputs=outputs)
    for rows in (fgd.energy_regressors(mechanism, q, v), kernel(q, v, np.zeros((2, 1)))):
        for row, energy in zip(rows, fgd.energy(mechanism, q, v), strict=True):
            assert relative_error(row @ mechanism.parameters().ravel(), energy) < SAME


def test_batches_are_their_states():
    tree = mixed_tree(5)
    states = [state_of(tree, seed) for seed in range(6)]
    q, v, a = (np.array(values).reshape(2, 3, -1) for values in zip(*states, strict=True))
    found = fgd.regressor(tree, q, v, a[0, 0])
    assert found.shape == (2, 3, tree.nv, 10 * (len(tree.links) - 1))
    kinetic, potential = fgd.energy_regressors(tree, q, v)
    for place in np.ndindex(2, 3):
        assert relative_error(found[place], fgd.regressor(tree, q[place], v[place], a[0, 0])) < SAME
        one = fgd.energy_regressors(tree, q[place], v[place])
        assert relative_error(kinetic[place], one[0]) < SAME
        assert relative_error(potential[place], one[1]) < SAME
    assert fgd.regressor(tree, q[:0], v[:0], a[:0]).shape == (0, 3, tree.nv, 10 * (len(tree.links) - 1))


def test_some_links_only():
    arm = fgd.robots.puma560()
    q, v, a = state_of(arm, 1)
    whole = fgd.regressor(arm, q, v, a)
    some = fgd.regressor(arm, q, v, a, links=["link4", "link2"])
    assert (some == np.hstack([whole[:, 30:40], whole[:, 10:20]])).all()


def test_words():
    arm = fgd.robots.puma560()
    zero = np.zeros(6)
    with pytest.raises(fgd.InputError, match=r"q has shape \(5,\); its last axis must have length 6"):
        fgd.regressor(arm, zero[:5], zero, zero)
    with pytest.raises(fgd.InputError, match="do not go together"):
        fgd.regressor(arm, np.zeros((2, 6)), np.zeros((3, 6)), zero)
    with pytest.raises(fgd.InputError, match="a is not finite"):
        fgd.regressor(arm, zero, zero, zero * np.nan)
    with pytest.raises(fgd.InputError, match="'elbow' is not in mechanism"):
        fgd.energy_regressors(arm, zero, zero, links=["elbow"])
    humanoid = fgd.robots.humanoid()
    with pytest.raises(fgd.InputError, match="they must be 1"):
        fgd.regressor(humanoid, np.zeros((2, humanoid.nq)), np.zeros(humanoid.nv), np.zeros(humanoid.nv))
