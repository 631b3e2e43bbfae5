"""M^-1 B by every route, against Pinocchio on trees and the dense KKT inverse on closed loops."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Contact
from factorgraph_dyn.motion.kinematics import integrate, link_poses
from factorgraph_dyn.spatial import pose, rotation_about
from tests.helpers import lossy, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-9
FINITE_DIFFERENCES = 1e-6
METHODS = ("columns", "iim", "eufm", "carpentier")
CLOSED = ("four_bar", "five_bar", "stewart", "delta")


def tree(seed: int) -> fgd.Mechanism:
    """Trees of all kinds of joints; every second one floats, every third one has armature and losses."""
    mechanism = fgd.robots.random_tree(2 + seed % 11, seed=seed, branching=1 + seed % 3, kinds=("all",))
    if seed % 2:
        mechanism = mechanism.add_payload("base", 2.0, (0.1, 0.0, 0.2), 0.3 * np.eye(3)).float_base()
    return lossy(mechanism, seed) if seed % 3 == 0 else mechanism


def some_contacts(mechanism: fgd.Mechanism, rng: np.random.Generator) -> list[Contact]:
    links = [link for link in mechanism.link_names if link != mechanism.base]
    return [
        Contact(str(rng.choice(links)), rng.normal(size=3)),
        Contact(str(rng.choice(links)), rng.normal(size=3), "wrench", axes="world"),
        Contact(str(rng.choice(links)), rng.normal(size=3), directions=rng.normal(size=(2, 3)), axes="world"),
    ]


@pytest.mark.parametrize("seed", range(50))
def test_every_method_equals_pinocchio(seed):
    mechanism = tree(seed)
    if mechanism.nv == 0:
        mechanism = tree(seed + 50)
    q, _ = mechanism.random_state(seed)
    contacts = some_contacts(mechanism, np.random.default_rng(seed))
    oracle = pinocchio_oracle(mechanism)
    expected = oracle.inverse_mass_matrix(q) @ fgd.input_matrix(mechanism, q, contacts=contacts)
    for method in METHODS:
        assert relative_error(fgd.iwim(mechanism, q, contacts=contacts, method=method), expected) < AGREEMENT
        inverse = fgd.inverse_mass_matrix(mechanism, q, method=method)
        assert relative_error(inverse, oracle.inverse_mass_matrix(q)) < AGREEMENT
        assert (inverse == inverse.T).all()


@pytest.mark.parametrize("seed", range(6))
def test_inputs_cause_what_forward_dynamics_says(seed):
    mechanism = lossy(mixed_tree(seed + 100), seed)
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(seed)
    link = mechanism.link_names[-1]
    for method in METHODS:
        answer = fgd.input_dynamics(mechanism, q, v, contacts=[Contact(link, kind="wrench")], method=method)
        tau, wrench = rng.normal(size=mechanism.nv), rng.normal(size=6)
        expected = fgd.forward_dynamics(mechanism, q, v, tau, external_wrenches={link: wrench}).a
        assert relative_error(answer.acceleration(np.concatenate([tau, wrench])), expected) < AGREEMENT


@pytest.mark.parametrize("name", CLOSED)
@pytest.mark.parametrize("method", METHODS)
def test_closed_loops_equal_the_dense_kkt_inverse(name, method):
    mechanism = fgd.robots.BUILT_IN[name]()
    q, v = mechanism.random_state(3)
    J, J_rate_v = closure_jacobian(mechanism, q, v)
    M, h = fgd.mass_matrix(mechanism, q), fgd.bias(mechanism, q, v)
    link = mechanism.link_names[-1]
    contacts = [Contact(link, (0.1, 0.2, 0.3))]
    B = fgd.input_matrix(mechanism, q, contacts=contacts)
    KKT = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    inverse = np.linalg.inv(KKT)[: mechanism.nv]
    answer = fgd.input_dynamics(mechanism, q, v, contacts=contacts, method=method)
    assert relative_error(answer.matrix, inverse[:, : mechanism.nv] @ B) < AGREEMENT
    assert relative_error(answer.free, inverse @ np.concatenate([-h, -J_rate_v])) < FINITE_DIFFERENCES


@pytest.mark.parametrize("name", CLOSED)
def test_closed_loops_move_as_forward_dynamics_says(name):
    mechanism = fgd.robots.BUILT_IN[name]()
    q, v = mechanism.random_state(4)
    answer = fgd.input_dynamics(mechanism, q, v, actuated=mechanism.joint_names)
    tau = np.random.default_rng(0).normal(size=mechanism.nv)
    assert relative_error(answer.acceleration(tau), fgd.forward_dynamics(mechanism, q, v, tau).a) < AGREEMENT


def test_couplings_constrain_the_response():
    arm = fgd.robots.pendulum(3)
    geared = replace(arm, couplings=(fgd.Coupling("gear", "joint3", "joint1", ratio=-2.0),))
    q = geared.close(np.array([0.3, -0.4, 0.0]))
    Bhat = fgd.iwim(geared, q, actuated=geared.joint_names)
    M = fgd.mass_matrix(geared, q)
    N = np.array([[1.0, 0.0], [0.0, 1.0], [-2.0, 0.0]])  # v = N (v1, v2)
    assert relative_error(Bhat, N @ np.linalg.inv(N.T @ M @ N) @ N.T) < AGREEMENT
    assert np.array_equal(
        fgd.iwim(geared, q), fgd.iwim(geared, q, actuated=["joint1", "joint2"])
    )  # a follower has none


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("axes", ["local", "world"])
@pytest.mark.parametrize("kind", ["force", "wrench"])
def test_task_accelerations_are_rates_of_task_velocities(seed, axes, kind):
    mechanism = mixed_tree(seed + 200)
    rng = np.random.default_rng(seed)
    q, v = mechanism.random_state(seed)
    task = Contact(mechanism.link_names[-1], rng.normal(size=3), kind, axes=axes)
    answer = fgd.input_dynamics(mechanism, q, v, tasks=[task])
    u = rng.normal(size=mechanism.nv)
    a, step = answer.acceleration(u), 1e-5

    def task_velocity(time: float) -> np.ndarray:
        moved = integrate(mechanism, q, v + 0.5 * a * time, time)
        there = fgd.input_dynamics(mechanism, moved, v + a * time, tasks=[task])
        return there.task_jacobian @ (v + a * time)

    rate = (task_velocity(step) - task_velocity(-step)) / (2 * step)
    assert relative_error(answer.task_matrix @ u + answer.free_task, rate) < FINITE_DIFFERENCES
    expected = answer.task_jacobian @ fgd.inverse_mass_matrix(mechanism, q) @ answer.task_jacobian.T
    assert relative_error(answer.inverse_task_inertia, expected) < AGREEMENT


def test_world_tasks_follow_the_point():
    mechanism = fgd.robots.puma560()
    q, v = mechanism.random_state(0)
    point = np.array([0.1, -0.2, 0.3, 1.0])
    answer = fgd.input_dynamics(mechanism, q, v, tasks=[Contact("link6", point[:3], axes="world")])
    ahead, behind = (link_poses(mechanism, integrate(mechanism, q, v, dt))["link6"] @ point for dt in (1e-6, -1e-6))
    assert relative_error(answer.task_jacobian @ v, (ahead - behind)[:3] / 2e-6) < FINITE_DIFFERENCES


@pytest.mark.parametrize("name", ["humanoid", "five_bar"])
def test_one_recursion_serves_all_columns(name, monkeypatch):
    from factorgraph_dyn.solve import singularity

    mechanism = fgd.robots.BUILT_IN[name]()
    calls = []
    recursion = singularity.articulated_joints
    monkeypatch.setattr(singularity, "articulated_joints", lambda *given: calls.append(1) or recursion(*given))
    q, v = mechanism.random_state(0)
    place = Contact(mechanism.link_names[-1], kind="wrench")
    fgd.input_dynamics(mechanism, q, v, contacts=[place], tasks=[place])
    assert len(calls) == 1


def test_motors_are_columns_in_the_order_listed():
    mechanism = fgd.robots.puma560()
    q, _ = mechanism.random_state(0)
    listed = ("joint4", "joint1", "joint3")
    everything = fgd.iwim(mechanism, q, actuated=mechanism.joint_names)
    expected = everything[:, [mechanism.joint_names.index(name) for name in listed]]
    np.testing.assert_allclose(fgd.iwim(mechanism, q, actuated=listed), expected, rtol=1e-12)


def test_frames_are_places_of_contacts():
    mechanism = fgd.robots.humanoid()
    q, _ = mechanism.random_state(0)
    frame = mechanism.frames[0]
    by_frame = fgd.iwim(mechanism, q, contacts=[frame.name])
    by_point = fgd.iwim(mechanism, q, contacts=[Contact(frame.link, frame.placement[:3, 3])])
    assert relative_error(by_frame, by_point) < AGREEMENT
    assert by_frame.shape == (24, 18 + 3)


def test_contacts_on_the_base_move_nothing():
    assert not fgd.iwim(fgd.robots.rrr(), np.zeros(3), actuated=(), contacts=["base"]).any()


def test_names_of_inputs_are_unique():
    arm = fgd.robots.rrr().rename({"joint1": "free"})
    twice = [Contact("link3"), Contact("link3", (1, 0, 0)), "link2"]
    answer = fgd.input_dynamics(arm, np.zeros(3), np.zeros(3), contacts=twice, tasks=["link3", "link3"])
    forces = ("link3.fx", "link3.fy", "link3.fz")
    again = tuple(f"{name} #2" for name in forces)
    assert answer.names == (*arm.joint_names, *forces, *again, "link2.fx", "link2.fy", "link2.fz")
    assert answer.task_names == (*forces, *again)
    assert answer._repr_html_().count("<th>") == 2 + len(answer.names)
    robot = fgd.robots.humanoid()
    pushed = Contact("torso", directions=[[0, 0, 1]], label="root")
    q, v = robot.random_state(0)
    names = fgd.input_dynamics(robot, q, v, actuated=["root"], contacts=[pushed]).names
    assert names == (*(f"root.{k}" for k in range(6)), "root.0 #2")


def test_inputs_have_names():
    mechanism = fgd.robots.humanoid()
    q, v = mechanism.random_state(0)
    contacts = [Contact("left_foot", label="heel"), Contact("torso", directions=(0, 0, 1))]
    names = fgd.input_dynamics(mechanism, q, v, actuated=["left_knee", "root"], contacts=contacts).names
    assert names[:3] == ("left_knee", "root.0", "root.1")
    assert names[7:] == ("heel.fx", "heel.fy", "heel.fz", "torso.0")


@pytest.mark.parametrize("weight", [1e-3, 1e-6, 1e-9, 1e-12])
def test_light_tips_cost_no_digits(weight):
    chain = fgd.robots.pendulum(6)
    *links, tip = chain.links
    light = replace(chain, links=(*links, fgd.Link(tip.name, weight * tip.mass, tip.com, weight * tip.inertia)))
    q, _ = light.random_state(0)
    expected = pinocchio_oracle(light).inverse_mass_matrix(q)
    for method in METHODS:
        found = fgd.inverse_mass_matrix(light, q, method=method)
        assert relative_error(found, expected) < AGREEMENT
        assert relative_error(found[:4, :4], expected[:4, :4]) < AGREEMENT


@pytest.mark.parametrize("method", METHODS)
def test_trees_that_only_their_loop_makes_regular(method):
    five_bar = fgd.robots.five_bar()
    tips = {loop.successor for loop in five_bar.loops} | {loop.predecessor for loop in five_bar.loops}
    massless = min(tips)
    links = tuple(fgd.Link(link.name) if link.name == massless else link for link in five_bar.links)
    mechanism = replace(five_bar, links=links)
    q, v = mechanism.random_state(5)
    tau = np.random.default_rng(0).normal(size=mechanism.nv)
    with pytest.raises(fgd.SingularSystemError):
        fgd.inverse_mass_matrix(mechanism, q)
    answer = fgd.input_dynamics(mechanism, q, v, actuated=mechanism.joint_names, method=method)
    J, J_rate_v = closure_jacobian(mechanism, q, v)
    M, h = fgd.mass_matrix(mechanism, q), fgd.bias(mechanism, q, v)
    KKT = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    expected = np.linalg.solve(KKT, np.concatenate([tau - h, -J_rate_v]))[: mechanism.nv]
    assert relative_error(answer.acceleration(tau), expected) < FINITE_DIFFERENCES


def closure_jacobian(mechanism: fgd.Mechanism, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Independent rows of the closure's Jacobian by its definition, and their rate times v by differences."""
    from factorgraph_dyn.motion.closure import constraints

    J = np.vstack([c.jacobian for c in constraints(mechanism, q)])
    left, values, _ = np.linalg.svd(J, full_matrices=False)
    rows = left[:, values > 1e-6 * values[0]].T

    def velocity(time: float) -> np.ndarray:
        moved = integrate(mechanism, q, v, time)
        return rows @ np.vstack([c.jacobian for c in constraints(mechanism, moved)]) @ v

    return rows @ J, (velocity(1e-6) - velocity(-1e-6)) / 2e-6


@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
def test_a_tree_that_is_nearly_singular_alone_loses_nothing_where_loops_hold_it(method):
    """A needle that a loop keeps from turning about itself, and a disc about nearly its axis: 1e8 alone, 0 closed."""
    oblique = pose(rotation_about(np.array([0.48, -0.6, 0.64]), 2.1), np.zeros(3))
    links = (
        fgd.Link("base"),
        fgd.Link("needle", 3.0, inertia=np.diag([0.05, 0.05, 0.0])),
        fgd.Link("disc", 1.0, inertia=np.eye(3)),
        fgd.Link("arm", 1.0, inertia=np.eye(3)),
    )
    joints = (
        fgd.Joint("spin", "revolute", "base", "needle"),
        fgd.Joint("turn", "revolute", "needle", "disc", axis=(0.0, -1e-4, -1.0), actuated=False),
        fgd.Joint("swing", "revolute", "base", "arm", axis=(1.0, 0.0, 0.0)),
    )
    held = fgd.Loop("held", "revolute", "needle", "base", oblique, oblique)
    mechanism = fgd.Mechanism("needle", links, joints, (held,), gravity=np.zeros(3))
    found = fgd.iwim(mechanism, [0.0, 2.0, 0.3], method=method)
    np.testing.assert_allclose(found, [[0.0, 0.0], [0.0, 0.0], [0.0, 1.0]], atol=1e-14)


@pytest.mark.parametrize("tilt", [4e-17, 1e-9, 1e-6, 1e-3])
@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
def test_forces_of_loops_that_would_spin_a_needle(method, tilt):
    """Motors do not move it, but the forces of the loop that holds it would: J M^-1 J^T is nearly singular."""
    oblique = pose(rotation_about(np.array([0.48, -0.6, 0.64]), 2.1), np.zeros(3))
    turned = pose(rotation_about(np.array([0.0, 1.0, 0.0]), tilt), np.zeros(3))
    links = (
        fgd.Link("base"),
        fgd.Link("needle", 3.0, inertia=np.diag([0.1, 0.1, 0.0])),
        fgd.Link("arm", 1.0, inertia=np.eye(3)),
    )
    joints = (
        fgd.Joint("aim", "universal", "base", "needle", axis=[[0.0, 0.0, 1.0], [0.0, 1.0, 0.0]], actuated=False),
        fgd.Joint("swing", "revolute", "base", "arm", axis=(0.0, 1.0, 0.0)),
    )
    held = fgd.Loop("held", "revolute", "needle", "base", oblique, turned @ oblique)
    mechanism = fgd.Mechanism("needle", links, joints, (held,), gravity=np.zeros(3))
    found = fgd.iwim(mechanism, [0.0, tilt, 0.3], method=method)
    np.testing.assert_allclose(found, [[0.0], [0.0], [1.0]], atol=1e-14)


def test_contacts_keep_what_they_were_made_of():
    arm = fgd.robots.rrr()
    q, directions, point = arm.neutral(), np.array([[0.0, 0.0, 1.0]]), np.array([0.1, 0.2, 0.3])
    contact = Contact("link3", point, directions=directions)
    expected = fgd.iwim(arm, q, actuated=[], contacts=[Contact("link3", point.copy(), directions=directions.copy())])
    directions[:], point[:] = [[1.0, 0.0, 0.0]], 0.0
    np.testing.assert_array_equal(fgd.iwim(arm, q, actuated=[], contacts=[contact]), expected)
    with pytest.raises(ValueError, match="read-only"):
        contact.directions[:] = 0.0
