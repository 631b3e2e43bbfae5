"""Closure of loops and couplings in extended precision: errors, Jacobians, rates, and states that close.

A loop's joint lets its moving side have the relative motion [w; u] = S v_loop, where u is the velocity of the
moving side's origin against the point of the fixed side that is just there. C holds the directions that no v_loop
reaches, in the world's axes:

    J v = C^T [w; u] = 0        J a + C^T bias = 0        force on the moving side: [moment; force] = C lambda
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from tests.stress.kinematics import (
    EYE,
    LD,
    array,
    bodies,
    cross,
    freedoms,
    hat,
    in_plane,
    norm,
    of_quaternion,
    slices,
    turned,
    unit,
    unit_axes,
)

TINY = np.finfo(LD).tiny
FAINT = 1e-6  # what is held by less of the terms, the graph takes as free and says so
RANK = 1e-12  # singular values of scaled matrices below this share of the largest count as zero


@dataclass
class Row:
    """The constraints of one loop or coupling.

    J (rows, nv) and Jdot_v (rows,) with bounds of the terms they are summed from, the error of the closure (rows,),
    and of a loop the directions C (6, rows) and the point at which they are counted.
    """

    name: str
    J: np.ndarray
    Jdot_v: np.ndarray
    terms: np.ndarray
    error: np.ndarray
    J_terms: np.ndarray
    C: np.ndarray | None = None
    point: np.ndarray | None = None


def constraint_rows(mechanism, q, v, found=None) -> list[Row]:
    found = bodies(mechanism, q, v) if found is None else found
    rows = [_loop(loop, found, len(v)) for loop in mechanism.loops]
    return rows + [_coupling(mechanism, coupling, q, len(v)) for coupling in mechanism.couplings]


def _coupling(mechanism, coupling, q, nv) -> Row:
    at_q, at_v = slices(mechanism, 0), slices(mechanism, 1)
    J = np.zeros((1, nv), dtype=LD)
    J[0, at_v[coupling.joint]] = 1
    J[0, at_v[coupling.source]] = -LD(coupling.ratio)
    q = array(q)
    error = q[at_q[coupling.joint]] - LD(coupling.ratio) * q[at_q[coupling.source]] - LD(coupling.offset)
    return Row(coupling.name, J, np.zeros(1, dtype=LD), np.zeros(1, dtype=LD), error, np.abs(J))


def _placed(body, placement):
    T = array(placement)
    return body.R @ T[:3, :3], body.R @ T[:3, 3]


def _loop(loop, found, nv) -> Row:
    one, two = found[loop.predecessor], found[loop.successor]
    R_fixed, arm_one = _placed(one, loop.predecessor_placement)
    R_moving, arm_two = _placed(two, loop.successor_placement)
    point = two.p + arm_two
    r = point - one.p  # from the predecessor's origin to the moving side, fixed in neither
    C = constrained(loop, R_fixed, R_moving)
    H, H_two = hat(r), hat(arm_two)
    w, u = two.w - one.w, two.u - H_two @ two.w - one.u + H @ one.w
    W, U = two.W - one.W, two.U - H_two @ two.W - one.U + H @ one.W
    angular, linear, moving = freedoms(loop, R_fixed, R_moving)
    v_loop = _loop_speeds(loop, angular, linear, w, u)
    # What the accelerations of both sides differ by where a = 0, less what v_loop alone asks for.
    alpha, beta = two.alpha - one.alpha, two.beta - H_two @ two.alpha + cross(two.w, cross(two.w, arm_two))
    r_rate = two.u - H_two @ two.w - one.u
    beta = beta - (one.beta - H @ one.alpha + cross(one.w, r_rate))
    for k, moves in enumerate(moving):
        alpha = alpha - cross(two.w if moves else one.w, angular[:, k]) * v_loop[k]
    beta = beta - cross(two.w, linear @ v_loop)
    turn, slide = loop_error(loop, R_fixed.T @ R_moving, R_fixed.T @ (r - arm_one))
    error = C.T @ np.concatenate([R_fixed @ turn, R_fixed @ slide])
    speed = norm(one.w) + norm(two.w)
    bound = np.concatenate(
        [
            np.full(3, one.alpha_terms + two.alpha_terms + speed * speed),
            np.full(
                3,
                one.beta_terms
                + two.beta_terms
                + norm(arm_two) * (two.alpha_terms + speed * speed)
                + norm(r) * (one.alpha_terms + speed * speed)
                + speed * (norm(r_rate) + norm(u)),
            ),
        ]
    )
    bias = np.concatenate([alpha, beta])
    J = C.T @ np.concatenate([W, U])
    W_terms = _spread(two.W) + _spread(one.W)
    r_terms = norm(two.p - one.p) + norm(arm_two)  # a loop about the predecessor's own origin has nothing left of them
    U_terms = _spread(two.U) + norm(arm_two) * _spread(two.W) + _spread(one.U) + r_terms * _spread(one.W)
    J_terms = np.abs(C.T) @ np.concatenate([W_terms, U_terms])
    # Joints below both sides move neither against the other, exactly.
    common = np.logical_and(*(np.any(body.W, axis=0) | np.any(body.U, axis=0) for body in (one, two)))
    J[:, common], J_terms[:, common] = 0, 0
    return Row(loop.name, J, C.T @ bias, np.abs(C.T) @ bound, error, J_terms, C, point)


def _spread(vectors) -> np.ndarray:
    """The lengths of columns at each of their entries: rounding of a direction shows in the entries that are zero."""
    return np.broadcast_to(np.sqrt((vectors**2).sum(axis=0)), vectors.shape)


def _loop_speeds(loop, angular, linear, w, u) -> np.ndarray:
    """The loop joint's velocities, from the part of the relative motion that tells them best."""
    if loop.kind == "planar":
        return array([linear[:, 0] @ u, linear[:, 1] @ u, angular[:, 2] @ w])
    if loop.kind == "prismatic":
        return array([linear[:, 0] @ u])
    if loop.kind == "universal":
        x, y = angular.T
        d = x @ y
        g = array([x @ w, y @ w])
        return array([g[0] - d * g[1], g[1] - d * g[0]]) / (1 - d * d)
    if loop.kind == "floating":
        return np.concatenate([angular[:, :3].T @ w, linear[:, 3:].T @ u])
    return angular.T @ w


def perpendicular(axis) -> np.ndarray:
    """Two unit directions at right angles to an axis, as columns."""
    helper = EYE[int(np.argmin(np.abs(axis)))]
    x = unit(helper - (helper @ axis) * axis)
    return np.column_stack([x, cross(axis, x)])


def constrained(loop, R_fixed, R_moving) -> np.ndarray:
    """The directions C (6, rows) that a loop's joint does not allow."""
    none = np.zeros((3, 0), dtype=LD)
    turns, slides = {"fixed": (EYE, EYE), "spherical": (none, EYE), "floating": (none, none)}.get(
        loop.kind, (None, None)
    )
    mixed = np.zeros((6, 0), dtype=LD)
    if turns is None:
        axes = unit_axes(loop)
        axis = R_moving @ axes[0]
        across = perpendicular(axis)
        turns, slides = {
            "prismatic": (EYE, across),
            "planar": (across, axis[:, None]),
            "helical": (across, across),
        }.get(loop.kind, (across, EYE))
        if loop.kind == "universal":
            turns = unit(cross(R_fixed @ axes[0], R_moving @ axes[1]))[:, None]
        if loop.kind == "helical":
            mixed = np.concatenate([-LD(loop.pitch) * axis, axis])[:, None]
    C = np.zeros((6, turns.shape[1] + slides.shape[1]), dtype=LD)
    C[:3, : turns.shape[1]] = turns
    C[3:, turns.shape[1] :] = slides
    return np.concatenate([C, mixed], axis=1)


def loop_error(loop, R, p) -> tuple[np.ndarray, np.ndarray]:
    """By what turn and way (in the fixed frame) a relative pose is off the nearest one that the joint allows."""
    sine = array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / 2
    if loop.kind == "fixed":
        return sine, p
    if loop.kind in ("spherical", "floating"):
        return np.zeros(3, dtype=LD), p
    axes = unit_axes(loop)
    axis = axes[0]
    along = axis * (axis @ p)
    if loop.kind == "prismatic":
        return sine, p - along
    if loop.kind == "universal":
        normal = cross(axis, R @ axes[1])
        return -normal / (normal @ normal) * (axis @ (R @ axes[1]) - axis @ axes[1]), p
    tilt = cross(axis, R @ axis)
    if loop.kind == "helical":
        angle = np.arctan2(2 * (axis @ sine), np.trace(R) - axis @ R @ axis)
        pitch = LD(loop.pitch)
        if pitch:
            angle += 2 * LD(np.pi) * np.round((axis @ p / pitch - angle) / (2 * LD(np.pi)))
        p = p - axis * (pitch * angle)
    return tilt, along if loop.kind == "planar" else p


# ---- states


def moved(mechanism, q, step) -> np.ndarray:
    """The configuration reached from q by small joint motions; to first order only."""
    at_q, at_v = slices(mechanism, 0), slices(mechanism, 1)
    q, step = array(q).copy(), array(step)
    for joint in mechanism.joints:
        here, way = q[at_q[joint.name]], step[at_v[joint.name]]
        if joint.kind in ("spherical", "floating"):
            here[-4:] = _turned_quaternion(here[-4:], way[:3])
        if joint.kind == "floating":
            here[:3] += of_quaternion(here[3:]) @ way[3:]
        elif joint.kind == "planar":
            axis = unit_axes(joint)[0]
            x, y = in_plane(axis)
            slid = turned(axis, here[2]) @ (x * way[0] + y * way[1])
            here += array([x @ slid, y @ slid, way[2]])
        elif joint.kind != "spherical":
            here += way
    return q


def _turned_quaternion(quaternion, way) -> np.ndarray:
    vector, w = quaternion[:3], quaternion[3]
    half = way / 2
    product = np.append(vector + w * half + cross(vector, half), w - vector @ half)
    return unit(product)


def coordinates_closing(loop, found) -> tuple[np.ndarray, np.ndarray]:
    """The successor's placement (R, p) that closes a loop at the joint's zero where the links are."""
    one, two = found[loop.predecessor], found[loop.successor]
    R_fixed, arm = _placed(one, loop.predecessor_placement)
    return two.R.T @ R_fixed, two.R.T @ (one.p + arm - two.p)


def _by_terms(rows, columns) -> tuple[np.ndarray, np.ndarray]:
    """J of all constraints with its rows in parts of the terms that they are summed from, and these."""
    J = np.concatenate([row.J for row in rows]) * columns
    sizes = np.maximum((np.concatenate([row.J_terms for row in rows]) * columns).max(axis=1, initial=LD(0)), TINY)
    return (J / sizes[:, None]).astype(float), sizes


def is_faint(rows, columns) -> bool:
    """Whether something is held by less than a file's digits may leave, and by more than rounding does."""
    J, _ = _by_terms(rows, columns) if rows else (np.zeros((0, 0)), None)
    s = np.linalg.svd(J, compute_uv=False) if J.size else np.zeros(0)
    return bool(((s > RANK) & (s <= FAINT)).any())


def scaled_pseudo_inverse(rows, columns, most: int | None = None) -> tuple[np.ndarray, int]:
    """J^+ of all constraints, where the unknowns are counted in given units, and J's rank, or the most it may be.

    Rows are scaled by the terms that they are summed from, so that what is zero but for rounding stays so.
    """
    J, sizes = _by_terms(rows, columns)
    if not J.size:
        return np.zeros(J.shape[::-1], dtype=LD), 0
    left, s, right = np.linalg.svd(J, full_matrices=False)
    rank = min(int((s > RANK).sum()), len(s) if most is None else most)
    inverse = (right[:rank].T / s[:rank]) @ left[:, :rank].T
    return columns[:, None] * array(inverse) / sizes, rank


def close(mechanism, q, units, most: int | None = None, iterations: int = 30) -> np.ndarray | None:
    """A configuration near q that closes everything to extended precision, or None.

    Args:
        mechanism: The mechanism.
        q: Where to start.
        units: Of the freedoms.
        most: The rank of closure where it is closed. Linkages whose lengths agree lose rank there: beside it, steps
            along what is then held by next to nothing would lead anywhere on the closed curve, and no smooth way is
            left.
        iterations: How many steps at most.
    """
    length = units.max(initial=LD(1)) if len(units) else LD(1)
    still = np.zeros(len(units), dtype=LD)
    last = LD(np.inf)
    for _ in range(iterations):
        rows = constraint_rows(mechanism, q, still)
        error = np.concatenate([row.error for row in rows])
        inverse, _ = scaled_pseudo_inverse(rows, units, most)
        step = -(inverse @ error)
        size = np.abs(step / units).max(initial=LD(0))
        if size > 0.5:
            step = step * (0.5 / size)
        q = moved(mechanism, q, step)
        if size < 1e-17 or (size < 1e-15 and size >= last):
            miss = np.concatenate([row.error for row in constraint_rows(mechanism, q, still)])
            return q if np.abs(miss).max(initial=LD(0)) < 1e-14 * max(length, 1) else None
        last = size
    return None


def closing_velocity(mechanism, q, v, units) -> np.ndarray:
    """The velocity nearest to v, in the given units, that keeps everything closed."""
    rows = constraint_rows(mechanism, q, np.zeros(len(units), dtype=LD))
    J = np.concatenate([row.J for row in rows])
    inverse, _ = scaled_pseudo_inverse(rows, units)
    v = array(v)
    for _ in range(4):  # the pseudo-inverse is of double precision only
        v = v - inverse @ (J @ v)
    size = np.abs(v / units).max(initial=LD(0))
    return np.where(np.abs(v / units) < 1e-17 * size, LD(0), v)  # joints that closure holds stand still
