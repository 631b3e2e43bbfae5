"""What a page shows of a mechanism, as plain data.

Takes a mechanism; gives links with their bodies, joints with the screws they turn about, loops, couplings and frames.
Any joint is placed by screws alone, T = placement exp(S_1 q_1) exp(S_2 q_2) ..., or by a position and a quaternion, so
that a page needs no kinds of joints. The work runs once a page.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model import Joint, Link, Loop, Mechanism
from factorgraph_dyn.spatial import Floats

_THIN = 0.02  # least radius of an ellipsoid in parts of its largest, so that rods can be seen


def scene(mechanism: Mechanism) -> dict[str, Any]:
    """The mechanism as numbers and names; links are told by their numbers."""
    number = {link.name: index for index, link in enumerate(mechanism.links)}
    return {
        "name": mechanism.name,
        "size": mechanism.size,
        "up": _up(mechanism),
        "links": [_link(mechanism, link) for link in mechanism.links],
        "joints": [_joint(mechanism, joint, number) for joint in mechanism.topology.outward],
        "loops": [_loop(loop, number) for loop in mechanism.loops],
        "couplings": [_coupling(mechanism, coupling) for coupling in mechanism.couplings],
        "frames": [
            {"name": frame.name, "link": number[frame.link], "T": _rows(frame.placement)} for frame in mechanism.frames
        ],
    }


def _up(mechanism: Mechanism) -> list[float]:
    """Against gravity, or z where there is none."""
    gravity = np.asarray(mechanism.gravity)
    size = float(np.linalg.norm(gravity))
    return [0.0, 0.0, 1.0] if not size else (-gravity / size).tolist()


def _link(mechanism: Mechanism, link: Link) -> dict[str, Any]:
    return {
        "name": link.name,
        "mass": link.mass,
        "com": link.com.tolist(),
        "ellipsoid": _ellipsoid(link),
        "ends": [end.tolist() for end in _ends(mechanism, link)],
    }


def _ends(mechanism: Mechanism, link: Link) -> list[Floats]:
    """The places of a link that its body reaches to from its origin: what hangs on it, and its centre of mass."""
    ends = [np.asarray(joint.placement)[:3, 3] for joint in mechanism.joints if joint.parent == link.name]
    for loop in mechanism.loops:
        sides = ((loop.predecessor, loop.predecessor_placement), (loop.successor, loop.successor_placement))
        ends += [np.asarray(placement)[:3, 3] for owner, placement in sides if owner == link.name]
    ends += [np.asarray(frame.placement)[:3, 3] for frame in mechanism.frames if frame.link == link.name]
    if link.mass and link.name != mechanism.base:
        ends.append(link.com)
    return [end for end in ends if np.linalg.norm(end) > 1e-9 * mechanism.size]


def _ellipsoid(link: Link) -> dict[str, Any] | None:
    """The solid ellipsoid with the link's mass and inertia: its half axes and their directions, if there is one."""
    moments, directions = np.linalg.eigh(link.inertia)
    if not link.mass or not moments.max() > 0:
        return None
    squares = 2.5 / link.mass * (moments.sum() - 2.0 * moments)
    radii = np.sqrt(np.maximum(squares, 0.0))
    if np.linalg.det(directions) < 0:
        directions[:, 0] *= -1.0
    return {"radii": np.maximum(radii, _THIN * radii.max()).tolist(), "R": directions.ravel().tolist()}


def _joint(mechanism: Mechanism, joint: Joint, number: dict[str, int]) -> dict[str, Any]:
    is_plain = not joint.type.has_quaternion
    return {
        "name": joint.name,
        "kind": joint.kind,
        "parent": number[joint.parent],
        "child": number[joint.child],
        "T": _rows(joint.placement),
        "q": mechanism.q_slices[joint.name].start,
        "nq": joint.nq,
        "screws": _screws(joint).tolist() if is_plain else [],
        "turns": joint.turns.tolist(),
        "axes": joint.axes.tolist() if joint.type.axis_count else [],
        "limits": list(joint.limits) if joint.limits is not None else None,
        "actuated": joint.actuated,
    }


def _screws(joint: Joint) -> Floats:
    """The screws at the neutral pose whose exponentials, one after the other, are the joint's pose, shape (nv, 6)."""
    return np.asarray(joint.type.subspace(joint.axes, joint.pitch, np.eye(4))).T


def _loop(loop: Loop, number: dict[str, int]) -> dict[str, Any]:
    S = loop.constant_subspace
    return {
        "name": loop.name,
        "kind": loop.kind,
        "predecessor": number[loop.predecessor],
        "successor": number[loop.successor],
        "T_predecessor": _rows(loop.predecessor_placement),
        "T_successor": _rows(loop.successor_placement),
        "axes": loop.axes.tolist() if loop.type.axis_count else [],
        # Motions that a loop allows make a group, but for two crossing axes: the angle between these is kept.
        "directions": None if S is None else spatial.constraint_directions(S).T.tolist(),
    }


def _coupling(mechanism: Mechanism, coupling: Any) -> dict[str, Any]:
    return {
        "joint": mechanism.q_slices[coupling.joint].start,
        "source": mechanism.q_slices[coupling.source].start,
        "ratio": coupling.ratio,
        "offset": coupling.offset,
    }


def _rows(T: Floats) -> list[float]:
    """A pose row by row, 16 numbers."""
    rows: list[float] = np.asarray(T).ravel().tolist()
    return rows
