"""Kernels whose inertial parameters, joint effects and gravity are arguments: each state of a batch has its own."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.describe import free
from factorgraph_dyn.compiler.kernel.cheapest import shipped_orderings
from factorgraph_dyn.compiler.route import Route
from factorgraph_dyn.compiler.sampled_parameters import drawn_values
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations import regressor
from factorgraph_dyn.equations.problem import make_problem, problem_graph
from factorgraph_dyn.model.sizes.units import described_in
from tests.compiler.test_reframe import ODD_ARMS
from tests.helpers import lossy, relative_error
from tests.oracles.engines import pinocchio_oracle

SAME = 1e-11
STATES = 3


def batch(mechanism, seed=0):
    rng = np.random.default_rng(seed)
    q, v = (np.array(x) for x in zip(*(mechanism.random_state(rng) for _ in range(STATES)), strict=True))
    links = [name for name in mechanism.link_names if name != mechanism.base]
    return q, v, drawn_values(mechanism, "parameters", links, STATES, rng), rng.normal(size=v.shape)


@pytest.mark.parametrize("seed", [1, 6, 9])
def test_trees_of_all_joints_agree_with_pinocchio(seed):
    tree = fgd.robots.random_tree(5, seed=seed, branching=1.6, kinds=("all",))
    q, v, parameters, tau = batch(tree, seed)
    forward, inverse = (fgd.compile(tree, problem, parameters="all") for problem in ("forward", "inverse"))
    for k in range(STATES):
        oracle = pinocchio_oracle(tree.with_parameters(parameters[k]))
        a = oracle.forward_dynamics(q[k], v[k], tau[k])
        assert relative_error(forward(q, v, tau, parameters)[k], a) < SAME
        assert relative_error(inverse(q[k], v[k], a, parameters[k]), tau[k]) < SAME


@pytest.mark.parametrize("mechanism", [fgd.robots.four_bar(), fgd.robots.five_bar()], ids=lambda m: m.name)
def test_loops_agree_with_the_graph(mechanism):
    q, v, parameters, tau = batch(mechanism)
    kernel = fgd.compile(mechanism, "forward", parameters="all")
    found = kernel(q, v, tau, parameters)
    for k in range(STATES):
        other = mechanism.with_parameters(parameters[k])
        assert relative_error(found[k], fgd.forward_dynamics(other, q[k], v[k], tau[k]).a) < 1e-9


def test_effects_and_gravity_by_name():
    arm = lossy(fgd.robots.rrr(), 2)
    names = ["armature[joint1]", "gravity", "damping[joint2]", "friction[joint3]"]
    kernel = fgd.compile(arm, "forward", parameters=["link2", *names])
    assert kernel.arguments == ("q", "v", "tau", "parameters", *names)
    q, v, parameters, tau = batch(arm)
    gravity = np.array([1.0, -2.0, 3.0])
    found = kernel(q, v, tau, parameters[:, 1:2], [0.3], gravity, [0.4], [0.5])
    effects = {"joint1": {"armature": 0.3}, "joint2": {"damping": 0.4}, "joint3": {"friction": 0.5}}
    for k in range(STATES):
        joints = [replace(joint, **effects.get(joint.name, {})) for joint in arm.joints]
        other = replace(arm.with_parameters(parameters[k, 1:2], ["link2"]), joints=joints, gravity=gravity)
        assert relative_error(found[k], fgd.forward_dynamics(other, q[k], v[k], tau[k]).a) < SAME


def test_own_parameters_give_the_constant_kernel():
    arm = lossy(fgd.robots.rrr(), 1)
    q, v, _, a = batch(arm)
    for problem in ("inverse", "mass_matrix"):
        arguments = (q, v, a) if problem == "inverse" else (q,)
        constant, free = fgd.compile(arm, problem), fgd.compile(arm, problem, parameters="all")
        assert relative_error(free(*arguments, arm.parameters()), constant(*arguments)) < 1e-13


def test_wrenches_and_hybrid_problems_take_parameters():
    arm = fgd.robots.rrr()
    q, v, parameters, tau = batch(arm)
    kernel = fgd.compile(arm, "hybrid", known_accelerations=["joint2"], outputs=["a", "F[joint1]"], parameters="all")
    a, F = kernel(q[0], v[0], tau[0], tau[0], parameters[0])
    known_a, known_tau = {"joint2": tau[0, 1]}, {"joint1": tau[0, 0], "joint3": tau[0, 2]}
    expected = fgd.hybrid_dynamics(arm.with_parameters(parameters[0]), q[0], v[0], a=known_a, tau=known_tau)
    assert relative_error(a, expected.a) < SAME
    assert relative_error(F, expected.wrenches["joint1"]) < SAME


def test_masses_and_energies_follow_the_parameters():
    arm, gravity = fgd.robots.rrr(), np.array([1.0, 2.0, 3.0])
    names = ("com", "momentum", "kinetic_energy", "potential_energy")
    kernel = fgd.compile(arm, "forward", outputs=names, parameters=["all", "gravity", "armature[joint1]"])
    q, v, parameters, tau = batch(arm)
    com, momentum, kinetic, potential = kernel(q[1], v[1], tau[1], parameters[1], gravity, [0.3])
    joints = [replace(joint, armature=0.3) if joint.name == "joint1" else joint for joint in arm.joints]
    other = replace(arm.with_parameters(parameters[1]), gravity=gravity, joints=joints)
    assert relative_error(com, fgd.center_of_mass(other, q[1])) < SAME
    assert relative_error(momentum, fgd.momentum(other, q[1], v[1])) < SAME
    assert relative_error((kinetic, potential), fgd.energy(other, q[1], v[1])) < SAME


@pytest.mark.parametrize("scale", [1e-3, 1e3])
def test_units_do_not_matter(scale):
    other = described_in(fgd.robots.rrr(), 1.0 / scale, 1.0 / scale**2)
    kernel = fgd.compile(other, "forward", parameters="all")
    q, v, parameters, tau = batch(other)
    expected = fgd.forward_dynamics(other.with_parameters(parameters[1]), q[1], v[1], tau[1]).a
    assert relative_error(kernel(q, v, tau, parameters)[1], expected) < SAME
    assert kernel.accuracy < 1e-11


def test_torques_are_linear_in_parameters_that_no_body_has():
    arm = fgd.robots.rrr()
    kernel = fgd.compile(arm, "inverse", parameters="all")
    q, v, _, a = batch(arm)
    parameters = np.random.default_rng(1).normal(size=(STATES, 3, 10))
    found = kernel(q, v, a, parameters)
    expected = (fgd.regressor(arm, q, v, a) @ parameters.reshape(STATES, 30, 1))[..., 0]
    assert relative_error(found, expected) < 1e-13
    parameters[1] = arm.parameters()
    said = kernel.check(q, v, a, parameters)
    assert len(said) == 3
    assert "link 'link1' are those of no body" in said[0]
    assert "at states 0, 2" in said[0]
    assert not kernel.check(q, v, a, arm.parameters())


def test_negative_effects_are_named():
    kernel = fgd.compile(fgd.robots.rrr(), "forward", parameters=["armature[joint1]", "gravity"])
    zero = np.zeros(3)
    assert "armature[joint1] is negative" in kernel.check(zero, zero, zero, [-0.01], -np.ones(3))[0]


@pytest.mark.parametrize(
    ("arm", "problem", "ordering", "most"),
    [
        ("puma560", "inverse", "rnea", 1.75),
        ("ur5", "inverse", "rnea", 1.86),
        ("puma560", "forward", "aba", 1.6),
        ("ur5", "forward", "aba", 1.6),
        ("panda", "inverse", "rnea", 1.21),
        ("panda", "forward", "aba", 1.1),
    ],
)
def test_free_parameters_cost_little(arm, problem, ordering, most):
    mechanism = getattr(fgd.robots, arm)()
    constant, free = (
        trace(mechanism, make_problem(mechanism, problem, parameters=words), ordering).program for words in ((), "all")
    )
    assert constant.shared_operations == constant.operations
    assert free.operations.total <= most * constant.operations.total
    assert free.shared_operations.total <= 1.62 * constant.operations.total


@pytest.mark.parametrize("arm", ODD_ARMS, ids=str)
def test_links_in_frames_at_odd_angles(arm):
    q, v, parameters, tau = batch(arm)
    forward, inverse = (fgd.compile(arm, problem, parameters="all") for problem in ("forward", "inverse"))
    a = forward(q, v, tau, parameters)
    for k in range(STATES):
        expected = fgd.forward_dynamics(arm.with_parameters(parameters[k]), q[k], v[k], tau[k]).a
        assert relative_error(a[k], expected) < SAME
    assert relative_error(inverse(q, v, a, parameters), tau) < SAME
    own = trace(arm, make_problem(arm, "forward", parameters="all"), "aba", Route(reframe=False))
    assert forward.operations.total < 0.7 * own.program.operations.total


def test_what_all_states_share_is_what_each_has():
    arm = fgd.robots.ur5()
    kernel = fgd.compile(arm, "inverse", parameters="all")
    rng, states = np.random.default_rng(3), 45  # some tiles and a part of one
    q, v, a = rng.normal(size=(3, states, arm.nv))
    each = kernel(q, v, a, np.tile(arm.parameters(), (states, 1, 1)))
    assert (kernel(q, v, a, arm.parameters()) == each).all()
    assert (kernel(q, v, a, np.asfortranarray(arm.parameters())) == each).all()
    assert (kernel(q[:1], v[:1], a[:1], np.tile(arm.parameters(), (states, 1, 1))) == each[0]).all()


def test_the_ordering_of_free_parameters_is_counted():
    arm = fgd.robots.puma560()
    asked = make_problem(arm, "forward", parameters="all")
    others = ["aba", "crba", *shipped_orderings(arm, problem_graph(arm, asked), free=True)]
    assert len(others) == 4
    least = min((trace(arm, asked, ordering).program for ordering in others), key=lambda program: program.cost)
    kernel = fgd.compile(arm, "forward", parameters="all")
    assert (kernel.operations, kernel.shared_operations) == (least.operations, least.shared_operations)
    assert kernel.operations.total <= 1.7 * fgd.compile(arm, "forward").operations.total


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["elbow"], "There is no parameter 'elbow'. Parameters: the links link1, link2, link3"),
        (["stiffness[joint1]"], r"There is no parameter 'stiffness\[joint1\]'"),
        (["armature[elbow]"], "for the joints joint1, joint2, joint3"),
        (["base"], "is the base"),
        (["link1", "all"], "names 'link1' twice"),
        (7, "parameters is 7"),
    ],
)
def test_words_for_names(words, message):
    with pytest.raises(fgd.InputError, match=message):
        fgd.compile(fgd.robots.rrr(), "forward", parameters=words)


def test_words_for_what_does_not_matter():
    with pytest.raises(fgd.InputError, match="'mass_matrix' does not depend on gravity"):
        fgd.compile(fgd.robots.rrr(), "mass_matrix", parameters="gravity")


def test_words_for_shapes():
    arm = fgd.robots.rrr()
    kernel, zero = fgd.compile(arm, "inverse", parameters=["link1", "link3"]), np.zeros(3)
    assert kernel.signature == "(3),(3),(3),(2,10)->(3)"
    with pytest.raises(fgd.InputError, match=r"parameters has shape \(3, 10\); its last axes must be \(2, 10\)"):
        kernel(zero, zero, zero, arm.parameters())
    with pytest.raises(fgd.InputError, match="of the links link1, link3"):
        kernel(zero, zero, zero, np.zeros(10))
    assert kernel(zero, zero, zero, arm.parameters(["link1", "link3"])).shape == (3,)


def test_threads_and_single_calls_are_the_batch():
    arm = fgd.robots.rrr()
    kernel = fgd.compile(arm, "inverse", parameters="all")
    q, v, parameters, a = batch(arm)
    whole = kernel(q, v, a, parameters)
    assert (kernel(q, v, a, parameters, threads=2) == whole).all()
    assert all((kernel(q[k], v[k], a[k], np.ascontiguousarray(parameters[k])) == whole[k]).all() for k in range(STATES))
    assert (kernel(q, v, a, np.asfortranarray(parameters)) == whole).all()


@pytest.mark.parametrize("mechanism", [fgd.robots.ur5(), fgd.robots.five_bar()], ids=lambda m: m.name)
def test_regressor_kernels(mechanism):
    names = ("regressor", "kinetic_regressor", "potential_regressor")
    kernel = fgd.compile(mechanism, "regressor", outputs=names)
    q, v, _, a = batch(mechanism)
    Y, kinetic, potential = kernel(q, v, a)
    assert relative_error(Y, fgd.regressor(mechanism, q, v, a)) < 1e-13
    expected = fgd.energy_regressors(mechanism, q, v)
    assert relative_error(kinetic, expected[0]) < 1e-13
    assert relative_error(potential, expected[1]) < 1e-13
    assert kernel.accuracy < 1e-11


def test_forward_kernels_give_the_regressor_at_their_accelerations():
    arm = fgd.robots.rrr()
    q, v, _, tau = batch(arm)
    a, Y = fgd.compile(arm, "forward", outputs=("a", "regressor"))(q, v, tau)
    assert relative_error(Y @ arm.parameters().ravel(), tau) < 1e-12
    assert relative_error(Y, fgd.regressor(arm, q, v, a)) < 1e-12


def test_a_wrong_regressor_is_found_out(monkeypatch):
    true = regressor.wrench_regressor
    monkeypatch.setattr(regressor, "wrench_regressor", lambda A, w: true(A, w) * (1 + 1e-7))
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    with pytest.raises(fgd.CompileError, match=r"relative error of 1.*e-07 in regressor"):
        fgd.compile(fgd.robots.rrr(), "regressor")


def test_a_wrong_parameter_is_found_out(monkeypatch):
    true = free.lump
    monkeypatch.setattr(free, "lump", lambda link, row: true(link, row * (1 + 1e-7)))
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    with pytest.raises(fgd.CompileError, match="does not satisfy the mechanism's own equations"):
        fgd.compile(fgd.robots.rrr(), "inverse", parameters="all")


def test_no_parameters_are_none_or_an_empty_sequence():
    arm = fgd.robots.rrr()
    assert {fgd.compile(arm, parameters=nothing).arguments for nothing in (None, (), [])} == {("q", "v", "tau")}
