"""Orderings between aba and crba, to start searches from.

Takes a mechanism; gives orderings that fold the outer joints into their parents one by one, as aba does, and
take the inner ones all at once, as crba does. The best machine-found orderings of arms are of this kind.
"""

from __future__ import annotations

from collections.abc import Iterator

from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.model import Joint, Mechanism
from factorgraph_dyn.ordering.classical import loop_forces, loop_freedoms

FOLDED = ("FAa", "AFa", "aFA")  # kinds of an outer joint's variables, in the order of their elimination
CUTS = 8  # places where the outer joints begin, at most


def mixed_orderings(mechanism: Mechanism, graph: LinearGraph) -> Iterator[tuple[str, ...]]:
    """Orderings between aba and crba; variables the graph does not have are passed over."""
    outward = mechanism.topology.outward
    count = len(outward)
    for cut in sorted({round(k * count / CUTS) for k in range(CUTS + 1)}):
        inner, outer = outward[:cut], outward[cut:]
        for kinds in FOLDED:
            names = [*loop_freedoms(mechanism), *(f"tau[{joint.name}]" for joint in outward)]
            names += [_name(kind, joint) for joint in reversed(outer) for kind in kinds]
            names += [_name("F", joint) for joint in inner]
            names += [_name("A", joint) for joint in inner]
            names += [_name("a", joint) for joint in reversed(inner)]
            names += loop_forces(mechanism)
            yield tuple(name for name in names if name in graph.by_name)


def _name(kind: str, joint: Joint) -> str:
    return f"A[{joint.child}]" if kind == "A" else f"{kind}[{joint.name}]"
