"""The units in which a mechanism is of order one, so that no threshold means metres or kilograms.

Takes a mechanism; gives a length L and a mass M of its own, and the same mechanism described in them:

    natural       for the dynamics: its ``extent`` (``lengths``), and the largest inertia, rotational ones divided
                  by the length squared. Both are powers of two, so that changing to them and back rounds nothing.
    measured      for closing and random states: its ``size``; masses stay. It is not rounded: where slides and turns
                  are weighed against each other, a mechanism in millimetres must be weighed as the same one in metres.

Time stays as it is: the equations are linear in what has time in its unit. Where velocities and accelerations have to
be of a usual size, a mechanism's own rate gives it, and where it has none they are only compared with each other.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import EFFECTS, Coupling, Frame, Joint, Link, Loop
from factorgraph_dyn.model.sizes import lengths
from factorgraph_dyn.spatial import Floats, stacked


@dataclass(frozen=True, eq=False, kw_only=True)
class Scale:
    """A length and a mass, m and kg, and the units of motions and forces that follow, for angles in rad."""

    length: float
    mass: float

    @property
    def work(self) -> float:
        """The unit of a torque or force times the unit of its freedom."""
        return self.mass * self.length**2

    @cached_property
    def motion(self) -> Floats:
        """Units of a twist or acceleration [angular; linear], shape (6,)."""
        return np.array([1.0, 1.0, 1.0, *[self.length] * 3])

    @cached_property
    def wrench(self) -> Floats:
        """Units of a wrench [moment; force], shape (6,)."""
        return self.work / self.motion

    def freedoms(self, part: Joint | Loop) -> Floats:
        """Units of the freedoms of a joint or loop, shape (nv,)."""
        return part.freedom_units(self.length)


@dataclass(frozen=True, eq=False, kw_only=True)
class Natural(Scale):
    """A mechanism in its own units.

    Attributes:
        given: The mechanism as it was given.
        extent, weight: The length and mass before they were rounded to powers of two, for what must not depend
            on the units of the description.
    """

    given: Mechanism
    extent: float
    weight: float

    @cached_property
    def mechanism(self) -> Mechanism:
        """The mechanism described in its own units."""
        return described_in(self.given, self.length, self.mass)

    @cached_property
    def q(self) -> Floats:
        """Units of the coordinates, shape (nq,)."""
        return stacked(joint.coordinate_units(self.length) for joint in self.given.joints)

    @cached_property
    def v(self) -> Floats:
        """Units of velocities and accelerations, shape (nv,)."""
        return stacked(joint.freedom_units(self.length) for joint in self.given.joints)

    @cached_property
    def tau(self) -> Floats:
        """Units of torques and forces, shape (nv,)."""
        return self.work / self.v


@kept_with_first
def natural(mechanism: Mechanism) -> Natural:
    """The mechanism's own units for its dynamics."""
    extent = lengths.extent(mechanism) or 1.0
    weight = max(_masses(mechanism, extent), default=0.0) or 1.0
    return Natural(
        given=mechanism, length=_power_of_two(extent), mass=_power_of_two(weight), extent=extent, weight=weight
    )


@kept_with_first
def measured(mechanism: Mechanism) -> Natural:
    """The mechanism in units of its size; masses stay as they are."""
    return Natural(given=mechanism, length=mechanism.size, mass=1.0, extent=mechanism.size, weight=1.0)


@kept_with_first
def natural_rate(mechanism: Mechanism) -> float:
    """How fast a mechanism moves of itself, 1/s; 0 where nothing in it has a time, so that any speed is like another.

    That is sqrt(g / length) under gravity; without it what springs and friction, or else damping, do to its inertia.
    """
    own = natural(mechanism)
    gravity = float(np.linalg.norm(np.asarray(mechanism.gravity))) / own.extent
    if gravity:
        return float(np.sqrt(gravity))
    inertia = own.weight * own.extent**2
    units = {joint.name: joint.freedom_units(own.extent) for joint in mechanism.joints}
    at_rest = [joint.stiffness * units[joint.name] ** 2 for joint in mechanism.joints]
    at_rest += [joint.friction * units[joint.name] for joint in mechanism.joints]
    damping = [joint.damping * units[joint.name] ** 2 for joint in mechanism.joints]
    return float(np.sqrt(_largest(at_rest) / inertia) or _largest(damping) / inertia)


def usual_acceleration(mechanism: Mechanism, v: Floats) -> float:
    """The accelerations that gravity, springs and velocities cause, in own units: what is nothing is so beside them."""
    rate = max(natural_rate(mechanism), _largest([v / natural(mechanism).v]))
    return rate * rate  # which is infinite where powers would raise


def described_in(mechanism: Mechanism, length: float, mass: float) -> Mechanism:
    """The same mechanism in other units: the length in m, the mass in kg that become 1."""
    freedom = {joint.name: joint.freedom_units(length) for joint in mechanism.joints}
    return replace(
        mechanism,
        links=tuple(_link(link, length, mass) for link in mechanism.links),
        joints=tuple(_joint(joint, length, mass) for joint in mechanism.joints),
        loops=tuple(_loop(loop, length) for loop in mechanism.loops),
        couplings=tuple(_coupling(c, freedom[c.joint][0], freedom[c.source][0]) for c in mechanism.couplings),
        frames=tuple(_frame(frame, length) for frame in mechanism.frames),
        gravity=np.asarray(mechanism.gravity) / length,
    )


def _masses(mechanism: Mechanism, length: float) -> Iterable[float]:
    for link in mechanism.links:
        if link.name != mechanism.base:
            yield link.mass
            yield float(np.abs(np.asarray(link.inertia)).max()) / length**2
    for joint in mechanism.joints:
        yield float((joint.armature * (joint.freedom_units(length) / length) ** 2).max(initial=0.0))


def _largest(values: Iterable[Floats]) -> float:
    return max((float(np.abs(part).max(initial=0.0)) for part in values), default=0.0)


def _power_of_two(size: float) -> float:
    return float(np.exp2(np.round(np.log2(size)))) if size > 0 else 1.0


def _link(link: Link, length: float, mass: float) -> Link:
    com, inertia = np.asarray(link.com) / length, np.asarray(link.inertia) / (mass * length**2)
    return replace(link, mass=link.mass / mass, com=com, inertia=inertia)


def _joint(joint: Joint, length: float, mass: float) -> Joint:
    unit = joint.freedom_units(length)
    work = mass * length**2  # of a torque or force times a freedom's unit
    effects = {name: getattr(joint, name) * unit**2 / work for name in EFFECTS}
    effects["friction"] = joint.friction * unit / work
    limits = None if joint.limits is None else tuple(bound / float(unit[0]) for bound in joint.limits)
    return replace(
        joint,
        placement=_placement(joint.placement, length),
        pitch=joint.pitch / length,
        rest=joint.rest / unit,
        limits=limits if joint.nv else joint.limits,
        **effects,
    )


def _loop(loop: Loop, length: float) -> Loop:
    return replace(
        loop,
        predecessor_placement=_placement(loop.predecessor_placement, length),
        successor_placement=_placement(loop.successor_placement, length),
        pitch=loop.pitch / length,
    )


def _coupling(coupling: Coupling, unit: float, source_unit: float) -> Coupling:
    return replace(coupling, ratio=coupling.ratio * source_unit / unit, offset=coupling.offset / unit)


def _frame(frame: Frame, length: float) -> Frame:
    return replace(frame, placement=_placement(frame.placement, length))


def _placement(placement: object, length: float) -> Floats:
    T = np.array(placement, dtype=float)
    T[:3, 3] /= length
    return T
