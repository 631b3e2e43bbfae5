"""How long a mechanism is: three lengths for three questions, all from where joints sit on links.

Takes a description; gives

    reach    of a link: from its frame to the farthest of its joints or, if that is farther, its radius of gyration;
             with it equations of one joint are made comparable (``model.carried``)
    extent   the largest reach of a moving link, or pitch: the equations hold no longer length, and they do not see how
             far the base is from what it carries (``units.natural``)
    size     the farthest that two joints on one link, the base included, are apart. Bodies count only where joints
             give no length, so that a placeholder's inertia cannot make it large: closing and random states are
             measured in it (``units.measured``)
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from factorgraph_dyn.model.description import Description
from factorgraph_dyn.model.parts import Link
from factorgraph_dyn.spatial import Floats

CRUMB = 1e-9  # of the size of its bodies: distances between joints below it are rounding, and no measure


def places(mechanism: Description) -> dict[str, list[Floats]]:
    """Where joints and loops sit on each link, m; a moving link has one at its origin, which comes first."""
    found: dict[str, list[Floats]] = {name: [np.zeros(3)] for name in mechanism.link_names}
    found[mechanism.base].clear()
    for joint in mechanism.joints:
        found[joint.parent].append(joint.placement[:3, 3])
    for loop in mechanism.loops:
        found[loop.predecessor].append(loop.predecessor_placement[:3, 3])
        found[loop.successor].append(loop.successor_placement[:3, 3])
    return found


def gyration(link: Link) -> float:
    """The radius of a body about its frame, m; 0 without mass."""
    return float(np.sqrt(np.abs(link.spatial_inertia[:3, :3]).max() / link.mass)) if link.mass else 0.0


def reaches(mechanism: Description) -> dict[str, float]:
    """The reach of each link, m."""
    return {
        name: max([gyration(mechanism.link_by_name[name]), *(float(np.linalg.norm(place)) for place in on_link)])
        for name, on_link in places(mechanism).items()
    }


def extent(mechanism: Description) -> float:
    """The largest reach of a moving link, or pitch, m; 0 where there is none."""
    moving = (reach for name, reach in reaches(mechanism).items() if name != mechanism.base)
    return max([*moving, *_pitches(mechanism)], default=0.0)


def size(mechanism: Description) -> float:
    """How far two joints on one link are apart at most, m; 1 where nothing has a length."""
    apart = (float(np.linalg.norm(p - on_link[0])) for on_link in places(mechanism).values() for p in on_link)
    between_joints = max([*apart, *_pitches(mechanism)], default=0.0) or max(_racks(mechanism), default=0.0)
    of_bodies = extent(mechanism)
    return (between_joints if between_joints > CRUMB * of_bodies else of_bodies) or 1.0


def _pitches(mechanism: Description) -> Iterable[float]:
    return (abs(part.pitch) for part in (*mechanism.joints, *mechanism.loops))


def _racks(mechanism: Description) -> Iterable[float]:
    """The lengths that couplings give for a radian."""
    for coupling in mechanism.couplings:
        joint, source = (mechanism.joint_by_name[name] for name in (coupling.joint, coupling.source))
        if coupling.ratio and joint.is_slider != source.is_slider:
            yield abs(coupling.ratio if joint.is_slider else 1 / coupling.ratio)
