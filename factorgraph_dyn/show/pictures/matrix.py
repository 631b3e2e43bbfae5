"""The block-sparse matrix of a graph before elimination, and the triangular one after, fill marked."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.show.pictures.canvas import (
    COLOUR,
    FACTOR_COLOUR,
    FAINT,
    FILL,
    GREY,
    INK,
    new_figure,
    plain_axes,
    shortened,
    write_text,
)
from factorgraph_dyn.show.pictures.graph import write_title
from factorgraph_dyn.show.pictures.layout import Layout
from factorgraph_dyn.show.pictures.legend import add_legend, block_marks, fill_mark, legend_inches
from factorgraph_dyn.show.subject import elimination_steps

CELL_INCHES = 0.26  # of a block of size 6
LABEL_INCHES = 1.5  # room for the names of equations


def draw_matrix(layout: Layout, ordering: Ordering) -> Any:
    """Equations by variables before elimination, and the triangular matrix R after it."""
    subject = layout.subject
    steps = elimination_steps(subject, ordering)
    columns = [layout.nodes[name].variable.size for name in ordering]
    place = {name: index for index, name in enumerate(ordering)}
    labels = [layout.nodes[name].label for name in ordering]
    colours = [COLOUR.get(layout.nodes[name].variable.kind, INK) for name in ordering]

    used = [index for step in steps for index in step.gathered if index < len(subject.graph.factors)]
    factors = [subject.graph.factors[index] for index in used]
    before = [
        (row, place[str(variable)], FACTOR_COLOUR.get(factor.kind, INK))
        for row, factor in enumerate(factors)
        for variable, _ in factor.blocks
    ]
    after = [(row, row, colours[row]) for row in range(len(steps))]
    after += [
        (row, place[parent], colours[row] if parent in subject.neighbours[step.variable] else FILL)
        for row, step in enumerate(steps)
        for parent in step.parents
    ]
    structure = subject.structure(ordering)
    title = f"{subject.mechanism.name}: {subject.problem} dynamics, {ordering.name} ordering"
    caption = f"R after elimination: {structure.nonzeros} entries, {structure.fill} of them fill (orange)"
    rows = [factor.rows for factor in factors]
    names = [shortened(str(factor), 26, 1) for factor in factors]
    size = (_ends(columns)[-1] * CELL_INCHES, max(_ends(rows)[-1], _ends(columns)[-1]) * CELL_INCHES)
    width = 2 * size[0] + LABEL_INCHES + 1.5
    kinds = (layout.nodes[name].variable.kind for name in ordering)
    marks = [*block_marks(kinds, (factor.kind for factor in factors)), fill_mark(block=True)]
    below = legend_inches(marks, max(width, 7.5))
    height = size[1] + 1.35 + below
    figure = new_figure(max(width, 7.5), height)
    write_title(figure, title)
    add_legend(figure, marks)
    total = figure.get_size_inches()[0]
    side = (total - width) / 2
    panels = (
        (side + LABEL_INCHES + 0.1, "equations before elimination", rows, names, before),
        (side + LABEL_INCHES + 0.95 + size[0], caption, columns, labels, after),
    )
    for left, text, row_sizes, row_names, blocks in panels:
        box = (left / total, (0.1 + below) / height, size[0] / total, size[1] / height)
        _panel(figure, box, row_sizes, columns, blocks, row_names, labels, text, size)
    return figure


def scaled(size: int) -> float:
    """The side of a block on paper: a scalar stays visible beside a six-vector."""
    return 0.4 + 0.1 * min(size, 6)


def _ends(sizes: Sequence[int]) -> list[float]:
    """Where each row or column begins, and the end of the last."""
    ends = [0.0]
    for size in sizes:
        ends.append(ends[-1] + scaled(size))
    return ends


def _panel(
    figure: Any,
    box: tuple[float, float, float, float],
    rows: Sequence[int],
    columns: Sequence[int],
    blocks: Sequence[tuple[int, int, str]],
    row_names: Sequence[str],
    column_names: Sequence[str],
    caption: str,
    size: tuple[float, float],
) -> None:
    from matplotlib.collections import LineCollection, PatchCollection
    from matplotlib.patches import Rectangle

    y, x = _ends(rows), _ends(columns)
    width, height = size[0] / CELL_INCHES, size[1] / CELL_INCHES
    axes = plain_axes(figure, box, (0, width, -height, 0))
    grid = [((at, 0), (at, -y[-1])) for at in x] + [((0, -at), (x[-1], -at)) for at in y]
    axes.add_collection(LineCollection(grid, colors="#ececec", linewidths=0.5, zorder=0, clip_on=False))
    gap = 0.05
    cells = [
        Rectangle((x[j] + gap, -y[i + 1] + gap), x[j + 1] - x[j] - 2 * gap, y[i + 1] - y[i] - 2 * gap)
        for i, j, _ in blocks
    ]
    axes.add_collection(
        PatchCollection(cells, facecolors=[colour for _, _, colour in blocks], edgecolors="none", zorder=2)
    )
    axes.add_patch(Rectangle((0, -y[-1]), x[-1], y[-1], fill=False, edgecolor=FAINT, clip_on=False))
    for (start, end), name in zip(pairwise(y), row_names, strict=True):
        write_text(axes, -0.25, -(start + end) / 2, name, ha="right", fontsize=6, color=GREY)
    for (start, end), name in zip(pairwise(x), column_names, strict=True):
        write_text(axes, (start + end) / 2, 0.25, name, va="bottom", fontsize=6, rotation=90)
    words = shortened(caption, max(int(size[0] * 13), 34), 2)
    write_text(axes, x[-1] / 2, 1.75, words, va="bottom", fontsize=8, color=INK)
