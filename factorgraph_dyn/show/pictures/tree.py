"""The clique tree of an ordering: what can be done at the same time stands on one level.

The level of a clique is one more than that of its highest child: a clique can start when all its
children are done. Steps run from the bottom to the roots at the top.
"""

from __future__ import annotations

from dataclasses import dataclass
from textwrap import wrap
from typing import Any

from factorgraph_dyn.equations import Variable
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.show.pictures.canvas import COLOUR, FAINT, GREY, INK, PALE, new_figure, plain_axes, write_text
from factorgraph_dyn.show.pictures.graph import write_title
from factorgraph_dyn.show.pictures.layout import Layout
from factorgraph_dyn.show.pictures.legend import add_legend, kind_marks, legend_inches

CHARACTER = 0.078  # inches of a character at the size used
BOX_HEIGHT = 0.3
LEVEL_HEIGHT = 0.62
GAP = 0.3
REMARK_CHARACTERS, REMARK_LINE = 15, 0.14  # of the remark below: letters an inch, inches a line
LINE_WIDTH = 34  # characters after which a long clique goes on in the next line


@dataclass(frozen=True)
class Clique:
    """A clique on paper.

    Attributes:
        frontals: Names of the variables eliminated here, first eliminated first.
        separator: Names of those they depend on.
        parent: Number of the clique above, or None.
        level: Parallel step in which it is done, from 0.
        x: Its centre in inches.
        lines: Its text.
    """

    frontals: tuple[str, ...]
    separator: tuple[str, ...]
    parent: int | None
    level: int
    x: float
    lines: tuple[str, ...]

    @property
    def width(self) -> float:
        """Of its box, inches."""
        return max(len(line) for line in self.lines) * CHARACTER + 0.18


def place_cliques(layout: Layout, ordering: Ordering) -> tuple[Clique, ...]:
    """The cliques of an ordering with their levels and places; a parent comes after its children."""
    cliques = layout.subject.structure(ordering).cliques
    rank = {name: index for index, name in enumerate(ordering)}
    children: dict[int | None, list[int]] = {}
    level = [0] * len(cliques)
    for index, (_, _, parent) in enumerate(cliques):
        children.setdefault(parent, []).append(index)
        if parent is not None:
            level[parent] = max(level[parent], level[index] + 1)
    names = [(_in_order(frontals, rank), _in_order(separator, rank)) for frontals, separator, _ in cliques]
    texts = [_text(layout, frontals, separator) for frontals, separator in names]
    widths = [max(map(len, lines)) * CHARACTER + 0.18 for lines in texts]
    centre = _spread(children, widths)
    return tuple(Clique(*names[i], cliques[i][2], level[i], centre[i], texts[i]) for i in range(len(cliques)))


def _in_order(variables: frozenset[Variable], rank: dict[str, int]) -> tuple[str, ...]:
    return tuple(sorted(map(str, variables), key=rank.__getitem__))


def _text(layout: Layout, frontals: tuple[str, ...], separator: tuple[str, ...]) -> tuple[str, ...]:
    words = [layout.nodes[name].label for name in frontals]
    if separator:
        words += ["|", *(layout.nodes[name].label for name in separator)]
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) + 1 > LINE_WIDTH:
            lines.append("")
        lines[-1] += (" " if lines[-1] else "") + word
    return tuple(lines)


def _spread(children: dict[int | None, list[int]], widths: list[float]) -> list[float]:
    """Centres such that a parent stands over its children and no two subtrees share a column."""
    room = list(widths)
    for above in sorted(key for key in children if key is not None):  # children have lower numbers
        below = sum(room[child] for child in children[above]) + GAP * (len(children[above]) - 1)
        room[above] = max(widths[above], below)
    centre = [0.0] * len(widths)
    waiting: list[tuple[int | None, float]] = [(None, 0.0)]
    while waiting:
        parent, left = waiting.pop()
        members = children.get(parent, [])
        if parent is not None:
            below = sum(room[child] for child in members) + GAP * (len(members) - 1)
            left += max(0.0, (room[parent] - below) / 2)
        for child in members:
            centre[child] = left + room[child] / 2
            waiting.append((child, left))
            left += room[child] + GAP
    return centre


def draw_tree(layout: Layout, ordering: Ordering) -> Any:
    """The clique tree with its parallel levels."""
    from matplotlib.patches import FancyBboxPatch

    subject = layout.subject
    cliques = place_cliques(layout, ordering)
    levels = max((clique.level for clique in cliques), default=0) + 1
    tallest = [max((len(c.lines) for c in cliques if c.level == k), default=1) for k in range(levels)]
    base = [0.0]
    for most in tallest:
        base.append(base[-1] + LEVEL_HEIGHT + 0.15 * (most - 1))
    left = min((c.x - c.width / 2 for c in cliques), default=0.0) - 1.5
    right = max((c.x + c.width / 2 for c in cliques), default=1.0) + 0.3
    short = max(0.0, 4.8 - (right - left)) / 2
    left, right = left - short, right + short
    marks = kind_marks(layout.nodes[clique.frontals[0]].variable.kind for clique in cliques)
    remark = "eliminated together | what they depend on; coloured as the first of them; "
    remark += f"{len(cliques)} cliques in {levels} parallel steps"
    lines = wrap(remark, int((right - left) * REMARK_CHARACTERS))
    under = 0.1 + REMARK_LINE * len(lines)
    below = 0.06 + under + legend_inches(marks, right - left)
    height = base[-1] + 0.55 + below
    figure = new_figure(right - left, height)
    add_legend(figure, marks, under)
    write_title(figure, f"{subject.mechanism.name}: {subject.problem} dynamics, {ordering.name} ordering")
    axes = plain_axes(figure, (0, below / height, 1, base[-1] / height), (left, right, 0, base[-1]))
    for k in range(levels):
        count = sum(clique.level == k for clique in cliques)
        if k % 2 == 0:
            axes.axhspan(base[k], base[k + 1], color="#f5f5f5", zorder=0)
        words = f"step {k + 1}" + (f": {count} at once" if count > 1 else "")
        write_text(axes, left + 0.1, (base[k] + base[k + 1]) / 2, words, ha="left", fontsize=7, color=GREY)
    middle = [(base[c.level] + base[c.level + 1]) / 2 for c in cliques]
    for clique, y in zip(cliques, middle, strict=True):
        if clique.parent is not None:
            above = cliques[clique.parent]
            bus = base[above.level] + 0.02  # the child's own column is free up to here
            ways = (clique.x, clique.x, above.x, above.x), (y, bus, bus, middle[clique.parent])
            axes.plot(*ways, color=INK, linewidth=0.9, zorder=1, solid_joinstyle="round")
    for clique, y in zip(cliques, middle, strict=True):
        kind = layout.nodes[clique.frontals[0]].variable.kind
        tall = BOX_HEIGHT + 0.15 * (len(clique.lines) - 1)
        axes.add_patch(
            FancyBboxPatch(
                (clique.x - clique.width / 2, y - tall / 2), clique.width, tall,
                boxstyle="round,pad=0,rounding_size=0.08", facecolor=PALE.get(kind, FAINT),
                edgecolor=COLOUR.get(kind, INK), linewidth=1.0, zorder=2,
            )
        )  # fmt: skip
        write_text(axes, clique.x, y, "\n".join(clique.lines), fontsize=8.5, zorder=3, linespacing=1.15)
    figure.text(0.5, 0.5 * under / height, "\n".join(lines), ha="center", va="center", fontsize=7.5, color=GREY)
    return figure
