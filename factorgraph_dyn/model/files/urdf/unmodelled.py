"""What a URDF file says about forces that a mechanism does not have, and what is not read, as warnings.

Extensions for one simulator can close loops, couple joints, hold bodies still, turn gravity off, and add springs and
damping: Gazebo's, those of ros2_control, and MuJoCo's. Runs once a file.
"""

from __future__ import annotations

from collections.abc import Iterator

from factorgraph_dyn.model.description import GRAVITY
from factorgraph_dyn.model.files.xml_tree import Element, noted_once
from factorgraph_dyn.text import parse_number

READ = ("link", "joint", "loop", "coupling")
# Elements of the robot that the dynamics do not need, or that are looked at below; any other is noted.
NOT_NEEDED = ("material", "transmission", "gazebo", "sensor", "mujoco", "ros2_control", "drake:collision_filter_group")
JOINT_READ = ("parent", "child", "origin", "axis", "limit", "dynamics", "mimic")
JOINT_NOT_NEEDED = ("calibration", "safety_controller", "drake:controller_gains")
DYNAMICS_READ = ("damping", "friction", "armature")

TRUE, FALSE = ("true", "1"), ("false", "0")
NUMBER: tuple[str, ...] = ()  # any that is not zero says something
GAZEBO = {
    "turnGravityOff": TRUE,
    "gravity": FALSE,
    "springStiffness": NUMBER,
    "dampingFactor": NUMBER,
    "static": TRUE,
    "kinematic": TRUE,
    "enable_wind": TRUE,
}
GAZEBO_NESTED = {
    "velocity_decay": ("linear", "angular"),
    "dynamics": ("spring_stiffness", "damping", "friction"),
    "suspension": ("cfm", "erp"),
}
GAZEBO_INNER = ("axis", "axis2", "physics", "ode")  # what those stand in
GAZEBO_BODIES = ("link", "model", "include")
MUJOCO_COMPILER = ("boundmass", "boundinertia", "balanceinertia", "settotalmass", "inertiafromgeom")
MUJOCO_MEDIUM = ("density", "viscosity")

Found = Iterator[tuple[Element, str]]


def note_unmodelled(root: Element, notes: list[str]) -> None:
    """Note each sort of element that is not read, or has an effect that is not modelled."""
    found = [
        (child, f"elements <{child.tag}> are not read.")
        for child in root.children
        if child.tag not in (*READ, *NOT_NEEDED) and not child.tag.startswith("xacro:")
    ]
    for link in root.all("link"):
        found += [(e, "the link has several; only the first is used.") for e in link.all("inertial")[1:]]
    for joint in root.all("joint"):
        found += _joint(joint)
    mimics = {joint.get("name") for joint in root.all("joint") if joint.first("mimic") is not None}
    for gazebo in root.all("gazebo"):
        found += _gazebo(gazebo, mimics)
    for control in root.all("ros2_control"):
        found += _ros2_control(control, mimics)
    for mujoco in root.all("mujoco"):
        found += _mujoco(mujoco)
    notes.extend(noted_once(found))


def _joint(joint: Element) -> Found:
    for child in joint.children:
        if child.tag not in (*JOINT_READ, *JOINT_NOT_NEEDED):
            yield child, f"elements <{child.tag}> of joints are not read."
    for dynamics in joint.all("dynamics"):
        for key, text in dynamics.attributes.items():
            if key not in DYNAMICS_READ and _is_not_zero(text):
                yield dynamics, f"the attribute {key!r} is not used."


def _gazebo(gazebo: Element, mimics: set[str | None]) -> Found:
    for element in gazebo.children:
        if element.tag in GAZEBO and _says_something(element):
            yield element, f"<{element.tag}> is not used."
        if element.tag == "joint":
            yield (
                element,
                f"Gazebo's joint {element.get('name')!r} is not read: a loop that it closes stays open. Give it as a "
                "<loop> of the robot, or in a file of closures: fgd.load(path, closures=...).",
            )
        if element.tag in GAZEBO_BODIES:
            yield element, f"<{element.tag}> is Gazebo's alone; what it adds is not read."
        if element.tag == "plugin" and (file := element.get("filename")):
            follower = element.first("mimicJoint")
            if follower is None and "mimic" not in file.lower():
                yield element, "plugins are not run; forces and couplings are missing where they add any."
            elif follower is None or follower.text.strip() not in mimics:
                yield element, "plugins are not run: joints that it couples move freely. Give them a <mimic>."
    for element in _nested(gazebo):
        if said := [e.tag for e in element.children if e.tag in GAZEBO_NESTED[element.tag] and _is_not_zero(e.text)]:
            yield element, f"{', '.join(said)} of Gazebo's <{element.tag}> is not used."


def _nested(element: Element) -> Iterator[Element]:
    for child in element.children:
        if child.tag in GAZEBO_NESTED:
            yield child
        if child.tag in GAZEBO_INNER or child.tag in GAZEBO_NESTED:
            yield from _nested(child)


def _ros2_control(control: Element, mimics: set[str | None]) -> Found:
    """Joints that mimic another here, and not in the robot itself."""
    for joint in control.all("joint"):
        told = {"mimic": joint.get("mimic")} | {e.get("name"): e.text.strip() for e in joint.all("param")}
        if (source := told["mimic"]) and source.lower() not in FALSE and joint.get("name") not in mimics:
            yield joint, f"that it mimics {source!r} is not read: it moves freely. Give the robot's joint a <mimic>."


def _mujoco(mujoco: Element) -> Found:
    for compiler in mujoco.all("compiler"):
        for key in MUJOCO_COMPILER:
            text = (compiler.get(key) or "").strip()
            if text == "true" or _number(text) > 0:
                yield compiler, f"MuJoCo's {key}={text!r} is not used: masses and inertias are as written."
    for option in mujoco.all("option"):
        if (given := option.get("gravity")) is not None and [*map(_number, given.split())] != list(GRAVITY):
            yield option, f"MuJoCo's gravity={given!r} is not used; give it: replace(mechanism, gravity=...)."
        for key in MUJOCO_MEDIUM:
            if _number(option.get(key) or "") > 0:
                yield option, f"MuJoCo's {key} of the medium is not used: there is no fluid."
        for flag in option.all("flag"):
            if flag.get("gravity") == "disable":
                yield flag, "MuJoCo's gravity='disable' is not used: gravity acts."


def _says_something(element: Element) -> bool:
    """Whether one of Gazebo's elements has an effect: one of its words, or else a number that is not zero."""
    text = (element.get("value") or element.text).strip().lower()
    words = GAZEBO[element.tag]
    return text in words if words else _is_not_zero(text)


def _is_not_zero(text: str) -> bool:
    """Whether a text is there and is no zero."""
    return bool(text.strip()) and _number(text) != 0


def _number(text: str) -> float:
    """The number that a text is, nan where it is none."""
    try:
        return parse_number(text)
    except ValueError:
        return float("nan")
