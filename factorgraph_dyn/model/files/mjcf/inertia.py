"""The mass of an MJCF body: written out, or of the primitive geoms it is made of.

    mass       = density * volume, unless the geom gives its mass
    inertia    = sum of the geoms' own, turned and moved to the common com (Steiner)

Meshes are not read: where a moving body's mass would come from one, the file is refused.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from factorgraph_dyn.model.assembly import Connection
from factorgraph_dyn.model.files.mjcf.scene import Scene, Settings, pose_between
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.model.parts import Link
from factorgraph_dyn.spatial import Floats, skew

WATER = 1000.0  # the density of geoms that give none, kg/m^3
MASSLESS = ("plane", "hfield")
SIZES = {"sphere": 1, "capsule": 2, "cylinder": 2, "box": 3, "ellipsoid": 3}
MESH_ADVICE = (
    'meshes are not read. Add <inertial>: MuJoCo writes it when the model is saved with <compiler saveinertial="true"/>'
)

_FUSED_ADVICE = "where it fuses the body, as it does unless something refers to it. Write fusestatic='false' instead."

Piece = tuple[float, Floats, Floats]  # mass, com and inertia about the com, in the body's frame


def body_link(
    name: str,
    element: Element,
    geoms: Sequence[tuple[Element, Floats]],
    inertial: tuple[Element, Floats] | None,
    scene: Scene,
    moving: bool,
    jointed: bool,
    written: dict[str, Element],
) -> Link:
    """The link of a body.

    Args:
        name: The link's name.
        element: The body, for messages.
        geoms: Its geoms with defaults filled in, and the pose in the body of the frame each is in.
        inertial: Its <inertial>, likewise, or None.
        scene: The settings.
        moving: Whether the body can move at all; one that cannot needs no mass, unless a total is shared out.
        jointed: Whether it has joints of its own.
        written: Told the <inertial> of the body where that counts.
    """
    settings = scene.settings
    weighed = moving or (settings.settotalmass > 0 and not settings.fusestatic)
    if not weighed and settings.settotalmass > 0 and (geoms or inertial is not None):
        scene.notes.append(element.note(f"the static body has no part in settotalmass, as in MuJoCo {_FUSED_ADVICE}"))
    pieces: list[Piece] = []
    # An <inertial> counts where no geom does, even if geoms are to have their way.
    if weighed and settings.inertiafromgeom != "false" and (inertial is None or settings.inertiafromgeom == "true"):
        pieces = [piece for geom, T in geoms if (piece := _geom(geom, T, scene, name)) is not None]
    if inertial is not None and not pieces and (moving or not settings.fusestatic):
        pieces = [_inertial(*inertial, scene)]
        written[name] = inertial[0]
    mass, com, inertia = _combined(pieces)
    if not all(np.isfinite(x).all() for x in (mass, com, inertia)):
        element.fail("the mass or inertia of the body overflows; check the sizes of its geoms.")
    if weighed and (settings.boundmass > 0 or settings.boundinertia > 0 or settings.balanceinertia):
        mass, inertia = _bounded(mass, inertia, settings)
        if settings.fusestatic and not pieces and not jointed:
            scene.notes.append(element.note(f"the body's bounds count; MuJoCo leaves them out {_FUSED_ADVICE}"))
        if not pieces and mass > 0:
            com = _place_of_bound(element, scene.notes)
    return Link(name, mass, com, inertia)


def note_fused(
    links: Sequence[Link], connections: Sequence[Connection], written: Mapping[str, Element], scene: Scene
) -> None:
    """Note each <inertial> that MuJoCo leaves out where it fuses bodies before it weighs them by their geoms.

    Of bodies fused it takes the geoms, and else the <inertial> of the one that moves; which bodies it does not fuse,
    because something refers to them, is its own affair, so that every body keeps its mass here.
    """
    if not scene.settings.fusestatic or scene.settings.inertiafromgeom != "true":
        return
    host = {link.name: link.name for link in links}
    for connection in connections:  # from the world outward
        if not connection.joint.nv:
            host[connection.joint.child] = host[connection.joint.parent]
    weighed = [host[link.name] for link in links if link.mass > 0]
    scene.notes.extend(
        element.note(
            f"MuJoCo leaves this out where it fuses body {name!r} with others, since inertiafromgeom is 'true'; here "
            "it counts. Write fusestatic='false' or inertiafromgeom='auto' to have the same in both."
        )
        for name, element in written.items()
        if host[name] != links[0].name and (host[name] != name or weighed.count(name) > 1)
    )


def scaled_to_total(links: list[Link], total: float) -> list[Link]:
    """The links with all masses scaled to a total, where that is positive."""
    now = sum(link.mass for link in links)
    if total <= 0 or now <= 0:
        return links
    k = total / now
    return [Link(x.name, k * x.mass, x.com, k * np.asarray(x.inertia)) for x in links]


def _inertial(element: Element, T_body_frame: Floats, scene: Scene) -> Piece:
    mass = element.number("mass")
    if mass < 0:
        element.fail(f"the mass is {mass:g} kg; a mass cannot be negative.")
    T = T_body_frame @ scene.pose(element)
    if element.get("fullinertia") is not None:
        xx, yy, zz, xy, xz, yz = element.vector("fullinertia", 6)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    elif element.get("diaginertia") is not None:
        inertia = np.diag(element.vector("diaginertia", 3))
    else:
        inertia = np.zeros((3, 3))
        scene.notes.append(element.note("there is neither diaginertia nor fullinertia; it is a point mass."))
    return mass, T[:3, 3], _turned(T[:3, :3], inertia)


def _geom(geom: Element, T_body_frame: Floats, scene: Scene, body: str) -> Piece | None:
    """Mass, com and inertia of a geom in its body, or None where it has no mass."""
    low, high = scene.settings.inertia_groups
    group = geom.number("group", 0.0)
    given_mass = geom.number("mass", math.nan) if geom.get("mass") is not None else None
    density = geom.number("density", WATER)
    kind = geom.get("type") or ("capsule" if geom.get("fromto") else "sphere")
    if kind in MASSLESS or not low <= group <= high:
        return None
    if given_mass == 0 or (given_mass is None and density == 0):
        return None
    if kind in ("mesh", "sdf") or geom.get("mesh") is not None:
        geom.fail(f"the mass of body {body!r} comes from a mesh; {MESH_ADVICE}.")
    if kind not in SIZES:
        geom.fail(f"the geom type {kind!r} is not known. Types: {', '.join((*SIZES, *MASSLESS, 'mesh'))}.")
    if geom.get("shellinertia") == "true":
        geom.fail("shellinertia is not read; give the body an <inertial>.")
    if (given_mass or 0.0) < 0 or density < 0:
        geom.fail("the mass or density is negative.")
    size, T = geom_shape(geom, kind, scene)
    volume, unit = _volume_and_unit_inertia(kind, size)
    mass = density * volume if given_mass is None else given_mass
    T = T_body_frame @ T
    return mass, T[:3, 3], _turned(T[:3, :3], mass * np.diag(unit))


def geom_shape(geom: Element, kind: str, scene: Scene) -> tuple[list[float], Floats]:
    """A geom's half sizes and its pose in its frame."""
    size = geom.parse_numbers(geom.get("size") or "", "the attribute 'size'", (0, 1, 2, 3)).tolist()
    if geom.get("fromto") is None or kind == "sphere":
        T = scene.pose(geom)
    else:
        T, half = pose_between(geom)
        if not size:
            geom.fail("fromto needs a size.")
        size = [size[0], size[0], half] if SIZES[kind] == 3 else [size[0], half]
    if len(size) < SIZES[kind] or min(size[: SIZES[kind]]) <= 0:
        geom.fail(f"a {kind} needs {SIZES[kind]} positive sizes; found {size}.")
    return size, T


def _volume_and_unit_inertia(kind: str, size: list[float]) -> tuple[float, list[float]]:
    """The volume of a primitive, and its principal moments for unit mass."""
    # products, not powers: where sizes are absurd these become infinite instead of raising
    if kind == "sphere":
        return 4 / 3 * math.pi * size[0] * size[0] * size[0], [0.4 * size[0] * size[0]] * 3
    if kind in ("box", "ellipsoid"):
        a, b, c = (x * x for x in size[:3])
        share, shape = (1 / 3, 8.0) if kind == "box" else (1 / 5, 4 / 3 * math.pi)
        return shape * size[0] * size[1] * size[2], [share * (b + c), share * (a + c), share * (a + b)]
    r, h = size[:2]
    tube = 2 * math.pi * r * r * h
    across, along = (3 * r * r + 4 * h * h) / 12, 0.5 * r * r
    if kind == "cylinder":
        return tube, [across, across, along]
    caps = 4 / 3 * math.pi * r * r * r
    cap_along = 0.4 * r * r
    cap_across = cap_along + h * h + 0.75 * r * h
    volume = tube + caps
    across = (tube * across + caps * cap_across) / volume
    return volume, [across, across, (tube * along + caps * cap_along) / volume]


def _combined(pieces: list[Piece]) -> Piece:
    mass = float(sum(piece[0] for piece in pieces))
    if len(pieces) == 1:
        return pieces[0]
    if mass <= 0:
        return 0.0, np.zeros(3), np.zeros((3, 3))
    com = np.asarray(sum(m * c for m, c, _ in pieces) / mass)
    inertia = np.zeros((3, 3))
    for m, c, own in pieces:
        arm = skew(c - com)
        inertia = inertia + own + m * arm @ arm.T
    return mass, com, 0.5 * (inertia + inertia.T)


def _bounded(mass: float, inertia: Floats, settings: Settings) -> tuple[float, Floats]:
    """Mass and inertia raised to the compiler's bounds, and balanced where asked."""
    moments, axes = np.linalg.eigh(inertia)
    moments = np.maximum(moments, settings.boundinertia)
    if settings.balanceinertia and moments[0] + moments[1] < moments[2]:
        moments = np.full(3, moments.mean())
    return max(mass, settings.boundmass), _turned(axes, np.diag(moments))


def _place_of_bound(body: Element, notes: list[str]) -> Floats:
    """Where MuJoCo puts the mass that boundmass gives a body without any: at its ``pos``, taken in its own frame."""
    com = body.vector("pos", 3, (0.0, 0.0, 0.0))
    if com.any():
        notes.append(
            body.note(
                "the body has no mass but boundmass, which is put at the body's pos in its own frame, as in MuJoCo; "
                "give it an <inertial> to have it elsewhere."
            )
        )
    return com


def _turned(R: Floats, inertia: Floats) -> Floats:
    if np.array_equal(R, np.eye(3)):
        return inertia
    turned = R @ inertia @ R.T
    return np.asarray(0.5 * (turned + turned.T))
