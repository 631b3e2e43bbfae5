"""Orderings are what they claim: the recursions of RNEA, ABA and CRBA read off the Bayes net."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.ordering import ORDERING_NAMES, Ordering, choose_ordering, eliminate_structure
from factorgraph_dyn.ordering.classical import aba, crba
from tests.helpers import held_before, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-9


def forward_graph(mechanism, seed=0):
    q, v = mechanism.random_state(seed)
    return fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv), ordering="colamd").graph


def branching_tree():
    return fgd.robots.random_tree(9, seed=5, branching=2.0, kinds=("revolute", "prismatic", "spherical"))


def test_rnea_net_has_exactly_the_parents_of_the_recursion():
    mechanism = branching_tree()
    q, v = mechanism.random_state(0)
    net = fgd.inverse_dynamics(mechanism, q, v, np.ones(mechanism.nv)).bayes_net
    for joint in mechanism.joints:
        tau = net.conditional(f"tau[{joint.name}]")
        assert {str(p) for p in tau.parents} == {f"F[{joint.name}]"}
        wrench = net.conditional(f"F[{joint.name}]")
        children = mechanism.topology.joints_out[joint.child]
        assert {str(p) for p in wrench.parents} == {f"A[{joint.child}]", *(f"F[{c.name}]" for c in children)}
        acceleration = net.conditional(f"A[{joint.child}]")
        parent = set() if joint.parent == mechanism.base else {f"A[{joint.parent}]"}
        assert {str(p) for p in acceleration.parents} == parent


def test_rnea_makes_no_fill():
    mechanism = branching_tree()
    q, v = mechanism.random_state(0)
    solution = fgd.inverse_dynamics(mechanism, q, v, np.ones(mechanism.nv))
    graph = solution.graph
    structure = eliminate_structure(graph, [graph.by_name[name] for name in solution.ordering])
    assert structure.fill == 0


def articulated_d(mechanism, q):
    """Featherstone's D_i = S^T I^A S by his recursion, written here as an oracle."""
    state = fgd.evaluate_state(mechanism, q, np.zeros(mechanism.nv))
    inertia = {link.name: link.spatial_inertia.copy() for link in mechanism.links}
    found = {}
    for joint in reversed(mechanism.topology.outward):
        here = state.joints[joint.name]
        U = inertia[joint.child] @ here.S
        D = here.S.T @ U + np.diag(joint.armature)
        found[joint.name] = D
        reduced = inertia[joint.child] - U @ np.linalg.solve(D, U.T)
        inertia[joint.parent] += here.Ad_child_parent.T @ reduced @ here.Ad_child_parent
    return found


@pytest.mark.parametrize("mechanism", [fgd.robots.puma560(), branching_tree()], ids=lambda m: m.name)
def test_aba_coefficient_of_a_is_the_articulated_body_d(mechanism):
    """When a_i's turn comes, what is left of its torque equation reads D_i a_i - tau_i + ... = ...

    Orthogonal elimination has mixed it with the parent's balance, so the rows are first combined so that
    no wrench is left in them, and then scaled so that tau_i has the coefficient -1.
    """
    q, _ = mechanism.random_state(3)
    state = fgd.evaluate_state(mechanism, q, np.zeros(mechanism.nv))
    graph = fgd.dynamics_graph(state, fgd.Known.nothing(mechanism.nv))
    found = {}

    names = [name for name in aba(mechanism) if name in graph.by_name and not name.startswith("tau")]
    for variable in (graph.by_name[name] for name in names if name.startswith("a[")):
        gathered = held_before(graph, names, str(variable))
        columns = [graph.variables[key] for key in gathered.keyVector()]
        J, _ = gathered.jacobian()
        ends = np.cumsum([0, *(x.size for x in columns)])
        block = {x: J[:, i:j] for x, i, j in zip(columns, ends[:-1], ends[1:], strict=True)}
        wrenches = [b for x, b in block.items() if x.kind == "F"]
        free_of_wrenches = orthogonal_complement(np.hstack([np.zeros((len(J), 0)), *wrenches]))
        by_a = free_of_wrenches.T @ block[variable]
        by_tau = free_of_wrenches.T @ block[graph.by_name[f"tau[{variable.owner}]"]]
        found[variable.owner] = np.linalg.lstsq(-by_tau, by_a, rcond=None)[0]
    expected = articulated_d(mechanism, q)
    assert set(found) == set(mechanism.joint_names)
    for name, D in found.items():
        assert relative_error(D, expected[name]) < AGREEMENT


def orthogonal_complement(columns):
    """An orthonormal basis of the vectors orthogonal to all given columns."""
    left, values, _ = np.linalg.svd(columns)
    return left[:, int((values > 1e-10).sum()) :]


def geared_pendulum(n):
    """A pendulum in which every second joint is geared to the one before it."""
    pendulum = fgd.robots.pendulum(n)
    names = pendulum.joint_names
    gears = [fgd.Coupling(f"gear{i}", names[i + 1], names[i], -0.5) for i in range(0, n, 2)]
    return replace(pendulum, couplings=gears)


@pytest.mark.parametrize("family", [fgd.robots.pendulum, geared_pendulum], ids=lambda family: family.__name__)
def test_aba_fill_is_linear_in_n(family):
    sizes = (10, 20, 40, 80)
    fills = []
    for n in sizes:
        mechanism = family(n)
        graph = forward_graph(mechanism)
        order = [graph.by_name[name] for name in choose_ordering(mechanism, graph, "aba")]
        fills.append(eliminate_structure(graph, order).fill)
    steps = np.diff(fills) / np.diff(sizes)
    assert np.ptp(steps) == 0


@pytest.mark.parametrize("mechanism", [fgd.robots.puma560(), branching_tree()], ids=lambda m: m.name)
def test_crba_leaves_the_mass_matrix_before_its_last_stage(mechanism):
    """After all wrenches and link accelerations: M a - tau = -h, entry by entry."""
    import gtsam

    q, v = mechanism.random_state(3)
    state = fgd.evaluate_state(mechanism, q, v)
    graph = fgd.dynamics_graph(state, fgd.Known.nothing(mechanism.nv))
    first = [name for name in crba(mechanism) if name[0] in "FA"]
    order = fgd.gtsam_ordering(graph, Ordering("crba", tuple(first)))
    _, rest = fgd.to_gtsam(graph, noise="unit").eliminatePartialSequential(order, gtsam.EliminateQR)
    keys = gtsam.Ordering()
    index = {str(variable): key for key, variable in enumerate(graph.variables)}
    for kind in ("a", "tau"):
        for name in mechanism.joint_names:
            keys.push_back(index[f"{kind}[{name}]"])
    W, rhs = rest.jacobian(keys)
    nv = mechanism.nv
    # orthogonal elimination leaves combinations of the rows: unmix them by tau's coefficient -1
    mixing = -W[:, nv:]
    oracle = pinocchio_oracle(mechanism)
    assert relative_error(np.linalg.lstsq(mixing, W[:, :nv], rcond=None)[0], oracle.mass_matrix(q)) < AGREEMENT
    h = oracle.inverse_dynamics(q, v, np.zeros(nv))
    assert relative_error(np.linalg.lstsq(mixing, rhs, rcond=None)[0], -h) < AGREEMENT


@pytest.mark.parametrize("problem", ["forward", "inverse", "hybrid"])
@pytest.mark.parametrize("seed", range(3))
def test_every_named_ordering_is_a_permutation_or_says_why_not(problem, seed):
    mechanism = mixed_tree(seed)
    rows = fgd.compare_orderings(mechanism, problem, repeats=1, kernels=False)
    assert [row["ordering"] for row in rows] == list(ORDERING_NAMES)
    for row in rows:
        if row["ordering"] == "rnea" and problem != "inverse":
            assert "needs every joint acceleration" in row["note"]
        else:
            assert row["error"] < AGREEMENT
            assert row["nonzeros"] >= row["fill"] >= 0
            assert row["depth"] >= 1


def test_structure_predicts_the_bayes_net():
    """Parents predicted from structure alone are those of the numeric elimination."""
    mechanism = branching_tree()
    q, v = mechanism.random_state(0)
    for ordering in ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural"):
        solution = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv), ordering=ordering)
        graph = solution.graph
        structure = eliminate_structure(graph, [graph.by_name[name] for name in solution.ordering])
        predicted = dict(zip(structure.variables, structure.parents, strict=True))
        for conditional in solution.bayes_net:
            assert set(conditional.parents) == predicted[conditional.variable]


def test_clique_tree_covers_every_variable_once():
    mechanism = branching_tree()
    graph = forward_graph(mechanism)
    for name in ("aba", "metis", "min_fill"):
        order = [graph.by_name[x] for x in choose_ordering(mechanism, graph, name)]
        cliques = eliminate_structure(graph, order).cliques
        frontals = [variable for frontal, _, _ in cliques for variable in frontal]
        assert sorted(frontals) == sorted(graph.variables)
        for frontal, separator, parent in cliques:
            if parent is not None:
                above = cliques[parent][0] | cliques[parent][1]
                assert separator <= above
                assert not frontal & above


def test_users_own_ordering():
    mechanism = fgd.robots.rrr()
    q, v = mechanism.random_state(0)
    reference = fgd.forward_dynamics(mechanism, q, v, np.ones(3))
    names = [str(variable) for variable in reference.graph.variables]
    rng = np.random.default_rng(0)
    for _ in range(20):
        shuffled = list(rng.permutation(names))
        solution = fgd.forward_dynamics(mechanism, q, v, np.ones(3), ordering=shuffled)
        assert relative_error(solution.a, reference.a) < AGREEMENT
        assert list(solution.ordering) == shuffled


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda names: names[:-1], "misses"),
        (lambda names: [*names, names[0]], "repeats"),
        (lambda names: [*names, "a[tail]"], r"not there: a\[tail\]"),
    ],
)
def test_bad_orderings_are_refused(change, message):
    mechanism = fgd.robots.rrr()
    names = [str(variable) for variable in forward_graph(mechanism).variables]
    with pytest.raises(fgd.OrderingError, match=message):
        fgd.forward_dynamics(mechanism, np.zeros(3), np.zeros(3), np.zeros(3), ordering=change(names))


def test_unknown_ordering_lists_the_names():
    mechanism = fgd.robots.rrr()
    with pytest.raises(fgd.OrderingError, match="aba, crba, colamd"):
        fgd.forward_dynamics(mechanism, np.zeros(3), np.zeros(3), np.zeros(3), ordering="abba")


def test_graphs_are_there_for_networkx():
    import networkx as nx

    mechanism = branching_tree()
    graph = forward_graph(mechanism)
    drawn = graph.to_networkx()
    assert nx.is_bipartite(drawn)
    # the base is known, so limbs that start at it are problems of their own
    limbs = len(mechanism.topology.joints_out[mechanism.base])
    assert nx.number_connected_components(drawn) == limbs
    assert len(drawn) == len(graph.variables) + len(graph.factors)
    structure = eliminate_structure(graph, [graph.by_name[x] for x in choose_ordering(mechanism, graph, "metis")])
    assert nx.is_directed_acyclic_graph(structure.bayes_net())
    assert structure.depth == nx.dag_longest_path_length(structure.clique_tree) + 1
