"""Where the links of a mechanism are and how they move, in the world's axes and in extended precision.

Written for the tests alone: it reads a mechanism's public fields and shares no code with the package. Every link
has the position p and rotation R of its frame, the angular velocity w and the velocity u of its origin, Jacobians
of both, and what its accelerations are where all joint accelerations are zero (and there is no gravity):

    w = W v      u = U v      dw/dt = W a + alpha      du/dt = U a + beta

These are classical accelerations of points, not spatial ones: the package's algebra is not repeated here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

LD = np.longdouble
EYE = np.eye(3, dtype=LD)
SIZES = {  # coordinates and freedoms
    "fixed": (0, 0),
    "revolute": (1, 1),
    "continuous": (1, 1),
    "prismatic": (1, 1),
    "helical": (1, 1),
    "universal": (2, 2),
    "spherical": (4, 3),
    "planar": (3, 3),
    "floating": (7, 6),
}
TURNS = {  # which freedoms turn; the others slide
    "fixed": (),
    "revolute": (True,),
    "continuous": (True,),
    "prismatic": (False,),
    "helical": (True,),
    "universal": (True, True),
    "spherical": (True, True, True),
    "planar": (False, False, True),
    "floating": (True, True, True, False, False, False),
}


@dataclass
class Body:
    """A link in the world; `speed` bounds are of the terms that alpha and beta are summed from."""

    R: np.ndarray
    p: np.ndarray
    w: np.ndarray
    u: np.ndarray
    W: np.ndarray
    U: np.ndarray
    alpha: np.ndarray
    beta: np.ndarray
    alpha_terms: LD
    beta_terms: LD


def array(values) -> np.ndarray:
    return np.asarray(values, dtype=LD)


def hat(x) -> np.ndarray:
    H = np.zeros((3, 3), dtype=LD)
    H[0, 1], H[0, 2], H[1, 2] = -x[2], x[1], -x[0]
    H[1, 0], H[2, 0], H[2, 1] = x[2], -x[1], x[0]
    return H


def cross(x, y) -> np.ndarray:
    return hat(x) @ y


def norm(x) -> LD:
    return np.sqrt((x * x).sum())


def unit(x) -> np.ndarray:
    return x / norm(x)


def unit_axes(part) -> np.ndarray:
    """The axes of a joint or loop as rows, normalised; a universal joint's second one is perpendicular if not given."""
    rows = [unit(row) for row in array(part.axis).reshape(-1, 3)]
    if part.kind == "universal" and len(rows) == 1:
        rows.append(in_plane(rows[0])[0])
    return np.stack(rows)


def in_plane(axis) -> tuple[np.ndarray, np.ndarray]:
    """The two directions in which a planar joint's coordinates are counted: the convention of the package."""
    helper = EYE[0] if abs(axis[0]) < 0.9 else EYE[1]
    x = unit(helper - (helper @ axis) * axis)
    return x, cross(axis, x)


def turned(axis, angle) -> np.ndarray:
    H = hat(axis)
    return EYE + np.sin(angle) * H + 2 * np.sin(angle / 2) ** 2 * H @ H


def of_quaternion(quaternion) -> np.ndarray:
    x, y, z, w = unit(array(quaternion))
    H = hat(array([x, y, z]))
    return EYE + 2 * w * H + 2 * H @ H


def joint_pose(part, q) -> tuple[np.ndarray, np.ndarray]:
    """Rotation and position of a joint's moving frame in its fixed one."""
    q = array(q)
    nothing = np.zeros(3, dtype=LD)
    if part.kind == "fixed":
        return EYE, nothing
    if part.kind == "spherical":
        return of_quaternion(q), nothing
    if part.kind == "floating":
        return of_quaternion(q[3:]), q[:3]
    axes = unit_axes(part)
    if part.kind == "universal":
        return turned(axes[0], q[0]) @ turned(axes[1], q[1]), nothing
    if part.kind == "prismatic":
        return EYE, axes[0] * q[0]
    if part.kind == "planar":
        x, y = in_plane(axes[0])
        return turned(axes[0], q[2]), x * q[0] + y * q[1]
    along = axes[0] * (LD(part.pitch) * q[0]) if part.kind == "helical" else nothing
    return turned(axes[0], q[0]), along


def freedoms(part, R_fixed, R_moving) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Angular and linear columns of a joint's motion in the world, and which turn with the moving side."""
    k = SIZES[part.kind][1]
    angular, linear = np.zeros((3, k), dtype=LD), np.zeros((3, k), dtype=LD)
    moving = np.ones(k, dtype=bool)
    if part.kind in ("spherical", "floating"):
        angular[:, :3] = R_moving
        linear[:, 3:] = R_moving[:, : k - 3]
    elif part.kind == "universal":
        axes = unit_axes(part)
        angular[:, 0], angular[:, 1] = R_fixed @ axes[0], R_moving @ axes[1]
        moving[0] = False
    elif part.kind != "fixed":
        axis = unit_axes(part)[0]
        if part.kind == "planar":
            x, y = in_plane(axis)
            linear[:, 0], linear[:, 1] = R_moving @ x, R_moving @ y
        if part.kind == "prismatic":
            linear[:, 0] = R_moving @ axis
        else:
            angular[:, -1] = R_moving @ axis
        if part.kind == "helical":
            linear[:, 0] = LD(part.pitch) * angular[:, 0]
    return angular, linear, moving


def outward(mechanism) -> list:
    """The joints from the base to the tips."""
    children = {joint.child for joint in mechanism.joints}
    known = {link.name for link in mechanism.links} - children
    left, order = list(mechanism.joints), []
    while left:
        ready = [joint for joint in left if joint.parent in known]
        assert ready, "the joints are no tree"
        order += ready
        known |= {joint.child for joint in ready}
        left = [joint for joint in left if joint.child not in known]
    return order


def slices(mechanism, which: int) -> dict[str, slice]:
    """Where each joint lies in q (0) or v (1)."""
    found, start = {}, 0
    for joint in mechanism.joints:
        size = SIZES[joint.kind][which]
        found[joint.name] = slice(start, start + size)
        start += size
    return found


def bodies(mechanism, q, v) -> dict[str, Body]:
    """Every link at a state."""
    at_q, at_v = slices(mechanism, 0), slices(mechanism, 1)
    q, v = array(q), array(v)
    nv = len(v)
    nothing, none = np.zeros(3, dtype=LD), np.zeros((3, nv), dtype=LD)
    order = outward(mechanism)
    base = ({link.name for link in mechanism.links} - {joint.child for joint in mechanism.joints}).pop()
    found = {base: Body(EYE, nothing, nothing, nothing, none, none, nothing, nothing, LD(0), LD(0))}
    for joint in order:
        placement = array(joint.placement)
        parent = found[joint.parent]
        R_fixed = parent.R @ placement[:3, :3]
        R_joint, p_joint = joint_pose(joint, q[at_q[joint.name]])
        R = R_fixed @ R_joint
        r = parent.R @ placement[:3, 3] + R_fixed @ p_joint
        found[joint.child] = _child(joint, parent, R_fixed, R, r, v, at_v[joint.name])
    return found


def _child(joint, parent, R_fixed, R, r, v, entries) -> Body:
    angular, linear, moving = freedoms(joint, R_fixed, R)
    speeds = v[entries]
    w_joint, u_joint = angular @ speeds, linear @ speeds
    H = hat(r)
    W, U = parent.W.copy(), parent.U - H @ parent.W
    W[:, entries] += angular
    U[:, entries] += linear
    w = parent.w + w_joint
    u = parent.u + cross(parent.w, r) + u_joint
    # Columns turn with the side that they are fixed to.
    turning = sum(
        (cross(w if moves else parent.w, angular[:, k]) * speeds[k] for k, moves in enumerate(moving)),
        start=np.zeros(3, dtype=LD),
    )
    alpha = parent.alpha + turning
    centripetal = cross(parent.w, cross(parent.w, r) + u_joint)
    beta = parent.beta - H @ parent.alpha + centripetal + cross(w, u_joint)
    alpha_terms = parent.alpha_terms + norm(w) * norm(w_joint)
    beta_terms = parent.beta_terms + norm(r) * (parent.alpha_terms + norm(parent.w) ** 2)
    beta_terms += (norm(parent.w) + norm(w)) * norm(u_joint)
    return Body(R, parent.p + r, w, u, W, U, alpha, beta, alpha_terms, beta_terms)
