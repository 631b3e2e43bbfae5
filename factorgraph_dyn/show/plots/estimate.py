"""Estimates over time become a plot: torques and wrenches from outside, with bands of two standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.show.pictures.canvas import new_figure, save_figure
from factorgraph_dyn.spatial import Floats

BAND = 2.0  # standard deviations to either side
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")


def plot_estimates(
    mechanism: Mechanism, t: Floats, means: Mapping[str, Floats], deviations: Mapping[str, Floats], path: str | Path
) -> None:
    """Draw estimates into a file; the name's ending tells the format (png, pdf, svg).

    Args:
        mechanism: The mechanism.
        t: Times, shape (samples,).
        means: Estimates by name, shape (samples, size) each.
        deviations: Their standard deviations, in the same way.
        path: Of the picture.
    """
    panels = [(name, slice(0, None), "N m, N") for name in means if name == "tau"]
    for name in means:
        parts = [(name, slice(0, 3), "N m"), (name, slice(3, 6), "N")] if name.startswith("W[") else []
        # The moments of a point contact are no news.
        panels += [each for each in parts if means[name][:, each[1]].any() or deviations[name][:, each[1]].any()]
    figure = new_figure(7.0, 2.2 * len(panels), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(len(panels), 1, sharex=True)))
    for axis, (name, part, unit) in zip(axes, panels, strict=True):
        labels = mechanism.joint_names if name == "tau" and len(mechanism.joint_names) == mechanism.nv else WRENCH
        for k, (column, s) in enumerate(zip(means[name][:, part].T, deviations[name][:, part].T, strict=True)):
            several = name != "tau" or len(mechanism.joint_names) == mechanism.nv
            (line,) = axis.plot(t, column, linewidth=1.0, label=labels[part][k] if several else None)
            band = column - BAND * s, column + BAND * s
            axis.fill_between(t, *band, color=line.get_color(), alpha=0.2, linewidth=0)
        axis.set_ylabel(f"{name} ({unit})")
        if several:
            axis.legend(fontsize="small", ncols=3)
    axes[-1].set_xlabel("time (s)")
    save_figure(figure, path)
