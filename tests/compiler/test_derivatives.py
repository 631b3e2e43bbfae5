"""Derivatives in kernels: against Pinocchio, against the graph, and against differences where no engine knows them."""

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.proof.proof import Trial
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.motion import closure
from tests.helpers import lossy, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-9  # relative, with another engine
KINDS = (
    "revolute",
    "prismatic",
    "spherical",
    "helical",
    "planar",
    "floating",
)  # Pinocchio's composites have no right ones
TREES = ("rrr", "puma560", "ur5", "panda", "pendulum", "general_6r", "humanoid")
INVERSE = ("tau", "dtau/dq", "dtau/dv", "dtau/da")
FORWARD = ("a", "da/dq", "da/dv", "da/dtau")


def evaluated(mechanism, problem, outputs, arguments, ordering=None):
    """Results of a traced program at one state, without machine code, and its operations."""
    asked = make_problem(mechanism, problem, outputs=outputs)
    program = trace(mechanism, asked, ordering or asked.classical).program
    interpreter = Interpreter(program, [np.array([x]) for argument in arguments for x in argument])
    flat = [np.sign(ref) * np.broadcast_to(interpreter.value(abs(ref)), (1,))[0] for ref in program.outputs]
    ends = np.cumsum([operand.size for operand in program.results])
    parts = np.split(np.array(flat), ends[:-1])
    shaped = [part.reshape(operand.shape) for part, operand in zip(parts, program.results, strict=True)]
    return shaped, program.operations.total


def by_pinocchio(mechanism, q, v, a):
    """dtau/dq, dtau/dv and M."""
    oracle = pinocchio_oracle(mechanism)
    found = pin.computeRNEADerivatives(oracle.model, oracle.data, oracle.q(q), oracle.v(v), oracle.v(a))
    dq, dv, M = (oracle._to_theirs.T @ matrix @ oracle._to_theirs for matrix in found)
    return dq, dv, np.triu(M) + np.triu(M, 1).T


def agrees(mechanism, seed):
    rng = np.random.default_rng(seed)
    (q, v), a = mechanism.random_state(rng), rng.normal(size=mechanism.nv)
    dq, dv, M = by_pinocchio(mechanism, q, v, a)
    (tau, *found), _ = evaluated(mechanism, "inverse", INVERSE, (q, v, a))
    for matrix, expected in zip(found, (dq, dv, M), strict=True):
        least = 1e-3 * np.abs(M).max()  # what is zero in one engine is rounding in the other
        assert np.abs(matrix - expected).max() < AGREEMENT * max(np.abs(expected).max(), least)
    (_, *found), _ = evaluated(mechanism, "forward", FORWARD, (q, v, tau))
    inverse = np.linalg.inv(M)
    for matrix, expected in zip(found, (-inverse @ dq, -inverse @ dv, inverse), strict=True):
        least = 1e-3 * np.abs(inverse).max()
        allowed = AGREEMENT * max(1.0, 1e-4 * np.linalg.cond(M)) * max(np.abs(expected).max(), least)
        assert np.abs(matrix - expected).max() < allowed


@pytest.mark.parametrize("robot", TREES[:4])
def test_arms_agree_with_pinocchio(robot):
    agrees(getattr(fgd.robots, robot)(), 1)


@pytest.mark.slow
@pytest.mark.parametrize("robot", TREES[4:])
def test_other_trees_agree_with_pinocchio(robot):
    made = getattr(fgd.robots, robot)
    agrees(made(3) if robot == "pendulum" else made(), 2)


@pytest.mark.parametrize("seed", range(3))
def test_random_trees_agree_with_pinocchio(seed):
    agrees(fgd.robots.random_tree(3, seed=seed, branching=1.5, kinds=KINDS), seed)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3, 30))
def test_more_random_trees_agree_with_pinocchio(seed):
    agrees(fgd.robots.random_tree(2 + seed % 4, seed=seed, branching=1.5, kinds=KINDS), seed)


def test_operations_stay_as_few_as_they_are():
    limits = {"puma560": (1770, 3250), "ur5": (1400, 2650), "panda": (4200, 7500)}
    for robot, most in limits.items():
        mechanism = getattr(fgd.robots, robot)()
        for problem, outputs, limit in zip(("inverse", "forward"), (INVERSE, FORWARD), most, strict=True):
            asked = make_problem(mechanism, problem, outputs=outputs[:3])
            assert trace(mechanism, asked, asked.classical).program.operations.total <= limit


def test_every_sort_of_output_and_argument_agrees_with_the_graph():
    """All joint kinds, losses, wrenches from outside, places, energies; the kernel proves itself, too."""
    tree = fgd.robots.random_tree(3, seed=4, branching=1.5, kinds=("universal", "planar", "revolute"))
    mechanism = lossy(tree, 1)
    link, joint = mechanism.link_names[-1], mechanism.joint_names[-1]
    outputs = ["a", f"A[{link}]", f"F[{joint}]", f"V[{link}]", f"T[{link}]", "com", "kinetic_energy"]
    names = [f"d{output}/d{argument}" for output in outputs for argument in ("q", "v", "tau", f"wrench[{link}]")]
    kernel = fgd.compile(mechanism, "forward", outputs=names, external_wrenches=[link])
    rng = np.random.default_rng(0)
    (q, v), tau, wrench = mechanism.random_state(rng), rng.normal(size=mechanism.nv), rng.normal(size=6)
    graph = fgd.derivatives(mechanism, q, v, tau=tau, external_wrenches={link: wrench})
    for name, found in zip(names, kernel(q, v, tau, wrench), strict=True):
        assert found.shape == graph[name].shape
        assert relative_error(found, graph[name]) < AGREEMENT, name


def test_hybrid_derivatives_are_those_of_forward_and_inverse():
    mechanism = fgd.robots.rrr()
    rng = np.random.default_rng(3)
    (q, v), a = mechanism.random_state(rng), rng.normal(size=3)
    known = [mechanism.joint_names[1]]
    names = ("a", "tau", "da/dq", "dtau/dq", "dtau/da", "da/dtau")
    kernel = fgd.compile(mechanism, "hybrid", known_accelerations=known, outputs=names)
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    found = dict(zip(names, kernel(q, v, a, tau), strict=True))
    whole = fgd.derivatives(mechanism, q, v, a=a)
    free = [0, 2]  # tau(q, a(q)) of the free joints does not change, nor does a of the known one
    assert np.abs(found["da/dq"][1]).max() == 0.0
    kept = whole.dtau_dq + whole.dtau_da @ found["da/dq"]
    assert np.abs(kept[free]).max() < 1e-9 * np.abs(whole.dtau_dq).max()
    assert np.allclose(kept[1], found["dtau/dq"][1], rtol=1e-9)


@pytest.mark.parametrize("robot", ["four_bar", "five_bar"])
def test_loops_change_along_their_closure(robot):
    """Kernel and graph agree with differences of closed states, though their single columns need not be the same."""
    mechanism = getattr(fgd.robots, robot)()
    kernel = fgd.compile(mechanism, "forward", outputs=FORWARD)
    q, v = mechanism.random_state(1)
    tau = np.where(mechanism.torque_entries(), 1.0, 0.0)
    J = closure.stacked_jacobian(mechanism, closure.constraints(mechanism, q))
    _, sizes, rows = np.linalg.svd(J)
    free = rows[(sizes > 1e-9 * sizes[0]).sum() :].sum(axis=0)
    step = 1e-3
    places = [mechanism.close(q + k * step * free) for k in (-2, -1, 1, 2)]
    speeds = [closure.nearest_velocity(mechanism, place, v) for place in places]
    weights = np.array([1.0, -8.0, 8.0, -1.0]) / (12 * step)
    dq, dv = weights @ np.array(places), weights @ np.array(speeds)
    expected = weights @ kernel(np.array(places), np.array(speeds), tau)[0]
    _, by_q, by_v, by_tau = kernel(q, v, tau)
    graph = fgd.derivatives(mechanism, q, v, tau=tau)
    assert relative_error(by_q @ dq + by_v @ dv, expected) < 1e-8  # what the differences are good for
    assert relative_error(graph.da_dq @ dq + graph.da_dv @ dv, by_q @ dq + by_v @ dv) < 1e-9
    assert relative_error(graph.da_dtau, by_tau) < AGREEMENT


def test_friction_at_rest_changes_as_its_own_branch():
    mechanism = fgd.robots.pendulum(1)
    joint = replace(mechanism.joints[0], friction=0.7, damping=0.3, stiffness=2.0)
    rubbing = replace(mechanism, joints=(joint,))
    kernel = fgd.compile(rubbing, "inverse", outputs=("dtau/dv", "dtau/dq"))
    plain = fgd.compile(mechanism, "inverse", outputs=("dtau/dv", "dtau/dq"))
    for v in (0.0, 1.0, -1.0):
        by_v, by_q = kernel([0.3], [v], [0.0])
        assert by_v == pytest.approx(0.3)
        assert by_q - plain([0.3], [v], [0.0])[1] == pytest.approx(2.0)


@pytest.mark.parametrize("name", ["dtau/dq", "dtau/dv", "dtau/da"])
def test_a_wrong_derivative_does_not_stand_its_proof(name):
    mechanism = fgd.robots.rrr()
    asked = make_problem(mechanism, "inverse", outputs=INVERSE)
    kernel, trial, place = (
        fgd.compile(mechanism, "inverse", outputs=INVERSE),
        Trial(mechanism, asked),
        INVERSE.index(name),
    )
    assert trial.judge(kernel.gufunc).is_good

    def spoilt(*arguments):
        results = list(kernel.gufunc(*arguments))
        results[place] = results[place] * (1 + 1e-7)
        return tuple(results)

    assert not trial.judge(spoilt).holds


@pytest.mark.parametrize("what", ["kinetic_regressor", "kinetic_energy", "momentum"])
@pytest.mark.parametrize("robot", [fgd.robots.ur5, fgd.robots.four_bar])
def test_squares_of_speeds_are_proved_at_rest_too(robot, what):
    mechanism, outputs = robot(), (f"d{what}/dq", f"d{what}/dv")
    assert fgd.compile(mechanism, "kinematics", outputs=outputs, parameters="all").accuracy < 1e-10
    kernel = fgd.compile(mechanism, "kinematics", outputs=outputs)
    trial = Trial(mechanism, make_problem(mechanism, "kinematics", outputs=outputs))
    assert trial.judge(kernel.gufunc).is_good
    for place in range(2):  # the derivative by q, or that by v, is a little too large

        def spoilt(*arguments, place=place):
            results = list(kernel.gufunc(*arguments))
            results[place] = results[place] * (1 + 1e-7)
            return tuple(results)

        assert not trial.judge(spoilt).holds


@pytest.mark.parametrize(
    ("outputs", "words"),
    [
        (["da/dtorque"], "derivative by 'torque', which is not an argument here. Arguments: q, v, tau"),
        (["da/da"], "derivative by 'a', which is not an argument here"),
        (["dspeed/dq"], "no output 'speed'"),
        (["dda/dq/dq"], "no output 'da'|derivative"),
        (["dA[nowhere]/dq"], "no output 'A\\[nowhere\\]'"),
    ],
)
def test_bad_derivatives_are_refused_in_words(outputs, words):
    with pytest.raises(fgd.InputError, match=words):
        fgd.compile(fgd.robots.rrr(), "forward", outputs=outputs)


def test_bad_questions_to_the_graph_are_refused_in_words():
    arm = fgd.robots.rrr()
    zero = np.zeros(3)
    with pytest.raises(fgd.InputError, match="either tau, for forward dynamics, or a"):
        fgd.derivatives(arm, zero, zero)
    found = fgd.derivatives(arm, zero, zero, tau=zero)
    with pytest.raises(fgd.InputError, match="'da' is no derivative"):
        found["da"]
    with pytest.raises(fgd.InputError, match="not an argument here"):
        found["da/da"]
    with pytest.raises(AttributeError, match="da_dq"):
        _ = found.accelerations


def test_some_of_the_derivatives_of_a_loop_are_proved_with_the_others():
    """By themselves they leave the closure, where nothing can be proved."""
    mechanism = fgd.robots.four_bar()
    kernel = fgd.compile(mechanism, "inverse", outputs=["dtau/dq"])
    whole = fgd.compile(mechanism, "inverse", outputs=INVERSE)
    q, v = mechanism.random_state(0)
    a = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv)).a
    assert relative_error(kernel(q, v, a), whole(q, v, a)[1]) < 1e-12


def test_derivatives_by_parameters_are_the_regressor():
    mechanism = fgd.robots.rrr()
    kernel = fgd.compile(mechanism, "inverse", parameters="all", outputs=("dtau/dparameters", "regressor"))
    q, v = mechanism.random_state(0)
    by_parameters, regressor = kernel(q, v, np.ones(3), mechanism.parameters())
    assert by_parameters.shape == (3, 3, 10)
    assert np.array_equal(by_parameters.reshape(3, 30), regressor)


def test_derivatives_by_constants_that_are_arguments_are_proved():
    outputs = ("a", "da/dq", "da/dgravity", "da/ddamping[joint1]")
    kernel = fgd.compile(fgd.robots.rrr(), "forward", parameters=["gravity", "damping[joint1]"], outputs=outputs)
    assert kernel.accuracy < 1e-10


def test_zeros_of_matrices_are_handed_out_like_numbers():
    """They are no values of the code: of full and broken tiles, in any strides, and nan where all of a state is."""
    mechanism = fgd.robots.puma560()
    kernel = fgd.compile(mechanism, "forward", outputs=FORWARD)
    rng = np.random.default_rng(0)
    q, v, tau = rng.normal(size=(3, 19, 6))
    q[5, 2] = np.nan
    single = [kernel(*state) for state in zip(q, v, tau, strict=True)]
    strided = tuple(np.full((19, *part.shape[::-1]), 7.0).swapaxes(-1, -part.ndim) for part in single[0])
    for results in (kernel(q, v, tau), kernel(q, v, tau, out=strided)):
        for k, result in enumerate(results):
            assert np.array_equal(result, [parts[k] for parts in single], equal_nan=True)
            assert np.isnan(result[5]).all()
            assert not np.isnan(np.delete(result, 5, axis=0)).any()
    assert (single[0][1][:, 0] == 0.0).all()


@pytest.mark.parametrize("output", ["dT[link3]/dq", "dJ[link3]/dq"])
def test_results_of_three_axes_are_the_same_in_batches_of_all_sizes_and_strides(output):
    kernel = fgd.compile(fgd.robots.rrr(), "kinematics", outputs=[output])
    q, v = np.random.default_rng(0).normal(size=(2, 11, 3))
    single = np.array([kernel(*state) for state in zip(q, v, strict=True)])
    assert all(np.array_equal(kernel(q[:n], v[:n]), single[:n]) for n in range(1, 12))
    axes = (0, 2, 1, 3)
    apart = np.zeros((*np.array(single.shape)[list(axes)], 2))[..., 0].transpose(axes)
    for strided in (apart, np.zeros(single.shape[::-1]).T, np.zeros((11, *(2 * x for x in single.shape[1:])))):
        out = strided[tuple(slice(n) for n in single.shape)]
        assert np.array_equal(kernel(q, v, out=out), single)


def test_torques_of_loops_change_with_parameters_as_they_are_linear_in_them():
    mechanism = fgd.robots.five_bar()
    kernel = fgd.compile(mechanism, "inverse", parameters="all", outputs=["tau", "dtau/dparameters"])
    q, v = mechanism.random_state(0)
    a = fgd.forward_dynamics(mechanism, q, v, np.where(mechanism.torque_entries(), 1.0, 0.0)).a
    own = mechanism.parameters()
    step = np.random.default_rng(0).normal(size=(5, *own.shape)) * np.abs(own).max()
    tau, by_parameters = kernel(q, v, a, own)
    moved, same = kernel(q, v, a, own + step)
    assert relative_error(np.einsum("jlp,slp->sj", by_parameters, step), moved - tau) < 1e-10
    assert relative_error(same, np.broadcast_to(by_parameters, same.shape)) < 1e-10


def test_entries_that_depend_on_nan_are_nan_and_others_are_what_they_are():
    arm, unit = fgd.robots.rrr(), np.ones(3)
    kernel = fgd.compile(arm, "inverse", outputs=INVERSE)
    tau, by_q, _, by_a = kernel([0.1, np.nan, 0.2], unit, unit)
    assert np.isnan(tau).all()
    assert np.isnan(by_q).all()
    assert np.isnan(by_a[0]).all()
    assert (by_a[1:, 1:] == kernel([0.1, 0.3, 0.2], unit, unit)[3][1:, 1:]).all()  # the elbow alone moves them
    forward = fgd.compile(arm, "forward", outputs=FORWARD)([0.1, np.nan, 0.2], unit, unit)
    assert all(np.isnan(result).all() for result in forward)  # a pivot is not finite
