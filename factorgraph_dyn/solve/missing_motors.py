"""Says which joints of a tree carry a torque although they are marked to have no motor.

Inverse dynamics of a tree gives the torque of every joint, as the recursive Newton-Euler algorithm does: what joints
without a motor carry is a torque that nothing exerts. Runs once a call, and warns once a mechanism.
"""

from __future__ import annotations

import warnings
from weakref import WeakSet

import numpy as np

from factorgraph_dyn.errors import DoubtfulInputWarning
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.model.sizes.units import natural, usual_acceleration
from factorgraph_dyn.solve.solution import RESIDUAL_TOLERANCE
from factorgraph_dyn.spatial import Floats

_warned: WeakSet[Mechanism] = WeakSet()


def warn_of_missing_motors(mechanism: Mechanism, v: Floats, tau: Floats) -> None:
    """Warn, once a mechanism, of joints without a motor that carry a torque; a floating base may have its wrench."""
    unmarked = [joint for joint in mechanism.movable_joints if not joint.actuated and not _is_base(joint, mechanism)]
    if not unmarked or mechanism in _warned:
        return
    carried = np.abs(tau) / natural(mechanism).tau
    least = RESIDUAL_TOLERANCE * max(carried.max(), usual_acceleration(mechanism, v))
    names = [joint.name for joint in unmarked if carried[mechanism.v_slices[joint.name]].max() > least]
    if not names:
        return
    _warned.add(mechanism)
    warnings.warn(
        f"Joints {', '.join(names)} of mechanism {mechanism.name!r} are marked to have no motor (actuated=False), and "
        "this motion needs a torque there: inverse dynamics of a tree gives the torques of all joints. Give "
        "actuated=[...] to seek those of motors alone, or tau = 0 there to hybrid_dynamics, which gives their motion.",
        DoubtfulInputWarning,
        stacklevel=3,
    )


def _is_base(joint: Joint, mechanism: Mechanism) -> bool:
    return joint.type.is_free and joint.parent == mechanism.base
