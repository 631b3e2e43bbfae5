"""The drawn graph: circles, squares, dots and the lines between them, in units, y upwards.

Takes a subject; gives places and paths that the drawings in matplotlib and the interactive page share.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from factorgraph_dyn.equations import Variable
from factorgraph_dyn.show.pictures.canvas import shortened
from factorgraph_dyn.show.pictures.places import RADIUS, ROW, Places, find_places
from factorgraph_dyn.show.plots.curves import Path, Point, clear_curve, rounded, shorten
from factorgraph_dyn.show.subject import Subject
from factorgraph_dyn.spatial import Floats

SYMBOL = {"A": "A", "F": "F", "a": "a", "tau": "τ", "lambda": "λ", "V": "V"}
DOWN_FROM_ACCELERATION = 0.5  # how far right of a link the way down to its branches runs
CLEARANCE = RADIUS + 0.1
LETTER_CLEARANCE = 0.17
LETTER = 0.1  # width of a letter of a name
NAME_WIDTH = {"link": 10, "joint": 16, "loop": 16, "coupling": 18}  # letters of a line of a name
NAME_LINES = {"link": 3, "joint": 3, "loop": 3, "coupling": 2}
STRIP_NAME_WIDTH = 12  # letters, where a strip starts
LINE = 0.22  # height of a line of a name
RANK_TURNS = (-45, 45, 225, 135, 0, 180, 270, 90)  # degrees at which the number beside a circle may stand


@dataclass(frozen=True)
class Node:
    """A variable on paper: a circle, or a square where it is known."""

    variable: Variable
    place: Point
    known: bool
    number: int

    @property
    def symbol(self) -> str:
        """The letter of its kind."""
        return SYMBOL.get(self.variable.kind, self.variable.kind)

    @property
    def label(self) -> str:
        """Letter and number, such as A3."""
        return f"{self.symbol}{self.number}"


@dataclass(frozen=True)
class Dot:
    """An equation on paper; its lines by the name of the variable they lead to."""

    name: str
    kind: str
    place: Point
    lines: Mapping[str, Path]


@dataclass(frozen=True)
class Heading:
    """A name on paper: of a joint above its acceleration, or of a link above its own."""

    text: str
    kind: str
    place: Point
    starts_strip: bool = False

    @property
    def lines(self) -> list[str]:
        """The name as it is written, line by line."""
        width = STRIP_NAME_WIDTH if self.starts_strip else NAME_WIDTH[self.kind]
        return shortened(self.text, width, NAME_LINES[self.kind]).split("\n")

    @property
    def letters(self) -> list[Point]:
        """Places that its letters cover, every second one's."""
        x, y = self.place
        lines = self.lines
        top = y + LINE * (0.5 * (len(lines) - 1) if self.kind in ("link", "coupling") else len(lines) - 0.5)
        found: list[Point] = []
        for row, line in enumerate(lines):
            left = x - 0.38 if self.starts_strip else x - 0.5 * LETTER * (len(line) - 1)
            found += [(left + LETTER * k, top - LINE * row) for k in range(0, len(line), 2)]
        return found


@dataclass(frozen=True, eq=False)
class Layout:
    """Everything a drawing of the graph needs.

    Attributes:
        nodes: By printed name of the variable.
        dots: In the order of the graph's factors.
        places: Where links and joints stand.
    """

    subject: Subject
    nodes: Mapping[str, Node]
    dots: tuple[Dot, ...]
    places: Places
    _curves: dict[tuple[str, str], Path] = field(default_factory=dict)

    @cached_property
    def headings(self) -> tuple[Heading, ...]:
        """Names of joints, links, loops and couplings, above the graph."""
        return tuple(_headings(self.subject, self.places, set(self.nodes)))

    @cached_property
    def unknown_headings(self) -> tuple[Heading, ...]:
        """The same names where only the unknowns are drawn: closer where joint accelerations are known."""
        return tuple(_headings(self.subject, self.places, set(self.subject.graph.by_name)))

    @cached_property
    def bounds(self) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the graph."""
        points = [node.place for node in self.nodes.values()]
        points += [point for dot in self.dots for line in dot.lines.values() for point in line]
        return _around(points, self.headings)

    def dag_bounds(self, arrows: Iterable[tuple[str, str]]) -> tuple[float, float, float, float]:
        """Left, right, bottom and top of the unknowns and of arrows between them."""
        points = [node.place for node in self.nodes.values() if not node.known]
        points += [point for parent, child in arrows for point in self.arrow(parent, child)]
        return _around(points, self.unknown_headings)

    @cached_property
    def unknown_places(self) -> Floats:
        """Centres of the circles, shape (n, 2)."""
        return np.array([node.place for node in self.nodes.values() if not node.known]).reshape(-1, 2)

    @cached_property
    def _in_the_way(self) -> tuple[Floats, Floats]:
        """What arrows keep clear of: circles and letters of names; places of shape (n, 2), and distances, (n,)."""
        letters = [place for heading in self.unknown_headings for place in heading.letters]
        places = np.concatenate([self.unknown_places, np.array(letters).reshape(-1, 2)])
        return places, np.repeat([CLEARANCE, LETTER_CLEARANCE], [len(self.unknown_places), len(letters)])

    @cached_property
    def drawn(self) -> tuple[Floats, Floats]:
        """What stands in the graph: circles, squares and letters of names; places, (n, 2), and distances, (n,)."""
        nodes = [node.place for node in self.nodes.values()]
        letters = [place for heading in self.headings for place in heading.letters]
        return np.array([*nodes, *letters]), np.repeat([CLEARANCE, LETTER_CLEARANCE], [len(nodes), len(letters)])

    def tie(self, place: Point, name: str) -> Path:
        """The line from an equation that elimination made to one of its variables."""
        return clear_curve(place, self.nodes[name].place, *self.drawn)

    def rank_places(self, arrows: Iterable[tuple[str, str]]) -> Mapping[str, Point]:
        """Where the number of a variable in the ordering stands: beside its circle, where the fewest arrows end."""
        ends: dict[str, list[Point]] = {name: [] for name in self.subject.graph.by_name}
        for parent, child in arrows:
            path = self.arrow(parent, child)
            ends[parent].append(path[0])
            ends[child].append(path[-1])
        letters = [place for heading in self.unknown_headings for place in heading.letters]
        return {name: _beside(self.nodes[name].place, [*points, *letters]) for name, points in ends.items()}

    def arrow(self, parent: str, child: str) -> Path:
        """The line of a dependency from the rim of a parent to the rim of its child."""
        key = (parent, child)
        if key not in self._curves:
            start, end = self.nodes[parent].place, self.nodes[child].place
            path = clear_curve(start, end, *self._in_the_way)
            self._curves[key] = shorten(path, RADIUS, RADIUS + 0.02)
        return self._curves[key]


def make_layout(subject: Subject) -> Layout:
    """The places of all variables and equations of a subject."""
    places = find_places(subject.mechanism)
    nodes: dict[str, Node] = {}
    for variable in (*subject.graph.variables, *subject.known):
        nodes.setdefault(
            str(variable),
            Node(
                variable,
                places.of(variable.kind, variable.owner),
                str(variable) not in subject.graph.by_name,
                places.number_of(variable.kind, variable.owner),
            ),
        )
    obstacles = np.array([node.place for node in nodes.values()])
    dots = []
    for factor, known in zip(subject.graph.factors, subject.known_of, strict=True):
        place = places.of_factor(factor.kind, factor.owner)
        held = [str(variable) for variable, _ in factor.blocks] + list(known)
        lines = {
            name: _line(factor.kind, factor.owner, place, nodes[name], obstacles, subject, places) for name in held
        }
        dots.append(Dot(str(factor), factor.kind, place, lines))
    return Layout(subject, nodes, tuple(dots), places)


def _line(kind: str, owner: str, place: Point, node: Node, obstacles: Floats, subject: Subject, places: Places) -> Path:
    """The way from an equation to one of its variables."""
    x, y = place
    to_x, to_y = node.place
    variable = node.variable
    tree = subject.mechanism.joint_by_name
    if kind == "torque" and variable.kind == "a" and variable.owner == owner:
        side = x + 0.56  # armature: around the wrench, which stands between
        return rounded([place, (side, y + 0.25), (side, to_y - 0.7), node.place], 0.3)
    if kind == "acceleration" and owner in tree and to_y > y + 2:
        if owner in places.turns:
            outside = x + 0.6 * places.turns[owner]
            return rounded([place, (outside, y), (outside, to_y), node.place], 0.2)
        down = to_x + DOWN_FROM_ACCELERATION
        return rounded([place, (down, y), (down, to_y - 0.45), node.place], 0.2)
    if kind == "wrench" and variable.kind == "F" and variable.owner in tree and to_y < y - 2:
        if variable.owner in places.turns:
            outside = to_x + 1.0 * places.turns[variable.owner]
            return rounded([place, (outside, y), (outside, to_y), node.place], 0.2)
        return rounded([place, (x, to_y), node.place], 0.2)
    if kind == "acceleration" and (owner, variable.owner) in places.ways and variable.kind == "A":
        return rounded([place, *places.ways[owner, variable.owner].acceleration, node.place], 0.2)
    if kind == "wrench" and (variable.owner, owner) in places.ways and variable.kind == "F":
        return rounded([place, *places.ways[variable.owner, owner].wrench, node.place], 0.2)
    return clear_curve(place, node.place, obstacles, CLEARANCE - 0.05)


def _headings(subject: Subject, places: Places, drawn: set[str]) -> list[Heading]:
    mechanism = subject.mechanism
    loops = {loop.name for loop in mechanism.loops}
    with_a = {place[1] for joint, place in places.joint.items() if f"a[{joint}]" in drawn}  # strips
    headings = []
    for name, (x, y) in places.link.items():
        if y in with_a:
            headings.append(Heading(name, "link", (x, y + 0.1)))
        elif f"A[{name}]" in drawn:
            headings.append(Heading(name, "link", (x, y + ROW["A"] + RADIUS + 0.32)))
    for name, (x, y) in places.joint.items():
        parent = mechanism.joint_by_name[name].parent if name not in loops else None
        starts = parent is not None and places.link[parent][1] != y and name not in places.turns
        top = y + RADIUS if y in with_a else y + ROW["A"] + RADIUS + 0.55
        if f"a[{name}]" in drawn or f"F[{name}]" in drawn:
            headings.append(Heading(name, "loop" if name in loops else "joint", (x, top + 0.12), starts))
    headings += [
        Heading(name, "coupling", (x, y + ROW["lambda"] - RADIUS - 0.45)) for name, (x, y) in places.coupling.items()
    ]
    return headings


def _beside(centre: Point, ends: Sequence[Point]) -> Point:
    """A place beside a circle, as far as possible from where lines end at its rim."""
    turns = np.radians(RANK_TURNS)
    places = np.array(centre) + 1.32 * RADIUS * np.stack([np.cos(turns), np.sin(turns)], axis=1)
    gaps = np.linalg.norm(places[:, None] - np.array(ends).reshape(-1, 2), axis=2).min(axis=1, initial=1.0)
    best = places[int(np.argmax(np.minimum(gaps, 0.8 * RADIUS)))]
    return float(best[0]), float(best[1])


def _around(points: Sequence[Point], headings: Sequence[Heading]) -> tuple[float, float, float, float]:
    """Bounds with a margin that leaves room for circles and names."""
    points = [*points, *(heading.place for heading in headings)]
    xs, ys = [p[0] for p in points], [p[1] for p in points]
    return min(xs) - 0.9, max(xs) + 0.9, min(ys) - 0.6, max(ys) + 0.7
