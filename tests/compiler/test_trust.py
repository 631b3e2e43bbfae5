"""Kernels of robots that nobody tuned for: constants, frames, pivots and loops that once gave wrong numbers."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.describe.reframe import reframed
from factorgraph_dyn.compiler.sampled_states import sampled_states
from factorgraph_dyn.compiler.tape import field
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.model.sizes.units import described_in, natural
from factorgraph_dyn.motion.closed_places import freedoms
from factorgraph_dyn.motion.closing import close_freely
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.motion.random_states import closed_at_zero
from factorgraph_dyn.spatial import inverse_pose, pose, rotation_about
from tests.helpers import relative_error

AGREES = 1e-11


def assert_forward_agrees(mechanism, states=6, *, tolerance=AGREES, ordering=None, seed=0):
    """The forward kernel's answers are those of the graph."""
    rng = np.random.default_rng(seed)
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    unit = natural(mechanism)
    for _ in range(states):
        q, v = mechanism.random_state(rng)
        tau = np.where(mechanism.torque_entries(), rng.normal(size=mechanism.nv), 0.0) * unit.tau
        expected = fgd.forward_dynamics(mechanism, q, v, tau).a / unit.v
        np.testing.assert_allclose(kernel(q, v, tau) / unit.v, expected, atol=tolerance * np.abs(expected).max())


# ---- constants


@pytest.mark.parametrize("power", [31, 60, 61, 122, 183])
def test_powers_of_two_are_different_constants(power):
    assert field.residue_of_float(2.0**-power) != 1
    tape = Tape()
    assert tape.constant(2.0**-power) != tape.constant(1.0)


def test_constants_with_one_residue_and_two_values_stay_two():
    tape = Tape()
    one = tape.constant(1.25, residue=12345)
    other = tape.constant(3.5, residue=12345)
    assert one != other
    assert (tape.constants[one], tape.constants[other]) == (1.25, 3.5)
    assert tape.constant(1.25 * (1 + 1e-15), residue=12345) == one


def test_two_has_a_huge_order():
    half = (field.PRIME - 1) // 2
    assert pow(2, half, field.PRIME) == 1  # a square, so that the sine of 45 degrees has a residue
    assert all(pow(2, half // factor, field.PRIME) != 1 for factor in range(2, 10_000) if half % factor == 0)
    assert all(half % factor for factor in range(2, 10_000))


# ---- frames


@pytest.mark.parametrize("tilt", [1e-4, 1e-6, 4e-8, 3e-9])
def test_frames_of_nearly_parallel_axes_stay_near(tilt):
    joints, links = [], [fgd.Link("base")]
    for k in range(4):
        links.append(fgd.Link(f"link{k}", 1.0 + k, (0.1, 0.02, 0.03 * k), np.diag([0.02, 0.03, 0.01])))
        R = rotation_about(np.array([1.0, 0.0, 0.0]), tilt * (-1) ** k)
        joints.append(fgd.Joint(f"joint{k}", "revolute", links[k].name, f"link{k}", pose(R, np.array([0.3, 0.2, 0.1]))))
    mechanism = fgd.Mechanism("nearly_planar", tuple(links), tuple(joints))
    far = max(np.abs(np.asarray(joint.placement)[:3, 3]).max() for joint in reframed(mechanism).mechanism.joints)
    assert far < 10 * natural(mechanism).length
    assert_forward_agrees(mechanism)


@pytest.mark.parametrize("tilt", [4e-8, 1e-12])
def test_small_tilts_are_kept(tilt):
    """A joint that leans by so little has an axis of exactly 1 in its largest entry."""
    arm = fgd.Mechanism(
        "leaning",
        (fgd.Link("base"), fgd.Link("arm", 1.0, (0.0, 0.0, 1.0), np.diag([1.0, 1.0, 1e-9]))),
        (fgd.Joint("lean", "revolute", "base", "arm", axis=(tilt, 0.0, 1.0), armature=1e-12),),
        gravity=(0.0, -9.81, 0.0),
    )
    tau = fgd.compile(arm, "inverse")(np.zeros(1), np.zeros(1), np.zeros(1))
    assert tau[0] == pytest.approx(-9.81 * tilt, rel=1e-9, abs=0.0)


def test_rotations_are_made_rotations():
    """Seven digits of a rotation make one to rounding, so that R^T is R^-1 in every equation."""
    R = np.round(rotation_about(np.array([1.0, 2.0, 3.0]) / np.sqrt(14), 0.7), 7)
    joint = fgd.Joint("j", "revolute", "a", "b", pose(R, np.zeros(3)))
    made = np.asarray(joint.placement)[:3, :3]
    assert np.abs(made @ made.T - np.eye(3)).max() < 4e-16
    assert np.abs(made - R).max() < 1e-6
    planar = np.array([[0.8, -0.60000001, 0.0], [0.60000001, 0.8, 0.0], [0.0, 0.0, 1.0]])
    made = np.asarray(fgd.Joint("j", "revolute", "a", "b", pose(planar, np.zeros(3))).placement)[:3, :3]
    assert np.count_nonzero(made) == 5


# ---- rounding and values


def test_constants_of_the_same_digits_are_as_exact_as_the_most_exact():
    for errors in ((1e-12, 0.0), (0.0, 1e-12)):
        tape = Tape()
        nodes = {tape.constant(5e-12, error=error) for error in errors} | {tape.constant(5e-12)}
        assert tape.constant_error(nodes.pop()) < 1e-26
        assert not nodes
    tape = Tape()
    crumb = tape.constant(5e-12, error=1e-12)
    assert tape.constant(5e-12) == crumb  # as equations ask for it, who know no errors
    assert tape.constant_error(crumb) == 1e-12


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_a_crumb_beside_a_large_inertia_leaves_small_ones_alone(problem):
    four_bar = fgd.robots.four_bar()
    inertia = np.diag([1e3, 2e3, 2.5e3])
    inertia[0, 1] = inertia[1, 0] = 5e-12
    ship, wheel = fgd.Link("ship", 1.0, inertia=inertia), fgd.Link("wheel", inertia=np.diag([5e-12] * 3))
    sea = fgd.Joint("sea", "floating", four_bar.base, "ship")
    spin = fgd.Joint("spin", "revolute", "rocker", "wheel", axis=(0, -1, 0))
    mechanism = replace(four_bar, links=(*four_bar.links, ship, wheel), joints=(*four_bar.joints, sea, spin))
    assert fgd.compile(mechanism, problem).accuracy < AGREES


def test_rounding_is_told_from_values_in_any_units():
    for unit in (1e-200, 1e-160, 1e-12, 1.0, 1e12, 1e160, 1e200):
        tape = Tape(samples=8)
        samples = SampledTape(tape)
        x = tape.input("x", np.linspace(1.0, 2.0, 8))
        third = tape.mul(x, tape.constant(unit / 3.0))
        thrice = tape.add(tape.add(third, third), third)
        noise = tape.add(thrice, -tape.mul(x, tape.constant(unit * (1.0 + 3e-16))))
        small = tape.mul(x, tape.constant(1e-13 * unit))
        assert samples.is_rounding(noise)
        assert not samples.is_rounding(small)
        assert not samples.is_rounding(tape.add(tape.mul(x, tape.constant(unit)), small))


@pytest.mark.slow
@pytest.mark.parametrize("robot", ["four_bar", "five_bar", "delta"])
@pytest.mark.parametrize(("mass", "length"), [(1e-3, 1e-2), (1e-6, 1e-2), (1e-9, 1e-6), (1e6, 1e3)])
def test_small_and_large_linkages(robot, mass, length):
    mechanism = described_in(fgd.robots.BUILT_IN[robot](), 1 / length, 1 / mass)
    assert_forward_agrees(mechanism, 3, tolerance=1e-9)


def test_repeated_joints_constrain_nothing():
    """A loop beside a joint of the same axis leaves nothing but rounding of its equations."""
    R = rotation_about(np.array([0.6, 0.0, 0.8]), 1.1)
    place = pose(R, np.array([0.2, -0.2, -0.7]))
    mechanism = fgd.Mechanism(
        "hinge",
        (fgd.Link("base"), fgd.Link("door", 1.0, (0.1, 0.3, 0.0), np.eye(3))),
        (fgd.Joint("upper", "revolute", "base", "door", place),),
        (fgd.Loop("lower", "revolute", "door", "base", successor_placement=place),),
    )
    assert fgd.iwim(mechanism, np.zeros(1)) == pytest.approx(fgd.iwim(mechanism.tree, np.zeros(1)))
    assert_forward_agrees(mechanism)
    assert fgd.compile(mechanism, "iwim")(np.zeros(1)) == pytest.approx(fgd.iwim(mechanism.tree, np.zeros(1)))


def test_fingers_light_beside_their_motors():
    """Links of grams behind gears whose armature is a thousand times their inertia, in a planar loop of balls."""
    light = fgd.robots.four_bar()
    links = tuple(replace(link, mass=1e-3 * link.mass, inertia=1e-3 * np.asarray(link.inertia)) for link in light.links)
    mechanism = replace(
        light,
        links=links,
        joints=tuple(replace(joint, armature=1.0) for joint in light.joints),
        loops=tuple(replace(loop, kind="spherical") for loop in light.loops),
    )
    assert_forward_agrees(mechanism)


# ---- long chains


def operations(mechanism):
    return trace(mechanism, make_problem(mechanism, "forward"), "aba").program.operations.total


def test_large_trees_compile():
    assert operations(fgd.robots.random_tree(60, seed=1)) < 620 * 60


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(10))
def test_large_trees_are_proved(seed):
    for links in (20, 40, 60):
        mechanism = fgd.robots.random_tree(links, seed=seed)
        kernel = fgd.compile(mechanism, "forward")
        assert kernel.operations.total < 620 * links
        assert kernel.accuracy < 1e-11


def test_operations_of_chains_grow_linearly():
    """Beyond the first links, which the base spares much, every joint costs the same."""
    at = {n: operations(fgd.robots.random_tree(n, seed=0, kinds=("revolute",))) for n in (10, 20, 50)}
    assert at[50] <= 460 * 50
    assert (at[50] - at[20]) / 30 == pytest.approx((at[20] - at[10]) / 10, rel=0.01)


# ---- states


def test_conditions_on_accelerations_are_beside_what_is_given():
    """A tiny or a huge acceleration that keeps the loop is answered, one that does not is not."""
    mechanism = replace(fgd.robots.five_bar(), gravity=(0.0, 0.0, 0.0))
    kernel = fgd.compile(mechanism, "inverse")
    q, _ = mechanism.random_state(3)
    still = np.zeros(mechanism.nv)
    wanted = np.array([1.0, 0.0, 2.0, 0.0])
    a = fgd.constraints(mechanism, q, still).complete_acceleration(wanted, given=["left_shoulder", "right_shoulder"])
    for size in (1e-6, 1.0, 1e9):
        assert np.isfinite(kernel(q, still, size * a)).all()
        assert np.isnan(kernel(q, still, size * (a + np.array([0.0, 1e-3, 0.0, 0.0])))).all()


def test_open_states_within_an_integrators_step_are_answered():
    """Redundant rows of loops that are open by 1e-7 contradict each other by as much, and nobody asked them."""
    mechanism = fgd.robots.four_bar_chain(2)
    kernel = fgd.compile(mechanism, "forward")
    rng = np.random.default_rng(0)
    for _ in range(5):
        q, v = mechanism.random_state(rng)
        drifted = q + 1e-7 * rng.normal(size=mechanism.nq)
        found, exact = (kernel(x, v, np.zeros(mechanism.nv)) for x in (drifted, q))
        np.testing.assert_allclose(found, exact, atol=1e-4 * np.abs(exact).max())


def test_fingers_that_start_closed_have_kernels_there():
    """Pivots that are multiples of a finger's travel vanish where the gripper is closed: at the neutral state."""

    def finger(side):
        place = pose(rotation_about(np.array([0.0, 0.0, 1.0]), 0.3), np.array([0.0, 0.0, 0.1]))
        return fgd.Joint(
            f"{side}", "prismatic", "hand", f"{side}_tip", place, (0.0, 1.0 if side == "left" else -1.0, 0.0)
        )

    links = [fgd.Link("base"), fgd.Link("hand", 1.0, (0.0, 0.0, 0.05), 0.01 * np.eye(3))]
    links += [fgd.Link(f"{side}_tip", 0.1, (0.01, 0.02, 0.03), 1e-4 * np.eye(3)) for side in ("left", "right")]
    gripper = fgd.Mechanism(
        "gripper",
        tuple(links),
        (fgd.Joint("wrist", "revolute", "base", "hand"), finger("left"), finger("right")),
        couplings=(fgd.Coupling("mimic", "right", "left"),),
    )
    for ordering in ("aba", "crba", "colamd", "natural"):
        kernel = fgd.compile(gripper, "forward", ordering=ordering)
        assert np.isfinite(kernel(gripper.neutral(), np.zeros(3), np.ones(3))).all()


def test_open_loops_are_refused_beside_a_rotor_without_mass():
    """A body of much inertia and next to no mass says nothing about how large a mechanism is."""
    bar = fgd.robots.four_bar()
    rotor = fgd.Link("rotor", 1e-6, (0.0, 0.0, 0.0), 0.1 * np.eye(3))
    joint = fgd.Joint("spin", "revolute", bar.base, "rotor")
    mechanism = replace(bar, links=(*bar.links, rotor), joints=(*bar.joints, joint))
    kernel = fgd.compile(mechanism, "forward")
    q, v = mechanism.random_state(0)
    assert np.isfinite(kernel(q, v, np.zeros(4))).all()
    assert np.isnan(kernel(q + np.array([0.3, 0.0, 0.0, 0.0]), v, np.zeros(4))).all()


@pytest.mark.parametrize("light", [1e-12, 1e-8, 1e-4])
@pytest.mark.parametrize("ordering", ["aba", "colamd"])
def test_a_light_coupler_between_heavy_links(light, ordering):
    bar = fgd.robots.four_bar()
    coupler = bar.joints[1].child
    links = tuple(
        replace(link, mass=light * link.mass, inertia=light * np.asarray(link.inertia))
        if link.name == coupler
        else link
        for link in bar.links
    )
    assert_forward_agrees(replace(bar, links=links), tolerance=1e-9, ordering=ordering)


@pytest.mark.parametrize("ordering", fgd.ORDERING_NAMES[1:])
def test_a_five_bar_closed_by_a_weld(ordering):
    mechanism = fgd.robots.five_bar(actuated=5)
    assert {loop.kind for loop in mechanism.loops} == {"fixed"}
    assert_forward_agrees(mechanism, 3, ordering=ordering)


@pytest.mark.slow
@pytest.mark.parametrize(("robot", "seconds"), [("four_bar", 1.5), ("delta", 0.4)])
def test_simulations_by_kernels_do_not_stop_at_regular_states(robot, seconds):
    mechanism = fgd.robots.BUILT_IN[robot]()
    q, v = mechanism.random_state(0)
    kernel = fgd.compile(mechanism, "forward")
    found = fgd.simulate(mechanism, q, v, None, seconds, 2e-3, engine=kernel)
    assert np.isfinite(found.q).all()


def test_a_locked_loop_answers_in_all_its_modes():
    """A triangle has two modes, and no motion leads from one to the other: a kernel is tried in both."""
    links = [fgd.Link("base"), *(fgd.Link(f"link{k}", 1.0, (0.1, 0.2, 0.0), np.eye(3)) for k in range(3))]
    slide = pose(rotation_about(np.array([0.0, 0.0, 1.0]), np.pi / 4), np.array([-0.5, -0.5, 0.0]))
    joints = (
        fgd.Joint("turn", "revolute", "base", "link0"),
        fgd.Joint("hinge", "revolute", "link0", "link1"),
        fgd.Joint("slide", "prismatic", "link1", "link2", slide, (0.16, 0.99, 0.0)),
    )
    place = pose(rotation_about(np.array([0.0, 0.0, 1.0]), 1.08), np.array([-0.74, -0.73, 0.0]))
    open_loop = fgd.Mechanism("locked", tuple(links), joints)
    mechanism = replace(open_loop, loops=(fgd.Loop("end", "revolute", "link2", "link0", successor_placement=place),))
    kernel = fgd.compile(mechanism, "forward")
    rng, still, tau = np.random.default_rng(0), np.zeros(3), np.array([1.0, 0.0, 0.0])
    modes = set()
    for _ in range(40):
        try:
            q = mechanism.close(rng.uniform(-3.0, 3.0, 3))
        except fgd.ClosureError:
            continue
        np.testing.assert_allclose(kernel(q, still, tau), fgd.forward_dynamics(mechanism, q, still, tau).a, atol=1e-9)
        modes.add(round(float(q[2]), 6))
    assert len(modes) == 2


def test_loops_about_any_axis_are_watched_alike():
    """The directions that a loop about (1, 1, 1) holds have entries that sum to zero."""
    plain = fgd.robots.four_bar()
    (pin,) = plain.loops
    turn = pose(rotation_about(np.array([1.0, 0.0, -1.0]) / np.sqrt(2), np.arccos(-1 / np.sqrt(3))), np.zeros(3))
    back, axis = inverse_pose(turn), turn[:3, :3] @ pin.axis
    np.testing.assert_allclose(np.abs(axis), 1 / np.sqrt(3))
    ends = {
        "predecessor_placement": pin.predecessor_placement @ back,
        "successor_placement": pin.successor_placement @ back,
    }
    oblique = replace(plain, loops=(replace(pin, axis=axis, **ends),))
    first, second = (fgd.compile(mechanism, "forward") for mechanism in (plain, oblique))
    q, v = plain.random_state(0)
    np.testing.assert_allclose(second(q, v, [1.0, 0.0, 0.0]), first(q, v, [1.0, 0.0, 0.0]), rtol=1e-10)
    for slip in (0.01, 0.1):  # of the speed, at one joint: below and above what is allowed
        slipping = v + slip * np.linalg.norm(v) * np.array([0.0, 0.0, 1.0])
        refused = [bool(np.isnan(kernel(q, slipping, np.zeros(3))).any()) for kernel in (first, second)]
        assert refused == [slip > 0.05] * 2


@pytest.mark.parametrize(("robot", "ordering"), [("five_bar", "aba"), ("five_bar", "colamd"), ("four_bar", "natural")])
def test_hinges_of_loops_may_stand_at_right_angles(robot, ordering):
    """Pivots that are fine elsewhere vanish there, and no random state tells."""
    mechanism = fgd.robots.BUILT_IN[robot]()
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    still, tau, reached = np.zeros(mechanism.nv), np.ones(mechanism.nv), 0
    for joint in mechanism.joint_names:
        for turns in range(-1, 3):
            q = mechanism.neutral()
            q[mechanism.q_slice(joint)] = turns * np.pi / 2
            try:
                q = mechanism.close(q, hold=[joint])
                expected = fgd.forward_dynamics(mechanism, q, still, tau).a
            except (fgd.ClosureError, fgd.SingularSystemError):
                continue
            np.testing.assert_allclose(kernel(q, still, tau), expected, rtol=1e-9)
            reached += 1
    assert reached >= 4


@pytest.mark.parametrize("robot", ["stewart", "delta"])
def test_every_angle_of_many_loops_may_stand_at_a_right_angle(robot):
    """There are more of them than states at which pivots were once judged."""
    mechanism, rng = fgd.robots.BUILT_IN[robot](), np.random.default_rng(0)
    kernel = fgd.compile(mechanism, "forward")
    still, tau = np.zeros(mechanism.nv), np.where(mechanism.torque_entries(), 1.0, 0.0)
    usual, reached = freedoms(mechanism, mechanism.random_state(rng)[0]), 0
    for joint in mechanism.movable_joints:
        for k in np.flatnonzero(joint.turns) if joint.nq == joint.nv else ():
            q, free = mechanism.random_state(rng)[0], np.ones(mechanism.nv, dtype=bool)
            q[mechanism.q_slices[joint.name].start + k] = rng.choice([-1.0, 1.0]) * np.pi / 2
            free[mechanism.v_slices[joint.name].start + k] = False
            with suppress(fgd.ClosureError):
                q = close_freely(mechanism, q, free)
                if freedoms(mechanism, q) == usual:
                    expected = fgd.forward_dynamics(mechanism, q, still, tau).a
                    assert relative_error(kernel(q, still, tau), expected) < 1e-8
                    reached += 1
    assert reached >= 6


@pytest.mark.parametrize("ordering", ["colamd", "natural"])
def test_each_angle_of_a_universal_joint_in_a_loop_may_stand_at_right_angles(ordering):
    """Neither angle can be held with the other where it is; one alone can."""
    inertia = np.diag([0.05, 0.08, 0.06])
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, (0.0, 0.1, 0.2), inertia) for name in ("a", "b", "c", "d"))]
    joints = (
        fgd.Joint("hinge", "revolute", "base", "a", fgd.translation(0.6, 0.6, 0.0)),
        fgd.Joint("bend", "revolute", "a", "b", axis=(0.0, -1.0, 0.0)),
        fgd.Joint("turn", "revolute", "b", "c", fgd.translation(0.0, 0.0, -0.1), (-1.0, 0.0, 0.0)),
        fgd.Joint("gimbal", "universal", "base", "d", fgd.translation(-0.3, 0.4, 0.6), (-1.0, 0.0, 0.0)),
    )
    tree = fgd.Mechanism("gimbal", tuple(links), joints)
    q = np.array([0.1, -0.2, 0.3, 0.2, np.pi / 2])
    poses = link_poses(tree, q)
    end = pose(rotation_about(np.array([0.36, 0.48, 0.8]), 1.0), np.array([0.3, -0.2, 0.1]))
    plane = fgd.Loop("plane", "planar", "c", "d", end, inverse_pose(poses["d"]) @ poses["c"] @ end, (-1.2, -0.4, 0.8))
    mechanism = replace(tree, loops=(plane,))
    kernel = fgd.compile(mechanism, "inverse", ordering=ordering, actuated=["hinge", "bend"])
    a = fgd.forward_dynamics(mechanism, q, np.zeros(5), np.zeros(5)).a
    expected = fgd.inverse_dynamics(mechanism, q, np.zeros(5), a, actuated=["hinge", "bend"]).tau
    np.testing.assert_allclose(kernel(q, np.zeros(5), a), expected, atol=1e-9)


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "min_fill"])
def test_forces_without_a_lever_are_proved_up_to_rounding_of_the_levers_of_their_link(ordering):
    """A light puck on the axis of a heavy disc, two kilometres wide: pushing it turns the disc by rounding at most."""
    disc = fgd.Link("disc", 1e4, (2e3, -2e3, 0.0), np.diag([3e10, 2e10, 2e10]))
    puck = fgd.Link("puck", 1.0, inertia=np.eye(3))
    joints = (fgd.Joint("turn", "revolute", "base", "disc"), fgd.Joint("slide", "planar", "disc", "puck"))
    mechanism = fgd.Mechanism("disc", (fgd.Link("base"), disc, puck), joints)
    assert fgd.compile(mechanism, "inverse_mass_matrix", ordering=ordering).accuracy < 1e-11


def test_kernels_answer_where_the_frames_of_a_loop_coincide():
    """Axes line up there, and pivots vanish that do not in any motion from home."""
    oblique = rotation_about(np.array([0.36, 0.48, 0.8]), 1.1), rotation_about(np.array([0.48, -0.6, 0.64]), 2.1)
    joints = (
        fgd.Joint("plate", "planar", "base", "plate", pose(oblique[0], np.zeros(3)), axis=(0, 1, 0)),
        fgd.Joint("ball", "spherical", "base", "ball", pose(oblique[1], np.zeros(3))),
    )
    links = (fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("plate", "ball")))
    tree = fgd.Mechanism("cardan", links, joints)
    q = np.array([0.3, 0.5, 0.2, -0.13, -0.12, -0.92, 0.0])
    q[6] = np.sqrt(1 - q[3:6] @ q[3:6])
    poses, end = link_poses(tree, q), pose(rotation_about(np.array([0.0, 0.6, 0.8]), 0.4), np.array([-0.5, 0.0, 0.4]))
    there = inverse_pose(poses["plate"]) @ poses["ball"] @ end
    axes = ((1.0, 0.0, 0.0), (0.0, 0.6, 0.8))
    mechanism = replace(tree, loops=(fgd.Loop("cardan", "universal", "ball", "plate", end, there, axes),))
    found = closed_at_zero(mechanism, 1)
    assert len(found) == 1
    assert np.abs(np.subtract(*(link_poses(mechanism, found[0])[name] @ at for name, at in
                                (("ball", end), ("plate", there))))).max() < 1e-12  # fmt: skip
    for ordering in ("aba", "crba", "min_fill", "colamd"):
        assert np.isfinite(fgd.compile(mechanism, "iwim", ordering=ordering)(q)).all()


@pytest.mark.parametrize("kind", ["planar", "helical"])
def test_loops_that_turn_and_slide_do_not_know_metres_from_thousands_of_kilometres(kind):
    """Their velocities are read off the links': rounding of lengths must not turn anything."""
    length = 1e6
    place = pose(rotation_about(np.array([0.6, 0.0, 0.8]), 0.7), np.array([0.2, -0.1, 0.4]))
    arm, plate = (fgd.Link(name, 2.0, (0.1, 0.0, 0.2), np.diag([0.1, 0.2, 0.25])) for name in ("arm", "plate"))
    joints = (fgd.Joint("turn", "spherical", "base", "arm"), fgd.Joint("free", "floating", "arm", "plate"))
    loop = fgd.Loop("loop", kind, "arm", "plate", place, place, (0.3, -0.2, 1.0), 0.05 * (kind == "helical"))
    mechanism = fgd.Mechanism("plates", (fgd.Link("base"), arm, plate), joints, (loop,))
    large = described_in(mechanism, 1 / length, 1.0)
    q_units = np.concatenate([joint.coordinate_units(length) for joint in joints])
    units = np.concatenate([joint.freedom_units(length) for joint in joints])
    (q, v), tau = mechanism.random_state(0), np.arange(9.0)
    expected = fgd.forward_dynamics(mechanism, q, v, tau).a
    given = q * q_units, v * units, tau * length**2 / units
    for found in (fgd.forward_dynamics(large, *given).a, fgd.compile(large, "forward")(*given)):
        assert relative_error(found / units, expected) < 1e-12


@pytest.mark.parametrize("length", [1e-3, 1.0, 300.0])
def test_screws_in_loops_slip_in_no_unit(length):
    """What a screw allows turns and shifts at once, which only lengths in one unit see."""
    place = pose(rotation_about(np.array([0.6, 0.0, 0.8]), 0.7), length * np.array([0.2, -0.1, 0.4]))
    nut = fgd.Link("nut", 2.0, length * np.array([0.1, 0.0, 0.2]), length**2 * np.diag([0.1, 0.2, 0.25]))
    free = fgd.Joint("free", "floating", "base", "nut")
    screw = fgd.Loop("screw", "helical", "base", "nut", place, place, (0.3, -0.2, 1.0), 0.05 * length)
    mechanism = fgd.Mechanism("screw", (fgd.Link("base"), nut), (free,), (screw,), gravity=(0.0, 0.0, -9.81 * length))
    assert_forward_agrees(mechanism, tolerance=1e-9)


def test_links_that_loops_hold_still_are_judged_by_what_moves():
    """Accelerations that close a locked loop are zero but for rounding, and so are those of its links."""
    links = [fgd.Link("base"), *(fgd.Link(f"link{k}", 1.0, (0.1, 0.2, 0.0), np.eye(3)) for k in range(3))]
    away = pose(rotation_about(np.array([0.6, 0.0, 0.8]), 0.7), np.array([0.5, 0.1, 0.3]))
    joints = (
        fgd.Joint("turn", "revolute", "base", "link0", away),
        fgd.Joint("hinge", "revolute", "link0", "link1", away),
        fgd.Joint("arm", "revolute", "link1", "link2", away),
    )
    tree = fgd.Mechanism("held", tuple(links), joints, gravity=(0.0, 0.0, 0.0))
    poses = link_poses(tree, tree.neutral())
    held = fgd.Loop("held", "revolute", "base", "link1", poses["link1"] @ away, away, (1.0, 0.3, 0.2))
    mechanism = replace(tree, loops=(held,))
    kernel = fgd.compile(mechanism, "inverse", ordering="min_degree", actuated=["arm"], outputs=["tau", "A[link1]"])
    _, A = kernel(mechanism.neutral(), np.zeros(3), [0.0, 0.0, 1.0])
    np.testing.assert_allclose(A, np.zeros(6), atol=1e-12)


@pytest.mark.parametrize("problem", ["inverse_mass_matrix", "forward"])
@pytest.mark.parametrize("tilt", [1e-8, 1e-6, 1e-4])
def test_a_needle_about_an_axis_that_is_almost_its_own(problem, tilt):
    """In frames along the axis its inertia is rounding: the proof has to see that, though its terms are far larger."""
    needle = fgd.Link("needle", 3.0, (0.0, 0.0, -0.3), np.diag([0.08, 0.08, 0.0]))
    hinge = fgd.Joint("hinge", "revolute", "base", "needle", axis=(0.0, tilt, -1.0))
    mechanism = fgd.Mechanism("needle", [fgd.Link("base"), needle], [hinge])
    inertia = (0.08 + 3.0 * 0.3**2) * tilt**2 / (1.0 + tilt**2)
    kernel = fgd.compile(mechanism, problem)
    found = kernel([0.0]) if problem == "inverse_mass_matrix" else kernel([0.0], [0.0], [1.0])
    assert np.allclose(np.ravel(found), 1.0 / inertia, rtol=1e-9)


@pytest.mark.parametrize("ordering", [None, "aba", "colamd"])
def test_a_needle_about_an_axis_that_is_almost_its_own_beside_a_gear(ordering):
    """It is no joint of a loop or gear, though the mechanism has one."""
    tilt, needle = 1e-8, fgd.Link("needle", 3.0, (0.0, 0.0, -0.3), np.diag([0.08, 0.08, 0.0]))
    wheels = [fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("wheel", "pinion")]
    joints = [
        fgd.Joint("hinge", "revolute", "base", "needle", axis=(0.0, tilt, -1.0)),
        *(fgd.Joint(f"to_{wheel.name}", "revolute", "base", wheel.name) for wheel in wheels),
    ]
    gear = fgd.Coupling("gear", "to_pinion", "to_wheel", 2.0)
    mechanism = fgd.Mechanism("needle", [fgd.Link("base"), needle, *wheels], joints, couplings=[gear])
    inertia = (0.08 + 3.0 * 0.3**2) * tilt**2 / (1.0 + tilt**2)
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    np.testing.assert_allclose(kernel(np.zeros(3), np.zeros(3), [1.0, 5.0, 0.0]), [1.0 / inertia, 1.0, 2.0], rtol=1e-9)


def test_wrenches_on_two_links_are_two_values():
    """They were drawn alike wherever pivots are judged, so that what is their difference there looked like zero."""
    turned = pose(np.array([[0.0, -1.0, 0.0], [-1.0, 0.0, 0.0], [0.0, 0.0, -1.0]]), np.zeros(3))
    body, arm = (fgd.Link(name, 1.0, (0.0, 0.0, 0.0), np.eye(3)) for name in ("body", "arm"))
    joints = (fgd.Joint("weld", "fixed", "base", "body"), fgd.Joint("turn", "revolute", "body", "arm", turned))
    mechanism = fgd.Mechanism("pushed", (fgd.Link("base"), body, arm), joints, gravity=np.zeros(3))
    kernel = fgd.compile(mechanism, "forward", outputs=["F[weld]"], external_wrenches=["body", "arm"])
    pushes = np.random.default_rng(0).normal(size=(2, 6))
    zero = np.zeros(1)
    both = dict(zip(("body", "arm"), pushes, strict=True))
    expected = fgd.forward_dynamics(mechanism, zero, zero, zero, external_wrenches=both)
    assert relative_error(kernel(zero, zero, zero, *pushes), expected.wrenches["weld"]) < 1e-12
    states = sampled_states(mechanism)
    drawn = [states.of(f"wrench[{name}]", 6)[0] for name in ("body", "arm")]
    assert (np.abs(drawn[0] - drawn[1]) > 0).all()
