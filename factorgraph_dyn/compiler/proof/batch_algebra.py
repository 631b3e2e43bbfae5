"""Screw algebra at many states at once, and the sizes of its terms; arrays have any leading axes.

``spatial`` has the same for one state, of any scalar type: the compiler traces it, so proofs have their own.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.spatial import Floats


def transposed(matrices: Floats) -> Floats:
    """Each of the matrices transposed."""
    return np.swapaxes(matrices, -1, -2)


def skews(w: Floats) -> Floats:
    """The matrices [w], shape (..., 3, 3)."""
    matrix = np.zeros((*w.shape, 3))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        matrix[..., i, j], matrix[..., j, i] = -w[..., k], w[..., k]
    return matrix


def inverse_poses(T: Floats) -> Floats:
    """The poses T_b_a of T_a_b, shape (..., 4, 4)."""
    inverse = np.zeros(T.shape)
    inverse[..., :3, :3] = transposed(T[..., :3, :3])
    inverse[..., :3, 3] = -(inverse[..., :3, :3] @ T[..., :3, 3:])[..., 0]
    inverse[..., 3, 3] = 1.0
    return inverse


def adjoints(T: Floats) -> Floats:
    """Ad = [[R, 0], [[p] R, R]], shape (..., 6, 6)."""
    R = T[..., :3, :3]
    Ad = np.zeros((*T.shape[:-2], 6, 6))
    Ad[..., :3, :3] = Ad[..., 3:, 3:] = R
    Ad[..., 3:, :3] = skews(T[..., :3, 3]) @ R
    return Ad


def inverse_adjoints(T: Floats) -> Floats:
    """The adjoints of the inverse poses, [[R^T, 0], [-R^T [p], R^T]]."""
    R_inverse = transposed(T[..., :3, :3])
    Ad = np.zeros((*T.shape[:-2], 6, 6))
    Ad[..., :3, :3] = Ad[..., 3:, 3:] = R_inverse
    Ad[..., 3:, :3] = -R_inverse @ skews(T[..., :3, 3])
    return Ad


def brackets(V: Floats, W: Floats) -> Floats:
    """ad_V W of twists."""
    w, v, turn, slide = V[..., :3], V[..., 3:], W[..., :3], W[..., 3:]
    return np.concatenate([cross(w, turn), cross(v, turn) + cross(w, slide)], axis=-1)


def bracket_sizes(V: Floats, W: Floats) -> Floats:
    """Sizes of ad_V W, from those of the parts of V and W, shape (..., 2)."""
    w, v, turn, slide = V[..., 0], V[..., 1], W[..., 0], W[..., 1]
    return np.stack([w * turn, v * turn + w * slide], axis=-1)


def dual_brackets(V: Floats, F: Floats) -> Floats:
    """ad_V^T F of twists and wrenches."""
    w, v, moment, force = V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]
    return np.concatenate([cross(moment, w) + cross(force, v), cross(force, w)], axis=-1)


def dual_sizes(V: Floats, F: Floats) -> Floats:
    """Sizes of ad_V^T F, from those of the parts of V and F, shape (..., 2)."""
    w, v, moment, force = V[..., 0], V[..., 1], F[..., 0], F[..., 1]
    return np.stack([moment * w + force * v, force * w], axis=-1)


def dual_terms(V: Floats, F: Floats) -> Floats:
    """What ad_V^T F is summed from, entry by entry, all of one sign."""
    w, v, moment, force = (np.abs(part) for part in (V[..., :3], V[..., 3:], F[..., :3], F[..., 3:]))
    return np.concatenate([_cross(moment, w, 1.0) + _cross(force, v, 1.0), _cross(force, w, 1.0)], axis=-1)


def cross(a: Floats, b: Floats) -> Floats:
    """The products a x b, shape (..., 3)."""
    return _cross(a, b, -1.0)


def _cross(a: Floats, b: Floats, sign: float) -> Floats:
    product = np.empty(np.broadcast_shapes(a.shape, b.shape))
    for i, j, k in ((0, 1, 2), (1, 2, 0), (2, 0, 1)):
        product[..., i] = a[..., j] * b[..., k] + sign * (a[..., k] * b[..., j])
    return product


def norms(vectors: Floats) -> Floats:
    """Norms of the angular and the linear part, shape (..., 2)."""
    parts = vectors.reshape(*vectors.shape[:-1], 2, 3)
    norms: Floats = np.sqrt(np.einsum("...i,...i->...", parts, parts))
    return norms


def column_norms(S: Floats) -> Floats:
    """Norms of the angular and the linear part of every column, shape (..., 2, columns)."""
    return transposed(norms(transposed(S)))


def block_norms(G: Floats) -> Floats:
    """The largest that each 3 x 3 block of spatial inertias can do, shape (..., 2, 2)."""
    norms: Floats = np.sqrt(np.square(G).reshape(*G.shape[:-2], 2, 3, 2, 3).sum(axis=(-3, -1)))
    return norms


def inertias(parameters: Floats) -> Floats:
    """The spatial inertias [[I, [h]], [-[h], m 1]] of m, h, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz, shape (..., 6, 6)."""
    m, h = parameters[..., 0], parameters[..., 1:4]
    G = np.zeros((*m.shape, 6, 6))
    for place, (i, j) in enumerate(((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2)), start=4):
        G[..., i, j] = G[..., j, i] = parameters[..., place]
    G[..., :3, 3:] = skews(h)
    G[..., 3:, :3] = transposed(G[..., :3, 3:])
    for k in range(3, 6):
        G[..., k, k] = m
    return G


def shifted_sizes(size: Floats, lever: Floats) -> Floats:
    """Sizes of a twist's parts after a shift: turning shifts what lies off the axis."""
    carried = np.array(size)
    carried[..., 1] = np.hypot(size[..., 1], lever * size[..., 0])
    return carried


def shifted_wrench_sizes(size: Floats, lever: Floats) -> Floats:
    """Sizes of a wrench's parts after a shift: a force has a moment about what lies off its line."""
    return shifted_sizes(size[..., ::-1], lever)[..., ::-1]
