"""SDF becomes a mechanism whose base is the world; loops are allowed.

A model that no joint ties to the world is fixed to it by its canonical link, or floats; so does each piece
of a model that is in several. All models of a <world> are read; where there are several, they float and
their parts are called ``model::part``. Link frames move to their joints; each leaves a frame of its name
where the file had it.

    revolute, continuous, prismatic, fixed      as they are
    ball, universal, revolute2                  spherical, universal with the file's two axes
    screw      pitch = screw_thread_pitch / 2 pi, or - 1 / thread_pitch (the older, left-handed one);
               1 m a turn where neither is given
    gearbox    theta_child = - ratio theta_parent about the reference body, as a ``Coupling``
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model import joint_kinds
from factorgraph_dyn.model.assembly import Connection, assemble
from factorgraph_dyn.model.description import GRAVITY
from factorgraph_dyn.model.files.limits import bound, joint_limits
from factorgraph_dyn.model.files.mimics import refuse_circles
from factorgraph_dyn.model.files.sdf.mimics import read_mimics
from factorgraph_dyn.model.files.sdf.scope import (
    MODEL,
    WORLD,
    Scope,
    child_number,
    child_text,
    read_pose,
    read_world,
    truth,
)
from factorgraph_dyn.model.files.sdf.unmodelled import note_unmodelled
from factorgraph_dyn.model.files.visuals import sdf_visuals
from factorgraph_dyn.model.files.xml_tree import Document, Element
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.spatial import Floats, inverse_pose

KINDS = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "ball": "spherical",
    "universal": "universal",
    "revolute2": "universal",
    "screw": "helical",
}
WORLD_GRAVITY = (0.0, 0.0, -9.8)  # of a world that gives none, as the specification says, m/s^2


def read_sdf(document: Document, folder: Path | None, *, floating_base: bool = False) -> Mechanism:
    """The mechanism of an SDF file.

    Args:
        document: The parsed file.
        folder: The folder that included files must be in, or None to allow no includes.
        floating_base: Let models that no joint ties to the world float instead of fixing them.

    Raises:
        ModelError: The file makes no mechanism; says file, line and element.
    """
    root, notes = document.root, list(document.notes)
    worlds = root.all("world")
    top = worlds[0] if worlds else root
    notes.extend(world.note("only the first world is read.") for world in worlds[1:])
    world = read_world(document, top, folder, notes)
    models = list(world.nested.values())
    if not models:
        root.fail("there is no <model> in the file, neither in <sdf> nor in its first <world>.")
    note_unmodelled(world, notes)
    draft = Draft(notes)
    parts = [_read_model(scope, draft) for scope in models]
    across = _read_joints(world, draft, [connection for part in parts for connection in part])
    refuse_circles(draft.mimics)
    _tie(models, parts, across, notes, floats=floating_base or len(models) > 1)
    return assemble(
        Mechanism,
        models[0].element.name() if len(models) == 1 else top.get("name") or WORLD,
        draft.links,
        [connection for part in (*parts, across) for connection in part],
        base=WORLD,
        couplings=draft.couplings,
        frames=draft.frames,
        gravity=_gravity(top, world.version, notes),
        notes=notes,
        visuals=draft.visuals,
    )


def _gravity(world: Element, version: float, notes: list[str]) -> Floats:
    """The world's own gravity, m/s^2; before version 1.6 it was that of its default or first physics.

    Models outside of worlds have none of their own: theirs is that of all mechanisms.
    """
    gravity = world.first("gravity")
    physics = sorted(world.all("physics"), key=lambda profile: not truth(profile, "default"))
    older = physics[0].first("gravity") if physics else None
    if gravity is None and older is not None:
        if version < 1.06:
            gravity = older
        else:
            notes.append(
                older.note("since version 1.6 gravity stands in the world, not in its physics; it is not used.")
            )
    if gravity is None:
        return np.array(WORLD_GRAVITY if world.tag == "world" else GRAVITY)
    return gravity.parse_numbers(gravity.text, "gravity", (3,))


def _tie(
    models: list[Scope], parts: list[list[Connection]], across: list[Connection], notes: list[str], *, floats: bool
) -> None:
    """Join what nothing ties to the world to it, by joints before the others of its model."""
    around: dict[str, list[str]] = {}
    for connection in (c for part in (*parts, across) for c in part):
        ends = connection.joint.parent, connection.joint.child
        for here, there in (ends, ends[::-1]):
            around.setdefault(here, []).append(there)
    tied = _reached(WORLD, around, set())
    for scope, part in zip(models, parts, strict=True):
        part[:0] = _ties(scope, around, tied, notes, floats)


def _ties(
    scope: Scope, around: dict[str, list[str]], tied: set[str], notes: list[str], floats: bool
) -> list[Connection]:
    """The joints that tie a model's pieces to the world; where there are several, those that nothing ties float."""
    links = _links_inside(scope)
    if links and tied.issuperset(links):
        return []
    canonical = scope.canonical(scope.element)
    several, roots = not tied.isdisjoint(links), []
    for link in (canonical, *links):
        if link not in tied:
            roots.append(link)
            _reached(link, around, tied)
    several |= len(roots) > 1
    if several:
        names = ", ".join(map(repr, roots[:20]))
        notes.append(scope.element.note(f"no joint ties {names} to one another or the world; each floats."))
    return [_to_world(scope, link, "" if link == canonical else f"{link}_", floats or several) for link in roots]


def _reached(start: str, around: dict[str, list[str]], reached: set[str]) -> set[str]:
    """Add all bodies that joints connect to one."""
    stack = [start]
    while stack:
        body = stack.pop()
        if body not in reached:
            reached.add(body)
            stack.extend(around.get(body, ()))
    return reached


def _links_inside(scope: Scope) -> list[str]:
    """The full names of the links of a model and of those in it."""
    own = [scope.full_name(name) for name, element in scope.named.items() if element.tag == "link"]
    return own + [name for inner in scope.nested.values() for name in _links_inside(inner)]


def _to_world(scope: Scope, link: str, prefix: str, floats: bool) -> Connection:
    """The joint from the world to a link, which is called after its model or has a prefix of its own."""
    where = f"{scope.element.file}:{scope.element.line}: "
    prefix = prefix or scope.full_name("")
    T = scope.T_world_link(link)  # a pose that leans on itself is refused where it is not used, too
    if floats:
        return Connection(Joint(f"{prefix}floating_base", "floating", WORLD, link, actuated=False), where=where)
    return Connection(Joint(f"{prefix}fixed_base", "fixed", WORLD, link, placement=T), where=where)


@dataclass
class Draft:
    """What has been read of the models so far."""

    notes: list[str]
    links: list[Link] = field(default_factory=lambda: [Link(WORLD)])
    couplings: list[Coupling] = field(default_factory=list)
    frames: list[Frame] = field(default_factory=list)
    visuals: list[Visual] = field(default_factory=list)
    mimics: dict[str, tuple[str, Element]] = field(default_factory=dict)  # see refuse_circles


def _read_model(scope: Scope, draft: Draft) -> list[Connection]:
    """Read a model and those in it; its joints."""
    connections: list[Connection] = []
    for name, element in scope.named.items():
        if element.tag == "link":
            link = scope.full_name(name)
            draft.links.append(_link(element, link, draft.notes))
            draft.visuals += sdf_visuals(element, link, read_pose)
            if scope.static:
                joint = Joint(f"{link}_static", "fixed", WORLD, link, placement=scope.T_world_of(element))
                connections.append(Connection(joint, where=f"{element.file}:{element.line}: "))
        elif element.tag == "frame" and (host := scope.link_of(name, element)) != WORLD:
            T = inverse_pose(scope.T_world_link(host)) @ scope.T_world_of(element)
            draft.frames.append(Frame(scope.full_name(name), host, T))
    for inner in scope.nested.values():
        connections += _read_model(inner, draft)
    if not scope.static:
        connections += _read_joints(scope, draft, connections)
    return connections


def _read_joints(scope: Scope, draft: Draft, inner: Sequence[Connection] = ()) -> list[Connection]:
    """Read the joints of a model or the world, and what couples them; ``inner`` are those of nested models."""
    gearboxes = {n: e for n, e in scope.joints.items() if e.get("type") == "gearbox"}
    found = [_joint(scope, n, e, draft.notes) for n, e in scope.joints.items() if n not in gearboxes]
    for name, element in scope.joints.items():
        draft.couplings.extend(read_mimics(scope, name, element, _freedoms(element), draft.mimics))
        if name in gearboxes:
            draft.couplings.append(_gearbox(scope, name, element, [*inner, *found]))
    return found


def _link(element: Element, name: str, notes: list[str]) -> Link:
    inertial = element.first("inertial")
    if inertial is None:
        notes.append(element.note("the link has no <inertial>; the format's default is 1 kg and 1 kg m^2."))
        return Link(name, 1.0, (0, 0, 0), np.eye(3))
    if truth(inertial, "auto"):
        inertial.fail("automatic inertias are not computed; write the mass and inertia.")
    mass = child_number(inertial, "mass", 1.0)
    if mass < 0:
        inertial.fail(f"the mass is {mass:g} kg; a mass cannot be negative.")
    inertia = np.eye(3)
    if (tensor := inertial.first("inertia")) is not None:
        for i, j, key in (
            (0, 0, "ixx"),
            (1, 1, "iyy"),
            (2, 2, "izz"),
            (0, 1, "ixy"),
            (0, 2, "ixz"),
            (1, 2, "iyz"),
        ):
            inertia[i, j] = inertia[j, i] = child_number(tensor, key, 1.0 if i == j else 0.0)
    T = read_pose(inertial.first("pose"))
    turned = T[:3, :3] @ inertia @ T[:3, :3].T
    return Link(name, mass, T[:3, 3], 0.5 * (turned + turned.T))


def _joint(scope: Scope, name: str, element: Element, notes: list[str]) -> Connection:
    given = (element.get("type") or "").strip()
    if given not in KINDS:
        element.fail(f"the joint type {given!r} is not known. Types: {', '.join((*KINDS, 'gearbox'))}.")
    kind = KINDS[given]
    parent, child = (scope.link_of(child_text(element, role), element) for role in ("parent", "child"))
    if parent == child:
        element.fail(f"link {parent!r} is both parent and child.")
    T_world_joint = scope.T_world_of(element)
    axes = [element.first("axis"), element.first("axis2")][: joint_kinds.KINDS[kind].axis_count]
    rows = [_axis(scope, axis, element, T_world_joint) for axis in axes]
    effects = {
        field: [0.0 if a is None else _dynamics(a, tag, notes) for a in axes]
        for field, tag in (
            ("damping", "damping"),
            ("friction", "friction"),
            ("stiffness", "spring_stiffness"),
            ("rest", "spring_reference"),
        )
    }
    if armature := _rotor(element, notes) if axes else 0.0:
        effects["armature"] = [armature] * len(axes)
    bounds = {f"{tag}_limit": [_bound(axis, tag) for axis in axes] for tag in ("effort", "velocity")}
    try:
        joint = Joint(
            scope.full_name(name),
            kind,
            parent,
            child,
            placement=inverse_pose(scope.T_world_link(parent)) @ T_world_joint,
            axis=rows[0] if len(rows) == 1 else np.array(rows or (0.0, 0.0, 1.0)),
            pitch=_pitch(element) if kind == "helical" else 0.0,
            limits=_limits(axes[0], notes) if kind in ("revolute", "prismatic", "helical") else None,
            **{field: values for field, values in (effects | bounds).items() if values},  # type: ignore[arg-type]
        )
    except ModelError as error:
        element.fail(str(error))
    T_child_joint = inverse_pose(scope.T_world_link(child)) @ T_world_joint
    return Connection(joint, T_child_joint, where=f"{element.file}:{element.line}: ")


def _freedoms(element: Element) -> int | None:
    """How many freedoms a joint has; None where its type is none of a joint's."""
    kind = KINDS.get(element.get("type") or "")
    return None if kind is None else joint_kinds.KINDS[kind].nv


def _rotor(element: Element, notes: list[str]) -> float:
    """The inertia that Drake's rotor and gear reflect on a joint."""
    value = child_number(element, "drake:rotor_inertia", 0.0) * child_number(element, "drake:gear_ratio", 1.0) ** 2
    if value < 0 or not np.isfinite(value):
        notes.append(element.note(f"the reflected inertia of the rotor is {value:g}; it is not used."))
        return 0.0
    return value


def _axis(scope: Scope, axis: Element | None, element: Element, T_world_joint: Floats) -> Floats:
    """A joint's axis in its joint frame, shape (3,)."""
    if axis is None:
        if element.first("axis") is None and element.get("type") in ("universal", "revolute2"):
            element.fail("the joint needs <axis> and <axis2>.")
        element.fail("<axis> is missing; add it.")
    xyz_element = axis.first("xyz")
    if xyz_element is None:
        return np.array([0.0, 0.0, 1.0])
    xyz = xyz_element.parse_numbers(xyz_element.text, "the axis", (3,))
    if float(np.linalg.norm(xyz)) < 1e-9:
        xyz_element.fail("the axis is zero; give a direction.")
    in_model = axis.first("use_parent_model_frame")
    expressed = xyz_element.get("expressed_in") or ""
    # Before version 1.5 axes were written in the model's frame.
    if truth(in_model, default=scope.version < 1.05 and not expressed):
        expressed = MODEL
    if not expressed:
        return xyz
    R_world_given = scope.T_world(expressed, xyz_element)[:3, :3]
    turned = T_world_joint[:3, :3].T @ R_world_given @ xyz
    nearest = np.round(turned)
    return np.where(np.abs(turned - nearest) < 1e-15, nearest, turned)


def _pitch(element: Element) -> float:
    """Metres for every radian of a screw joint."""
    if element.first("screw_thread_pitch") is not None or element.first("thread_pitch") is None:
        return child_number(element, "screw_thread_pitch", 1.0) / (2 * np.pi)
    thread = child_number(element, "thread_pitch", 1.0)
    if thread == 0:
        element.fail("thread_pitch is zero.")
    return -1.0 / thread


def _limits(axis: Element | None, notes: list[str]) -> tuple[float, float] | None:
    limit = None if axis is None else axis.first("limit")
    if limit is None or (limit.first("lower") is None and limit.first("upper") is None):
        return None
    lower = child_number(limit, "lower", -np.inf, infinite=True)
    upper = child_number(limit, "upper", np.inf, infinite=True)
    return joint_limits(limit, lower, upper, notes)


def _bound(axis: Element | None, tag: str) -> float:
    """An axis's largest effort or velocity."""
    limit = None if axis is None else axis.first("limit")
    return np.inf if limit is None else bound(child_number(limit, tag, np.inf, infinite=True))


def _dynamics(axis: Element, tag: str, notes: list[str]) -> float:
    dynamics = axis.first("dynamics")
    value = 0.0 if dynamics is None else child_number(dynamics, tag, 0.0)
    if value < 0 and tag != "spring_reference" and dynamics is not None:
        notes.append(dynamics.note(f"{tag} is negative ({value:g}); it is taken as 0."))
        return 0.0
    return value


def _gearbox(scope: Scope, name: str, element: Element, connections: list[Connection]) -> Coupling:
    """A gearbox as a coupling of the two joints that its bodies have with the reference body."""
    reference = scope.link_of(child_text(element, "gearbox_reference_body"), element)
    ratio = child_number(element, "gearbox_ratio", 1.0)
    T_world_gearbox = scope.T_world_of(element)
    found = []
    for role, tag in (("parent", "axis"), ("child", "axis2")):
        body = scope.link_of(child_text(element, role), element)
        joint = next((c.joint for c in connections if {c.joint.parent, c.joint.child} == {reference, body}), None)
        if joint is None or joint.nv != 1:
            element.fail(f"no joint of one freedom joins {body!r} to the reference body {reference!r}.")
        axis = element.first(tag)
        along = T_world_gearbox[:3, :3] @ _axis(scope, axis, element, T_world_gearbox)
        R_world_joint = (scope.T_world_link(joint.parent) @ np.asarray(joint.placement))[:3, :3]
        sign = np.sign(along @ R_world_joint @ joint.axes[0]) * (1.0 if joint.parent == reference else -1.0)
        found.append((joint.name, float(sign) or 1.0))
    (first, sign_1), (second, sign_2) = found
    return Coupling(scope.full_name(name), second, first, -ratio * sign_1 / sign_2)
