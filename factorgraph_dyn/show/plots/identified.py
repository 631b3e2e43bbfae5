"""What was identified becomes a plot: measured and predicted torques, parameters with error bars."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.identification.identified import Identified
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.show.pictures.canvas import COLOUR, GREY, INK, check_drawable, new_figure, save_figure
from factorgraph_dyn.spatial import Floats

MOST_POINTS = 4000  # of a curve: more cannot be told apart
BAR = 2.0  # standard deviations to either side


def plot_identified(
    found: Identified, path: str | Path | None = None, *, t: Floats | None = None, samples: Samples | None = None
) -> Any:
    """Parameters before and after, and torques where there is a log, as a figure; written to a file too."""
    if path is not None:
        check_drawable(path)
    torques = [] if samples is None else [one.joint for one in found.fit]
    rows = len(found.rows())
    figure = new_figure(8.0, 1.3 * len(torques) + 1.2 + 0.16 * rows, layout="constrained")
    grid = figure.add_gridspec(len(torques) + 1, 1, height_ratios=[*[1.3] * len(torques), 1.2 + 0.16 * rows])
    if samples is not None and t is not None:
        _draw_torques(figure, grid, found, t, samples)
    _draw_parameters(figure.add_subplot(grid[-1]), found)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_torques(figure: Any, grid: Any, found: Identified, t: Floats, samples: Samples) -> None:
    few = slice(None, None, -(-len(t) // MOST_POINTS))
    measured, predicted = found.compare(samples.part(few))
    for k, one in enumerate(found.fit):
        axis = figure.add_subplot(grid[k])
        axis.plot(t[few], measured[:, k], color=GREY, linewidth=0.8, label="measured")
        axis.plot(t[few], predicted[:, k], color=COLOUR["tau"], linewidth=0.8, label="predicted")
        axis.set_ylabel(f"{one.joint}\n(N m, N)", fontsize=8, parse_math=False)
        axis.set_title(f"{100 * one.relative:.2g} % left", loc="right", fontsize=8, color=GREY)
        if k == 0:
            axis.legend(fontsize="small", ncols=2, loc="upper left")


def _draw_parameters(axis: Any, found: Identified) -> None:
    """A line a parameter, in units of what it may be of: its prior, its value and twice its standard deviation."""
    rows = found.rows()
    values, before, deviations = (
        np.array([row[key] for row in rows]) for key in ("value", "before", "standard deviation")
    )
    finite = np.where(np.isfinite(deviations), deviations, 0.0)
    unit = np.maximum(np.maximum(np.abs(values), np.abs(before)), finite)
    unit[unit == 0] = 1.0
    places = -np.arange(len(rows))
    axis.errorbar(
        values / unit, places, xerr=BAR * finite / unit, fmt="o", markersize=3, color=COLOUR["tau"], linewidth=1,
        label="identified, two standard deviations",
    )  # fmt: skip
    axis.plot(before / unit, places, "|", color=INK, label="before")
    axis.set_yticks(places, [row["name"] for row in rows], fontsize=6, parse_math=False)
    axis.set_xlim(-3.2, 3.2)
    axis.set_ylim(places[-1] - 1, 1)
    axis.set_xlabel("beside its own size")
    axis.legend(fontsize="small", loc="lower right")
    axis.grid(axis="x", alpha=0.3)
