"""The block cost model, and the exact search over sets of variables."""

from itertools import permutations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.equations.problem import make_problem, problem_graph
from factorgraph_dyn.ordering import choose_ordering, eliminate_structure
from factorgraph_dyn.ordering.structure import front_operations
from factorgraph_dyn.search.exact import LARGEST, BlockModel, exact_ordering


def graph_of(mechanism, problem="forward"):
    return problem_graph(mechanism, make_problem(mechanism, problem))


def structure_of(graph, names):
    return eliminate_structure(graph, [graph.by_name[name] for name in names])


def counted_elimination(size, rows, parents):
    """Operations of a dense elimination, counted while it is done."""
    A = np.random.default_rng(0).normal(size=(rows, size + parents + 1))
    count = 0
    for k in range(size):
        count += 1 + (A.shape[1] - k - 1)  # reciprocal, scaling
        A[k, k:] /= A[k, k]
        for i in range(k + 1, rows):
            count += 2 * (A.shape[1] - k - 1)
            A[i, k:] -= A[i, k] * A[k, k:]
    for k in reversed(range(size)):  # solving: the parents' terms, then those of the variable itself
        count += 2 * parents + 2 * (size - 1 - k)
    return count


@pytest.mark.parametrize(("size", "rows", "parents"), [(1, 1, 0), (1, 6, 12), (6, 6, 6), (6, 12, 13), (3, 4, 1)])
def test_front_operations_are_those_of_a_dense_elimination(size, rows, parents):
    assert front_operations(size, rows, parents) == counted_elimination(size, rows, parents)


@pytest.mark.parametrize("problem", ["forward", "inverse"])
@pytest.mark.parametrize("joints", [1, 2])
def test_brute_force_agrees(joints, problem):
    graph = graph_of(fgd.robots.pendulum(joints), problem)
    model = BlockModel(graph)
    costs = [model.cost(order) for order in permutations(model.names)]
    least = min(cost for cost in costs if cost is not None)
    found = exact_ordering(graph)
    assert found.proved
    assert found.operations == least == model.cost(found.variables)


def cheapest(model, fronts, left, bound):
    """The least cost of all ways to eliminate what is left, dear ones given up as soon as they are."""
    if not left:
        return 0
    for variable in sorted(left):
        step = model.eliminate(fronts, variable)
        if step is not None and step[1] < bound:
            bound = min(bound, step[1] + cheapest(model, step[0], left - {variable}, bound - step[1]))
    return bound


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_brute_force_agrees_on_the_3r_arm(problem):
    graph = graph_of(fgd.robots.rrr(), problem)
    model = BlockModel(graph)
    found = exact_ordering(graph)
    assert found.proved
    assert found.operations == cheapest(model, model.start, frozenset(range(len(model.names))), np.inf)


def test_brute_force_agrees_on_a_branching_tree():
    tree = fgd.robots.random_tree(2, seed=3, branching=2.0)
    graph = graph_of(tree)
    model = BlockModel(graph)
    least = min(c for order in permutations(model.names) if (c := model.cost(order)) is not None)
    assert exact_ordering(graph).operations == least


@pytest.mark.parametrize("robot", [fgd.robots.rrr(), fgd.robots.pendulum(4), fgd.robots.random_tree(4, seed=1)])
def test_no_named_ordering_beats_the_proved_one(robot):
    found = fgd.search_orderings(robot, objective="blocks", budget=20, save=False)
    assert found.proved
    graph = graph_of(robot)
    model = BlockModel(graph)
    assert model.cost(found.variables) == found.score
    for name in ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural"):
        cost = model.cost(choose_ordering(robot, graph, name).variables)
        assert cost is None or cost >= found.score


def test_inverse_dynamics_has_no_better_blocks_than_rnea():
    graph = graph_of(fgd.robots.rrr(), "inverse")
    rnea = choose_ordering(fgd.robots.rrr(), graph, "rnea").variables
    assert exact_ordering(graph).operations == BlockModel(graph).cost(rnea)


def test_too_many_variables_and_too_little_time():
    graph = graph_of(fgd.robots.pendulum(8))
    with pytest.raises(fgd.InputError, match=f"at most {LARGEST}"):
        exact_ordering(graph)
    assert exact_ordering(graph_of(fgd.robots.pendulum(5)), budget=1e-6) is None


@pytest.mark.parametrize("ordering", ["aba", "crba", "metis"])
def test_levels_share_all_the_work(ordering):
    robot = fgd.robots.humanoid()
    graph = graph_of(robot)
    cost = structure_of(graph, choose_ordering(robot, graph, ordering).variables)
    assert sum(cost.level_work) == cost.operations
    assert len(cost.level_work) == cost.depth


@pytest.mark.parametrize("links", [8, 64])
def test_depth_of_chains_grows_with_the_logarithm(links):
    chain = fgd.robots.pendulum(links)
    found = fgd.search_orderings(chain, objective="depth", budget=1.5, rounds=1, lanes=1, save=False)
    assert structure_of(graph_of(chain), found.variables).depth <= np.log2(links) + 1


@pytest.mark.parametrize("robot", [fgd.robots.puma560(), fgd.robots.stewart(), fgd.robots.five_bar()])
@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "metis", "natural"])
def test_sets_and_bit_sets_cost_the_same(robot, ordering):
    graph = graph_of(robot)
    names = choose_ordering(robot, graph, ordering).variables
    cost = BlockModel(graph).cost(names)
    assert cost is None or cost == structure_of(graph, names).operations
    assert structure_of(graph, names).operations > 0
