"""Values of parameters at which kernels are tried, where these are arguments: around the mechanism's own.

A drawn link is the mechanism's own, heavier or lighter, with some lumps of its own size stuck to it at random: a body
that could be built, none of whose ten parameters is zero. Links without mass or size get a part of the mechanism's.
Joints have up to twice their own effects, or, where these are zero, such as would be felt. Gravity turns every way.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.equations.free import EFFECTS, GRAVITY, PARAMETERS
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.model import Link, Mechanism
from factorgraph_dyn.model.parameters import parameters_of
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from factorgraph_dyn.spatial import Floats, spatial_inertia

DRAWN = (PARAMETERS, GRAVITY, *EFFECTS)  # kinds of arguments
_LUMPS = 4
_PART = 0.125  # of the mechanism's mass and length, for links that have none
_HEAVIER = 2.0  # times that a parameter grows or shrinks at most


def drawn_values(
    mechanism: Mechanism, name: str, links: Sequence[str], states: int, rng: np.random.Generator
) -> Floats:
    """Values of an argument, shape (states, ...).

    Args:
        mechanism: The mechanism, whose own values are the middle.
        name: The argument: parameters, armature[joint], damping[joint], friction[joint] or gravity.
        links: Whose parameters the argument ``parameters`` has.
        states: How many.
        rng: What draws.
    """
    if name == PARAMETERS:
        bodies = [mechanism.link_by_name[link] for link in links]
        return np.array([[_drawn_link(mechanism, link, rng) for link in bodies] for _ in range(states)])
    if name == GRAVITY:
        rate = natural_rate(mechanism) or 1.0
        size = float(np.linalg.norm(np.asarray(mechanism.gravity))) or rate**2 * natural(mechanism).length
        return rng.normal(size=(states, 3)) * size
    kind, owner = split_name(name)
    joint, own = mechanism.joint_by_name[owner], natural(mechanism)
    felt = own.work / joint.freedom_units(own.length) ** 2
    rate = natural_rate(mechanism) or 1.0
    usual = {"armature": felt, "damping": felt * rate, "friction": felt * rate**2 * joint.freedom_units(own.length)}
    middle = np.where(getattr(joint, kind) > 0, getattr(joint, kind), _PART * usual[kind])
    return np.asarray(middle * rng.uniform(0.0, 2.0, (states, joint.nv)))


def own_values(mechanism: Mechanism, name: str, links: Sequence[str]) -> Floats:
    """The mechanism's own value of an argument."""
    if name == PARAMETERS:
        return mechanism.parameters(links)
    if name == GRAVITY:
        return np.asarray(mechanism.gravity)
    kind, owner = split_name(name)
    return np.asarray(getattr(mechanism.joint_by_name[owner], kind))


def _drawn_link(mechanism: Mechanism, link: Link, rng: np.random.Generator) -> Floats:
    own = natural(mechanism)
    mass = link.mass or _PART * own.mass
    size = float(np.sqrt(np.abs(np.trace(link.inertia)) / mass)) or _PART * own.length
    drawn = parameters_of(link.spatial_inertia)
    for _ in range(_LUMPS):
        place = np.asarray(link.com) + rng.normal(size=3) * size
        drawn = drawn + parameters_of(spatial_inertia(mass / _LUMPS, place, np.zeros((3, 3))))
    return np.asarray(drawn * _HEAVIER ** rng.uniform(-1.0, 1.0))
