"""What an MJCF file says about forces that a mechanism does not have, as warnings.

Fluids, gravity compensation and disabled effects are noted where they are read; here are actuators that
do more than push a joint by a fixed gear, plugins and flexible parts. Where many elements lack the same,
the first is noted with the number of the others. Runs once a file.
"""

from __future__ import annotations

from collections.abc import Container, Iterable, Iterator, Sequence

from factorgraph_dyn.model.files.mjcf.constraints import Actuator
from factorgraph_dyn.model.files.mjcf.scene import Scene
from factorgraph_dyn.model.files.xml_tree import Element, noted_once

OWN_FORCES = {
    "muscle": "a muscle's force, by its length, speed and activation, is not modelled",
    "dcmotor": "a motor's circuit (back-EMF, inductance, cogging, heat) is not modelled",
    "cylinder": "a cylinder's pressure is not modelled",
    "damper": "a damper's force, by its control, is not modelled",
}
ADHESION = "adhesion acts through contacts, which are not modelled; it is not used."
MUSCLE_KEYS = ("gaintype", "biastype", "dyntype")
INDIRECT = {"site": "a site", "tendon": "a tendon that bends", "cranksite": "a crank", "body": "a body"}


def note_unmodelled(scene: Scene, actuators: Sequence[Actuator], joints: Container[str]) -> None:
    """Note the actuators, plugins and flexible parts whose forces are missing from the mechanism."""
    found = [(actuator.where, message) for actuator in actuators if (message := _actuator_lacks(actuator, joints))]
    for section in (*scene.root.all("worldbody"), *scene.root.all("actuator")):
        found += [(e, "the plugin is not run; its forces are missing.") for e in _below(section) if e.tag == "plugin"]
    found += [
        (element, "flexible parts are not modelled; their forces are missing.")
        for element in scene.sections("deformable")
        if element.tag == "flex"
    ]
    scene.notes.extend(noted_once(found))


def _actuator_lacks(actuator: Actuator, joints: Container[str]) -> str | None:
    """What an actuator does that is not modelled, or None where it pushes joints by fixed gears."""
    element = actuator.where
    if element.tag == "adhesion":
        return ADHESION
    if not actuator.gears:
        through = next((noun for key, noun in INDIRECT.items() if element.get(key)), "no joint")
        return f"it acts through {through}, not on joints by a fixed gear; its force is not used."
    if missing := [name for name in actuator.gears if name not in joints]:
        return f"joint {missing[0]!r} is not in the file; the actuator is not used."
    kind = "muscle" if any(element.get(key) == "muscle" for key in MUSCLE_KEYS) else element.tag
    return f"{OWN_FORCES[kind]}: tau stands for what it exerts." if kind in OWN_FORCES else None


def _below(element: Element) -> Iterator[Element]:
    """All elements inside another."""
    stack: list[Iterable[Element]] = [element.children]
    while stack:
        for child in stack.pop():
            yield child
            stack.append(child.children)
