"""What the links of URDF, SDF and MJCF files look like, as ``Visual`` parts.

    URDF, SDF   <visual>, or <collision> where a link has no visual that can be drawn
    MJCF        the geoms of the groups that MuJoCo shows, 0 to 2; planes and height fields are no part of a body

Looks are no reason to refuse a file: what is malformed is left out, and so are shapes without an end, such as planes.
No mesh is read here. Runs once a file.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path, PurePosixPath

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.files.mjcf.inertia import SIZES, geom_shape
from factorgraph_dyn.model.files.mjcf.scene import MAIN, Scene
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.text import parse_number

MESHES = (".stl", ".obj", ".dae")  # files of meshes that can be drawn
SHOWN_GROUPS = (0, 2)  # of MJCF's geoms: MuJoCo's own choice
_NUMBERS = {"box": ("size",), "sphere": ("radius",), "cylinder": ("radius", "length"), "ellipsoid": ("radii",)}
_NUMBERS["capsule"] = _NUMBERS["cylinder"]
_SHAPES = ("mesh", *_NUMBERS)
_ONE = (1.0, 1.0, 1.0)


def urdf_visuals(link: Element, colours: Mapping[str, str], origin: Callable[[Element], Floats]) -> list[Visual]:
    """The looks of a URDF link.

    Args:
        link: Its element.
        colours: The robot's colours by name of the material, as written.
        origin: The pose of an element's <origin>.
    """
    return _drawn(link, lambda e, shape: _of_attributes(e, shape, link.name(), origin(e), colours))


def sdf_visuals(link: Element, name: str, pose: Callable[[Element | None], Floats]) -> list[Visual]:
    """The looks of an SDF link; ``pose`` reads a <pose>."""
    return _drawn(link, lambda e, shape: _of_texts(e, shape, name, pose(e.first("pose"))))


def urdf_colours(root: Element) -> dict[str, str]:
    """The colours of a robot's materials by name, as written."""
    named = {material.get("name", ""): material.first("color") for material in root.all("material")}
    return {str(name): colour.get("rgba") or "" for name, colour in named.items() if colour is not None}


def mjcf_visuals(body: str, geoms: Iterable[tuple[Element, Floats]], scene: Scene) -> list[Visual]:
    """The looks of an MJCF body.

    Args:
        body: Its name.
        geoms: Its geoms with defaults filled in, and the pose in the body of the frame each is in.
        scene: Settings and assets.
    """
    return list(_good(lambda geom, T: _geom(body, geom, T, scene), geoms))


def _good(make: Callable[..., Visual | None], items: Iterable[tuple[object, ...]]) -> Iterator[Visual]:
    """What can be made of the items; the rest is left out."""
    for item in items:
        try:
            visual = make(*item)
        except (ModelError, ValueError):
            continue
        if visual is not None:
            yield visual


def _drawn(link: Element, make: Callable[[Element, Element], Visual]) -> list[Visual]:
    """The visuals of a link, or its collision shapes where not all visuals can be drawn and these can."""
    kinds = []
    for tag in ("visual", "collision"):
        geometries = [(e, geometry) for e in link.all(tag) if (geometry := e.first("geometry"))]
        pairs = [(e, shape) for e, geometry in geometries for shape in geometry.children if shape.tag in _SHAPES]
        kinds.append(list(_good(make, pairs)))
    looks, collisions = kinds
    if collisions and not (looks and all(map(_can_be_drawn, looks))) and all(map(_can_be_drawn, collisions)):
        return collisions
    return looks


def _can_be_drawn(visual: Visual) -> bool:
    return visual.shape != "mesh" or visual.mesh.lower().endswith(MESHES)


def _of_attributes(element: Element, shape: Element, link: str, T: Floats, colours: Mapping[str, str]) -> Visual:
    """A URDF visual: sizes are attributes."""
    folder = str(Path(element.file).parent)
    if shape.tag == "mesh":
        size = shape.parse_numbers(shape.get("scale") or "1 1 1", "scale", (1, 3))
        mesh = shape.name("filename")
    else:
        size = np.concatenate([shape.vector(key, 3 if key == "size" else 1) for key in _NUMBERS[shape.tag]])
        mesh = ""
    rgba = _urdf_colour(element.first("material"), colours)
    return Visual(link, shape.tag, np.broadcast_to(size, 3) if mesh else size, T, _rgba(rgba), mesh, folder)


def _urdf_colour(material: Element | None, colours: Mapping[str, str]) -> str | None:
    """A material's own colour, or that of the robot's material of its name, as written."""
    if material is None:
        return None
    own = material.first("color")
    return colours.get(material.get("name") or "") if own is None else own.get("rgba")


def _of_texts(element: Element, shape: Element, link: str, T: Floats) -> Visual:
    """An SDF visual: sizes are elements."""
    folder = str(Path(element.file).parent)
    if shape.tag == "mesh":
        scale = shape.first("scale")
        size = np.array(_ONE) if scale is None else scale.parse_numbers(scale.text, "scale", (3,))
        return Visual(link, "mesh", size, T, _sdf_colour(element), shape.require("uri").text.strip(), folder)
    keys = [shape.require(key) for key in _NUMBERS[shape.tag]]
    size = np.concatenate([key.parse_numbers(key.text, key.tag) for key in keys])
    return Visual(link, shape.tag, size, T, _sdf_colour(element))


def _sdf_colour(element: Element) -> list[float] | None:
    material = element.first("material")
    diffuse = None if material is None else material.first("diffuse")
    return None if diffuse is None else _rgba(diffuse.text)


def _geom(body: str, geom: Element, T_body_frame: Floats, scene: Scene) -> Visual | None:
    kind = geom.get("type") or ("mesh" if geom.get("mesh") else "capsule" if geom.get("fromto") else "sphere")
    if not SHOWN_GROUPS[0] <= geom.number("group", 0.0) <= SHOWN_GROUPS[1]:
        return None
    material = scene.assets.get(("material", geom.get("material")))
    rgba = _rgba(geom.get("rgba") or (material.get("rgba") if material else None))
    if rgba is not None and not rgba[3]:
        return None
    if kind == "mesh":
        asset = scene.assets.get(("mesh", geom.get("mesh")))
        if asset is None:
            return None
        asset = scene.resolve(asset, MAIN)
        T = T_body_frame @ scene.pose(geom)
        folder = str(Path(scene.root.file).parent)
        return Visual(body, "mesh", asset.vector("scale", 3, _ONE), T, rgba, _mesh_file(asset, scene), folder)
    if kind not in SIZES:
        return None
    size, T = geom_shape(geom, kind, scene)
    full = {"box": 2.0, "cylinder": (1.0, 2.0), "capsule": (1.0, 2.0)}.get(kind, 1.0)  # MJCF has halves
    return Visual(body, kind, np.array(size[: SIZES[kind]]) * full, T_body_frame @ T, rgba)


def _mesh_file(asset: Element, scene: Scene) -> str:
    """The path of a mesh's file, from the main file's folder."""
    given = asset.name("file").replace("\\", "/")
    folders = [c.get(key) for key in ("meshdir", "assetdir") for c in scene.root.all("compiler") if c.get(key)]
    return str(PurePosixPath(folders[0] or "", given)) if folders else given


def _rgba(text: str | None) -> list[float] | None:
    """A colour of three or four numbers."""
    words = (text or "").split(maxsplit=4)
    return [*map(parse_number, words), 1.0][:4] if len(words) in (3, 4) else None
