"""What each joint of a mechanism carries: the sizes of its equations' terms beside each other, whatever the units.

Takes a mechanism; gives for every joint the mass m of the bodies it moves and a radius l. With angular accelerations
of order one, the unknowns are then of the sizes

    A[link]  1, l        F[joint]  m l^2, m l        a[joint]  1 or l        tau[joint]  m l^2 or m l, armature

so that the terms of an equation are comparable, for a light finger on a heavy arm, too. The radius is the link's
reach (``lengths``); or that at which all bodies lie, were the mechanism stretched out, which is what pivots grow
to along a chain. Around a loop, and through a coupling, joints feel each other's armatures and, in part, bodies.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.loop_groups import Group, loop_groups, loop_paths
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link, Loop
from factorgraph_dyn.model.sizes.lengths import mass_within, reaches
from factorgraph_dyn.model.sizes.units import Scale, natural
from factorgraph_dyn.spatial import Floats, stacked

_PASSED_ON = 1e-3  # of the largest inertia around a loop, which a light link between heavy ones has to carry on
_LEAST_LENGTH = 1e-6  # of the mechanism's length, for joints at which nothing lies apart


class Carried(Scale):
    """The bodies that a joint carries: their mass and the length at which they lie give the sizes of its terms."""

    def torque(self, part: Joint | Loop) -> Floats:
        """Sizes of the torques and forces of a joint or loop, armature included, shape (nv,)."""
        armature = part.armature if isinstance(part, Joint) else 0.0
        return np.maximum(self.work / self.freedoms(part), armature * self.freedoms(part))


@kept_with_first
def carried(mechanism: Mechanism, *, stretched: bool = False) -> dict[str, Carried]:
    """What every joint and loop carries, by its name.

    Args:
        mechanism: The mechanism.
        stretched: Take the radius at which all bodies lie instead of that of the link.
    """
    units = natural(mechanism)
    reach = reaches(mechanism)
    moments = {link.name: _moments(link, units.extent) for link in mechanism.links}
    found: dict[str, Carried] = {}
    for joint in reversed(mechanism.topology.outward):
        mass, first, second = moments[joint.child].tolist()
        shift = float(np.linalg.norm(np.asarray(joint.placement)[:3, 3]))
        radius = max(reach[joint.child], shift if joint.parent != mechanism.base else 0.0)
        if stretched and mass:
            radius = max(radius, float(np.sqrt(second / mass)))
        # What has no length or no mass takes the mechanism's.
        radius = max(radius or units.extent, _LEAST_LENGTH * units.extent)
        inertia = float(np.abs(mechanism.link_by_name[joint.child].spatial_inertia[:3, :3]).max())
        found[joint.name] = Carried(length=radius, mass=max(mass, inertia / radius**2) or units.weight)
        moments[joint.parent] += (mass, first + shift * mass, second + 2 * shift * first + shift**2 * mass)
    for group in loop_groups(mechanism):
        _share(mechanism, group, found)
    into = {joint.child: found[joint.name] for joint in mechanism.joints}
    for loop in mechanism.loops:  # the lighter of its links feels it most
        sides = [into[link] for link in (loop.predecessor, loop.successor) if link in into]
        found[loop.name] = min(sides, key=lambda side: side.mass)
    return found


def usual_inertia(mechanism: Mechanism) -> Floats:
    """The inertia that every freedom would move, had what its joint carries no thin direction, shape (nv,)."""
    loads = carried(mechanism)
    parts = (loads[joint.name].torque(joint) / loads[joint.name].freedoms(joint) for joint in mechanism.movable_joints)
    return stacked(parts)


def _moments(link: Link, extent: float) -> Floats:
    """Mass, first and second moment of a body about its frame, were it all on one side, shape (3,)."""
    second = float(np.abs(link.spatial_inertia[:3, :3]).max())
    mass = mass_within(link, extent)
    return np.array([mass, np.sqrt(mass * second), second])


def _share(mechanism: Mechanism, group: Group, found: dict[str, Carried]) -> None:
    """Let light joints of a group pass on what heavy ones and their armatures ask for."""
    joints = set(group.joints)
    for loop in (mechanism.loops[k] for k in group.members if k < len(mechanism.loops)):
        for way in loop_paths(mechanism, loop):
            joints.update(way)
    armature = max(_armature(joint, found[joint.name]) for joint in joints)
    least = max(armature, _PASSED_ON * max(found[joint.name].work for joint in joints))
    for joint in joints:
        here = found[joint.name]
        found[joint.name] = Carried(length=here.length, mass=max(here.mass, least / here.length**2))


def _armature(joint: Joint, here: Carried) -> float:
    """A joint's largest armature, kg m^2."""
    return float((joint.armature * here.freedoms(joint) ** 2).max(initial=0.0))
