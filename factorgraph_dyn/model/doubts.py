"""What is silently wrong: numbers that are allowed and hardly meant.

Takes a mechanism, or coordinates of it; gives sentences. Lengths in millimetres, angles in degrees and quaternions that
begin with w are computed with as they are, and give answers that look like answers. Runs once a mechanism, and once a
state that is checked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.description import Description

FAR = 100  # times the mechanism's size: a body's centre is hardly so far from its joint
MANY_TURNS = 10 * 2 * np.pi  # rad; whole numbers beyond are degrees rather than angles that were reached by turning
MOST_DEGREES = 10 * 360  # unless they are as many turns in degrees


def far_centres(mechanism: Description, size: float) -> list[str]:
    """One sentence for every moving link whose centre of mass lies far outside the mechanism."""
    apart = {link.name: float(np.linalg.norm(link.com)) for link in mechanism.links if link.mass}
    return [
        f"The centre of mass of link {name!r} is {distance:.4g} m from its joint, {distance / size:.3g} times the "
        f"mechanism's size of {size:.4g} m. Are its lengths in millimetres? It is used as written."
        for name, distance in apart.items()
        if name != mechanism.base and distance > FAR * size
    ]


def doubtful_coordinates(mechanism: Description, q: Floats) -> list[tuple[str, npt.NDArray[np.bool_]]]:
    """A sentence for everything that coordinates (..., nq) hardly mean, and at which states it is so, shape (...)."""
    found: list[tuple[str, npt.NDArray[np.bool_]]] = []
    if not (q == 1.0).any() and not (np.abs(q) > MANY_TURNS).any():
        return found  # as nearly always, at the least cost
    for joint in mechanism.movable_joints:
        part = q[..., mechanism.q_slices[joint.name]]
        if joint.type.has_quaternion:
            # (1, 0, 0, 0) is half a turn about x here, and no turn for those who write w first
            swapped = np.all(part[..., -4:] == (1.0, 0.0, 0.0, 0.0), axis=-1)
            found.append((
                f"The quaternion of joint {joint.name!r} is (1, 0, 0, 0), half a turn about x: quaternions are x, y, "
                "z, w. If no turn is meant, give (0, 0, 0, 1), as mechanism.neutral() does",
                swapped,
            ))  # fmt: skip
        elif joint.nq == joint.nv and joint.turns.any():
            angles = part[..., joint.turns]
            size = np.abs(angles)
            degrees = np.any((size > MANY_TURNS) & (size <= MOST_DEGREES) & (size == np.round(size)), axis=-1)
            found.append((
                f"Joint {joint.name!r} has turned by a whole number of radians beyond ten turns; degrees look so. "
                "Angles are in rad: np.deg2rad(q)",
                degrees,
            ))  # fmt: skip
    return [(sentence, np.asarray(where)) for sentence, where in found if np.any(where)]
