"""The energy of a mechanism at a state.

kinetic     sum over links of V^T G V / 2  +  sum over joints of armature v^2 / 2
potential   - sum over links of m g . p_com  +  sum over joints of stiffness (q - rest)^2 / 2
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import State, evaluate_state
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.kinematics import link_poses


def energy(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> tuple[float, float]:
    """Kinetic and potential energy at a state, J; the potential of gravity is zero at the world's origin."""
    return energy_at(evaluate_state(check_mechanism(mechanism).tree, mechanism.check_q(q), mechanism.check_v(v)))


def energy_at(state: State) -> tuple[float, float]:
    """The same for a state that has been evaluated."""
    mechanism = state.mechanism
    poses = link_poses(mechanism, state.q)
    kinetic = potential = 0.0
    for joint in mechanism.topology.outward:
        link, V = mechanism.link_by_name[joint.child], state.twists[joint.child]
        kinetic += 0.5 * float(V @ link.spatial_inertia @ V)
        com = poses[joint.child] @ np.append(link.com, 1.0)
        potential -= link.mass * float(mechanism.gravity @ com[:3])
        if joint.armature.any():
            kinetic += 0.5 * float(joint.armature @ state.v[mechanism.v_slices[joint.name]] ** 2)
        if joint.stiffness.any():
            stretch = state.q[mechanism.q_slices[joint.name]] - joint.rest
            potential += 0.5 * float(joint.stiffness @ stretch**2)
    return kinetic, potential
