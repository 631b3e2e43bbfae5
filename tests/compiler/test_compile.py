"""Kernels against the graph solve and Pinocchio: mechanisms, problems and orderings."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import compile
from tests.helpers import lossy, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-10  # relative, with the graph solve
CONDITIONED = 1e-9  # relative, with another engine
STATES = 4
GENERAL = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")
ARMS = ("rrr", "puma560", "pendulum")
LOOPED = ("four_bar", "five_bar", "stewart")
SMALL_TREES = [seed for seed in range(40) if 0 < mixed_tree(seed).nv <= 16][:6]


def states(mechanism, seed, count=STATES):
    rng = np.random.default_rng(seed)
    drawn = [mechanism.random_state(rng) for _ in range(count)]
    q, v = (np.array(column) for column in zip(*drawn, strict=True))
    return q, v, rng.normal(size=(count, mechanism.nv))


@pytest.mark.parametrize("seed", SMALL_TREES)
def test_trees_of_all_joint_kinds(seed):
    mechanism = lossy(mixed_tree(seed), seed)
    q, v, x = states(mechanism, seed)
    ordering = GENERAL[seed % 4]
    forward = compile(mechanism, "forward", ordering=ordering)
    inverse = compile(mechanism, "inverse")
    for k in range(STATES):
        graph = fgd.forward_dynamics(mechanism, q[k], v[k], x[k])
        assert relative_error(forward(q, v, x)[k], graph.a) < AGREEMENT
        graph = fgd.inverse_dynamics(mechanism, q[k], v[k], x[k])
        assert relative_error(inverse(q, v, x)[k], graph.tau) < AGREEMENT


@pytest.mark.parametrize("seed", SMALL_TREES[:3])
def test_trees_agree_with_pinocchio(seed):
    mechanism = mixed_tree(seed)
    oracle = pinocchio_oracle(mechanism)
    q, v, x = states(mechanism, seed)
    link = mechanism.links[-1].name
    kernel = compile(mechanism, "forward", external_wrenches=[link])
    wrenches = np.random.default_rng(seed).normal(size=(STATES, 6))
    found = kernel(q, v, x, wrenches)
    matrix = compile(mechanism, "mass_matrix")(q)
    for k in range(STATES):
        M = oracle.mass_matrix(q[k])
        expected = oracle.forward_dynamics(q[k], v[k], x[k], {link: wrenches[k]})
        assert relative_error(found[k], expected) < CONDITIONED * max(1.0, 1e-4 * np.linalg.cond(M))
        assert relative_error(matrix[k], M) < CONDITIONED


@pytest.mark.parametrize("robot", ARMS)
@pytest.mark.parametrize("ordering", GENERAL)
def test_every_ordering_gives_the_same_answer(robot, ordering):
    mechanism = fgd.robots.BUILT_IN[robot]()
    q, v, tau = states(mechanism, 1, 100)
    reference = compile(mechanism, "forward")(q, v, tau)
    kernel = compile(mechanism, "forward", ordering=ordering)
    assert kernel.ordering.name == ordering
    assert relative_error(kernel(q, v, tau), reference) < AGREEMENT
    graph = fgd.forward_dynamics(mechanism, q[0], v[0], tau[0], ordering=ordering)
    assert relative_error(reference[0], graph.a) < AGREEMENT


def test_own_sequences_and_ordering_objects():
    mechanism = fgd.robots.rrr()
    q, v, tau = states(mechanism, 2)
    expected = compile(mechanism, "forward")(q, v, tau)
    names = compile(mechanism, "forward", ordering="crba").ordering.variables
    for ordering in (list(names), fgd.Ordering("mine", names)):
        kernel = compile(mechanism, "forward", ordering=ordering)
        assert kernel.ordering.variables == names
        assert relative_error(kernel(q, v, tau), expected) < AGREEMENT
    with pytest.raises(fgd.OrderingError, match="misses"):
        compile(mechanism, "forward", ordering=names[1:])
    with pytest.raises(fgd.OrderingError, match="needs every joint acceleration"):
        compile(mechanism, "forward", ordering="rnea")


def test_floating_humanoid():
    mechanism = fgd.robots.humanoid()
    q, v, tau = states(mechanism, 3, 9)
    a = compile(mechanism, "forward")(q, v, tau)
    assert relative_error(compile(mechanism, "inverse")(q, v, a), tau) < CONDITIONED
    assert relative_error(a[0], fgd.forward_dynamics(mechanism, q[0], v[0], tau[0]).a) < AGREEMENT


@pytest.mark.slow
@pytest.mark.parametrize("robot", LOOPED)
def test_closed_loops(robot):
    mechanism = fgd.robots.BUILT_IN[robot]()
    q, v, tau = states(mechanism, 4)
    forward = compile(mechanism, "forward", ordering="colamd")
    a = forward(q, v, tau)
    inverse = compile(mechanism, "inverse")(q, v, a)
    for k in range(STATES):
        assert relative_error(a[k], fgd.forward_dynamics(mechanism, q[k], v[k], tau[k]).a) < AGREEMENT
        expected = fgd.inverse_dynamics(mechanism, q[k], v[k], a[k]).tau
        assert relative_error(inverse[k], expected) < 100 * AGREEMENT


def test_planar_loops_have_redundant_equations():
    mechanism = fgd.robots.four_bar()
    assert compile(mechanism, "forward").redundant_equations == 3
    with pytest.raises(fgd.CompileError, match="not determined"):
        compile(mechanism, "forward", outputs=[f"F[{mechanism.loops[0].name}]"])


def test_accelerations_that_break_a_loop_give_nan():
    mechanism = fgd.robots.five_bar()
    q, v, tau = states(mechanism, 5)
    kernel = compile(mechanism, "inverse")
    a = compile(mechanism, "forward")(q, v, tau)
    assert np.isfinite(kernel(q, v, a)).all()
    a[1] += 1.0
    assert np.isnan(kernel(q, v, a)[1]).all()
    assert np.isfinite(kernel(q, v, a)[0]).all()
    assert any("contradict" in message and "1" in message for message in kernel.check(q, v, a))


@pytest.mark.parametrize("seed", range(4))
def test_hybrid_with_any_mask(seed):
    rng = np.random.default_rng(seed)
    mechanism = mixed_tree(SMALL_TREES[seed])
    known = rng.uniform(size=mechanism.nv) < 0.5
    q, v, tau = states(mechanism, seed)
    a = compile(mechanism, "forward")(q, v, tau)
    kernel = compile(mechanism, "hybrid", known_accelerations=known)
    found_a, found_tau = kernel(q, v, np.where(known, a, 99.0), np.where(known, 99.0, tau))
    assert relative_error(found_a, a) < AGREEMENT
    assert relative_error(found_tau, tau) < AGREEMENT


def test_matrices():
    mechanism = fgd.robots.puma560()
    q, _, _ = states(mechanism, 6)
    inverse = compile(mechanism, "inverse_mass_matrix")(q)
    iwim = compile(mechanism, "iwim", actuated=mechanism.joint_names[1:3])(q)
    assert iwim.shape == (STATES, 6, 2)
    for k in range(STATES):
        assert relative_error(inverse[k], fgd.inverse_mass_matrix(mechanism, q[k])) < AGREEMENT
    assert relative_error(iwim, inverse[:, :, 1:3]) < AGREEMENT
    np.testing.assert_array_equal(inverse, np.swapaxes(inverse, 1, 2))


def test_full_solutions():
    mechanism = fgd.robots.puma560()
    q, v, tau = states(mechanism, 7)
    tip, joint = mechanism.link_names[-1], mechanism.joint_names[0]
    names = ["tau", f"A[{tip}]", f"F[{joint}]", f"V[{tip}]", f"A[{mechanism.base}]"]
    results = compile(mechanism, "forward", outputs=names)(q, v, tau)
    graph = fgd.forward_dynamics(mechanism, q[2], v[2], tau[2])
    expected = (
        graph.tau,
        graph.accelerations[tip],
        graph.wrenches[joint],
        graph.twists[tip],
        graph.accelerations[mechanism.base],
    )
    for found, value in zip(results, expected, strict=True):
        assert relative_error(found[2], value) < AGREEMENT


def test_couplings():
    links = [fgd.Link("base"), *(fgd.Link(f"l{k}", 1.0, (0.1, 0.2, 0.3), np.eye(3)) for k in range(3))]
    joints = [fgd.Joint(f"j{k}", "revolute", links[k].name, links[k + 1].name, axis=(0, 1, k)) for k in range(3)]
    mechanism = fgd.Mechanism("geared", links, joints, couplings=[fgd.Coupling("gear", "j2", "j0", ratio=-2.5)])
    q, v, tau = states(mechanism, 8)
    found = compile(mechanism, "forward")(q, v, tau)
    for k in range(STATES):
        assert relative_error(found[k], fgd.forward_dynamics(mechanism, q[k], v[k], tau[k]).a) < AGREEMENT


def test_operation_counts():
    mechanism = fgd.robots.puma560()
    aba = compile(mechanism, "forward").operations
    assert aba.total == aba.multiplications + aba.additions + aba.divisions <= 1100
    assert compile(mechanism, "inverse").operations.total <= 580
    assert compile(fgd.robots.rrr(), "inverse").operations.sincos == 3


def test_massless_tip_is_refused_or_nan():
    links = [fgd.Link("base"), fgd.Link("arm", 1.0, (0.5, 0, 0), np.eye(3)), fgd.Link("ghost")]
    joints = [fgd.Joint("a", "revolute", "base", "arm"), fgd.Joint("b", "revolute", "arm", "ghost")]
    mechanism = fgd.Mechanism("haunted", links, joints)
    with pytest.raises(fgd.CompileError, match=r"a\[b\] is not determined"):
        compile(mechanism, "forward")


def test_words_that_are_not_known():
    mechanism = fgd.robots.rrr()
    with pytest.raises(fgd.InputError, match="one of: forward, inverse"):
        compile(mechanism, "backward")
    with pytest.raises(fgd.InputError, match="There is no output 'F"):
        compile(mechanism, "forward", outputs=["F[nowhere]"])
    with pytest.raises(fgd.InputError, match="hybrid"):
        compile(mechanism, "forward", known_accelerations=mechanism.joint_names[:1])
    with pytest.raises(fgd.InputError, match="link"):
        compile(mechanism, "forward", external_wrenches=["nowhere"])
    with pytest.raises(fgd.InputError, match="is not in"):
        compile(mechanism, "iwim", actuated=["nowhere"])
    for problem in ("forward", "hybrid", "mass_matrix", "inverse_mass_matrix", "regressor", "kinematics"):
        for motors in (mechanism.joint_names[:1], []):
            with pytest.raises(fgd.InputError, match=rf"inverse, iwim, estimate; this one is '{problem}'"):
                compile(mechanism, problem, actuated=motors)
    with pytest.raises(fgd.CompileError, match="no movable joint"):
        compile(fgd.Mechanism("rock", [fgd.Link("base", 1.0)], []), "forward")


def test_iwim_kernel_has_the_inputs_of_iwim():
    mechanism = fgd.robots.humanoid()
    q, _ = mechanism.random_state(0)
    kernel = compile(mechanism, "iwim")
    assert relative_error(kernel(q), fgd.iwim(mechanism, q)) < AGREEMENT


def test_a_joint_that_moves_no_inertia_is_named():
    links = [fgd.Link("base"), fgd.Link("upper", 1.0, (0.1, 0, 0), 0.01 * np.eye(3)), fgd.Link("hand")]
    joints = [fgd.Joint("shoulder", "revolute", "base", "upper"), fgd.Joint("wrist", "revolute", "upper", "hand")]
    mechanism = fgd.Mechanism("arm", links, joints)
    with pytest.raises(fgd.CompileError, match=r"a\[wrist\] is not determined: moving that joint moves no inertia"):
        compile(mechanism, "forward")
    assert compile(mechanism, "inverse")(*np.ones((3, 2))).shape == (2,)


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["five_bar", "stewart", "delta"])
def test_states_that_are_not_closed_give_nan_and_drift_does_not(robot):
    mechanism = fgd.robots.BUILT_IN[robot]()
    rng = np.random.default_rng(0)
    q, v = mechanism.random_state(rng)
    kernel = compile(mechanism, "forward")
    closed = kernel(q, v, np.zeros(mechanism.nv))
    drifted = kernel(q + 1e-7 * rng.normal(size=mechanism.nq), v, np.zeros(mechanism.nv))
    np.testing.assert_allclose(drifted, closed, atol=1e-4 * np.abs(closed).max())
    other_v = v + np.eye(mechanism.nv)[-1]
    assert np.isnan(kernel(q, other_v, np.zeros(mechanism.nv))).all()
    q[-1] += 0.2
    assert np.isnan(kernel(q, v, np.zeros(mechanism.nv))).all()
    assert any("off the closure" in message for message in kernel.check(q, v, np.zeros(mechanism.nv)))


def test_states_that_break_a_coupling_give_nan():
    arm = fgd.robots.pendulum(2)
    first, second = arm.joint_names
    geared = fgd.Mechanism("geared", arm.links, arm.joints, (), (fgd.Coupling("gear", second, first, 2.0, 0.1),))
    kernel = compile(geared, "forward")
    nothing = np.zeros(2)
    assert np.isfinite(kernel([0.3, 0.7], nothing, nothing)).all()
    assert np.isnan(kernel([0.3, 0.6], nothing, nothing)).all()
    assert np.isfinite(kernel([0.3, 0.7], [1.0, 2.0], nothing)).all()
    assert np.isnan(kernel([0.3, 0.7], [1.0, 1.9], nothing)).all()


@pytest.mark.parametrize("seed", range(3))
def test_couplings_of_joints_whose_coordinates_the_kernel_shifts(seed):
    tree = fgd.robots.random_tree(3, seed=seed, kinds=("revolute",))
    first, second, _ = tree.joint_names
    geared = replace(tree, couplings=(fgd.Coupling("gear", second, first, 1.5, 0.2),))
    q, v = geared.random_state(seed)
    tau = np.random.default_rng(seed).normal(size=3)
    found = compile(geared, "forward")(q, v, tau)
    assert relative_error(found, fgd.forward_dynamics(geared, q, v, tau).a) < AGREEMENT


def test_a_loop_that_locks_a_joint_is_solved():
    arm = fgd.robots.pendulum(3)
    locked = replace(arm, loops=(fgd.Loop("weld", "fixed", arm.joints[1].parent, arm.joints[1].child,
                                          arm.joints[1].placement),))  # fmt: skip
    rng = np.random.default_rng(0)
    kernel = compile(locked, "forward")
    for _ in range(10):
        q, v = locked.random_state(rng)
        tau = rng.normal(size=3)
        assert relative_error(kernel(q, v, tau), fgd.forward_dynamics(locked, q, v, tau).a) < CONDITIONED


@pytest.mark.parametrize(("length", "mass"), [(1e-3, 1e-9), (1e-3, 1e-6), (1e2, 1e6), (1e3, 1e9)])
def test_units_do_not_matter(length, mass):
    """A mechanism of other units: accelerations of joints are the same, torques grow with m l^2."""
    arm = fgd.robots.rrr()
    links = [replace(x, mass=mass * x.mass, com=length * np.asarray(x.com),
                     inertia=mass * length**2 * np.asarray(x.inertia)) for x in arm.links]  # fmt: skip
    joints = []
    for joint in arm.joints:
        placement = np.array(joint.placement)
        placement[:3, 3] *= length
        joints.append(replace(joint, placement=placement))
    other = fgd.Mechanism("other", links, joints, gravity=length * np.asarray(arm.gravity))
    q, v, tau = states(arm, 4)
    for ordering in ("aba", "crba", "colamd"):
        found = compile(other, "forward", ordering=ordering)(q, v, mass * length**2 * tau)
        assert relative_error(found, compile(arm, "forward")(q, v, tau)) < AGREEMENT
