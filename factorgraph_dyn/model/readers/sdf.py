"""SDF becomes a mechanism whose base is the world; loops are allowed.

A model that no joint ties to the world is fixed to it by its first link, or floats. Link frames move
to their joints; each leaves a frame of its name where the file had it.

    revolute, continuous, prismatic, fixed      as they are
    ball, universal, revolute2                  spherical, universal with the file's two axes
    screw      pitch = screw_thread_pitch / 2 pi, or - 1 / thread_pitch (the older, left-handed one)
    gearbox    theta_child = - ratio theta_parent about the reference body, as a ``Coupling``
"""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.assembly import Connection, assemble
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link
from factorgraph_dyn.model.readers.sdf_scope import (
    MODEL,
    WORLD,
    Scope,
    child_text,
    read_pose,
    read_scopes,
    read_version,
)
from factorgraph_dyn.model.readers.xml_tree import Document, Element
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
UNLIMITED = 1e16  # the format's word for no limit
AXES = {"universal": 2, "spherical": 0, "fixed": 0}


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
    world = root.first("world")
    top = root if world is None else world
    models = [child for child in top.children if child.tag in ("model", "include")]
    if not models:
        root.fail("there is no <model> in the file, neither in <sdf> nor in its first <world>.")
    several = len(models) > 1
    scopes = read_scopes(models, read_version(root), folder, notes, several=several)
    links: list[Link] = [Link(WORLD)]
    connections: list[Connection] = []
    couplings: list[Coupling] = []
    frames: list[Frame] = []
    for scope in scopes:
        first = len(connections)
        _read_model(scope, links, connections, couplings, frames, notes)
        if not scope.static and not _tied(connections[first:]):
            connections.insert(first, _to_world(scope, floating_base or several))
    gravity = top.first("gravity")
    down = np.array([0.0, 0.0, -9.81]) if gravity is None else gravity.parse_numbers(gravity.text, "gravity", (3,))
    for link, times in Counter(link.name for link in links).items():
        if times > 1:
            root.fail(f"the link name {link!r} occurs twice.")
    name = scopes[0].element.name() if not several else top.get("name") or WORLD
    return assemble(name, links, connections, base=WORLD, couplings=couplings, frames=frames, gravity=down, notes=notes)


def _tied(connections: list[Connection]) -> bool:
    return any(WORLD in (c.joint.parent, c.joint.child) for c in connections)


def _to_world(scope: Scope, floats: bool) -> Connection:
    """The joint from the world to a model's first link."""
    link = scope.canonical(scope.element)
    where = f"{scope.element.file}:{scope.element.line}: "
    if floats:
        name = scope.full_name("floating_base")
        return Connection(Joint(name, "floating", WORLD, link, actuated=False), where=where)
    T = scope.T_world(link.removeprefix(scope.prefix), scope.element)
    return Connection(Joint(scope.full_name("fixed_base"), "fixed", WORLD, link, placement=T), where=where)


def _read_model(
    scope: Scope,
    links: list[Link],
    connections: list[Connection],
    couplings: list[Coupling],
    frames: list[Frame],
    notes: list[str],
) -> None:
    for name, element in scope.named.items():
        if element.tag == "link":
            links.append(_link(element, scope.full_name(name), notes))
            if scope.static:
                joint = Joint(
                    scope.full_name(f"{name}_static"),
                    "fixed",
                    WORLD,
                    scope.full_name(name),
                    placement=scope.T_world(name, element),
                )
                connections.append(Connection(joint, where=f"{element.file}:{element.line}: "))
        elif element.tag == "frame" and (host := scope.link_of(name, element)) != WORLD:
            T_world_link = _T_world_link(scope, host, element)
            T = inverse_pose(T_world_link) @ scope.T_world(name, element)
            frames.append(Frame(scope.full_name(name), host, T))
    for inner in scope.nested.values():
        _read_model(inner, links, connections, couplings, frames, notes)
    if scope.static:
        return
    for name, element in scope.named.items():
        if element.tag == "joint" and element.get("type") != "gearbox":
            connections.append(_joint(scope, name, element, notes))
    for name, element in scope.named.items():
        if element.tag == "joint":
            couplings.extend(_mimics(scope, name, element))
            if element.get("type") == "gearbox":
                couplings.append(_gearbox(scope, name, element, connections))


def _T_world_link(scope: Scope, full_name: str, asker: Element) -> Floats:
    """The pose of a link given by its full name, shape (4, 4)."""
    top = scope
    while top.parent is not None:
        top = top.parent
    return top.T_world(full_name.removeprefix(top.prefix), asker)


def _link(element: Element, name: str, notes: list[str]) -> Link:
    inertial = element.first("inertial")
    if inertial is None:
        notes.append(element.note("the link has no <inertial>; the format's default is 1 kg and 1 kg m^2."))
        return Link(name, 1.0, (0, 0, 0), np.eye(3))
    if inertial.get("auto") in ("1", "true"):
        inertial.fail("automatic inertias are not computed; write the mass and inertia.")
    mass = _number(inertial, "mass", 1.0)
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
            inertia[i, j] = inertia[j, i] = _number(tensor, key, 1.0 if i == j else 0.0)
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
    T_world_joint = scope.T_world(name, element)
    axes = [element.first("axis"), element.first("axis2")][: AXES.get(kind, 1)]
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
    try:
        joint = Joint(
            scope.full_name(name),
            kind,
            parent,
            child,
            placement=inverse_pose(_T_world_link(scope, parent, element)) @ T_world_joint,
            axis=np.array(rows) if kind == "universal" else (rows[0] if rows else (0.0, 0.0, 1.0)),
            pitch=_pitch(element) if kind == "helical" else 0.0,
            limits=_limits(axes[0], notes) if kind in ("revolute", "prismatic", "helical") else None,
            **{field: values for field, values in effects.items() if values},  # type: ignore[arg-type]
        )
    except ModelError as error:
        element.fail(str(error))
    T_child_joint = inverse_pose(_T_world_link(scope, child, element)) @ T_world_joint
    return Connection(joint, T_child_joint, where=f"{element.file}:{element.line}: ")


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
    if (in_model is not None and in_model.text.strip() in ("1", "true")) or (
        in_model is None and scope.version < 1.05 and not expressed
    ):
        expressed = MODEL
    if not expressed:
        return xyz
    if expressed == MODEL:
        R_world_given = scope.T_world_model()[:3, :3]
    else:
        R_world_given = scope.T_world(expressed, xyz_element)[:3, :3]
    turned = T_world_joint[:3, :3].T @ R_world_given @ xyz
    nearest = np.round(turned)
    return np.where(np.abs(turned - nearest) < 1e-15, nearest, turned)


def _pitch(element: Element) -> float:
    """Metres for every radian of a screw joint."""
    if element.first("screw_thread_pitch") is not None:
        return _number(element, "screw_thread_pitch", 0.0) / (2 * np.pi)
    thread = _number(element, "thread_pitch", 1.0)
    if abs(thread) < 1e-12:
        element.fail("thread_pitch is zero.")
    return -1.0 / thread


def _limits(axis: Element | None, notes: list[str]) -> tuple[float, float] | None:
    limit = None if axis is None else axis.first("limit")
    if limit is None or (limit.first("lower") is None and limit.first("upper") is None):
        return None
    lower, upper = _number(limit, "lower", -UNLIMITED), _number(limit, "upper", UNLIMITED)
    if lower > upper:
        notes.append(limit.note(f"lower {lower:g} exceeds upper {upper:g}; the joint is not limited."))
        return None
    if lower <= -UNLIMITED and upper >= UNLIMITED:
        return None
    return (lower if lower > -UNLIMITED else -np.inf, upper if upper < UNLIMITED else np.inf)


def _dynamics(axis: Element, tag: str, notes: list[str]) -> float:
    dynamics = axis.first("dynamics")
    value = 0.0 if dynamics is None else _number(dynamics, tag, 0.0)
    if value < 0 and tag != "spring_reference" and dynamics is not None:
        notes.append(dynamics.note(f"{tag} is negative ({value:g}); it is taken as 0."))
        return 0.0
    return value


def _mimics(scope: Scope, name: str, element: Element) -> list[Coupling]:
    found = []
    for tag in ("axis", "axis2"):
        axis = element.first(tag)
        mimic = None if axis is None else axis.first("mimic")
        if mimic is None:
            continue
        source_scope, source = scope.find(mimic.name("joint"), mimic)
        if AXES.get(KINDS.get(element.get("type") or "", ""), 1) != 1:
            mimic.fail("only joints of one freedom can mimic others.")
        # q = multiplier (q_source - reference) + offset
        ratio = _number(mimic, "multiplier", 1.0)
        offset = _number(mimic, "offset", 0.0) - ratio * _number(mimic, "reference", 0.0)
        leader = source_scope.full_name(source)
        follower = scope.full_name(name)
        if leader == follower:
            mimic.fail("the joint mimics itself.")
        found.append(Coupling(f"{follower}_mimics_{leader}", follower, leader, ratio, offset))
    return found


def _gearbox(scope: Scope, name: str, element: Element, connections: list[Connection]) -> Coupling:
    """A gearbox as a coupling of the two joints that its bodies have with the reference body."""
    reference = scope.link_of(child_text(element, "gearbox_reference_body"), element)
    ratio = _number(element, "gearbox_ratio", 1.0)
    T_world_gearbox = scope.T_world(name, element)
    found = []
    for role, tag in (("parent", "axis"), ("child", "axis2")):
        body = scope.link_of(child_text(element, role), element)
        joint = next((c.joint for c in connections if {c.joint.parent, c.joint.child} == {reference, body}), None)
        if joint is None or joint.nv != 1:
            element.fail(f"no joint of one freedom joins {body!r} to the reference body {reference!r}.")
        axis = element.first(tag)
        along = T_world_gearbox[:3, :3] @ _axis(scope, axis, element, T_world_gearbox)
        R_world_joint = (_T_world_link(scope, joint.parent, element) @ np.asarray(joint.placement))[:3, :3]
        sign = np.sign(along @ R_world_joint @ joint.axes[0]) * (1.0 if joint.parent == reference else -1.0)
        found.append((joint.name, float(sign) or 1.0))
    (first, sign_1), (second, sign_2) = found
    return Coupling(scope.full_name(name), second, first, -ratio * sign_1 / sign_2)


def _number(element: Element, tag: str, default: float) -> float:
    """The number that a child element holds."""
    child = element.first(tag)
    return default if child is None else child.parse_number(child.text, "the text")
