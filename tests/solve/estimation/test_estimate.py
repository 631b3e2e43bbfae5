"""What estimates are: exact where nothing is noisy, honest where nothing is known, and refused in words."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import described_in
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.spatial import pose, rotation_of_quaternion

S = fgd.sensors


def arm():
    """A PUMA 560 with a hand frame, at a state, and its true motion."""
    rng = np.random.default_rng(0)
    hand = pose(rotation_of_quaternion(rng.normal(size=4)), np.array([0.1, -0.05, 0.2]))
    plain = fgd.robots.puma560()
    mechanism = replace(plain, frames=(fgd.Frame("hand", plain.links[-1].name, hand),))
    q, v = mechanism.random_state(rng)
    return mechanism, q, v, rng.normal(size=6)


def torques(mechanism, values, sigma):
    return [S.Torque(name, values[mechanism.v_slice(name)], sigma) for name in mechanism.joint_names]


def test_exact_torques_are_forward_dynamics():
    mechanism, q, v, tau = arm()
    estimate = fgd.estimate(mechanism, q, v, torques(mechanism, tau, 0.0))
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    assert np.allclose(estimate.a, solution.a, rtol=1e-11)
    assert np.allclose(estimate.tau, tau, rtol=1e-12)
    for name, wrench in solution.wrenches.items():
        assert np.allclose(estimate.wrenches[name], wrench, rtol=1e-9, atol=1e-9)
    for name, acceleration in solution.accelerations.items():
        assert np.allclose(estimate.accelerations[name], acceleration, rtol=1e-9, atol=1e-9)
    assert not estimate.covariance("a", "tau").any()
    assert estimate.degrees_of_freedom == 0


def test_an_accelerometer_reads_what_differences_of_positions_say():
    mechanism, q, v, a = arm()
    steps = np.array([-1.0, 0.0, 1.0]) * 1e-4
    poses = [link_poses(mechanism, q + h * v + h**2 / 2 * a)[mechanism.links[-1].name] for h in steps]
    hands = [T @ mechanism.frames[0].placement for T in poses]
    R, p = hands[1][:3, :3], [T[:3, 3] for T in hands]
    proper = R.T @ ((p[0] - 2 * p[1] + p[2]) / 1e-8 - mechanism.gravity)
    given = [S.Acceleration(name, a[mechanism.v_slice(name)], 1.0) for name in mechanism.joint_names]
    estimate = fgd.estimate(mechanism, q, v, [*given, S.Accelerometer("hand", proper, 1e-3)])
    assert np.abs(estimate.innovations["Accelerometer[hand]"]).max() < 1e-2  # in standard deviations of 1e-3
    assert np.allclose(estimate.a, a, atol=1e-4)


def test_a_contact_force_follows_from_torques_and_accelerations():
    mechanism, q, v, a = arm()
    force = np.array([0.0, 0.0, 0.0, 3.0, -2.0, 5.0])
    link, T = mechanism.place("hand")
    wrench = fgd.spatial.inverse_adjoint(T).T @ force
    tau = fgd.inverse_dynamics(mechanism, q, v, a, external_wrenches={link: wrench}).tau
    sensors = torques(mechanism, tau, 0.1)
    sensors += [S.Acceleration(name, a[mechanism.v_slice(name)], 1e-3) for name in mechanism.joint_names]
    contact = S.ExternalWrench("hand", np.zeros(6), [0, 0, 0, np.inf, np.inf, np.inf])
    estimate = fgd.estimate(mechanism, q, v, [*sensors, contact])
    assert np.allclose(estimate.external["hand"], force, atol=1e-8)
    assert (estimate.standard_deviation["W[hand]"][:3] == 0).all()
    assert (estimate.standard_deviation["W[hand]"][3:] > 0.01).all()
    known = fgd.estimate(mechanism, q, v, sensors, external_wrenches={link: wrench})
    assert known.chi_square < 1e-12
    missed = fgd.estimate(mechanism, q, v, sensors)  # a load that nobody told of does not fit
    assert missed.chi_square > 10 * missed.degrees_of_freedom


def test_an_innovation_is_the_miss_of_what_the_others_say():
    mechanism, q, v, a = arm()
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    sensors = torques(mechanism, tau + 0.1 * np.random.default_rng(1).normal(size=6), 0.1)
    sensors += [S.Acceleration(name, a[mechanism.v_slice(name)], 0.3) for name in mechanism.joint_names]
    sensors[2] = replace(sensors[2], value=tau[2] + 5.0)
    estimate = fgd.estimate(mechanism, q, v, sensors)
    worst = max(estimate.innovations, key=lambda name: np.abs(estimate.innovations[name]).max())
    assert worst == sensors[2].label
    others = fgd.estimate(mechanism, q, v, sensors[:2] + sensors[3:])
    s = np.hypot(others.standard_deviation[f"tau[{mechanism.joint_names[2]}]"], 0.1)
    miss = tau[2] + 5.0 - others.tau[2]
    assert np.allclose(estimate.innovations[worst], miss / s, rtol=1e-9)


def test_the_log_likelihood_is_that_of_the_noises():
    mechanism, q, v, a = arm()
    sensors = torques(mechanism, a, 0.2)
    C = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])
    sensors.append(S.Accelerometer("hand", [1.0, 2.0, 3.0], C))
    estimate = fgd.estimate(mechanism, q, v, sensors)
    T = fgd.spatial.inverse_adjoint(mechanism.place("hand")[1])
    offset = sensors[-1].reading(estimate.state).offset
    missed = np.array([1.0, 2.0, 3.0]) - (T @ estimate.accelerations[mechanism.links[-1].name])[3:] - offset
    expected = -0.5 * ((estimate.tau - a) @ (estimate.tau - a) / 0.04 + missed @ np.linalg.solve(C, missed))
    expected -= 6 * np.log(0.2) + 0.5 * np.linalg.slogdet(C)[1] + 4.5 * np.log(2 * np.pi)
    assert np.isclose(estimate.log_likelihood, expected, rtol=1e-10)


def test_what_is_not_seen_is_named_with_sensors_that_would_see_it():
    mechanism, q, v, tau = arm()
    sensors = torques(mechanism, tau, 0.1)
    elbow = mechanism.joint_names[2]
    with pytest.raises(fgd.SingularSystemError, match=rf"tau\[{elbow}\].*Torque\[{elbow}\]") as error:
        fgd.estimate(mechanism, q, v, sensors[:2] + sensors[3:])
    assert error.value.details["sensors"] == (f"Torque[{elbow}]",)
    estimate = fgd.estimate(mechanism, q, v, sensors[:2] + sensors[3:], undetermined="infinite")
    assert np.isnan(estimate.tau[2])
    assert np.isinf(estimate.standard_deviation["tau"][2])
    assert np.isfinite(estimate.tau[[0, 1, 3, 4, 5]]).all()
    C = estimate.covariance(f"tau[{mechanism.joint_names[0]}]", f"tau[{elbow}]")
    assert np.isclose(C[0, 0], 0.01)
    assert np.isinf(C[1, 1])
    assert np.isnan(C[0, 1])


def test_internal_wrenches_of_redundant_loops_are_open_until_one_is_measured():
    mechanism = fgd.robots.four_bar()
    q, v = mechanism.random_state(3)
    sensors = [S.Torque("crank_joint", 0.4, 0.1)] if "crank_joint" in mechanism.joint_names else []
    sensors = sensors or [S.Torque(next(j.name for j in mechanism.movable_joints if j.actuated), 0.4, 0.1)]
    loop = mechanism.loops[0].name
    loose = fgd.estimate(mechanism, q, v, sensors)
    assert np.isinf(loose.standard_deviation[f"F[{loop}]"]).any()
    tau = np.zeros(mechanism.nv)
    tau[mechanism.v_slice(sensors[0].place)] = 0.4
    solution = fgd.forward_dynamics(mechanism, q, v, tau)
    assert np.allclose(loose.a, solution.a, rtol=1e-9)
    assert set(loose.undetermined) == set(solution.not_unique)
    known = {**solution.not_unique}
    for name, entries in loose.undetermined.items():
        assert entries == known[name], name
    full = fgd.estimate(mechanism, q, v, [*sensors, S.ForceTorque(loop, solution.wrenches[loop], 1e-3)])
    assert np.allclose(full.a, solution.a, rtol=1e-6)
    assert not full.undetermined


def test_missing_motors_are_exact_and_can_be_given_back():
    mechanism = fgd.robots.humanoid()
    q, v = mechanism.random_state(0)
    sensors = [S.Torque(name, np.zeros(1), 0.1) for name in mechanism.joint_names[1:]]
    estimate = fgd.estimate(mechanism, q, v, sensors)
    assert not estimate.standard_deviation["tau[root]"].any()
    with pytest.raises(fgd.SingularSystemError, match=r"tau\[root\]"):
        fgd.estimate(mechanism, q, v, sensors, actuated=mechanism.joint_names)


def test_model_noise_is_a_wrench_from_nowhere_on_every_link():
    mechanism, q, v, tau = arm()
    sensors = torques(mechanism, tau, 0.1)
    noisy = fgd.estimate(mechanism, q, v, sensors, model_noise=0.5)
    as_wrenches = [S.ExternalWrench(link.name, np.zeros(6), 0.5) for link in mechanism.links[1:]]
    same = fgd.estimate(mechanism, q, v, [*sensors, *as_wrenches])
    assert np.allclose(noisy.covariance("a"), same.covariance("a"), rtol=1e-9)
    assert np.allclose(noisy.a, same.a, rtol=1e-9)
    some = fgd.estimate(mechanism, q, v, sensors, model_noise={mechanism.links[-1].name: 0.5})
    exact = fgd.estimate(mechanism, q, v, sensors)
    deviations = [each.standard_deviation["a"] for each in (exact, some, noisy)]
    assert (deviations[0] < deviations[1]).all()
    assert (deviations[1] < deviations[2]).all()


def test_a_combination_reads_what_it_says():
    mechanism, q, v, tau = arm()
    first, second = mechanism.joint_names[:2]
    rows = {f"tau[{first}]": 1.0, f"tau[{second}]": -2.0}
    sensors = torques(mechanism, tau, 0.1)
    belt = S.Combination("belt", rows, tau[0] - 2 * tau[1], 0.0)
    estimate = fgd.estimate(mechanism, q, v, [*sensors, belt])
    C = estimate.covariance(f"tau[{first}]", f"tau[{second}]")
    assert np.abs(np.array([1.0, -2.0]) @ C).max() < 1e-15
    link = mechanism.links[-1].name
    reading = S.Combination("spatial", {f"A[{link}]": np.eye(6)}, np.zeros(6), 1e-3)
    assert fgd.estimate(mechanism, q, v, [*sensors, reading]).degrees_of_freedom == 6


def test_velocities_of_a_standing_robot():
    mechanism = fgd.robots.humanoid()
    q, _ = mechanism.random_state(1)
    rng = np.random.default_rng(2)
    rates = [S.Velocity(name, rng.normal(size=1), 1e-3) for name in mechanism.joint_names[1:]]
    foot = [S.PointVelocity("left_foot"), S.Gyroscope("left_foot", np.zeros(3), 1e-6)]
    estimate = fgd.estimate_velocity(mechanism, q, [*rates, *foot])
    assert np.abs(estimate.twists["left_foot"]).max() < 1e-9
    speeds = fgd.evaluate_state(mechanism, q, estimate.v).twists
    assert np.allclose(estimate.twists["torso"], speeds["torso"], rtol=1e-10)
    with pytest.raises(fgd.SingularSystemError, match=r"v\[root\]"):
        fgd.estimate_velocity(mechanism, q, rates)


@pytest.mark.parametrize(("length", "mass"), [(1e-6, 1e-18), (1e3, 1e9)])
def test_units_do_not_matter(length, mass):
    mechanism, q, v, tau = arm()
    small = described_in(mechanism, 1 / length, 1 / mass)
    work = mass * length**2
    estimate = fgd.estimate(mechanism, q, v, [*torques(mechanism, tau, 0.1), S.Accelerometer("hand", np.ones(3), 0.2)])
    same = fgd.estimate(
        small,
        q,
        v,
        [*torques(small, tau * work, 0.1 * work), S.Accelerometer("hand", np.full(3, length), 0.2 * length)],
    )
    assert np.allclose(same.a, estimate.a, rtol=1e-9)
    assert np.allclose(same.covariance("a"), estimate.covariance("a"), rtol=1e-8)


def test_normalised_errors_are_chi_square():
    mechanism, q, v, a = arm()
    tau = fgd.inverse_dynamics(mechanism, q, v, a).tau
    C = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])

    def estimated(values):
        sensors = torques(mechanism, values[:6], 0.1)
        sensors += [S.Acceleration(n, values[6 + i], 2.0) for i, n in enumerate(mechanism.joint_names[:3])]
        return fgd.estimate(mechanism, q, v, [*sensors, S.Accelerometer("hand", values[9:], C)])

    still = estimated(np.zeros(12))  # the answer is linear in the values
    gain = still.gain("a")
    assert np.allclose(
        gain, np.column_stack([estimated(unit).a - still.a for unit in np.eye(12)]), rtol=1e-7, atol=1e-9
    )
    reading = estimated(np.zeros(12)).sensors[-1].reading(fgd.evaluate_state(mechanism, q, v))
    A = fgd.inverse_dynamics(mechanism, q, v, a).accelerations[mechanism.links[-1].name]
    true = np.concatenate([tau, a[:3], reading.blocks[0][1] @ A + reading.offset])
    assert np.allclose(still.a + gain @ true, a, rtol=1e-8)
    rng = np.random.default_rng(0)
    noise = np.hstack([rng.normal(size=(2000, 6)) * 0.1, rng.normal(size=(2000, 3)) * 2.0])
    noise = np.hstack([noise, rng.multivariate_normal(np.zeros(3), C, 2000)])
    errors = noise @ gain.T
    squares = np.einsum("ni,ij,nj->n", errors, np.linalg.inv(still.covariance("a")), errors)
    x = np.sort(squares) / 2
    cumulative = 1 - np.exp(-x) * (1 + x + x**2 / 2)  # chi-square with 6 degrees of freedom
    assert np.abs(cumulative - (np.arange(2000) + 0.5) / 2000).max() < 1.63 / np.sqrt(2000)  # Kolmogorov, 1 %
    assert abs(squares.mean() - 6) < 3 * np.sqrt(2 * 6 / 2000)
    assert abs(squares.var() - 12) < 2.0
    fits = np.array([estimated(true + each).chi_square for each in noise[:40]])
    assert 3.5 < fits.mean() < 8.5  # 12 readings, 6 unknowns


@pytest.mark.parametrize(
    ("sensor", "words"),
    [
        (S.Torque("elbo", 1.0, 0.1), "Joint 'elbo' is not in mechanism 'puma560'"),
        (S.Accelerometer("han", [1, 2, 3], 0.1), "Link or frame 'han' is not in"),
        (S.ForceTorque("nowhere", np.zeros(6), 0.1), "Joint or loop 'nowhere' is not in"),
        (S.Torque("joint1", 1.0, -0.1), "0 \\(exact\\) or positive"),
        (S.Torque("joint1", 1.0), "not given; give sigma"),
        (S.Torque("joint1", None, 0.1), "has no value"),
        (S.Torque("joint1", np.nan, 0.1), "not finite"),
        (S.Torque("joint1", [1.0, 2.0], 0.1), r"has shape \(2,\)"),
        (S.Accelerometer("hand", [1, 2, 3], np.diag([1.0, 1.0, -1.0])), "not positive definite"),
        (S.Accelerometer("hand", [1, 2, 3], np.ones((3, 3))), "not positive definite"),
        (S.Accelerometer("hand", [1, 2, 3], [[1, 0.5, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        (S.Accelerometer("hand", [1, 2, 3], [1, 2]), "has shape"),
        (S.ExternalWrench("base", np.zeros(6), 1.0), "fixed in the world"),
        (S.Gyroscope("hand", [1, 2, 3], 0.1), "fgd.estimate_velocity"),
        (S.Combination("c", {"tau[nothing]": 1.0}, 1.0, 0.1), "'nothing' is not in"),
        (S.Combination("c", {"x[joint1]": 1.0}, 1.0, 0.1), "may combine"),
    ],
)
def test_bad_sensors_are_refused_in_words(sensor, words):
    mechanism, q, v, tau = arm()
    names = {"joint1": mechanism.joint_names[0], "base": mechanism.base}
    if sensor.place in names:
        field = "frame" if hasattr(sensor, "frame") else "joint"
        sensor = replace(sensor, **{field: names[sensor.place]})
    with pytest.raises(fgd.InputError, match=words):
        fgd.estimate(mechanism, q, v, [*torques(mechanism, tau, 0.1), sensor])


def test_exact_values_that_contradict_each_other_are_refused_by_name():
    mechanism, q, v, tau = arm()
    sensors = torques(mechanism, tau, 0.0)
    name = mechanism.joint_names[1]
    with pytest.raises(fgd.InputError, match=rf"Torque\[{name}\] #2 misses what follows from Torque\[{name}\]"):
        fgd.estimate(mechanism, q, v, [*sensors, S.Torque(name, tau[1] + 1e-3, 0.0)])
    fgd.estimate(mechanism, q, v, [*sensors, S.Torque(name, tau[1], 0.0)])
    robot = fgd.robots.humanoid()
    state = robot.random_state(0)
    pushed = [S.Torque("root", np.ones(6), 0.0), *(S.Torque(name, [0.0], 0.1) for name in robot.joint_names[1:])]
    with pytest.raises(fgd.InputError, match="the missing motor of joint 'root'"):
        fgd.estimate(robot, *state, pushed)


def test_components_and_names_are_checked():
    with pytest.raises(fgd.InputError, match="Component 'fw' is not in"):
        S.ForceTorque("wrist", [1.0], 0.1, ("fw",))
    with pytest.raises(fgd.InputError, match="at most once"):
        S.Accelerometer("hand", [1.0, 1.0], 0.1, ("x", "x"))
    with pytest.raises(fgd.InputError, match="mix velocities"):
        S.Combination("c", {"v[elbow]": 1.0, "a[elbow]": 1.0})
    mechanism, q, v, tau = arm()
    estimate = fgd.estimate(mechanism, q, v, torques(mechanism, tau, 0.1))
    with pytest.raises(fgd.InputError, match="Variable 'tau\\[elbow' is not in the estimate"):
        estimate.covariance("tau[elbow")
    with pytest.raises(fgd.InputError, match="undetermined is 'maybe'"):
        fgd.estimate(mechanism, q, v, torques(mechanism, tau, 0.1), undetermined="maybe")


def test_axes_of_the_world_are_axes_turned():
    mechanism, q, v, tau = arm()
    rng, R = np.random.default_rng(4), fgd.pose(mechanism, q, "hand")[:3, :3]
    C = np.array([[4.0, 1.0, 0.0], [1.0, 2.0, 0.5], [0.0, 0.5, 1.0]])

    def both(kind, parts):
        value, turn = rng.normal(size=3 * parts), np.kron(np.eye(parts), R)
        local, sigma = kind("hand", value, np.kron(np.eye(parts), C)), turn @ np.kron(np.eye(parts), C) @ turn.T
        return local, kind("hand", turn @ value, sigma, axes="world")

    pairs = [both(S.Accelerometer, 1), both(S.AngularAcceleration, 1), both(S.ExternalWrench, 2)]
    local, world = (
        fgd.estimate(mechanism, q, v, [*torques(mechanism, tau, 0.1), *each]) for each in zip(*pairs, strict=True)
    )
    assert np.allclose(world.a, local.a, rtol=1e-10)
    assert np.allclose(world.covariance("a", "W[hand]"), local.covariance("a", "W[hand]"), rtol=1e-8, atol=1e-12)
    assert np.isclose(world.log_likelihood, local.log_likelihood, rtol=1e-12)
    W, turned = np.arange(6.0), np.kron(np.eye(2), R) @ np.arange(6.0)
    sensors = torques(mechanism, tau, 0.1)
    known = fgd.estimate(mechanism, q, v, sensors, external_wrenches={"hand": turned}, axes="world")
    assert np.allclose(known.a, fgd.estimate(mechanism, q, v, sensors, external_wrenches={"hand": W}).a, rtol=1e-10)
    rates = [S.Velocity(name, 1.0, 1.0) for name in mechanism.joint_names]
    level = fgd.estimate_velocity(mechanism, q, [*rates, S.PointVelocity("hand", components="z", axes="world")])
    assert abs(fgd.jacobian(mechanism, q, "hand", axes="world")[5] @ level.v) < 1e-13
    with pytest.raises(fgd.InputError, match="axes of Gyroscope"):
        S.Gyroscope("hand", 0, 0.1, axes="hand")


def test_a_force_sensor_reads_in_a_frame_of_its_own():
    mechanism, q, v, a = arm()
    true = fgd.inverse_dynamics(mechanism, q, v, a)
    link, T = mechanism.place("hand")
    wrist = next(joint.name for joint in mechanism.joints if joint.child == link)
    read = fgd.spatial.adjoint(T).T @ true.wrenches[wrist]
    sensors = [S.Acceleration(name, a[mechanism.v_slice(name)], 1.0) for name in mechanism.joint_names]
    fits = fgd.estimate(mechanism, q, v, [*sensors, S.ForceTorque(wrist, read, 1e-3, frame="hand")])
    assert np.abs(fits.innovations[f"ForceTorque[{wrist}]"]).max() < 1e-8
    first = mechanism.joint_names[0]
    with pytest.raises(fgd.InputError, match="frame 'hand', which is on link"):
        fgd.estimate(mechanism, q, v, [*sensors, S.ForceTorque(first, read, 1e-3, frame="hand")])
