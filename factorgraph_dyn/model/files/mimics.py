"""Joints that follow others: what URDF and SDF call mimic, refused where it goes round in a circle."""

from __future__ import annotations

from collections.abc import Mapping

from factorgraph_dyn.model.files.xml_tree import Element


def refuse_circles(mimics: Mapping[str, tuple[str, Element]]) -> None:
    """Raise a ModelError where joints mimic each other and none of them moves by itself.

    Args:
        mimics: The joint that each one mimics, and the element that says so.
    """
    harmless: set[str] = set()
    for start in mimics:
        chain, name = [], start
        while name in mimics and name not in harmless:
            chain.append(name)
            harmless.add(name)  # a chain that comes back to itself ends there, too
            name = mimics[name][0]
        if name in chain:
            circle = chain[chain.index(name) :]
            shown = " mimics ".join(map(repr, [*circle[:20], *(["..."] if len(circle) > 20 else []), name]))
            mimics[name][1].fail(f"joints mimic each other in a circle: {shown}. Remove the <mimic> of one of them.")
