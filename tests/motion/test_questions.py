"""Kinematics that users ask for, beside Pinocchio's: poses, Jacobians, momentum, energies, integration."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pinocchio as pin
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.sizes.units import described_in
from factorgraph_dyn.motion.many import at_states
from scripts.validate_models import package_folders
from tests.helpers import lossy, mixed_tree, relative_error
from tests.mechanisms import random_spatial
from tests.oracles.engines import pinocchio_oracle

EXACT = 1e-12  # relative
ROBOTS = next((folder / "robots" for folder in package_folders() if folder.name == "example-robot-data"), None)
FILES = (
    "allegro_hand_description/urdf/allegro_left_hand.urdf",
    "anymal_c_simple_description/urdf/anymal.urdf",
    "double_pendulum_description/urdf/double_pendulum_continuous.urdf",
    "finger_edu_description/robots/finger_edu.urdf",
    "kinova_description/robots/kinova.urdf",
    "panda_description/urdf/panda.urdf",
    "simple_humanoid_description/urdf/simple_humanoid.urdf",
    "talos_data/robots/talos_reduced.urdf",
    "ur_description/urdf/ur5_robot.urdf",
    "z1_description/urdf/z1.urdf",
)


def with_frame(mechanism):
    """The mechanism with a frame on its last link."""
    tilted = spatial.pose(spatial.rotation_about(np.array([0.6, 0.0, 0.8]), 0.7), np.array([0.1, -0.2, 0.3]))
    return mechanism.add_frame("tool", mechanism.link_names[-1], tilted)


def states(mechanism, seed, shape):
    """Random states with leading axes."""
    rng = np.random.default_rng(seed)
    drawn = [mechanism.random_state(rng) for _ in range(int(np.prod(shape)))]
    return tuple(np.array(each).reshape(*shape, -1) for each in zip(*drawn, strict=True))


@pytest.mark.parametrize("seed", range(30))
def test_trees_of_all_joint_kinds_move_as_pinocchios(seed):
    mechanism = with_frame(mixed_tree(seed))
    if not mechanism.nv:
        mechanism = with_frame(mixed_tree(seed + 100))
    engine = pinocchio_oracle(mechanism)
    q, v = states(mechanism, seed, (2, 1))
    poses, com = fgd.poses(mechanism, q), fgd.center_of_mass(mechanism, q)
    energies, momentum = fgd.energy(mechanism, q, v), fgd.momentum(mechanism, q, v)
    jacobians = {axes: fgd.jacobian(mechanism, q, "tool", axes=axes) for axes in ("local", "world")}
    ways, ends = fgd.difference(mechanism, q[0], q[1]), fgd.integrate(mechanism, q, v, 0.5)
    assert set(poses) == {*mechanism.link_names, "tool"}
    for here in np.ndindex(2, 1):
        for name in (*mechanism.link_names, "tool"):
            assert relative_error(poses[name][here], engine.place_pose(q[here], name)) < EXACT
        for axes, J in jacobians.items():
            assert relative_error(J[here], engine.jacobian(q[here], "tool", axes)) < EXACT
        assert relative_error(com[here], engine.center_of_mass(q[here])) < EXACT
        assert relative_error(momentum[here], engine.momentum(q[here], v[here])) < EXACT
        assert relative_error([each[here] for each in energies], engine.energy(q[here], v[here])) < EXACT
        poses_there = fgd.poses(mechanism, ends[here])
        oracle = engine.model.createData()
        pin.forwardKinematics(engine.model, oracle, engine.integrate(q[here], 0.5 * v[here]))
        for link, (joint, T) in engine.link_frames.items():
            assert relative_error(poses_there[link], (oracle.oMi[joint] * T).homogeneous) < EXACT
    for start, end, way in zip(q[0], q[1], ways, strict=True):
        assert relative_error(way, engine.difference(start, end)) < EXACT


@pytest.mark.parametrize("seed", range(4))
def test_single_states_and_batches_agree(seed):
    mechanism = with_frame(lossy(mixed_tree(seed), seed))
    q, v = states(mechanism, seed, (3,))
    questions = [
        lambda q, v: fgd.pose(mechanism, q, "tool"),
        lambda q, v: fgd.jacobian(mechanism, q, "tool"),
        lambda q, v: fgd.jacobian(mechanism, q, "tool", axes="world"),
        lambda q, v: fgd.center_of_mass(mechanism, q),
        lambda q, v: fgd.momentum(mechanism, q, v),
        lambda q, v: np.stack(fgd.energy(mechanism, q, v), axis=-1),
        lambda q, v: fgd.integrate(mechanism, q, v, 0.1),
        lambda q, v: fgd.difference(mechanism, q, q[..., :1] * 0 + mechanism.neutral()),
    ]
    for ask in questions:
        together, alone = ask(q, v), np.array([ask(*state) for state in zip(q, v, strict=True)])
        assert together.shape == alone.shape
        assert relative_error(together, alone) < EXACT
        assert ask(q[:0], v[:0]).shape == (0, *together.shape[1:])
        assert relative_error(ask(q[:, None], v[0]), np.array([[ask(each, v[0])] for each in q])) < EXACT


@pytest.mark.parametrize("scale", [(1e-6, 1e-12), (1e3, 1e9)], ids=str)
def test_micrometres_and_kilometres(scale):
    length, mass = scale
    mechanism = described_in(with_frame(mixed_tree(1)), 1 / length, 1 / mass)
    engine = pinocchio_oracle(mechanism)
    q, v = mechanism.random_state(0)
    for found, expected in (
        (fgd.pose(mechanism, q, "tool")[:3, 3], engine.place_pose(q, "tool")[:3, 3]),
        (fgd.center_of_mass(mechanism, q), engine.center_of_mass(q)),
        *zip(*(h.reshape(2, 3) for h in (fgd.momentum(mechanism, q, v), engine.momentum(q, v))), strict=True),
        *zip(fgd.energy(mechanism, q, v), engine.energy(q, v), strict=True),
    ):
        size = np.abs(expected).max()
        assert relative_error(found / size, expected / size) < EXACT


def test_functions_of_many_states_may_not_branch():
    with pytest.raises(TypeError, match="may not branch on the state"):
        at_states(lambda q: (q if q[0] else -q,), np.ones((2, 3)))


def test_large_batches_are_answered_block_by_block():
    arm = fgd.robots.puma560()
    q = np.random.default_rng(0).uniform(-3, 3, (10_000, 6))
    tip = fgd.pose(arm, q, arm.link_names[-1])
    for k in (0, 4095, 4096, 9_999):
        assert relative_error(tip[k], fgd.pose(arm, q[k], arm.link_names[-1])) < EXACT


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
@pytest.mark.parametrize("name", FILES, ids=lambda name: name.split("/")[-1])
def test_files_move_as_pinocchio_reads_them(name):
    mechanism = fgd.load(ROBOTS / name, folder=ROBOTS)
    model = pin.buildModelFromUrdf(str(ROBOTS / name))
    data = model.createData()
    rng = np.random.default_rng(0)
    q, v = mechanism.tree.random_state(rng)
    theirs, rates = pin.neutral(model), np.zeros(model.nv)
    columns = []
    for joint in mechanism.movable_joints:
        engine_joint = model.joints[model.getJointId(joint.name)]
        (angle,) = q[mechanism.q_slice(joint.name)]
        place = slice(engine_joint.idx_q, engine_joint.idx_q + engine_joint.nq)
        theirs[place] = angle if engine_joint.nq == 1 else (np.cos(angle), np.sin(angle))
        rates[engine_joint.idx_v] = v[mechanism.v_slice(joint.name)][0]
        columns.append(engine_joint.idx_v)
    pin.framesForwardKinematics(model, data, theirs)
    poses = fgd.poses(mechanism, q)
    for link in mechanism.link_names:
        frame = model.getFrameId(link, pin.FrameType.BODY)
        assert relative_error(poses[link], data.oMf[frame].homogeneous) < EXACT
    tip = model.getFrameId(mechanism.link_names[-1], pin.FrameType.BODY)
    for axes, reference in (("local", pin.LOCAL), ("world", pin.LOCAL_WORLD_ALIGNED)):
        J = np.roll(pin.computeFrameJacobian(model, data, theirs, tip, reference), 3, axis=0)[:, columns]
        assert relative_error(fgd.jacobian(mechanism, q, mechanism.link_names[-1], axes=axes), J) < EXACT
    h = pin.computeCentroidalMomentum(model, data, theirs, rates)
    assert relative_error(fgd.momentum(mechanism, q, v), np.concatenate([h.angular, h.linear])) < EXACT
    assert relative_error(fgd.center_of_mass(mechanism, q), pin.centerOfMass(model, data, theirs)) < EXACT
    expected = pin.computeKineticEnergy(model, data, theirs, rates), pin.computePotentialEnergy(model, data, theirs)
    # rotors' inertia is the joints' alone, and Pinocchio's kinetic energy leaves it out
    assert relative_error(fgd.energy(without_armature(mechanism), q, v), expected) < EXACT


def without_armature(mechanism):
    return replace(mechanism, joints=tuple(replace(joint, armature=0.0) for joint in mechanism.joints))


# ---- integrate and difference


def one_joint(kind):
    links = [fgd.Link("base"), fgd.Link("body", 1.0, inertia=np.eye(3))]
    return fgd.Mechanism(kind, links, [fgd.Joint("joint", kind, "base", "body", axis=(0.0, 0.6, 0.8))])


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e3])
@pytest.mark.parametrize("angle", [0.0, 1e-300, 1e-12, 1e-8, 1e-4, 1.0, 3.0, np.pi - 1e-3, np.pi - 1e-7])
@pytest.mark.parametrize("kind", ["spherical", "planar", "floating", "universal", "helical"])
def test_integrate_and_difference_are_inverse(kind, angle, length):
    mechanism = one_joint(kind)
    joint, rng = mechanism.joints[0], np.random.default_rng(3)
    scales = joint.freedom_units(length)
    for _ in range(5):
        q = joint.type.random(rng, length)
        v = rng.normal(size=mechanism.nv) * scales
        turning = joint.turns
        v[turning] *= angle / np.linalg.norm(v[turning])
        there = fgd.integrate(mechanism, q, v)
        back = fgd.difference(mechanism, q, there)
        # a turn of almost pi is known as well as rounding of the quaternion lets it be
        assert np.abs((back - v) / scales).max() < EXACT * max(1.0, np.abs(q / joint.coordinate_units(length)).max())
        again = fgd.integrate(mechanism, q, back)
        assert np.abs(fgd.difference(mechanism, there, again) / scales).max() < EXACT
        assert np.abs(fgd.difference(mechanism, q, q)).max() == 0.0


def test_difference_goes_the_shorter_way_round():
    planar = one_joint("planar")
    way = fgd.difference(planar, [0.0, 0.0, 3.0], [0.0, 0.0, -3.0])
    assert np.allclose(way, [0.0, 0.0, 2 * np.pi - 6.0])
    ball = one_joint("spherical")
    q = ball.random_state(0)[0]
    assert np.abs(fgd.difference(ball, q, -q)).max() < 1e-15


def test_integration_takes_a_time_for_every_state():
    arm = fgd.robots.rrr()
    q, v = np.zeros((2, 3)), np.ones(3)
    assert np.allclose(fgd.integrate(arm, q, v, [0.5, 2.0]), [[0.5] * 3, [2.0] * 3])


# ---- what they mean


@pytest.mark.parametrize("axes", ["local", "world"])
def test_the_jacobian_is_the_motion_of_the_frame(axes):
    mechanism = with_frame(random_spatial(3))
    q, v = mechanism.random_state(1)
    ahead, behind = (fgd.pose(mechanism, fgd.integrate(mechanism, q, v, s), "tool") for s in (1e-6, -1e-6))
    T = fgd.pose(mechanism, q, "tool")
    twist = spatial.logarithm(spatial.inverse_pose(behind) @ ahead) / 2e-6
    if axes == "world":
        twist = np.concatenate([T[:3, :3] @ twist[:3], T[:3, :3] @ twist[3:]])
    assert relative_error(fgd.jacobian(mechanism, q, "tool", axes=axes) @ v, twist) < 1e-8


def test_closed_loops_are_trees_with_more_to_satisfy():
    closed = random_spatial(5)
    q, v = closed.random_state(0)
    for ask in (fgd.poses, fgd.center_of_mass):
        answers = ask(closed, q), ask(closed.tree, q)
        assert np.array_equal(*(np.stack(list(a.values())) if isinstance(a, dict) else a for a in answers))
    assert np.array_equal(fgd.momentum(closed, q, v), fgd.momentum(closed.tree, q, v))
    M = fgd.mass_matrix(closed, q)
    assert fgd.energy(closed, q, v)[0] == pytest.approx(0.5 * v @ M @ v, rel=1e-12)


def test_merging_fixed_links_changes_nothing():
    mechanism = fgd.robots.random_tree(9, seed=7, branching=1.5, kinds=("fixed", "revolute", "spherical"))
    base = mechanism.link_by_name["base"]
    heavy = replace(base, mass=1e6, com=(1.0, 2.0, 3.0), inertia=np.eye(3))
    mechanism = with_frame(replace(mechanism, links=(heavy, *mechanism.links[1:])))
    merged = mechanism.merge_fixed()
    q, v = states(mechanism, 0, (2,))
    poses = fgd.poses(merged, q)
    for name, T in fgd.poses(mechanism, q).items():
        assert relative_error(poses[name], T) < EXACT
    for ask in (fgd.momentum, fgd.energy, lambda m, q, v: fgd.center_of_mass(m, q)):
        assert relative_error(ask(merged, q, v), ask(mechanism, q, v)) < EXACT


def test_springs_and_rotors_have_energy():
    arm = lossy(fgd.robots.rrr(), 0)
    q, v = arm.random_state(0)
    plain = replace(arm, joints=tuple(replace(j, armature=0.0, stiffness=0.0) for j in arm.joints))
    kinetic, potential = (a - b for a, b in zip(fgd.energy(arm, q, v), fgd.energy(plain, q, v), strict=True))
    armature, stiffness, rest = (
        np.concatenate([getattr(j, n) for j in arm.joints]) for n in ("armature", "stiffness", "rest")
    )
    assert kinetic == pytest.approx(0.5 * armature @ v**2)
    assert potential == pytest.approx(0.5 * stiffness @ (q - rest) ** 2)


# ---- refusals


def test_wrong_shapes_and_names_are_refused_in_words():
    arm = with_frame(fgd.robots.rrr())
    q, v = np.zeros((4, 3)), np.zeros((3, 3))
    for ask, message in (
        (lambda: fgd.pose(arm, q[:, :2], "tool"), r"q has shape \(4, 2\).*\(\.\.\., 3,\)"),
        (lambda: fgd.pose(arm, q, "tol"), r"Link or frame 'tol' is not in mechanism.*link3, tool"),
        (lambda: fgd.jacobian(arm, q, 3), "Link or frame 3 is not in mechanism"),
        (lambda: fgd.jacobian(arm, q, "tool", axes="body"), "axes is 'body'; it must be one of: local, world"),
        (lambda: fgd.momentum(arm, q, v), r"\(4, 3\) and \(3, 3\) do not go together"),
        (lambda: fgd.energy(arm, q, v[:, :1]), r"v has shape \(3, 1\)"),
        (lambda: fgd.integrate(arm, q, v), "do not go together"),
        (lambda: fgd.integrate(arm, q, q, np.zeros(3)), "do not go together"),
        (lambda: fgd.integrate(arm, q, q, np.nan), "The step is not finite"),
        (lambda: fgd.difference(arm, q, v), "do not go together"),
        (lambda: fgd.difference(arm, q, np.zeros(4)), r"q1 has shape \(4,\)"),
        (lambda: fgd.difference(arm, np.full(3, np.nan), q), "q0 is not finite at joints joint1"),
        (
            lambda: fgd.pose(one_joint("spherical"), np.zeros((2, 4)), "body"),
            "quaternion .* of joint 'joint' has length 0",
        ),
    ):
        with pytest.raises(fgd.InputError, match=message):
            ask()


def test_without_mass_there_is_no_centre_of_it():
    links = [fgd.Link("base", 5.0), fgd.Link("arm")]
    massless = fgd.Mechanism("massless", links, [fgd.Joint("joint", "revolute", "base", "arm")])
    for ask in (lambda: fgd.center_of_mass(massless, [0.0]), lambda: fgd.momentum(massless, [0.0], [1.0])):
        with pytest.raises(fgd.InputError, match="Nothing that moves in mechanism 'massless' has mass"):
            ask()
    assert fgd.energy(massless, [0.0], [1.0]) == (0.0, 0.0)
