"""Regressors in plain floats at many states: what kernels that give them are proved against.

Every link takes, for a unit of each of its parameters, W_k = E_k A - ad(V)^T E_k V, and passes it on to the base;
joints on the way read their torques off it. Sizes of terms go along, as in ``newton_euler``. The work runs once a
kernel.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import (
    block_norms,
    column_norms,
    dual_brackets,
    dual_sizes,
    inertias,
    shifted_sizes,
    transposed,
)
from factorgraph_dyn.compiler.proof.newton_euler import ManyStates
from factorgraph_dyn.spatial import Floats

_UNITS = inertias(np.eye(10))
_UNIT_NORMS = block_norms(_UNITS)
_BY_UNIT = "si,kij->skj"

Sized = tuple[Floats, Floats]


def regressor_value(here: ManyStates, A: Mapping[str, Floats], A_size: Mapping[str, Floats]) -> Sized:
    """The torque regressor (states, 1, nv 10 links), row by row, and the sizes of its terms.

    Args:
        here: The states.
        A, A_size: Accelerations of the links and the sizes of their terms, in a single column.
    """
    links = _links(here)
    Y, Y_size = (np.zeros((here.states, here.mechanism.nv, len(links), 10)) for _ in range(2))
    for i, link in enumerate(links):
        V, V_size = here.V[link], here.V_size[link]
        W = np.einsum(_BY_UNIT, A[link][:, 0], _UNITS)
        W = W - dual_brackets(V[:, None], np.einsum(_BY_UNIT, V, _UNITS))
        W_size = np.einsum(_BY_UNIT, A_size[link][:, 0], _UNIT_NORMS)
        W_size = np.hypot(W_size, dual_sizes(V_size[:, None], np.einsum(_BY_UNIT, V_size, _UNIT_NORMS)))
        for part in here.mechanism.topology.path_to_base(link):
            joint, own = here.joints[part.name], here.mechanism.v_slices[part.name]
            Y[:, own, i] = transposed(W @ joint.S)
            Y_size[:, own, i] = transposed(W_size @ column_norms(joint.S))
            W = W @ joint.Ad
            W_size = shifted_sizes(W_size[..., ::-1], joint.lever[:, None])[..., ::-1]
    return _flat(Y), _flat(Y_size)


def kinetic_regressor_value(here: ManyStates) -> Sized:
    """The kinetic energy of unit parameters (states, 1, 10 links), and the sizes of its terms."""
    links = _links(here)
    V, V_size = (np.stack([of[link] for link in links], axis=1) for of in (here.V, here.V_size))
    value, size = (0.5 * np.einsum("sli,kij,slj->slk", x, G, x) for x, G in ((V, _UNITS), (V_size, _UNIT_NORMS)))
    return _flat(value), _flat(size)


def potential_regressor_value(here: ManyStates) -> Sized:
    """The potential energy of unit parameters (states, 1, 10 links), and the sizes of its terms."""
    links = _links(here)
    value, size = (np.zeros((here.states, len(links), 10)) for _ in range(2))
    gravity = here.numbers.gravity[:, None]
    reach = np.zeros(here.states)  # how far the joints reach, at most
    for joint in here.joints.values():
        reach = reach + joint.lever
    for i, link in enumerate(links):
        if not any(joint.nv for joint in here.mechanism.topology.path_to_base(link)):
            continue  # what never moves has no energy
        columns = here.poses[link][:, :3, [3, 0, 1, 2]]
        value[:, i, :4] = -(gravity @ columns)[:, 0]
    strength = np.linalg.norm(gravity[:, 0], axis=-1)
    size[..., 0] = (strength * reach)[:, None]
    size[..., 1:4] = strength[:, None, None]
    return _flat(value), _flat(size)


def _links(here: ManyStates) -> Sequence[str]:
    """All links but the base, as they are described."""
    return [name for name in here.mechanism.link_names if name != here.mechanism.base]


def _flat(values: Floats) -> Floats:
    return values.reshape(len(values), 1, -1)
