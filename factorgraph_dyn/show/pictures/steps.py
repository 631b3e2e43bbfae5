"""Elimination step by step: a strip of small pictures, or an animation.

In each the variables eliminated so far have their arrows, and what is left of the graph has its dots;
an equation that elimination made is a pink diamond.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import ceil, log
from pathlib import Path as FilePath
from typing import Any

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.show.pictures.canvas import GREY, INCHES, check_ending, new_figure, plain_axes, shortened
from factorgraph_dyn.show.pictures.graph import (
    paint_arrows,
    paint_factors,
    paint_headings,
    paint_new_factor,
    paint_node,
    write_title,
)
from factorgraph_dyn.show.pictures.layout import Layout
from factorgraph_dyn.show.pictures.legend import Mark, add_legend, graph_marks, kind_marks, legend_inches, step_marks
from factorgraph_dyn.show.plots.curves import Point
from factorgraph_dyn.show.subject import ShownStep, elimination_steps

MOST_PANELS = 12  # and as many more as the last row has room for
READING = "A3 | A2, a3: A3 is eliminated and depends on A2 and a3"
STRIP_WIDTH = 24.0  # inches that the panels of a row share where they would be wider
SHAPE = 1.3  # width by height that the whole picture comes close to
ROOM_OF_NEW = 0.12  # units between an equation that elimination made and what is drawn
DOT = 0.1  # units that an equation of the graph takes
SECONDS_A_STEP = 0.8
LONGEST_SIDE = 1600  # pixels of an animation


def draw_steps(layout: Layout, ordering: Ordering) -> Any:
    """The elimination as a strip of pictures: every step of a small graph, some of a large one."""
    steps = elimination_steps(layout.subject, ordering)
    left, right, bottom, top = steps_bounds(layout, steps)
    width, height = (right - left) * INCHES, (top - bottom) * INCHES
    panels = min(len(steps) + 1, MOST_PANELS)
    across = _panels_across(panels, width, height)
    down = ceil(panels / across)
    chosen = _evenly(len(steps), across * down)
    scale = min(1.0, STRIP_WIDTH / (across * width))
    caption = 0.32
    panel = (width * scale, height * scale + caption)
    marks = _marks(layout)
    total_width = max(across * panel[0], 5.0)
    below = legend_inches(marks, total_width) + 0.24
    figure = new_figure(total_width, down * panel[1] + 0.55 + below)
    total_width, total_height = figure.get_size_inches()
    write_title(figure, _title(layout, ordering))
    add_legend(figure, marks, 0.24)
    remark = "; ".join(filter(None, (READING, _skipped(chosen))))
    figure.text(0.5, 0.14 / total_height, shortened(remark, int(total_width * 14), 1), ha="center", va="center",
                fontsize=7.5, color=GREY)  # fmt: skip
    for index, count in enumerate(chosen):
        row, column = divmod(index, across)
        x = column * total_width / across
        y = total_height - 0.55 - (row + 1) * panel[1]
        place = (x / total_width, y / total_height, 1 / across, height * scale / total_height)
        axes = plain_axes(figure, place, (left, right, bottom, top))
        words = shortened(step_words(layout, steps, count), int(13 * total_width / across), 1)
        figure.text((x + total_width / across / 2) / total_width, (y + height * scale + 0.1) / total_height,
                    words, ha="center", va="center", fontsize=8.5, parse_math=False)  # fmt: skip
        paint_step(axes, layout, steps, count, scale)
    return figure


def animate_steps(layout: Layout, ordering: Ordering, path: str | FilePath) -> None:
    """Write the elimination as an animated GIF, one frame a step."""
    file = check_ending(path, (".gif",))
    steps = elimination_steps(layout.subject, ordering)
    left, right, bottom, top = bounds = steps_bounds(layout, steps)
    marks = _marks(layout)
    width = max((right - left) * INCHES, 5.0)
    below = legend_inches(marks, width)
    height = (top - bottom) * INCHES + 0.9 + below
    figure = new_figure(width, height)
    from matplotlib.animation import PillowWriter

    writer = PillowWriter(fps=1 / SECONDS_A_STEP)  # type: ignore[arg-type]
    dpi = min(110.0, LONGEST_SIDE / max(width, height))
    try:
        with writer.saving(figure, str(file), dpi=dpi):
            for count in range(len(steps) + 1):
                figure.clear()
                write_title(figure, _title(layout, ordering))
                add_legend(figure, marks)
                axes = plain_axes(figure, (0, below / height, 1, 1 - (0.9 + below) / height), bounds)
                words = shortened(step_words(layout, steps, count), int(13 * width), 1)
                figure.text(0.5, 1 - 0.65 / height, words, ha="center", fontsize=9, parse_math=False)
                paint_step(axes, layout, steps, count, 1.0)
                writer.grab_frame()
    except OSError as error:
        raise InputError(f"The picture {str(file)!r} cannot be written: {error.strerror or error}.") from None


def steps_bounds(layout: Layout, steps: Sequence[ShownStep]) -> tuple[float, float, float, float]:
    """What all steps need: the bounds of the graph, of the arrows in the end and of what elimination makes."""
    arrows = [(parent, step.variable) for step in steps for parent in step.parents]
    made = [(place_of_new(layout, step), step.parents) for step in steps if step.made is not None]
    ties = [point for place, parents in made for name in parents for point in layout.tie(place, name)]
    one, other = layout.bounds, layout.dag_bounds(arrows)
    xs, ys = zip((one[0], one[2]), (one[1], one[3]), (other[0], other[2]), (other[1], other[3]), *ties, strict=True)
    return min(xs), max(xs), min(ys), max(ys)


def paint_step(axes: Any, layout: Layout, steps: Sequence[ShownStep], count: int, scale: float) -> None:
    """The graph after the first ``count`` steps; the last one's variable stands out."""
    done = steps[:count]
    gone = {index for step in done for index in step.gathered}
    eliminated = {step.variable for step in done}
    paint_headings(axes, layout.headings, 7.0 * scale)
    paint_factors(axes, layout, [i for i in range(len(layout.dots)) if i not in gone], scale)
    for step in done:
        if step.made is not None and step.made not in gone:
            paint_new_factor(axes, layout, step.parents, place_of_new(layout, step), scale)
    paint_arrows(axes, layout, done, scale)
    last = done[-1].variable if done else None
    for name, node in layout.nodes.items():
        if not node.known:
            paint_node(axes, node, strong=name == last, faded=name in eliminated and name != last,
                       scale=scale)  # fmt: skip
        else:
            held = any(name in dot.lines for i, dot in enumerate(layout.dots) if i not in gone)
            paint_node(axes, node, faded=not held, scale=scale)


def place_of_new(layout: Layout, step: ShownStep) -> Point:
    """Where an equation made by a step stands: between its variables, clear of what is drawn there."""
    places = np.array([layout.nodes[name].place for name in step.parents])
    middle = 0.55 * places.mean(axis=0) + 0.45 * np.array(layout.nodes[step.variable].place)
    drawn, keep = layout.drawn
    dots = np.array([dot.place for dot in layout.dots])
    best, most = middle, -np.inf
    for reach in (0.0, 0.25, 0.5, 0.75):
        for turn in np.arange(8) * np.pi / 4 + 0.4:
            place = middle + reach * np.array([np.cos(turn), np.sin(turn)])
            gap = min((np.hypot(*(drawn - place).T) - keep).min(), np.hypot(*(dots - place).T).min() - DOT)
            if gap > most + 1e-9:
                best, most = place, gap
        if most >= ROOM_OF_NEW:
            break
    return float(best[0]), float(best[1])


def step_words(layout: Layout, steps: Sequence[ShownStep], count: int) -> str:
    """What a step did, in one line."""
    if count == 0:
        return "before elimination"
    step = steps[count - 1]
    given = " | " + ", ".join(layout.nodes[name].label for name in step.parents) if step.parents else ""
    return f"{count} of {len(steps)}: {layout.nodes[step.variable].label}{given}"


def _title(layout: Layout, ordering: Ordering) -> str:
    subject = layout.subject
    return f"{subject.mechanism.name}: {subject.problem} dynamics, {ordering.name} ordering, step by step"


def _marks(layout: Layout) -> list[Mark]:
    return [*graph_marks(), *kind_marks(node.variable.kind for node in layout.nodes.values()), *step_marks()]


def _skipped(chosen: Sequence[int]) -> str:
    """Which steps have no picture, in words."""
    runs = [(one + 1, other - 1) for one, other in pairwise(chosen) if other > one + 1]
    if not runs:
        return ""
    steps = ", ".join(f"{first}" if first == last else f"{first} to {last}" for first, last in runs)
    return f"not shown: {'step' if steps.isdigit() else 'steps'} {steps}"


def _panels_across(panels: int, width: float, height: float) -> int:
    """How many panels stand in a row so that the whole comes closest to a page's shape."""

    def distance(across: int) -> float:
        return abs(log(across * width / (ceil(panels / across) * height) / SHAPE))

    return min(range(1, panels + 1), key=distance)


def _evenly(steps: int, most: int) -> list[int]:
    """Numbers of steps to show, the first and the last among them."""
    if steps + 1 <= most:
        return list(range(steps + 1))
    return sorted({round(i * steps / (most - 1)) for i in range(most)})
