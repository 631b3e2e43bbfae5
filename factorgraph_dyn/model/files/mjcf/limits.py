"""The largest torques that an MJCF file allows its joints.

    joint      actuatorfrcrange, of all actuators together
    actuator   forcerange, and the ctrlrange of a motor, whose control is its force; times the gear, summed over the
               actuators of a joint

Ranges that differ in their two directions give the larger one. MuJoCo has no limits of speed. Runs once a file.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np

from factorgraph_dyn.model.assembly import Connection
from factorgraph_dyn.model.files.limits import bound
from factorgraph_dyn.model.files.mjcf.constraints import Actuator
from factorgraph_dyn.model.files.mjcf.scene import Scene
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.spatial import Floats


def range_bound(element: Element, scene: Scene, name: str, limited: str) -> float:
    """The larger end of an attribute that gives a range; infinite where there is none or it is switched off."""
    switch = element.get(limited, "auto")
    if element.get(name) is None or switch == "false" or (switch == "auto" and not scene.settings.autolimits):
        return math.inf
    return bound(float(np.abs(element.vector(name, 2, infinite=True)).max()))


def limited_by_actuators(
    connections: Iterable[Connection], actuators: Sequence[Actuator], scene: Scene
) -> list[Connection]:
    """The connections, their joints with no larger effort than their actuators have together."""
    drives: dict[str, list[Floats]] = {}
    for actuator in actuators:
        force = _largest_force(actuator.where, scene)
        for joint, gear in actuator.gears.items():
            drives.setdefault(joint, []).append(np.array([abs(g) * force if g else 0.0 for g in (*gear, 0.0, 0.0)]))
    return [_limited(connection, drives.get(connection.joint.name, [])) for connection in connections]


def _largest_force(element: Element, scene: Scene) -> float:
    force = range_bound(element, scene, "forcerange", "forcelimited")
    return min(force, range_bound(element, scene, "ctrlrange", "ctrllimited")) if element.tag == "motor" else force


def _limited(connection: Connection, drives: Sequence[Floats]) -> Connection:
    joint = connection.joint
    if not drives or joint.nv not in (1, 3):  # free joints have gears in the world's axes
        return connection
    together = np.sum([drive[: joint.nv] for drive in drives], axis=0)
    return replace(connection, joint=replace(joint, effort_limit=np.minimum(joint.effort_limit, together)))
