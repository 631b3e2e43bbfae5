"""Mechanisms are validated on construction, and every fault has its own clear error."""

from __future__ import annotations

import pickle
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import Coupling, Frame, Joint, Link, Loop, Mechanism
from factorgraph_dyn.model.joint_kinds import KINDS
from factorgraph_dyn.motion.kinematics import integrate, joint_motion, link_jacobian, link_poses
from factorgraph_dyn.spatial import inverse_pose, logarithm

BASE, ARM, HAND = Link("base"), Link("arm", 1.0), Link("hand", 1.0)
SHOULDER = Joint("shoulder", "revolute", "base", "arm")
WRIST = Joint("wrist", "revolute", "arm", "hand")


def make(links=(BASE, ARM, HAND), joints=(SHOULDER, WRIST), **options):
    return Mechanism("robot", links, joints, **options)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: make(joints=(SHOULDER, Joint("wrist", "revolute", "arm", "hnad"))), "'hnad' is not in .*base, arm"),
        (lambda: make(joints=(SHOULDER, WRIST, Joint("other", "fixed", "base", "hand"))), "child of 2 joints"),
        (lambda: make((ARM, HAND), (WRIST, Joint("back", "revolute", "hand", "arm"))), "form a cycle"),
        (
            lambda: make((BASE, ARM, HAND), (WRIST, Joint("back", "revolute", "hand", "arm"))),
            "not connected to the base 'base'.*cycle",
        ),
        (lambda: make(joints=(SHOULDER,)), "disconnected: links base, hand"),
        (lambda: make(()), "no links"),
        (lambda: make((BASE, ARM, ARM, HAND)), "'arm' occurs twice"),
        (lambda: make(joints=(SHOULDER, replace(WRIST, name="shoulder"))), "'shoulder' occurs twice"),
        (lambda: make(gravity=(0, 0)), "gravity"),
        (lambda: make(gravity=(0, 0, np.nan)), "gravity"),
        (lambda: make(loops=(Loop("l", "revolute", "arm", "leg"),)), "'leg' is not in"),
        (lambda: make(frames=(Frame("f", "leg"),)), "'leg' is not in"),
        (lambda: make(frames=(Frame("hand", "arm"),)), "Frame 'hand' .* another link has its name.*rename the frame"),
        (lambda: make(couplings=(Coupling("c", "wrist", "elbow"),)), "'elbow' is not in"),
        (lambda: Link("x", mass=-1), "negative"),
        (lambda: Link("x", mass=np.inf), "finite"),
        (lambda: Link("x", mass="heavy"), "must be a number"),
        (lambda: Link("x", 1, inertia=[[1, 2, 0], [0, 1, 0], [0, 0, 1]]), "not symmetric"),
        (lambda: Link("x", 1, inertia=np.eye(2)), r"shape \(2, 2\)"),
        (lambda: Link("x", 1, com=(0, np.nan, 0)), "not finite"),
        (lambda: Joint("j", "hinge", "a", "b"), "'hinge' is not in.*revolute"),
        (lambda: Joint("j", "revolute", "a", "a"), "to itself"),
        (lambda: Joint("j", "revolute", "a", "b", axis=(0, 0, 0)), "is zero"),
        (lambda: Joint("j", "revolute", "a", "b", placement=2 * np.eye(4)), "not a rigid motion"),
        (lambda: Joint("j", "revolute", "a", "b", placement=np.diag([1, 1, -1, 1])), "not a rigid motion"),
        (lambda: Joint("j", "revolute", "a", "b", damping=-1), "negative"),
        (lambda: Joint("j", "revolute", "a", "b", armature=(1, 2)), "shape"),
        (lambda: Joint("j", "revolute", "a", "b", limits=(1, 0)), "lower must not exceed"),
        (lambda: Joint("j", "spherical", "a", "b", stiffness=1), "stiffness"),
        (lambda: Joint("j", "universal", "a", "b", axis=((0, 0, 1), (0, 0, 2))), "parallel"),
        (lambda: Loop("l", "revolute", "a", "a"), "to itself"),
        (lambda: Coupling("c", "a", "a"), "to itself"),
        (lambda: Coupling("c", "a", "b", ratio=np.nan), "finite"),
    ],
)
def test_faults_are_named(build, message):
    with pytest.raises(fgd.ModelError, match=message):
        build()


def test_impossible_inertias_are_used_and_listed():
    puma = fgd.robots.puma560()
    assert any("link1" in warning for warning in puma.warnings)
    with pytest.raises(fgd.ModelError, match="link1"):
        replace(puma, strict=True)
    negative = Link("arm", 1.0, inertia=np.diag([-1.0, 1, 1]))
    assert "not positive semidefinite" in make((BASE, negative, HAND)).warnings[0]
    assert not fgd.robots.humanoid().warnings


def test_mechanisms_are_frozen_and_can_be_pickled():
    puma = fgd.robots.puma560()
    with pytest.raises(FrozenInstanceError):
        puma.name = "other"
    with pytest.raises(ValueError, match="read-only"):
        puma.links[1].com[0] = 1.0
    copy = pickle.loads(pickle.dumps(puma))
    q, _ = puma.random_state(0)
    assert (fgd.mass_matrix(copy, q) == fgd.mass_matrix(puma, q)).all()


@pytest.mark.parametrize("kind", KINDS)
def test_kinds_are_consistent(kind):
    """The pose moves along S v as q moves along N(q) v, and coordinates invert the pose."""
    rng = np.random.default_rng(0)
    joint = Joint("j", kind, "a", "b", axis=rng.normal(size=3), pitch=0.3 if kind == "helical" else 0)
    for _ in range(5):
        q, v = joint.type.random(rng), rng.normal(size=joint.nv)
        T, S = joint_motion(joint, q)
        step = 1e-6
        later, S_later = joint_motion(joint, joint.type.normalise(q + step * joint.type.rate(q, v)))
        moved = logarithm(inverse_pose(T) @ later) / step
        assert np.abs(moved - S @ v).max(initial=0) < 1e-5
        rate = joint.type.subspace_rate(S, v)
        expected = np.zeros(6) if rate is None else rate
        assert np.abs((S_later - S) @ v / step - expected).max(initial=0) < 1e-5
        arrived = joint.type.pose(joint.axes, joint.pitch, joint.type.moved(joint.axes, q, step * v))
        assert np.abs(arrived - later).max() < 1e-10
        found = joint.type.pose(joint.axes, joint.pitch, joint.type.coordinates(joint.axes, joint.pitch, T))
        assert np.abs(found - T).max() < 1e-12


def test_jacobian_is_the_derivative_of_the_pose():
    mechanism = fgd.robots.random_tree(7, seed=1, branching=1.5, kinds=("all",))
    q, v = mechanism.random_state(1)
    link = mechanism.link_names[-1]
    before, after = (link_poses(mechanism, x)[link] for x in (q, integrate(mechanism, q, v, 1e-6)))
    V = logarithm(inverse_pose(before) @ after) / 1e-6
    assert np.abs(link_jacobian(mechanism, q, link) @ v - V).max() < 1e-4


def test_twists_solve_the_velocity_factors():
    mechanism = fgd.robots.random_tree(7, seed=1, branching=1.5, kinds=("all",))
    q, v = mechanism.random_state(1)
    state = fgd.evaluate_state(mechanism, q, v)
    A, b = fgd.velocity_graph(state).dense()
    x = np.linalg.solve(A, b)
    for variable, entries in fgd.velocity_graph(state).column_slices.items():
        assert np.abs(x[entries] - state.twists[variable.owner]).max() < 1e-12
        J = link_jacobian(mechanism, q, variable.owner)
        assert np.abs(J @ v - state.twists[variable.owner]).max() < 1e-12


def test_random_states_respect_limits():
    joint = Joint("j", "revolute", "base", "arm", limits=(0.1, 0.2))
    mechanism = Mechanism("m", (BASE, ARM), (joint,))
    for seed in range(20):
        q, _ = mechanism.random_state(seed)
        assert 0.1 <= q[0] <= 0.2


def test_names_and_slices():
    mechanism = fgd.robots.humanoid()
    assert (mechanism.nq, mechanism.nv, len(mechanism.frames)) == (25, 24, 8)
    assert mechanism.q_slice("root") == slice(0, 7)
    assert mechanism.v_slice("left_hip_yaw") == slice(6, 7)
    with pytest.raises(fgd.InputError, match="Joints: root, left_hip_yaw"):
        mechanism.v_slice("hip")
