"""Answers do not depend on units: machines of any size and weight, links of very different ones, any description."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.units import Natural, described_in, natural
from tests.helpers import lossy
from tests.loops.mechanisms import random_planar, random_spatial

WRONG = 1e-8  # relative to the largest quantity of its kind, in the mechanism's own units
SAME = 1e-12  # the same, between two descriptions of one well-conditioned mechanism
ORDERINGS = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")
DESCRIPTIONS = {"mm, g": (1e-3, 1e-3), "km, t": (1e3, 1e3), "m, mg": (1.0, 1e-6)}
BUILT_IN = ("four_bar", "five_bar", "delta", "stewart")
MOTIONS, FORCES = ("A", "a"), ("F", "tau", "lambda")


def units_of(mechanism: fgd.Mechanism, length: float, mass: float) -> Natural:
    return replace(natural(mechanism), length=length, mass=mass)


def grown(mechanism: fgd.Mechanism, length: float, mass: float) -> tuple[fgd.Mechanism, Natural]:
    """The mechanism so many times larger and heavier under the same gravity, and the units of its old numbers."""
    units = units_of(mechanism, length, mass)
    return replace(described_in(mechanism, 1 / length, 1 / mass), gravity=mechanism.gravity), units


def spread(mechanism: fgd.Mechanism, decades: float, rng: np.random.Generator) -> fgd.Mechanism:
    """The mechanism with links of very different mass; in trees some that carry others have none."""
    carrying = {joint.parent for joint in mechanism.joints} - {mechanism.base}
    links = []
    for link in mechanism.links:
        factor = 10.0 ** rng.uniform(-decades / 2, decades / 2)
        if link.name in carrying and not mechanism.is_closed_kind and rng.random() < 0.15:
            factor = 0.0
        links.append(replace(link, mass=factor * link.mass, inertia=factor * np.asarray(link.inertia)))
    return replace(mechanism, links=tuple(links))


def measures(mechanism: fgd.Mechanism, graph: fgd.LinearGraph) -> np.ndarray:
    """The units of the graph's unknowns in which the mechanism is of order one."""
    own = natural(mechanism)
    parts = []
    for variable in graph.variables:
        if variable.kind in ("A", "F"):
            parts.append(own.motion if variable.kind == "A" else own.wrench)
            continue
        units = np.ones(variable.size)
        if variable.owner in mechanism.v_slices:
            units = own.v[mechanism.v_slices[variable.owner]]
            if len(units) != variable.size:
                units = units[~graph.known[fgd.Variable(variable.kind, variable.owner, len(units))].mask]
        parts.append(units if variable.kind == "a" else own.work / units)
    return np.concatenate(parts)


def dense_solution(mechanism, graph):
    """Every unknown in its measure, the condition, and which are free: refined in extended precision."""
    A, b = graph.dense()
    columns = measures(mechanism, graph)
    A, b = A.astype(np.longdouble) * columns, b.astype(np.longdouble)
    for _ in range(30):
        sizes = np.sqrt(np.linalg.norm(A.astype(float), axis=1))
        rows = 1 / np.where(sizes > 0, sizes, 1)
        A, b = A * rows[:, None], b * rows
        sizes = np.sqrt(np.linalg.norm(A.astype(float), axis=0))
        A, columns = A / np.where(sizes > 0, sizes, 1), columns / np.where(sizes > 0, sizes, 1)
    left, values, right = np.linalg.svd(A.astype(float))
    rank = int((values > 1e-11 * values[0]).sum())
    inverse = right[:rank].T / values[:rank] @ left[:, :rank].T
    x = np.zeros(len(columns), dtype=np.longdouble)
    for _ in range(6):
        x = x + inverse @ (b - A @ x).astype(float)
    free = np.abs(right[rank:]).max(axis=0, initial=0.0) > 1e-6
    return x * columns / measures(mechanism, graph), values[0] / values[rank - 1], free


def check_against_dense(mechanism, solve):
    """Solve without a warning, and compare every unknown that is unique; the condition."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", fgd.NearSingularWarning)
        solution = solve()
    graph = solution.graph
    expected, condition, free = dense_solution(mechanism, graph)
    assert condition < 1e8
    found = np.concatenate([solution.values[variable] for variable in graph.variables]) / measures(mechanism, graph)
    kinds = np.concatenate([np.full(variable.size, variable.kind) for variable in graph.variables])
    for family in (MOTIONS, FORCES):
        those = np.isin(kinds, family) & ~free
        if those.any():
            assert np.abs(found - expected)[those].max() <= WRONG * np.abs(expected[those]).max()


def scales(rng):
    return 10.0 ** rng.uniform(-6, 3), 10.0 ** rng.uniform(-9, 6)


@pytest.mark.parametrize("seed", range(24))
def test_trees_of_any_size_and_weight(seed):
    rng = np.random.default_rng(seed)
    drawn = fgd.robots.random_tree(int(rng.integers(1, 8)), seed=seed, branching=rng.uniform(1, 2.5), kinds=("all",))
    drawn = spread(lossy(drawn, seed) if seed % 2 else drawn, 8.0 if seed % 3 else 0.0, rng)
    mechanism, units = grown(drawn, *scales(rng))
    q, v = drawn.random_state(rng)
    q, v = q * units.q, v * units.v
    a, tau = rng.normal(size=(2, drawn.nv)) * [units.v, units.tau]
    if not mechanism.nv:
        return
    known = rng.random(mechanism.nv) < 0.5
    partly = {"a": np.where(known, a, np.nan), "tau": np.where(known, np.nan, tau)}
    for ordering in (ORDERINGS[seed % 7], ORDERINGS[(seed + 3) % 7]):
        check_against_dense(mechanism, lambda: fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering))
        check_against_dense(mechanism, lambda: fgd.inverse_dynamics(mechanism, q, v, a, ordering=ordering))
        check_against_dense(mechanism, lambda: fgd.hybrid_dynamics(mechanism, q, v, **partly, ordering=ordering))
    check_against_dense(mechanism, lambda: fgd.inverse_dynamics(mechanism, q, v, a))


@pytest.mark.parametrize("seed", range(12))
def test_loops_of_any_size_and_weight(seed):
    rng = np.random.default_rng(seed)
    drawn = (random_planar, random_spatial)[seed % 2](seed)
    drawn = spread(drawn, 6.0 if seed % 3 else 0.0, rng)
    length, mass = scales(rng)
    mechanism, units = grown(drawn, length, mass)
    q, v = drawn.random_state(rng)
    state = fgd.evaluate_state(mechanism, q * units.q, v * units.v)
    tau = rng.normal(size=drawn.nv) * units.tau
    nothing, everything = np.zeros(drawn.nv, dtype=bool), np.ones(drawn.nv, dtype=bool)
    known = fgd.Known(np.full(drawn.nv, np.nan), tau, nothing, everything)
    for ordering in (ORDERINGS[seed % 7], ORDERINGS[(seed + 3) % 7]):
        check_against_dense(mechanism, lambda: fgd.solve_dynamics(state, known, ordering=ordering))


@pytest.mark.parametrize(("mass", "length"), [(1e6, 70.0), (1e6, 1.0), (1e-9, 1e-3), (1e-9, 1e3)])
def test_a_pendulum_keeps_its_digits(mass, length):
    bob = fgd.Link("bob", mass, (0, 0, -length), np.zeros((3, 3)))
    joint = fgd.Joint("hinge", "revolute", "base", "bob", axis=(0, 1, 0))
    mechanism = fgd.Mechanism("pendulum", (fgd.Link("base"), bob), (joint,))
    found = fgd.forward_dynamics(mechanism, [0.7], [0.3], [0.0])
    assert found.a[0] == pytest.approx(-9.81 / length * np.sin(0.7), rel=1e-14)


def test_objectives_of_very_different_weights_are_all_minimised():
    mechanism = fgd.robots.five_bar()
    q, v = mechanism.random_state(0)
    a = fgd.forward_dynamics(mechanism, q, v, np.ones(mechanism.nv)).a
    weights = dict(zip(mechanism.joint_names, 10.0 ** np.linspace(-4, 4, mechanism.nv), strict=True))
    found = fgd.inverse_dynamics(
        mechanism, q, v, a, actuated=mechanism.joint_names, objective=fgd.MinimumTorque(weights)
    )
    given = fgd.constraints(mechanism, q, v)
    Z = given.qr_projector
    scaled = Z / np.array(list(weights.values()))
    sizes = np.linalg.norm(scaled, axis=1)
    expected = np.linalg.lstsq(scaled / sizes[:, None], Z @ (given.H @ a + given.h) / sizes, rcond=1e-15)[0]
    expected /= np.array(list(weights.values()))
    np.testing.assert_allclose(found.tau, expected, atol=1e-7 * np.abs(expected).max())


# ---- one mechanism, described in other units


def sample(name):
    if name.startswith("tree"):
        seed = int(name[4:])
        mechanism = lossy(fgd.robots.random_tree(6, seed=seed, branching=1.5, kinds=("all",)), seed)
    else:
        mechanism = getattr(fgd.robots, name)()
    rng = np.random.default_rng(1)
    q, v = mechanism.random_state(rng)
    return mechanism, q, v, rng.normal(size=mechanism.nv)


def agree(found, expected, unit, tolerance=SAME):
    """Whether numbers of one description are those of another, in the mechanism's own units."""
    expected = np.asarray(expected)
    assert np.abs(np.asarray(found) - expected / unit).max(initial=0.0) <= tolerance * np.abs(expected / unit).max(
        initial=1e-300
    )


@pytest.mark.parametrize("description", DESCRIPTIONS)
@pytest.mark.parametrize("name", ["tree0", "tree1", "tree2", "tree3", "puma560", *BUILT_IN])
def test_a_description_changes_no_answer(name, description):
    mechanism, q, v, tau = sample(name)
    units = units_of(mechanism, *DESCRIPTIONS[description])
    other, q2, v2 = units.mechanism, q / units.q, v / units.v
    first = fgd.forward_dynamics(mechanism, q, v, tau)
    second = fgd.forward_dynamics(other, q2, v2, tau / units.tau)
    own = natural(mechanism)
    np.testing.assert_allclose(second.a * units.v / own.v, first.a / own.v, rtol=0, atol=SAME * largest(first.a / own.v))
    wrenches = np.array([first.wrenches[joint] for joint in first.wrenches]) / own.wrench
    others = np.array([second.wrenches[joint] for joint in first.wrenches]) * units.wrench / own.wrench
    np.testing.assert_allclose(others, wrenches, rtol=0, atol=10 * SAME * largest(wrenches))
    assert second.not_unique == first.not_unique
    back = fgd.inverse_dynamics(mechanism, q, v, first.a)
    there = fgd.inverse_dynamics(other, q2, v2, first.a / units.v)
    np.testing.assert_allclose(there.tau * units.tau / own.tau, back.tau / own.tau, rtol=0, atol=10 * SAME * largest(back.tau / own.tau))
    M, M2 = fgd.mass_matrix(mechanism, q), fgd.mass_matrix(other, q2)
    np.testing.assert_allclose(
        M2 * units.tau[:, None] / units.v, M, rtol=0, atol=SAME * np.sqrt(np.outer(np.diag(M), np.diag(M)))
    )
    h, h2 = fgd.bias(mechanism, q, v), fgd.bias(other, q2, v2)
    np.testing.assert_allclose(h2 * units.tau / own.tau, h / own.tau, rtol=0, atol=SAME * largest(h / own.tau))


def largest(values):
    return float(np.abs(values).max(initial=0.0))
