"""What a URDF file says about forces that a mechanism does not have, and what is not read, as warnings.

Gazebo's extensions can turn gravity off, and add springs and damping to joints and links; reductions of
transmissions are between motors and joints, and torques here are those of the joints. Runs once a file.
"""

from __future__ import annotations

from factorgraph_dyn.model.readers.xml_tree import Element, noted_once

READ = ("link", "joint", "loop", "coupling")
# Elements of the robot that the dynamics do not need, or that are looked at below; any other is noted.
NOT_NEEDED = ("material", "transmission", "gazebo", "sensor", "mujoco", "ros2_control", "drake:collision_filter_group")
GAZEBO = {  # what each element says when it says nothing
    "turnGravityOff": ("false", "0"),
    "gravity": ("true", "1"),
    "springStiffness": ("0",),
    "dampingFactor": ("0",),
}


def note_unmodelled(root: Element, notes: list[str]) -> None:
    """Note each sort of element that is not read, or has an effect that is not modelled."""
    found = [
        (child, f"elements <{child.tag}> are not read.")
        for child in root.children
        if child.tag not in (*READ, *NOT_NEEDED) and not child.tag.startswith("xacro:")
    ]
    for gazebo in root.all("gazebo"):
        found += [(e, f"<{e.tag}> is not used.") for e in gazebo.children if e.tag in GAZEBO and _says_something(e)]
    for transmission in root.all("transmission"):
        inner = [e for part in (transmission, *transmission.children) for e in part.all("mechanicalReduction")]
        found += [
            (e, "the reduction is only used with a rotor's inertia: torques are the joint's, after the gears.")
            for e in inner
            if not _is_number(e.text, 1.0)
        ]
    notes.extend(noted_once(found))


def _says_something(element: Element) -> bool:
    """Whether one of Gazebo's elements differs from its default."""
    text = (element.get("value") or element.text).strip().lower()
    silent = GAZEBO[element.tag]
    return bool(text) and text not in silent and not ("0" in silent and _is_number(text, 0.0))


def _is_number(text: str, value: float) -> bool:
    try:
        return float(text) == value
    except ValueError:
        return False
