"""What an MJCF file says about forces that a mechanism does not have, as warnings.

Fluids, gravity compensation and disabled effects are noted where they are read; here are actuators that
do more than push a joint by a fixed gear, plugins and flexible parts. Where many elements lack the same,
the first is noted with the number of the others. Runs once a file.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence

from factorgraph_dyn.model.files.mjcf.constraints import Actuator, is_orientation_servo
from factorgraph_dyn.model.files.mjcf.scene import ORIENTATIONS, Scene
from factorgraph_dyn.model.files.xml_tree import Element, noted_once

OWN_FORCES = {
    "muscle": "a muscle's force, by its length, speed and activation, is not modelled",
    "dcmotor": "a motor's circuit (back-EMF, inductance, cogging, heat) is not modelled",
    "cylinder": "a cylinder's pressure is not modelled",
    "damper": "a damper's force, by its control, is not modelled",
    "orientation": "the law of an orientation servo is not modelled",
}
ADHESION = "adhesion acts through contacts, which are not modelled; it is not used."
MUSCLE_KEYS = ("gaintype", "biastype", "dyntype")
POSE = ("pos", *ORIENTATIONS)
KNOWN = {  # attributes of the elements that make bodies, read or without a part in the dynamics; any other is noted
    "frame": ("name", "childclass", "scale", "scaling", "massscale", *POSE),
    "body": ("name", "childclass", "mocap", "gravcomp", "sleep", "simple", "fuse", "user", *POSE),
    "inertial": ("mass", "diaginertia", "fullinertia", *POSE),
    "joint": (
        *("name", "class", "type", "group", "pos", "axis", "range", "limited", "margin", "user", "solreflimit"),
        *("solimplimit", "solreffriction", "solimpfriction", "stiffness", "damping", "armature", "frictionloss"),
        *("springdamper", "springref", "springyield", "ref", "actuatorfrcrange", "actuatorfrclimited"),
        "actuatorgravcomp",
    ),
    "freejoint": ("name", "group", "align"),
    "geom": (
        *("name", "class", "type", "group", "size", "fromto", "mesh", "hfield", "fitscale", "material", "rgba", "user"),
        *("mass", "density", "shellinertia", "contype", "conaffinity", "condim", "priority", "friction", "castshadow"),
        *("solmix", "solref", "solimp", "margin", "gap", "surfacevel", "adhesion", "fluidshape", "fluidcoef"),
        *POSE,
    ),
}
INDIRECT = {"site": "a site", "tendon": "a tendon that bends", "cranksite": "a crank", "body": "a body"}


def note_unmodelled(scene: Scene, actuators: Sequence[Actuator], joints: Container[str]) -> None:
    """Note the actuators, plugins and flexible parts whose forces are missing from the mechanism."""
    found = [(actuator.where, message) for actuator in actuators if (message := _actuator_lacks(actuator, joints))]
    for section in (*scene.root.all("worldbody"), *scene.root.all("actuator")):
        found += [(e, "the plugin is not run; its forces are missing.") for e in section.below() if e.tag == "plugin"]
    for section in scene.root.all("worldbody"):
        found += [(e, message) for e in section.below() for message in _element_lacks(e)]
    found += [
        (element, "flexible parts are not modelled; their forces are missing.")
        for element in scene.sections("deformable")
        if element.tag == "flex"
    ]
    scene.notes.extend(noted_once(found))


def _element_lacks(element: Element) -> Iterator[str]:
    """What an element of a body says that is not read."""
    known = KNOWN.get(element.tag, element.attributes)
    for key in element.attributes:
        if key not in known:
            yield f"the attribute {key!r} is not known; it is not read."


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
    kind = "orientation" if is_orientation_servo(element) else kind
    return f"{OWN_FORCES[kind]}: tau stands for what it exerts." if kind in OWN_FORCES else None
