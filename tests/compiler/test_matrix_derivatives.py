"""Derivatives of mass matrices, their inverses and what inputs do: against Pinocchio, each other and differences."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.proof.proof import Trial
from factorgraph_dyn.equations.problem import make_problem
from tests.compiler.test_derivatives import AGREEMENT, KINDS, by_pinocchio
from tests.helpers import relative_error

BOTH = ("matrix", "dmatrix/dq")
TREES = [
    fgd.robots.ur5(),
    *(fgd.robots.random_tree(3, seed=seed, branching=1.5, kinds=KINDS) for seed in (1, 2)),
]


@pytest.mark.parametrize("tree", TREES, ids=str)
def test_mass_matrices_change_as_torques_at_rest_do(tree):
    q, _ = tree.random_state(3)
    M, dM = fgd.compile(tree, "mass_matrix", outputs=BOTH)(q)
    afloat, still = replace(tree, gravity=(0, 0, 0)), np.zeros(tree.nv)
    expected = np.stack([by_pinocchio(afloat, q, still, unit)[0] for unit in np.eye(tree.nv)], axis=1)
    assert dM.shape == (tree.nv,) * 3
    assert np.abs(dM - expected).max() < AGREEMENT * np.abs(M).max()
    W, dW = fgd.compile(tree, "inverse_mass_matrix", outputs=BOTH)(q)
    assert relative_error(dW, -np.einsum("ij,jkn,kl->iln", W, dM, W)) < 1e-8


@pytest.mark.parametrize("mechanism", [fgd.robots.four_bar(), fgd.robots.five_bar()], ids=str)
def test_what_motors_do_changes_along_the_closure(mechanism):
    kernel, value = (fgd.compile(mechanism, "iwim", outputs=outputs) for outputs in (BOTH, None))
    q, v = mechanism.random_state(0)
    h = 1e-4
    there = [value(mechanism.close(fgd.integrate(mechanism, q, v, k * h))) for k in (-2, -1, 1, 2)]
    expected = (8 * (there[2] - there[1]) - (there[3] - there[0])) / (12 * h)
    assert relative_error(kernel(q)[1] @ v, expected) < 1e-8


def test_what_contacts_do_changes_with_places_and_is_proved():
    arm = fgd.robots.rrr()
    contacts = [fgd.Contact("link3", axes="world", directions=np.eye(3), point=(0.1, 0.2, 0.3))]
    kernel, value = (fgd.compile(arm, "iwim", outputs=outputs, contacts=contacts) for outputs in (BOTH, None))
    q, v = arm.random_state(2)
    h = 1e-3
    there = [value(q + k * h * v) for k in (-2, -1, 1, 2)]
    assert relative_error(kernel(q)[1] @ v, (8 * (there[2] - there[1]) - (there[3] - there[0])) / (12 * h)) < 1e-7
    assert kernel.accuracy < 1e-10


def test_mass_matrices_are_linear_in_parameters():
    arm = fgd.robots.rrr()
    kernel = fgd.compile(arm, "mass_matrix", outputs=(*BOTH, "dmatrix/dparameters"), parameters="all")
    q, parameters = np.array([0.1, 0.2, 0.3]), arm.parameters()
    M, dM, by_parameters = kernel(q, parameters)
    assert by_parameters.shape == (3, 3, 3, 10)
    assert relative_error(np.einsum("ijkl,kl->ij", by_parameters, parameters), M) < 1e-14
    assert relative_error(dM, fgd.compile(arm, "mass_matrix", outputs=("dmatrix/dq",))(q)) < 1e-13
    assert "-> M, dM/dq, dM/dparameters" in repr(kernel)


def test_a_wrong_derivative_does_not_stand_its_proof():
    arm = fgd.robots.rrr()
    for problem in ("mass_matrix", "inverse_mass_matrix", "iwim"):
        kernel, trial = fgd.compile(arm, problem, outputs=BOTH), Trial(arm, make_problem(arm, problem, outputs=BOTH))
        assert trial.judge(kernel.gufunc).is_good

        def spoilt(q, function=kernel.gufunc):
            matrix, slope = function(q)
            return matrix, slope * (1 + 1e-7)

        assert not trial.judge(spoilt).holds


@pytest.mark.parametrize("outputs", [["tau"], ["dmatrix/dv"], ["da/dq"]])
def test_words_for_what_there_is(outputs):
    with pytest.raises(fgd.InputError, match="Outputs: matrix, dmatrix/dq"):
        fgd.compile(fgd.robots.rrr(), "mass_matrix", outputs=outputs)
    with pytest.raises(fgd.InputError, match="no output 'matrix'"):
        fgd.compile(fgd.robots.rrr(), "forward", outputs=["matrix"])
