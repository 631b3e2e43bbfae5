"""The numbers of a mechanism as a proof takes them: its own, or those that states bring along.

Takes a mechanism and values of the arguments that stand for its constants; gives inertias, effects of joints and
gravity with an axis of states in front, of length one where all states have the same.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from factorgraph_dyn.compiler.proof.batch_algebra import inertias, skews
from factorgraph_dyn.model import Joint, Link, Mechanism
from factorgraph_dyn.spatial import Floats


class Numbers:
    """What a mechanism's equations are made of, at many states.

    Attributes:
        inertia: Spatial inertias by link, shape (states or 1, 6, 6).
        gravity: Shape (states or 1, 3).
    """

    def __init__(
        self, mechanism: Mechanism, links: Sequence[str] = (), free: Mapping[str, Floats] | None = None
    ) -> None:
        """Look up what is constant and what is not.

        Args:
            mechanism: The mechanism.
            links: Whose parameters the states bring along, in the order of the value ``parameters``.
            free: Values by argument, with an axis of states in front.
        """
        self._free, self._links = {} if free is None else free, tuple(links)
        self.inertia = {link.name: link.spatial_inertia[None] for link in mechanism.links}
        for k, link in enumerate(links):
            self.inertia[link] = inertias(self._free["parameters"][:, k])
        self.gravity = self._free.get("gravity", np.asarray(mechanism.gravity)[None])

    def body(self, link: Link) -> tuple[Floats, Floats, Floats]:
        """Mass, centre of mass and inertia about it, shapes (states or 1,), (..., 3) and (..., 3, 3)."""
        if link.name not in self._links:
            return np.array([link.mass]), np.asarray(link.com)[None], np.asarray(link.inertia)[None]
        row = self._free["parameters"][:, self._links.index(link.name)]
        mass, G = row[:, 0], self.inertia[link.name]
        com = np.where(mass[:, None] != 0, row[:, 1:4] / np.where(mass == 0, 1.0, mass)[:, None], 0.0)
        c = skews(com)
        return mass, com, G[:, :3, :3] + mass[:, None, None] * c @ c

    def effect(self, kind: str, joint: Joint) -> Floats:
        """The armature, damping or friction of a joint, shape (states or 1, freedoms)."""
        return self._free.get(f"{kind}[{joint.name}]", getattr(joint, kind)[None])
