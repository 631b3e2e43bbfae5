"""Random trees, for tests and benchmarks."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import as_names, check_count, check_number, random_generator
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model.joint_kinds import KINDS
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link
from factorgraph_dyn.model.robots.bodies import MOST_LINKS


def random_tree(
    n: int, *, seed: int, branching: float = 1.0, kinds: Sequence[str] = ("revolute", "prismatic")
) -> Mechanism:
    """A tree of n joints with random kinds, placements, axes and bodies.

    Args:
        n: Number of joints.
        seed: The same seed gives the same tree.
        branching: Mean number of children of a link that has any: 1 gives a chain, 2 a binary tree.
        kinds: Joint kinds to draw from; ``("all",)`` for every kind.
    """
    n = check_count(n, "The number n of a random tree's joints", most=MOST_LINKS)
    if check_number(branching, "branching") < 1:
        raise InputError(f"branching is {branching}; it must be at least 1 (a chain).")
    chosen = as_names(kinds, "kinds")
    if not chosen:
        raise InputError(f"kinds is empty; name joint kinds to draw from, of: all, {', '.join(KINDS)}.")
    if chosen == ("all",):
        chosen = tuple(KINDS)
    for kind in chosen:
        check_name(kind, KINDS, "joint kind", "the kinds a random tree may have", InputError)
    rng = random_generator(seed, "seed")
    links, joints = [Link("base")], []
    for i in range(1, n + 1):
        links.append(_random_body(f"link{i}", rng))
        parent = int((i - 1) / branching)  # as Featherstone's autoTree does it
        joints.append(_random_joint(f"joint{i}", str(rng.choice(chosen)), links[parent].name, f"link{i}", rng))
    return Mechanism(f"random_tree{n}", tuple(links), tuple(joints))


def _random_body(name: str, rng: np.random.Generator) -> Link:
    """The body of five random point masses, which always has an inertia that a body can have."""
    points = rng.uniform(-0.5, 0.5, (5, 3))
    masses = rng.uniform(0.1, 1.0, 5)
    mass = masses.sum()
    com = masses @ points / mass
    arms = points - com
    inertia = sum(m * (r @ r * np.eye(3) - np.outer(r, r)) for m, r in zip(masses, arms, strict=True))
    return Link(name, mass, com, inertia)


def _random_joint(name: str, kind: str, parent: str, child: str, rng: np.random.Generator) -> Joint:
    placement = spatial.pose(spatial.rotation_of_quaternion(rng.normal(size=4)), rng.uniform(-0.5, 0.5, 3))
    pitch = rng.uniform(-0.5, 0.5) if KINDS[kind].has_pitch else 0.0
    axis = rng.normal(size=3)
    return Joint(name, kind, parent, child, placement, axis / np.linalg.norm(axis), pitch)
