"""The triangles of a Collada file: its geometries where its scene puts them, in metres, with z up."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.model.files.rotations import from_axis_angle
from factorgraph_dyn.model.files.xml_tree import Element, parse_xml
from factorgraph_dyn.show.view.triangles import NO_CORNER, Mesh, Quota, Triangles, fans, in_four_bytes, parse_numbers
from factorgraph_dyn.spatial import Floats, pose

MOST_STEPS = 100_000  # nodes and their parts that are visited for a scene; a node may be shown by many others
MOST_DEPTH = 8  # of nodes that show each other
PARTS = ("triangles", "polylist")  # of a geometry
# What turns coordinates of a file to z up, by the axis it says is up.
UP = {"X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)), "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0))}


def read_collada(content: bytes, quota: Quota) -> Mesh:
    """All that a file's scene shows.

    Raises:
        ModelError: Not XML.
        ValueError, OverflowError, KeyError, IndexError: Not Collada, or more than may be read.
    """
    root = parse_xml(content, "mesh").root
    meshes = {e.name("id"): _mesh(g, quota) for e in _all(root, "geometry") if (g := e.first("mesh"))}
    scene = _Scene(_nodes(root), Quota(MOST_STEPS))
    places = [place for top in _all(root, "visual_scene") for place in scene.places(top, np.eye(4))]
    world = _world(root.first("asset"))
    corners, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int32)], 0
    for name, T in places or [(name, np.eye(4)) for name in meshes]:
        own, faces = meshes[name]
        quota.take(own.size + faces.size)
        M = world @ T
        corners.append(own @ M[:3, :3].T + M[:3, 3])
        triangles.append(np.where(faces < len(own), faces + count, NO_CORNER))
        count += len(own)
    return Mesh(np.concatenate(corners), np.concatenate(triangles))


def _all(element: Element, tag: str) -> Iterator[Element]:
    """Elements with a tag in the libraries of a file."""
    return (e for library in element.children if library.tag.startswith("library_") for e in library.all(tag))


def _nodes(root: Element) -> dict[str, Element]:
    return {node.get("id") or "": node for node in _all(root, "node")}


def _world(asset: Element | None) -> Floats:
    """From the file's units and axes to metres with z up."""
    T = np.eye(4)
    if asset is not None:
        up, unit = asset.first("up_axis"), asset.first("unit")
        T[:3, :3] = np.array(UP.get(up.text.strip(), np.eye(3))) if up else T[:3, :3]
        T[:3] *= unit.number("meter", 1.0) if unit else 1.0
    return T


@dataclass
class _Scene:
    """Where nodes show geometries.

    Attributes:
        library: Nodes that others may show.
        steps: How many more may be visited.
    """

    library: dict[str, Element]
    steps: Quota

    def places(self, node: Element, T_world_above: Floats, depth: int = 0) -> Iterator[tuple[str, Floats]]:
        """The geometries that a node shows, with the transform of each."""
        if depth > MOST_DEPTH:
            raise ValueError("Nodes show each other too deep, or themselves.")
        self.steps.take(1 + len(node.children))
        T = T_world_above @ _transform(node)
        yield from ((_target(e, "url"), T) for e in node.all("instance_geometry"))
        for inner in node.all("node"):
            yield from self.places(inner, T, depth)
        for e in node.all("instance_node"):
            yield from self.places(self.library[_target(e, "url")], T, depth + 1)


def _transform(node: Element) -> Floats:
    """The product of a node's transforms, in the order in which they stand."""
    T = np.eye(4)
    for element in node.children:
        numbers = np.array(
            element.text.split() if element.tag in ("matrix", "translate", "rotate", "scale") else [], float
        )
        if element.tag == "matrix":
            T = T @ numbers.reshape(4, 4)
        elif element.tag == "translate":
            T = T @ np.asarray(pose(np.eye(3), numbers))
        elif element.tag == "rotate" and (R := from_axis_angle(numbers[:3], np.deg2rad(numbers[3]))) is not None:
            T = T @ np.asarray(pose(R, np.zeros(3)))
        elif element.tag == "scale":
            T = T @ np.diag([*numbers, 1.0])
    return T


def _target(element: Element, attribute: str) -> str:
    return element.name(attribute).removeprefix("#")


def _mesh(mesh: Element, quota: Quota) -> Mesh:
    """Corners and triangles of a geometry, in its own coordinates."""
    sources = {source.name("id"): source for source in mesh.all("source")}
    vertices = {e.name("id"): _input(e, "POSITION") for e in mesh.all("vertices")}
    parts = [part for part in mesh.children if part.tag in PARTS and part.first("p") is not None]
    if not parts:
        return Mesh(np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int32))
    source = sources[vertices[_input(parts[0], "VERTEX")]]
    corners = parse_numbers(source.require("float_array").text, np.float64, quota)
    return Mesh(
        corners[: len(corners) // 3 * 3].reshape(-1, 3),
        np.concatenate([_triangles(part, quota) for part in parts]),
    )


def _input(element: Element, semantic: str) -> str:
    return next(_target(e, "source") for e in element.all("input") if e.get("semantic") == semantic)


def _triangles(part: Element, quota: Quota) -> Triangles:
    """The triangles of a part, polygons cut into fans, as numbers of corners."""
    inputs = part.all("input")
    stride = 1 + max(int(e.number("offset", 0.0)) for e in inputs)
    offset = next(int(e.number("offset", 0.0)) for e in inputs if e.get("semantic") == "VERTEX")
    numbers = parse_numbers(part.require("p").text, np.int64, quota)
    numbers = numbers[: len(numbers) // stride * stride].reshape(-1, stride)[:, offset]
    if part.tag == "triangles":
        return in_four_bytes(numbers[: len(numbers) // 3 * 3].reshape(-1, 3))
    return fans(numbers, parse_numbers(part.require("vcount").text, np.int64, quota), quota)
