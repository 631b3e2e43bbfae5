"""Graphs whose numbers are put in place at once are those that the equations give joint by joint."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.equations import State
from factorgraph_dyn.motion.independence import independent_rows
from factorgraph_dyn.motion.kinematics import joint_motion, link_twists
from factorgraph_dyn.spatial import inverse_adjoint

KINDS = ("fixed", "revolute", "prismatic", "helical", "universal", "spherical", "planar", "floating", "continuous")
AGREES = 1e-13
EFFECTS = {"damping": 0.3, "friction": 0.2, "armature": 0.1}


def _every_kind() -> fgd.Mechanism:
    rng, names = np.random.default_rng(0), ["base", *KINDS]
    links = [fgd.Link(name, 1.0, rng.normal(size=3), np.eye(3)) for name in names]
    joints = []
    for k, kind in enumerate(KINDS):
        axis = rng.normal(size=(2, 3)) if kind == "universal" else rng.normal(size=3)
        T = fgd.translation(*rng.normal(size=3))
        pitch, effects = 0.1 * (kind == "helical"), EFFECTS if k % 2 else {}
        joints.append(fgd.Joint(f"j{kind}", kind, names[k // 2], kind, T, axis, pitch, **effects))
    gear = fgd.Coupling("gear", "jcontinuous", "jrevolute", 2.0)
    return fgd.Mechanism("every kind", links, joints, couplings=[gear])


MECHANISMS = [_every_kind(), fgd.robots.puma560(), fgd.robots.five_bar(), fgd.robots.random_tree(6, seed=2)]


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_graphs_are_those_made_joint_by_joint(mechanism):
    rng = np.random.default_rng(1)
    wrenches = {name: rng.normal(size=6) for name in mechanism.link_names[::2]}
    some = rng.random(mechanism.nv) < 0.5
    for known_a, known_tau in ((some, ~some), (some & ~some, some | ~some), (some | ~some, some & ~some)):
        state = fgd.evaluate_state(mechanism, *mechanism.random_state(rng))
        plain = State(mechanism, state.q, state.v, state.joints, state.loops, state.twists)
        known = fgd.Known(*rng.normal(size=(2, mechanism.nv)), known_a, known_tau)
        rows = independent_rows(mechanism, state.q).kept
        found, expected = (fgd.dynamics_graph(each, known, wrenches, closure=rows) for each in (state, plain))
        assert found.variables == expected.variables
        assert [str(factor) for factor in found.factors] == [str(factor) for factor in expected.factors]
        assert found.known.keys() == expected.known.keys()
        for here, there in zip(found.dense(), expected.dense(), strict=True):
            np.testing.assert_allclose(here, there, atol=AGREES, rtol=AGREES)


@pytest.mark.parametrize("mechanism", MECHANISMS, ids=lambda mechanism: mechanism.name)
def test_joints_at_once_are_those_one_by_one(mechanism):
    q, v = mechanism.random_state(2)
    state = fgd.evaluate_state(mechanism, q, v)
    for name, V in link_twists(mechanism, q, v).items():
        np.testing.assert_allclose(state.twists[name], V, atol=AGREES, rtol=AGREES)
    for joint in mechanism.topology.outward:
        T_parent_child, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
        here = state.joints[joint.name]
        np.testing.assert_allclose(here.Ad_child_parent, inverse_adjoint(T_parent_child), atol=AGREES)
        np.testing.assert_allclose(here.S, S, atol=AGREES)
