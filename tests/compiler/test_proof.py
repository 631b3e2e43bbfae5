"""Kernels are put into the mechanism's own equations before anyone gets them."""

import pickle
import sys
from dataclasses import replace
from functools import cache as cache_function

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.compiler.proof.newton_euler import Loads, ManyStates
from factorgraph_dyn.compiler.proof.proof import ALLOWED, GOOD, Trial
from factorgraph_dyn.compiler.route import CAREFUL, CHEAP, Route
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.model.sizes.units import described_in, natural
from tests.helpers import lossy, mixed_tree, relative_error, turned

trace_module = sys.modules["factorgraph_dyn.compiler.trace"]
compile_module = sys.modules["factorgraph_dyn.compiler.kernel.compile"]
sampled_states_module = sys.modules["factorgraph_dyn.compiler.sampled_states"]
SMALL_ERROR = 1e-6  # a wrong number that looks right

WORDS_OF_NO_ROUTE = rf"relative error of .* in tau\[joint\d\] .* best of {1 + len(CAREFUL)} routes"

PROBLEMS = {
    "forward": {},
    "inverse": {},
    "hybrid": {"known_accelerations": ["joint2", "joint5"]},
    "iwim": {"actuated": ["joint1", "joint4"]},
    "inverse_mass_matrix": {},
    "mass_matrix": {},
}
OUTPUTS = ("a", "tau", "A[link3]", "V[link4]", "F[joint1]", "A[base]")


@pytest.fixture
def no_cache(monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, "off")


def light_finger():
    """A light finger on a heavy arm."""
    links = [fgd.Link("base"), *(fgd.Link(n, m, (0.2, 0.1, 0.0), m * np.diag([0.02, 0.03, 0.04])) for n, m in MASSES)]
    joints = [
        fgd.Joint(f"to_{child}", "revolute", parent, child, shifted(0.5, 0.0, 0.1), axis=axis)
        for parent, child, axis in (("base", "arm", (0, 0, 1)), ("arm", "hand", (0, 1, 0)), ("hand", "tip", (1, 0, 0)))
    ]
    return fgd.Mechanism("fingered", links, joints)


MASSES = (("arm", 100.0), ("hand", 10.0), ("tip", 1e-5))


def geared():
    """A tree with a coupling, whose driven joint has no motor."""
    mechanism = fgd.robots.rrr()
    joints = [replace(joint, actuated=joint.name != "joint3") for joint in mechanism.joints]
    return replace(mechanism, joints=joints, couplings=[fgd.Coupling("gear", "joint3", "joint2", ratio=-1.5)])


@cache_function
def spatial_four_bar():
    """A loop with no equation too many, so that all wrenches are determined."""
    inertia = np.diag([0.02, 0.03, 0.04])
    links = [fgd.Link("base"), *(fgd.Link(n, 1.0, (0.1, 0.05, 0.02), inertia) for n in ("crank", "coupler", "rocker"))]
    crossing = ((0, 0, 1), (0, 1, 0))
    joints = [
        fgd.Joint("motor", "revolute", "base", "crank"),
        fgd.Joint("cross", "universal", "crank", "coupler", shifted(0.0, 0.3, 0.0), axis=crossing, actuated=False),
        fgd.Joint("pivot", "revolute", "base", "rocker", shifted(1.2, -0.5, 0.0), axis=(0.3, 0, 1), actuated=False),
    ]
    ball = fgd.Loop("ball", "spherical", "coupler", "rocker", shifted(1.2, -0.3, 0.0), shifted(0.0, 0.5, 0.0))
    return fgd.Mechanism("spatial four-bar", links, joints, [ball])


def shifted(*position):
    placement = np.eye(4)
    placement[:3, 3] = position
    return placement


def states_of(mechanism, count=5):
    rng = np.random.default_rng(3)
    q, v = (np.array(values) for values in zip(*(mechanism.random_state(rng) for _ in range(count)), strict=True))
    return q, v, rng.normal(size=(count, mechanism.nv))


# The plain equations


@pytest.mark.parametrize("seed", [2, 7, 14])
def test_plain_equations_of_trees_are_those_of_the_graph(seed):
    mechanism = lossy(mixed_tree(seed), seed)
    q, v, a = states_of(mechanism)
    link = mechanism.link_names[-1]
    wrench = np.linspace(1.0, 2.0, 6)
    loads = Loads()
    loads.add(link, np.broadcast_to(wrench, (len(q), 1, 6)))
    found = ManyStates(mechanism, q, v, natural(mechanism).length).response(a[:, None], loads=loads)
    for k in range(len(q)):
        expected = fgd.inverse_dynamics(mechanism, q[k], v[k], a[k], external_wrenches={link: wrench})
        assert relative_error(found.tau[k, 0], expected.tau) < 1e-10
        for name, A in expected.accelerations.items():
            assert np.abs(found.A[name][k, 0] - A).max() <= 1e-10 * found.A_size[name][k, 0].max()
        for name, F in expected.wrenches.items():
            assert np.abs(found.F[name][k, 0] - F).max() <= 1e-10 * found.F_size[name][k, 0].max()


@pytest.mark.parametrize("make", [fgd.robots.five_bar, fgd.robots.stewart, fgd.robots.delta, geared])
def test_plain_equations_of_closed_mechanisms_are_those_of_the_graph(make):
    mechanism = make()
    q, v, tau = states_of(mechanism)
    a = np.array([fgd.forward_dynamics(mechanism, *state).a for state in zip(q, v, tau, strict=True)])
    here = ManyStates(mechanism, q, v, natural(mechanism).length)
    found, (J, _) = here.response(a[:, None]), here.closure_jacobian()
    assert np.abs(found.missed).max() < 1e-10 * found.missed_size.max()
    for k in range(len(q)):  # what is left of the balance are the forces of closure
        left = found.tau[k, 0] - tau[k]
        forces, *_ = np.linalg.lstsq(J[k].T, left)
        assert relative_error(J[k].T @ forces, left) < 1e-9


@pytest.mark.parametrize("seed", [2, 7, 14])
def test_mass_matrix_is_the_response_to_unit_accelerations(seed):
    mechanism = lossy(mixed_tree(seed), seed)
    q, v, _ = states_of(mechanism)
    here = ManyStates(mechanism, q, v, 1.0)
    units = np.broadcast_to(np.eye(mechanism.nv), (len(q), mechanism.nv, mechanism.nv))
    assert relative_error(here.mass_matrix(), here.response(units, still=True).tau) < 1e-12


# What a proof sees


@pytest.mark.parametrize("problem", PROBLEMS)
def test_small_errors_are_seen_in_every_problem(problem):
    mechanism, words = fgd.robots.puma560(), PROBLEMS[problem]
    kernel, asked = compile(mechanism, problem, **words), make_problem(mechanism, problem, **words)
    assert Trial(mechanism, asked).judge(kernel.gufunc).is_good
    assert len(kernel.outputs) == (2 if problem == "hybrid" else 1)

    def spoilt(*args, output, entry):
        results = kernel.gufunc(*args)
        results = results if isinstance(results, tuple) else (results,)
        results[output][:, entry] *= 1 + SMALL_ERROR  # of a matrix, a row
        return results

    for output in range(len(kernel.outputs)):
        for entry in (1, 5):
            proof = Trial(mechanism, asked).judge(lambda *args, o=output, e=entry: spoilt(*args, output=o, entry=e))
            assert not proof.holds
            assert proof.accuracy > SMALL_ERROR / 100


@pytest.mark.parametrize("output", OUTPUTS)
def test_small_errors_are_seen_in_every_output(output):
    mechanism = fgd.robots.puma560()
    words = {"outputs": [output], "external_wrenches": ["link2", "link6"]}
    kernel, asked = compile(mechanism, "forward", **words), make_problem(mechanism, "forward", **words)
    assert Trial(mechanism, asked).judge(kernel.gufunc).is_good
    assert not Trial(mechanism, asked).judge(lambda *args: kernel.gufunc(*args) * (1 + SMALL_ERROR)).holds


@pytest.mark.parametrize("output", ["a", "tau", "A[rocker]", "V[coupler]", "F[motor]", "F[pivot]", "F[ball]"])
@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_small_errors_are_seen_in_every_output_of_a_loop(problem, output):
    mechanism = spatial_four_bar()
    words = {"outputs": [output], "external_wrenches": ["rocker"]}
    kernel, asked = compile(mechanism, problem, **words), make_problem(mechanism, problem, **words)
    assert not Trial(mechanism, asked).explains(fgd.CompileError("not determined", variable=output))
    assert kernel.accuracy < GOOD
    if (problem, output) in (("forward", "tau"), ("inverse", "a")):
        assert kernel.accuracy == 0.0  # it is an argument
    assert not Trial(mechanism, asked).judge(lambda *args: kernel.gufunc(*args) * (1 + SMALL_ERROR)).holds


@pytest.mark.parametrize("make", [fgd.robots.five_bar, fgd.robots.four_bar, geared])
@pytest.mark.parametrize("problem", ["forward", "inverse", "iwim", "inverse_mass_matrix", "mass_matrix"])
def test_small_errors_of_closed_mechanisms_are_seen(make, problem):
    mechanism = make()
    kernel, asked = compile(mechanism, problem), make_problem(mechanism, problem)
    assert Trial(mechanism, asked).judge(kernel.gufunc).is_good
    assert not Trial(mechanism, asked).judge(lambda *args: kernel.gufunc(*args) * (1 + SMALL_ERROR)).holds


@pytest.mark.parametrize("tilt", [(0.0, 0.0, 0.0), (1e-7, 0.0, 0.0), (0.3, 0.7, -0.2)])
def test_small_errors_in_oblique_planes_are_seen(tilt):
    """Equations out of the plane are rounding, and must not count as closure that leaves nothing free."""
    mechanism = turned(fgd.robots.four_bar(), tilt)
    kernel, asked = compile(mechanism, "forward"), make_problem(mechanism, "forward")
    assert Trial(mechanism, asked).judge(kernel.gufunc).is_good
    assert not Trial(mechanism, asked).judge(lambda *args: kernel.gufunc(*args) * (1 + SMALL_ERROR)).holds


@pytest.mark.parametrize("make", [fgd.robots.four_bar, fgd.robots.rrr])
@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_a_proof_is_set_up_once(make, problem, no_cache, monkeypatch):
    """However many orderings are tried; and it takes the states at which pivots were judged, without drawing them."""
    trials, draws = [], []
    set_up, draw = compile_module._trial, sampled_states_module._with_errors
    monkeypatch.setattr(compile_module, "_trial", lambda *args: trials.append(args) or set_up(*args))
    monkeypatch.setattr(sampled_states_module, "_with_errors", lambda *args: draws.append(args) or draw(*args))
    compile(replace(make(), name="afresh"), problem)
    assert (len(trials), len(draws)) == (1, 1)


def test_what_nobody_can_judge_is_not_proved():
    mechanism = fgd.robots.puma560()
    trial = Trial(mechanism, make_problem(mechanism, "forward"))
    trial.system.condition = np.full(len(trial.states.q), np.inf)
    assert not trial.judge(lambda q, v, tau: tau).holds


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_a_light_finger_counts_like_the_heavy_arm(problem):
    mechanism = light_finger()
    kernel, asked = compile(mechanism, problem), make_problem(mechanism, problem)
    for entry, name in enumerate(mechanism.joint_names):
        factor = np.where(np.arange(3) == entry, 1 + SMALL_ERROR, 1.0)
        proof = Trial(mechanism, asked).judge(lambda *args, factor=factor: kernel.gufunc(*args) * factor)
        assert not proof.holds
        assert proof.worst.endswith(f"[{name}]")


@pytest.mark.parametrize(("length", "mass"), [(1e3, 1e6), (1e-3, 1e-6), (1e-3, 1e6)])
def test_units_do_not_matter(length, mass):
    mechanism = described_in(fgd.robots.puma560(), length, mass)
    kernel, asked = compile(mechanism, "forward"), make_problem(mechanism, "forward")
    assert kernel.accuracy < GOOD
    assert not Trial(mechanism, asked).judge(lambda *args: kernel.gufunc(*args) * (1 + SMALL_ERROR)).holds


def test_answers_of_nan_are_counted():
    mechanism = fgd.robots.puma560()
    kernel, asked = compile(mechanism, "inverse"), make_problem(mechanism, "inverse")
    proof = Trial(mechanism, asked).judge(lambda *args: np.nan * kernel.gufunc(*args))
    assert proof.silent == proof.regular
    assert not proof.holds
    assert "nan at 24 of 24 regular states" in str(proof)

    def one_missing(*args):
        result = kernel.gufunc(*args)
        result[-1] = np.nan
        return result

    assert Trial(mechanism, asked).judge(one_missing).silent == (0, 1)
    assert not Trial(mechanism, asked).judge(one_missing).holds


# What becomes of kernels that fail


def heavier(mechanism):
    return replace(mechanism, links=[replace(link, mass=link.mass * (1 + 1e-5)) for link in mechanism.links])


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_a_wrong_frame_is_found_and_the_careful_route_rescues(no_cache, monkeypatch, problem):
    mechanism = fgd.robots.puma560()
    expected = compile(mechanism, problem)
    original = trace_module.reframed

    def wrong(given):
        found = original(given)
        return replace(found, mechanism=heavier(found.mechanism))

    monkeypatch.setattr(trace_module, "reframed", wrong)
    kernel = compile(mechanism, problem)
    assert kernel.accuracy < GOOD
    states = [array.copy() for array in states_of(mechanism)]
    assert relative_error(kernel(*states), expected(*states)) < 1e-12
    assert kernel.program().operations == kernel.operations  # looked at as it was made


def test_a_program_that_one_route_refuses_comes_from_another(no_cache, monkeypatch):
    original = trace_module.regrouped

    def refused(mechanism, **_):
        raise fgd.CompileError("Two different values were taken for one.")

    expected = compile(fgd.robots.rrr(), "inverse")
    monkeypatch.setattr(trace_module, "regrouped", refused)
    kernel = compile(fgd.robots.rrr(), "inverse")
    monkeypatch.setattr(trace_module, "regrouped", original)
    assert kernel.accuracy < GOOD
    assert kernel.operations.total > expected.operations.total


def test_a_kernel_that_no_route_mends_is_refused(no_cache, monkeypatch):
    original = trace_module.tidied
    monkeypatch.setattr(trace_module, "tidied", lambda mechanism: heavier(original(mechanism)))
    with pytest.raises(fgd.CompileError, match=WORDS_OF_NO_ROUTE) as caught:
        compile(fgd.robots.rrr(), "inverse")
    assert caught.value.details["proof"].accuracy > ALLOWED


def test_without_a_word_about_the_ordering_another_one_is_found(no_cache, monkeypatch):
    """Where the classical orderings have no safe pivots, and the equations have an answer."""
    attempt = compile_module._attempt

    def unless_classical(trial, mechanism, problem, ordering, *others):
        if ordering in ("aba", "crba"):
            raise fgd.CompileError("The ordering has no safe pivot.")
        return attempt(trial, mechanism, problem, ordering, *others)

    monkeypatch.setattr(compile_module, "_attempt", unless_classical)
    mechanism = fgd.robots.five_bar()
    assert fgd.compile(mechanism, "forward").ordering.name == "colamd"
    with pytest.raises(fgd.CompileError, match="no safe pivot"):
        fgd.compile(mechanism, "forward", ordering="aba")


@pytest.mark.parametrize("ordering", ["metis", "colamd", "min_degree", "min_fill", "natural"])
def test_careful_routes_have_orderings_of_variables_that_stand_alone(ordering):
    """Where all motion is given, accelerations of links share no equation: METIS wrote beyond its memory."""
    mechanism = fgd.robots.rrr()
    traced = trace_module.trace(mechanism, make_problem(mechanism, "inverse"), ordering, CAREFUL[-1])
    assert len(set(traced.ordering.variables)) == 9


def test_refusals_keep_their_own_words():
    with pytest.raises(fgd.CompileError, match="is not determined"):
        compile(fgd.robots.five_bar(), "forward", outputs=["F[tip]"])


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_products_of_inertia_of_a_tiny_arm_are_right_or_refused(problem):
    inertia = np.diag([2.0, 3.0, 4.0]) * 1e-12
    inertia[0, 1] = inertia[1, 0] = 2.0**-61
    links = [fgd.Link("base"), *(fgd.Link(name, 1e-6, (1e-3, 0, 0), inertia) for name in ("upper", "lower"))]
    joints = [
        fgd.Joint("shoulder", "revolute", "base", "upper"),
        fgd.Joint("elbow", "revolute", "upper", "lower", shifted(2e-3, 0, 0), axis=(0, 1, 0)),
    ]
    mechanism = fgd.Mechanism("tiny", links, joints)
    try:
        kernel = compile(mechanism, problem)
    except fgd.CompileError:
        return
    q, v, given = states_of(mechanism)
    solve = fgd.forward_dynamics if problem == "forward" else fgd.inverse_dynamics
    given *= 1e-12 if problem == "forward" else 1.0
    for k in range(len(q)):
        solution = solve(mechanism, q[k], v[k], given[k])
        assert relative_error(kernel(q[k], v[k], given[k]), getattr(solution, kernel.outputs[0])) < 1e-8


# Where the figure goes


def test_accuracy_survives_cache_and_pickling(tmp_path, monkeypatch):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path))
    first = compile(fgd.robots.rrr(), "forward")
    assert 0 < first.accuracy < GOOD
    calls = []
    monkeypatch.setattr(compile_module, "Trial", calls.append)
    assert compile(fgd.robots.rrr(), "forward").accuracy == first.accuracy
    assert pickle.loads(pickle.dumps(first)).accuracy == first.accuracy
    assert not calls
    assert "accuracy" not in repr(first)


def test_the_cheap_route_makes_all_changes():
    assert Route(reframe=True, regroup=True, split=True, seed=0) == CHEAP


@pytest.mark.parametrize("name", ["puma560", "humanoid", "four_bar", "stewart", "chain"])
def test_proofs_are_cheap(name, monkeypatch):
    """A few tens of states, fewer of large trees, and a handful of passes through the equations."""
    mechanism = fgd.robots.pendulum(300) if name == "chain" else getattr(fgd.robots, name)()
    responses = []
    response = ManyStates.response
    monkeypatch.setattr(ManyStates, "response", lambda *a, **k: responses.append(1) or response(*a, **k))
    trial = Trial(mechanism, make_problem(mechanism, "forward"))
    trial.judge(lambda q, v, tau: np.zeros(v.shape))
    states = len(trial.states.q)
    assert states <= (90 if mechanism.is_closed_kind else 24)
    assert states * mechanism.nv <= max(1600, 8 * mechanism.nv) or mechanism.is_closed_kind
    assert len(responses) <= 6


@pytest.mark.parametrize("output", ["a", "A[right_distal]", "V[right_distal]", "dA[right_distal]/da"])
def test_given_motion_is_proved_where_torques_are_shared_in_many_ways(output, no_cache):
    """Four motors for two freedoms: which torques is open, which motion is not."""
    mechanism = fgd.robots.five_bar()
    words = {"actuated": mechanism.joint_names, "outputs": [output]}
    assert compile(mechanism, "inverse", **words).accuracy < GOOD
    with pytest.raises(fgd.CompileError, match=r"tau\[.*\] is not determined"):
        compile(mechanism, "inverse", actuated=mechanism.joint_names)


@pytest.mark.parametrize(("wrench", "determined"), [("F[hang]", True), ("F[shoulder]", False), ("F[pin]", False)])
def test_wrenches_beside_loops_that_repeat_themselves_are_determined(wrench, determined):
    """A flat four-bar holds its links in the plane three times over; a bob that hangs from it knows nothing of that."""
    four_bar = fgd.robots.four_bar()
    bob = fgd.Link("bob", 1.0, (0.0, 0.0, -0.1), 0.01 * np.eye(3))
    hang = fgd.Joint("hang", "revolute", four_bar.links[-1].name, "bob", axis=(1, 0, 0))
    names = {"F[shoulder]": f"F[{four_bar.joint_names[0]}]", "F[pin]": f"F[{four_bar.loops[0].name}]"}
    around = fgd.Loop("around", "floating", four_bar.base, "bob")  # holds nothing
    loops = (*four_bar.loops, around)
    mechanism = replace(four_bar, links=(*four_bar.links, bob), joints=(*four_bar.joints, hang), loops=loops)
    asked = names.get(wrench, wrench)
    trial = Trial(mechanism, make_problem(mechanism, "forward", outputs=["a", asked]))
    assert not trial.system.independent
    assert trial.explains(fgd.CompileError("not determined", variable=asked)) != determined
    for other in ("a[hang]", "F[nobody asked]"):
        assert not trial.explains(fgd.CompileError("not determined", variable=other))
    unasked = Trial(mechanism, make_problem(mechanism, "forward"))
    assert not unasked.explains(fgd.CompileError("no safe pivot", variable=asked))


def test_torques_of_motions_that_move_no_mass_are_proved(no_cache):
    """Files without masses have torques all the same, if no accelerations: those given are as good as caused ones."""
    arm = fgd.robots.rrr()
    first, second, third = arm.joint_names
    heavy = {arm.base, arm.joints[0].child}
    mechanism = replace(
        arm,
        links=[link if link.name in heavy else fgd.Link(link.name) for link in arm.links],
        joints=[replace(joint, actuated=joint.name != third) for joint in arm.joints],
        couplings=[fgd.Coupling("gear", third, second, ratio=-1.0)],
    )
    kernel = fgd.compile(mechanism, "inverse")
    assert kernel.accuracy < ALLOWED
    q, v = mechanism.random_state(0)
    a = fgd.constraints(mechanism, q, v).complete_acceleration(np.array([1.0, -2.0, 0.0]), given=[first, second])
    assert relative_error(kernel(q, v, a), fgd.inverse_dynamics(mechanism, q, v, a).tau) < ALLOWED


@pytest.mark.parametrize(("rounding", "holds"), [(1e-14, True), (1e-9, False)])
def test_what_nothing_moves_is_judged_by_what_is_pushed(rounding, holds):
    """The responses of a body that touches nothing are zero up to the rounding of those of a loop beside it."""
    closed = fgd.robots.five_bar()
    puck = fgd.Link("puck", 1.5, (0.0, -0.2, 0.0), np.diag([0.05, 0.03, 0.07]))
    free = fgd.Joint("free", "floating", "base", "puck")
    mechanism = replace(closed, links=(*closed.links, puck), joints=(*closed.joints, free))
    kernel = fgd.compile(mechanism, "iwim", actuated=["left_shoulder"])
    answers = lambda q: kernel(q) + rounding * np.abs(kernel(q)).max() * (np.arange(10) >= 4)[:, None]  # noqa: E731
    trial = Trial(mechanism, make_problem(mechanism, "iwim", actuated=["left_shoulder"]))
    assert trial.judge(answers).holds == holds
