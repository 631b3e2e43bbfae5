"""What moves the centre of mass of a mechanism that flies: gravity, and the forces of its floating joint.

    m c'' = m g + R_world_child f,      f = tau - armature a - damping v - friction sign v       of the joint's shifts

All forces between links, those of loops and couplings among them, cancel. Work is done once an acceleration.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations.factors import joint_losses
from factorgraph_dyn.motion.flight import Flight
from factorgraph_dyn.spatial import Array, applied


def pushed(flight: Flight, q: Array, v: Array, a: Array, tau: Array) -> Array:
    """The acceleration of the centre of mass in the world, shape (..., 3)."""
    joint, here = flight.joint, flight.bodies.v_slices[flight.joint.name]
    losses = joint_losses(q, v[..., here], joint.damping, joint.friction, joint.stiffness, joint.rest)
    force = (tau[..., here] - joint.armature * a[..., here] - losses)[..., 3:]
    found: Array = np.asarray(flight.bodies.gravity) + applied(flight.R_world_child(q), force) * (1.0 / flight.mass)
    return found
