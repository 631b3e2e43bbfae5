"""What counts as zero, as shares of the largest singular value of a matrix in the mechanism's own units."""

from __future__ import annotations

RANK_TOLERANCE = 1e-6
"""Singular values of closure below it are zero: files have some six digits, and axes are parallel as far."""

RANK_ROUNDING = 1e-12
"""Below it they are rounding; in between, closure holds a motion by next to nothing, which is free with a warning."""

SINGULAR = 1e13
"""Condition numbers of balanced systems above it count as singular."""
