"""Cost and time of orderings side by side, as horizontal bars; shorter is better."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.show.pictures.canvas import COLOUR, FAINT, GREY, new_figure, shortened, write_text
from factorgraph_dyn.show.pictures.graph import write_title

# Columns of a comparison that are costs, and what they are called.
COSTS = {
    "operations": "operations of the kernel",
    "kernel_ns": "kernel, ns a state",
    "time_us": "GTSAM elimination, µs",
    "nonzeros": "entries of R",
    "fill": "fill of R",
    "clique": "widest clique",
    "depth": "parallel steps",
}


def draw_bars(rows: Sequence[Mapping[str, Any]], title: str) -> Any:
    """Bars of every cost over the orderings that apply.

    Args:
        rows: As from ``compare_orderings``.
        title: Stands above.
    """
    costs = [cost for cost in COSTS if any(_number(row.get(cost)) is not None for row in rows)]
    shown = [row for row in rows if any(_number(row.get(cost)) is not None for cost in costs)]
    if not shown:
        raise InputError("No ordering of the comparison applies to this problem; there is nothing to draw.")
    across = 4 if len(costs) > 6 else min(len(costs), 3)
    down = -(-len(costs) // across)
    panel = 0.26 * len(shown) + 0.75
    figure = new_figure(3.3 * across + 0.9, panel * down + 0.85)
    height = figure.get_size_inches()[1]
    write_title(figure, title)
    words = "shorter is better; green: the best of all"
    figure.text(0.5, 0.14 / height, words, ha="center", va="center", fontsize=7.5, color=GREY)
    grid = figure.add_gridspec(down, across, left=0.1, right=0.97, top=1 - 0.85 / height,
                               bottom=0.4 / height, wspace=0.12, hspace=0.55 / (panel - 0.55))  # fmt: skip
    names = [shortened(str(row["ordering"]), 14, 1) for row in shown]
    for index, cost in enumerate(costs):
        axes = figure.add_subplot(grid[index // across, index % across])
        values = [_number(row.get(cost)) for row in shown]
        _bars(axes, names if index % across == 0 else [""] * len(names), values)
        axes.set_title(COSTS[cost], fontsize=8.5, loc="left", color=GREY)
    return figure


def _bars(axes: Any, names: Sequence[str], values: Sequence[float | None]) -> None:
    lengths = np.array([0.0 if value is None else value for value in values])
    best = min(value for value in values if value is not None)
    colours = [COLOUR["F"] if value == best else "#9db8d6" for value in values]
    rows = range(len(values))
    axes.barh(rows, lengths, color=colours, height=0.68)
    axes.set_xlim(0, max(lengths.max() * 1.25, 1e-12))
    axes.set_ylim(len(values) - 0.5, -0.5)
    for row, value in zip(rows, values, strict=True):
        words = " not measured" if value is None else f" {_short(value)}"
        write_text(axes, 0.0 if value is None else value, row, words, ha="left", fontsize=7.5, color=GREY)
    for row, name in zip(rows, names, strict=True):
        write_text(axes, -0.02 * axes.get_xlim()[1], row, name, ha="right", fontsize=8)
    axes.set_xticks([])
    axes.set_yticks([])
    for side in ("top", "right", "bottom"):
        axes.spines[side].set_visible(False)
    axes.spines["left"].set_color(FAINT)


def _short(value: float) -> str:
    return f"{value:.0f}" if value >= 100 or value == round(value) else f"{value:.3g}"


def _number(value: Any) -> float | None:
    """A finite number, or None."""
    if isinstance(value, (int, float, np.number)) and not isinstance(value, bool) and np.isfinite(value):
        return float(value)
    return None
