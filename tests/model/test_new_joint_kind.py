"""A kind of joint is one class and one entry: everything else asks it, and engines that do not know it say so."""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.joint_kinds import KINDS, JointKind
from tests.helpers import relative_error

TOLERANCE = 1e-11


class Cylindrical(JointKind):
    """Turning about the axis and sliding along it."""

    def pose(self, axes, pitch, q):
        return spatial.pose(spatial.rotation_about(axes[0], q[0]), axes[0] * q[1])

    def subspace(self, axes, pitch, T_frame_child):
        S = np.zeros((6, 2))
        S[:3, 0] = S[3:, 1] = axes[0]
        return S

    def misfit(self, axes, T_frame_child):
        tilt = spatial.cross(axes[0], T_frame_child[:3, :3] @ axes[0])
        return np.concatenate([tilt, spatial.cross(axes[0], T_frame_child[:3, 3])])

    def coordinates(self, axes, pitch, T_frame_child):
        return np.array([spatial.turn_about(axes[0], T_frame_child[:3, :3]), axes[0] @ T_frame_child[:3, 3]])


@pytest.fixture(autouse=True)
def _known(monkeypatch):
    monkeypatch.setitem(KINDS, "cylindrical", Cylindrical("cylindrical", 2, 2))


def links():
    body = np.diag([0.2, 0.3, 0.25])
    return [fgd.Link("base"), fgd.Link("arm", 2.0, (0.1, 0.2, 0.0), body), fgd.Link("tip", 1.0, (0.3, 0.0, 0.1), body)]


def cylindrical_arm():
    """A revolute joint, and a cylindrical one beyond it."""
    placement = spatial.pose(spatial.rotation_about(np.array([1.0, 0.0, 0.0]), 0.7), np.array([0.5, 0.0, 0.2]))
    return fgd.Mechanism(
        "arm",
        links(),
        [
            fgd.Joint("first", "revolute", "base", "arm", axis=(0, 1, 0)),
            fgd.Joint("second", "cylindrical", "arm", "tip", placement, axis=(0, 0.6, 0.8), damping=(0.1, 0.2)),
        ],
    )


def same_with_two_joints():
    """The same arm with a joint for each of the two freedoms and a link without mass between them."""
    arm = cylindrical_arm()
    first, second = arm.joints
    return fgd.Mechanism(
        "arm",
        [*arm.links, fgd.Link("between")],
        [
            first,
            fgd.Joint("turn", "revolute", "arm", "between", second.placement, second.axis, damping=0.1),
            fgd.Joint("slide", "prismatic", "between", "tip", axis=second.axis, damping=0.2),
        ],
    )


def test_it_moves_as_its_two_joints_do():
    arm, split = cylindrical_arm(), same_with_two_joints()
    q, v = arm.random_state(0)
    tau = np.array([1.0, -2.0, 3.0])
    a = fgd.forward_dynamics(arm, q, v, tau).a
    assert relative_error(a, fgd.forward_dynamics(split, q, v, tau).a) < TOLERANCE
    assert relative_error(fgd.inverse_dynamics(arm, q, v, a).tau, tau) < TOLERANCE
    assert relative_error(fgd.compile(arm, "forward")(q, v, tau), a) < TOLERANCE
    assert relative_error(fgd.compile(arm, "inverse")(q, v, a), tau) < TOLERANCE


def test_it_is_kept_in_files(tmp_path):
    arm = cylindrical_arm()
    path = tmp_path / "arm.json"
    arm.save(path)
    assert fgd.load(path).fingerprint == arm.fingerprint


def test_it_closes_loops():
    loop = fgd.Loop("rod", "cylindrical", "base", "arm", axis=(1, 0, 0))
    free = fgd.Mechanism("sleeve", links()[:2], [fgd.Joint("free", "floating", "base", "arm")], [loop])
    q, v = free.random_state(1)
    assert free.closure_error(q, v) < 1e-12
    assert fgd.diagnose(free, q).mobility == 2


class Backward(Cylindrical):
    """The same with the slide the other way."""

    def pose(self, axes, pitch, q):
        return super().pose(axes, pitch, q * [1, -1])

    def subspace(self, axes, pitch, T_frame_child):
        return super().subspace(axes, pitch, T_frame_child) * [1, -1]

    def coordinates(self, axes, pitch, T_frame_child):
        return super().coordinates(axes, pitch, T_frame_child) * [1, -1]


def test_what_was_compiled_before_its_class_changed_is_not_given_again(monkeypatch, tmp_path):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", str(tmp_path))
    q, v, tau = np.array([0.3, -0.2, 0.4]), np.array([1.0, 0.5, 2.0]), np.array([1.0, -2.0, 3.0])
    for kind in (Cylindrical, Backward):
        monkeypatch.setitem(KINDS, "cylindrical", kind("cylindrical", 2, 2))
        arm = cylindrical_arm()
        a = fgd.forward_dynamics(arm, q, v, tau).a
        assert relative_error(fgd.compile(arm, "forward")(q, v, tau), a) < TOLERANCE
        assert relative_error(fgd.compile_step(arm)(q, v, tau, 0.01).v, v + 0.01 * a) < TOLERANCE
        assert relative_error(fgd.rollout(arm, q, v, tau[None], 0.01)[1][-1], v + 0.01 * a) < TOLERANCE
        loop = fgd.Loop("rod", "cylindrical", "base", "arm", axis=(1, 0, 0))
        fgd.compile(fgd.Mechanism("sleeve", links()[:2], [fgd.Joint("free", "floating", "base", "arm")], [loop]))
    assert not list(tmp_path.rglob("*.fgdk"))
    fgd.compile(same_with_two_joints())
    assert list(tmp_path.rglob("*.fgdk"))


def test_an_engine_without_it_says_so():
    pinocchio = pytest.importorskip("factorgraph_dyn.compare.peers.pinocchio")
    with pytest.raises(fgd.InputError, match=r"'cylindrical'.*revolute"):
        pinocchio.PinocchioEngine.build(cylindrical_arm())
