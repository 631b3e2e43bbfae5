"""MJCF becomes a mechanism whose base is the world and whose q has MuJoCo's meaning joint by joint.

    T_parent_body = T_0  motion_1(q_1 - ref_1)  motion_2(q_2 - ref_2) ...     joints of one body in turn

A body with several joints gets a massless link between each two of them. Differences from MuJoCo's
own vectors: quaternions are x, y, z, w; a free joint's velocity is the body twist [omega; v].
Equalities are hard constraints. Contacts, limits' forces and the control laws of actuators are
not part of a mechanism; where a file has fluids, gravity compensation, muscles, plugins or tendons that
bend, a warning says so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.assembly import Connection, assemble
from factorgraph_dyn.model.files.limits import joint_limits
from factorgraph_dyn.model.files.mjcf.constraints import (
    MjcfConstraints,
    add_actuator_effects,
    is_orientation_servo,
    read_actuators,
    read_constraints,
)
from factorgraph_dyn.model.files.mjcf.effects import joint_effects, springdamper
from factorgraph_dyn.model.files.mjcf.inertia import body_link, note_fused, scaled_to_total
from factorgraph_dyn.model.files.mjcf.limits import limited_by_actuators, range_bound
from factorgraph_dyn.model.files.mjcf.scene import (
    MAIN,
    Scene,
    pose_between,
    read_scene,
    translation,
)
from factorgraph_dyn.model.files.mjcf.springdampers import SpringDamper, with_springdampers
from factorgraph_dyn.model.files.mjcf.unmodelled import note_unmodelled
from factorgraph_dyn.model.files.visuals import mjcf_visuals
from factorgraph_dyn.model.files.xml_tree import Document, Element
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.names import TakenNames
from factorgraph_dyn.model.parts import Frame, Joint, Link
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.spatial import Floats, rotation_about

WORLD = "world"
KINDS = {"hinge": "revolute", "slide": "prismatic", "ball": "spherical", "free": "floating"}
REFUSED = ("composite", "flexcomp", "attach", "replicate")


@dataclass
class Draft:
    """What has been read of the bodies so far."""

    scene: Scene
    links: list[Link] = field(default_factory=list)
    connections: list[Connection] = field(default_factory=list)
    sites: dict[str, tuple[str, Floats]] = field(default_factory=dict)
    site_elements: dict[str, Element] = field(default_factory=dict)
    T_world_body: dict[str, Floats] = field(default_factory=dict)  # at the reference configuration
    references: dict[str, float] = field(default_factory=dict)  # q of each joint there
    springdampers: dict[str, SpringDamper] = field(default_factory=dict)
    written: dict[str, Element] = field(default_factory=dict)  # the <inertial> of each body where it counts
    mocap: set[str] = field(default_factory=set)
    joint_names: TakenNames = field(default_factory=TakenNames)  # loops and couplings included
    body_names: TakenNames = field(default_factory=lambda: TakenNames([WORLD]))  # and links between two joints of one
    visuals: list[Visual] = field(default_factory=list)
    unnamed: int = 0


def read_mjcf(document: Document, folder: Path | None) -> Mechanism:
    """The mechanism of an MJCF file.

    Args:
        document: The parsed file.
        folder: The folder that included files must be in, or None to allow no includes.

    Raises:
        ModelError: The file makes no mechanism, or needs what is not supported; says file and line.
    """
    scene = read_scene(document, folder)
    draft = Draft(scene)
    draft.links.append(Link(WORLD))
    draft.T_world_body[WORLD] = np.eye(4)
    _reserve_names(draft)
    for world in scene.root.all("worldbody"):
        childclass = world.get("childclass") or MAIN
        _read_children(world, WORLD, draft, childclass, moving=False)
        draft.visuals += mjcf_visuals(WORLD, _geoms(_unfold(world, draft, childclass), scene), scene)
    joints = {c.joint.name: c.joint for c in draft.connections}
    constraints = read_constraints(
        scene,
        joints,
        draft.references,
        draft.T_world_body,
        draft.sites,
        draft.mocap,
        draft.joint_names,
    )
    actuators = read_actuators(scene)
    add_actuator_effects(actuators, constraints, joints, scene.notes)
    note_unmodelled(scene, actuators, joints)
    note_fused(draft.links, draft.connections, draft.written, scene)
    links = scaled_to_total(draft.links, scene.settings.settotalmass)
    connections = [_effects_added(c, constraints) for c in limited_by_actuators(draft.connections, actuators, scene)]
    connections = with_springdampers(connections, links, draft.springdampers, draft.references, scene.notes)
    connections = [_locked(c, constraints) for c in connections]
    if actuators:
        driven = {joint for actuator in actuators for joint in actuator.gears}
        connections = [_with_motor(c, c.joint.name in driven) for c in connections]
    return assemble(
        Mechanism,
        scene.root.get("model") or "mujoco",
        links,
        [*connections, *constraints.loops],
        base=WORLD,
        couplings=constraints.couplings,
        frames=_frames(draft),
        gravity=scene.settings.gravity,
        notes=scene.notes,
        visuals=draft.visuals,
    )


def read_actuation(document: Document, folder: Path | None, mechanism: Mechanism) -> tuple[tuple[str, ...], Floats]:
    """The names of a file's linear actuators, and the matrix B of tau = B u, shape (nv, actuators).

    An entry is the gear of an actuator at a joint, through fixed tendons too. Actuators that do not act by
    fixed gears (on sites, spatial tendons, free joints) or have several controls (orientation) are left out.
    """
    names: list[str] = []
    columns: list[Floats] = []
    for actuator in read_actuators(read_scene(document, folder)):
        if is_orientation_servo(actuator.where):
            continue
        column = np.zeros(mechanism.nv)
        for name, gear in actuator.gears.items():
            joint = mechanism.joint_by_name.get(name)
            if joint is None or joint.nv not in (1, 3) or len(gear) < joint.nv:
                break
            column[mechanism.v_slice(name)] += gear[: joint.nv]
        else:
            if actuator.gears:
                names.append(actuator.name)
                columns.append(column)
    return tuple(names), np.column_stack([np.zeros((mechanism.nv, 0)), *columns])


def _reserve_names(draft: Draft) -> None:
    """Keep generated names off those in the file, and find names used twice."""
    lines: dict[str, int] = {}
    stack = list(draft.scene.root.all("worldbody"))
    while stack:
        element = stack.pop()
        stack.extend(element.children)
        if element.tag in ("joint", "freejoint") and (name := element.get("name")):
            if name in lines:
                element.fail(f"the joint is defined twice, also in line {lines[name]}; rename one.")
            lines[name] = element.line
        if element.tag == "body" and (name := element.get("name")):
            draft.body_names.add(name)
    draft.joint_names.update(lines)


def _unfold(element: Element, draft: Draft, childclass: str) -> Iterator[tuple[Element, Floats, str]]:
    """The children of a body, those in <frame>s with the frame's pose in the body and its class."""
    for child in element.children:
        if child.tag == "frame":
            _refuse_scales(child)
            T = draft.scene.pose(child)
            inner_class = child.get("childclass") or childclass
            for inner, T_inner, name in _unfold(child, draft, inner_class):
                yield inner, T @ T_inner, name
        elif child.tag in REFUSED:
            child.fail("this element is not read. Expand it: load the file in MuJoCo and save it again.")
        else:
            yield child, np.eye(4), childclass


def _refuse_scales(frame: Element) -> None:
    for key in ("scale", "massscale"):
        if any(x != 1 for x in frame.parse_numbers(frame.get(key) or "1", f"the attribute {key!r}")):
            frame.fail(f"a frame that scales what is in it ({key}={frame.get(key)!r}) is not read; write true sizes.")


def _read_children(element: Element, body: str, draft: Draft, childclass: str, moving: bool) -> None:
    """Read the sites and the bodies of a body."""
    for child, T, name in _unfold(element, draft, childclass):
        if child.tag == "site" and child.get("name"):
            site = draft.scene.resolve(child, name)
            if site.name() in draft.sites:
                site.fail("the site is defined twice; rename one.")
            draft.sites[site.name()] = (body, T @ _site_pose(site, draft.scene))
            draft.site_elements[site.name()] = site
        elif child.tag == "body":
            _read_body(child, body, T, draft, name, moving)


def _frames(draft: Draft) -> list[Frame]:
    """The sites as frames: one that shares its name with a body, as the format allows, gets another."""
    taken = TakenNames([*draft.sites, *(link.name for link in draft.links)])
    bodies = {link.name for link in draft.links}
    frames = []
    for site, (body, T) in draft.sites.items():
        name = site
        if site in bodies:
            name = taken.new(f"{site}_site")
            draft.scene.notes.append(
                draft.site_elements[site].note(f"a body has this name, too, and keeps it; the site is called {name!r}.")
            )
        frames.append(Frame(name, body, T))
    return frames


def _site_pose(site: Element, scene: Scene) -> Floats:
    return scene.pose(site) if site.get("fromto") is None else pose_between(site)[0]


def _read_body(
    element: Element, parent: str, T_parent_frame: Floats, draft: Draft, childclass: str, moving: bool
) -> None:
    scene = draft.scene
    name = element.get("name") or ""
    if not name:
        draft.unnamed += 1
        name = draft.body_names.new(f"body_{draft.unnamed}")
    if name in draft.T_world_body:
        element.fail(f"the body {name!r} is defined twice; rename one.")
    childclass = element.get("childclass") or childclass
    T_parent_body = T_parent_frame @ scene.pose(element)
    draft.T_world_body[name] = draft.T_world_body[parent] @ T_parent_body
    if element.number("gravcomp", 0.0) != 0:
        scene.notes.append(element.note("gravcomp is not used: gravity acts on the body in full."))

    inner = list(_unfold(element, draft, childclass))
    joints = [(scene.resolve(e, c), T) for e, T, c in inner if e.tag in ("joint", "freejoint")]
    moving = moving or bool(joints)
    if element.get("mocap") == "true" or (parent in draft.mocap and not joints):
        draft.mocap.add(name)
    geoms = _geoms(inner, scene)
    inertial = next(((e, T) for e, T, _ in inner if e.tag == "inertial"), None)
    link = body_link(name, element, geoms, inertial, scene, moving, bool(joints), draft.written)
    _read_joints(element, joints, name, parent, T_parent_body, draft)
    draft.links.append(link)
    draft.visuals += mjcf_visuals(name, geoms, scene)
    _read_children(element, name, draft, childclass, moving)


def _geoms(children: Iterable[tuple[Element, Floats, str]], scene: Scene) -> list[tuple[Element, Floats]]:
    """The geoms among a body's children, with defaults filled in, and the pose of the frame each is in."""
    return [(scene.resolve(element, name), T) for element, T, name in children if element.tag == "geom"]


def _read_joints(
    element: Element,
    joints: list[tuple[Element, Floats]],
    body: str,
    parent: str,
    T_parent_body: Floats,
    draft: Draft,
) -> None:
    """Connect a body to its parent: a chain of its joints, or a fixed one where it has none."""
    where = f"{element.file}:{element.line}: "
    if not joints:
        name = draft.joint_names.new(f"{body}_fixed")
        draft.connections.append(Connection(Joint(name, "fixed", parent, body, placement=T_parent_body), where=where))
        return
    link, T = parent, T_parent_body
    for index, (joint, T_body_frame) in enumerate(joints, start=1):
        kind = "free" if joint.tag == "freejoint" else joint.get("type", "hinge") or "hinge"
        if kind not in KINDS:
            joint.fail(f"the joint type {kind!r} is not known. Types: {', '.join(KINDS)}.")
        if kind == "free" and (len(joints) > 1 or parent != WORLD):
            joint.fail("a free joint must be the only joint of a body of the world.")
        name = joint.get("name") or draft.joint_names.new(f"{body}_{kind}" + (str(index) if len(joints) > 1 else ""))
        last = index == len(joints)
        child = body if last else draft.body_names.new(f"{body}_before_{joints[index][0].get('name') or index + 1}")
        made, T_child_joint = _joint(joint, kind, name, (link, child), T, T_body_frame, draft)
        draft.connections.append(Connection(made, T_child_joint, where=f"{joint.file}:{joint.line}: "))
        if not last:
            draft.links.append(Link(child))
            draft.T_world_body[child] = draft.T_world_body[body]
        link, T = child, np.eye(4)


def _joint(
    element: Element,
    kind: str,
    name: str,
    ends: tuple[str, str],
    T_parent_body: Floats,
    T_body_frame: Floats,
    draft: Draft,
) -> tuple[Joint, Floats]:
    """The joint, and the pose of its moving frame in the body."""
    scene = draft.scene
    if kind == "free":
        # q is the pose in the world, so that the body's own pose plays no part
        anchor, placement, axis = np.eye(4), np.eye(4), np.array([0.0, 0.0, 1.0])
    else:
        p = T_body_frame @ np.append(element.vector("pos", 3, (0.0, 0.0, 0.0)), 1.0)
        anchor = translation(p[:3])
        axis = T_body_frame[:3, :3] @ element.vector("axis", 3, (0.0, 0.0, 1.0))
        if kind in ("hinge", "slide") and float(np.linalg.norm(axis)) < 1e-9:
            element.fail("the axis is zero; give a direction.")
        placement = T_parent_body @ anchor
    values = joint_effects(element, kind, name, scene)
    reference = values.pop("reference")
    draft.references[name] = reference
    if (times := springdamper(element)) is not None:
        draft.springdampers[name] = SpringDamper(*times, element)
    if reference and kind in ("hinge", "slide"):
        unit = axis / np.linalg.norm(axis)
        back = np.eye(4)
        if kind == "hinge":
            back[:3, :3] = rotation_about(unit, -reference)
        else:
            back[:3, 3] = -reference * unit
        placement = placement @ back
    try:
        joint = Joint(
            name,
            KINDS[kind],
            *ends,
            placement=placement,
            axis=axis if kind in ("hinge", "slide") else (0.0, 0.0, 1.0),
            limits=_limits(element, kind, scene),
            actuated=kind != "free",
            effort_limit=range_bound(element, scene, "actuatorfrcrange", "actuatorfrclimited"),
            **values,  # type: ignore[arg-type]
        )
    except ModelError as error:
        element.fail(str(error))
    return joint, anchor


def _limits(element: Element, kind: str, scene: Scene) -> tuple[float, float] | None:
    if kind not in ("hinge", "slide") or element.get("range") is None:
        return None
    limited = element.get("limited", "auto")
    if limited == "false" or (limited == "auto" and not scene.settings.autolimits):
        return None
    lower, upper = element.vector("range", 2, infinite=True)
    if kind == "hinge":
        lower, upper = scene.angle(np.array([lower, upper]))
    if lower == upper:  # MuJoCo's word for no range
        scene.notes.append(element.note(f"the range {lower:g} {upper:g} is empty; the joint is not limited."))
        return None
    return joint_limits(element, float(lower), float(upper), scene.notes)


def _effects_added(connection: Connection, constraints: MjcfConstraints) -> Connection:
    """The connection with what tendons and actuators add."""
    joint = connection.joint
    extra = constraints.joint_effects.get(joint.name)
    if extra:
        summed = {key: np.asarray(getattr(joint, key)) + x for key, x in extra.items()}
        joint = replace(joint, **summed)  # type: ignore[arg-type]
    return replace(connection, joint=joint)


def _locked(connection: Connection, constraints: MjcfConstraints) -> Connection:
    """The connection, its joint fixed where an equality says so."""
    joint = connection.joint
    if joint.name in constraints.locked:
        q = np.array([constraints.locked[joint.name]])
        T = np.asarray(joint.placement) @ joint.type.pose(joint.axes, joint.pitch, q)
        joint = Joint(joint.name, "fixed", joint.parent, joint.child, placement=T)
    return replace(connection, joint=joint)


def _with_motor(connection: Connection, driven: bool) -> Connection:
    return replace(connection, joint=replace(connection.joint, actuated=driven))
