"""A mechanism becomes URDF text, as far as URDF can say it.

URDF has trees of fixed, revolute, continuous, prismatic, planar and floating joints, couplings as mimic,
damping and friction. Loops and other joints are refused; armature, springs and frames have no
place and are told in a comment. ``fgd.load`` reads the text back to the same dynamics.
"""

from __future__ import annotations

import math
from xml.sax.saxutils import quoteattr

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link
from factorgraph_dyn.spatial import Floats

KINDS = ("fixed", "revolute", "continuous", "prismatic", "planar", "floating")


def to_urdf(mechanism: Mechanism) -> str:
    """The URDF text of a mechanism.

    Raises:
        ModelError: It has loops, or joints that URDF does not know.
    """
    if mechanism.loops:
        raise ModelError(
            f"Mechanism {mechanism.name!r} has loops, which URDF cannot hold; save it in the package's own "
            "format (.json) instead."
        )
    if odd := [joint.name for joint in mechanism.joints if joint.kind not in KINDS]:
        raise ModelError(
            f"Joints {', '.join(odd)} have kinds that URDF does not know; it knows {', '.join(KINDS)}. Save the "
            "mechanism in the package's own format (.json) instead, or lock these joints."
        )
    lines = ['<?xml version="1.0"?>', f"<robot name={quoteattr(mechanism.name)}>"]
    for joint in mechanism.movable_joints:
        lost = [key for key in ("armature", "stiffness") if np.any(getattr(joint, key))]
        if lost:
            lines.append(f"  <!-- joint {_comment(joint.name)}: {', '.join(lost)} has no place in URDF -->")
    for link in mechanism.links:
        lines += _link(link)
    mimics = {coupling.joint: coupling for coupling in mechanism.couplings}
    if len(mimics) != len(mechanism.couplings):
        raise ModelError("A joint is coupled to two others; URDF allows one mimic a joint.")
    for joint in mechanism.joints:
        lines += _joint(joint)
        if (coupling := mimics.get(joint.name)) is not None:
            lines.append(
                f"    <mimic joint={quoteattr(coupling.source)} multiplier={_number(coupling.ratio)} "
                f"offset={_number(coupling.offset)}/>"
            )
        lines.append("  </joint>")
    return "\n".join([*lines, "</robot>", ""])


def _link(link: Link) -> list[str]:
    name = quoteattr(link.name)
    inertia = np.asarray(link.inertia)
    if link.mass == 0 and not inertia.any():
        return [f"  <link name={name}/>"]
    entries = " ".join(
        f"{key}={_number(inertia[i, j])}"
        for key, i, j in (
            ("ixx", 0, 0), ("ixy", 0, 1), ("ixz", 0, 2), ("iyy", 1, 1), ("iyz", 1, 2), ("izz", 2, 2)
        )
    )  # fmt: skip
    return [
        f"  <link name={name}>",
        "    <inertial>",
        f"      <origin xyz={_vector(np.asarray(link.com))}/>",
        f"      <mass value={_number(link.mass)}/>",
        f"      <inertia {entries}/>",
        "    </inertial>",
        "  </link>",
    ]


def _joint(joint: Joint) -> list[str]:
    T = np.asarray(joint.placement)
    limits = joint.limits
    kind = joint.kind
    unlimited = limits is None or not np.isfinite(limits).all()
    if kind == "revolute" and unlimited:
        kind = "continuous"
    lines = [
        f'  <joint name={quoteattr(joint.name)} type="{kind}">',
        f"    <parent link={quoteattr(joint.parent)}/>",
        f"    <child link={quoteattr(joint.child)}/>",
        f"    <origin xyz={_vector(T[:3, 3])} rpy={_vector(_rpy(T[:3, :3]))}/>",
    ]
    if not joint.type.axis_count:
        return lines
    lines.append(f"    <axis xyz={_vector(joint.axes[0])}/>")
    damping, friction = (float(np.max(getattr(joint, key))) for key in ("damping", "friction"))
    if damping or friction:
        lines.append(f"    <dynamics damping={_number(damping)} friction={_number(friction)}/>")
    if limits is not None and not unlimited:
        lines.append(f'    <limit lower={_number(limits[0])} upper={_number(limits[1])} effort="0" velocity="0"/>')
    return lines


def _rpy(R: Floats) -> Floats:
    """Roll, pitch and yaw of a rotation R_z R_y R_x, shape (3,)."""
    cosine = math.hypot(R[0, 0], R[1, 0])
    pitch = math.atan2(-R[2, 0], cosine)
    if cosine > 1e-9:
        return np.array([math.atan2(R[2, 1], R[2, 2]), pitch, math.atan2(R[1, 0], R[0, 0])])
    return np.array([math.atan2(-R[1, 2], R[1, 1]), pitch, 0.0])  # only yaw - roll matters here


def _number(value: float) -> str:
    return f'"{float(value)!r}"'


def _vector(values: Floats) -> str:
    return '"' + " ".join(repr(float(x)) for x in values) + '"'


def _comment(text: str) -> str:
    return text.replace("--", "- -")
