"""What a URDF file says about forces that a mechanism does not have, and what is not read, as warnings.

Gazebo's extensions can turn gravity off, and add springs and damping to joints and links. Runs once a file.
"""

from __future__ import annotations

from factorgraph_dyn.model.files.xml_tree import Element, noted_once

READ = ("link", "joint", "loop", "coupling")
# Elements of the robot that the dynamics do not need, or that are looked at below; any other is noted.
NOT_NEEDED = ("material", "transmission", "gazebo", "sensor", "mujoco", "ros2_control", "drake:collision_filter_group")
GAZEBO = {"turnGravityOff": ("true", "1"), "gravity": ("false", "0"), "springStiffness": (), "dampingFactor": ()}


def note_unmodelled(root: Element, notes: list[str]) -> None:
    """Note each sort of element that is not read, or has an effect that is not modelled."""
    found = [
        (child, f"elements <{child.tag}> are not read.")
        for child in root.children
        if child.tag not in (*READ, *NOT_NEEDED) and not child.tag.startswith("xacro:")
    ]
    for gazebo in root.all("gazebo"):
        found += [(e, f"<{e.tag}> is not used.") for e in gazebo.children if e.tag in GAZEBO and _says_something(e)]
    notes.extend(noted_once(found))


def _says_something(element: Element) -> bool:
    """Whether one of Gazebo's elements has an effect: one of its words, or else a number that is not zero."""
    text = (element.get("value") or element.text).strip().lower()
    words = GAZEBO[element.tag]
    return text in words if words else bool(text.strip("0."))
