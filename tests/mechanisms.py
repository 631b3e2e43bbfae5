"""Random mechanisms with several loops, all closed at their neutral configuration."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import ClosureError, Joint, Link, Loop, Mechanism, spatial
from factorgraph_dyn.model.joint_kinds import KINDS
from factorgraph_dyn.model.robots import random_tree
from factorgraph_dyn.motion import closure
from factorgraph_dyn.motion.kinematics import link_poses

NORMAL = np.array([0.0, 0.0, 1.0])
LEAST_SINGULAR_VALUE = 0.03  # of J, so that random mechanisms are not born singular
SPATIAL_LOOPS = ("spherical", "revolute", "universal", "fixed", "planar", "prismatic", "helical")


def random_planar(seed: int) -> Mechanism:
    """Bodies with full inertias that move in the x-y plane, closed by one to three planar joints."""
    return _first_good(seed, _planar)


def random_spatial(seed: int) -> Mechanism:
    """A random tree of any joint kinds, closed by one to three joints of any kind."""
    return _first_good(seed, _spatial)


def _first_good(seed: int, build) -> Mechanism:
    for attempt in range(200):
        rng = np.random.default_rng([seed, attempt])
        mechanism = build(rng)
        if mechanism is None:
            continue
        q = np.concatenate([joint.type.neutral() for joint in mechanism.joints])
        J = closure.stacked_jacobian(mechanism, closure.constraints(mechanism, q))
        sizes = np.linalg.svd(J, compute_uv=False)
        rank = int((sizes > 1e-9 * sizes[0]).sum())
        if rank >= mechanism.nv or sizes[rank - 1] < LEAST_SINGULAR_VALUE * sizes[0]:
            continue
        try:
            mechanism.random_state(0)
        except ClosureError:
            continue
        return mechanism
    raise AssertionError(f"no mechanism from seed {seed}")


def _planar(rng: np.random.Generator) -> Mechanism | None:
    loops = int(rng.integers(1, 4))
    n = 2 * loops + int(rng.integers(1, 4))
    bodies = random_tree(n, seed=int(rng.integers(1 << 30)))
    joints = []
    for i in range(1, n + 1):
        parent = int(rng.integers(max(0, i - 3), i))
        kind = "prismatic" if rng.random() < 0.2 else "revolute"
        axis = _in_plane(rng) if kind == "prismatic" else NORMAL
        joints.append(Joint(f"joint{i}", kind, bodies.links[parent].name, f"link{i}", _turned(rng), axis))
    tree = Mechanism("planar", bodies.links, tuple(joints), gravity=rng.normal(size=3) * 5)
    kinds = ["revolute" if rng.random() < 0.8 else "prismatic" for _ in range(loops)]
    return _close(tree, kinds, rng, planar=True)


def _spatial(rng: np.random.Generator) -> Mechanism | None:
    kinds = [str(kind) for kind in rng.choice(SPATIAL_LOOPS, int(rng.integers(1, 4)))]
    rows = sum(6 - KINDS[kind].nv for kind in kinds)
    n = int(rng.integers(4, 14))
    tree_kinds = ("revolute", "prismatic", "universal", "spherical", "helical", "planar")
    tree = random_tree(n, seed=int(rng.integers(1 << 30)), branching=1.5, kinds=tree_kinds)
    if not rows < tree.nv <= rows + 6:
        return None
    return _close(tree, kinds, rng, planar=False)


def _close(tree: Mechanism, kinds: list[str], rng: np.random.Generator, *, planar: bool) -> Mechanism | None:
    q = np.concatenate([joint.type.neutral() for joint in tree.joints])
    poses = link_poses(tree, q)
    loops = []
    for i, kind in enumerate(kinds):
        predecessor, successor = rng.choice(len(tree.links), 2, replace=False)
        names = tree.links[predecessor].name, tree.links[successor].name
        placement = _turned(rng) if planar else _anywhere(rng)
        axis = NORMAL if kind == "revolute" and planar else _in_plane(rng) if planar else rng.normal(size=3)
        other = spatial.inverse_pose(poses[names[1]]) @ poses[names[0]] @ placement
        pitch = 0.2 if kind == "helical" else 0.0
        loops.append(Loop(f"loop{i + 1}", kind, *names, placement, _orthogonal(other), axis, pitch))
    return Mechanism(tree.name, tree.links, tree.joints, tuple(loops), gravity=tree.gravity)


def _turned(rng):
    place = np.append(rng.uniform(-0.6, 0.6, 2), 0.0)
    return spatial.pose(spatial.rotation_about(NORMAL, rng.uniform(-np.pi, np.pi)), place)


def _anywhere(rng):
    return spatial.pose(spatial.rotation_of_quaternion(rng.normal(size=4)), rng.uniform(-0.5, 0.5, 3))


def _in_plane(rng):
    angle = rng.uniform(-np.pi, np.pi)
    return np.array([np.cos(angle), np.sin(angle), 0.0])


def _orthogonal(T):
    U, _, V = np.linalg.svd(T[:3, :3])
    return spatial.pose(U @ V, T[:3, 3])


def single_loop(kind: str) -> Mechanism:
    """Two arms of spherical joints, closed by a joint of one kind."""
    links = [Link("base")]
    joints = []
    for side, sign in (("left", -1), ("right", 1)):
        parent = "base"
        for i in range(3):
            name = f"{side}{i}"
            links.append(Link(name, 1.0, (0.1, 0.05 * sign, 0.2), np.diag([0.02, 0.03, 0.025])))
            place = spatial.pose(np.eye(3), np.array([0.3 * sign if i == 0 else 0.02, 0.1 * i, 0.3 * (i > 0)]))
            joints.append(Joint(f"{name}_joint", ("revolute", "spherical", "universal")[i], parent, name, place))
            parent = name
    tree = Mechanism(f"loop_{kind}", tuple(links), tuple(joints))
    poses = link_poses(tree, tree.neutral())
    T_left = poses["left2"] @ spatial.pose(np.eye(3), np.array([0.3, 0.0, 0.2]))
    ends = [spatial.inverse_pose(poses[link]) @ T_left for link in ("left2", "right2")]
    axis = (0.3, -0.5, 1.0)
    loop = Loop("loop", kind, "left2", "right2", *ends, axis, 0.1 if kind == "helical" else 0.0)
    return Mechanism(tree.name, tree.links, tree.joints, (loop,))
