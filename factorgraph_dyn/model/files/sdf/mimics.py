"""SDF's <mimic> of a joint's axis: q = multiplier (q_source - reference) + offset, as a ``Coupling``."""

from __future__ import annotations

from factorgraph_dyn.model.files.sdf.scope import Scope, child_number
from factorgraph_dyn.model.files.xml_tree import Element
from factorgraph_dyn.model.parts import Coupling


def read_mimics(
    scope: Scope, name: str, element: Element, freedoms: int | None, mimics: dict[str, tuple[str, Element]]
) -> list[Coupling]:
    """The couplings that a joint's <mimic> elements say.

    Args:
        scope: The model.
        name: The joint's.
        element: The joint.
        freedoms: How many it has; None where it is no joint.
        mimics: The joint that each one mimics, and the element that says so; added to.
    """
    found = []
    for tag in ("axis", "axis2"):
        axis = element.first(tag)
        mimic = None if axis is None else axis.first("mimic")
        if mimic is None:
            continue
        source_scope, source = scope.find(mimic.name("joint"), mimic, joint=True)
        if freedoms not in (1, None):
            mimic.fail("only joints of one freedom can mimic others.")
        # q = multiplier (q_source - reference) + offset
        ratio = child_number(mimic, "multiplier", 1.0)
        offset = child_number(mimic, "offset", 0.0) - ratio * child_number(mimic, "reference", 0.0)
        leader = source_scope.full_name(source)
        follower = scope.full_name(name)
        if leader == follower:
            mimic.fail("the joint mimics itself.")
        mimics[follower] = leader, mimic
        found.append(Coupling(f"{follower}_mimics_{leader}", follower, leader, ratio, offset))
    return found
