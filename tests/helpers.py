"""What several test modules share: relative errors and random trees."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import gtsam
import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.model.joint_kinds import KINDS
from factorgraph_dyn.spatial import Floats

MOVABLE_KINDS = tuple(kind for kind in KINDS if kind != "fixed")


def relative_error(found, expected) -> float:
    """The largest difference, relative to the largest expected entry (nan counts as infinite)."""
    found, expected = np.asarray(found), np.asarray(expected)
    assert found.shape == expected.shape
    if expected.size == 0:
        return 0.0
    error = np.abs(found - expected).max() / max(np.abs(expected).max(), 1e-12)
    return float(error) if np.isfinite(error) else np.inf


def mixed_tree(seed: int) -> fgd.Mechanism:
    """A random tree of 1 to 40 joints of all kinds, branching more or less."""
    rng = np.random.default_rng(seed)
    return fgd.robots.random_tree(
        int(rng.integers(1, 41)), seed=seed, branching=float(rng.uniform(1.0, 3.0)), kinds=("all",)
    )


def lossy(mechanism: fgd.Mechanism, seed: int) -> fgd.Mechanism:
    """The same mechanism with armature, damping, friction and, where allowed, springs."""
    from dataclasses import replace

    rng = np.random.default_rng(seed)
    joints = [
        replace(
            joint,
            armature=rng.uniform(0.1, 1.0, joint.nv),
            damping=rng.uniform(0.1, 1.0, joint.nv),
            friction=rng.uniform(0.1, 1.0, joint.nv),
            stiffness=rng.uniform(0.1, 1.0, joint.nv) if joint.nq == joint.nv else 0.0,
            rest=rng.uniform(-1.0, 1.0, joint.nv),
        )
        for joint in mechanism.joints
    ]
    return replace(mechanism, joints=joints)


def held_before(graph: fgd.LinearGraph, names: Sequence[str], name: str) -> gtsam.GaussianFactorGraph:
    """What GTSAM's elimination has left on a variable when its turn comes, after those named before it."""
    first = fgd.Ordering("first", tuple(names[: names.index(name)]))
    left = fgd.to_gtsam(graph, noise="unit")
    if first.variables:
        _, left = left.eliminatePartialSequential(fgd.gtsam_ordering(graph, first), gtsam.EliminateQR)
    key, gathered = graph.variables.index(graph.variable(name)), gtsam.GaussianFactorGraph()
    for factor in (left.at(i) for i in range(left.size())):
        if key in factor.keys() and factor.rows():  # noqa: SIM118
            gathered.push_back(factor)
    return gathered


def turned(mechanism: fgd.Mechanism, turn: Floats) -> fgd.Mechanism:
    """The mechanism mounted otherwise, gravity turned with it: every answer in joints stays what it was.

    Args:
        mechanism: The mechanism.
        turn: A rotation vector, rad.
    """
    T = spatial.exponential(np.array([*turn, 0.0, 0.0, 0.0]))
    joints = [
        replace(joint, placement=T @ joint.placement) if joint.parent == mechanism.base else joint
        for joint in mechanism.joints
    ]
    loops = [
        replace(loop, predecessor_placement=T @ loop.predecessor_placement)
        if loop.predecessor == mechanism.base
        else replace(loop, successor_placement=T @ loop.successor_placement)
        if loop.successor == mechanism.base
        else loop
        for loop in mechanism.loops
    ]
    gravity = T[:3, :3] @ np.array(mechanism.gravity)
    return replace(mechanism, joints=tuple(joints), loops=tuple(loops), gravity=tuple(gravity))
