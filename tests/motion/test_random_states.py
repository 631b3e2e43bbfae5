"""Closing and random states in any units, at limits, and of mechanisms that cannot close."""

import time
from dataclasses import replace
from types import SimpleNamespace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.model.sizes.units import Natural, described_in, measured
from factorgraph_dyn.motion import closure
from factorgraph_dyn.motion.homes import _may_close
from factorgraph_dyn.motion.kinematics import integrate
from tests.mechanisms import random_planar, random_spatial, single_loop
from tests.stress.recipe import mechanism_of
from tests.stress.trial import make_trial

LINKAGES = ("four_bar", "five_bar", "four_bar_chain", "stewart", "delta")
LENGTHS = (1e-6, 1e-3, 0.3, 1e3)  # m that become 1
SAME = 1e-12  # relative to the mechanism's size
SOON = 2.0  # s of computing within which a mechanism that cannot close must say so
LIMITS = (0.0, 1.7)  # rad


def hand(fingers=10, limits=LIMITS, ratio=1.0, offset=0.0):
    """Fingers of two coupled joints each, drawn at a limit."""
    links, joints, couplings = [fgd.Link("palm", 1.0)], [], []
    for i in range(fingers):
        links += [fgd.Link(f"{part}{i}", 0.02, (0.02, 0, 0), np.eye(3) * 1e-5) for part in ("near", "far")]
        places = (("palm", f"near{i}", (0, 0.02 * i, 0)), (f"near{i}", f"far{i}", (0.04, 0, 0)))
        for name, (parent, child, at) in zip(("knuckle", "tip"), places, strict=True):
            place = translation(*at)
            joints.append(fgd.Joint(f"{name}{i}", "revolute", parent, child, place, (0, 1, 0), limits=limits))
        couplings.append(fgd.Coupling(f"tendon{i}", f"tip{i}", f"knuckle{i}", ratio, offset))
    return fgd.Mechanism("hand", links, joints, couplings=couplings)


def moved_loop(mechanism, motion):
    """The mechanism with the last loop's frame elsewhere on its predecessor."""
    loop = mechanism.loops[-1]
    other = replace(loop, predecessor_placement=loop.predecessor_placement @ motion)
    return replace(mechanism, loops=(*mechanism.loops[:-1], other))


def tilted(angle):
    """A four-bar whose last axis is not parallel to the others, so that it cannot close."""
    return moved_loop(
        fgd.robots.four_bar(), spatial.pose(spatial.rotation_about(np.array([1.0, 0, 0]), angle), np.zeros(3))
    )


@pytest.fixture(params=[*LINKAGES, "planar0", "spatial1", "helical", "universal"])
def mechanism(request):
    name = request.param
    if name in LINKAGES:
        return fgd.robots.BUILT_IN[name]()
    if name[-1].isdigit():
        return (random_planar if name.startswith("planar") else random_spatial)(int(name[-1]))
    return single_loop(name)


# ---- units


@pytest.mark.parametrize("length", LENGTHS)
def test_closing_does_not_depend_on_the_unit_of_length(mechanism, length):
    given, other = (
        Natural(given=mechanism, length=length, mass=1.0, extent=length, weight=1.0),
        described_in(mechanism, length, 1.0),
    )
    one = measured(mechanism)
    q, v = mechanism.random_state(1)
    for seed in range(3):
        start = integrate(mechanism, q, np.random.default_rng(seed).normal(size=mechanism.nv) * 0.1 * one.v)
        closed, again = mechanism.close(start), other.close(start / given.q) * given.q
        np.testing.assert_allclose(again / one.q, closed / one.q, atol=SAME)
    drawn = other.random_state(1)
    np.testing.assert_allclose(drawn[0] * given.q / one.q, q / one.q, atol=SAME)
    np.testing.assert_allclose(drawn[1] * given.v / one.v, v / one.v, atol=SAME * np.abs(v / one.v).max())


@pytest.mark.parametrize("length", LENGTHS)
def test_what_counts_as_closed_does_not_depend_on_the_unit_of_length(length):
    mechanism = fgd.robots.five_bar()
    other = described_in(mechanism, length, 1.0)
    q, v = mechanism.random_state(0)
    for off, closed in ((1e-8, True), (1e-4, False)):
        assert closure.is_closed(other, q + off, v) == closed
        assert closure.is_closed(other, q, v + np.eye(4)[0] * off * np.abs(v).max()) == closed


def test_trees_slide_as_far_as_they_are_large():
    slides = [fgd.Joint(f"slide{i}", "prismatic", f"link{i}", f"link{i + 1}", translation(1, 0, 0)) for i in range(3)]
    tree = fgd.Mechanism("slides", [fgd.Link(f"link{i}", 1.0) for i in range(4)], slides)
    small = described_in(tree, 1e6, 1.0)
    np.testing.assert_allclose(np.multiply(1e6, small.random_state(0)), tree.random_state(0), rtol=SAME)


def test_links_without_bodies_do_not_make_a_mechanism_large():
    mechanism = fgd.robots.four_bar()
    light = replace(mechanism.links[-1], mass=1e-9, inertia=np.eye(3))
    odd = replace(mechanism, links=(*mechanism.links[:-1], light))
    assert odd.size == mechanism.size == pytest.approx(0.8)


def test_slow_mechanisms_are_held_to_their_own_speed():
    mechanism = fgd.robots.five_bar()
    q, v = mechanism.random_state(0)
    wrong = np.array([1e-3, 0, 0, 0])
    for pace in (1e-2, 1.0, 1e3):
        assert closure.is_closed(mechanism, q, pace * v)
        assert not closure.is_closed(mechanism, q, pace * (v + wrong))
    assert closure.is_closed(mechanism, q, 1e-16 * wrong / wrong.max())  # rounding of a mechanism at rest


# ---- tolerance


def test_loops_that_cannot_close_are_used_with_a_tolerance_that_the_error_names():
    mechanism = tilted(1e-4)
    with pytest.raises(
        fgd.ClosureError, match=r"'pin' stays open by 0.0001 rad \(allowed 1e-06 rad\).*tolerate"
    ) as caught:
        mechanism.neutral()
    enough = caught.value.details["tolerance"]
    assert 1e-4 < enough < 1.2e-4
    np.testing.assert_allclose(mechanism.close(np.full(3, 0.1), tolerance=enough), np.full(3, 0.1), atol=0.3)
    usable, exact = mechanism.tolerate(enough), fgd.robots.four_bar()
    q, v = usable.random_state(0)
    a = fgd.forward_dynamics(usable, q, v, np.zeros(3)).a
    q_exact = exact.close(q, hold=["crank_joint"])
    v_exact = exact.complete_velocity(q_exact, v, given=["crank_joint"])
    np.testing.assert_allclose(a, fgd.forward_dynamics(exact, q_exact, v_exact, np.zeros(3)).a, rtol=1e-3)


def test_six_digits_in_a_file_are_enough():
    mechanism = tilted(5e-7)
    q, v = mechanism.random_state(0)
    fgd.forward_dynamics(mechanism, q, v, np.zeros(3))


def test_a_tolerance_stays_with_the_mechanism(tmp_path):
    mechanism = tilted(1e-4).tolerate(2e-4)
    mechanism.save(tmp_path / "tilted.json")
    read = fgd.load(tmp_path / "tilted.json")
    assert read.closure_tolerance == 2e-4
    assert read.fingerprint == mechanism.fingerprint != tilted(1e-4).fingerprint
    for bad in (0.0, -1.0, np.nan, "wide"):
        with pytest.raises(fgd.ModelError, match="closure tolerance of mechanism 'four_bar'"):
            mechanism.tolerate(bad)
        with pytest.raises(fgd.InputError, match="The tolerance is"):
            mechanism.close(np.zeros(3), tolerance=bad)


def test_locked_joints_are_held_to_their_coupling_in_the_mechanisms_size():
    slides = [fgd.Joint(f"slide{i}", "prismatic", "base", f"body{i}", translation(1e-6 * i, 0, 0)) for i in range(2)]
    links = [fgd.Link("base"), *(fgd.Link(f"body{i}", 1e-9) for i in range(2))]
    tiny = fgd.Mechanism("tiny", links, slides, couplings=[fgd.Coupling("rod", "slide1", "slide0")])
    with pytest.raises(fgd.ModelError, match="off their coupling 'rod'"):
        tiny.lock({"slide0": 1e-9, "slide1": 2e-9})


# ---- limits


@pytest.mark.parametrize(("ratio", "offset"), [(1.0, 0.0), (0.5, 0.0), (-1.0, 1.7), (2.0, -0.5), (0.3, 0.9)])
def test_random_hands_stay_within_limits(ratio, offset):
    mechanism = hand(ratio=ratio, offset=offset)
    drawn = np.array([mechanism.random_state(seed)[0] for seed in range(20)])
    assert (drawn >= LIMITS[0]).all()
    assert (drawn <= LIMITS[1]).all()
    assert all(closure.is_closed(mechanism, q) for q in drawn)
    assert (drawn.std(axis=0) > 0.05).all()
    assert np.isin(drawn, LIMITS).mean() < 0.1


def test_random_linkages_stay_within_limits():
    bar = fgd.robots.five_bar()
    q, _ = bar.random_state(0)
    joints = [
        replace(j, limits=(x, x + 0.4)) for j, x in zip(bar.joints, bar.neutral(), strict=True)
    ]  # drawn at limits
    mechanism = replace(bar, joints=tuple(joints))
    lower, upper = np.array([joint.limits for joint in joints]).T
    found = [mechanism.random_state(seed) for seed in range(10)]
    for q, v in found:
        assert (q >= lower).all()
        assert (q <= upper).all()
        closure.check_closed(mechanism, q, v)


def test_limits_of_no_width_or_beyond_reach_count_as_none():
    for mechanism in (hand(limits=(0.0, 0.0)), hand(limits=(0.0, 1.0), offset=5.0)):
        q, v = mechanism.random_state(0)
        closure.check_closed(mechanism, q, v)
        assert np.ptp(q) > 0.1


def test_a_linkage_that_one_start_in_twenty_closes_has_a_home():
    mechanism = mechanism_of(make_trial(2028, 2988).recipe)
    q, v = mechanism.random_state(0)
    assert mechanism.closure_error(q, v) < 1e-9


@pytest.mark.parametrize("length", [1.0, 1e3])
def test_racks_slide_away_from_their_limits(length):
    links = [fgd.Link("base"), fgd.Link("bar", 1.0), fgd.Link("pinion", 1.0)]
    joints = [
        fgd.Joint("slide", "prismatic", "base", "bar"),
        fgd.Joint("turn", "revolute", "base", "pinion", limits=(0.0, np.inf)),
    ]
    rack = fgd.Mechanism("rack", links, joints, couplings=[fgd.Coupling("teeth", "slide", "turn", 0.05, 0.1)])
    mechanism = described_in(rack, length, 1.0)
    drawn = np.array([mechanism.random_state(seed)[0] for seed in range(20)])
    assert (drawn[:, 1] > 0).all()
    np.testing.assert_allclose(drawn[:, 0] * length, 0.05 * drawn[:, 1] + 0.1)


def test_couplings_with_far_offsets_close():
    links = [fgd.Link("base"), fgd.Link("screw", 1.0), fgd.Link("nut", 1.0)]
    joints = [fgd.Joint(name, "revolute", "base", child) for name, child in (("drive", "screw"), ("turn", "nut"))]
    gear = fgd.Mechanism("gear", links, joints, couplings=[fgd.Coupling("teeth", "turn", "drive", 1.0, 1e4)])
    assert closure.is_closed(gear, gear.neutral())


def test_random_states_repeat_with_their_seed(mechanism):
    first, again = mechanism.random_state(3), replace(mechanism).random_state(3)
    np.testing.assert_array_equal(first[0], again[0])
    np.testing.assert_array_equal(first[1], again[1])


# ---- what cannot close


@pytest.mark.parametrize("name", ["four_bar", "delta", "four_bar_chain"])
def test_what_cannot_close_says_so_at_once(name):
    mechanism = moved_loop(fgd.robots.BUILT_IN[name](), translation(9, 9, 9))
    for ask in (mechanism.neutral, mechanism.random_state):
        start = time.process_time()
        with pytest.raises(
            fgd.ClosureError, match=rf"{mechanism.loops[-1].name!r} stays open by .* m \(allowed"
        ) as caught:
            ask()
        assert time.process_time() - start < SOON
        assert 1.0 < caught.value.details["distance"] < 20.0


@pytest.mark.parametrize(
    ("openings", "may_close"),
    [((0.017, 0.017, 0.3), True), ((5e-5, 5e-5, 0.3), False), ((5e-5, 0.3), True), ((0.5, 0.5), False)],
)
def test_more_starts_are_worth_it_unless_few_digits_or_far_apart(openings, may_close):
    """A dead end that is found again says little about others: a chain of fourteen closed in one start of 82."""
    assert _may_close([SimpleNamespace(opening=opening) for opening in openings]) is may_close


def test_a_stretched_arm_leaves_its_dead_end():
    links = [fgd.Link("base"), fgd.Link("upper", 1.0, (0.5, 0, 0)), fgd.Link("lower", 1.0, (0.5, 0, 0))]
    joints = [
        fgd.Joint("shoulder", "revolute", "base", "upper"),
        fgd.Joint("elbow", "revolute", "upper", "lower", translation(1, 0, 0)),
    ]
    pin = fgd.Loop("pin", "revolute", "base", "lower", translation(1.5, 0, 0), translation(1, 0, 0))
    mechanism = fgd.Mechanism("stretched", links, joints, (pin,))
    assert mechanism.closure_error(mechanism.neutral()) < 1e-12


def test_loops_close_as_well_far_from_the_origin():
    mechanism = fgd.robots.five_bar().float_base()
    q, v = mechanism.random_state(0)
    q[:3] = 1e7
    assert mechanism.closure_error(q, v) < 1e-12


def test_limits_on_one_side_are_kept_to():
    links = [fgd.Link("base"), fgd.Link("body", 1.0)]
    joint = fgd.Joint("turn", "revolute", "base", "body", limits=(0.5, np.inf))
    tree = fgd.Mechanism("one_sided", links, [joint])
    drawn = np.array([tree.random_state(seed)[0] for seed in range(20)])
    assert (drawn >= 0.5).all()
    assert np.ptp(drawn) > 1.0


def oblique_turntable():
    """A link on an oblique axis that also lies on the plane across it: a loop that holds nothing, up to rounding."""
    tilt = spatial.rotation_about(np.array([0.6, -0.8, 0.0]), 1.1)
    place = spatial.pose(tilt, np.array([0.3, -0.2, 0.1]))
    body = fgd.Link("body", 1.0, (0.1, 0.2, 0.05), np.diag([0.02, 0.03, 0.04]))
    joint = fgd.Joint("turn", "revolute", "base", "body", place)
    away = spatial.pose(np.eye(3), np.array([-0.4, 0.7, 0.0]))
    loop = fgd.Loop("plane", "planar", "body", "base", away, place @ spatial.pose(np.eye(3), np.array([0.2, 0.1, 0.0])))
    return fgd.Mechanism("turntable", (fgd.Link("base"), body), (joint,), (loop,))


def test_loops_that_hold_nothing_leave_their_joints_free():
    table = oblique_turntable()
    rng = np.random.default_rng(1)
    states = [table.random_state(rng) for _ in range(20)]
    assert np.ptp([q[0] for q, _ in states]) > 1.0
    assert np.ptp([v[0] for _, v in states]) > 1.0
    kernel = fgd.compile(table, "forward", ordering="metis")
    for q, v in states:
        assert kernel(q, v, [0.3]) == pytest.approx(fgd.forward_dynamics(table.tree, q, v, [0.3]).a, rel=1e-10)
