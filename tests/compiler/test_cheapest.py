"""Without a word about the ordering, kernels take the one of fewest operations, and lose nothing by it."""

import json
import pickle

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.kernel import cheapest
from factorgraph_dyn.compiler.kernel import compile as compiling
from factorgraph_dyn.equations.problem import make_problem, problem_graph
from factorgraph_dyn.ordering import saved
from factorgraph_dyn.ordering.ordering import CLASSICAL

CASES = [("rrr", "forward"), ("rrr", "mass_matrix"), ("four_bar", "forward"),
         ("rrr", "inverse"), ("rrr", "iwim")]  # fmt: skip


@pytest.fixture
def own_folder(tmp_path, monkeypatch):
    """A cache of the test's own."""
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", str(tmp_path))
    return tmp_path


def counts(mechanism, problem):
    """Operations of every classical ordering that fits."""
    found = {}
    for name in CLASSICAL:
        try:
            found[name] = fgd.ordering_cost(mechanism, problem, name).operations.total
        except fgd.FactorGraphDynError:
            continue
    return found


@pytest.mark.parametrize(("robot", "problem"), CASES)
def test_the_default_has_the_fewest_operations(robot, problem):
    mechanism = getattr(fgd.robots, robot)()
    kernel = fgd.compile(mechanism, problem)
    assert kernel.operations.total <= min(counts(mechanism, problem).values())
    assert kernel.accuracy < 1e-12


def test_the_choice_is_remembered_and_is_the_ordering_named(own_folder, monkeypatch):
    arm = fgd.robots.rrr()
    first = fgd.compile(arm, "forward", ordering="auto")
    monkeypatch.setattr(compiling, "candidates", None)  # whoever asks again fails
    assert fgd.compile(arm, "forward", ordering=None).ordering == first.ordering
    named = fgd.compile(arm, "forward", ordering=first.ordering.name)
    assert (named.ordering, named.operations) == (first.ordering, first.operations)
    assert len(list(own_folder.rglob("*.fgdk"))) == 2  # the kernel, and the choice
    assert pickle.loads(pickle.dumps(first)).ordering == first.ordering


def test_what_fails_its_proof_gives_way_to_the_classical_ordering(own_folder, monkeypatch):
    arm, judge = fgd.robots.rrr(), compiling.Trial.judge

    class Doubted:
        is_good = False

    tried = []
    monkeypatch.setattr(
        compiling.Trial, "judge", lambda *given: tried.append(1) or (judge(*given) if len(tried) > 1 else Doubted())
    )
    monkeypatch.setattr(Doubted, "accuracy", 1.0, raising=False)
    assert fgd.compile(arm, "forward").ordering.name == "aba"
    assert len(tried) == 2


def test_an_ordering_without_safe_pivots_is_passed_over(monkeypatch):
    arm, trace = fgd.robots.rrr(), cheapest.trace

    def refusing(mechanism, problem, ordering, *rest):
        if ordering == "crba":
            raise fgd.CompileError("no safe pivots")
        return trace(mechanism, problem, ordering, *rest)

    monkeypatch.setattr(cheapest, "trace", refusing)
    assert [found.ordering for found in cheapest.candidates(arm, make_problem(arm, "forward"))] == ["aba"]


def test_orderings_that_cost_too_much_to_count_are_not_counted(monkeypatch):
    chain = fgd.robots.pendulum(4)
    problem = make_problem(chain, "forward")
    traced, trace = [], cheapest.trace
    monkeypatch.setattr(cheapest, "trace", lambda *given: traced.append(given[2]) or trace(*given))
    cheapest.candidates(chain, problem)
    assert traced == ["aba", "crba"]
    monkeypatch.setattr(cheapest, "AFFORDABLE", 10)
    assert [found.ordering for found in cheapest.candidates(chain, problem)] == ["aba"]
    assert traced == ["aba", "crba", "aba"]


def test_loops_are_tried_in_colamd_too():
    stewart = fgd.robots.stewart()
    first, *others = cheapest.candidates(stewart, make_problem(stewart, "forward"))
    assert first.ordering == "colamd"
    assert all(first.traced.program.cost < other.traced.program.cost for other in others)


def test_orderings_that_promise_nothing_are_not_counted(monkeypatch):
    robot, traced, trace = fgd.robots.humanoid(), [], cheapest.trace
    monkeypatch.setattr(cheapest, "trace", lambda *given: traced.append(given[2]) or trace(*given))
    cheapest.candidates(robot, make_problem(robot, "forward"))
    assert traced == ["aba"]


def test_a_refusal_is_that_of_the_classical_ordering():
    base, rod = fgd.Link("base"), fgd.Link("rod")  # moves no inertia
    idle = fgd.Mechanism("idle", [base, rod], [fgd.Joint("hinge", "revolute", "base", "rod")])
    messages = []
    for ordering in ("auto", "aba"):
        with pytest.raises(fgd.CompileError) as caught:
            fgd.compile(idle, "forward", ordering=ordering)
        messages.append(str(caught.value))
    assert messages[0] == messages[1]


def test_shipped_orderings_are_whole_and_win():
    """Every file that the package ships is for one of its robots and cheaper than the classical orderings."""
    files = list((saved.Path(saved.__file__).parent / "shipped").glob("*.json"))
    assert files
    for path in files:
        content = json.loads(path.read_text())
        mechanism = getattr(fgd.robots, content["mechanism"])()
        free = content.get("free", False)
        problem = make_problem(mechanism, content["problem"], parameters="all" if free else ())
        graph = problem_graph(mechanism, problem)
        found = saved.shipped(mechanism.fingerprint, graph.by_name, free=free)
        assert found is not None, path
        assert path == saved.best_path(mechanism.fingerprint, graph.by_name, path.parent, free=free)
        first, *others = cheapest.candidates(mechanism, problem)
        assert getattr(first.ordering, "variables", ()) == found.variables
        if free:
            assert all(first.traced.program.cost < other.traced.program.cost for other in others)
        else:
            assert first.traced.program.operations.total < min(counts(mechanism, content["problem"]).values())


def test_the_shipped_kernel_is_right():
    arm = fgd.robots.puma560()
    kernel = fgd.compile(arm, "forward")
    assert kernel.ordering.name == saved.SHIPPED
    assert kernel.operations.total < 650
    for seed in range(5):
        q, v = arm.random_state(seed)
        expected = fgd.forward_dynamics(arm, q, v, v).a
        np.testing.assert_allclose(kernel(q, v, v), expected, rtol=0, atol=1e-11 * np.abs(expected).max())
