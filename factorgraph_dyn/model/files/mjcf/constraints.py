"""Equalities, tendons and actuators of an MJCF file, as far as they are linear.

    connect   a spherical loop
    weld      a fixed loop; with torquescale 0, which leaves turning free, a spherical one
    joint     q_1 - ref_1 = c_0 + c_1 (q_2 - ref_2), a coupling; with one joint only, a locked joint
    tendon    a fixed tendon over two joints held at a length, likewise a coupling
    actuator  which joints have a motor, and by which gear

Higher polynomials, tendons over more joints and flexible parts are refused or noted.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from factorgraph_dyn.model.assembly import Connection
from factorgraph_dyn.model.files import rotations
from factorgraph_dyn.model.files.mjcf.effects import constant_coefficient, none_below_zero, note_yield
from factorgraph_dyn.model.files.mjcf.scene import ACTUATORS, MAIN, Scene, translation
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.model.names import TakenNames
from factorgraph_dyn.model.parts import Coupling, Joint
from factorgraph_dyn.spatial import Floats, inverse_pose, pose

Tendon = dict[str, float]  # the coefficient of each joint


@dataclass
class MjcfConstraints:
    """Loops and couplings, joints locked at a place, and what tendons and actuators add to single joints."""

    loops: list[Connection] = field(default_factory=list)
    couplings: list[Coupling] = field(default_factory=list)
    locked: dict[str, float] = field(default_factory=dict)
    joint_effects: dict[str, dict[str, float]] = field(default_factory=dict)


@dataclass
class _Context:
    scene: Scene
    joints: dict[str, Joint]
    references: dict[str, float]
    T_world_body: dict[str, Floats]
    sites: dict[str, tuple[str, Floats]]
    mocap: set[str]
    names: TakenNames
    tendons: dict[str, Tendon]
    made: MjcfConstraints

    def name(self, element: Element, wanted: str) -> str:
        return self.names.new(element.get("name") or wanted)


def read_constraints(
    scene: Scene,
    joints: dict[str, Joint],
    references: dict[str, float],
    T_world_body: dict[str, Floats],
    sites: dict[str, tuple[str, Floats]],
    mocap: set[str],
    names: TakenNames,
) -> MjcfConstraints:
    """The constraints of the file's equality and tendon sections.

    Args:
        scene: The file.
        joints: Its joints by name.
        references: The coordinate of each joint at the reference configuration.
        T_world_body: The pose of each body there.
        sites: The body each site is on and its pose in it.
        mocap: Names of the bodies that are moved from outside.
        names: Names that are taken; those given here are added.
    """
    made = MjcfConstraints()
    context = _Context(scene, joints, references, T_world_body, sites, mocap, names, {}, made)
    for element in scene.sections("tendon"):
        _read_tendon(scene.resolve(element, MAIN, "tendon"), context)
    for element in scene.sections("equality"):
        equality = scene.resolve(element, MAIN, "equality")
        if equality.get("active") == "false" or not scene.settings.equalities:
            scene.notes.append(equality.note("the equality is not active; it is not read."))
        elif equality.tag in ("connect", "weld"):
            _read_loop(equality, context)
        elif equality.tag == "joint":
            _read_joint_equality(equality, context)
        elif equality.tag == "tendon":
            _read_tendon_equality(equality, context)
        else:
            equality.fail("this equality is not supported; use connect, weld, joint or tendon, or remove it.")
    return made


@dataclass(frozen=True)
class Actuator:
    """An actuator whose force acts on joints by fixed gears; none where it acts otherwise."""

    name: str
    gears: dict[str, tuple[float, ...]]
    armature: float  # before the gear
    damping: float
    where: Element


def read_actuators(scene: Scene) -> list[Actuator]:
    """The actuators of the file, and the gears by which each drives joints."""
    tendons = {name: e for e in scene.sections("tendon") if e.tag == "fixed" and (name := e.get("name"))}
    found = []
    for index, element in enumerate(scene.sections("actuator"), start=1):
        if element.tag not in ACTUATORS:
            element.fail(f"the actuator is not known. Actuators: {', '.join(ACTUATORS)}.")
        whole = scene.resolve(element, MAIN, "actuator")
        given = whole.parse_numbers(whole.get("gear") or "1", "the attribute 'gear'")
        gear = (*(float(x) for x in given), *(0.0,) * 6)[:6]
        driven: dict[str, tuple[float, ...]] = {}
        if joint := element.get("joint"):
            driven = {joint: (1.0, 1.0, 1.0) if is_orientation_servo(whole) else gear}
        elif joint := element.get("jointinparent"):
            driven = {joint: gear[:1]}
        elif (tendon := tendons.get(element.get("tendon") or "")) is not None:
            driven = {name: (gear[0] * c,) for name, c in _coefficients(tendon).items()}
        name = element.get("name") or f"actuator_{index}"
        armature = whole.number("armature", 0.0)
        damping = constant_coefficient(whole, "damping")
        found.append(Actuator(name, driven, armature, damping, whole))
    return found


def is_orientation_servo(element: Element) -> bool:
    """Whether an actuator turns a ball joint about all axes at once, by several controls."""
    return element.tag == "orientation" or element.get("gaintype") == "so3"


def add_actuator_effects(
    actuators: list[Actuator], constraints: MjcfConstraints, joints: dict[str, Joint], notes: list[str]
) -> None:
    """Add what actuators reflect on the joints they drive: armature and damping, times the squared gear."""
    for actuator in actuators:
        if not (actuator.armature or actuator.damping):
            continue
        single = next(iter(actuator.gears.items())) if len(actuator.gears) == 1 else None
        if single is None or single[0] not in joints or joints[single[0]].nv != 1:
            notes.append(actuator.where.note("its armature and damping are not used: it drives not one joint."))
            continue
        effect = constraints.joint_effects.setdefault(single[0], {})
        given = {"armature": actuator.armature, "damping": actuator.damping}
        for key, value in none_below_zero(given, actuator.where, notes).items():
            effect[key] = effect.get(key, 0.0) + single[1][0] * single[1][0] * value


def _coefficients(tendon: Element) -> Tendon:
    found: Tendon = {}
    for child in tendon.all("joint"):
        found[child.name("joint")] = found.get(child.name("joint"), 0.0) + child.number("coef")
    return found


def _read_tendon(element: Element, context: _Context) -> None:
    effects = {
        "stiffness": element.parse_numbers(element.get("stiffness") or "0", "the attribute 'stiffness'"),
        "damping": element.parse_numbers(element.get("damping") or "0", "the attribute 'damping'"),
        "armature": element.parse_numbers(element.get("armature") or "0", "the attribute 'armature'"),
        "friction": element.parse_numbers(element.get("frictionloss") or "0", "the attribute 'frictionloss'"),
    }
    active = {key: float(x[0]) for key, x in effects.items() if x.any()}
    constant = not any(x[1:].any() for x in effects.values())
    note_yield(element, context.scene.notes)
    if element.tag == "fixed":
        coefficients = _coefficients(element)
        for joint in coefficients:
            _check_joint(element, joint, context)
        if name := element.get("name"):
            if name in context.tendons:
                element.fail("the tendon is defined twice; rename one.")
            context.tendons[name] = coefficients
        simple = set(active) <= {"damping", "armature"} and all(x >= 0 for x in active.values())
        if active and simple and constant and len(coefficients) == 1:
            joint, c = next(iter(coefficients.items()))
            effect = context.made.joint_effects.setdefault(joint, {})
            for key, value in active.items():
                effect[key] = effect.get(key, 0.0) + c * c * value
            return
    if active:
        context.scene.notes.append(
            element.note(f"the tendon's {', '.join(active)} is not used: tendons exert no force here.")
        )


def _read_loop(element: Element, context: _Context) -> None:
    """A connect or weld as a loop."""
    if element.get("site1") or element.get("site2"):
        places = []
        for key in ("site1", "site2"):
            site = element.name(key)
            if site not in context.sites:
                element.fail(f"site {site!r} is not in the file.")
            places.append(context.sites[site])
        (first, T_1), (second, T_2) = places
    else:
        first, second = element.name("body1"), element.get("body2") or "world"
        for body in (first, second):
            if body not in context.T_world_body:
                element.fail(f"body {body!r} is not in the file.")
        T_1, T_2 = _body_places(element, first, second, context)
    if first == second:
        element.fail(f"body {first!r} is joined to itself.")
    if {first, second} & context.mocap:
        context.scene.notes.append(element.note("one body is moved from outside (mocap); the equality is not read."))
        return
    turns = element.tag == "connect" or element.number("torquescale", 1.0) == 0
    kind = "spherical" if turns else "fixed"
    name = context.name(element, f"{element.tag}_{first}_{second}")
    joint = Joint(name, kind, first, second, placement=T_1)
    context.made.loops.append(Connection(joint, T_2, loop=True, where=f"{element.file}:{element.line}: "))


def _body_places(element: Element, first: str, second: str, context: _Context) -> tuple[Floats, Floats]:
    """The loop's frame in both bodies, from the anchor or the relative pose.

    A connect's anchor is in the first body, a weld's in the second; a relative pose is that of the anchor.
    """
    T_first_second = inverse_pose(context.T_world_body[first]) @ context.T_world_body[second]
    if element.tag == "connect":
        T_1 = translation(element.vector("anchor", 3))
        return T_1, np.asarray(inverse_pose(T_first_second) @ T_1)
    T_2 = translation(element.vector("anchor", 3, (0.0, 0.0, 0.0)))
    if element.get("relpose") is not None:
        values = element.vector("relpose", 7)
        if float(np.linalg.norm(values[3:])) > 1e-10:
            return np.asarray(pose(rotations.from_wxyz(values[3:]), values[:3])), T_2
    return np.asarray(T_first_second @ T_2), T_2


def _read_joint_equality(element: Element, context: _Context) -> None:
    joint, source = element.name("joint1"), element.get("joint2")
    for name in (joint, source) if source else (joint,):
        _check_joint(element, str(name), context)
    c = _linear_coefficients(element)
    if not source:
        if joint in context.made.locked:
            element.fail(f"joint {joint!r} is locked twice.")
        context.made.locked[joint] = context.references[joint] + float(c[0])
        return
    if joint == source:
        element.fail(f"joint {joint!r} is coupled to itself.")
    offset = context.references[joint] + c[0] - c[1] * context.references[source]
    name = context.name(element, f"{joint}_follows_{source}")
    context.made.couplings.append(Coupling(name, joint, source, float(c[1]), float(offset)))


def _read_tendon_equality(element: Element, context: _Context) -> None:
    """A fixed tendon over two joints that keeps its length."""
    name = element.name("tendon1")
    if name not in context.tendons or element.get("tendon2"):
        element.fail("only one fixed tendon that keeps its length is supported; remove the equality.")
    c = _linear_coefficients(element)
    terms = [(joint, k) for joint, k in context.tendons[name].items() if k != 0]
    if len(terms) != 2:
        element.fail(f"tendon {name!r} runs over {len(terms)} joints; couplings are between two.")
    (joint, k_1), (source, k_2) = terms
    # k_1 (q_1 - ref_1) + k_2 (q_2 - ref_2) = c_0
    ratio = -k_2 / k_1
    offset = context.references[joint] + c[0] / k_1 - ratio * context.references[source]
    context.made.couplings.append(
        Coupling(context.name(element, f"{joint}_follows_{source}"), joint, source, ratio, float(offset))
    )


def _linear_coefficients(element: Element) -> Floats:
    c = element.parse_numbers(element.get("polycoef") or "0 1 0 0 0", "the attribute 'polycoef'", (1, 2, 3, 4, 5))
    c = np.concatenate([c, [0.0, 1.0, 0.0, 0.0, 0.0][len(c) :]])
    if c[2:].any():
        element.fail(
            f"the equality is a polynomial of higher degree ({element.get('polycoef')}); couplings are "
            "linear. Make it linear or remove it."
        )
    return c


def _check_joint(element: Element, name: str, context: _Context) -> None:
    joint = context.joints.get(name)
    if joint is None or joint.nv != 1:
        single = [x.name for x in context.joints.values() if x.nv == 1]
        element.fail(f"joint {name!r} is not in the file or has not one freedom. Joints: {', '.join(single[:40])}.")
