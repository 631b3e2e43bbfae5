"""How links look: shapes and meshes on them, for pictures alone.

Dynamics and fingerprints know nothing of them, and meshes are files that are read when they are drawn.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from factorgraph_dyn.checks import check_finite, real_numbers, shown
from factorgraph_dyn.errors import ModelError, check_name, says_how_to_change
from factorgraph_dyn.model.names import check_own_name
from factorgraph_dyn.model.parts import Numbers, placement_of
from factorgraph_dyn.spatial import Floats

# How many numbers tell a shape's size: edges; radius; radius and length along z; three radii; scale of a file's units.
SHAPES = {"box": 3, "sphere": 1, "cylinder": 2, "capsule": 2, "ellipsoid": 3, "mesh": 3}


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Visual:
    """A shape that a link is drawn as; it has no effect on any number but those of pictures.

    Args:
        link: Name of the link that it is on.
        shape: One of box, sphere, cylinder, capsule, ellipsoid, mesh.
        size: A box's edges, a sphere's radius, radius and length of a cylinder along z, or of a capsule between its
            caps, an ellipsoid's half axes; m. The scale of a mesh along its three axes.
        placement: Pose of the shape in the link, shape (4, 4).
        colour: Red, green, blue and opacity from 0 to 1, shape (4,), or None.
        mesh: The mesh's file, as a model file names it: a path, or ``package://name/path``.
        folder: The folder of the model file, which paths start from; meshes of no folder are not read.

    Examples:
        >>> fgd.Visual("forearm", "cylinder", (0.04, 0.3), fgd.translation(0, 0, 0.15)).shape
        'cylinder'
    """

    link: str
    shape: str
    size: Numbers
    placement: Numbers = field(default_factory=lambda: np.eye(4))
    colour: Numbers = None
    mesh: str = ""
    folder: str = ""

    def __post_init__(self) -> None:
        where = f"visual of link {self.link!r}"
        check_name(self.shape, SHAPES, "shape", f"the shapes a {where} may have", ModelError)
        check_own_name(self.link, "visual's link")
        if not isinstance(self.mesh, str) or self.mesh:
            check_own_name(self.mesh, "visual's mesh")
        what = f"The size of a {where}"
        size = check_finite(
            np.atleast_1d(real_numbers(self.size, what, ModelError)), (SHAPES[self.shape],), what, ModelError
        )
        if self.shape != "mesh" and not (size > 0).all():
            raise ModelError(f"The size of a {where} is {shown(self.size)}; it must be positive.")
        for name, value in (
            ("size", size),
            ("placement", placement_of(self.placement, f"The placement of a {where}")),
            ("colour", None if self.colour is None else _colour(self.colour, where)),
        ):
            object.__setattr__(self, name, value)

    def moved(self, T: Floats, link: str | None = None) -> Self:
        """The visual seen from a frame in which the one it was given in stands at T, maybe on another link."""
        return replace(self, link=link or self.link, placement=T @ np.asarray(self.placement))


def _colour(value: Numbers, where: str) -> Floats:
    return np.clip(check_finite(value, (4,), f"The colour of a {where}", ModelError), 0.0, 1.0)


def on_links(visuals: Iterable[Visual], links: Iterable[str]) -> tuple[Visual, ...]:
    """Those that are on one of some links."""
    kept = set(links)
    return tuple(visual for visual in visuals if visual.link in kept)
