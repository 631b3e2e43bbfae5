"""How large a mechanism is, and the mechanism measured in it: closing and random states work there.

Takes a mechanism; gives the farthest that two joints on one link are apart, and the same mechanism described with
that length as 1. Bodies count only where joints give no length, so that a placeholder's inertia cannot make it large.
The size is not rounded to a power of two, as the units of the dynamics are: where slides and turns are weighed against
each other, a mechanism described in millimetres must be weighed as the same one in metres.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

import numpy as np

from factorgraph_dyn.model.units import Natural, lengths
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

CRUMB = 1e-9  # of the size of its bodies: distances between joints below it are rounding, and no measure


@lru_cache(maxsize=256)
def measured(mechanism: Mechanism) -> Natural:
    """The mechanism in units of its size; masses stay as they are."""
    size = _size(mechanism)
    return Natural(mechanism, size, 1.0, extent=size, weight=1.0)


def _size(mechanism: Mechanism) -> float:
    pitches = (abs(part.pitch) for part in (*mechanism.joints, *mechanism.loops))
    between_joints = max([*_extents(mechanism), *pitches]) or max(_racks(mechanism), default=0.0)
    of_bodies = max(lengths(mechanism), default=0.0)
    return (between_joints if between_joints > CRUMB * of_bodies else of_bodies) or 1.0


def _extents(mechanism: Mechanism) -> Iterable[float]:
    """How far the joints on each link are from the one that carries it, or on the base from the first one."""
    places: dict[str, list[Floats]] = {name: [np.zeros(3)] for name in mechanism.link_names}
    places[mechanism.base].clear()
    for joint in mechanism.joints:
        places[joint.parent].append(joint.placement[:3, 3])
    for loop in mechanism.loops:
        places[loop.predecessor].append(loop.predecessor_placement[:3, 3])
        places[loop.successor].append(loop.successor_placement[:3, 3])
    for on_link in places.values():
        yield max((float(np.linalg.norm(place - on_link[0])) for place in on_link), default=0.0)


def _racks(mechanism: Mechanism) -> Iterable[float]:
    """The lengths that couplings give for a radian."""
    slides = {joint.name for joint in mechanism.joints if joint.kind == "prismatic"}
    for coupling in mechanism.couplings:
        if coupling.ratio and (coupling.joint in slides) != (coupling.source in slides):
            yield abs(coupling.ratio if coupling.joint in slides else 1 / coupling.ratio)
