"""What each joint of a mechanism carries: the sizes of its equations' terms beside each other, whatever the units.

Takes a mechanism; gives for every joint the mass m of the bodies it moves and the radius l at which they lie, were the
mechanism stretched out. With angular accelerations of order one, the unknowns are then of the sizes

    A[link]  1, l        F[joint]  m l^2, m l        a[joint]  1 or l        tau[joint]  m l^2 or m l

so that along a chain of any length, and for a light finger on a heavy arm, the terms of an equation are comparable.
Around a loop, and through a coupling, joints feel each other's armatures as well.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from factorgraph_dyn.model.loop_groups import Group, loop_groups, loop_paths
from factorgraph_dyn.model.parts import Joint, Loop
from factorgraph_dyn.model.units import freedom_units, natural, power_of_two
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

_LEAST_LENGTH = 1e-6  # of the mechanism's length, for joints at which nothing lies apart
_LEAST_MASS = 1e-9  # of the mechanism's mass, for joints that carry nothing


@dataclass(frozen=True)
class Carried:
    """The bodies that a joint carries: their mass, kg, and the radius at which they lie, m."""

    mass: float
    radius: float

    @property
    def inertia(self) -> float:
        """The inertia of the bodies about the joint, kg m^2."""
        return self.mass * self.radius**2

    @property
    def motion(self) -> Floats:
        """Sizes of an acceleration [angular; linear], shape (6,)."""
        return np.array([1.0, 1.0, 1.0, *[self.radius] * 3])

    @property
    def wrench(self) -> Floats:
        """Sizes of a wrench [moment; force], shape (6,)."""
        return self.inertia / self.motion

    def freedoms(self, part: Joint | Loop) -> Floats:
        """Sizes of the accelerations of a joint or loop, shape (nv,)."""
        return freedom_units(part, self.radius)

    def torque(self, part: Joint | Loop) -> Floats:
        """Sizes of the torques and forces of a joint or loop, shape (nv,)."""
        return self.inertia / self.freedoms(part)

    def rounded(self) -> Carried:
        """The same in powers of two, which scale without rounding."""
        return Carried(power_of_two(self.mass), power_of_two(self.radius))


@lru_cache(maxsize=256)
def carried(mechanism: Mechanism) -> dict[str, Carried]:
    """What every joint and loop carries, by its name."""
    units = natural(mechanism)
    moments = {link.name: _moments(link.mass, link.spatial_inertia) for link in mechanism.links}
    found: dict[str, Carried] = {}
    for joint in reversed(mechanism.topology.outward):
        mass, first, second = moments[joint.child].tolist()
        # Inertia without mass has no radius of its own.
        radius = max(np.sqrt(second / mass), _LEAST_LENGTH * units.extent) if mass else units.extent
        found[joint.name] = Carried(max(mass, second / radius**2, _LEAST_MASS * units.weight), float(radius))
        shift = float(np.linalg.norm(np.asarray(joint.placement)[:3, 3]))
        moments[joint.parent] += (mass, first + shift * mass, second + 2 * shift * first + shift**2 * mass)
    for group in loop_groups(mechanism):
        _share(mechanism, group, found)
    into = {joint.child: found[joint.name] for joint in mechanism.joints}
    for loop in mechanism.loops:  # the lighter of its links feels it most
        sides = [into[link] for link in (loop.predecessor, loop.successor) if link in into]
        found[loop.name] = min(sides, key=lambda side: side.mass)
    return found


def _moments(mass: float, G: Floats) -> Floats:
    """Mass, first and second moment of a body about its frame, were it all on one side, shape (3,)."""
    second = float(np.abs(G[:3, :3]).max())
    return np.array([mass, np.sqrt(mass * second), second])


def _share(mechanism: Mechanism, group: Group, found: dict[str, Carried]) -> None:
    """Let all joints of a group carry the largest armature among them."""
    joints = set(group.joints)
    for loop in (mechanism.loops[k] for k in group.members if k < len(mechanism.loops)):
        for way in loop_paths(mechanism, loop):
            joints.update(way)
    armature = max(_armature(joint, found[joint.name]) for joint in joints)
    for joint in joints:
        here = found[joint.name]
        found[joint.name] = Carried(max(here.mass, armature / here.radius**2), here.radius)


def _armature(joint: Joint, here: Carried) -> float:
    """A joint's largest armature, kg m^2."""
    return float((joint.armature * (here.radius / here.freedoms(joint)) ** 2).max(initial=0.0))
