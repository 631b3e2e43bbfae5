"""What an MJCF file sets for everything in it: includes, default classes, compiler settings.

    attributes of an element = those of its default class (inherited class by class), then its own

The class is the element's ``class``, else the nearest ``childclass`` above, else the global one.
Runs once a file.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np

from factorgraph_dyn.model.files import rotations
from factorgraph_dyn.model.files.xml_tree import Document, Element, Includes
from factorgraph_dyn.spatial import Floats, pose

MAIN = "main"
ACTUATORS = (
    "general",
    "motor",
    "position",
    "velocity",
    "intvelocity",
    "damper",
    "cylinder",
    "muscle",
    "adhesion",
    "dcmotor",
    "pid",
    "orientation",
    "plugin",
)
INHERITING = ("joint", "freejoint", "geom", "site", "mesh", "tendon", "equality", "actuator")  # of what is read
LONGEST_FILLED = 1000  # characters of an inherited list, which every element of a class repeats
FILLED = ("size", "gear", "damping", "stiffness")  # lists of which an element may give only the first few
ORIENTATIONS = ("quat", "axisangle", "xyaxes", "zaxis", "euler")


@dataclass
class Settings:
    """Compiler and option settings, with MuJoCo's defaults."""

    degrees: bool = True
    eulerseq: str = "xyz"
    autolimits: bool = True
    inertiafromgeom: str = "auto"
    inertia_groups: tuple[float, float] = (0.0, 5.0)
    boundmass: float = 0.0
    boundinertia: float = 0.0
    balanceinertia: bool = False
    settotalmass: float = -1.0
    fusestatic: bool = False
    equalities: bool = True
    gravity: Floats = field(default_factory=lambda: np.array([0.0, 0.0, -9.81]))


@dataclass
class Scene:
    """A whole MJCF file with its includes: sections, defaults and settings."""

    root: Element
    settings: Settings
    defaults: dict[str, dict[str, dict[str, str]]]
    notes: list[str]

    def sections(self, tag: str) -> Iterator[Element]:
        """The children of every top-level section with a tag."""
        for section in self.root.all(tag):
            yield from section.children

    @cached_property
    def assets(self) -> dict[tuple[str, str | None], Element]:
        """Meshes, materials and others by tag and name; a mesh without a name is called after its file."""
        named = ((e, e.get("name") or PurePosixPath(e.get("file") or "").stem) for e in self.sections("asset"))
        return {(element.tag, name): element for element, name in named}

    def resolve(self, element: Element, childclass: str, tag: str | None = None) -> Element:
        """The element with the attributes of its default class filled in."""
        name = element.get("class") or childclass
        if name not in self.defaults:
            element.fail(f"the default class {name!r} is not defined. Classes: {', '.join(list(self.defaults)[:40])}.")
        inherited = self.defaults[name].get(tag or element.tag)
        if not inherited:
            return element
        attributes = inheriting(element.attributes, inherited)
        return Element(element.tag, attributes, element.file, element.line, element.children, element.text)

    def pose(self, element: Element) -> Floats:
        """The pose that an element's pos and orientation attributes describe, shape (4, 4)."""
        T = np.eye(4)
        T[:3, 3] = element.vector("pos", 3, (0.0, 0.0, 0.0))
        T[:3, :3] = self.rotation(element)
        return T

    def rotation(self, element: Element) -> Floats:
        """The rotation that an element's orientation attributes describe, shape (3, 3)."""
        given = [key for key in ORIENTATIONS if key in element.attributes]
        if len(given) > 1:
            element.fail(f"the orientation is given twice, by {' and '.join(given)}; give one.")
        key = given[0] if given else "quat"
        R: Floats | None
        if key == "quat":
            return rotations.from_wxyz(element.vector(key, 4, (1.0, 0.0, 0.0, 0.0)))
        if key == "euler":
            return rotations.from_euler(self.angle(element.vector(key, 3)), self.settings.eulerseq)
        if key == "axisangle":
            values = element.vector(key, 4)
            R = rotations.from_axis_angle(values[:3], float(self.angle(values[3:])[0]))
        elif key == "zaxis":
            R = rotations.from_z_axis(element.vector(key, 3))
        else:
            R = rotations.from_xy_axes(element.vector(key, 6))
        if R is None:
            element.fail(f"{key} holds an axis that is zero or parallel to the other one.")
        return R

    def angle(self, values: Floats) -> Floats:
        """Angles of the file in radians."""
        return np.deg2rad(values) if self.settings.degrees else values


def read_scene(document: Document, folder: Path | None) -> Scene:
    """The scene of an MJCF file, includes in place.

    Raises:
        ModelError: An include that leaves the folder or repeats, or settings that make no sense.
    """
    notes = list(document.notes)
    main = Path(document.root.file)
    root = _expanded(document.root, folder, main.parent, [main], notes, Includes(document))
    scene = Scene(root, Settings(), {MAIN: {}}, notes)
    for compiler in root.all("compiler"):
        _read_compiler(compiler, scene.settings, notes)
    _read_options(root.all("option"), scene.settings, notes)
    for default in root.all("default"):
        _read_default(default, scene.defaults, None)
    return scene


def find_included(element: Element, name: str, places: Sequence[Path], folder: Path | None) -> Path:
    """The path of an included file: in the first of the places that has it, and inside the folder.

    As in MuJoCo folders are told apart by slashes of either kind, on every machine.
    """
    name = name.replace("\\", "/")
    if folder is None:
        element.fail(f"the text includes the file {name!r}; only files that are loaded can include others.")
    try:
        paths, inside = [(place / name).resolve() for place in places], folder.resolve()
        path = next((path for path in paths if path.exists()), paths[0])
    except (OSError, ValueError, RuntimeError) as error:
        element.fail(f"the included file {name[:60]!r} cannot be found: {error}.")
    if not path.is_relative_to(inside):
        element.fail(
            f"the included file {name!r} is outside the folder {str(folder)!r}, which included files must "
            "not leave. Pass folder= to load to allow a larger one."
        )
    return path


def _expanded(
    element: Element,
    folder: Path | None,
    here: Path,
    seen: list[Path],
    notes: list[str],
    includes: Includes,
    depth: int = 0,
) -> Element:
    """The element with every <include> replaced by what the included file holds.

    As in MuJoCo a file is sought beside the main one, and then beside the one that includes it.
    """
    if depth > 400:
        element.fail("included files nest elements too deeply.")
    children: list[Element] = []
    for child in element.children:
        if child.tag != "include":
            children.append(_expanded(child, folder, here, seen, notes, includes, depth + 1))
            continue
        path = find_included(child, child.name("file"), (here, Path(child.file).parent), folder)
        if path in [other.resolve() for other in seen]:
            child.fail(f"the file {child.get('file')!r} is included twice; a file can be included once.")
        seen.append(path)
        included = includes.read(child, path)
        notes.extend(included.notes)
        children.extend(_expanded(included.root, folder, here, seen, notes, includes, depth + 1).children)
    element.children = children
    return element


def _read_compiler(element: Element, settings: Settings, notes: list[str]) -> None:
    angle = _choice(element, "angle", ("degree", "radian"))
    if angle is not None:
        settings.degrees = angle == "degree"
    if (sequence := element.get("eulerseq")) is not None:
        if len(sequence) != 3 or any(letter not in "xyzXYZ" for letter in sequence):
            element.fail(f"eulerseq is {sequence!r}; it must be three of x y z X Y Z.")
        settings.eulerseq = sequence
    if _choice(element, "coordinate", ("local", "global")) == "global":
        element.fail("coordinate='global' is not read; MuJoCo dropped it too. Save the model with local ones.")
    settings.autolimits = _truth(element, "autolimits", settings.autolimits)
    settings.balanceinertia = _truth(element, "balanceinertia", settings.balanceinertia)
    settings.inertiafromgeom = (
        _choice(element, "inertiafromgeom", ("false", "true", "auto")) or settings.inertiafromgeom
    )
    low, high = element.vector("inertiagrouprange", 2, settings.inertia_groups)
    settings.inertia_groups = float(low), float(high)
    settings.boundmass = element.number("boundmass", settings.boundmass)
    settings.boundinertia = element.number("boundinertia", settings.boundinertia)
    settings.settotalmass = element.number("settotalmass", settings.settotalmass)
    settings.fusestatic = _truth(element, "fusestatic", settings.fusestatic)
    if _truth(element, "alignfree", False):
        notes.append(element.note("alignfree is not used: a free body's frame stays as written."))


def _read_options(options: list[Element], settings: Settings, notes: list[str]) -> None:
    """What the options say; of several, the last that says something about a matter counts."""
    said = {key: element for element in options for key in element.attributes}
    flags = {key: flag for element in options for flag in element.all("flag") for key in flag.attributes}
    disabled = {key for key, flag in flags.items() if flag.get(key) == "disable"}
    if "gravity" in said:
        settings.gravity = said["gravity"].vector("gravity", 3)
    if "gravity" in disabled:
        settings.gravity = np.zeros(3)
    settings.equalities = disabled.isdisjoint({"equality", "constraint"})
    notes.extend(
        flags[key].note(f"{key}='disable' is not used: springs, dampers and friction act as written.")
        for key in ("passive", "spring", "damper", "frictionloss", "constraint")
        if key in disabled
    )
    notes.extend(
        said[key].note(f"the {key} of the medium is not used: there is no fluid.")
        for key in ("density", "viscosity")
        if key in said and said[key].number(key) != 0
    )


def _read_default(element: Element, defaults: dict[str, dict[str, dict[str, str]]], parent: str | None) -> None:
    """Enter a default class and those nested in it."""
    name = element.get("class")
    if parent is None:
        attributes = defaults[MAIN]
        defaults[name or MAIN] = attributes
    else:
        if not name:
            element.fail("a nested default needs the attribute 'class'.")
        attributes = dict(defaults[parent])
        if name in defaults:
            element.fail(f"the default class {name!r} is defined twice; rename one.")
        defaults[name] = attributes
    for child in element.children:
        if child.tag != "default":
            # The defaults of all kinds of actuators are those of one and the same.
            tag = "actuator" if child.tag in ACTUATORS else child.tag
            if long := [key for key in FILLED if len(child.get(key) or "") > LONGEST_FILLED]:
                child.fail(f"the default {long[0]} has more than {LONGEST_FILLED} characters; give a few numbers.")
            if tag in INHERITING:
                attributes[tag] = inheriting(child.attributes, attributes.get(tag, {}))
    for child in element.all("default"):
        _read_default(child, defaults, name or MAIN)


def inheriting(own: dict[str, str], inherited: dict[str, str]) -> dict[str, str]:
    """An element's or class's own attributes, and of those it inherits what they do not replace.

    As in MuJoCo an orientation replaces any other, whatever words either is written in, and a list that is
    shorter than the inherited one replaces its beginning.
    """
    if not own.keys().isdisjoint(ORIENTATIONS):
        inherited = {key: value for key, value in inherited.items() if key not in ORIENTATIONS}
    lists = [(key, own[key].split(), inherited[key].split()) for key in FILLED if key in own and key in inherited]
    return {**inherited, **own, **{key: " ".join(mine + theirs[len(mine) :]) for key, mine, theirs in lists}}


def _choice(element: Element, attribute: str, allowed: tuple[str, ...]) -> str | None:
    value = element.get(attribute)
    if value is not None and value not in allowed:
        element.fail(f"{attribute} is {value!r}; it must be one of {', '.join(allowed)}.")
    return value


def _truth(element: Element, attribute: str, default: bool) -> bool:
    value = _choice(element, attribute, ("true", "false"))
    return default if value is None else value == "true"


def translation(p: Floats) -> Floats:
    """The pose that only moves, shape (4, 4)."""
    return np.asarray(pose(np.eye(3), p))


def pose_between(element: Element) -> tuple[Floats, float]:
    """The pose in the middle of an element's ``fromto``, whose z axis points back along it, and half its length."""
    ends = element.vector("fromto", 6)
    way = ends[:3] - ends[3:]
    R = rotations.from_z_axis(way)
    if R is None:
        element.fail("fromto needs two different points.")
    return np.asarray(pose(R, 0.5 * (ends[:3] + ends[3:]))), 0.5 * float(np.linalg.norm(way))
