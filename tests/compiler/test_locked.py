"""Kernels of mechanisms whose loops lock joints: what is zero there, and what only looks as if it were not."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.guards import mode_guards
from factorgraph_dyn.compiler.proof.plain_system import _joint_scales
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import symbols
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.model.sizes.units import measured, natural
from factorgraph_dyn.motion.random_states import assembly_modes
from factorgraph_dyn.spatial import pose, rotation_about

X, Y, Z = np.eye(3)
AGREES = 1e-9


def body(name, mass=1.0, inertia=1.0):
    return fgd.Link(name, mass, (0.0, 0.0, 0.0), inertia * np.eye(3))


def welded_slide(length):
    """A slide that a weld keeps where it is, on a carriage and an arm that move."""
    oblique = rotation_about(np.array([0.36, 0.48, 0.8]), 1.1)
    placement = pose(oblique, length * np.array([0.3, -0.7, 0.5]))
    end = pose(rotation_about(np.array([0.48, -0.6, 0.64]), 2.1), length * np.array([0.4, -0.35, -0.15]))
    there = placement @ pose(np.eye(3), 0.6 * length * Z) @ end
    links = (fgd.Link("base"), *(body(name, 1.0, length**2) for name in ("carriage", "arm", "slider")))
    joints = (
        fgd.Joint("carry", "prismatic", "base", "carriage", pose(oblique.T, np.zeros(3))),
        fgd.Joint("turn", "revolute", "carriage", "arm", pose(oblique, np.zeros(3))),
        fgd.Joint("slide", "prismatic", "arm", "slider", placement),
    )
    return fgd.Mechanism("welded", links, joints, (fgd.Loop("weld", "fixed", "slider", "arm", end, there),))


def triangle_beside_a_light_link():
    """Three bars that cannot move, on a link that carries a light one, too."""
    links = (fgd.Link("base"), *map(body, ("body", "left", "right")), body("light", 0.4, 0.02), body("tip"))
    joints = (
        fgd.Joint("turn", "revolute", "base", "body"),
        fgd.Joint("swing", "revolute", "body", "light", pose(rotation_about(Z, 3.14), np.array([0.2, -0.4, 0.0]))),
        fgd.Joint("a", "revolute", "body", "left", pose(np.eye(3), np.array([-0.5, -0.4, 0.0]))),
        fgd.Joint("b", "revolute", "left", "right", pose(rotation_about(Z, np.pi / 2), np.array([-0.5, -0.2, 0.0]))),
        fgd.Joint(
            "float", "planar", "light", "tip", pose(rotation_about(Z, 3.14), np.array([0.0, 0.3, 0.0])), actuated=False
        ),
    )
    ends = (
        pose(np.eye(3), np.array([-0.3, 0.0, 0.0])),
        pose(rotation_about(Z, 2.49), np.array([-0.36317646996158076, -1.110542000570615, 0.0])),
    )
    return fgd.Mechanism("triangle", links, joints, (fgd.Loop("end", "revolute", "right", "body", *ends),))


def weld_across_a_tilt(tilt):
    """Two arms on a turning body that a weld holds still, one about an axis that nearly lies in a row of the weld."""
    shoulder = pose(rotation_about(Y, -np.pi / 2), 0.2 * Z)
    other = pose(rotation_about(Y, np.pi / 2), np.array([0.0, 0.2, -0.4]))
    axis = np.array([1.0, 0.0, tilt]) / np.hypot(1.0, tilt)
    end = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 2.0), np.array([-0.4, 0.4, 0.2]))
    there = pose(rotation_about(Z, 1.0), np.zeros(3)) @ np.linalg.inv(shoulder)
    there = there @ other @ pose(rotation_about(axis, -0.4), np.zeros(3)) @ end
    links = (fgd.Link("base"), body("body"), body("arm"), body("wheel", 4.0, 0.1), fgd.Link("other"))
    joints = (
        fgd.Joint("turn", "revolute", "base", "body", pose(rotation_about(X, np.pi), np.array([-0.2, 0.6, 0.3]))),
        fgd.Joint("swing", "revolute", "body", "arm", shoulder),
        fgd.Joint("roll", "revolute", "base", "wheel", pose(np.eye(3), 0.3 * Y), axis=-Y),
        fgd.Joint("tilted", "revolute", "body", "other", other, axis=axis),
    )
    gear = fgd.Coupling("gear", "tilted", "roll", -120.0, 95.6)
    weld = fgd.Loop("weld", "fixed", "other", "arm", end, there)
    return fgd.Mechanism("tilted", links, joints, (weld,), (gear,), gravity=np.zeros(3))


def tilted_lock(tilt):
    """A joint that a ball holds still, on a link that is turned by a right angle and a little more."""
    turned = rotation_about(Z, 2.3) @ rotation_about(X, np.pi / 2 + tilt)
    links = (fgd.Link("base"), *map(body, ("arm", "wrist", "side", "slider", "held")))
    joints = (
        fgd.Joint("turn", "revolute", "base", "arm"),
        fgd.Joint("bend", "revolute", "arm", "wrist", pose(rotation_about(X, 1.0), np.zeros(3)), actuated=False),
        fgd.Joint("slide", "prismatic", "wrist", "slider"),
        fgd.Joint("fixed", "fixed", "wrist", "side", pose(turned, np.zeros(3))),
        fgd.Joint("hold", "revolute", "side", "held", axis=(0.0, -1.0, 0.0)),
    )
    end = np.array([-0.1, 0.6, 0.1])
    ball = pose(np.eye(3), turned @ rotation_about(np.array([0.0, -1.0, 0.0]), 0.9) @ end)
    loop = fgd.Loop("ball", "spherical", "held", "wrist", pose(np.eye(3), end), ball)
    couplings = (fgd.Coupling("gear", "hold", "bend", 9.0, -4.5), fgd.Coupling("rack", "slide", "hold", -1.0, 1.9))
    return fgd.Mechanism("tilted", links, joints, (loop,), couplings)


def flap_on_a_plane():
    """A flap whose hinge is at rounded right angles to the arm's, and lies on a plane of the arm: it cannot turn."""
    nearly_right = rotation_about(X, 7.346e-6) @ rotation_about(Y, 5.36e-8) @ rotation_about(Z, np.pi / 2)
    placement = pose(nearly_right, np.array([0.28, 0.0, -0.24]))
    end = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 2.0), np.array([-0.18, -0.11, -0.19]))
    links = (fgd.Link("base"), body("arm", 1.0, 0.03), body("flap", 1.2, 0.06))
    joints = (
        fgd.Joint("turn", "revolute", "base", "arm", pose(rotation_about(Z, 0.5), np.zeros(3)), Y),
        fgd.Joint("hinge", "revolute", "arm", "flap", placement, Y),
    )
    plane = fgd.Loop("plane", "planar", "flap", "arm", end, placement @ end, (0.59, 0.05, 1.84))
    return fgd.Mechanism("flap", links, joints, (plane,))


def welded_chain(tilt):
    """Three joints, at rounded right angles to each other, whose last link is welded to the first."""
    places = (
        pose(rotation_about(Y, np.pi / 2 + tilt) @ rotation_about(Z, 2.1), np.zeros(3)),
        pose(rotation_about(X, np.pi) @ rotation_about(Z, 0.5), -0.5 * X),
        pose(rotation_about(Y, np.pi / 2 - 0.04 * tilt), -0.3 * X),
    )
    links = (fgd.Link("base"), *map(body, ("arm", "first", "second", "third")))
    joints = (
        fgd.Joint("turn", "revolute", "base", "arm"),
        fgd.Joint("a", "revolute", "arm", "first", places[0]),
        fgd.Joint("b", "prismatic", "first", "second", places[1]),
        fgd.Joint("c", "revolute", "second", "third", places[2]),
    )
    end = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 2.0), np.array([-0.6, 0.4, 0.7]))
    slid = places[0] @ places[1] @ pose(np.eye(3), 0.9 * Z)
    there = slid @ places[2] @ pose(rotation_about(Z, 0.3), np.zeros(3)) @ end
    return fgd.Mechanism("chain", links, joints, (fgd.Loop("weld", "fixed", "third", "arm", end, there),))


def nearly_parallel_hinges(tilt):
    """Two links on hinges at one place, at right angles to the base's, that a weld holds still."""
    first = pose(rotation_about(Y, np.pi / 2), np.zeros(3))
    second = first @ pose(rotation_about(Y, tilt) @ rotation_about(Z, 0.7), np.zeros(3))
    links = (fgd.Link("base"), *map(body, ("body", "left", "right")))
    joints = (
        fgd.Joint("turn", "revolute", "base", "body"),
        fgd.Joint("a", "revolute", "body", "left", first),
        fgd.Joint("b", "revolute", "body", "right", second),
    )
    weld = fgd.Loop("weld", "fixed", "right", "left", np.eye(4), np.linalg.inv(first) @ second)
    return fgd.Mechanism("parallel", links, joints, (weld,))


def ball_on_an_axis(mass):
    """A light link that turns about a ball, which keeps two heavy links from moving."""
    spin = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 1.1), np.array([-0.3, 0.1, 0.2]))
    a = pose(rotation_about(np.array([0.48, -0.6, 0.64]), 2.1), np.array([0.4, -0.3, 0.1]))
    b = pose(rotation_about(np.array([0.6, 0.0, 0.8]), 0.7), np.array([-0.3, 0.2, -0.5]))
    lower = a @ pose(rotation_about(Z, 0.4), np.zeros(3)) @ b @ pose(rotation_about(Z, -0.8), np.zeros(3))
    links = (fgd.Link("base"), body("light", 1.0, 1e-4), body("upper", mass, mass), body("lower", mass, mass))
    joints = (
        fgd.Joint("spin", "revolute", "base", "light", spin),
        fgd.Joint("a", "revolute", "base", "upper", a),
        fgd.Joint("b", "revolute", "upper", "lower", b),
    )
    ball = fgd.Loop("ball", "spherical", "light", "lower", np.eye(4), np.linalg.inv(lower) @ spin)
    return fgd.Mechanism("ball", links, joints, (ball,))


@pytest.mark.parametrize("length", [1e-6, 1e-3, 1.0, 1e3])
def test_special_states_move_at_speeds_of_the_mechanisms_own(length):
    mechanism = welded_slide(length)
    states = sampled_states(mechanism)
    carry, _, slide = np.abs(states.v[: states.special] / natural(mechanism).v / states.rate).T
    assert 0.1 < np.median(carry) < 10.0
    assert slide.max() < 1e-13


@pytest.mark.parametrize("length", [1e-6, 1.0])
@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd"])
def test_a_slide_that_a_weld_holds(length, ordering):
    kernel = fgd.compile(welded_slide(length), "hybrid", ordering=ordering)
    assert kernel.accuracy < AGREES


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd"])
def test_motors_of_locked_joints_move_nothing(ordering):
    """Proofs know that, too: rounding of closure's directions is not taken for an answer."""
    mechanism = triangle_beside_a_light_link()
    kernel = fgd.compile(mechanism, "iwim", ordering=ordering)
    assert kernel.accuracy < 1e-11
    q, _ = mechanism.random_state(0)
    np.testing.assert_allclose(kernel(q), fgd.iwim(mechanism, q), atol=1e-10)


@pytest.mark.parametrize("tilt", [0.0, 3.8e-8, 1e-6, 1e-3])
@pytest.mark.parametrize("ordering", ["rnea", "aba", "colamd"])
def test_squares_of_tilts_are_no_pivots(tilt, ordering):
    """Directions that are orthogonal to rounding leave the square of a tilt behind, which determines nothing."""
    mechanism = tilted_lock(tilt)
    kernel = fgd.compile(mechanism, "inverse", ordering=ordering, actuated=["turn"], outputs=["A[side]", "tau"])
    q, v = mechanism.random_state(0)
    a = np.array([1.3, 0.0, 0.0, 0.0])
    found = dict(zip(kernel.outputs, kernel(q, v, a), strict=True))
    expected = fgd.inverse_dynamics(mechanism, q, v, a, actuated=["turn"])
    np.testing.assert_allclose(found["tau"], expected.tau, atol=AGREES)
    np.testing.assert_allclose(found["A[side]"], expected.accelerations["side"], atol=AGREES)


def test_locked_groups_have_their_modes_and_moving_ones_none_beside_home():
    assert [len(modes) for modes in assembly_modes(triangle_beside_a_light_link())] == [2]
    assert [len(modes) for modes in assembly_modes(fgd.robots.four_bar())] == [1]


def test_kernels_refuse_assembly_modes_that_nobody_tried():
    """Samples of one mode: that one is known, whole turns from it, too, and the other is not."""
    mechanism = triangle_beside_a_light_link()
    own = measured(mechanism)
    home, other = (mode * own.q for mode in assembly_modes(mechanism)[0])
    samples = np.tile(home, (12, 1))
    samples[:, [0, 1]] += np.arange(12.0)[:, None]
    states = np.array([home, other, home + 2 * np.pi])
    tape = Tape(samples=3)
    q = symbols(tape, [tape.input(f"q[{k}]", column) for k, column in enumerate(states.T)])
    (guard,) = mode_guards(tape, mechanism, q, samples, own)
    known = np.abs(SampledTape(tape).values(guard.ref)) <= guard.threshold
    assert known.tolist() == [True, False, True]


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd"])
def test_forces_that_nothing_determines_stay_out_of_what_moves(ordering):
    """They enter by products of tilts, 1e-13, that cancel what has cancelled to rounding before."""
    mechanism = flap_on_a_plane()
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    q, v = mechanism.random_state(0)
    found, expected = kernel(q, v, [1.0, 2.0]), fgd.forward_dynamics(mechanism, q, v, [1.0, 2.0]).a
    np.testing.assert_allclose(found, expected, atol=AGREES)
    assert abs(found[0]) > 1.0


@pytest.mark.parametrize("ordering", ["natural", "aba", "colamd"])
def test_products_of_tilts_are_as_inexact_as_the_sums_that_leave_them(ordering):
    """Right angles written as 1.5708, an axis that leans by 1e-8: residues know 2e-14 of a force to be left."""
    seat = pose(rotation_about(X, 1.5708) @ rotation_about(Z, 1.5708), np.array([0.1, 0.0, -0.6]))
    joints = (
        fgd.Joint("glide", "planar", "base", "plate"),
        fgd.Joint("hinge", "revolute", "plate", "flap", seat, axis=X + 1e-8 * Z),
    )
    weld = fgd.Loop("weld", "fixed", "flap", "plate", np.eye(4), seat)
    links = (fgd.Link("base"), body("plate"), body("flap"))
    mechanism = fgd.Mechanism("plate", links, joints, (weld,), gravity=(0.0, 0.0, 0.0))
    found = fgd.compile(mechanism, "forward", ordering=ordering)([0.0] * 4, [0.0] * 4, [2.0, 4.0, 0.0, 1.0])
    center = [found[0], found[1] + 0.05 * found[2]]  # of mass, halfway between plate and flap
    np.testing.assert_allclose(center, [1.0, 2.0], atol=AGREES)


@pytest.mark.parametrize("ordering", ["natural", "min_fill", "colamd"])
def test_of_forces_that_repeat_each_other_those_stay_open_that_a_row_is_not_about(ordering):
    """A force of which a row has 1e-5 beside others of the same joint would have to be 1e5 times as large."""
    assert fgd.compile(welded_chain(1e-5), "forward", ordering=ordering).accuracy < 1e-11


def test_rounding_of_gravity_at_what_never_moves_contradicts_no_accelerations():
    """A ball between the base and a bracket that is fixed to it: seen from either side gravity is the same."""
    oblique = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 1.1), np.array([0.3, -0.7, 0.5]))
    end = pose(rotation_about(np.array([0.48, -0.6, 0.64]), 2.1), np.zeros(3))
    joints = (
        fgd.Joint("turn", "revolute", "base", "arm", axis=X),
        fgd.Joint("rest", "fixed", "base", "bracket", oblique),
    )
    ball = fgd.Loop("ball", "spherical", "bracket", "base", end, oblique @ end)
    links = (fgd.Link("base"), body("arm"), body("bracket"))
    mechanism = fgd.Mechanism("bracket", links, joints, (ball,), gravity=(4.1, 5.2, -3.6))
    kernel = fgd.compile(mechanism, "inverse", actuated=["turn"])
    np.testing.assert_allclose(kernel([0.3], [0.0], [2.0]), [2.0], rtol=AGREES)


@pytest.mark.parametrize("rounding", [0.0, 1e-33])
def test_squares_of_rounding_are_no_inertia_to_measure_by(rounding):
    """A needle has them about itself where its axis is rounded; a light one on a heavy arm has its own."""
    links = (fgd.Link("base"), body("arm"), fgd.Link("needle", 1e-6, inertia=np.diag([1e-12, 1e-12, 0.0])))
    joints = (fgd.Joint("turn", "revolute", "base", "arm"), fgd.Joint("spin", "universal", "arm", "needle"))
    mechanism = fgd.Mechanism("needle", links, joints)
    scales = _joint_scales(mechanism, np.diag([1.0, rounding, 1e-12])[None])
    np.testing.assert_allclose(scales, [[1.0, 1.0, 1e6]], rtol=0.5)


@pytest.mark.parametrize("tilt", [1e-3, 1e-4, 1e-6])
def test_rows_of_a_weld_in_which_most_cancels_do_not_spoil_the_proof(tilt):
    kernel = fgd.compile(weld_across_a_tilt(tilt), "forward", ordering="aba")
    assert kernel.accuracy < AGREES


@pytest.mark.parametrize("tilt", [1e-2, 1e-3, 1e-4])
@pytest.mark.parametrize("ordering", ["rnea", "aba", "crba", "colamd"])
def test_hinges_that_a_weld_holds_are_where_they_are_as_far_as_their_axes_tell(tilt, ordering):
    """A thousandth of a radian apart, they are a thousand times less exact than the weld is closed."""
    kernel = fgd.compile(
        nearly_parallel_hinges(tilt), "inverse", actuated=["turn"], outputs=["F[turn]"], ordering=ordering
    )
    assert kernel.accuracy < AGREES


@pytest.mark.parametrize("mass", [1.0, 1e3, 1e5])
def test_forces_of_loops_without_a_lever_are_proved_up_to_its_rounding(mass):
    assert fgd.compile(ball_on_an_axis(mass), "forward", ordering="aba").accuracy < 1e-11
