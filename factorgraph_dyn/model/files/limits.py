"""Bounds of joints as files write them: infinite, absurdly large, empty or negative ones bound nothing."""

from __future__ import annotations

import math

from factorgraph_dyn.model.files.xml_tree import Element

UNLIMITED = 1e16  # SDF's word for no limit; in any format nothing moves as far


def joint_limits(element: Element, lower: float, upper: float, notes: list[str]) -> tuple[float, float] | None:
    """The bounds of a coordinate, one of them infinite where the file has none, or None without any.

    Args:
        element: What gives the limits, for messages.
        lower: As the file has it, rad or m; may be infinite.
        upper: Likewise.
        notes: A warning is added where no coordinate is within the limits.
    """
    if lower > upper or lower >= UNLIMITED or upper <= -UNLIMITED:
        notes.append(element.note(f"nothing is between lower {lower:g} and upper {upper:g}; the joint is not limited."))
        return None
    lower, upper = (x if abs(x) < UNLIMITED else math.copysign(math.inf, x) for x in (lower, upper))
    return None if math.isinf(lower) and math.isinf(upper) else (lower, upper)


def bound(value: float) -> float:
    """The largest torque or speed that a file means: infinite where it is huge or, as SDF has it, negative."""
    return value if 0 <= value < UNLIMITED else math.inf
