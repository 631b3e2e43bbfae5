"""Armature, damping, friction and springs of MJCF's joints, in SI units. Runs once a file.

MuJoCo lets a negative one push; here it is taken as 0, as in the other formats, and a warning says so.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.model.files.mjcf.scene import Scene
from factorgraph_dyn.model.files.xml_tree import Element

WORDS = {"friction": "frictionloss"}  # the format's, where another than the mechanism's
FREE = {
    "armature": "velocity terms differ",
    "friction": "dry friction holds back each of the body's axes, not each of the world's, where it is turned",
}


def joint_effects(element: Element, kind: str, name: str, scene: Scene) -> dict[str, float]:
    """Armature, damping, friction, spring and reference of a joint, in SI units."""
    if element.tag == "freejoint":
        if element.get("align") == "true":
            scene.notes.append(element.note("align is not used: the body's frame stays as written."))
        return {"reference": 0.0}
    values = {"armature": element.number("armature", 0.0), "friction": element.number("frictionloss", 0.0)}
    values |= {key: constant_coefficient(element, key) for key in ("damping", "stiffness")}
    values = none_below_zero(values, element, scene.notes)
    note_yield(element, scene.notes)
    reference, rest = element.number("ref", 0.0), element.number("springref", 0.0)
    if kind == "hinge":
        reference, rest = (float(x) for x in scene.angle(np.array([reference, rest])))
    values |= _replaced_by_springdamper(element, scene.notes)
    if kind in ("ball", "free"):
        if values.pop("stiffness"):
            note_spring(element, kind, name, scene.notes)
        if kind == "free":  # damping is the same for every direction, and so in any axes
            scene.notes.extend(
                element.note(
                    f"{WORDS.get(key, key)} of a free joint acts on the body twist; MuJoCo's acts on the velocity in "
                    f"the world, so that {differ}."
                )
                for key, differ in FREE.items()
                if values[key]
            )
        return {**values, "reference": 0.0}
    return {**values, "rest": rest, "reference": reference}


def springdamper(element: Element) -> tuple[float, float] | None:
    """The time constant, s, and damping ratio that say a joint's spring and damper; None where they say none."""
    time, ratio = element.vector("springdamper", 2, (0.0, 0.0)).tolist()
    return (time, ratio) if time > 0 and ratio > 0 else None


def _replaced_by_springdamper(element: Element, notes: list[str]) -> dict[str, float]:
    """Stiffness and damping that MuJoCo replaces by those it finds from the masses (``springdampers``)."""
    if springdamper(element) is not None:
        return {"stiffness": 0.0, "damping": 0.0}
    if element.vector("springdamper", 2, (0.0, 0.0)).any():
        notes.append(element.note("springdamper is not used: its two values must be positive."))
    return {}


def none_below_zero(values: dict[str, float], element: Element, notes: list[str]) -> dict[str, float]:
    """The values, those below zero noted and taken as 0."""
    notes.extend(
        element.note(f"{WORDS.get(key, key)} is negative ({value:g}); it is taken as 0.")
        for key, value in values.items()
        if value < 0
    )
    return {key: max(value, 0.0) for key, value in values.items()}


def constant_coefficient(element: Element, attribute: str) -> float:
    """A damping or stiffness, which may be written as a polynomial but must be constant."""
    numbers = element.parse_numbers(element.get(attribute) or "0", f"the attribute {attribute!r}")
    if not 0 < len(numbers) <= 4:
        element.fail(f"{attribute} holds {len(numbers)} values; give one.")
    if numbers[1:].any():
        element.fail(f"{attribute} is a polynomial; only a constant one is supported.")
    return float(numbers[0])


def note_spring(element: Element, kind: str, name: str, notes: list[str]) -> None:
    """Note the spring of a joint that can have none."""
    notes.append(element.note(f"the spring of {kind} joint {name!r} is not used: springs act on hinges and slides."))


def note_yield(element: Element, notes: list[str]) -> None:
    """Note a spring of a joint or tendon that gives way for good."""
    if element.get("springyield") is not None and element.number("springyield") != 0:
        notes.append(element.note("springyield is not used: the spring does not give way."))
