"""Kernels of a shaft with two Cardan joints: motors with dead points, and quarter turns at which pivots vanish."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.helpers import relative_error

BEND = 0.3  # rad, of each joint
AGREES = 1e-9
JOINTS = ("j_in", "j_x1", "j_mid", "j_x2", "j_out")


@pytest.fixture(autouse=True)
def _no_cache(monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")


def shaft(*, crosses_weigh, turned=False):
    """Input, cross, middle, cross and output, which a bearing holds; links in frames of their own if turned."""
    along = np.array([np.cos(BEND), np.sin(BEND), 0.0])
    T = fgd.translation
    inertia = np.diag([0.03, 0.04, 0.05])
    names = ("in", "x1", "mid", "x2", "out")
    weighs = {name: crosses_weigh or not name.startswith("x") for name in names}
    axes = ((1, 0, 0), (0, 0, 1), np.cross(along, (0, 0, 1)), (0, 0, 1), (0, 1, 0))
    places = (np.eye(4), T(0.3, 0, 0), np.eye(4), T(*(0.4 * along)), np.eye(4))
    # A frame F of a link's own: the joint to it ends in F, and what follows starts there.
    rng = np.random.default_rng(4)
    own = [fgd.rotation(rng.normal(size=3), 1.0) if turned else np.eye(4) for _ in names]
    starts = [np.eye(4), *own[:-1]]
    links, joints, parent = [fgd.Link("base")], [], "base"
    for name, joint, axis, place, before, frame in zip(names, JOINTS, axes, places, starts, own, strict=True):
        R = frame[:3, :3]
        com, seen = R.T @ [0.05, 0.02, -0.03], R.T @ inertia @ R
        links.append(fgd.Link(name, 1.0, com, (seen + seen.T) / 2) if weighs[name] else fgd.Link(name))
        joints.append(fgd.Joint(joint, "revolute", parent, name, before.T @ place @ frame, R.T @ np.array(axis)))
        parent = name
    held = T(*(np.array([0.6, 0.0, 0.0]) + 0.4 * along))
    bearing = fgd.Loop("bearing", "revolute", "base", "out", held, own[-1].T @ T(0.3, 0, 0), (1, 0, 0))
    return fgd.Mechanism("shaft", links, joints, [bearing])


def turned_to(mechanism, angle):
    q = np.zeros(5)
    for q[0] in np.linspace(0.0, angle, 9)[1:]:
        q = mechanism.close(q, hold=["j_in"])
    return q


@pytest.mark.parametrize("motor", ["j_out", "j_mid"])
def test_dead_points_of_a_motor_at_some_states_refuse_no_kernel(motor):
    """Where it has no lever at all, the condition is infinite; it was not a number, and so was the median of all."""
    mechanism, wrench = shaft(crosses_weigh=True), np.array([0.1, 0.2, 0.3, 0.4, 0.5, 0.6])
    kernel = fgd.compile(mechanism, "inverse", actuated=[motor], external_wrenches=["in"])
    q, v = turned_to(mechanism, 0.4), np.zeros(5)
    a = fgd.forward_dynamics(mechanism, q, v, np.ones(5)).a
    expected = fgd.inverse_dynamics(mechanism, q, v, a, actuated=[motor], external_wrenches={"in": wrench}).tau
    assert relative_error(kernel(q, v, a, wrench), expected) < AGREES


def test_next_to_a_dead_point_torques_are_as_exact_as_levers():
    """The condition of one equation in one unknown was 1, however small the lever."""
    mechanism = shaft(crosses_weigh=False, turned=True)
    kernel = fgd.compile(mechanism, "inverse", actuated=["j_x2"])
    q, v = turned_to(mechanism, 1.2), np.zeros(5)
    a = fgd.forward_dynamics(mechanism, q, v, np.ones(5)).a
    expected = fgd.inverse_dynamics(mechanism, q, v, a, actuated=["j_x2"]).tau
    assert relative_error(kernel(q, v, a), expected) < AGREES


@pytest.mark.parametrize("turns", [0.25, 0.75])
def test_by_default_kernels_answer_at_quarter_turns(turns):
    """The classical ordering has a pivot that vanishes there; others, which cost more, do not."""
    mechanism = shaft(crosses_weigh=False)
    q, v, tau = turned_to(mechanism, 2 * np.pi * turns), np.zeros(5), np.eye(5)[0]
    expected = fgd.forward_dynamics(mechanism, q, v, tau).a
    assert relative_error(fgd.compile(mechanism, "forward")(q, v, tau), expected) < AGREES
