"""How far a loop or coupling is open, as an angle and a distance, and in words."""

from __future__ import annotations

from typing import NamedTuple


class Gap(NamedTuple):
    """How far a loop or coupling is open, or how fast it opens: rad, and m or the length that is 1."""

    angle: float
    distance: float

    def text(self, length: float, allowed: float, per: str = "") -> str:
        """The larger of the two and what is allowed, in rad or m."""
        size, unit = (self.angle, "rad") if self.angle > self.distance else (self.distance * length, "m")
        limit = allowed if unit == "rad" else allowed * length
        return f"{size:.3g} {unit}{per} (allowed {limit:.3g} {unit}{per})"
