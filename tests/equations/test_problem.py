"""Problems and quantities: one table each, from which everything else is derived."""

import inspect
from typing import get_args

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.commands import common
from factorgraph_dyn.compiler import outputs
from factorgraph_dyn.compiler.tape.symbol import references
from factorgraph_dyn.equations import problem as problems
from factorgraph_dyn.equations import quantities
from factorgraph_dyn.equations.problem import PROBLEMS, ProblemKind, make_problem, solved_problem
from factorgraph_dyn.equations.quantities import QUANTITIES, Quantity

ARM, FIVE_BAR = fgd.robots.rrr(), fgd.robots.five_bar()
AGREES = 1e-12


def test_default_orderings_are_those_of_the_table():
    for name, solver in (
        ("forward", fgd.forward_dynamics),
        ("inverse", fgd.inverse_dynamics),
        ("hybrid", fgd.hybrid_dynamics),
    ):
        assert inspect.signature(solver).parameters["ordering"].default == PROBLEMS[name].solved_in
    assert [PROBLEMS[name].solved_in for name in problems.SOLVED_NAMES] == ["aba", "rnea", "colamd"]
    assert inspect.signature(fgd.compile).parameters["ordering"].default == "auto"
    assert get_args(common.Problem) == problems.SOLVED_NAMES
    assert get_args(common.KernelProblem) == problems.PROBLEM_NAMES
    assert get_args(common.SearchedProblem) == problems.SEARCHED_NAMES


def test_what_a_hybrid_problem_gives_by_default():
    assert solved_problem(ARM, "hybrid").known_a.tolist() == [True, False, True]
    np.testing.assert_array_equal(solved_problem(FIVE_BAR, "hybrid").known_a, FIVE_BAR.torque_entries())
    assert not make_problem(ARM, "hybrid").known_a.any()
    with pytest.raises(fgd.InputError, match="must be one of: forward, inverse, hybrid"):
        solved_problem(ARM, "iwim")


def test_what_is_known():
    tau = np.arange(3.0)
    forward, inverse, nothing = fgd.Known.forward(tau), fgd.Known.inverse(tau), fgd.Known.nothing(3)
    assert forward.tau_mask.all()
    assert not forward.a_mask.any()
    assert inverse.a_mask.all()
    assert not inverse.tau_mask.any()
    assert not nothing.a_mask.any()
    assert not nothing.tau_mask.any()
    sought = np.array([True, False, True])
    assert fgd.Known.inverse(tau, sought).tau_mask.tolist() == [False, True, False]
    for name, known in (("forward", forward), ("inverse", inverse)):
        asked = make_problem(ARM, name)
        np.testing.assert_array_equal(asked.known_a, known.a_mask)
        np.testing.assert_array_equal(asked.known_tau, known.tau_mask)


def test_a_problem_is_one_entry(monkeypatch):
    statics = ProblemKind(("q",), ("tau",), a="all", tau="passive", classical="rnea")
    monkeypatch.setitem(PROBLEMS, "statics", statics)
    for mechanism in (ARM, fgd.robots.puma560()):
        q, v = mechanism.random_state(0)
        kernel = fgd.compile(mechanism, "statics")
        assert kernel.arguments == ("q",)
        np.testing.assert_allclose(kernel(q), fgd.bias(mechanism, q, 0 * v), rtol=AGREES, atol=AGREES)


def test_an_output_is_an_entry_of_each_table(monkeypatch):
    """The momentum of a link in its own frame, G V."""

    def traced(solved, _, link):
        return references(solved.tape, inertia(link) @ solved.state.twists[link])

    def true(plain, link):
        sizes = np.linalg.norm(inertia(link)) * np.hypot(*plain.here.V_size[link].T)
        return (plain.here.V[link] @ inertia(link))[:, None], np.stack([sizes, sizes], axis=-1)[:, None]

    def inertia(link):
        return ARM.link_by_name[link].spatial_inertia

    kind = Quantity(6, "{}", "link", in_link_frames=True, splits_inertia=True)
    monkeypatch.setitem(QUANTITIES, "link_momentum", kind)
    monkeypatch.setitem(outputs.OUTPUTS, "link_momentum", traced)
    monkeypatch.setitem(outputs.TRUE_VALUES, "link_momentum", true)
    q, v = ARM.random_state(0)
    kernel = fgd.compile(ARM, "inverse", outputs=["tau", "link_momentum[link2]"])
    solution = fgd.inverse_dynamics(ARM, q, v, v)
    tau, momentum = kernel(q, v, v)
    np.testing.assert_allclose(tau, solution.tau, rtol=AGREES, atol=AGREES)
    np.testing.assert_allclose(momentum, inertia("link2") @ solution.twists["link2"], rtol=AGREES, atol=AGREES)
    with pytest.raises(fgd.InputError, match=r"link_momentum\[link\] for the links base, link1"):
        fgd.compile(ARM, "inverse", outputs=["link_momentum[nothing]"])
    with pytest.raises(
        fgd.InputError, match=r"V\[link or frame\] and A\[link or frame\] for the links and frames base"
    ):
        fgd.compile(ARM, "inverse", outputs=["V[nothing]"])


def test_names_of_quantities():
    assert quantities.split_name("A[odd[name]]") == ("A", "odd[name]")
    assert quantities.split_name("tau") == ("tau", "")
    assert quantities.size_of(fgd.robots.humanoid(), "q") == fgd.robots.humanoid().nq
    assert quantities.size_of(ARM, "wrench[link1]") == 6
    for name in ("q", "a[joint1]", "A", "A[", "A[]", "A[link1", "F[link1]", "wrench[link1]"):
        with pytest.raises(fgd.InputError, match="There is no output"):
            make_problem(ARM, "forward", outputs=[name])
