"""The triangles of a Collada file: its geometries where its scene puts them, in metres, with z up."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.model.files.rotations import from_axis_angle
from factorgraph_dyn.model.files.xml_tree import Element, parse_xml
from factorgraph_dyn.spatial import Floats, pose

Triangles = npt.NDArray[np.int64]
MOST_PLACES = 2000  # at which a scene may put geometries
PARTS = ("triangles", "polylist")  # of a geometry
# What turns coordinates of a file to z up, by the axis it says is up.
UP = {"X_UP": ((0, -1, 0), (0, 0, -1), (1, 0, 0)), "Y_UP": ((1, 0, 0), (0, 0, -1), (0, 1, 0))}


def read_collada(content: bytes) -> tuple[Floats, Triangles]:
    """Corners, shape (n, 3), and triangles, shape (m, 3), of all that a file's scene shows.

    Raises:
        ModelError: Not XML.
        ValueError, KeyError, IndexError: Not Collada.
    """
    root = parse_xml(content, "mesh").root
    meshes = {e.name("id"): _mesh(g) for e in _all(root, "geometry") if (g := e.first("mesh"))}
    places = [place for scene in _all(root, "visual_scene") for place in _places(scene, np.eye(4), _nodes(root), 0)]
    world = _world(root.first("asset"))
    corners, triangles, count = [np.zeros((0, 3))], [np.zeros((0, 3), dtype=np.int64)], 0
    for name, T in (places or [(name, np.eye(4)) for name in meshes])[:MOST_PLACES]:
        own, faces = meshes[name]
        M = world @ T
        corners.append(own @ M[:3, :3].T + M[:3, 3])
        triangles.append(faces + count)
        count += len(own)
    return np.concatenate(corners), np.concatenate(triangles)


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


def _places(
    node: Element, T_world_above: Floats, library: dict[str, Element], depth: int
) -> Iterator[tuple[str, Floats]]:
    """The geometries that a node shows, with the transform of each."""
    T = T_world_above @ _transform(node)
    yield from ((_target(e, "url"), T) for e in node.all("instance_geometry"))
    inner = node.all("node") + [library[_target(e, "url")] for e in node.all("instance_node") if depth < 8]
    for child in inner:
        yield from _places(child, T, library, depth + 1)


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


def _mesh(mesh: Element) -> tuple[Floats, Triangles]:
    """Corners and triangles of a geometry, in its own coordinates."""
    sources = {source.name("id"): source for source in mesh.all("source")}
    vertices = {e.name("id"): _input(e, "POSITION") for e in mesh.all("vertices")}
    parts = [part for part in mesh.children if part.tag in PARTS and part.first("p") is not None]
    if not parts:
        return np.zeros((0, 3)), np.zeros((0, 3), dtype=np.int64)
    source = sources[vertices[_input(parts[0], "VERTEX")]]
    corners = np.array(source.require("float_array").text.split(), dtype=float)
    return corners[: len(corners) // 3 * 3].reshape(-1, 3), np.concatenate([_triangles(part) for part in parts])


def _input(element: Element, semantic: str) -> str:
    return next(_target(e, "source") for e in element.all("input") if e.get("semantic") == semantic)


def _triangles(part: Element) -> Triangles:
    """The triangles of a part, polygons cut into fans, as numbers of corners."""
    inputs = part.all("input")
    stride = 1 + max(int(e.number("offset", 0.0)) for e in inputs)
    offset = next(int(e.number("offset", 0.0)) for e in inputs if e.get("semantic") == "VERTEX")
    numbers = np.array(part.require("p").text.split(), dtype=np.int64)
    numbers = numbers[: len(numbers) // stride * stride].reshape(-1, stride)[:, offset]
    if part.tag == "triangles":
        return numbers[: len(numbers) // 3 * 3].reshape(-1, 3)
    counts = np.array(part.require("vcount").text.split(), dtype=np.int64)
    fans = np.maximum(counts - 2, 0)
    start = np.repeat(np.cumsum(counts) - counts, fans)
    along = np.arange(fans.sum()) - np.repeat(np.cumsum(fans) - fans, fans)
    return np.asarray(numbers[np.column_stack([start, start + along + 1, start + along + 2])])
