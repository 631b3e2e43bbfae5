"""Where everything in an SDF file is: models within models, and poses relative to named frames.

    T_model_x = T_model_(relative_to x)  <pose of x>

``relative_to`` is by default the model for links, frames and nested models, the child link for joints,
and what a frame is attached to for frames. Names reach into nested models with ``::``. Runs once a file.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from factorgraph_dyn.model.readers import rotations
from factorgraph_dyn.model.readers.mjcf_scene import find_included
from factorgraph_dyn.model.readers.xml_tree import Element, read_included
from factorgraph_dyn.spatial import Floats, inverse_pose, pose, rotation_of_quaternion

MAX_CHAIN = 200  # frames that lean on one another
MAX_NESTED = 50  # models within models, and files that include files
WORLD = "world"
MODEL = "__model__"


@dataclass(eq=False)
class Scope:
    """A model: its named elements, its nested models, and where it is."""

    element: Element
    prefix: str
    parent: Scope | None
    version: float
    named: dict[str, Element] = field(default_factory=dict)
    nested: dict[str, Scope] = field(default_factory=dict)
    static: bool = False
    known: dict[str, Floats] = field(default_factory=dict)  # poses found: T_model_x, and T_world_model

    def full_name(self, name: str) -> str:
        """A name as seen from outside all models."""
        return self.prefix + name

    def find(self, name: str, asker: Element) -> tuple[Scope, str]:
        """The scope that holds a name, and the name in it."""
        scope = self
        *models, last = name.split("::")
        for model in models:
            if model not in scope.nested:
                asker.fail(f"{name!r} is in no nested model. Models: {', '.join(scope.nested) or 'none'}.")
            scope = scope.nested[model]
        if last not in scope.named:
            asker.fail(f"{name!r} is not in the model. Names: {', '.join(list(scope.named)[:40])}.")
        return scope, last

    def T_world_model(self) -> Floats:
        """The pose of the model in the world, shape (4, 4)."""
        if MODEL not in self.known:
            if self.parent is None:
                T = read_pose(self.element.first("pose"))
            else:
                T = self.parent.T_world_model() @ self.parent.T_model(self.element.name(), self.element)
            self.known[MODEL] = T
        return self.known[MODEL]

    def T_world(self, name: str, asker: Element) -> Floats:
        """The pose of a named link, joint, frame or model in the world, shape (4, 4)."""
        if name == WORLD:
            return np.eye(4)
        return self.T_world_model() @ self.T_model(name, asker)

    def T_model(self, name: str, asker: Element, chain: int = 0) -> Floats:
        """The pose of a named thing in this model's frame, shape (4, 4)."""
        if name in ("", MODEL):
            return np.eye(4)
        if name == WORLD:
            return np.asarray(inverse_pose(self.T_world_model()))
        if name in self.known:
            return self.known[name]
        if chain > MAX_CHAIN:
            asker.fail(f"the pose of {name[:60]!r} leans on itself, or on more than {MAX_CHAIN} frames.")
        if "::" in name:
            first, rest = name.split("::", 1)
            if first not in self.nested:
                asker.fail(f"{name!r} is in no nested model. Models: {', '.join(self.nested) or 'none'}.")
            inner = self.nested[first].T_model(rest, asker, chain + 1)
            T = self.T_model(first, asker, chain + 1) @ inner
        else:
            scope, last = self.find(name, asker)
            element = scope.named[last]
            own = element.first("pose")
            T = self.T_model(_relative_to(element, own), element, chain + 1) @ read_pose(own)
        self.known[name] = T
        return T

    def link_of(self, name: str, asker: Element, chain: int = 0) -> str:
        """The full name of the link that a link or frame is part of."""
        if name == WORLD:
            return WORLD
        if chain > MAX_CHAIN:
            asker.fail(f"frame {name[:60]!r} is attached to itself.")
        scope, last = self.find(name, asker)
        element = scope.named[last]
        if element.tag == "link":
            return scope.full_name(last)
        if element.tag == "frame":
            attached = element.get("attached_to") or ""
            if attached in ("", MODEL):
                return scope.canonical(element)
            return scope.link_of(attached, element, chain + 1)
        if element.tag == "joint":
            return scope.link_of(child_text(element, "child"), element, chain + 1)
        return scope.nested[last].canonical(element)

    def canonical(self, asker: Element) -> str:
        """The full name of the model's first link."""
        for name, element in self.named.items():
            if element.tag == "link":
                return self.full_name(name)
        if self.nested:
            return next(iter(self.nested.values())).canonical(asker)
        return asker.fail(f"model {self.prefix!r} has no link.")


def read_scopes(
    models: list[Element], version: float, folder: Path | None, notes: list[str], *, several: bool
) -> list[Scope]:
    """The scopes of the models of a file, includes read.

    Args:
        models: <model> and <include> elements of the file's top level.
        version: The file's version of SDF.
        folder: The folder that included files must be in, or None to allow no includes.
        notes: Warnings are added here.
        several: Whether names must tell the models apart.
    """
    scopes = []
    for element in models:
        model, its_version = element, version
        if element.tag == "include":
            model, its_version = _included(element, version, folder, notes)
        prefix = f"{model.name()}::" if several else ""
        scopes.append(_scope(model, prefix, None, its_version, folder, notes, 0))
    return scopes


def _scope(
    model: Element,
    prefix: str,
    parent: Scope | None,
    version: float,
    folder: Path | None,
    notes: list[str],
    depth: int,
) -> Scope:
    if depth > MAX_NESTED:
        model.fail(f"models are nested deeper than {MAX_NESTED}.")
    static = model.first("static")
    scope = Scope(model, prefix, parent, version)
    scope.static = (static is not None and static.text.strip() in ("1", "true")) or (
        parent is not None and parent.static
    )
    if model.get("placement_frame"):
        model.fail("placement_frame is not read; give the model's pose directly.")
    for child in model.children:
        inner, inner_version = child, version
        if child.tag == "include":
            if child.get("merge") in ("1", "true"):
                child.fail("merge='true' is not read; include the model without it.")
            inner, inner_version = _included(child, version, folder, notes)
        if inner.tag not in ("link", "joint", "frame", "model"):
            continue
        name = inner.name()
        if name in scope.named:
            inner.fail(f"the name {name!r} is used twice in the model, first in line {scope.named[name].line}.")
        scope.named[name] = inner
        if inner.tag == "model":
            scope.nested[name] = _scope(inner, f"{prefix}{name}::", scope, inner_version, folder, notes, depth + 1)
    return scope


def _included(element: Element, version: float, folder: Path | None, notes: list[str]) -> tuple[Element, float]:
    """The model that an <include> stands for, with the name and pose the include gives it."""
    uri = child_text(element, "uri")
    name = uri.removeprefix("model://").removeprefix("file://")
    path = find_included(element, name, [folder or Path()], folder)
    if path.is_dir():
        path = path / "model.sdf"
    if str(path.resolve()) == str(Path(element.file).resolve()):
        element.fail("the file includes itself.")
    document = read_included(element, path)
    notes.extend(document.notes)
    model = document.root.first("model") if document.root.tag == "sdf" else None
    if model is None:
        element.fail(f"the included file {uri!r} holds no <model> in <sdf>.")
    if (rename := element.first("name")) is not None and rename.text.strip():
        model.attributes["name"] = rename.text.strip()
    for tag in ("pose", "static"):
        if (own := element.first(tag)) is not None:
            model.children = [own, *(child for child in model.children if child.tag != tag)]
    return model, read_version(document.root)


def read_version(root: Element) -> float:
    """The version of SDF a file is written in."""
    text = root.get("version") or "1.6"
    try:
        major, minor = text.split(".")[:2]
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
    rpy = np.deg2rad(values[3:]) if element.get("degrees") in ("1", "true") else values[3:]
    return np.asarray(pose(rotations.from_rpy(rpy), values[:3]))


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
