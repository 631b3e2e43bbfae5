"""The rotors behind a URDF's transmissions, as armature of the joints. Runs once a file."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.model.files.xml_tree import Element, noted_once
from factorgraph_dyn.text import parse_number

ROTOR_TAGS = ("drake:rotor_inertia", "rotor_inertia", "rotorInertia", "motorInertia")
RATIO_TAGS = ("drake:gear_ratio", "gear_ratio", "mechanicalReduction")
IDLE = "the reduction is not used: there is no rotor inertia, and torques are the joint's, after the gears."


def reflected_inertias(root: Element, notes: list[str]) -> dict[str, float]:
    """Rotor inertia times the squared reduction, by joint, from the transmissions that give it."""
    found: dict[str, float] = {}
    idle: list[tuple[Element, str]] = []
    movable = {joint.get("name") for joint in root.all("joint") if joint.get("type") != "fixed"}
    for transmission in root.all("transmission"):
        actuators, joints = transmission.all("actuator"), transmission.all("joint")
        places = (*actuators[:1], transmission, *joints[:1])
        rotor = _first_value(places, ROTOR_TAGS)
        if rotor is None:
            idle += [(e, IDLE) for place in places for e in place.all("mechanicalReduction") if not _is_one(e.text)]
            continue
        if not actuators or not joints or joints[0].get("name") not in movable:
            name = repr(joints[0].get("name")) if joints else "none"
            notes.append(
                transmission.note(
                    "the rotor's inertia is not used: it needs an <actuator>, and a <joint> that the robot has and "
                    f"that moves; its joint is {name}."
                )
            )
            continue
        joint = joints[0]
        notes.extend(
            other.note(f"the rotors of the transmission act on its first joint, {joint.name()!r}, alone.")
            for other in joints[1:]
        )
        notes.extend(
            other.note("only the first actuator's rotor of a transmission is used.")
            for other in actuators[1:]
            if _first_value((other,), ROTOR_TAGS) is not None
        )
        ratio = _first_value(places, RATIO_TAGS)
        value = rotor if ratio is None else rotor * ratio * ratio
        if value < 0 or not np.isfinite(value):
            notes.append(transmission.note(f"the reflected inertia is {value:g}; it is not used."))
            continue
        found[joint.name()] = found.get(joint.name(), 0.0) + value
    notes.extend(noted_once(idle))
    return found


def _is_one(text: str) -> bool:
    try:
        return parse_number(text) == 1
    except ValueError:
        return False


def _first_value(places: tuple[Element, ...], tags: tuple[str, ...]) -> float | None:
    for place in places:
        for child in place.children:
            if child.tag in tags:
                if child.get("value") is not None:
                    return child.number("value")
                return child.parse_number(child.text, "the text")
    return None
