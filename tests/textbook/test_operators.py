"""Every identity of the spatial operator algebra, on random trees, with and without armature."""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.kinematics import integrate, link_jacobian
from tests.helpers import lossy, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-11
FINITE_DIFFERENCES = 1e-7
SEEDS = range(8)


def operators(seed: int, *, armature: bool = False) -> fgd.SpatialOperators:
    mechanism = fgd.robots.random_tree(3 + seed, seed=seed, branching=1 + seed % 3, kinds=("all",))
    if armature:
        mechanism = lossy(mechanism, seed)
    return fgd.spatial_operators(mechanism, mechanism.random_state(seed)[0])


def close(found, expected) -> bool:
    dense = [x if isinstance(x, np.ndarray) else x.dense() for x in (found, expected)]
    scale = max(1.0, float(np.abs(dense[1]).max(initial=0.0)))
    return bool(np.abs(dense[0] - dense[1]).max(initial=0.0) < AGREEMENT * scale)


@pytest.mark.parametrize("armature", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_definitions(seed, armature):
    o = operators(seed, armature=armature)
    assert close(o.D, o.H @ o.P @ o.H.T + o.J)
    assert close(o.D_inverse @ o.D, o.joint_identity)
    assert close(o.G, o.P @ o.H.T @ o.D_inverse)
    assert close(o.K, o.E_phi @ o.G)
    assert close(o.tau, o.G @ o.H)
    assert close(o.tau_bar, o.link_identity - o.tau)
    assert close(o.P_plus, o.tau_bar @ o.P)
    assert close(o.P_plus, o.P @ o.tau_bar.T)
    assert close(o.E_psi, o.E_phi @ o.tau_bar)
    assert close(o.phi @ (o.link_identity - o.E_phi), o.link_identity)
    assert close(o.psi @ (o.link_identity - o.E_psi), o.link_identity)
    for E, resolvent in ((o.E_phi, o.phi), (o.E_psi, o.psi)):
        tilde = resolvent - o.link_identity
        assert close(tilde, E @ resolvent)
        assert close(tilde, resolvent @ E)
        powers = [np.linalg.matrix_power(E.dense(), k) for k in range(len(o.links) + 1)]
        assert not powers[-1].any()  # nilpotent
        assert close(resolvent, np.sum(powers, axis=0))
        assert not np.triu(resolvent.dense(), 6).any()


@pytest.mark.parametrize("armature", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_lyapunov_and_riccati_equations(seed, armature):
    o = operators(seed, armature=armature)
    assert close(o.M, o.R - o.E_phi @ o.R @ o.E_phi.T)
    assert close(o.M, o.P - o.E_psi @ o.P @ o.E_phi.T)
    assert close(o.M, o.P - o.E_phi @ o.P @ o.E_psi.T)
    assert close(o.E_psi @ o.P @ o.E_psi.T + o.K @ o.J @ o.K.T, o.E_psi @ o.P @ o.E_phi.T)
    if not armature:
        assert close(o.P_plus, o.tau_bar @ o.P @ o.tau_bar.T)
        assert close(o.M, o.P - o.E_psi @ o.P @ o.E_psi.T)
    # composite bodies are never lighter than articulated ones
    for R, joint in zip(o.composite_inertias, o.joints, strict=True):
        assert np.linalg.eigvalsh(R - joint.P)[0] > -AGREEMENT * np.abs(R).max()


@pytest.mark.parametrize("seed", SEEDS)
def test_decompositions(seed):
    o = operators(seed)
    phi_tilde, psi_tilde = o.phi - o.link_identity, o.psi - o.link_identity
    assert close(o.phi @ o.M @ o.phi.T, o.R + phi_tilde @ o.R + o.R @ phi_tilde.T)
    assert close(o.psi @ o.M @ o.psi.T, o.P + psi_tilde @ o.P + o.P @ psi_tilde.T)
    assert close(o.phi @ o.M @ o.psi.T, o.P + phi_tilde @ o.P + o.P @ psi_tilde.T)
    assert close(o.phi @ o.M @ o.phi.T, o.P + phi_tilde @ o.P + o.P @ phi_tilde.T + o.phi @ o.K @ o.D @ o.K.T @ o.phi.T)


@pytest.mark.parametrize("armature", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_identities_between_phi_and_psi(seed, armature):
    o = operators(seed, armature=armature)
    one, inverse_phi, inverse_psi = o.link_identity, o.link_identity - o.E_phi, o.link_identity - o.E_psi
    assert close(inverse_psi - inverse_phi, o.K @ o.H)
    assert close(inverse_psi @ o.phi, one + o.K @ o.H @ o.phi)
    assert close(o.phi @ inverse_psi, one + o.phi @ o.K @ o.H)
    assert close(inverse_phi @ o.psi, one - o.K @ o.H @ o.psi)
    assert close(o.psi @ inverse_phi, one - o.psi @ o.K @ o.H)
    assert close(o.inverse_innovations @ o.H @ o.phi, o.H @ o.psi)
    assert close(o.phi @ o.K @ o.inverse_innovations, o.psi @ o.K)
    assert close(o.innovations @ o.H @ o.psi, o.H @ o.phi)
    assert close(o.psi @ o.K @ o.innovations, o.phi @ o.K)
    assert close(o.innovations @ o.inverse_innovations, o.joint_identity)
    left = o.inverse_innovations @ o.J @ o.inverse_innovations.T
    assert close(o.H @ o.psi @ o.M @ o.psi.T @ o.H.T, o.D - left)


@pytest.mark.parametrize("armature", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_mass_matrix_its_inverse_trace_and_determinant(seed, armature):
    o = operators(seed, armature=armature)
    q = o.bodies.state.q
    M = pinocchio_oracle(o.mechanism).mass_matrix(q)
    assert close(o.mass_matrix, M)
    assert close(o.innovations @ o.D @ o.innovations.T, M)
    assert relative_error((o.inverse_mass_matrix).dense(), np.linalg.inv(M)) < 1e-9
    composite = o.H @ o.R @ o.H.T + o.J
    phi_tilde = o.phi - o.link_identity
    assert close(composite + o.H @ phi_tilde @ o.R @ o.H.T + o.H @ o.R @ phi_tilde.T @ o.H.T, M)
    assert np.isclose(np.trace(composite.dense()), np.trace(M), rtol=AGREEMENT)
    logarithm = np.linalg.slogdet(M)[1]
    assert np.isclose(o.fixman_potential, logarithm, rtol=AGREEMENT, atol=AGREEMENT)
    assert np.isclose(fgd.log_determinant(o.mechanism, q), logarithm, rtol=AGREEMENT, atol=AGREEMENT)


@pytest.mark.parametrize("armature", [False, True])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_fixman_gradient_is_the_rate_of_the_potential(seed, armature):
    o = operators(seed, armature=armature)
    q, mechanism, step = o.bodies.state.q, o.mechanism, 1e-5
    rates = [
        (
            fgd.log_determinant(mechanism, integrate(mechanism, q, direction, step))
            - fgd.log_determinant(mechanism, integrate(mechanism, q, direction, -step))
        )
        / (2 * step)
        for direction in np.eye(mechanism.nv)
    ]
    assert np.abs(o.fixman_gradient - rates).max(initial=0.0) < FINITE_DIFFERENCES


def test_the_gradient_of_single_freedoms_is_the_one_of_the_source():
    mechanism = fgd.robots.random_tree(8, seed=1, branching=2, kinds=("revolute", "prismatic", "helical"))
    o = fgd.spatial_operators(mechanism, mechanism.random_state(0)[0])
    for k, joint in enumerate(o.joints):
        cross = np.column_stack([fgd.spatial.bracket(joint.S[:, 0], column) for column in np.eye(6)])
        expected = -2 * np.trace(joint.P @ o.upsilon[k] @ cross.T)
        assert np.isclose(o.fixman_gradient[joint.entries][0], expected, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("seed", SEEDS)
def test_upsilon_is_the_diagonal_of_the_operational_space_kernel(seed):
    o = operators(seed)
    kernel = (o.psi.T @ o.H.T @ o.D_inverse @ o.H @ o.psi).dense()
    for k, block in enumerate(o.upsilon):
        assert close(kernel[6 * k : 6 * k + 6, 6 * k : 6 * k + 6], block)


@pytest.mark.parametrize("seed", SEEDS)
def test_scatter_gives_twists_and_gather_gives_torques(seed):
    o = operators(seed)
    q = o.bodies.state.q
    v = np.random.default_rng(seed).normal(size=o.mechanism.nv)
    twists = fgd.evaluate_state(o.mechanism, q, v).twists
    assert close(o.phi.T @ (o.H.T @ v), np.concatenate([twists[link] for link in o.links]))
    wrench = np.zeros(6 * len(o.links))
    wrench[:6] = np.arange(1.0, 7.0)
    assert close(o.H @ (o.phi @ wrench), link_jacobian(o.mechanism, q, o.links[0]).T @ np.arange(1.0, 7.0))


def test_factors_are_triangular_from_the_tips():
    o = operators(5, armature=True)
    order = np.concatenate([np.arange(o.mechanism.nv)[joint.entries] for joint in o.joints])
    for factor in (o.innovations, o.inverse_innovations):
        turned = factor.dense()[np.ix_(order, order)]
        assert np.isclose(np.linalg.det(turned), 1.0)
        stop = 0
        for joint in o.joints:
            start, stop = stop, stop + joint.S.shape[1]
            assert not turned[start:stop, stop:].any()
            assert np.allclose(turned[start:stop, start:stop], np.eye(stop - start))


def test_adjoints_and_columns():
    o = operators(3, armature=True)
    rng = np.random.default_rng(0)
    for operator in (o.H, o.phi, o.psi, o.K, o.E_psi, o.innovations, o.inverse_mass_matrix):
        x, y = rng.normal(size=operator.shape[1]), rng.normal(size=operator.shape[0])
        assert np.isclose(y @ (operator @ x), x @ (operator.T @ y), rtol=1e-9)
        assert np.allclose((operator @ np.column_stack([x, 2 * x]))[:, 1], 2 * (operator @ x))
        assert operator.T.shape == operator.shape[::-1]


def test_shapes_are_checked():
    o = operators(2)
    with pytest.raises(fgd.InputError, match="cannot be applied"):
        o.phi @ np.zeros(5)
    with pytest.raises(fgd.InputError, match="cannot be added"):
        o.phi + o.H


def test_loops_do_not_change_the_operators_of_the_tree():
    five_bar = fgd.robots.five_bar()
    q, _ = five_bar.random_state(0)
    assert close(fgd.spatial_operators(five_bar, q).mass_matrix, fgd.mass_matrix(five_bar, q))
