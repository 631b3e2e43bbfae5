"""A mechanism and its states as plain numbers by name, from which everything that must fit is derived.

A recipe holds free choices only: loops hold the predecessor's placement and the successor's follows from q, so that
q closes them; couplings hold a ratio and their offset follows; velocities are projected on the closure. So parts can
be taken away and numbers rounded, which is what the shrinker does, and the mechanism still closes.
"""

from __future__ import annotations

from copy import deepcopy
from dataclasses import dataclass, field, replace

import numpy as np

import factorgraph_dyn as fgd
from tests.stress import constraints
from tests.stress.kinematics import LD, SIZES, array, bodies
from tests.stress.oracle import freedom_units

EFFECTS = ("armature", "damping", "friction", "stiffness", "rest")


@dataclass
class Recipe:
    """Free choices.

    links: by name, with mass, com, inertia; "base" is the base.
    joints: by name, with kind, parent, child, placement, axis, pitch, actuated, effects, q, v, a, tau, steps.
    loops: by name, with kind, predecessor, successor, placement, axis, pitch.
    couplings: by name, with joint, source, ratio.
    wrenches: by link.
    further: how many states beside q; every joint's `steps` hold the ways to them.
    """

    links: dict = field(default_factory=dict)
    joints: dict = field(default_factory=dict)
    loops: dict = field(default_factory=dict)
    couplings: dict = field(default_factory=dict)
    gravity: tuple = (0.0, 0.0, -9.81)
    wrenches: dict = field(default_factory=dict)
    further: int = 0

    def copy(self) -> Recipe:
        return deepcopy(self)


@dataclass
class State:
    """A closed state with torques, and external wrenches by link."""

    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray
    wrenches: dict


class NoMechanismError(Exception):
    """The recipe gives no mechanism, or none that can move."""


def mechanism_of(recipe: Recipe) -> fgd.Mechanism:
    """The mechanism, closed at the recipe's q."""
    links = [fgd.Link(name, **values) for name, values in recipe.links.items()]
    joints = [_joint(name, values) for name, values in recipe.joints.items()]
    tree = fgd.Mechanism("stress", links, joints, gravity=recipe.gravity)
    if not (recipe.loops or recipe.couplings):
        return tree
    q = stacked(recipe, "q")
    found = bodies(tree, q, np.zeros(tree.nv))
    loops = [_loop(name, values, found) for name, values in recipe.loops.items()]
    couplings = [_coupling(name, values, recipe) for name, values in recipe.couplings.items()]
    return fgd.Mechanism("stress", links, joints, loops, couplings, gravity=recipe.gravity)


def stacked(recipe: Recipe, what: str) -> np.ndarray:
    return np.concatenate([np.zeros(0), *(np.asarray(values[what], float) for values in recipe.joints.values())])


def states_of(recipe: Recipe, mechanism: fgd.Mechanism) -> list[State]:
    """The state at q and those reached from it, closed in extended precision and then rounded."""
    units = freedom_units(mechanism)
    q = normalised(mechanism, stacked(recipe, "q"))
    places = [q]
    for index in range(recipe.further):
        step = np.concatenate(
            [np.zeros(0), *(np.asarray(values["steps"][index], float) for values in recipe.joints.values())]
        )
        place = constraints.moved(mechanism, q, step)
        if mechanism.loops or mechanism.couplings:
            place = constraints.close(mechanism, place, units)
        if place is None:
            raise NoMechanismError("closes at single places only")
        places.append(normalised(mechanism, place))
    v, tau = stacked(recipe, "v"), stacked(recipe, "tau")
    states = []
    for index, place in enumerate(places):
        speed = v if index == 0 else np.roll(v, index) * _ratio(units, index)
        if mechanism.loops or mechanism.couplings:
            speed = constraints.closing_velocity(mechanism, place, speed, units)
        states.append(State(place, np.asarray(speed, float), tau.copy(), deepcopy(recipe.wrenches)))
    return states


def _ratio(units, index):
    return np.asarray(units / np.roll(units, index), float)


def normalised(mechanism, q) -> np.ndarray:
    """Rounded to double, with quaternions of unit length."""
    q, start = array(q).copy(), 0
    for joint in mechanism.joints:
        size = SIZES[joint.kind][0]
        if joint.kind in ("spherical", "floating"):
            part = q[start + size - 4 : start + size]
            part /= np.sqrt((part * part).sum())
        start += size
    return q.astype(float)


def _joint(name, values) -> fgd.Joint:
    taken = ("kind", "parent", "child", "placement", "axis", "pitch", "actuated", *EFFECTS)
    return fgd.Joint(name, **{word: values[word] for word in taken if word in values})


def _loop(name, values, found) -> fgd.Loop:
    start = fgd.Loop(
        name,
        values["kind"],
        values["predecessor"],
        values["successor"],
        values["placement"],
        np.eye(4),
        values["axis"],
        values.get("pitch", 0.0),
    )
    R, p = constraints.coordinates_closing(start, found)
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    return replace(start, successor_placement=T)


def _coupling(name, values, recipe) -> fgd.Coupling:
    here, source = (LD(recipe.joints[values[end]]["q"][0]) for end in ("joint", "source"))
    offset = float(here - LD(values["ratio"]) * source)
    return fgd.Coupling(name, values["joint"], values["source"], values["ratio"], offset)
