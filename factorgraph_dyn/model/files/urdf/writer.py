"""A mechanism becomes URDF text, as far as URDF can say it.

URDF has trees of fixed, revolute, continuous, prismatic, planar and floating joints with limits, couplings as mimic,
damping and friction; frames become links without mass on fixed joints. What it has no place for is counted by
`losses` and refused, or told in comments where losing it is allowed; other joints are refused. ``fgd.load`` reads
the text back to the same mechanism. Links look as they did, but for shapes that URDF does not know; meshes are sought
from the folder that the file is in.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable
from dataclasses import replace
from typing import Any
from xml.sax.saxutils import quoteattr

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.description import GRAVITY
from factorgraph_dyn.model.edit import free_name
from factorgraph_dyn.model.files.limits import UNLIMITED
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import BOUNDS, Frame, Joint, Link
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.spatial import Floats

KINDS = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")
LIMITED = ("revolute", "prismatic")
SIZES = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "mesh": ("scale",)}
ONE_NUMBER = ("damping", "friction", *BOUNDS)  # of a joint, whatever its freedoms


def to_urdf(mechanism: Mechanism, *, lossy: bool = False) -> str:
    """The URDF text of a mechanism.

    Args:
        mechanism: The mechanism.
        lossy: Whether what URDF cannot hold may be left out.

    Raises:
        ModelError: It has joints that URDF does not know or, unless that is allowed, something to lose.
    """
    if odd := [joint.name for joint in mechanism.joints if joint.kind not in KINDS]:
        raise ModelError(
            f"Joints {', '.join(odd)} have kinds that URDF does not know; it knows {', '.join(KINDS)}. Save the "
            "mechanism in the package's own format (.json) instead, or lock these joints."
        )
    lost = losses(mechanism)
    if lost and not lossy:
        raise ModelError(
            f"URDF cannot hold all of mechanism {mechanism.name!r}; it would lose {'; '.join(lost)}. Save it in the "
            "package's own format (.json) instead, or allow the loss (--lossy, lossy=True).",
            losses=lost,
        )
    mechanism = _named_by_place(mechanism)
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(mechanism.name)}>"]
    lines += [f"  <!-- not in this file: {_comment(loss)} -->" for loss in lost]
    for link in mechanism.links:
        lines += _link(link, [visual for visual in mechanism.visuals if visual.link == link.name])
    for frame in mechanism.frames:
        lines += _frame(frame, mechanism)
    mimics = {coupling.joint: coupling for coupling in reversed(mechanism.couplings)}
    for joint in mechanism.joints:
        lines += _joint(joint)
        if (coupling := mimics.get(joint.name)) is not None:
            lines.append(
                f"    <mimic joint={quoteattr(coupling.source)} multiplier={_number(coupling.ratio)} "
                f"offset={_number(coupling.offset)}/>"
            )
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def losses(mechanism: Mechanism) -> list[str]:
    """What of a mechanism has no place in URDF, a phrase for each sort of thing, with names."""
    joints, follows = mechanism.movable_joints, [coupling.joint for coupling in mechanism.couplings]
    second = [c.name for k, c in enumerate(mechanism.couplings) if c.joint in follows[:k]]
    found = {
        "loops": [loop.name for loop in mechanism.loops],
        "second couplings of a joint": second,
        "armature of joints": [joint.name for joint in joints if joint.armature.any()],
        "springs of joints": [joint.name for joint in joints if joint.stiffness.any()],
        "limits of joints that are neither revolute nor prismatic": [
            joint.name for joint in joints if joint.limits is not None and joint.kind not in LIMITED
        ],
        "effects and limits that differ between the freedoms of joints": [
            joint.name for joint in joints if any(len(set(getattr(joint, key))) > 1 for key in ONE_NUMBER)
        ],
    }
    told = [f"{noun} {', '.join(names)}" for noun, names in found.items() if names]
    return told + ([] if np.array_equal(mechanism.gravity, GRAVITY) else [f"gravity {mechanism.gravity.tolist()}"])


def _named_by_place(mechanism: Mechanism) -> Mechanism:
    """The mechanism with links that have a frame of their own name called otherwise, ``_on_joint`` added.

    A link of a file is where its joint is: so the name means the same place in the file as before (``place``).
    """
    taken = {*mechanism.place_names}
    names = {link: free_name(f"{link}_on_joint", taken) for link in mechanism.own_placements}

    def renamed(part: Any, *fields: str) -> Any:
        return replace(part, **{field: names.get(old := getattr(part, field), old) for field in fields})

    return replace(
        mechanism,
        links=tuple(renamed(link, "name") for link in mechanism.links),
        joints=tuple(renamed(joint, "parent", "child") for joint in mechanism.joints),
        loops=tuple(renamed(loop, "predecessor", "successor") for loop in mechanism.loops),
        frames=tuple(renamed(frame, "link") for frame in mechanism.frames),
        visuals=tuple(renamed(visual, "link") for visual in mechanism.visuals),
    )


def _frame(frame: Frame, mechanism: Mechanism) -> list[str]:
    """A frame as a link without mass on a fixed joint."""
    parts: list[Link | Joint | Frame] = [*mechanism.links, *mechanism.joints, *mechanism.frames]
    name = free_name(f"{frame.name}_fixed", {part.name for part in parts})
    joint = Joint(name, "fixed", frame.link, frame.name, frame.placement)
    return [f"  <link name={quoteattr(frame.name)}/>", *_joint(joint), "  </joint>"]


def _link(link: Link, visuals: Iterable[Visual]) -> list[str]:
    lines = [*_inertial(link), *(line for visual in visuals for line in _visual(visual))]
    name = quoteattr(link.name)
    return [f"  <link name={name}>", *lines, "  </link>"] if lines else [f"  <link name={name}/>"]


def _inertial(link: Link) -> list[str]:
    inertia = np.asarray(link.inertia)
    if link.mass == 0 and not inertia.any():
        return []
    entries = " ".join(
        f"{key}={_number(inertia[i, j])}"
        for key, i, j in (
            ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)
        )
    )  # fmt: skip
    return [
        "    <inertial>",
        f"      <origin xyz={_vector(np.asarray(link.com))}/>",
        f"      <mass value={_number(link.mass)}/>",
        f"      <inertia {entries}/>",
        "    </inertial>",
    ]


def _visual(visual: Visual) -> list[str]:
    if visual.shape not in SIZES:
        return []
    T, size = np.asarray(visual.placement), np.asarray(visual.size)
    words = [_vector(size)] if visual.shape in ("box", "mesh") else map(_number, size)
    sizes = " ".join(f"{key}={word}" for key, word in zip(SIZES[visual.shape], words, strict=True))
    file = f" filename={quoteattr(visual.mesh)}" if visual.mesh else ""
    colour = None if visual.colour is None else _vector(np.asarray(visual.colour))
    material = [] if colour is None else [f'      <material name=""><color rgba={colour}/></material>']
    return [
        "    <visual>",
        f"      <origin xyz={_vector(T[:3, 3])} rpy={_vector(_rpy(T[:3, :3]))}/>",
        f"      <geometry><{visual.shape}{file} {sizes}/></geometry>",
        *material,
        "    </visual>",
    ]


def _joint(joint: Joint) -> list[str]:
    T = np.asarray(joint.placement)
    kind = "continuous" if joint.kind == "revolute" and joint.limits is None else joint.kind
    motor = "" if joint.actuated or joint.type.is_free or not joint.nv else ' independent="false"'
    lines = [
        f'  <joint name={quoteattr(joint.name)} type="{kind}"{motor}>',
        f"    <parent link={quoteattr(joint.parent)}/>",
        f"    <child link={quoteattr(joint.child)}/>",
        f"    <origin xyz={_vector(T[:3, 3])} rpy={_vector(_rpy(T[:3, :3]))}/>",
    ]
    if joint.type.axis_count:
        lines.append(f"    <axis xyz={_vector(joint.axes[0])}/>")
    damping, friction = (float(np.max(getattr(joint, key), initial=0.0)) for key in ("damping", "friction"))
    if damping or friction:
        lines.append(f"    <dynamics damping={_number(damping)} friction={_number(friction)}/>")
    if limit := _limit(joint, kind):
        lines.append(f"    <limit {limit}/>")
    return lines


def _limit(joint: Joint, kind: str) -> str:
    """The attributes of a joint's <limit>, which other readers want of every revolute and prismatic joint."""
    bounds = [float(np.max(getattr(joint, key), initial=0.0)) for key in BOUNDS]
    if not joint.nv or (kind not in LIMITED and not any(map(math.isfinite, bounds))):
        return ""
    effort, velocity = map(_bounded, bounds)
    lower, upper = joint.limits or (-math.inf, math.inf)
    places = f"lower={_bounded(lower)} upper={_bounded(upper)} " if kind in LIMITED else ""
    return f"{places}effort={effort} velocity={velocity}"


def _rpy(R: Floats) -> Floats:
    """Roll, pitch and yaw of a rotation R_z R_y R_x, shape (3,)."""
    cosine = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], cosine)
    if cosine > 1e-9:
        return np.array([math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])])
    return np.array([math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0])  # only yaw - roll matters here


def _number(value: float) -> str:
    return f'"{float(value)!r}"'


def _bounded(value: float) -> str:
    """A bound; other readers know no infinite numbers, and this one takes the largest for them."""
    return _number(min(max(value, -UNLIMITED), UNLIMITED))


def _vector(values: Floats) -> str:
    return '"' + " ".join(repr(float(x)) for x in values) + '"'


def _comment(text: str) -> str:
    return re.sub("-(?=-)", "- ", text)
