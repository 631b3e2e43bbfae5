"""What was identified becomes a plot: measured and predicted torques, and a panel a link of parameters with error bars.

Parameters that the log tells nothing of are counted in their panel's title and left out; those that it tells only in
combinations with others are hollow and pale, as their bars are those of what was known before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.identification.identified import Identified
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.show.pictures.canvas import COLOUR, FAINT, GREY, INK, check_drawable, new_figure, save_figure
from factorgraph_dyn.spatial import Floats

MOST_POINTS = 4000  # of a curve: more cannot be told apart
BAR = 2.0  # standard deviations to either side
ACROSS = 3  # panels of parameters in a line
TORQUES_ACROSS = 2
WIDTH, TORQUE_HEIGHT, ROW_HEIGHT, TITLE_HEIGHT = 11.0, 1.3, 0.17, 0.6  # inches
CUT_AT = 1.6  # in units of a parameter's size: bars that go on beyond are cut there
SHOWN_AS_ZERO = 1e-3  # of its error bar: what a number is zero below
TOLD = {"alone": "determined, two standard deviations", "combined": "determined only in combinations"}

Rows = list[dict[str, Any]]


def plot_identified(
    found: Identified, path: str | Path | None = None, *, t: Floats | None = None, samples: Samples | None = None
) -> Any:
    """Parameters before and after, and torques where there is a log, as a figure; written to a file too."""
    if path is not None:
        check_drawable(path)
    torques = 0 if samples is None or t is None else -(-len(found.fit) // TORQUES_ACROSS)
    panels = _panels(found)
    lines = [panels[k : k + ACROSS] for k in range(0, len(panels), ACROSS)]
    heights = [TITLE_HEIGHT + ROW_HEIGHT * max(len(_told(rows)) for _, rows in line) for line in lines]
    above = TORQUE_HEIGHT * torques
    figure = new_figure(WIDTH, above + sum(heights) + TITLE_HEIGHT, layout="constrained")
    parts = figure.subfigures(2 if torques else 1, 1, height_ratios=[above, sum(heights)] if torques else None)
    if samples is not None and t is not None:
        _draw_torques(parts[0], found, t, samples)
    below = parts[1] if torques else parts
    grid = below.add_gridspec(len(lines), ACROSS, height_ratios=heights)
    for k, (name, rows) in enumerate(panels):
        _draw_panel(below.add_subplot(grid[k // ACROSS, k % ACROSS]), name, rows)
    _explain(below)
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_torques(part: Any, found: Identified, t: Floats, samples: Samples) -> None:
    few = slice(None, None, -(-len(t) // MOST_POINTS))
    measured, predicted = found.compare(samples.part(few))
    lines = -(-len(found.fit) // TORQUES_ACROSS)
    axes = part.subplots(lines, TORQUES_ACROSS, sharex=True, squeeze=False).T.flat
    for k, one in enumerate(found.fit):
        axis = axes[k]
        axis.plot(t[few], measured[:, k], color=FAINT, linewidth=3.0, label="measured")
        axis.plot(t[few], predicted[:, k], color=COLOUR["tau"], linewidth=0.8, label="predicted")
        axis.set_ylabel(f"{one.joint}\n(N m, N)", fontsize=8, parse_math=False)
        axis.set_title(f"{100 * one.relative:.2g} % left", loc="right", fontsize=8, color=GREY, pad=2)
        axis.tick_params(labelsize=7)
        if (k + 1) % lines == 0 or k + 1 == len(found.fit):
            axis.set_xlabel("t", fontsize=8)
            axis.tick_params(labelbottom=True)
    for axis in axes[len(found.fit) :]:
        axis.set_visible(False)
    axes[0].legend(fontsize=7, ncols=2, loc="lower left", bbox_to_anchor=(0.0, 1.0), frameon=False, borderpad=0.0)


def _panels(found: Identified) -> list[tuple[str, Rows]]:
    """The rows of each link, and of each effect of joints, by name; without their names' common part."""
    panels: dict[str, Rows] = {}
    for row in found.rows():
        name = str(row["name"])
        if name.endswith("]"):
            owner, _, own = name[:-1].partition("[")
        else:
            owner, _, own = name.rpartition(".")
        panels.setdefault(owner, []).append({**row, "name": own})
    return list(panels.items())


def _told(rows: Rows) -> Rows:
    """Those of which the log tells something."""
    return [row for row in rows if row["determined"] in TOLD]


def _draw_panel(axis: Any, name: str, rows: Rows) -> None:
    """A line a parameter, in units of its size: what it was, what it is, and twice its standard deviation."""
    told = _told(rows)
    open_ones = len(rows) - len(told)
    axis.set_title(name, loc="left", fontsize=9, color=INK, parse_math=False)
    axis.set_title(
        f"{open_ones} of {len(rows)} not determined" if open_ones else "", loc="right", fontsize=7, color=GREY
    )
    for place, row in enumerate(told):
        _draw_row(axis, -place, row)
    axis.axvline(0.0, color=FAINT, linewidth=0.8, zorder=0)
    axis.set_yticks(-np.arange(len(told)), [row["name"] for row in told], fontsize=7, parse_math=False)
    axis.set_ylim(-max(len(told), 1) + 0.3, 0.7)
    axis.set_xlim(-CUT_AT, CUT_AT)
    axis.set_xticks([-1.0, 0.0, 1.0], ["-1", "0", "1"], fontsize=6, color=GREY)
    axis.spines[["top", "right", "left"]].set_visible(False)
    axis.tick_params(axis="y", length=0)


def _draw_row(axis: Any, place: float, row: dict[str, Any]) -> None:
    """One parameter, its number at the right."""
    alone = row["determined"] == "alone"
    value, before, deviation = (float(row[key]) for key in ("value", "before", "standard deviation"))
    bar = BAR * deviation if np.isfinite(deviation) else np.inf
    size = max(abs(value), abs(before), bar if alone else 0.0) or 1.0
    ends = np.clip([(value - bar) / size, (value + bar) / size], -CUT_AT, CUT_AT)
    colour = COLOUR["tau"] if alone else GREY
    axis.plot(ends, [place, place], color=COLOUR["tau"] if alone else FAINT, linewidth=2.0 if alone else 1.0, zorder=1)
    axis.plot([before / size], [place], "|", color=INK, markersize=8, markeredgewidth=1.3, zorder=3)
    axis.plot(
        [value / size], [place], "o", color=colour, markersize=4, zorder=2, markerfacecolor=None if alone else "white"
    )
    shown = value if abs(value) > SHOWN_AS_ZERO * bar or not alone else 0.0
    text = f"{shown:.3g} ± {bar:.1g}" if alone else f"{shown:.3g}"
    axis.annotate(text, (1.0, place), xycoords=("axes fraction", "data"), xytext=(3, 0), textcoords="offset points",
                  fontsize=6, color=colour, va="center")  # fmt: skip


def _explain(part: Any) -> None:
    """The legend of all panels."""
    from matplotlib.lines import Line2D

    signs = [
        Line2D([], [], color=COLOUR["tau"], marker="o", markersize=4, linewidth=2.0, label=TOLD["alone"]),
        Line2D([], [], color=FAINT, marker="o", markersize=4, linewidth=1.0, markerfacecolor="white",
               markeredgecolor=GREY, label=TOLD["combined"]),
        Line2D([], [], color=INK, marker="|", markersize=8, markeredgewidth=1.3, linewidth=0.0, label="before"),
    ]  # fmt: skip
    part.legend(handles=signs, loc="outside lower center", ncols=3, fontsize=8, frameon=False,
                title="Parameters beside the larger of what they were and are; numbers in SI units",
                title_fontsize=8)  # fmt: skip
