"""Regressors in numbers: what identification multiplies by inertial parameters, for states and batches.

Takes a mechanism and states with any leading axes; gives matrices. A batch is evaluated in one go, by the equations of
``equations/regressor`` over lanes. For millions of states there is a kernel: ``fgd.compile(mechanism, "regressor")``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import real_numbers
from factorgraph_dyn.equations import State, evaluate_state
from factorgraph_dyn.equations.lanes import from_lanes, to_lanes
from factorgraph_dyn.equations.regressor import kinetic_regressor, potential_regressor, torque_regressor
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.description import QUATERNION_TOLERANCE
from factorgraph_dyn.model.parameters import parameter_links
from factorgraph_dyn.spatial import Array, Floats


def regressor(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    links: str | Iterable[str] | None = None,
) -> Floats:
    """The matrix Y with tau = Y parameters, shape (..., nv, 10 links).

    Exactly linear: Y times ``mechanism.parameters(links).ravel()`` is what moving these links takes from the motors,
    their weight included. Armature, damping, friction and springs are no inertial parameters: their torques are added
    to it, armature a + damping v + friction sign(v) + stiffness (q - rest).

    Loops and couplings are left out, as in the mass matrix: tau are the torques that the tree alone would need for the
    motion. A closed mechanism balances them with the forces of its loops, which do no work along its freedoms N,
    N^T tau_motors = N^T Y parameters; so states need not be closed.

    Args:
        mechanism: The mechanism; its own inertias do not matter.
        q: Coordinates, rad and m, shape (..., nq); leading axes of q, v and a broadcast.
        v: Velocities, rad/s and m/s, shape (..., nv).
        a: Accelerations, rad/s^2 and m/s^2, shape (..., nv).
        links: Links whose parameters are asked for, in the order of the columns; by default all but the base.

    Raises:
        InputError: Wrong shapes, values that are not finite, or a link that there is not.

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> q, v = arm.random_state(0)
        >>> Y = fgd.regressor(arm, q, v, np.ones(3))
        >>> np.allclose(Y @ arm.parameters().ravel(), fgd.inverse_dynamics(arm, q, v, np.ones(3)).tau)
        True
    """
    names = parameter_links(check_mechanism(mechanism), links)

    def evaluate(state: State, a: Array) -> list[Array]:
        return [torque_regressor(state, a, names)]

    return _batched(mechanism, evaluate, q=q, v=v, a=a)[0]


def energy_regressors(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, *, links: str | Iterable[str] | None = None
) -> tuple[Floats, Floats]:
    """The rows (kinetic, potential) whose products with the parameters are the energies, shape (..., 10 links) each.

    They leave out what is stored in armatures and springs, and links that are fixed to the base, as ``energy`` does.
    The potential is zero at the world's origin.

    Args:
        mechanism: The mechanism; its own inertias do not matter.
        q: Coordinates, rad and m, shape (..., nq); leading axes of q and v broadcast.
        v: Velocities, rad/s and m/s, shape (..., nv).
        links: Links whose parameters are asked for, in the order of the entries; by default all but the base.

    Raises:
        InputError: Wrong shapes, values that are not finite, or a link that there is not.

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> q, v = arm.random_state(0)
        >>> rows = fgd.energy_regressors(arm, q, v)
        >>> np.allclose([row @ arm.parameters().ravel() for row in rows], fgd.energy(arm, q, v))
        True
    """
    names = parameter_links(check_mechanism(mechanism), links)

    def evaluate(state: State, _: Array) -> list[Array]:
        return [kinetic_regressor(state, names), potential_regressor(state, names)]

    kinetic, potential = _batched(mechanism, evaluate, q=q, v=v)
    return kinetic, potential


def _batched(
    mechanism: Mechanism, evaluate: Callable[[State, Array], list[Array]], **given: npt.ArrayLike
) -> list[Floats]:
    """What a function of the tree's state and accelerations gives, with the batch axes first."""
    sizes = {"q": mechanism.nq, "v": mechanism.nv, "a": mechanism.nv}
    arrays = {name: _checked(mechanism, value, sizes[name], name) for name, value in given.items()}
    try:
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays.values()))
    except ValueError:
        shapes = ", ".join(f"{name} {array.shape}" for name, array in arrays.items())
        raise InputError(f"The arguments do not go together: {shapes}. Leading axes have to broadcast.") from None
    states = int(np.prod(batch))
    wide = {n: np.broadcast_to(x, (*batch, x.shape[-1])).reshape(states, x.shape[-1]) for n, x in arrays.items()}
    wide.setdefault("a", np.zeros((states, mechanism.nv)))
    q, v, a = (to_lanes(wide[name]) if batch else wide[name][0] for name in ("q", "v", "a"))
    found = evaluate(evaluate_state(mechanism.tree, q, v), a)
    return [from_lanes(one, states).reshape(*batch, *one.shape) for one in found]


def _checked(mechanism: Mechanism, values: npt.ArrayLike, size: int, what: str) -> Floats:
    """The values as finite numbers whose last axis is a mechanism's."""
    array = real_numbers(values, what, InputError)
    if array.shape[-1:] != (size,):
        raise InputError(
            f"{what} has shape {array.shape}; its last axis must have length {size} for mechanism {mechanism.name!r}, "
            f"whose joints are {', '.join(mechanism.joint_names)}."
        )
    if not np.isfinite(array).all():
        raise InputError(f"{what} is not finite everywhere; give numbers.")
    if what == "q":
        _check_quaternions(mechanism, array)
    return array


def _check_quaternions(mechanism: Mechanism, q: Floats) -> None:
    for joint in mechanism.movable_joints:
        if joint.type.has_quaternion:
            lengths = np.linalg.norm(q[..., mechanism.q_slices[joint.name]][..., -4:], axis=-1)
            if (np.abs(lengths - 1.0) > QUATERNION_TOLERANCE).any():
                raise InputError(
                    f"Quaternions (x, y, z, w) of joint {joint.name!r} have lengths from {lengths.min():g} to "
                    f"{lengths.max():g}; they must be 1. Divide each by its length."
                )
