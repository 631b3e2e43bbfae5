"""The stress test's oracle against Pinocchio, and against laws that hold whatever the equations are."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import described_in
from tests.folded import bennett
from tests.helpers import lossy, mixed_tree, relative_error
from tests.mechanisms import random_planar, random_spatial, single_loop
from tests.oracles.closed import pinocchio_accelerations
from tests.oracles.engines import pinocchio_oracle
from tests.stress import estimates
from tests.stress.asking import mobility
from tests.stress.constraints import close, closing_velocity, constraint_rows, moved, scaled_pseudo_inverse
from tests.stress.excuses import excuse, is_elsewhere
from tests.stress.kinematics import LD, SIZES, array, bodies, norm
from tests.stress.oracle import Oracle, freedom_units
from tests.stress.questions import Case, Question
from tests.stress.recipe import State

EXACT = 1e-12  # two engines in double precision
STEP = LD(1e-6)
DIFFERENCES = 1e-9  # of central differences with that step


def state(mechanism, seed):
    """A state that is closed to extended precision, with torques and wrenches."""
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(seed)
    if mechanism.is_closed_kind:
        units = freedom_units(mechanism)
        q = close(mechanism, q, units)
        v = closing_velocity(mechanism, q, v, units)
    wrenches = {link.name: rng.normal(size=6) for link in mechanism.links[1:3]}
    return q, array(v), array(rng.normal(size=mechanism.nv)), wrenches


def forward(mechanism, q, v, tau, wrenches=None):
    oracle = Oracle(mechanism, q, v, wrenches)
    none = np.zeros(mechanism.nv, dtype=bool)
    return oracle, oracle.ask(np.zeros(mechanism.nv), tau, none, ~none)


@pytest.mark.parametrize("seed", range(6))
def test_trees_move_as_in_pinocchio(seed):
    mechanism = mixed_tree(seed)
    mechanism = replace(mechanism, joints=[replace(j, armature=0.1 * (seed % 2)) for j in mechanism.joints])
    q, v, tau, wrenches = state(mechanism, seed)
    engine = pinocchio_oracle(mechanism)
    oracle, answered = forward(mechanism, q, v, tau, wrenches)
    floats = [x.astype(float) for x in (array(q), v, tau)]
    assert relative_error(oracle.M.astype(float), engine.mass_matrix(floats[0])) < EXACT
    bias = engine.inverse_dynamics(floats[0], floats[1], np.zeros(mechanism.nv), wrenches)
    assert relative_error(oracle.h.astype(float), bias) < EXACT
    a = engine.forward_dynamics(*floats, wrenches)
    assert relative_error(answered["a"].value.astype(float), a) < EXACT * answered.condition


@pytest.mark.parametrize("kind", ["fixed", "spherical"])
def test_loops_move_as_in_pinocchio(kind):
    mechanism = single_loop(kind)
    q, v, tau, _ = state(mechanism, 3)
    _, answered = forward(mechanism, q, v, tau)
    theirs = pinocchio_accelerations(mechanism, *(x.astype(float) for x in (q, v, tau)))
    assert relative_error(answered["a"].value.astype(float), theirs) < 1e-8  # their constraints are proximal


@pytest.mark.parametrize("kind", [kind for kind in SIZES if kind != "floating"])
def test_closure_stays_closed(kind):
    """J is the rate of the error, and Jdot v that of J v along the motion."""
    mechanism = single_loop(kind)
    q, v, _, _ = state(mechanism, 1)
    rows = constraint_rows(mechanism, q, v)[0]
    ahead, behind = (moved(mechanism, q, sign * STEP * v) for sign in (1, -1))
    rates = [constraint_rows(mechanism, place, v)[0].J @ v for place in (ahead, behind)]
    assert norm((rates[0] - rates[1]) / (2 * STEP) - rows.Jdot_v) < DIFFERENCES * (1 + norm(rows.Jdot_v))
    rng = np.random.default_rng(0)
    way = array(rng.normal(size=mechanism.nv))
    errors = [constraint_rows(mechanism, moved(mechanism, q, sign * STEP * way), v)[0].error for sign in (1, -1)]
    assert norm((errors[0] - errors[1]) / (2 * STEP) - rows.J @ way) < DIFFERENCES * norm(way)


@pytest.mark.parametrize("make", [mixed_tree, random_planar, random_spatial])
@pytest.mark.parametrize("seed", range(3))
def test_power_balances(make, seed):
    """Energy grows by what motors and wrenches give and losses take; closed loops do no work."""
    mechanism = lossy(make(seed), seed)
    q, v, tau, wrenches = state(mechanism, seed)
    oracle, answered = forward(mechanism, q, v, tau, wrenches)
    a = answered["a"].value
    energies = []
    for sign in (1, -1):
        place = moved(mechanism, q, sign * STEP * v)
        energies.append(energy(mechanism, place, v + sign * STEP * a, oracle.armature))
    rate = (energies[0] - energies[1]) / (2 * STEP)
    power = tau @ v - oracle.losses @ v
    for link, wrench in wrenches.items():
        power += wrench @ answered[f"V[{link}]"].value
    size = np.abs(tau) @ np.abs(v) + np.abs(oracle.losses) @ np.abs(v) + np.abs(oracle.h_terms) @ np.abs(v)
    assert abs(rate - power) < DIFFERENCES * size


def energy(mechanism, q, v, armature):
    """Kinetic and potential energy, from the motion of points."""
    total = (armature * v * v).sum() / 2
    for link in mechanism.links:
        body = bodies(mechanism, q, v)[link.name]
        arm = body.R @ array(link.com)
        speed = body.u + np.cross(body.w, arm)
        turning = body.R.T @ body.w
        total += LD(link.mass) * (speed @ speed) / 2 + turning @ array(link.inertia) @ turning / 2
        total -= LD(link.mass) * array(mechanism.gravity) @ (body.p + arm)
    return total


@pytest.mark.parametrize("make", [mixed_tree, random_planar, random_spatial])
def test_joint_wrenches_agree_with_torques(make):
    """S^T F + armature a + losses = tau: wrenches are summed link by link, torques come from the projection."""
    mechanism = lossy(make(4), 4)
    q, v, tau, wrenches = state(mechanism, 4)
    oracle, answered = forward(mechanism, q, v, tau, wrenches)
    a = answered["a"].value
    for joint in mechanism.movable_joints:
        if joint.kind == "universal":
            continue  # its subspace is not constant
        here = mechanism.v_slices[joint.name]
        S = np.asarray(joint.constant_subspace, dtype=LD)
        found = S.T @ answered[f"F[{joint.name}]"].value + oracle.armature[here] * a[here] + oracle.losses[here]
        bound = np.abs(S.T) @ answered[f"F[{joint.name}]"].bound + np.abs(oracle.losses[here])
        assert (np.abs(found - tau[here]) <= 1e-14 * bound).all()


def test_redundant_loops_are_seen():
    mechanism = random_planar(0)
    q, v, tau, _ = state(mechanism, 0)
    _, answered = forward(mechanism, q, v, tau)
    assert answered["a"].unique
    assert not all(answered[f"F[{loop.name}]"].unique for loop in mechanism.loops)
    assert answered.contradiction < 1e-15


@pytest.mark.parametrize("tilt", [1e-17, 1e-15])
def test_rounding_of_an_axis_locks_no_loop(tilt):
    flat = fgd.robots.four_bar()
    flat = replace(flat, loops=[replace(loop, kind="spherical") for loop in flat.loops])
    first, *others = flat.joints
    tilted = replace(flat, joints=[replace(first, axis=np.add(first.axis, (tilt, 0.0, 0.0))), *others])
    q, v, tau, _ = state(flat, 0)
    found, expected = (forward(mechanism, q, v, tau)[1]["a"] for mechanism in (tilted, flat))
    assert found.unique
    assert relative_error(found.value.astype(float), expected.value.astype(float)) < EXACT


@pytest.mark.parametrize("offset", [0.0, 1e-20])
def test_rounding_of_a_place_locks_no_loop(offset):
    """A ball joint in the middle of a hinge holds nothing, whatever its place was rounded to."""
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("arm", "hand"))]
    wrist = fgd.translation(0, -0.0003, 0)
    joints = [fgd.Joint("elbow", "revolute", "base", "arm"), fgd.Joint("wrist", "revolute", "arm", "hand", wrist)]
    ball = fgd.Loop("ball", "spherical", "hand", "arm", np.eye(4), fgd.translation(offset, -0.0003, 0))
    mechanism = fgd.Mechanism("idle", links, joints, [ball], gravity=(0, 0, 0))
    _, answered = forward(mechanism, np.zeros(2), np.zeros(2), np.array([1.0, 0.0]))
    assert answered["a"].unique
    assert relative_error(answered["a"].value.astype(float), np.array([1.0, -1.0])) < 1e-6


@pytest.mark.parametrize("tilt", [0.0, 1e-20, 1e-16])
def test_rounding_of_a_rotation_gives_a_needle_no_inertia(tilt):
    """About its own axis a needle has none, whatever the axes that it hangs in were rounded to."""
    T = np.array([[0.0, tilt, 1.0, 0.0], [0.0, 1.0, 0.0, 0.0], [-1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 1.0]])
    links = [fgd.Link("base"), fgd.Link("needle", 1.0, inertia=np.diag([0.01, 0.01, 0.0]))]
    mechanism = fgd.Mechanism("spun", links, [fgd.Joint("spin", "revolute", "base", "needle", T)])
    _, answered = forward(mechanism, np.array([0.3]), np.zeros(1), np.zeros(1))
    assert not answered["a"].unique


@pytest.mark.parametrize("make", [fgd.robots.five_bar, fgd.robots.stewart, lambda: random_spatial(0)])
@pytest.mark.parametrize("length", [1e-9, 1e-6, 1e6])
def test_units_make_no_closed_mechanism_singular(make, length):
    """Closure has no masses: beside it those of a micrometre's links must not look like nothing."""
    mechanism = make()
    described = described_in(mechanism, 1 / length, 1.0)
    q, v = mechanism.random_state(0)
    q_units = np.concatenate([joint.coordinate_units(length) for joint in mechanism.joints])
    v_units = np.concatenate([joint.freedom_units(length) for joint in mechanism.joints])
    none = np.zeros(mechanism.nv)
    _, expected = forward(mechanism, q, v, none)
    _, answered = forward(described, q * q_units, v * v_units, none)
    assert answered["a"].unique
    assert answered.condition < 10 * expected.condition
    assert relative_error((answered["a"].value / v_units).astype(float), expected["a"].value.astype(float)) < EXACT


def test_linkages_that_lose_rank_where_they_are_closed_move_smoothly():
    """Closed anew after a step, they are where the step led to, but for its square."""
    mechanism, step = bennett(1.0), LD(1e-4)
    units = freedom_units(mechanism)
    q = close(mechanism, array(np.zeros(3)), units)
    dq = closing_velocity(mechanism, q, array([1.0, 0.0, 0.0]), units)
    rank = scaled_pseudo_inverse(constraint_rows(mechanism, q, array(np.zeros(3))), units)[1]
    ends = [close(mechanism, moved(mechanism, q, sign * step * dq), units, rank) for sign in (1, -1)]
    assert rank == 2
    np.testing.assert_allclose(np.asarray((ends[0] - ends[1]) / (2 * step), float), np.asarray(dq, float), atol=1e-7)


def rhombus():
    """Four bars of one length on parallel hinges, flat at the joint zeros, where its branches meet."""
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, (0.5, 0.0, 0.0), np.eye(3) / 12) for name in "abc")]
    along = fgd.translation(1.0, 0.0, 0.0)
    joints = [
        fgd.Joint("crank", "revolute", "base", "a"),
        fgd.Joint("pin", "revolute", "a", "b", along),
        fgd.Joint("rocker", "revolute", "base", "c", along),
    ]
    return fgd.Mechanism("rhombus", links, joints, [fgd.Loop("end", "revolute", "b", "c", along, along)])


@pytest.mark.parametrize(
    ("q", "elsewhere"),
    [
        ((0.7, -0.7, 0.7), False),  # it works
        ((0.0, 0.7, 0.7), True),  # two bars lie upon each other and turn as one; the crank stands
        ((0.7, np.pi, np.pi), True),  # the other two
        ((np.pi / 2, -np.pi / 2, np.pi / 2), False),
    ],
)
def test_kernels_may_be_silent_in_other_branches_only(q, elsewhere):
    mechanism = rhombus()
    state = State(np.array(q), np.zeros(3), np.zeros(3), {})
    assert mobility(mechanism, state)[0] == 1
    assert is_elsewhere(mechanism, state) == elsewhere


def test_a_crank_slider_at_its_dead_centre_is_nowhere_else():
    """For an instant the slider stands still, which it does in no branch."""
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("crank", "rod", "slider"))]
    joints = [
        fgd.Joint("turn", "revolute", "base", "crank"),
        fgd.Joint("pin", "revolute", "crank", "rod", fgd.translation(0.3, 0.0, 0.0)),
        fgd.Joint("slide", "prismatic", "base", "slider", axis=(1.0, 0.0, 0.0)),
    ]
    loop = fgd.Loop("end", "revolute", "rod", "slider", fgd.translation(1.0, 0.0, 0.0), np.eye(4))
    mechanism = fgd.Mechanism("slider-crank", links, joints, [loop])
    state = State(np.array([0.0, 0.0, 1.3]), np.zeros(3), np.zeros(3), {})
    assert np.abs(mobility(mechanism, state)[1][2]) < 1e-15
    assert not is_elsewhere(mechanism, state)


@pytest.mark.parametrize(("tilt", "expected"), [(1e-5, "singular"), (1e-3, None)])
def test_needles_along_their_axis_are_singular_in_any_units(tilt, expected):
    """The share of its inertia that such a needle moves is the square of the tilt: a condition of 1e10, or of 1e6."""
    needle = fgd.Link("needle", 1.0, inertia=np.diag([1.0, 1.0, 0.0]))
    arm = fgd.Joint("arm", "revolute", "base", "needle", axis=(np.sin(tilt), 0.0, np.cos(tilt)))
    mechanism = fgd.Mechanism("needle", [fgd.Link("base"), needle], [arm])
    none, zero = np.zeros(1, dtype=bool), np.zeros(1)
    case = Case(State(zero, zero, zero, {}), zero, zero, none, ~none, {}, 1.0, True)
    assert excuse(mechanism, case, Question("kernel", "forward")) == expected
    assert excuse(mechanism, case, Question("kernel", "mass_matrix")) is None


def test_joints_that_move_no_inertia_leave_responses_a_size():
    """Else whatever is said of any joint would be next to nothing beside it."""
    rhombic = rhombus()
    pin = fgd.Link("pin"), fgd.Joint("free", "revolute", "c", "pin", fgd.translation(0.2, 0.0, 0.0))
    mechanism = replace(rhombic, links=(*rhombic.links, pin[0]), joints=(*rhombic.joints, pin[1]))
    answer, _ = Oracle(mechanism, np.array([0.7, -0.7, 0.7, 0.0]), np.zeros(4)).respond(np.arange(4))
    assert np.abs(answer.usual).max() < 100.0
    assert not answer.usual[3].any()


@pytest.mark.parametrize(("tilt", "regular"), [(0.0, True), (1e-8, False), (0.1, True)])
def test_readings_that_say_next_to_nothing_of_what_is_open_are_singular(tilt, regular):
    """A joint that a loop repeats: its moment about x is its torque, but for some of that about y, which is open."""
    links = [fgd.Link("base"), fgd.Link("arm", 1.0, (0, 0, 0.1), 0.01 * np.eye(3))]
    held = fgd.Mechanism(
        "held",
        links,
        [fgd.Joint("hinge", "revolute", "base", "arm", axis=(1, tilt, 0))],
        [fgd.Loop("weld", "fixed", "base", "arm")],
    )
    here = State(np.zeros(1), np.zeros(1), np.zeros(1), {})
    usual = estimates.Usual.at(held, here)
    sensors = [fgd.sensors.Torque("hinge", None, 0.01), fgd.sensors.ForceTorque("hinge", None, 1.0, ("mx",))]
    case = estimates.case_of(held, here, Question("graph", "estimate"), sensors, usual, 0)
    assert case.regular
    assert (case.condition < estimates.WORST_CONDITION) == regular
