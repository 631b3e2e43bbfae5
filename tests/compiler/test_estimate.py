"""Compiled estimators give what estimates through the graph give, and prove it."""

from __future__ import annotations

import pickle
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.estimator.basis import BLIND, _unseen
from factorgraph_dyn.compiler.estimator.trial import EstimateTrial
from factorgraph_dyn.compiler.proof.proof import ALLOWED
from factorgraph_dyn.equations.problem import make_problem

S = fgd.sensors
COVARIANCE = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])


def with_values(sensors, mechanism, y):
    sizes = [sensor.size(mechanism) for sensor in sensors]
    return [
        replace(sensor, value=part) for sensor, part in zip(sensors, np.split(y, np.cumsum(sizes)[:-1]), strict=True)
    ]


def check(mechanism, sensors, outputs, seed=0, states=3):
    """A kernel's answers at some states beside those of the graph."""
    kernel = fgd.compile(mechanism, "estimate", measurements=sensors, outputs=outputs)
    assert kernel.accuracy < 1e-9
    rng = np.random.default_rng(seed)
    found = [mechanism.random_state(rng) for _ in range(states)]
    q, v = (np.array(part) for part in zip(*found, strict=True))
    values = rng.normal(size=(states, sum(sensor.size(mechanism) for sensor in sensors)))
    results = kernel(q, v, values)
    for k in range(states):
        estimate = fgd.estimate(mechanism, q[k], v[k], with_values(sensors, mechanism, values[k]))
        for name, result in zip(kernel.outputs, results, strict=True):
            true = estimate.gain(name[5:-1]) if name.startswith("gain[") else estimate.mean(name)
            assert np.allclose(result[k], true, rtol=1e-8, atol=1e-9 * np.abs(true).max()), name
    return kernel


def test_a_tree_of_many_kinds_with_every_sensor():
    mechanism = fgd.robots.random_tree(2, seed=5, kinds=("spherical", "universal"))
    hand = fgd.spatial.pose(fgd.spatial.rotation_about(np.array([0.0, 0.6, 0.8]), 0.4), np.array([0.1, 0.2, -0.3]))
    placed = [fgd.Frame("hand", mechanism.links[-1].name, hand), fgd.Frame("cell", mechanism.joints[1].child, hand)]
    mechanism = replace(mechanism, frames=tuple(placed))
    first = mechanism.movable_joints[0]
    sensors = [S.Torque(joint.name, sigma=0.3) for joint in mechanism.movable_joints]
    sensors += [
        S.Accelerometer("hand", sigma=COVARIANCE, axes="world"),
        S.AngularAcceleration(mechanism.links[2].name, sigma=0.5, components=("x", "z")),
        S.ForceTorque(mechanism.joints[1].name, sigma=2.0, components=("mx", "fz"), frame="cell"),
        S.ExternalWrench("hand", sigma=[0.1, 0.1, 0.1, 20.0, 20.0, 5.0], axes="world"),
        S.Acceleration(first.name, sigma=0.4),
        S.Combination("sum", {f"A[{mechanism.links[1].name}]": np.ones(6), "W[hand]": np.ones(6)}, sigma=1.0),
    ]
    joint, link = mechanism.joints[0].name, mechanism.links[-1].name
    names = ["a", "tau", "W[hand]", f"F[{joint}]", f"A[{link}]", "gain[tau]"]
    check(mechanism, sensors, names)


def test_a_contact_force_that_nothing_is_known_of():
    mechanism = fgd.robots.rrr()
    tip = mechanism.links[-1].name
    sensors = [S.Torque(name, sigma=0.1) for name in mechanism.joint_names]
    sensors += [S.Acceleration(name, sigma=1e-2) for name in mechanism.joint_names]
    # The arm moves in a plane: of a force at its tip two components show.
    sensors.append(S.ExternalWrench(tip, sigma=[0.0, 0.0, 0.0, 1e3, 1e3, 1e3]))
    kernel = check(mechanism, sensors, ["a", f"W[{tip}]", f"gain[W[{tip}]]", f"gain[A[{tip}]]"])
    q, v = mechanism.random_state(1)
    values = np.zeros(12)
    _, _, gain, _ = kernel(q, v, values)
    exact = fgd.estimate(mechanism, q, v, with_values(sensors, mechanism, values))
    R = np.diag([0.1**2] * 3 + [1e-4] * 3 + [0.0] * 3 + [1e6] * 3)
    assert np.allclose(gain @ R @ gain.T, exact.covariance(f"W[{tip}]"), rtol=1e-6, atol=1e-9)


def test_a_closed_mechanism():
    mechanism = fgd.robots.five_bar()
    sensors = [S.Torque(joint.name, sigma=0.1) for joint in mechanism.movable_joints if joint.actuated]
    sensors += [S.Acceleration(name, sigma=1.0) for name in mechanism.joint_names]
    sensors.append(S.ForceTorque(mechanism.loops[0].name, sigma=0.3))
    kernel = check(mechanism, sensors, ["a", "tau", "gain[a]"])
    q, v = mechanism.random_state(0)
    assert np.isnan(kernel(q + 0.3, v, np.zeros(12))[0]).all()  # far from closed


def test_gains_of_what_follows_no_reading():
    """Torques without a motor, and joints that closure locks: there is nothing to compare rounding with."""
    arm = fgd.robots.rrr()
    arm = replace(arm, joints=[arm.joints[0], *(replace(joint, actuated=False) for joint in arm.joints[1:])])
    sensors = [S.Torque("joint1", sigma=0.1), *(S.Acceleration(name, sigma=1.0) for name in arm.joint_names)]
    check(arm, sensors, ["a", "tau", "gain[a]", "gain[tau]"])


def test_a_locked_joint_moves_by_rounding_only():
    """At speed, rounding of the products of velocities is all that is left of its acceleration."""
    arm = fgd.robots.random_tree(5, seed=3, kinds=("revolute",))
    ends = [arm.joints[2].child, arm.joints[3].child]
    T = np.linalg.inv(fgd.pose(arm, np.zeros(5), ends[1])) @ fgd.pose(arm, np.zeros(5), ends[0])
    locked = replace(arm, loops=[fgd.Loop("lock", "prismatic", *ends, successor_placement=T)])
    sensors = [S.Torque(name, sigma=0.1) for name in locked.joint_names]
    sensors += [S.Accelerometer(ends[0], sigma=1.0)]
    kernel = check(locked, sensors, ["a", "gain[a]"])
    assert np.abs(kernel(*locked.random_state(0), np.ones(8))[0][3]) < 1e-9


def test_components_that_a_planar_loop_determines():
    """Out of its plane a loop presses as it likes: a sensor of what is in the plane is one all the same."""
    mechanism = fgd.robots.four_bar()
    names, loop = mechanism.joint_names, mechanism.loops[0].name
    sensors = [S.Torque(name, sigma=0.1) for name in mechanism.motors]
    sensors += [S.ForceTorque(name, sigma=[1.0, 2.0], components=("fx", "fy")) for name in (names[0], loop)]
    check(mechanism, sensors, ["a", "tau"])


def test_a_loop_that_holds_nothing():
    arm = fgd.robots.rrr()
    free = replace(arm, loops=[fgd.Loop("free", "floating", arm.base, "link3")])
    sensors = [S.Torque(name, sigma=0.1) for name in free.joint_names]
    check(free, [*sensors, S.ForceTorque("free", sigma=1.0)], ["a", "F[free]"])


@pytest.mark.slow
def test_a_humanoid_with_torques_an_imu_and_feet():
    mechanism = fgd.robots.humanoid()
    sensors = [S.Torque(name, sigma=0.1) for name in mechanism.joint_names[1:]]
    sensors += [S.Accelerometer("torso", sigma=0.05), S.AngularAcceleration("torso", sigma=0.5)]
    sensors += [S.ExternalWrench("left_foot", sigma=5.0), S.ExternalWrench("right_foot", sigma=5.0)]
    kernel = check(mechanism, sensors, None, states=2)
    assert kernel.outputs == ("a", "tau", "W[left_foot]", "W[right_foot]")
    assert kernel.operations.total < 13_000


def test_a_proof_finds_wrong_answers():
    mechanism = fgd.robots.rrr()
    sensors = [S.Torque(name, sigma=0.1) for name in mechanism.joint_names]
    sensors += [S.Acceleration(mechanism.joint_names[0], sigma=0.2)]
    kernel = fgd.compile(mechanism, "estimate", measurements=sensors, outputs=["a", "gain[a]"])
    problem = make_problem(mechanism, "estimate", outputs=["a", "gain[a]"], measurements=sensors)
    trial = EstimateTrial(mechanism, problem)
    assert trial.judge(kernel.gufunc).holds

    def wrong(entry, q, v, values):
        a, gain = kernel.gufunc(q, v, values)
        (a if entry == "a" else gain)[3] *= 1 + 1e-7
        return a, gain

    for entry in ("a", "gain"):
        proof = trial.judge(lambda *arguments, entry=entry: wrong(entry, *arguments))
        assert proof.accuracy > ALLOWED
        assert not proof.holds
    noisier = [replace(sensors[0], sigma=0.11), *sensors[1:]]  # a kernel of other noises is a wrong one
    other = EstimateTrial(
        mechanism, make_problem(mechanism, "estimate", outputs=["a", "gain[a]"], measurements=noisier)
    )
    assert not other.judge(kernel.gufunc).holds


def test_what_cannot_be_compiled_is_refused_in_words():
    mechanism = fgd.robots.rrr()
    torques = [S.Torque(name, sigma=0.1) for name in mechanism.joint_names]
    with pytest.raises(fgd.InputError, match="the estimate problem, and no other"):
        fgd.compile(mechanism, "estimate")
    with pytest.raises(fgd.InputError, match="the estimate problem, and no other"):
        fgd.compile(mechanism, "forward", measurements=torques)
    with pytest.raises(fgd.InputError, match="There is no output 'b'"):
        fgd.compile(mechanism, "estimate", measurements=torques, outputs=["gain[b]"])
    with pytest.raises(fgd.InputError, match="Frame 'hand' is not in"):
        fgd.compile(mechanism, "estimate", measurements=torques, outputs=["W[hand]"])
    with pytest.raises(fgd.InputError, match="as measurements"):
        fgd.compile(mechanism, "estimate", measurements=torques, external_wrenches=["link3"])
    with pytest.raises(fgd.InputError, match="infinite sigma"):
        fgd.compile(mechanism, "estimate", measurements=[S.Torque("joint1", sigma=np.inf)])
    with pytest.raises(fgd.CompileError, match="not determined"):
        fgd.compile(mechanism, "estimate", measurements=torques[1:])
    exact = S.Torque(mechanism.joint_names[0], sigma=0.0)
    with pytest.raises(fgd.CompileError, match=r"exact readings of Torque\[joint1\] follow"):
        fgd.compile(mechanism, "estimate", measurements=[exact, exact, *torques[1:]])


def test_kernels_of_other_noises_are_other_kernels():
    mechanism = fgd.robots.pendulum(1)
    name = mechanism.joint_names[0]
    first, second = (
        fgd.compile(mechanism, "estimate", measurements=[S.Torque(name, sigma=s), S.Acceleration(name, sigma=1.0)])
        for s in (0.1, 10.0)
    )
    a = [kernel([0.3], [0.0], [0.0, 1.0])[0] for kernel in (first, second)]
    assert abs(a[0] - a[1]) > 0.01


def test_noises_of_all_scales_and_kernels_of_all_uses(tmp_path):
    mechanism = fgd.robots.rrr()
    sensors = [S.Torque(name, sigma=1e-6) for name in mechanism.joint_names]
    sensors += [S.Acceleration(name, sigma=1e6) for name in mechanism.joint_names]
    kernel = check(mechanism, sensors, ["a", "tau"])
    q, v = mechanism.random_state(0)
    again = pickle.loads(pickle.dumps(kernel))
    np.testing.assert_array_equal(again(q, v, np.ones(6)), kernel(q, v, np.ones(6)))
    assert kernel.check(q, v, np.ones(6)) == ()
    source, _ = kernel.to_c(tmp_path / "estimator.c")
    assert "readings of the sensors" in source.read_text() + source.with_suffix(".h").read_text()


@pytest.mark.parametrize("sigma", [1e-3, 1e-4])
def test_exact_readings_that_say_nothing_where_axes_line_up(sigma):
    """A sharp gyroscope's x says all of the tilt but where it turns about y: there the torque has to."""
    links = (fgd.Link("base"), *(fgd.Link(name, 1.0, inertia=np.eye(3)) for name in ("one", "two")))
    joints = (
        fgd.Joint("turn", "revolute", "base", "one"),
        fgd.Joint("tilt", "revolute", "one", "two", axis=(1.0, 0.0, 0.0)),
    )
    mechanism, values = fgd.Mechanism("gimbal", links, joints), np.array([1.0, 2.0, 0.5, 0.1, 0.2])

    def sensors(turn, tilt, angular):
        gyroscope = fgd.sensors.AngularAcceleration("two", angular, np.array([sigma, 1e3, 1e3]), axes="world")
        return [fgd.sensors.Torque("turn", turn, 1.0), fgd.sensors.Torque("tilt", tilt, 1.0), gyroscope]

    kernel = fgd.compile(mechanism, "estimate", measurements=sensors(None, None, None))
    for turn in (0.0, 0.3, np.pi / 2, -np.pi / 2, np.pi):
        q, v = np.array([turn, 0.2]), np.zeros(2)
        expected = fgd.estimate(mechanism, q, v, sensors(*values[:2], values[2:])).a
        assert np.abs(kernel(q, v, values)[0] - expected).max() <= 1e-8 * np.abs(expected).max()


def test_trial_readings_fit_the_mechanism():
    """Behind a gear of 120 nothing moves as it is drawn: readings that contradict it cost the proof its digits."""
    arm = fgd.robots.rrr()
    passive = replace(arm.joints[1], actuated=False)
    geared = replace(
        arm, joints=[arm.joints[0], passive, arm.joints[2]], couplings=[fgd.Coupling("gear", "joint3", "joint1", 120.0)]
    )
    sensors = [S.Torque("joint1", sigma=1e-3), *(S.Acceleration(name, sigma=1e-6) for name in geared.joint_names)]
    sensors += [S.ForceTorque("joint2", sigma=1e-3)]
    trial = EstimateTrial(geared, make_problem(geared, "estimate", measurements=sensors, outputs=["a", "tau"]))
    degrees = trial.posteriors[0].tests.shape[1]
    assert degrees > 3
    assert max(found.chi_square for found in trial.posteriors) < 10 * degrees
    check(geared, sensors, ["a", "tau"])


def test_moments_that_are_only_rounding():
    """A slide that bears its link at the centre of mass feels no moment but what products of velocities leave."""
    half_turn = fgd.spatial.rotation_about(np.array([1.0, 0.0, 0.0]), 3.14159271)
    slide = fgd.Joint(
        "slide", "prismatic", "ground", "block", fgd.spatial.pose(half_turn, np.zeros(3)), axis=(2e-6, 0.0, -1.0)
    )
    block = fgd.Link("block", 0.04, (0.0, 0.0, 0.0), np.diag([1e-3, 2e-3, 3e-3]))
    mechanism = fgd.Mechanism("slide", [fgd.Link("ground"), block], [slide])
    kernel = fgd.compile(mechanism, "estimate", measurements=[S.Torque("slide", sigma=1.0)], outputs=["a", "F[slide]"])
    assert kernel.accuracy < 1e-10


def test_wrenches_in_the_axes_of_the_world_where_these_are_the_link_s():
    """A sharp force sensor along the link's z replaces another component of the world's at every other quarter turn."""
    link = fgd.Link("arm", 1.0, (0.2, -0.3, 0.1), np.diag([0.4, 0.5, 0.7]))
    joint = fgd.Joint("hinge", "revolute", "ground", "arm", axis=(1.0, 0.0, 0.0))
    mechanism = fgd.Mechanism("pushed", [fgd.Link("ground"), link], [joint])
    sensors = [S.Torque("hinge", sigma=3.0), S.Acceleration("hinge", sigma=0.01)]
    sensors += [
        S.ForceTorque("hinge", sigma=0.04, components=("fz",)),
        S.ExternalWrench("arm", sigma=10.0, axes="world"),
    ]
    kernel = check(mechanism, sensors, ["a", "tau", "W[arm]"])
    quarters = np.arange(-2, 3)[:, None] * np.pi / 2
    assert np.isfinite(kernel(quarters, np.ones((5, 1)), np.ones((5, 9)))[0]).all()


def test_choices_are_blind_beside_what_can_be_seen():
    """What no reading tells of, as what presses a planar loop out of its plane, hides nothing that others tell."""
    K = np.array([[1.0, 0.0, 0.0], [1.0, 1e-12, 0.0], [0.0, 1.0, 0.0]])
    assert _unseen(K, (0, 1)) > BLIND
    assert _unseen(K, (0, 2)) < 2
    assert np.isclose(_unseen(K[:2], (0, 1)), 1)
    assert _unseen(K, ()) == 1


def test_a_plane_that_holds_what_stays_in_it_anyway():
    """Two slides in the plane of a loop: of its closure nothing is left but rounding, and the slides are free."""
    turned = [
        fgd.spatial.pose(fgd.spatial.rotation_about(np.array([0.0, 0.0, 1.0]), x), np.zeros(3)) for x in (0.4, 2.0)
    ]
    links = [fgd.Link("ground"), *(fgd.Link(name, 1.0, (0.1, 0.0, 0.0), np.eye(3)) for name in ("one", "two"))]
    joints = [
        fgd.Joint("first", "prismatic", "ground", "one", turned[0], axis=(-0.548, 0.836, 0.0), actuated=False),
        fgd.Joint("second", "prismatic", "one", "two", turned[1], axis=(-0.204, 0.979, 0.0)),
    ]
    loop = fgd.Loop("plane", "planar", "ground", "two", successor_placement=turned[1])
    mechanism = fgd.Mechanism("slides", links, joints, [loop])
    sensors = [S.Torque("second", sigma=0.5), S.Acceleration("first", sigma=0.3), S.Accelerometer("two", sigma=1.0)]
    check(mechanism, sensors, ["a", "tau", "A[two]"])
