"""The articulated-body recursion is what GTSAM's elimination in the aba ordering does, and keeps all digits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.equations import State
from factorgraph_dyn.ordering.classical import aba
from factorgraph_dyn.solve.matrices.articulated import articulated_joints
from factorgraph_dyn.solve.singularity import regular_bodies
from tests.helpers import held_before, lossy, mixed_tree, relative_error
from tests.solve.test_dynamics import ROBOTS

AGREEMENT = 1e-9


def inertias_left_by_aba(state: State) -> dict[str, np.ndarray]:
    """P of each link from the rows T (F - P A) = T z that are left just before its joint's wrench is eliminated."""
    mechanism = state.mechanism
    graph = fgd.dynamics_graph(state, fgd.Known.forward(np.zeros(mechanism.nv)))
    names = tuple(name for name in aba(mechanism) if name in graph.by_name)
    found = {}
    for joint in mechanism.joints:
        wrench, A = f"F[{joint.name}]", f"A[{joint.child}]"
        gathered = held_before(graph, names, wrench)
        for factor in (gathered.at(index) for index in range(gathered.size())):
            held = [str(graph.variables[key]) for key in factor.keys()]  # noqa: SIM118
            if A in held:
                ends = np.cumsum([graph.by_name[name].size for name in held])[:-1]
                blocks = dict(zip(held, np.split(factor.jacobian()[0], ends, axis=1), strict=True))
                found[joint.child] = -np.linalg.solve(blocks[wrench], blocks[A])
    return found


@pytest.mark.parametrize("seed", range(6))
def test_the_aba_ordering_is_the_articulated_body_algorithm(seed):
    mechanism = lossy(mixed_tree(seed), seed)
    state = fgd.evaluate_state(mechanism, *mechanism.random_state(seed))
    left = inertias_left_by_aba(state)
    joints = articulated_joints(state)
    assert set(left) == {joint.child for joint in joints}
    for joint in joints:
        assert relative_error(left[joint.child], joint.P) < AGREEMENT


def test_without_inputs_it_moves_as_forward_dynamics_says():
    for seed in range(6):
        mechanism = lossy(mixed_tree(seed + 50), seed)
        q, v = mechanism.random_state(seed)
        expected = fgd.forward_dynamics(mechanism, q, v, np.zeros(mechanism.nv)).a
        assert relative_error(regular_bodies(fgd.evaluate_state(mechanism, q, v)).free, expected) < AGREEMENT


@pytest.mark.skipif(ROBOTS is None, reason="example-robot-data is not installed")
def test_light_links_move_exactly_beside_heavy_ones():
    pr2 = fgd.load(ROBOTS / "pr2_description/urdf/pr2.urdf", folder=ROBOTS)
    pr2 = replace(pr2, couplings=())
    q, v = pr2.random_state(0)
    expected = fgd.forward_dynamics(pr2, q, v, np.zeros(pr2.nv)).a
    found = regular_bodies(fgd.evaluate_state(pr2, q, v)).free
    assert (np.abs(found - expected) <= 1e-11 * np.abs(expected)).all()
