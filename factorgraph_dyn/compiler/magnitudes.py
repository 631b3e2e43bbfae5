"""How large the unknowns of a mechanism's equations are beside each other, whatever its units.

Takes a mechanism; gives a size for every entry of its variables, with angular accelerations of order one. A joint
feels the bodies it carries: their mass m and the radius l at which they lie, were the mechanism stretched out,

    A[link]  1, l        F[joint]  m l^2, m l        a[joint]  1 or l        tau[joint]  m l^2 or m l (and armature)

so that along a chain of any length, and for a light finger on a heavy arm, all entries of an equation are comparable
once they are multiplied by their variables' sizes. Around a loop, and through a coupling, joints feel each other's
armatures as well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.equations import LinearGraph, Variable
from factorgraph_dyn.model import Joint, Loop, Mechanism
from factorgraph_dyn.model.loop_groups import Group, loop_groups, loop_paths
from factorgraph_dyn.model.units import natural
from factorgraph_dyn.spatial import Floats

_LEAST_LENGTH = 1e-6  # of the mechanism's length, for joints at which nothing lies apart
_LEAST_MASS = 1e-9  # of the mechanism's mass, for joints that carry nothing


@dataclass(frozen=True)
class Carried:
    """The bodies that a joint carries: their mass, kg, and the radius at which they lie, m."""

    mass: float
    radius: float

    @property
    def motion(self) -> Floats:
        """Sizes of an acceleration [angular; linear], shape (6,)."""
        return np.array([1.0, 1.0, 1.0, *[self.radius] * 3])

    @property
    def wrench(self) -> Floats:
        """Sizes of a wrench [moment; force], shape (6,)."""
        return self.mass * self.radius**2 / self.motion


class Magnitudes:
    """Sizes of the unknowns of a mechanism's equations."""

    def __init__(self, mechanism: Mechanism) -> None:
        self._mechanism = mechanism
        self._carried = carried(mechanism)
        self._loops: Mapping[str, Loop] = {loop.name: loop for loop in mechanism.loops}
        self._into = {joint.child: joint.name for joint in mechanism.joints}
        self._couplings = {coupling.name: coupling.joint for coupling in mechanism.couplings}

    def of(self, graph: LinearGraph) -> dict[int, float]:
        """The size of every column of a graph's unknowns; those known in part have one column an unknown entry."""
        sizes: dict[int, float] = {}
        for variable, part in graph.column_slices.items():
            found = self._of_variable(variable)
            columns = range(part.start, part.stop)
            sizes |= dict(zip(columns, np.resize(found, len(columns)).tolist(), strict=True))
        return sizes

    def _of_variable(self, variable: Variable) -> Floats:
        if variable.kind == "lambda":
            coupled = self._mechanism.joint_by_name[self._couplings[variable.owner]]
            return self._torque(coupled, self._carried[coupled.name])
        if variable.kind == "A":
            return self._carried[self._into[variable.owner]].motion
        here = self._of_joint(variable.owner)
        if variable.kind == "F":
            return here.wrench
        joint: Joint | Loop = self._mechanism.joint_by_name.get(variable.owner) or self._loops[variable.owner]
        return self._torque(joint, here) if variable.kind == "tau" else _freedoms(joint, here)

    def _of_joint(self, name: str) -> Carried:
        """What a joint carries; a loop carries the lighter of its sides."""
        if name in self._carried:
            return self._carried[name]
        loop = self._loops[name]
        sides = [self._into[link] for link in (loop.predecessor, loop.successor) if link in self._into]
        return min((self._carried[side] for side in sides), key=lambda side: side.mass)

    def _torque(self, joint: Joint | Loop, here: Carried) -> Floats:
        sizes = here.mass * here.radius**2 / _freedoms(joint, here)
        return np.maximum(sizes, joint.armature * _freedoms(joint, here)) if isinstance(joint, Joint) else sizes


def _freedoms(joint: Joint | Loop, here: Carried) -> Floats:
    """Sizes of a joint's accelerations, shape (nv,)."""
    S = joint.type.subspace(joint.axes, joint.pitch, np.eye(4))
    return np.where(S[:3].any(axis=0), 1.0, here.radius)


def carried(mechanism: Mechanism) -> dict[str, Carried]:
    """What every joint carries, by its name."""
    units = natural(mechanism)
    moments = {link.name: _moments(link.mass, link.spatial_inertia) for link in mechanism.links}
    found = {}
    for joint in reversed(mechanism.topology.outward):
        mass, first, second = moments[joint.child]
        radius = max(np.sqrt(second / mass) if mass > 0 else 0.0, _LEAST_LENGTH * units.length)
        if not mass:  # inertia without mass
            radius = units.length
        mass = max(mass, second / radius**2, _LEAST_MASS * units.mass)
        found[joint.name] = Carried(float(mass), float(radius))
        shift = float(np.linalg.norm(np.asarray(joint.placement)[:3, 3]))
        mass = moments[joint.child][0]
        moments[joint.parent] += (mass, first + shift * mass, second + 2 * shift * first + shift**2 * mass)
    for group in loop_groups(mechanism):
        _share(mechanism, group, found)
    return found


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
    return float((joint.armature * (here.radius / _freedoms(joint, here)) ** 2).max(initial=0.0))


def _moments(mass: float, G: Floats) -> Floats:
    """Mass, first and second moment of a body about its frame, were it all on one side, shape (3,)."""
    second = float(np.abs(G[:3, :3]).max())
    return np.array([mass, np.sqrt(mass * second), second])
