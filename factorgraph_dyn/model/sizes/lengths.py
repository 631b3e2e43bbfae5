"""How long a mechanism is: three lengths for three questions, all from where joints sit on links.

Takes a description; gives

    reach    of a link: from its frame to the farthest of its joints or, if that is farther, its radius of gyration;
             with it equations of one joint are made comparable (``model.sizes.carried``)
    extent   the largest reach of a moving link, or pitch: the equations hold no longer length, and they do not see how
             far the base is from what it carries (``units.natural``). Bodies of next to no mass give none.
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

PLACEHOLDER = 1e-6  # of the heaviest link's mass: lighter links have it for form's sake, and it gives no length
EXTENT_SLACK = 1e-6  # of the extent
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


def radius_of_gyration(link: Link) -> float:
    """How far from a link's frame its body lies, by its inertia and mass, m; 0 without mass."""
    return float(np.sqrt(np.abs(link.spatial_inertia[:3, :3]).max() / link.mass)) if link.mass else 0.0


def mass_within(link: Link, extent: float) -> float:
    """A link's mass, kg; 0 where it would have to lie beyond the mechanism's extent: it is there for form's sake."""
    return link.mass if radius_of_gyration(link) <= (1 + EXTENT_SLACK) * extent else 0.0


def reaches(mechanism: Description) -> dict[str, float]:
    """The reach of each link, m."""
    most, of_joints = extent(mechanism) or 1.0, _of_joints(mechanism)
    bodies = {link.name: radius_of_gyration(link) for link in mechanism.links if mass_within(link, most)}
    return {name: max(reach, bodies.get(name, 0.0)) for name, reach in of_joints.items()}


def extent(mechanism: Description) -> float:
    """The largest length that the equations hold, m; 0 where there is none."""
    moving = [link for link in mechanism.links if link.name != mechanism.base]
    least = PLACEHOLDER * max((link.mass for link in moving), default=0.0)
    of_bodies = (radius_of_gyration(link) for link in moving if link.mass > least)
    of_joints = _of_joints(mechanism)
    return max([*of_bodies, *(of_joints[link.name] for link in moving), *_pitches(mechanism)], default=0.0)


def _of_joints(mechanism: Description) -> dict[str, float]:
    """How far from each link's frame the farthest joint on it is, m."""
    return {
        name: max((float(np.linalg.norm(place)) for place in on_link), default=0.0)
        for name, on_link in places(mechanism).items()
    }


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
