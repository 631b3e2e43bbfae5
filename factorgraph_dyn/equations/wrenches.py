"""Wrenches from outside, given at links and frames, as the balances of the links take them.

    local   [moment; force] about the place's origin, in its own axes      F_link = Ad_place_link^T F
    world   about the place's origin, in the axes of the world             the place turned to them, then the same
    link    about the origin of a link frame, in its axes                  as it is

Takes wrenches of any scalar type by place; gives one in its frame for every link they act on. Once a state.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.kinematics import link_pose
from factorgraph_dyn.motion.questions import AXES
from factorgraph_dyn.spatial import Array, inverse_adjoint, pose

LINK = "link"  # what was carried to link frames before; a link's own place may be another (``mechanism.place``)


def check_axes(axes: object, *more: str) -> str:
    """The axes of wrenches, if they are such, or an InputError."""
    return check_choice(axes, (*AXES, *more), "axes")


def link_wrenches(
    mechanism: Mechanism, q: Array, wrenches: Mapping[str, Array], axes: str = "local"
) -> dict[str, Array]:
    """The wrenches on links, in their frames, shape (6,), of wrenches at links and frames.

    Args:
        mechanism: The mechanism.
        q: Its coordinates, floats or symbols, which only wrenches in world axes need.
        wrenches: [moment; force] by the name of a link or frame, shape (6,).
        axes: "local", "world" or `LINK`.
    """
    if axes == LINK:
        return dict(wrenches)
    found: dict[str, Array] = {}
    for name, wrench in wrenches.items():
        link, T_link_place = mechanism.place(name)
        if axes == "world":
            here = inverse_adjoint(_turned_to_world(mechanism, q, link, T_link_place)).T @ wrench
        elif name != link or name in mechanism.own_placements:
            here = inverse_adjoint(T_link_place).T @ wrench
        else:
            here = wrench
        found[link] = found[link] + here if link in found else here
    return found


def _turned_to_world(mechanism: Mechanism, q: Array, link: str, T_link_place: Array) -> Array:
    """The pose in a link of a place's origin with the axes of the world, shape (4, 4)."""
    return pose(link_pose(mechanism, q, link)[:3, :3].T, np.asarray(T_link_place)[:3, 3])
