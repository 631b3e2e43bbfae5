"""What an SDF file says about forces that a mechanism does not have, as warnings. Runs once a file."""

from __future__ import annotations

from collections.abc import Iterator

from factorgraph_dyn.model.files.sdf.scope import Scope, truth
from factorgraph_dyn.model.files.xml_tree import Element, noted_once

NO_WIND = "there is no wind."
# Extensions of single programs that are read, or have no part in the dynamics; any other is noted.
EXTENSIONS = (
    "drake:rotor_inertia",
    "drake:gear_ratio",
    "drake:controller_gains",
    "drake:collision_filter_group",
)


def note_unmodelled(world: Scope, notes: list[str]) -> None:
    """Note the sorts of elements of the world and its models whose effect is missing from the mechanism."""
    notes.extend(noted_once(_world(world.element)))
    notes.extend(noted_once(found for scope in _scopes(world) for found in _model(scope)))


def _scopes(scope: Scope) -> Iterator[Scope]:
    yield scope
    for inner in scope.nested.values():
        yield from _scopes(inner)


def _world(world: Element) -> Iterator[tuple[Element, str]]:
    for child in world.children:
        if child.tag == "state":
            yield child, "the saved state is not used: models are where they are described."
        if child.tag in ("population", "actor"):
            yield child, f"elements <{child.tag}> are not read."
        if child.tag == "wind" and any(e.text.strip(" \t\n0.-") for e in child.children):
            yield child, NO_WIND


def _model(scope: Scope) -> Iterator[tuple[Element, str]]:
    for child in scope.element.children:
        if child.tag == "enable_wind" and truth(child):
            yield child, NO_WIND
    yield from _plugins(scope.element)
    yield from _extensions(scope.element)
    if scope.static:
        return
    for element in scope.named.values():
        if element.tag == "link":
            yield from _link(element)
    for joint in scope.joints.values():
        yield from _plugins(joint)
        yield from _extensions(joint)
        if joint.get("type") == "ball":
            yield from _axis_of_ball(joint)
        for place in (joint.first("physics"), *(e.first("ode") for e in joint.all("physics"))):
            for suspension in place.all("suspension") if place is not None else ():
                yield suspension, "the joint's suspension is not used: the joint is rigid."


def _plugins(element: Element) -> Iterator[tuple[Element, str]]:
    for plugin in element.all("plugin"):
        yield plugin, "plugins are not run; their forces are missing."


def _extensions(element: Element) -> Iterator[tuple[Element, str]]:
    for child in element.children:
        if ":" in child.tag and child.tag not in EXTENSIONS:
            yield child, f"elements <{child.tag}> are not read; what they add is missing."


def _axis_of_ball(joint: Element) -> Iterator[tuple[Element, str]]:
    for axis in (*joint.all("axis"), *joint.all("axis2")):
        for dynamics in axis.all("dynamics"):
            if any(e.text.strip(" \t\n0.") for e in dynamics.children):
                yield dynamics, "a ball joint has no axis: damping, friction and springs about it are not used."


def _link(link: Element) -> Iterator[tuple[Element, str]]:
    yield from _plugins(link)
    yield from _extensions(link)
    for further in link.all("inertial")[1:]:
        yield further, "a link has one <inertial>: further ones are not read."
    for child in link.children:
        if child.tag == "gravity" and not truth(child, default=True):
            yield child, "gravity acts on the link all the same."
        if child.tag == "kinematic" and truth(child):
            yield child, "the link moves as forces make it, though the file says it is kinematic."
        if child.tag == "enable_wind" and truth(child):
            yield child, NO_WIND
        if child.tag == "velocity_decay" and any(e.text.strip(" \t\n0.") for e in child.children):
            yield child, "velocity_decay is not used: the link is not damped."
        if child.tag == "inertial" and (added := child.first("fluid_added_mass")) is not None:
            yield added, "the added mass is not used: there is no fluid."
        pose = child.first("pose") if child.tag == "inertial" else None
        if pose is not None and (pose.get("relative_to") or "").strip():
            yield (
                pose,
                "relative_to is not used: the inertial's pose is taken in the link's frame, as the format demands.",
            )
