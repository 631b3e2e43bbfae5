"""Linkages that move because lengths agree: closure repeats itself where they are closed, and nowhere else.

cranks     a plate on two to four equal cranks; rigid, or a crossed parallelogram, when assembled otherwise
kite       two pairs of equal bars; where two lie upon each other they turn as one, whatever the others do
scissor    crossed bars, one or two stages, on a pin and a slider; stages can fold one by one
bennett    four skew hinges, sin(alpha) / a = sin(beta) / b
sarrus     two legs of three parallel hinges each that lift a platform
"""

from __future__ import annotations

import numpy as np

X, Y, Z = np.eye(3)


class Linkage:
    """Joints and loops by name, written down one after the other."""

    def __init__(self) -> None:
        self.joints: list[tuple] = []  # parent, kind, axis, placement, coordinate
        self.loops: list[tuple] = []  # kind, axis, predecessor, placement, successor

    def hinge(self, parent: int, place, q: float, axis=Z) -> int:
        """A link on a hinge at a place of its parent, by number; 0 is the base."""
        return self._add(parent, "revolute", axis, place, q)

    def slider(self, parent: int, place, q: float, axis) -> int:
        return self._add(parent, "prismatic", axis, place, q)

    def _add(self, *joint) -> int:
        parent, kind, axis, place, q = joint
        self.joints.append((parent, kind, axis, place, q))
        return len(self.joints)

    def pin(self, predecessor: int, place, successor: int, axis=Z) -> None:
        """A hinge that closes a loop at a place of its predecessor."""
        self.loops.append(("revolute", axis, predecessor, place, successor))


def at(p, R=None) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = p
    if R is not None:
        T[:3, :3] = R
    return T


def cranks(rng) -> Linkage:
    made, phi, r = Linkage(), rng.uniform(-np.pi, np.pi), rng.uniform(0.2, 0.6)
    pins = [rng.uniform(-0.6, 0.6) * X + rng.uniform(-0.6, 0.6) * Y for _ in range(int(rng.integers(2, 5)))]
    arms = [made.hinge(0, at(pin), phi) for pin in pins]
    plate = made.hinge(arms[0], at(r * X), -phi)
    for pin, arm in zip(pins[1:], arms[1:], strict=True):
        made.pin(plate, at(pin - pins[0]), arm)
    return made


def kite(rng) -> Linkage:
    made, phi, a = Linkage(), rng.uniform(0.3, 2.5), rng.uniform(0.2, 0.6)
    b = a if rng.random() < 0.3 else a * rng.uniform(0.9, 1.6)
    middle, half = a * np.array([1 + np.cos(phi), np.sin(phi), 0]) / 2, a * np.sin(phi / 2)
    away = np.array([np.cos(phi / 2), np.sin(phi / 2), 0]) * np.sqrt(max(b**2 - half**2, 0.0))
    tip = middle + (away if rng.random() < 0.5 else -away)
    first = made.hinge(0, at(0 * X), phi)
    to_tip = [tip - p for p in (a * np.array([np.cos(phi), np.sin(phi), 0]), a * X)]
    turns = [np.arctan2(way[1], way[0]) for way in to_tip]
    coupler = made.hinge(first, at(a * X), turns[0] - phi)
    second = made.hinge(0, at(a * X), turns[1])
    made.pin(coupler, at(b * X), second)
    return made


def scissor(rng) -> Linkage:
    made, angle, h, stages = Linkage(), rng.uniform(0.2, 1.3), rng.uniform(0.15, 0.4), int(rng.integers(1, 3))
    opening = np.pi - 2 * angle
    below, foot, turn, across = 0, 0 * X, angle, 0
    for stage in range(stages):
        sign = (-1.0) ** stage
        bar = made.hinge(below, at(foot), turn)
        other = made.hinge(bar, at(h * X), sign * opening)
        if stage:
            made.pin(across, at(h * X), other)
        else:
            slider = made.slider(0, at(0 * X), 2 * h * np.cos(angle), X)
            made.pin(slider, at(0 * X), other)
        below, foot, turn, across = bar, 2 * h * X, opening, other
    return made


def bennett(rng) -> Linkage:
    made, angle, a = Linkage(), rng.uniform(0.4, 2.6), rng.uniform(0.2, 0.5)
    alpha, beta = rng.uniform(0.3, 0.8), rng.uniform(0.9, 1.4)
    b, ratio = a * np.sin(beta) / np.sin(alpha), np.sin((alpha + beta) / 2) / np.sin((beta - alpha) / 2)
    second = 2 * np.arctan2(ratio * np.cos(angle / 2), np.sin(angle / 2))
    A, B = (at(length * X, _about_x(twist)) for length, twist in ((a, alpha), (b, beta)))
    one = made.hinge(0, np.eye(4), angle)
    two = made.hinge(one, A, second)
    three = made.hinge(two, B, -angle)
    made.pin(0, np.linalg.inv(B), three)
    return made


def sarrus(rng) -> Linkage:
    made, angle, r = Linkage(), rng.uniform(0.3, 1.2), rng.uniform(0.15, 0.4)
    ends = []
    for axis, out in ((X, -Y), (Y, X)):  # legs stand so that turning about the axis lifts their bars
        foot, way = rng.uniform(0.1, 0.5) * -out, out * r
        low = made.hinge(0, at(foot), angle * _lift(axis, out), axis)
        ends.append((made.hinge(low, at(way), -2 * angle * _lift(axis, out), axis), -way, axis))
    (one, back, axis), (two, back_two, axis_two) = ends
    platform = made.hinge(one, at(back), angle * _lift(axis, -Y), axis)
    made.pin(two, at(back_two), platform, axis_two)
    return made


def _lift(axis, out) -> float:
    """The sign of turns about an axis that lift what lies outwards."""
    return float(np.sign(np.cross(axis, out)[2]))


def _about_x(angle) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0], [0, c, -s], [0, s, c]])


FAMILIES = (cranks, kite, scissor, bennett, sarrus)
