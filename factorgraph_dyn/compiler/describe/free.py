"""Numbers of the mechanism that are arguments of a kernel: symbols in the places of constants.

Takes a mechanism and the symbols of a kernel's arguments; gives the mechanism with symbols for the inertias of links,
the effects of joints and gravity, whichever are free. Its checked constructors want numbers, so symbols are put in
after them: nothing may be described anew afterwards but the links. The work runs once a kernel.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from factorgraph_dyn.compiler.describe.regroup import lump
from factorgraph_dyn.equations.free import GRAVITY
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.model.parameters import moving_parameters
from factorgraph_dyn.spatial import Array, Floats, inverse_pose


def freed_links(
    mechanism: Mechanism, links: Sequence[str], parameters: Array, frames: Mapping[str, Floats]
) -> Mechanism:
    """The mechanism with symbols for the inertial parameters of links, shape (links, 10).

    Args:
        mechanism: The mechanism.
        links: Names of the links.
        parameters: The symbols, in the links' own frames.
        frames: Where the mechanism's frames are in those, of links that have other ones.
    """
    rows = dict(zip(links, parameters, strict=True))
    for link, C in frames.items():
        if link in rows and (np.eye(4) != C).any():
            rows[link] = moving_parameters(inverse_pose(C)) @ rows[link]
    return replace(mechanism, links=tuple(lump(k, rows[k.name]) if k.name in rows else k for k in mechanism.links))


def freed_joints(joints: Sequence[Joint], values: Mapping[str, Array]) -> tuple[Joint, ...]:
    """The joints with symbols for those of their effects that have values, such as ``armature[elbow]``."""
    effects: dict[str, dict[str, Array]] = {}
    for name, value in values.items():
        kind, owner = split_name(name)
        effects.setdefault(owner, {})[kind] = value
    return tuple(_freed(joint, effects[joint.name]) if joint.name in effects else joint for joint in joints)


def freed(mechanism: Mechanism, values: Mapping[str, Array]) -> Mechanism:
    """The mechanism with symbols for effects of joints and, where it has a value, for gravity."""
    found = copy.copy(mechanism)
    effects = {name: value for name, value in values.items() if name != GRAVITY}
    _put(found, joints=freed_joints(mechanism.joints, effects))
    if GRAVITY in values:
        _put(found, gravity=values[GRAVITY])
    for stale in ("joint_by_name", "movable_joints", "topology", "tree"):  # found from the joints
        found.__dict__.pop(stale, None)
    return found


def _freed(joint: Joint, effects: Mapping[str, Array]) -> Joint:
    found = copy.copy(joint)
    _put(found, **effects, is_lossless=False)
    if "armature" in effects:
        _put(found, armature_matrix=np.diag(effects["armature"]))
    return found


def _put(part: object, **values: object) -> None:
    """Set fields of a frozen part, and what it would find out about itself only from numbers."""
    for name, value in values.items():
        object.__setattr__(part, name, value)
