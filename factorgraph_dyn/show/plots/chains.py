"""Times of M^-1 B over the length of a chain become a plot."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from factorgraph_dyn.show.pictures.canvas import new_figure, save_figure

STYLES = {"columns": "o-", "iim": "s--", "eufm": "^:", "O(n)": "-"}


def plot_chains(rows: Sequence[dict[str, Any]], path: Path) -> None:
    """Draw rows of `papers.chain_sweep` into a file; the name's ending tells the format (png, pdf, svg)."""
    figure = new_figure(9.0, 3.6, layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for axis, inputs in zip(axes, ("one input", "all inputs"), strict=True):
        for method, style in STYLES.items():
            times = [row[f"{method}, {inputs} (ms)"] for row in rows]
            axis.plot([row["links"] for row in rows], times, style, label=method, markersize=4)
        axis.set(title=f"chain, {inputs}", xlabel="links", ylabel="time (ms)", yscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend()
    save_figure(figure, path)
