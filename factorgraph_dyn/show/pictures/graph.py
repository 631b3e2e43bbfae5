"""The factor graph and the Bayes net as the papers draw them, whole or in the middle of elimination."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.show.pictures.canvas import (
    COLOUR,
    FAINT,
    FILL,
    GREY,
    INCHES,
    INK,
    NEW,
    PALE,
    new_figure,
    plain_axes,
    shortened,
    write_text,
)
from factorgraph_dyn.show.pictures.layout import Heading, Layout, Node
from factorgraph_dyn.show.pictures.legend import Mark, add_legend, arrow_marks, graph_marks, kind_marks, legend_inches
from factorgraph_dyn.show.pictures.places import RADIUS
from factorgraph_dyn.show.plots.curves import Point
from factorgraph_dyn.show.subject import ShownStep, elimination_steps

TITLE_INCHES = 0.5


def draw_graph(layout: Layout) -> Any:
    """The factor graph: circles unknown, squares known, dots equations."""
    subject = layout.subject
    title = f"{subject.mechanism.name}: {subject.problem} dynamics"
    kinds = (node.variable.kind for node in layout.nodes.values())
    figure, axes = framed(layout.bounds, title, [*graph_marks(), *kind_marks(kinds)])
    paint_headings(axes, layout.headings)
    paint_factors(axes, layout, range(len(layout.dots)))
    for node in layout.nodes.values():
        paint_node(axes, node)
    return figure


def draw_dag(layout: Layout, ordering: Ordering) -> Any:
    """The Bayes net of an ordering: arrows lead from what a variable depends on to the variable."""
    subject = layout.subject
    title = f"{subject.mechanism.name}: {subject.problem} dynamics, {ordering.name} ordering"
    steps = elimination_steps(subject, ordering)
    arrows = [(parent, step.variable) for step in steps for parent in step.parents]
    marks = [*kind_marks(layout.nodes[step.variable].variable.kind for step in steps), *arrow_marks()]
    figure, axes = framed(layout.dag_bounds(arrows), title, marks, "small numbers: order of elimination")
    ranks = layout.rank_places(arrows)
    paint_headings(axes, layout.unknown_headings)
    paint_arrows(axes, layout, steps)
    for rank, step in enumerate(steps, 1):
        paint_node(axes, layout.nodes[step.variable])
        write_text(axes, *ranks[step.variable], str(rank), fontsize=5.8, color=GREY, zorder=6)
    return figure


def framed(
    bounds: tuple[float, float, float, float], title: str, marks: Sequence[Mark], remark: str = ""
) -> tuple[Any, Any]:
    """A figure that shows bounds, with its title, legend and remark, and the axes to draw on."""
    left, right, bottom, top = bounds
    width = max((right - left) * INCHES, 4.5)
    height = (top - bottom) * INCHES
    below = 0.24 if remark else 0.04
    room = below + legend_inches(marks, width)
    total = height + TITLE_INCHES + room
    figure = new_figure(width, total)
    axes = plain_axes(figure, (0, room / total, 1, height / total), bounds)
    write_title(figure, title)
    add_legend(figure, marks, below)
    figure.text(0.5, 0.14 / total, remark, ha="center", va="center", fontsize=7.5, color=GREY)
    return figure, axes


def write_title(figure: Any, title: str) -> None:
    """The title in one line at the top of a figure."""
    width, height = figure.get_size_inches()
    text = shortened(title, int(width * 10), 1)
    figure.text(0.5, 1 - 0.25 / height, text, ha="center", va="center", fontsize=11, color=INK,
                parse_math=False)  # fmt: skip


def paint_headings(axes: Any, headings: Sequence[Heading], size: float = 7.0) -> None:
    """Names of joints above their columns, of links above their accelerations."""
    behind = {"facecolor": "white", "edgecolor": "none", "pad": 0.6, "alpha": 0.85}
    for heading in headings:
        x, y = heading.place
        style: dict[str, Any] = {"fontsize": size, "linespacing": 1.1, "zorder": 2.2, "bbox": behind}
        text = "\n".join(heading.lines)
        if heading.kind == "link":
            write_text(axes, x, y, text, color=GREY, style="italic", **style)
        elif heading.kind == "coupling":
            write_text(axes, x, y, text, color=COLOUR["lambda"], **style)
        elif heading.starts_strip:  # the way down from the parent runs close on the left
            write_text(axes, x - 0.38, y, text, ha="left", va="bottom", **style)
        else:
            write_text(axes, x, y, text, va="bottom", **style)


def paint_factors(axes: Any, layout: Layout, factors: Collection[int], scale: float = 1.0) -> None:
    """Equations by their numbers, with lines to their variables."""
    from matplotlib.collections import LineCollection

    chosen = [layout.dots[index] for index in factors]
    lines = [line for dot in chosen for line in dot.lines.values()]
    axes.add_collection(LineCollection(lines, colors=INK, linewidths=0.9 * scale, zorder=1))
    points = [dot.place for dot in chosen]
    if points:
        axes.scatter(*zip(*points, strict=True), s=26 * scale**2, color=INK, zorder=3)


def paint_node(axes: Any, node: Node, *, strong: bool = False, faded: bool = False, scale: float = 1.0) -> None:
    """A circle or square with its letter and number."""
    from matplotlib.patches import Circle, Rectangle

    x, y = node.place
    kind = node.variable.kind
    edge = FAINT if faded else COLOUR.get(kind, INK)
    face = "white" if faded else COLOUR.get(kind, INK) if strong else PALE.get(kind, "white")
    style: dict[str, Any] = {"facecolor": face, "edgecolor": edge, "linewidth": 1.2 * scale, "zorder": 4}
    if node.known:
        side = 2 * RADIUS * 0.88
        axes.add_patch(Rectangle((x - side / 2, y - side / 2), side, side, **style))
    else:
        axes.add_patch(Circle((x, y), RADIUS, **style))
    letter = {"tau": r"\tau", "lambda": r"\lambda"}.get(kind, kind)
    colour = GREY if faded else "white" if strong else INK
    axes.text(x, y - 0.02, f"${letter}_{{{node.number}}}$", ha="center", va="center", fontsize=10 * scale,
              color=colour, zorder=5)  # fmt: skip


def paint_arrows(axes: Any, layout: Layout, steps: Sequence[ShownStep], scale: float = 1.0) -> None:
    """The dependencies that steps have made; fill is orange."""
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path

    for step in steps:
        near = layout.subject.neighbours[step.variable]
        for parent in step.parents:
            points = layout.arrow(parent, step.variable)
            fill = parent not in near
            axes.add_patch(
                FancyArrowPatch(
                    path=Path(points),
                    arrowstyle=f"-|>,head_width={2.2 * scale},head_length={4.5 * scale}",
                    color=FILL if fill else "#555555",
                    linewidth=0.9 * scale,
                    zorder=2 if fill else 2.5,
                    shrinkA=0,
                    shrinkB=0,
                )
            )


def paint_new_factor(axes: Any, layout: Layout, scope: Sequence[str], place: Point, scale: float = 1.0) -> None:
    """An equation that elimination left over its parents: a diamond tied to each."""
    from matplotlib.collections import LineCollection

    lines = [layout.tie(place, name) for name in scope]
    axes.add_collection(LineCollection(lines, colors=NEW, linewidths=1.1 * scale, zorder=1.5))
    axes.scatter([place[0]], [place[1]], s=34 * scale**2, marker="D", color=NEW, edgecolors="white",
                 linewidths=0.6 * scale, zorder=3.5)  # fmt: skip
