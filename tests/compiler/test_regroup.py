"""Regrouped inertial parameters change wrenches, never the motion or the torques."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.describe.regroup import regrouped, unfelt
from factorgraph_dyn.equations import Known, dynamics_graph, evaluate_state
from factorgraph_dyn.model.parameters import inertia_of, parameters_of
from tests.helpers import MOVABLE_KINDS, mixed_tree, relative_error

AGREEMENT = 1e-10


def torques(mechanism, q, v, a):
    graph = dynamics_graph(evaluate_state(mechanism, q, v), Known.inverse(a))
    A, b = graph.dense()
    x = np.linalg.solve(A, b)
    return np.concatenate([x[graph.column_slices[v]] for v in graph.variables if v.kind == "tau"])


@pytest.mark.parametrize("seed", [seed for seed in range(30) if 0 < mixed_tree(seed).nv < 30][:8])
def test_torques_stay(seed):
    mechanism = mixed_tree(seed)
    q, v = mechanism.random_state(seed)
    a = np.random.default_rng(seed).normal(size=mechanism.nv)
    expected = torques(mechanism, q, v, a)
    for moving in (False, True):
        assert relative_error(torques(regrouped(mechanism, moving=moving), q, v, a), expected) < AGREEMENT


@pytest.mark.parametrize("kind", MOVABLE_KINDS)
def test_no_joint_feels_what_is_moved(kind):
    """Power and momentum of the moved part do not depend on the joint's motion."""
    rng = np.random.default_rng(1)
    half = rng.normal(size=(3, 3))
    link = fgd.Link("child", 2.0, rng.normal(size=3), half @ half.T)
    joint = fgd.Joint("joint", kind, "base", "child", pitch=0.3)
    mechanism = fgd.Mechanism("one", [fgd.Link("base"), link], [joint])
    read, unit = unfelt(joint)
    part = inertia_of(unit @ read @ parameters_of(link.spatial_inertia))
    np.testing.assert_allclose(part, part.T)
    if kind in ("revolute", "continuous", "prismatic", "spherical", "universal"):
        S = evaluate_state(mechanism, mechanism.neutral(), np.zeros(mechanism.nv)).joints["joint"].S
        np.testing.assert_allclose(part @ S, 0.0, atol=1e-12)
    else:
        assert not part.any()


def test_fewer_parameters_are_left():
    before, after = fgd.robots.puma560(), regrouped(fgd.robots.puma560())
    count = [sum(np.count_nonzero(link.spatial_inertia) for link in m.links[1:]) for m in (before, after)]
    assert count[1] < 0.8 * count[0]


def test_masses_balance_what_carries_them_and_bodies_become_flat():
    arm = fgd.robots.general_6r()
    links = [parameters_of(link.spatial_inertia) for link in regrouped(arm, moving=True).links]
    lost = [[k for k in range(3) if p[1 + k] == 0.0] for p in links[3:6]]
    assert all(len(gone) == 2 for gone in lost)  # along the hinge, and across it
    assert all(link[0] != 0.0 for link in links[4:])
    assert all(p[9] == p[4] + p[6] for p in links[2:])


def test_wrenches_are_those_of_the_real_links():
    mechanism = fgd.robots.puma560()
    q, v = mechanism.random_state(3)
    name = mechanism.joint_names[3]
    found = fgd.compile(mechanism, "inverse", outputs=[f"F[{name}]"])(q, v, v)
    assert relative_error(found, fgd.inverse_dynamics(mechanism, q, v, v).wrenches[name]) < AGREEMENT


@pytest.mark.parametrize("along", [(1.0, 0.0, 0.0), (np.sqrt(0.5), 0.0, np.sqrt(0.5))], ids=["along x", "oblique"])
def test_a_needle_keeps_its_inertia_where_it_nearly_lies_along_the_hinge_of_a_massless_link(along, monkeypatch):
    """Of a disc that the link is handed and of what is left nothing would be right there but their difference."""
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", "off")
    inertia = 0.1 * (np.eye(3) - np.outer(along, along))
    links = [fgd.Link("base"), fgd.Link("carrier"), fgd.Link("needle", 1.0, inertia=inertia)]
    joints = [
        fgd.Joint("turn", "revolute", "base", "carrier", axis=(0, 0, 1)),
        fgd.Joint("tilt", "revolute", "carrier", "needle", axis=(0, 1, 0)),
    ]
    forward = fgd.compile(fgd.Mechanism("needle", links, joints), "forward")
    upright = -np.arctan2(along[0], along[2])
    for off in (1e-1, 1e-3, 1e-4):
        q = np.array([0.3, upright + off])
        lever = along[0] * np.cos(q[1]) + along[2] * np.sin(q[1])  # of the needle, from the upright axis
        a = forward(q, np.zeros(2), np.array([2.0, 0.0]))
        assert a[0] == pytest.approx(2.0 / (0.1 * lever**2), rel=1e-10)
