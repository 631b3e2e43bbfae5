"""Answers do not depend on units: machines of any size and weight, links of very different ones, any description."""

from __future__ import annotations

import warnings
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import Natural, described_in, natural
from factorgraph_dyn.motion.independence import all_rows
from factorgraph_dyn.solve.dynamics import solve_dynamics
from tests.helpers import lossy, relative_error
from tests.mechanisms import random_planar, random_spatial, single_loop
from tests.stress.oracle import Oracle

WRONG = 1e-8  # relative to the largest quantity of its kind, in the mechanism's own units
SAME = 1e-12  # the same, between two descriptions of one well-conditioned mechanism
ORDERINGS = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")
DESCRIPTIONS = {"mm, g": (1e-3, 1e-3), "km, t": (1e3, 1e3), "m, mg": (1.0, 1e-6)}
BUILT_IN = ("four_bar", "five_bar", "delta", "stewart")
OWN = 1e-12  # of a joint's own acceleration or torque, however fast its neighbours are
ROUNDINGS = 16  # times what rounding of the equations' terms may change
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


def check_against_dense(state, known, ordering):
    """Solve without a warning and compare every unknown that is unique; False where the problem is badly posed."""
    mechanism = state.mechanism
    graph = fgd.dynamics_graph(state, known, closure=all_rows(mechanism))
    expected, condition, free = dense_solution(mechanism, graph)
    if condition > 1e8 or (free.any() and not mechanism.is_closed_kind):
        return False
    with warnings.catch_warnings():
        if condition < 1e6:
            warnings.simplefilter("error", fgd.NearSingularWarning)
        solution = solve_dynamics(state, known, ordering=ordering)
    found = np.concatenate([solution.values[variable] for variable in graph.variables]) / measures(mechanism, graph)
    kinds = np.concatenate([np.full(variable.size, variable.kind) for variable in graph.variables])
    for family in (MOTIONS, FORCES):
        those = np.isin(kinds, family) & ~free
        if those.any():
            assert np.abs(found - expected)[those].max() <= WRONG * np.abs(expected[those]).max()
    return True


def scales(rng):
    return 10.0 ** rng.uniform(-6, 3), 10.0 ** rng.uniform(-9, 6)


@pytest.mark.parametrize("decades", [0.0, 8.0])
def test_trees_of_any_size_and_weight(decades):
    solved = 0
    for seed in range(24):
        rng = np.random.default_rng(seed)
        n, branching = int(rng.integers(1, 8)), float(rng.uniform(1, 2.5))
        drawn = fgd.robots.random_tree(n, seed=seed, branching=branching, kinds=("all",))
        drawn = spread(lossy(drawn, seed) if seed % 2 else drawn, decades, rng)
        mechanism, units = grown(drawn, *scales(rng))
        q, v = drawn.random_state(rng)
        state = fgd.evaluate_state(mechanism, q * units.q, v * units.v)
        a, tau = rng.normal(size=(2, drawn.nv)) * [units.v, units.tau]
        for known_a in (np.zeros(drawn.nv, dtype=bool), np.ones(drawn.nv, dtype=bool), rng.random(drawn.nv) < 0.5):
            known = fgd.Known(a, tau, known_a, ~known_a)
            classical = ("rnea",) if known_a.all() else ()
            for ordering in (ORDERINGS[seed % 7], ORDERINGS[(seed + 3) % 7], *classical):
                solved += check_against_dense(state, known, ordering)
    assert solved > 100


@pytest.mark.parametrize("decades", [0.0, 6.0])
def test_loops_of_any_size_and_weight(decades):
    solved = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        drawn = spread((random_planar, random_spatial)[seed % 2](seed), decades, rng)
        mechanism, units = grown(drawn, *scales(rng))
        q, v = drawn.random_state(rng)
        state = fgd.evaluate_state(mechanism, q * units.q, v * units.v)
        known = fgd.Known.forward(rng.normal(size=drawn.nv) * units.tau)
        for ordering in (ORDERINGS[seed % 7], ORDERINGS[(seed + 3) % 7]):
            solved += check_against_dense(state, known, ordering)
    assert solved > 12


@pytest.mark.parametrize(("mass", "length"), [(1e6, 70.0), (1e6, 1.0), (1e-9, 1e-3), (1e-9, 1e3)])
def test_a_pendulum_keeps_its_digits(mass, length):
    bob = fgd.Link("bob", mass, (0, 0, -length), np.zeros((3, 3)))
    joint = fgd.Joint("hinge", "revolute", "base", "bob", axis=(0, 1, 0))
    mechanism = fgd.Mechanism("pendulum", (fgd.Link("base"), bob), (joint,))
    found = fgd.forward_dynamics(mechanism, [0.7], [0.3], [0.0])
    assert found.a[0] == pytest.approx(-9.81 / length * np.sin(0.7), rel=1e-14)


# ---- slow joints beside very fast ones


def with_finger(mechanism, share, size):
    """The mechanism with a finger of a share of its last link's mass on that link, of a share of its length."""
    link, own = mechanism.link_by_name[mechanism.joints[-1].child], natural(mechanism)
    mass, length = share * link.mass, size * own.length
    placement = np.eye(4)
    placement[:3, 3] = own.length * np.array([0.2, 0.1, 0.0])
    finger = fgd.Link("finger", mass, (length, 0, 0), mass * length**2 * np.diag([0.1, 0.2, 0.2]))
    knuckle = fgd.Joint("knuckle", "revolute", link.name, "finger", placement)
    return replace(mechanism, links=(*mechanism.links, finger), joints=(*mechanism.joints, knuckle))


def coupled(mechanism):
    ends = mechanism.joint_names[1:3]
    return replace(mechanism, couplings=(fgd.Coupling("gear", *ends, ratio=2.0),))


FAST = {
    "puma560": fgd.robots.puma560,
    "tree": lambda: fgd.robots.random_tree(7, seed=2, branching=2.0, kinds=("revolute", "prismatic")),
    "spherical tree": lambda: fgd.robots.random_tree(5, seed=1, branching=1.5, kinds=("spherical", "universal")),
    "geared puma560": lambda: coupled(fgd.robots.puma560()),
    "four_bar": fgd.robots.four_bar,
    "stewart": fgd.robots.stewart,
}


def assert_each_in_its_own_scale(state, known, ordering, method="sequential"):
    """Every acceleration and torque to rounding, beside its own size."""
    oracle = Oracle(state.mechanism, state.q, state.v).ask(known.a, known.tau, known.a_mask, known.tau_mask)
    solution = solve_dynamics(state, known, ordering=ordering, method=method)
    for name, found in (("a", solution.a), ("tau", solution.tau)):
        expected = oracle[name]
        off = np.abs(found - expected.value)
        allowed = np.maximum(OWN * np.abs(expected.value), ROUNDINGS * np.finfo(float).eps * expected.bound)
        assert (off <= allowed).all(), (name, ordering, float((off / np.abs(expected.value)).max()))


@pytest.mark.parametrize("share", [1e-4, 1e-8])
@pytest.mark.parametrize("name", FAST)
def test_slow_joints_keep_their_digits_beside_a_fast_one(name, share):
    mechanism = with_finger(FAST[name](), share, 0.05)
    rng = np.random.default_rng(3)
    q, v = mechanism.random_state(rng)
    state, nv = fgd.evaluate_state(mechanism, q, v), mechanism.nv
    a, tau = rng.normal(size=(2, nv)) * [natural(mechanism).v, natural(mechanism).tau]
    given = [np.zeros(nv, dtype=bool)]
    if not mechanism.is_closed_kind:
        given += [np.ones(nv, dtype=bool), np.arange(nv) % 2 == nv % 2]  # the finger moves as it will in the last
    for known_a in given:
        known = fgd.Known(a, tau, known_a, ~known_a)
        for ordering in (*ORDERINGS, *(("rnea",) if known_a.all() else ())):
            assert_each_in_its_own_scale(state, known, ordering)
    if not mechanism.is_closed_kind:
        assert_each_in_its_own_scale(state, fgd.Known(a, tau, given[0], ~given[0]), "aba", "multifrontal")


@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
@pytest.mark.parametrize("name", ["puma560", "spherical tree", "four_bar"])
def test_free_accelerations_keep_their_digits_beside_a_fast_joint(name, method):
    mechanism = with_finger(FAST[name](), 1e-8, 0.05)
    damped = replace(mechanism.joints[-1], damping=0.1 * natural(mechanism).work)
    mechanism = replace(mechanism, joints=(*mechanism.joints[:-1], damped))
    q, v = mechanism.random_state(np.random.default_rng(3))
    found = fgd.input_dynamics(mechanism, q, v, actuated=mechanism.joint_names, method=method).free
    nothing, zero = np.zeros(mechanism.nv, dtype=bool), np.zeros(mechanism.nv)
    expected = Oracle(mechanism, q, v).ask(zero, zero, nothing, ~nothing)["a"].value
    np.testing.assert_array_less(np.abs(found - expected), OWN * np.abs(expected))


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


def largest(values):
    return float(np.abs(values).max(initial=0.0))


def assert_same(found, expected, tolerance=SAME):
    """Numbers of one kind, in the mechanism's own units."""
    np.testing.assert_allclose(found, expected, rtol=0, atol=tolerance * largest(expected))


def described(name, description):
    """A mechanism at a state with torques, the units of another description, and its own units."""
    mechanism, q, v, tau = sample(name)
    return mechanism, q, v, tau, units_of(mechanism, *DESCRIPTIONS[description]), natural(mechanism)


NAMES = ("tree0", "tree1", "tree2", "tree3", "puma560", *BUILT_IN)


@pytest.mark.parametrize("description", DESCRIPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_description_changes_no_motion_and_no_force(name, description):
    mechanism, q, v, tau, units, own = described(name, description)
    other, q2, v2 = units.mechanism, q / units.q, v / units.v
    first = fgd.forward_dynamics(mechanism, q, v, tau)
    second = fgd.forward_dynamics(other, q2, v2, tau / units.tau)
    assert_same(second.a * units.v / own.v, first.a / own.v)
    wrenches = np.array(list(first.wrenches.values())) / own.wrench
    assert_same(np.array([second.wrenches[j] for j in first.wrenches]) * units.wrench / own.wrench, wrenches)
    assert second.not_unique == first.not_unique
    back = fgd.inverse_dynamics(mechanism, q, v, first.a)
    there = fgd.inverse_dynamics(other, q2, v2, first.a / units.v)
    assert_same(there.tau * units.tau / own.tau, back.tau / own.tau)
    if mechanism.is_closed_kind:
        return
    for x, column in second.bayes_net.respond({}, offset=True).items():  # it holds the numbers that were solved for
        np.testing.assert_allclose(column[:, 0], second.values[x], rtol=0, atol=1e-9 * largest(second.values[x]))


@pytest.mark.parametrize("description", DESCRIPTIONS)
@pytest.mark.parametrize("name", NAMES)
def test_a_description_changes_no_matrix(name, description):
    mechanism, q, v, _, units, own = described(name, description)
    other, q2, v2 = units.mechanism, q / units.q, v / units.v
    given, mine = np.outer(units.tau, 1 / units.v), np.outer(1 / own.tau, own.v)
    for method in ("columns", "crba"):
        M, M2 = (fgd.mass_matrix(*at, method=method) for at in ((mechanism, q), (other, q2)))
        assert_same(M2 * given * mine, M * mine)
    for method in ("columns", "iim", "eufm", "carpentier"):
        M, M2 = (fgd.inverse_mass_matrix(*at, method=method) for at in ((mechanism, q), (other, q2)))
        assert_same(M2 / given.T / mine.T, M / mine.T)
        motors = mechanism.joint_names
        B, B2 = (fgd.iwim(*at, actuated=motors, method=method) for at in ((mechanism, q), (other, q2)))
        assert_same(B2 / given.T / mine.T, B / mine.T)
    h, h2 = fgd.bias(mechanism, q, v), fgd.bias(other, q2, v2)
    assert_same(h2 * units.tau / own.tau, h / own.tau)


@pytest.mark.parametrize("description", ["mm, g", "km, t"])
@pytest.mark.parametrize("name", ["tree1", "puma560", "five_bar"])
def test_a_description_changes_no_derivative(name, description):
    mechanism, q, v, tau, units, own = described(name, description)
    first = fgd.derivatives(mechanism, q, v, tau=tau)
    second = fgd.derivatives(units.mechanism, q / units.q, v / units.v, tau=tau / units.tau)
    for output, by in (("da_dq", "v"), ("da_dv", "v"), ("da_dtau", "tau")):
        given, mine = (np.outer(scale.v, 1 / getattr(scale, by)) for scale in (units, own))
        assert_same(getattr(second, output) * given / mine, getattr(first, output) / mine)


@pytest.mark.parametrize("description", DESCRIPTIONS)
@pytest.mark.parametrize("name", BUILT_IN)
def test_a_description_changes_no_diagnosis_and_no_projection(name, description):
    mechanism, q, v, tau, units, own = described(name, description)
    other, q2, v2 = units.mechanism, q / units.q, v / units.v
    first, second = fgd.diagnose(mechanism, q, v), fgd.diagnose(other, q2, v2)
    assert second.rows()[:-2] == first.rows()[:-2]
    a, a2 = fgd.constraints(mechanism, q, v), fgd.constraints(other, q2, v2)
    assert (a2.rank, len(a2.independent)) == (a.rank, len(a.independent))
    for way in ("accelerations_by_schur", "accelerations_by_qr"):
        found, expected = getattr(a2, way)(tau / units.tau), getattr(a, way)(tau)
        assert_same(found * units.v / own.v, expected / own.v, 1e-11)
    turned = np.outer(units.tau, 1 / units.tau) * np.outer(1 / own.tau, own.tau)
    assert_same(a2.schur_projector * turned, a.schur_projector * np.outer(1 / own.tau, own.tau), 1e-11)


@pytest.mark.parametrize(("length", "mass"), [(1e-3, 1e-3), (1e3, 1e3), (1e-6, 1e-9)])
def test_simulations_of_any_size(length, mass):
    drawn = fgd.robots.five_bar()
    units = units_of(drawn, 1 / length, 1 / mass)
    q, v = drawn.random_state(1)
    expected = fgd.simulate(drawn, q, v, duration=0.02, step=2e-3)
    found = fgd.simulate(units.mechanism, q / units.q, v / units.v, duration=0.02, step=2e-3)
    np.testing.assert_allclose(found.q * units.q, expected.q, rtol=0, atol=1e-10)
    np.testing.assert_allclose(found.v * units.v, expected.v, rtol=0, atol=1e-9 * largest(expected.v))


@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
def test_light_links_between_heavy_ones_keep_their_inverse_inertia(method):
    for seed in range(8):
        rng = np.random.default_rng(seed)
        drawn = fgd.robots.random_tree(5, seed=seed, kinds=("revolute", "prismatic", "spherical"))
        masses = 10.0 ** rng.uniform(-4, 4, len(drawn.links))
        links = [
            replace(link, mass=m * link.mass, inertia=m * np.asarray(link.inertia))
            for link, m in zip(drawn.links, masses, strict=True)
        ]
        mechanism, units = grown(replace(drawn, links=tuple(links)), *scales(rng))
        q = drawn.random_state(rng)[0] * units.q
        M = fgd.mass_matrix(mechanism, q)
        sizes = np.sqrt(np.diag(M))
        balanced = M / np.outer(sizes, sizes)
        if np.linalg.cond(balanced) > 1e8:
            continue
        found = fgd.inverse_mass_matrix(mechanism, q, method=method) * np.outer(sizes, sizes)
        expected = np.linalg.inv(balanced).astype(np.longdouble)
        for _ in range(3):
            expected = expected + expected @ (np.eye(len(M)) - balanced.astype(np.longdouble) @ expected)
        assert np.abs(found - expected).max() <= WRONG * np.abs(expected).max()


@pytest.mark.parametrize("mass", [1e-9, 1e-18, 1e-30])
@pytest.mark.parametrize("name", ["puma560", "four_bar"])
def test_rotors_with_a_mass_for_forms_sake_give_no_length(name, mass):
    """Some formats ask for a mass: a rotor of 1e-18 kg and 1e-6 kg m^2 is no body of a thousand kilometres."""

    def with_rotors(mass):
        links, joints = list(arm.links), list(arm.joints)
        for link in arm.links[1:]:
            rotor = fgd.Link(f"{link.name}_rotor", mass, inertia=1e-6 * np.eye(3))
            links.append(rotor)
            joints.append(fgd.Joint(f"{link.name}_spin", "revolute", link.name, rotor.name, axis=(0.0, 0.6, 0.8)))
        return replace(arm, links=tuple(links), joints=tuple(joints))

    arm = getattr(fgd.robots, name)()
    mechanism, massless = with_rotors(mass), with_rotors(0.0)
    assert natural(mechanism).extent == natural(arm).extent
    q, v = mechanism.random_state(0)
    tau = np.random.default_rng(0).normal(size=mechanism.nv)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fgd.NearSingularWarning)
        expected, found = (fgd.forward_dynamics(m, q, v, tau).a for m in (massless, mechanism))
    assert_same(found, expected)
    assert_same(fgd.compile(mechanism, "forward")(q, v, tau), expected)


# ---- the same mechanism in thousands of kilometres, or in micrometres

KINDS = ("revolute", "prismatic", "helical", "universal", "spherical", "planar", "floating", "fixed")
MANY = [
    *(fgd.robots.random_tree(6, seed=seed, branching=1.5, kinds=("all",)) for seed in range(6)),
    *map(single_loop, KINDS),
    *map(random_spatial, range(8)),
    *map(random_planar, range(4)),
]


@pytest.mark.parametrize(("length", "mass"), [(1e-6, 1e-9), (1e6, 1e9)])
@pytest.mark.parametrize("k", range(len(MANY)))
def test_a_mechanism_in_other_units_has_the_same_answers(k, length, mass):
    mechanism = MANY[k]
    other, units = described_in(mechanism, 1 / length, 1 / mass), units_of(mechanism, length, mass)
    rng = np.random.default_rng(k)
    (q, v), tau = mechanism.random_state(rng), rng.normal(size=mechanism.nv)
    there = q * units.q, v * units.v, tau * units.tau
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    assert relative_error(fgd.forward_dynamics(other, *there).a / units.v, a) < SAME
    M, M_there = fgd.mass_matrix(mechanism, q), fgd.mass_matrix(other, there[0])
    assert relative_error(M_there * np.outer(1 / units.tau, units.v), M) < SAME
    R, R_there = fgd.inverse_mass_matrix(mechanism, q), fgd.inverse_mass_matrix(other, there[0])
    assert relative_error(R_there * np.outer(1 / units.v, units.tau), R) < SAME
    if k % 4 == 0:
        assert relative_error(fgd.compile(other, "forward")(*there) / units.v, a) < SAME
