"""Where everything in an SDF file is: models within models, and poses relative to named frames.

    T_model_x = T_model_(relative_to x)  <pose of x>

``relative_to`` is by default the model for links, frames and nested models, the child link for joints,
and what a frame is attached to for frames. Names reach into nested models with ``::``. The world is the
scope around all models. Runs once a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path

import numpy as np

from factorgraph_dyn.model.files import rotations
from factorgraph_dyn.model.files.mjcf.scene import find_included
from factorgraph_dyn.model.files.xml_tree import Document, Element, Includes, shorten
from factorgraph_dyn.model.names import LONGEST_NAME
from factorgraph_dyn.spatial import Floats, inverse_pose, pose, rotation_of_quaternion
from factorgraph_dyn.text import parse_number

MAX_CHAIN = 200  # frames that lean on one another
MAX_NESTED = 50  # models within models, and files that include files
WORLD = "world"
MODEL = "__model__"
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}
SCENERY = ("sun", "ground_plane")  # Gazebo's own static models, which files include and nobody ships


@dataclass(eq=False)
class Scope:
    """A model, or the world: its named elements, its models, and where it is."""

    element: Element
    prefix: str
    parent: Scope | None  # None for the world
    version: float
    homes: dict[str, tuple[Scope, str]]  # the scope of every link of the file, and its name there, by full name
    named: dict[str, Element] = field(default_factory=dict)
    joints: dict[str, Element] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    static: bool = False
    known: dict[str, Floats] = field(default_factory=dict)  # poses found: T_model_x, and T_world_model
    asked: bool = False  # for its own pose, which must not lean on itself

    def full_name(self, name: str) -> str:
        """A name as seen from outside all models; a link called world is told from the world by its model."""
        if name == WORLD and not self.prefix and self.has_link(WORLD):
            return f"{self.element.name()}::{name}"
        return self.prefix + name

    def has_link(self, name: str) -> bool:
        """Whether the model itself has a link of that name."""
        return name in self.named and self.named[name].tag == "link"

    def is_world(self, name: str) -> bool:
        """Whether a name means the world: unless the model has a link called so."""
        return name == WORLD and WORLD not in self.named

    def inner(self, model: str, name: str, asker: Element) -> Scope:
        """The nested model that a name with ``::`` starts with."""
        if model not in self.nested:
            asker.fail(f"{name!r} is in no nested model. Models: {', '.join(self.nested) or 'none'}.")
        return self.nested[model]

    def find(self, name: str, asker: Element, *, joint: bool = False) -> tuple[Scope, str]:
        """The scope that holds a name, or a joint's, and the name in it."""
        scope = self
        *models, last = name.split("::")
        for model in models:
            scope = scope.inner(model, name, asker)
        names = scope.joints if joint else scope.named
        if last not in names:
            asker.fail(f"{name!r} is not in the model. Names: {', '.join(list(names)[:40])}.")
        return scope, last

    def T_world_model(self) -> Floats:
        """The pose of the model in the world, shape (4, 4)."""
        if self.parent is None:
            return np.eye(4)
        if MODEL not in self.known:
            if self.asked:
                self.element.fail("the model's pose leans on itself.")
            self.asked = True
            self.known[MODEL] = self.parent.T_world_of(self.element)
        return self.known[MODEL]

    def T_world(self, name: str, asker: Element) -> Floats:
        """The pose of a named link, joint, frame or model in the world, shape (4, 4)."""
        return np.eye(4) if self.is_world(name) else self.T_world_model() @ self.T_model(name, asker)

    def T_world_of(self, element: Element) -> Floats:
        """The pose of one of the model's own elements in the world, shape (4, 4)."""
        return self.T_world_model() @ self._T_model_of(element, 0)

    def T_world_link(self, full_name: str) -> Floats:
        """The pose of a link of any model, given by its full name, in the world, shape (4, 4)."""
        if full_name == WORLD:
            return np.eye(4)
        scope, name = self.homes[full_name]
        return scope.T_world(name, scope.named[name])

    def T_model(self, name: str, asker: Element, chain: int = 0) -> Floats:
        """The pose of a named thing in this model's frame, shape (4, 4)."""
        if name in ("", MODEL):
            return np.eye(4)
        if self.is_world(name):
            return np.asarray(inverse_pose(self.T_world_model()))
        if name in self.known:
            return self.known[name]
        if chain > MAX_CHAIN:
            asker.fail(f"the pose of {name[:60]!r} leans on itself, or on more than {MAX_CHAIN} frames.")
        if "::" in name:
            first, rest = name.split("::", 1)
            T_inner = self.inner(first, name, asker).T_model(rest, asker, chain + 1)
            T = self.T_model(first, asker, chain + 1) @ T_inner
        else:
            scope, last = self.find(name, asker)
            T = self._T_model_of(scope.named[last], chain)
        self.known[name] = T
        return T

    def _T_model_of(self, element: Element, chain: int) -> Floats:
        """The pose of one of the model's own elements in its frame, shape (4, 4)."""
        own = element.first("pose")
        T = self.T_model(_relative_to(element, own), element, chain + 1) @ read_pose(own)
        placed = element.get("placement_frame") if element.tag == "model" else None
        if placed:  # the pose is that of a frame in the model
            T = T @ inverse_pose(self.nested[element.name()].T_model(placed, element, chain + 1))
        return np.asarray(T)

    def link_of(self, name: str, asker: Element, chain: int = 0) -> str:
        """The full name of the link that a link, frame, joint or model is part of."""
        if self.is_world(name):
            return WORLD
        if chain > MAX_CHAIN:
            asker.fail(f"frame {name[:60]!r} is attached to itself.")
        if name == MODEL:
            return self.canonical(asker, chain + 1)
        if "::" in name:
            first, rest = name.split("::", 1)
            return self.inner(first, name, asker).link_of(rest, asker, chain + 1)
        scope, last = self.find(name, asker)
        element = scope.named[last]
        if element.tag == "link":
            return self.full_name(last)
        if element.tag == "frame":
            return self.link_of(element.get("attached_to") or MODEL, element, chain + 1)
        if element.tag == "joint":
            return self.link_of(child_text(element, "child"), element, chain + 1)
        return self.nested[last].canonical(element, chain + 1)

    @cached_property
    def _first_link(self) -> str | None:
        return next((name for name, element in self.named.items() if element.tag == "link"), None)

    def canonical(self, asker: Element, chain: int = 0) -> str:
        """The full name of the link the model's frame is part of: the one it names, else its first."""
        if self.parent is None:
            return WORLD
        if given := self.element.get("canonical_link"):
            return self.link_of(given, self.element, chain + 1)
        if self._first_link is not None:
            return self.full_name(self._first_link)
        if self.nested:
            return next(iter(self.nested.values())).canonical(asker, chain + 1)
        return asker.fail(f"model {self.prefix!r} has no link.")


@dataclass
class _Files:
    """Where a file's includes are sought, and what has been found."""

    main: Path
    folder: Path | None
    notes: list[str]
    includes: Includes
    homes: dict[str, tuple[Scope, str]] = field(default_factory=dict)

    def places(self, element: Element) -> list[Path]:
        """Where an include is sought: beside the main file, beside its own, and in the folders above the main one.

        Models lie beside one another in a folder of models; it is looked for no higher than includes may go.
        A text, which lies nowhere, is taken to lie there.
        """
        here = self.main.parent.resolve()
        inside = (self.folder or here).resolve()
        above = [folder for folder in here.parents if folder.is_relative_to(inside)]
        return [here, Path(element.file).parent, *above, inside]


def read_world(document: Document, top: Element, folder: Path | None, notes: list[str]) -> Scope:
    """The scope of the world, with the models of a file in it, includes read.

    Names are told apart by their models' where there are several.

    Args:
        document: The file.
        top: Its <world>, or the root where there is none.
        folder: The folder that included files must be in, or None to allow no includes.
        notes: Warnings are added here.
    """
    files = _Files(Path(top.file), folder, notes, Includes(document))
    scope = Scope(top, "", None, read_version(document.root), files.homes)
    members = _members(scope, files)
    several = sum(member.tag == "model" for member, _ in members) > 1
    for member, its_version in members:
        _enter(scope, member, files)
        if member.tag == "model":
            prefix = f"{member.name()}::" if several else ""
            scope.nested[member.name()] = _model(member, prefix, scope, its_version, files, 0)
    return scope


def _model(model: Element, prefix: str, parent: Scope, version: float, files: _Files, depth: int) -> Scope:
    """The scope of a model and of those in it."""
    if depth > MAX_NESTED:
        model.fail(f"models are nested deeper than {MAX_NESTED}.")
    if len(prefix) > LONGEST_NAME:
        model.fail(f"the names of the model and those around it have more than {LONGEST_NAME} characters in all.")
    scope = Scope(model, prefix, parent, version, files.homes)
    scope.static = parent.static or truth(model.first("static"))
    for member, its_version in _members(scope, files):
        name = member.name()
        _enter(scope, member, files)
        if member.tag == "model":
            scope.nested[name] = _model(member, f"{prefix}{name}::", scope, its_version, files, depth + 1)
    for name, member in scope.named.items():
        if member.tag == "link":
            if name == WORLD:
                files.notes.append(member.note(f"the link is not the world; it is called {scope.full_name(name)!r}."))
            if scope.full_name(name) in files.homes:
                member.fail(f"the link name {scope.full_name(name)!r} occurs twice.")
            files.homes[scope.full_name(name)] = scope, name
    return scope


def _members(scope: Scope, files: _Files) -> list[tuple[Element, float]]:
    """The links, joints, frames and models of a scope with the version each is written in, includes read."""
    found: list[tuple[Element, float]] = []
    for child in scope.element.children:
        if child.tag == "include" and not _is_scenery(child, scope, files):
            found += _included(child, files)
        elif child.tag in ("link", "joint", "frame", "model"):
            found.append((child, scope.version))
    return found


def _enter(scope: Scope, member: Element, files: _Files) -> None:
    """Enter a name; one that a joint shares means the other, as it did before version 1.7 forbade it."""
    name = member.name()
    same = scope.joints.get(name) if member.tag == "joint" else scope.named.get(name)
    if same is not None and (same.tag == "joint") == (member.tag == "joint"):
        member.fail(f"the name {name!r} is used twice in the {scope.element.tag}, first in line {same.line}.")
    if (other := scope.named.get(name)) is not None:
        noun = member.tag if other.tag == "joint" else other.tag
        files.notes.append(member.note(f"a joint and a {noun} share the name; as a frame it means the {noun}."))
    if member.tag == "joint":
        scope.joints[name] = member
        scope.named.setdefault(name, member)
    else:
        scope.named.pop(name, None)  # so that links stay in their order
        scope.named[name] = member


def _is_scenery(element: Element, scope: Scope, files: _Files) -> bool:
    """Whether an include of the world is one of Gazebo's own that is not there; noted."""
    name = child_text(element, "uri").removeprefix("model://")
    if scope.parent is not None or name not in SCENERY:
        return False
    if files.folder is not None and any((place / name).exists() for place in files.places(element)):
        return False
    files.notes.append(element.note(f"Gazebo's own model {name!r} is not there; it does not move and is left out."))
    return True


def _included(element: Element, files: _Files) -> list[tuple[Element, float]]:
    """The model that an <include> stands for, with the name and pose the include gives it; none for lights."""
    if truth(element, "merge"):
        element.fail("merge='true' is not read; include the model without it.")
    uri = child_text(element, "uri")
    name = uri.removeprefix("model://").removeprefix("file://")
    path = find_included(element, name, files.places(element), files.folder)
    if path.is_dir():  # whose model may be a link that leads out
        path = find_included(element, f"{name}/model.sdf", files.places(element), files.folder)
    if str(path.resolve()) == str(Path(element.file).resolve()):
        element.fail("the file includes itself.")
    document = files.includes.read(element, path)
    files.notes.extend(document.notes)
    model = document.root.first("model") if document.root.tag == "sdf" else None
    if model is None:
        if document.root.first("light") is not None:
            return []
        element.fail(f"the included file {uri!r} holds no <model> in <sdf>.")
    if (rename := element.first("name")) is not None and rename.text.strip():
        model.attributes["name"] = rename.text.strip()
    if (placed := element.first("placement_frame")) is not None:
        model.attributes["placement_frame"] = placed.text.strip()
    for tag in ("pose", "static"):
        if (own := element.first(tag)) is not None:
            model.children = [own, *(child for child in model.children if child.tag != tag)]
    return [(model, read_version(document.root))]


def read_version(root: Element) -> float:
    """The version of SDF a file is written in."""
    text = root.get("version") or "1.6"
    try:
        major, minor = map(parse_number, text.split(".")[:2])
        return int(major) + int(minor) / 100  # 1.10 comes after 1.9
    except (ValueError, OverflowError):
        root.fail(f"the version {text[:20]!r} is no version of SDF, such as 1.7.")


def read_pose(element: Element | None) -> Floats:
    """The pose of a <pose> element, the identity where there is none, shape (4, 4)."""
    if element is None or not element.text.strip():
        return np.eye(4)
    if element.get("rotation_format") == "quat_xyzw":
        values = element.parse_numbers(element.text, "the pose", (7,))
        if float(np.linalg.norm(values[3:])) < 1e-9:
            element.fail("the quaternion is zero.")
        return np.asarray(pose(np.asarray(rotation_of_quaternion(values[3:])), values[:3]))
    values = element.parse_numbers(element.text, "the pose", (6,))
    rpy = np.deg2rad(values[3:]) if truth(element, "degrees") else values[3:]
    return np.asarray(pose(rotations.from_rpy(rpy), values[:3]))


def truth(element: Element | None, attribute: str | None = None, *, default: bool = False) -> bool:
    """A boolean, written in an attribute or as the text of an element, in letters of either case; the format's own."""
    if element is None:
        return default
    text = element.text if attribute is None else element.get(attribute) or ""
    word = text.strip().lower()
    if word and word not in BOOLEANS:
        what = "the text" if attribute is None else f"the attribute {attribute!r}"
        element.fail(f"{what} is {shorten(text.strip())!r}; it must be one of {', '.join(BOOLEANS)}.")
    return BOOLEANS[word] if word else default


def child_text(element: Element, tag: str) -> str:
    """The text of a required child element."""
    child = element.require(tag)
    text = child.text.strip()
    if not text:
        child.fail("the element is empty; give a name.")
    return text


def _relative_to(element: Element, own: Element | None) -> str:
    """What an element's pose is relative to."""
    if own is not None and (given := own.get("relative_to") or own.get("frame")):
        return given
    if element.tag == "joint":
        return child_text(element, "child")
    if element.tag == "frame":
        return element.get("attached_to") or MODEL
    return MODEL


def child_number(element: Element, tag: str, default: float, *, infinite: bool = False) -> float:
    """The number that a child element holds, finite unless said otherwise."""
    child = element.first(tag)
    return default if child is None else child.parse_number(child.text, "the text", infinite=infinite)
