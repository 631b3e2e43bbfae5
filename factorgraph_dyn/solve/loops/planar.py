"""The planar constraint: a loop of a planar mechanism passes nothing out of its plane.

    x . moment = 0     y . moment = 0     n . force = 0        at the loop joint, n the plane's normal

A planar loop with 6-D wrenches has three more than its equations determine; these are the three.
Source: Xie & Dellaert (2019), the planar constraint factor.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import Factor, State
from factorgraph_dyn.equations.factors import wrench
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.solve.own_units import own_state
from factorgraph_dyn.spatial import Floats

PLANAR = 1e-9  # how far an axis may lean


def planar_factors(state: State) -> list[Factor]:
    """Three rows on the wrench of every loop.

    Raises:
        InputError: Some joint moves out of the plane of the others.
    """
    poses = link_poses(state.mechanism, state.q)
    n = plane_normal(own_state(state))
    rows = []
    for loop in state.mechanism.loops:
        R = (poses[loop.successor] @ loop.successor_placement)[:3, :3]
        normal = R.T @ n
        x, y = spatial.perpendicular_axes(normal)
        P = np.zeros((3, 6))
        P[0, :3], P[1, :3], P[2, 3:] = x, y, normal
        # A wrench is carried by the transpose of what carries twists the other way.
        block = P @ spatial.adjoint(loop.successor_placement).T
        rows.append(Factor("planar", loop.name, ((wrench(loop.name), block),), np.zeros(3)))
    return rows


def plane_normal(state: State) -> Floats:
    """The unit normal, in the world, of the plane that all joints and loops move in, shape (3,).

    The state is in the mechanism's own units.
    """
    places = link_poses(state.mechanism, state.q)
    turns: list[tuple[str, Floats, Floats]] = []
    slides: list[tuple[str, Floats, Floats]] = []
    moving = [*state.joints.values(), *state.loops.values()]
    for joint in moving:
        R = places[joint.child][:3, :3]
        for column in joint.S.T:
            (turns if column[:3].any() else slides).append((joint.name, R @ column[:3], R @ column[3:]))
    if turns:
        n = turns[0][1]
    elif len(slides) > 1:
        n = np.cross(slides[0][2], slides[1][2])
    else:
        n = np.array([0.0, 1.0, 0.0])
    n = n / max(float(np.linalg.norm(n)), 1e-300)
    for name, w, v in (*turns, *slides):
        if np.linalg.norm(np.cross(w, n)) > PLANAR or abs(v @ n) > PLANAR:
            raise InputError(
                f"Mechanism {state.mechanism.name!r} is not planar: joint {name!r} moves out of the plane with "
                f"normal ({n[0]:.3g}, {n[1]:.3g}, {n[2]:.3g}). Use internal_wrenches='least_norm'."
            )
    return np.asarray(n)
