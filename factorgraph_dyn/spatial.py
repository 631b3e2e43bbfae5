"""SE(3) and screw algebra on arrays of any scalar type: floats, or symbols of a compiler's tape.

Twists are V = [omega; v], wrenches F = [moment; force]: the angular part comes first. ``T_a_b`` is
the pose of frame b in frame a, a 4x4 matrix; ``Ad_a_b = adjoint(T_a_b)`` carries twists given in b
to a. Names compose where equal letters touch: ``T_a_b @ T_b_c``, ``Ad_a_b @ V_b``.

    Ad_T = [[R, 0], [[p] R, R]]      ad_V = [[[w], 0], [[v], [w]]]
    G    = [[I_c + m [c][c]^T, m [c]], [m [c]^T, m 1]]       (about the frame's origin)

Source: Lynch & Park, Modern Robotics (2017), sections 3.3 and 8.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Sequence
from functools import cache
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]  # float64, or object arrays of symbols
Floats = npt.NDArray[np.float64]

SMALL_ANGLE = 1e-8  # below it the series of log and exp are exact in double precision

LARGEST_TURN = 8.0  # rad of one motion whose exponential is had of symbols
_BASIS_ROUNDING = 1e-13  # of unit vectors: entries so close to 0 or 1 are that
_LEAST_PIVOT = 0.1  # of orthonormal rows that are brought to echelon form
_TERMS = 9  # of a series whose x is at most 1: the next is below rounding


def stacked(parts: Iterable[Array]) -> Array:
    """Vectors one after the other; without any, an empty one."""
    return np.concatenate([np.zeros(0), *parts])


def skew(w: Array) -> Array:
    """The matrix [w] with [w] x = w cross x, shape (3, 3)."""
    x, y, z = w.tolist()  # Python scalars are faster than NumPy's
    return np.array([[0.0, -z, y], [z, 0.0, -x], [-y, x, 0.0]])


def cross(a: Array, b: Array) -> Array:
    """The product a x b of two vectors of any scalar type, shape (3,)."""
    x, y, z = a.tolist()
    u, v, w = b.tolist()
    return np.array([y * w - z * v, z * u - x * w, x * v - y * u])


def pose(R: Array, p: Array) -> Array:
    """The pose with rotation R (3, 3) and origin p (3,), shape (4, 4)."""
    T = np.zeros((4, 4), dtype=p.dtype if p.dtype == object else R.dtype)
    T[:3, :3] = R
    T[:3, 3] = p
    T[3, 3] = 1.0
    return T


def inverse_pose(T: Array) -> Array:
    """The pose T_b_a of T_a_b, shape (4, 4)."""
    R_inverse = T[:3, :3].T
    return pose(R_inverse, -R_inverse @ T[:3, 3])


def adjoint(T: Array) -> Array:
    """The matrix Ad_a_b that carries twists from frame b to frame a, shape (6, 6)."""
    R = T[:3, :3]
    Ad = np.zeros((6, 6), dtype=T.dtype)
    Ad[:3, :3] = R
    Ad[3:, 3:] = R
    Ad[3:, :3] = skew(T[:3, 3]) @ R
    return Ad


def inverse_adjoint(T: Array) -> Array:
    """The matrix Ad_b_a of the pose T_a_b, without forming the inverse pose, shape (6, 6)."""
    R_inverse = T[:3, :3].T
    Ad = np.zeros((6, 6), dtype=T.dtype)
    Ad[:3, :3] = R_inverse
    Ad[3:, 3:] = R_inverse
    Ad[3:, :3] = R_inverse @ skew(-T[:3, 3])
    return Ad


def left_inverse(S: Floats) -> Floats:
    """The matrix that reads velocities off a twist S v, shape (..., n, 6).

    Turns are read off the angular part alone, and slides off what these leave of the linear part: rounding of metres
    must not turn anything, whatever a metre is to the mechanism.

    Args:
        S: Independent twists of a joint, shape (..., 6, n); where some turn, those that do have independent axes.
    """
    turns = np.any(S[..., :3, :] != 0.0, axis=tuple(range(S.ndim - 1)))
    read = np.zeros((*S.shape[:-2], S.shape[-1], 6))
    of_turns, of_slides = np.linalg.pinv(S[..., :3, turns]), np.linalg.pinv(S[..., 3:, ~turns])
    read[..., turns, :3] = of_turns
    read[..., ~turns, :3] = -of_slides @ S[..., 3:, turns] @ of_turns
    read[..., ~turns, 3:] = of_slides
    return read


def constraint_directions(S: Floats) -> Floats:
    """An orthonormal basis C (6, 6 - k) of the directions a joint with subspace S constrains, S^T C = 0.

    Turns and slides apart, whatever the unit of length; only screws constrain a turn together with a slide.
    """
    (turning, no_turn), (sliding, no_slide) = (_range_and_rest(part) for part in (S[:3], S[3:]))
    _, values, right = np.linalg.svd(np.hstack([S[:3].T @ turning, S[3:].T @ sliding]))
    screws = right[len(values) :].T
    C = np.zeros((6, no_turn.shape[1] + no_slide.shape[1] + screws.shape[1]))
    C[:3, : no_turn.shape[1]] = no_turn
    C[3:, no_turn.shape[1] : C.shape[1] - screws.shape[1]] = no_slide
    C[:, C.shape[1] - screws.shape[1] :] = np.vstack(
        [turning @ screws[: turning.shape[1]], sliding @ screws[turning.shape[1] :]]
    )
    whole = np.round(C)
    return np.where(np.abs(C - whole) < _BASIS_ROUNDING, whole, C)


def _range_and_rest(vectors: Floats) -> tuple[Floats, Floats]:
    """Orthonormal bases of what columns span and of what they do not, shapes (3, r) and (3, 3 - r)."""
    left, values, _ = np.linalg.svd(vectors)
    rank = int((values > _BASIS_ROUNDING * values.max(initial=0.0)).sum())
    return left[:, :rank], left[:, rank:]


def echelon_rows(rows: Floats) -> Floats:
    """Rows that span the same space in reduced echelon form: with the most ones and zeros, shape as given."""
    reduced, done = np.array(rows), 0
    for column in range(reduced.shape[1]):
        if done == len(reduced):
            break
        best = done + int(np.argmax(np.abs(reduced[done:, column])))
        if abs(reduced[best, column]) > _LEAST_PIVOT:
            reduced[[done, best]] = reduced[[best, done]]
            reduced[done] /= reduced[done, column]
            others = np.arange(len(reduced)) != done
            reduced[others] -= np.outer(reduced[others, column], reduced[done])
            done += 1
    whole = np.round(reduced)
    return np.where(np.abs(reduced - whole) < _BASIS_ROUNDING, whole, reduced)


def bracket(V: Array, W: Array) -> Array:
    """The Lie bracket ad_V W of two twists, shape (6,); of numbers also with leading axes."""
    if V.ndim > 1:
        return _of_many(bracket, V, W)
    a, b, c, x, y, z = V.tolist()
    d, e, f, u, v, w = W.tolist()
    # [omega x omega', v x omega' + omega x v']
    return np.array(
        [
            b * f - c * e,
            c * d - a * f,
            a * e - b * d,
            y * f - z * e + b * w - c * v,
            z * d - x * f + c * u - a * w,
            x * e - y * d + a * v - b * u,
        ]
    )


def dual_bracket(V: Array, F: Array) -> Array:
    """The product ad_V^T F of a twist and a wrench, shape (6,); of numbers also with leading axes."""
    if V.ndim > 1:
        return _of_many(dual_bracket, V, F)
    a, b, c, x, y, z = V.tolist()
    k, m, n, f, g, h = F.tolist()
    # [moment x omega + force x v, force x omega]
    return np.array(
        [
            m * c - n * b + g * z - h * y,
            n * a - k * c + h * x - f * z,
            k * b - m * a + f * y - g * x,
            g * c - h * b,
            h * a - f * c,
            f * b - g * a,
        ]
    )


Product = Callable[[Array, Array], Array]


def _of_many(product: Product, V: Floats, W: Floats) -> Floats:
    """A bilinear product of many pairs of vectors, shape (..., 6)."""
    matrices = (V @ _of_units(product)).reshape(*V.shape, 6)
    return applied(matrices, W)


@cache
def _of_units(product: Product) -> Floats:
    """The matrices that a bilinear product with each unit vector is, shape (6, 36)."""
    units = np.eye(6)
    return np.array([np.column_stack([product(V, W) for W in units]) for V in units]).reshape(6, 36)


def applied(matrices: Array, vectors: Array) -> Array:
    """The products of matrices with vectors, each with leading axes or without."""
    products: Array = matrices @ vectors if vectors.ndim == 1 else (matrices @ vectors[..., None])[..., 0]
    return products


def spatial_inertia(mass: float, com: Floats, inertia: Floats) -> Floats:
    """The spatial inertia G about the frame's origin from that about the com, shape (6, 6)."""
    c = skew(com)
    G = np.zeros((6, 6))
    G[:3, :3] = inertia + mass * c @ c.T
    G[:3, 3:] = mass * c
    G[3:, :3] = mass * c.T
    G[3:, 3:] = mass * np.eye(3)
    return G


def rotation_about(axis: Floats, angle: Any) -> Array:
    """The rotation by an angle (rad) about a unit axis, shape (3, 3)."""
    c, s = np.cos(angle), np.sin(angle)
    x, y, z = axis.tolist()
    t = 1.0 - c
    # R = cos 1 + sin [axis] + (1 - cos) axis axis^T
    return np.array(
        [
            [c + t * (x * x), t * (x * y) - s * z, t * (x * z) + s * y],
            [t * (x * y) + s * z, c + t * (y * y), t * (y * z) - s * x],
            [t * (x * z) - s * y, t * (y * z) + s * x, c + t * (z * z)],
        ]
    )


def rotation_of_quaternion(quaternion: Array) -> Array:
    """The rotation of a quaternion x, y, z, w of any length, shape (3, 3).

    Dividing by the squared length keeps R a rotation when the quaternion is not quite a unit one.
    """
    x, y, z, w = quaternion
    xx, yy, zz, ww = x * x, y * y, z * z, w * w
    s = 2.0 / (xx + yy + zz + ww)
    return np.array(
        [
            [1.0 - s * (yy + zz), s * (x * y - z * w), s * (x * z + y * w)],
            [s * (x * y + z * w), 1.0 - s * (xx + zz), s * (y * z - x * w)],
            [s * (x * z - y * w), s * (y * z + x * w), 1.0 - s * (xx + yy)],
        ]
    )


def quaternion_of_rotation(R: Floats) -> Floats:
    """The unit quaternion x, y, z, w with w >= 0 of a rotation, shape (4,)."""
    # The largest of the four squared components is the one that is safe to divide by.
    trace = float(np.trace(R))
    squares = np.array([2 * R[0, 0] - trace, 2 * R[1, 1] - trace, 2 * R[2, 2] - trace, trace]) + 1.0
    off = twice_sine(R)
    k = int(np.argmax(squares))
    q = np.empty(4)
    if k == 3:
        q[:3], q[3] = off, squares[3]
    else:
        q[:3] = R[k] + R[:, k]
        q[k], q[3] = squares[k], off[k]
    q /= np.linalg.norm(q)
    return q if q[3] >= 0 else -q


def quaternion_product(a: Array, b: Array) -> Array:
    """The Hamilton product a b of quaternions x, y, z, w, shape (..., 4)."""
    (u, s), (v, t) = (a[..., :3], a[..., 3:]), (b[..., :3], b[..., 3:])
    scalar = s * t - (u * v).sum(axis=-1, keepdims=True)
    return np.concatenate([s * v + t * u + np.cross(u, v), scalar], axis=-1)


def conjugate(quaternion: Array) -> Array:
    """The quaternion of the opposite turn, shape (..., 4)."""
    opposite: Array = quaternion * np.array([-1.0, -1.0, -1.0, 1.0])
    return opposite


def turned(quaternion: Array, vector: Array) -> Array:
    """Vectors turned by unit quaternions, shape (..., 3)."""
    u, w = quaternion[..., :3], quaternion[..., 3:]
    twice = 2.0 * np.cross(u, vector)
    rotated: Array = vector + w * twice + np.cross(u, twice)
    return rotated


def quaternion_rate(q: Array, omega: Array) -> Array:
    """The rate of a quaternion x, y, z, w under a body angular velocity, shape (4,)."""
    return 0.5 * quaternion_product(q, np.append(omega, 0.0 * q[3]))


def twice_sine(R: Array) -> Array:
    """Twice the sine of a rotation's angle, along its axis, shape (3,)."""
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]])


def turn_about(axis: Floats, R: Floats) -> float:
    """The angle about a unit axis of the rotation that is nearest to R, in (-pi, pi]."""
    # tr([axis]^T R) = 2 sin for a pure turn; the trace part along the plane gives 2 cos.
    return float(np.arctan2(axis @ twice_sine(R), np.trace(R) - axis @ R @ axis))


def turn_between(axis: Floats, start: Floats, end: Floats) -> float:
    """The angle about a unit axis that brings one direction nearest to another."""
    return float(np.arctan2(axis @ np.cross(start, end), start @ end - (axis @ start) * (axis @ end)))


def rotation_vector(R: Floats) -> Floats:
    """The logarithm of a rotation: unit axis times angle in [0, pi], shape (3,)."""
    return turn_of_quaternion(quaternion_of_rotation(R))


def quaternion_of_turn(w: Array) -> Array:
    """The unit quaternions of rotation vectors, shape (..., 4)."""
    half = 0.5 * w
    cosine, sine_share, _, _ = stumpff(_square(half))
    return np.concatenate([sine_share * half, cosine], axis=-1)


def unit_quaternion(q: Array) -> Array:
    """Quaternions with length one; symbols are taken to miss it by rounding only, as products of unit ones do."""
    unit: Array = q * (1.5 - 0.5 * _square(q)) if q.dtype == object else q / np.linalg.norm(q, axis=-1, keepdims=True)
    return unit


def turn_of_quaternion(quaternion: Floats) -> Floats:
    """The rotation vectors, of angles in [0, pi], of unit quaternions, shape (..., 3); for numbers."""
    u, w = quaternion[..., :3], quaternion[..., 3:]
    sine = np.linalg.norm(u, axis=-1, keepdims=True)
    half = np.arctan2(sine, np.abs(w))
    is_still = sine == 0
    share = np.where(is_still, 1.0, half) / np.where(is_still, 1.0, sine)
    turn: Floats = np.copysign(2.0, w) * share * u
    return turn


def arc(w: Array, v: Array) -> Array:
    """Where the origin gets to, seen from its start, by the constant body twist [w; v] in unit time, shape (..., 3).

    p = v + (1 - cos) / angle^2  w x v + (1 - sin / angle) / angle^2  w x (w x v)
    """
    _, _, second, third = stumpff(_square(w))
    across = np.cross(w, v)
    end: Array = v + second * across + third * np.cross(w, across)
    return end


def velocity_of_arc(w: Floats, p: Floats) -> Floats:
    """The v whose arc with a turn w of less than 2 pi ends at p, shape (..., 3)."""
    angle = np.linalg.norm(w, axis=-1, keepdims=True)
    is_small = angle < SMALL_ANGLE
    half = 0.5 * np.where(is_small, 1.0, angle)
    third = np.where(is_small, 1.0 / 12.0, 0.25 * (1.0 - half / np.tan(half)) / half**2)
    across = np.cross(w, p)
    v: Floats = p - 0.5 * across + third * np.cross(w, across)
    return v


def stumpff(square: Array) -> tuple[Array, Array, Array, Array]:
    """Stumpff's functions c_0 to c_3 of x^2: cos x, sin x / x, (1 - cos x) / x^2, (x - sin x) / x^3, as arrays.

    Symbols, which are taken to be at most ``LARGEST_TURN`` squared, go without square roots and without telling small x
    apart: c_k(z) is the sum of (-z)^i / (k + 2 i)!. The square is divided by four until the series is short, and the
    angle doubled as often on the way back (Danby, Fundamentals of Celestial Mechanics, section 6.9).
    """
    if square.dtype != object:
        angle = np.sqrt(square)
        is_small = angle < SMALL_ANGLE
        sine_share = _sine_share(angle)
        third = np.where(is_small, 1.0 / 6.0, (1.0 - sine_share) / np.where(is_small, 1.0, square))
        # sin^2(x/2) instead of 1 - cos(x), which cancels for small angles
        return np.cos(angle), sine_share, 0.5 * _sine_share(0.5 * angle) ** 2, third
    doublings = math.ceil(math.log2(LARGEST_TURN))
    z = square * 0.25**doublings
    c_2, c_3 = (_sum_of_powers(-z, [1.0 / math.factorial(k + 2 * i) for i in range(_TERMS)]) for k in (2, 3))
    for _ in range(doublings):
        c_0, c_1 = 1.0 - z * c_2, 1.0 - z * c_3
        z, c_2, c_3 = 4.0 * z, 0.5 * c_1 * c_1, 0.25 * (c_2 + c_0 * c_3)
    return 1.0 - z * c_2, 1.0 - z * c_3, c_2, c_3


def _sum_of_powers(x: Array, coefficients: Sequence[float]) -> Array:
    """The polynomial of x with these coefficients, that of the number 1 first."""
    total = x * coefficients[-1] + coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        total = total * x + coefficient
    return total


def _square(w: Array) -> Array:
    """The squared lengths of vectors, shape (..., 1)."""
    return np.asarray((w * w).sum(axis=-1, keepdims=True))


def _sine_share(angle: Floats) -> Floats:
    """The sine of an angle as a share of it: 1 at zero."""
    return np.where(angle == 0, 1.0, np.sin(angle) / np.where(angle == 0, 1.0, angle))


def exponential(twist: Array) -> Array:
    """The pose reached by moving with a constant twist for unit time, shape (4, 4)."""
    w, v = twist[:3], twist[3:]
    return pose(rotation_of_quaternion(quaternion_of_turn(w)), arc(w, v))


def logarithm(T: Floats) -> Floats:
    """The twist whose exponential is T, shape (6,)."""
    w = rotation_vector(T[:3, :3])
    return np.concatenate([w, velocity_of_arc(w, T[:3, 3])])


def perpendicular_axes(axis: Floats) -> tuple[Floats, Floats]:
    """Two unit axes x, y that with a unit axis z make a right-handed triad; z = (0, 0, 1) gives e_x, e_y."""
    helper = np.array([1.0, 0.0, 0.0]) if abs(axis[0]) < 0.9 else np.array([0.0, 1.0, 0.0])
    x = helper - (helper @ axis) * axis
    x /= np.linalg.norm(x)
    return x, np.cross(axis, x)


def sign(x: Array) -> Array:
    """The sign of every entry: -1, 0 or 1."""
    if x.dtype == object:
        return np.array([entry.sign() for entry in x])
    return np.sign(x)
