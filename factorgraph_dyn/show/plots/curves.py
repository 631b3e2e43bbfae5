"""Lines on paper that keep clear of what stands in their way; all lines are sequences of points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn.spatial import Floats

Point = tuple[float, float]
Path = tuple[Point, ...]
SAMPLES = 24
BOWS = (0.0, 0.45, -0.45, 0.75, -0.75, 1.1, -1.1, 1.5, -1.5, 2.0, -2.0, 2.6, -2.6)  # units off straight


def rounded(points: Sequence[Point], radius: float = 0.25) -> Path:
    """A line through points with its corners rounded."""
    path: list[Point] = [points[0]]
    for before, corner, after in zip(points, points[1:], points[2:], strict=False):
        b, c, a = (np.array(point) for point in (before, corner, after))
        start = _towards(c, b, radius)
        end = _towards(c, a, radius)
        for t in np.linspace(0, 1, 6):
            bend = (1 - t) ** 2 * start + 2 * t * (1 - t) * c + t**2 * end
            path.append((float(bend[0]), float(bend[1])))
    path.append(points[-1])
    return tuple(path)


def _towards(start: Floats, end: Floats, distance: float) -> Floats:
    length = float(np.linalg.norm(end - start))
    return start + (end - start) * min(distance / max(length, 1e-9), 0.5)


def clear_curve(start: Point, end: Point, obstacles: Floats, clearance: float | Floats) -> Path:
    """The least bent curve from start to end that keeps its distance from obstacles.

    Args:
        start: First point.
        end: Last point.
        obstacles: Centres of what stands around, shape (n, 2); those at the ends do not count.
        clearance: Distance to keep, of all or of each; where no curve keeps it, the one that comes nearest to it
            is taken.
    """
    p, q = np.array(start), np.array(end)
    if len(obstacles):
        keep = np.broadcast_to(np.asarray(clearance, dtype=np.float64), len(obstacles))
        at_ends = (np.abs(obstacles - p).max(axis=1) < 1e-6) | (np.abs(obstacles - q).max(axis=1) < 1e-6)
        off_line = _distances(np.array([p, q]), obstacles)
        near = ~at_ends & (off_line < max(BOWS) + keep)
        if (off_line[near] < keep[near]).any():
            return _bent(p, q, obstacles[near], keep[near])
    return (start, end)


def _bent(p: Floats, q: Floats, obstacles: Floats, clearance: Floats) -> Path:
    best, best_room = _arc(p, q, BOWS[0]), -np.inf
    for bow in BOWS:
        curve = _arc(p, q, bow)
        room = float((_distances(curve, obstacles) / clearance).min())
        if room > best_room + 1e-9:
            best, best_room = curve, room
        if room >= 1:
            break
    return tuple((x, y) for x, y in best.tolist())


def _arc(p: Floats, q: Floats, bow: float) -> Floats:
    """A curve from p to q that runs ``bow`` beside the straight line; long ones get there soon."""
    t = np.linspace(0, 1, SAMPLES)[:, None]
    across = np.array([p[1] - q[1], q[0] - p[0]])
    length = max(float(np.linalg.norm(across)), 1e-9)
    power = 2 if length < 5 else 4
    height = 1 - np.abs(2 * t - 1) ** power
    return np.asarray((1 - t) * p + t * q + height * bow / length * across, dtype=np.float64)


def _distances(curve: Floats, obstacles: Floats) -> Floats:
    """The smallest distance of each obstacle from a curve, shape (n,)."""
    a = curve[:-1, None, :]
    along = curve[1:, None, :] - a
    length = np.maximum((along * along).sum(axis=2), 1e-12)
    t = np.clip(((obstacles[None] - a) * along).sum(axis=2) / length, 0, 1)
    gap = a + t[..., None] * along - obstacles[None]
    return np.asarray(np.sqrt((gap * gap).sum(axis=2)).min(axis=0), dtype=np.float64)


def shorten(path: Path, at_start: float, at_end: float) -> Path:
    """The same line without its first and last bits, for arrows that stop at a circle's rim."""
    points = np.array(path)
    lengths = np.concatenate([[0.0], np.cumsum(np.linalg.norm(np.diff(points, axis=0), axis=1))])
    total = lengths[-1]
    if total <= at_start + at_end:
        return path
    inner = lengths[(lengths > at_start) & (lengths < total - at_end)]
    stations = np.concatenate([[at_start], inner, [total - at_end]])
    xs, ys = (np.interp(stations, lengths, points[:, axis]) for axis in (0, 1))
    return tuple((float(x), float(y)) for x, y in zip(xs, ys, strict=True))
