"""Searches: better than the classics, repeatable, resumable, interruptible, on any executor."""

import math
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.accuracy import AccuracyCheck
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.search import search as search_module
from factorgraph_dyn.search import tasks
from factorgraph_dyn.search.scores import make_score
from factorgraph_dyn.search.twins import Twins
from tests.helpers import relative_error

RRR = fgd.robots.rrr()
AGREEMENT = 1e-9


def quick(mechanism=RRR, problem="forward", **options):
    options = {"budget": 20, "rounds": 2, "lanes": 2, "executor": ThreadPoolExecutor(1), "save": False} | options
    return fgd.search_orderings(mechanism, problem, **options)


def test_fewer_operations_and_the_same_answers():
    found = quick()
    best = min(baseline.operations.total for baseline in found.baseline.values())
    assert set(found.baseline) == {"aba", "crba"}
    assert found.operations.total < best
    assert found.saving == pytest.approx(1 - found.operations.total / best)
    assert found.error <= 10 * found.baseline["aba"].error
    kernel = fgd.compile(RRR, "forward", ordering=found)
    assert kernel.operations == found.operations
    assert kernel.ordering.name == "search"
    q, v = RRR.random_state(0)
    tau = np.array([1.0, 2.0, 3.0])
    exact = fgd.forward_dynamics(RRR, q, v, tau).a
    assert relative_error(kernel(q, v, tau), exact) < AGREEMENT
    assert relative_error(fgd.forward_dynamics(RRR, q, v, tau, ordering=found).a, exact) < AGREEMENT


@pytest.mark.slow
def test_panda_is_better_within_few_rounds():
    found = quick(fgd.robots.panda(), rounds=1, lanes=1)
    assert found.saving > 0.02
    scores = [score for _, _, score in found.history]
    assert scores == sorted(scores, reverse=True)


@pytest.mark.parametrize("problem", ["inverse", "iwim", "mass_matrix"])
def test_other_problems(problem):
    found = quick(problem=problem, rounds=1)
    assert found.operations.total <= min(b.operations.total for b in found.baseline.values())


def test_free_parameters_have_an_ordering_of_their_own(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_ORDERINGS", str(tmp_path))
    with pytest.raises(fgd.OrderingError, match="No search has been saved"):
        fgd.compile(RRR, "forward", parameters="all", ordering="search")
    found = quick(parameters="all", save=True)
    assert found.operations.total < min(baseline.operations.total for baseline in found.baseline.values())
    kernel = fgd.compile(RRR, "forward", parameters="all", ordering="search")
    assert kernel.ordering.variables == found.variables
    assert kernel.operations == found.operations
    with pytest.raises(fgd.OrderingError, match="No search has been saved"):
        fgd.compile(RRR, "forward", ordering="search")
    found.write(tmp_path / "found.json")
    with pytest.raises(fgd.OrderingError, match="'forward' with free parameters and objective"):
        quick(results=tmp_path / "found.json")


def test_hybrid_problem():
    found = quick(problem="hybrid", rounds=1, known_accelerations=["joint2"])
    kernel = fgd.compile(RRR, "hybrid", ordering=found, known_accelerations=["joint2"])
    assert kernel.operations == found.operations


def test_closed_loops_are_searched_too():
    found = quick(fgd.robots.five_bar(), objective="blocks", rounds=1)
    assert len(found) == len(set(found))
    assert math.isfinite(found.score)


def test_inverse_dynamics_of_a_platform_have_where_to_start():
    stewart = fgd.robots.stewart()
    score = make_score(stewart, make_problem(stewart, "inverse"), "operations")
    assert math.isfinite(score(fgd.choose_ordering(stewart, score.graph, "rnea").variables, math.inf))


@pytest.mark.slow
def test_closed_loops_with_fewer_operations(monkeypatch):
    monkeypatch.setattr(search_module, "ROUND", 15)  # each ordering of a loop is traced by itself
    four_bar = fgd.robots.four_bar()
    found = quick(four_bar, rounds=1, lanes=1)
    assert found.operations.total < min(b.operations.total for b in found.baseline.values())
    kernel = fgd.compile(four_bar, "forward", ordering=found)
    assert kernel.operations == found.operations
    q, v = four_bar.random_state(1)
    tau = np.where(four_bar.torque_entries(), 1.0, 0.0)
    assert relative_error(kernel(q, v, tau), fgd.forward_dynamics(four_bar, q, v, tau).a) < AGREEMENT


@pytest.mark.slow
def test_compiled_kernels_are_as_exact_as_the_judge_says():
    puma = fgd.robots.puma560()
    found = quick(puma, rounds=1, lanes=1)
    check = AccuracyCheck(puma, make_problem(puma, "forward"))
    kernel = fgd.compile(puma, "forward", ordering=found)
    assert len(check.arguments[0]) == 4096
    assert check.error_of(kernel(*check.arguments).T) <= check.allowed


@pytest.mark.slow
def test_seed_decides_and_the_executor_does_not():
    first = quick(seed=3)
    again = quick(seed=3, executor=ThreadPoolExecutor(2))
    assert first.variables == again.variables
    assert first.evaluations == again.evaluations


@pytest.mark.slow
def test_time_is_measured():
    found = quick(objective="time", rounds=1)
    assert found.seconds_a_state > 0
    assert all(baseline.seconds_a_state > 0 for baseline in found.baseline.values())


@pytest.mark.slow
def test_own_processes():
    found = fgd.search_orderings(RRR, budget=20, rounds=1, save=False)
    assert found.operations.total < 148


@pytest.mark.slow
def test_dask_workers():
    distributed = pytest.importorskip("distributed", reason="needs Dask: pip install distributed")
    options = {"n_workers": 2, "threads_per_worker": 1, "dashboard_address": None, "processes": True}
    with distributed.LocalCluster(**options) as cluster, distributed.Client(cluster) as client:
        found = quick(executor=client.get_executor(), lanes=None, seed=3)
    assert found.variables == quick(seed=3).variables


def test_interrupting_keeps_the_best(tmp_path, monkeypatch):
    rounds = []

    def interrupted(task):
        rounds.append(task)
        if len(rounds) > 2:
            raise KeyboardInterrupt
        return tasks.run(task)

    class Here:
        """An executor that runs everything at once, where Ctrl-C hits it."""

        def submit(self, fn, task):
            from concurrent.futures import Future

            future = Future()
            future.set_result(interrupted(task))
            return future

    monkeypatch.setattr(search_module._Search, "_gather", _gather_through(search_module._Search._gather))
    path = tmp_path / "best.json"
    found = quick(executor=Here(), results=path, rounds=9)
    assert found.interrupted
    assert found.operations.total < 148
    assert fgd.compile(RRR, ordering=str(path)).operations == found.operations


def _gather_through(gather):
    """Ctrl-C while tasks are handed out is Ctrl-C while waiting for them."""

    def gathered(self, executor, work):
        try:
            return gather(self, executor, work)
        except KeyboardInterrupt:
            self.interrupted = True
            return []

    return gathered


def test_interrupted_annealing_gives_what_it_has(monkeypatch):
    asked = tasks.Asked(RRR, "forward", "operations")
    score, mover = tasks.score_of(asked)
    calls = []

    def stopping(ordering, threshold=math.inf):
        calls.append(ordering)
        if len(calls) == 50:
            raise KeyboardInterrupt
        return score(ordering, threshold)

    from factorgraph_dyn.search.anneal import anneal

    start = score.apart(fgd.choose_ordering(RRR, score.graph, "aba"))
    found = anneal(stopping, mover, start, seed=0, hot=0.02, cold=0.001, progress=lambda done: done / 200)
    assert found.interrupted
    assert found.elites[0][0] < score(start)


@pytest.mark.parametrize("budget", [0, -1, math.nan, math.inf, "60", None, True, [60]])
def test_bad_budgets(budget):
    with pytest.raises(fgd.InputError, match="above zero"):
        fgd.search_orderings(RRR, budget=budget)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"objective": "beauty"}, "operations, time, depth, blocks"),
        ({"problem": "sideways"}, "forward, inverse"),
        ({"lanes": 0}, "1 or more"),
        ({"rounds": 1.5}, "1 or more"),
        ({"executor": 3}, "get_executor"),
        ({"executor": ThreadPoolExecutor}, "an instance"),
        ({"seed": "x"}, "whole number"),
        ({"resume": 3}, "True or False"),
        ({"progress": "yes"}, "True or False"),
        ({"save": None}, "True or False"),
        ({"actuated": 5}, "actuated"),
        ({"results": 5}, "a path"),
        ({"known_accelerations": ["joint1"]}, "hybrid"),
        ({"results": "no/such/folder/x.json"}, "folder that exists"),
    ],
)
def test_bad_options(options, message):
    with pytest.raises(fgd.InputError, match=message):
        fgd.search_orderings(RRR, **options)


@pytest.mark.parametrize("problem", ["estimate", "kinematics"])
def test_problems_without_a_choice_of_orderings_are_refused_by_what_can_be_searched(problem):
    with pytest.raises(fgd.InputError, match=f"is '{problem}'; it must be one of: forward, .*regressor.$") as refused:
        fgd.search_orderings(RRR, problem)
    assert "measurements" not in str(refused.value)


def test_twins_of_the_humanoid():
    humanoid = fgd.robots.humanoid()
    families = Twins(humanoid).families
    assert families
    for family in families:
        assert len({tuple(joint.kind for joint in joints) for joints in family}) == 1
    joints = [joint.name for family in families for subtree in family for joint in subtree]
    assert len(joints) == len(set(joints))
    variable = f"F[{families[0][0][0].name}]"
    assert [twin[variable] for twin in Twins(humanoid).of(variable)] == [
        f"F[{subtree[0].name}]" for subtree in families[0][1:]
    ]


@pytest.mark.slow
def test_loops_whose_equations_repeat_each_other_are_searched():
    found = fgd.search_orderings(fgd.robots.BUILT_IN["stewart"](), "inverse", budget=3)
    assert np.isfinite(found.score)
    assert found.error < 1e-10
