"""Other frames, placements in steps and classical accelerations change neither the motion nor the torques."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.describe.reframe import burden, reframed
from factorgraph_dyn.compiler.describe.split import extended, split
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations import Known, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.problem import make_problem
from factorgraph_dyn.spatial import pose, rotation_about
from tests.helpers import lossy, mixed_tree, relative_error

AGREEMENT = 1e-10
TREES = [seed for seed in range(40) if 0 < mixed_tree(seed).nv < 30][:8]


def solved(mechanism, q, v, a, *, classical=False):
    """The graph and its solution for known accelerations."""
    graph = dynamics_graph(evaluate_state(mechanism, q, v), Known.inverse(a), classical=classical)
    return graph, np.linalg.solve(*graph.dense())


def torques(mechanism, q, v, a, **options):
    graph, x = solved(mechanism, q, v, a, **options)
    return np.concatenate([x[graph.column_slices[y]] for y in graph.variables if y.kind == "tau"])


def arm_at_odd_angles(seed, kinds):
    """An arm whose placements and axes are aligned with nothing."""
    rng = np.random.default_rng(seed)
    links, joints = [fgd.Link("base")], []
    for i, kind in enumerate(kinds):
        half = rng.normal(size=(3, 3))
        links.append(fgd.Link(f"link{i}", rng.uniform(1, 3), rng.normal(size=3), half @ half.T + 5 * np.eye(3)))
        axis, turn = (x / np.linalg.norm(x) for x in rng.normal(size=(2, 3)))
        placement = pose(rotation_about(turn, rng.normal()), rng.normal(size=3))
        joints.append(fgd.Joint(f"joint{i}", kind, links[i].name, links[i + 1].name, placement, axis=axis, pitch=0.2))
    return fgd.Mechanism(f"odd{seed}", tuple(links), tuple(joints))


ODD_ARMS = [
    arm_at_odd_angles(1, ["revolute"] * 4),
    arm_at_odd_angles(2, ["prismatic", "revolute", "prismatic", "continuous", "revolute"]),
    arm_at_odd_angles(3, ["revolute", "spherical", "revolute", "helical", "fixed", "revolute", "revolute"]),
]


@pytest.mark.parametrize("mechanism", [lossy(mixed_tree(seed), seed) for seed in TREES] + ODD_ARMS, ids=str)
def test_torques_stay(mechanism):
    q, v = mechanism.random_state(5)
    a = np.random.default_rng(5).normal(size=mechanism.nv)
    expected = torques(mechanism, q, v, a)
    frames = reframed(mechanism)
    assert relative_error(torques(frames.mechanism, q + frames.offset, v, a), expected) < AGREEMENT
    assert relative_error(torques(split(mechanism).mechanism, q, v, a), expected) < AGREEMENT
    assert relative_error(torques(mechanism, q, v, a, classical=True), expected) < AGREEMENT


@pytest.mark.parametrize("seed", TREES[:4])
def test_classical_accelerations_are_those_of_the_origins(seed):
    """A' = A + [0; w x v]."""
    mechanism = mixed_tree(seed)
    q, v = mechanism.random_state(seed)
    twists = evaluate_state(mechanism, q, v).twists
    (graph, spatial), (_, classical) = (solved(mechanism, q, v, v, classical=c) for c in (False, True))
    for link in mechanism.link_names:
        if link != mechanism.base:
            part = graph.column_slices[graph.by_name[f"A[{link}]"]]
            w, linear = np.split(twists[link], 2)
            moved = spatial[part] + np.concatenate([np.zeros(3), np.cross(w, linear)])
            assert relative_error(classical[part], moved) < AGREEMENT


def test_chains_become_denavit_hartenberg():
    found = reframed(ODD_ARMS[0]).mechanism
    for joint in found.joints:
        T = np.asarray(joint.placement)
        assert np.array_equal(joint.axes[0], [0, 0, 1])
        assert T[0, 0] == 1
        assert np.count_nonzero(T[:3, :3]) <= 5
        assert np.count_nonzero(T[:3, 3]) <= 2
    assert burden(found) < burden(ODD_ARMS[0])


@pytest.mark.parametrize("mechanism", [*ODD_ARMS, fgd.robots.general_6r(), fgd.robots.panda()], ids=lambda m: m.name)
def test_kernels_give_what_the_graph_gives(mechanism):
    mechanism = lossy(mechanism, 4)
    rng = np.random.default_rng(4)
    q, v = (np.array(x) for x in zip(*(mechanism.random_state(rng) for _ in range(5)), strict=True))
    x = rng.normal(size=(5, mechanism.nv))
    forward, inverse = fgd.compile(mechanism, "forward")(q, v, x), fgd.compile(mechanism, "inverse")(q, v, x)
    for k in range(5):
        assert relative_error(forward[k], fgd.forward_dynamics(mechanism, q[k], v[k], x[k]).a) < AGREEMENT
        assert relative_error(inverse[k], fgd.inverse_dynamics(mechanism, q[k], v[k], x[k]).tau) < AGREEMENT


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "natural"])
def test_steps_take_their_place_in_any_ordering(ordering):
    mechanism = fgd.robots.general_6r()
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    assert not any(":" in name for name in kernel.ordering)
    steps = split(reframed(mechanism).mechanism).steps
    names = extended(kernel.ordering, steps)
    assert len(set(names)) == len(names) == len(kernel.ordering) + 2 * sum(len(step.suffixes) for step in steps)


def test_names_that_steps_would_take_are_left_alone():
    arm = fgd.robots.rrr()
    links = [replace(link, name="x:turn" if link.name == "link3" else link.name) for link in arm.links]
    joints = [replace(joint, child="x:turn" if joint.child == "link3" else joint.child) for joint in arm.joints]
    named = fgd.Mechanism("named", tuple(links), tuple(joints))
    assert not split(named).steps
    q, v = arm.random_state(1)
    found, expected = (fgd.compile(m, "inverse")(q, v, v) for m in (named, arm))
    assert relative_error(found, expected) < AGREEMENT


def test_a_general_arm_costs_less_than_published():
    """93 n - 108 multiplications and 81 n - 100 additions for rnea, 224 n - 259 and 205 n - 248 for aba."""
    mechanism = fgd.robots.general_6r()
    for problem, ordering, published in (("inverse", "rnea", 836), ("forward", "aba", 2067)):
        assert trace(mechanism, make_problem(mechanism, problem), ordering).program.operations.total < published
