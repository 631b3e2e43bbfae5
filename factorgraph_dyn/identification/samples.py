"""A log of states and torques as arrays, checked: what identification takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import real_numbers
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.closing import TELLING
from factorgraph_dyn.motion.closure import relative_error
from factorgraph_dyn.motion.many import common_axes
from factorgraph_dyn.spatial import Floats

LOOKED_AT = 20  # samples at which loops are asked whether they close


@dataclass(frozen=True, eq=False)
class Samples:
    """A log, a row a sample.

    Attributes:
        q: Coordinates, shape (samples, nq).
        v, a: Velocities and accelerations, shape (samples, nv).
        tau: Torques, nan where they were not measured, shape (samples, nv).
    """

    q: Floats
    v: Floats
    a: Floats
    tau: Floats

    def __len__(self) -> int:
        return len(self.q)

    def part(self, place: slice) -> Samples:
        """Some of the samples."""
        return Samples(self.q[place], self.v[place], self.a[place], self.tau[place])


def check_samples(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike, tau: npt.ArrayLike
) -> Samples:
    """The log of a mechanism, its leading axes made one.

    Raises:
        InputError: Wrong shapes, states that are not finite, no torques, or loops that are far from closed.
    """
    if not mechanism.nv:
        raise InputError(f"Mechanism {mechanism.name!r} has no movable joint: no torque tells what its links weigh.")
    arrays = (
        mechanism.check_q(q, batch=True),
        mechanism.check_v(v, "v", batch=True),
        mechanism.check_v(a, "a", batch=True),
        _torques(mechanism, tau),
    )
    axes = common_axes(arrays)
    flat = [np.broadcast_to(array, axes + array.shape[-1:]).reshape(-1, array.shape[-1]) for array in arrays]
    samples = Samples(*flat)
    if not np.isfinite(samples.tau).any():
        raise InputError("tau holds no torque that is a number; nan stands for torques that were not measured.")
    if mechanism.is_closed_kind:
        _check_nearly_closed(mechanism, samples)
    return samples


def _torques(mechanism: Mechanism, tau: npt.ArrayLike) -> Floats:
    """Torques of all freedoms, from those or, where others are passive, from those of the motors."""
    given = real_numbers(tau, "tau", InputError)
    motors = mechanism.torque_entries()
    if mechanism.is_closed_kind and given.ndim and given.shape[-1] == motors.sum() < mechanism.nv:
        whole = np.zeros((*given.shape[:-1], mechanism.nv))
        whole[..., motors] = given
        given = whole
    if given.shape[-1:] != (mechanism.nv,):
        also = f", or {int(motors.sum())} for the motors alone" if mechanism.is_closed_kind else ""
        raise InputError(
            f"tau has shape {given.shape}; its last axis must have length {mechanism.nv}{also}, in the order of the "
            f"joints of mechanism {mechanism.name!r}: {', '.join(mechanism.joint_names)}."
        )
    if np.isinf(given).any():
        raise InputError("tau is infinite in places; give numbers, and nan for torques that were not measured.")
    return given


def _check_nearly_closed(mechanism: Mechanism, samples: Samples) -> None:
    """Refuse logs whose loops are open by more than sensors miss them."""
    for k in np.unique(np.linspace(0, len(samples) - 1, LOOKED_AT).astype(int)).tolist():
        miss = relative_error(mechanism, samples.q[k])
        if miss > TELLING:
            raise InputError(
                f"Sample {k} of q misses the closure of mechanism {mechanism.name!r} by {miss:.2g} rad or parts of its "
                f"size; up to {TELLING:g} is taken for noise of sensors. Use q = mechanism.close(q) for each sample."
            )
