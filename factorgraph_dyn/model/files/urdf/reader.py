"""URDF becomes a mechanism; the link and joint names, and the order of the joints, are the file's.

    placement_j   <origin xyz rpy>, the pose of the joint frame in the parent link
    inertia       R I R^T with R from the inertial origin: about the com, in the link's axes
    armature      rotor inertia times the squared reduction of the joint's transmission, where given
    limits        lower, upper, effort and velocity of <limit>
    mimic         q = multiplier q_source + offset, as a ``Coupling``

    loop          <loop type> with <predecessor link>, <successor link>, an <origin> in each, and <axis>
    coupling      <coupling> with <predecessor link>, <successor link> and <ratio>, as a ``Coupling``:
                  q_successor = ratio q_predecessor of the joints that move them, as a rotor is geared

Meshes are looked at when they are drawn, no sooner. Joints that close loops (a link with
two parents) become ``Loop``s, and so do <loop> elements; these, <coupling> and the attribute
``independent`` (a joint that is not has no motor) are the extensions of generalized_rbda. What is odd
but usable, or not read, is noted with file and line.
"""

from __future__ import annotations

import math

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model import joint_kinds
from factorgraph_dyn.model.assembly import Connection, assemble
from factorgraph_dyn.model.files.expand_xacro import HOW, NEEDS_EXPANDING
from factorgraph_dyn.model.files.limits import bound, joint_limits
from factorgraph_dyn.model.files.mimics import refuse_circles
from factorgraph_dyn.model.files.rotations import from_rpy
from factorgraph_dyn.model.files.urdf.transmissions import reflected_inertias
from factorgraph_dyn.model.files.urdf.unmodelled import note_unmodelled
from factorgraph_dyn.model.files.visuals import urdf_colours, urdf_visuals
from factorgraph_dyn.model.files.xml_tree import Document, Element
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Coupling, Joint, Link
from factorgraph_dyn.spatial import Floats, pose, rotation_of_quaternion

QUATERNION = "quat_xyzw"
MOMENTS = ("ixx", "iyy", "izz", "ixy", "ixz", "iyz")
KINDS = {
    "fixed": "fixed",
    "revolute": "revolute",
    "continuous": "continuous",
    "prismatic": "prismatic",
    "planar": "planar",
    "floating": "floating",
    "spherical": "spherical",
    "ball": "spherical",
    "universal": "universal",
}


def read_urdf(document: Document) -> Mechanism:
    """The mechanism of a URDF file.

    Raises:
        ModelError: The file does not describe a mechanism; says file, line and element.
    """
    root, notes = document.root, list(document.notes)
    _refuse_xacro(root, notes)
    _settle_quaternions(root, notes)
    note_unmodelled(root, notes)
    links = _unique(root.all("link"), "link")
    joints = _unique(root.all("joint"), "joint")
    if not links:
        root.fail("the robot has no <link>: there is nothing to load. Expand its xacro file again.")
    bodies = [_link(element, notes) for element in links.values()]
    armatures = reflected_inertias(root, notes)
    connections = [_connection(e, links, armatures.get(n, 0.0), notes) for n, e in joints.items()]
    couplings = [c for e in joints.values() if (c := _mimic(e, joints, notes))]
    refuse_circles({c.joint: (c.source, joints[c.joint].require("mimic")) for c in couplings})
    gears = _unique(root.all("coupling"), "coupling").values()
    couplings += [c for e in gears if (c := _gear(e, links, connections, notes))]
    base = _base(root, links, connections)
    _note_massless(bodies, connections, links, notes)
    connections += [_loop(e, links, notes) for e in _unique(root.all("loop"), "loop").values()]
    colours = urdf_colours(root)
    visuals = [visual for link in links.values() for visual in urdf_visuals(link, colours, _origin)]
    name = root.get("name") or "robot"
    try:
        return assemble(
            Mechanism, name, bodies, connections, base=base, couplings=couplings, notes=notes, visuals=visuals
        )
    except ModelError as error:
        raise _located(root, error) from None


def _located(root: Element, error: ModelError) -> ModelError:
    """The error with the file's name in front, unless it says where it is already."""
    message = str(error)
    if message.startswith(root.file):
        return error
    return ModelError(
        f"{root.file}:{root.line}: {root.label}: {message}", file=root.file, line=root.line, element=root.tag
    )


def _refuse_xacro(root: Element, notes: list[str]) -> None:
    for child in root.children:
        if child.tag in NEEDS_EXPANDING:
            child.fail(f"{HOW}.")
        if child.tag.startswith("xacro:"):
            notes.append(child.note("a xacro element is left unexpanded; it is not read."))


def _settle_quaternions(root: Element, notes: list[str]) -> None:
    """Refuse rotations that are given twice; leave out quaternions where the version has none, as urdfdom does."""
    knows = _version(root) >= (1, 1)
    for origin in (element for element in root.below() if element.tag == "origin"):
        if QUATERNION in origin.attributes and not knows:
            notes.append(
                origin.note(f"{QUATERNION} is not used: the robot's version has none. Write <robot version='1.1'>.")
            )
            del origin.attributes[QUATERNION]
        if QUATERNION in origin.attributes and "rpy" in origin.attributes:
            origin.fail(f"the rotation is given twice, by rpy and {QUATERNION}; give one.")


def _version(root: Element) -> tuple[int, ...]:
    """The version of the format a file is written in."""
    words = (root.get("version") or "1.0").split(".")
    return tuple(int(word) if (word.isascii() and word.isdecimal()) else 0 for word in words)


def _unique(elements: list[Element], noun: str) -> dict[str, Element]:
    """Elements by name; a second one of the same name is refused."""
    found: dict[str, Element] = {}
    for element in elements:
        name = element.name()
        if name in found:
            element.fail(f"the {noun} is defined twice, first in line {found[name].line}; rename one.")
        found[name] = element
    return found


def _origin(element: Element) -> Floats:
    """The pose of an element's <origin>, the identity where there is none."""
    origin = element.first("origin")
    if origin is None:
        return np.eye(4)
    p = origin.vector("xyz", 3, (0, 0, 0))
    if origin.get(QUATERNION) is None:
        return np.asarray(pose(from_rpy(origin.vector("rpy", 3, (0, 0, 0))), p))
    quaternion = origin.vector(QUATERNION, 4)
    if float(np.linalg.norm(quaternion)) < 1e-9:
        origin.fail("the quaternion is zero.")
    return np.asarray(pose(np.asarray(rotation_of_quaternion(quaternion)), p))


def _link(element: Element, notes: list[str]) -> Link:
    name = element.name()
    inertial = element.first("inertial")
    if inertial is None:
        return Link(name)
    if (mass_element := inertial.first("mass")) is None:
        # urdfdom stops at the missing mass, so that the inertia is lost wherever such a file is used
        notes.append(inertial.note(f"link {name!r} has no <mass>; its <inertial> is not used, as in urdfdom."))
        return Link(name)
    mass = mass_element.number("value")
    if mass < 0:
        inertial.fail(f"the mass of link {name!r} is {mass:g} kg; a mass cannot be negative.")
    T = _origin(inertial)
    inertia = np.zeros((3, 3))
    if (tensor := inertial.first("inertia")) is not None:
        ixx, iyy, izz, ixy, ixz, iyz = (tensor.number(key, 0.0) for key in MOMENTS)
        if missing := [key for key in MOMENTS if key not in tensor.attributes]:
            notes.append(tensor.note(f"{', '.join(missing)} is missing and taken as 0; urdfdom leaves all out."))
        inertia = np.array([[ixx, ixy, ixz], [ixy, iyy, iyz], [ixz, iyz, izz]])
    elif mass:
        notes.append(inertial.note(f"link {name!r} has mass but no <inertia>; it is a point mass."))
    R = T[:3, :3]
    if not np.array_equal(R, np.eye(3)):
        inertia = R @ inertia @ R.T
        inertia = 0.5 * (inertia + inertia.T)
    return Link(name, mass, T[:3, 3], inertia)


def _connection(element: Element, links: dict[str, Element], armature: float, notes: list[str]) -> Connection:
    name, kind = element.name(), _kind(element)
    parent, child = _ends(element, links, ("parent", "child"))
    damping, friction, extra = _dynamics(element, kind, notes)
    joint = Joint(
        name,
        kind,
        parent,
        child,
        placement=_origin(element),
        axis=_axis(element, kind, notes),
        armature=armature + extra if joint_kinds.KINDS[kind].nv else 0.0,
        damping=damping,
        friction=friction,
        limits=_limits(element, kind, notes),
        effort_limit=_bound(element, "effort"),
        velocity_limit=_bound(element, "velocity"),
        actuated=not joint_kinds.KINDS[kind].is_free and (element.get("independent") or "").lower() != "false",
    )
    return Connection(joint, where=f"{element.file}:{element.line}: ")


def _loop(element: Element, links: dict[str, Element], notes: list[str]) -> Connection:
    """The connection of a <loop>, which is never in the tree."""
    kind, roles = _kind(element), ("predecessor", "successor")
    predecessor, successor = _ends(element, links, roles)
    T_predecessor, T_successor = (_origin(element.require(role)) for role in roles)
    axis = _axis(element, kind, notes)
    joint = Joint(element.name(), kind, predecessor, successor, placement=T_predecessor, axis=axis)
    return Connection(joint, T_successor, loop=True, where=f"{element.file}:{element.line}: ")


def _kind(element: Element) -> str:
    kind = KINDS.get((element.get("type") or "").strip())
    if kind is None:
        element.fail(f"the {element.tag} type {element.get('type')!r} is not known. Types: {', '.join(KINDS)}.")
    return kind


def _ends(element: Element, links: dict[str, Element], roles: tuple[str, str]) -> tuple[str, str]:
    """The names of the two links that a joint or loop connects."""
    first, second = (element.require(role).name("link") for role in roles)
    for role, end in zip(roles, (first, second), strict=True):
        if end not in links:
            element.require(role).fail(
                f"link {end!r} is not in the file, though {element.tag} {element.name()!r} has it as {role}. "
                f"Links: {', '.join(list(links)[:40])}."
            )
    if first == second:
        element.fail(f"link {first!r} is both {roles[0]} and {roles[1]}.")
    return first, second


def _axis(element: Element, kind: str, notes: list[str]) -> Floats:
    default = np.array([1.0, 0.0, 0.0])  # the format's own default
    axis_element = element.first("axis")
    if axis_element is None or not joint_kinds.KINDS[kind].axis_count:
        return default
    if axis_element.get("xyz") is None:
        notes.append(axis_element.note("the axis has no xyz; it is taken as 1 0 0."))
    axis = axis_element.vector("xyz", 3, default)
    if float(np.linalg.norm(axis)) < 1e-9:
        axis_element.fail("the axis is zero; give a direction.")
    if abs(float(np.linalg.norm(axis)) - 1) > 1e-3:
        notes.append(axis_element.note(f"the axis has length {np.linalg.norm(axis):.4g}; it is normalised."))
    return axis


def _dynamics(element: Element, kind: str, notes: list[str]) -> tuple[float, float, float]:
    """Damping, friction and armature of a joint."""
    dynamics = element.first("dynamics")
    if dynamics is None or not joint_kinds.KINDS[kind].nv:
        return 0.0, 0.0, 0.0
    values = []
    for key in ("damping", "friction", "armature"):
        value = dynamics.number(key, 0.0)
        if value < 0:
            notes.append(dynamics.note(f"the {key} is negative ({value:g}); it is taken as 0."))
        values.append(max(value, 0.0))
    return values[0], values[1], values[2]


def _limits(element: Element, kind: str, notes: list[str]) -> tuple[float, float] | None:
    limit = element.first("limit")
    if limit is None:
        if kind in ("revolute", "prismatic"):
            notes.append(element.note(f"the {kind} joint has no <limit>; it is not limited."))
        return None
    notes.extend(
        limit.note(f"the {key} limit is negative: {limit.get(key)}; it is not used.")
        for key in ("effort", "velocity")
        if limit.get(key) is not None and limit.number(key, infinite=True) < 0
    )
    if kind not in ("revolute", "prismatic"):
        return None
    lower, upper = (limit.number(key, 0.0, infinite=True) for key in ("lower", "upper"))
    if limit.get("lower") is None and limit.get("upper") is None:
        notes.append(limit.note("the limit has neither lower nor upper; the joint is not limited."))
        return None
    return joint_limits(limit, lower, upper, notes)


def _bound(element: Element, key: str) -> float:
    """A joint's largest effort or velocity; the format has one for all freedoms."""
    limit = element.first("limit")
    return math.inf if limit is None else bound(limit.number(key, math.inf, infinite=True))


def _mimic(element: Element, joints: dict[str, Element], notes: list[str]) -> Coupling | None:
    mimic = element.first("mimic")
    if mimic is None:
        return None
    name, source = element.name(), mimic.name("joint")
    if source not in joints:
        notes.append(mimic.note(f"joint {source!r} is not in the file; the mimic is not used."))
        return None
    if source == name:
        mimic.fail("the joint mimics itself.")
    for end in (element, joints[source]):
        if end.get("type") not in ("revolute", "continuous", "prismatic"):
            notes.append(mimic.note(f"joint {end.get('name')!r} has not one freedom; the mimic is not used."))
            return None
    return Coupling(
        f"{name}_mimics_{source}", name, source, mimic.number("multiplier", 1.0), mimic.number("offset", 0.0)
    )


def _gear(
    element: Element, links: dict[str, Element], connections: list[Connection], notes: list[str]
) -> Coupling | None:
    """The coupling of a <coupling>: ratio times the joints to the predecessor is the joints to the successor.

    Both sums start at the links' nearest common ancestor; couplings are between two joints, so that
    longer sums are noted and left out.
    """
    into = {c.joint.child: c.joint for c in reversed(connections)}
    source, follower = (_above(end, into) for end in _ends(element, links, ("predecessor", "successor")))
    both = {joint.name for joint in source} & {joint.name for joint in follower}
    ends = [[j for j in above if j.name not in both and j.nv] for above in (source, follower)]
    ratio = element.require("ratio").number("value")
    if any(len(joints) != 1 or joints[0].nv != 1 for joints in ends):
        names = " and ".join(", ".join(repr(j.name) for j in joints[:20]) or "no joint" for joints in ends)
        notes.append(
            element.note(
                f"the coupling is between {names}; only one joint of one freedom can be coupled to one. It is "
                "not used: the joints move freely."
            )
        )
        return None
    return Coupling(element.name(), ends[1][0].name, ends[0][0].name, ratio)


def _above(link: str, into: dict[str, Joint]) -> list[Joint]:
    """The joints from a link to the base."""
    found: list[Joint] = []
    while link in into and len(found) < len(into):  # joints that form a cycle are refused later
        found.append(into[link])
        link = into[link].parent
    return found


def _base(root: Element, links: dict[str, Element], connections: list[Connection]) -> str:
    children = {connection.joint.child for connection in connections}
    bases = [name for name in links if name not in children]
    if not bases:
        root.fail("every link is some joint's child: the joints form a cycle and there is no base link.")
    return bases[0]


def _note_massless(
    bodies: list[Link], connections: list[Connection], links: dict[str, Element], notes: list[str]
) -> None:
    """Note moving links that carry nothing: no mass on them or on what is fixed to them or beyond."""
    mass = {body.name: body.mass for body in bodies}
    moving = {c.joint.child for c in connections if c.joint.nv}
    carries = {name for name, value in mass.items() if value > 0}
    parents = {c.joint.child: c.joint.parent for c in connections}
    for name in list(carries):
        above = parents.get(name)
        while above is not None and above not in carries:
            carries.add(above)
            above = parents.get(above)
    notes.extend(
        links[name].note(
            "the link moves but neither it nor what it carries has mass; the mass matrix is singular "
            "unless its joint has armature."
        )
        for name in links
        if name in moving and name not in carries
    )
