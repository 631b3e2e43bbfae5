"""What can be excited: trees of joints with plain coordinates, and how fast each freedom may be."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import real_numbers
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.model.sizes.units import natural_rate
from factorgraph_dyn.spatial import Floats


def check_plain(mechanism: Mechanism) -> None:
    """Refuse loops, and joints whose velocities are not the rates of their coordinates."""
    if mechanism.is_closed_kind:
        raise InputError(
            f"Mechanism {mechanism.name!r} has loops or couplings; excitations are found for trees. Choose motions of "
            "its motors, close the others with mechanism.close, and look at fgd.identify(...).condition."
        )
    check_movable(mechanism, "excite")
    odd = [joint.name for joint in mechanism.movable_joints if not _is_plain(joint)]
    if odd:
        raise InputError(
            f"Joints {', '.join(odd)} of mechanism {mechanism.name!r} have coordinates whose rates are not their "
            "velocities; excitations are found for hinges, sliders and screws. Lock them: mechanism.lock(joints)."
        )


def _is_plain(joint: Joint) -> bool:
    if joint.nq != joint.nv:
        return False
    q, way = np.linspace(0.3, 0.5, joint.nv), np.linspace(0.2, 0.7, joint.nv)
    return bool(np.all(joint.type.moved(joint.axes, q, way) == q + way))


def limits_of(mechanism: Mechanism, given: npt.ArrayLike | None, name: str) -> Floats:
    """The limit of each freedom: what is given, what joints say, or the speed at which the mechanism falls."""
    joints = mechanism.movable_joints
    if given is not None:
        try:
            values = np.broadcast_to(real_numbers(given, name, InputError), mechanism.nv).copy()
        except ValueError:
            raise InputError(f"{name} must be a number or one for each of {mechanism.nv} freedoms.") from None
        if not (values > 0).all():
            raise InputError(f"{name} must be positive; it is {values.tolist()}.")
        return values
    if name == "acceleration_limit":
        return np.full(mechanism.nv, np.inf)
    own = np.concatenate([np.broadcast_to(joint.velocity_limit, joint.nv) for joint in joints])
    falls = (natural_rate(mechanism) or 1.0) * np.concatenate([j.freedom_units(mechanism.size) for j in joints])
    return np.where(np.isfinite(own) & (own > 0), own, falls)
