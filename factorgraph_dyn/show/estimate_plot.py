"""Estimates over time become a plot: torques and wrenches from outside, with bands of two standard deviations."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np

from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.show.canvas import new_figure, save_figure
from factorgraph_dyn.solve.estimation.estimate import Estimate
from factorgraph_dyn.spatial import Floats

BAND = 2.0  # standard deviations to either side
WRENCH = ("mx", "my", "mz", "fx", "fy", "fz")


def plot_estimates(
    mechanism: Mechanism, t: Floats, means: Mapping[str, Floats], looked_at: Mapping[int, Estimate], path: str | Path
) -> None:
    """Draw estimates into a file; the name's ending tells the format (png, pdf, svg).

    Args:
        mechanism: The mechanism.
        t: Times, shape (samples,).
        means: Estimates by name, shape (samples, size) each.
        looked_at: Whole estimates at some samples, for their standard deviations.
        path: Of the picture.
    """
    panels = [(name, slice(0, None), "N m, N") for name in means if name == "tau"]
    for name in means:
        if name.startswith("W["):
            panels += [(name, slice(0, 3), "N m"), (name, slice(3, 6), "N")]
    figure = new_figure(7.0, 2.2 * len(panels), layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(len(panels), 1, sharex=True)))
    times = t[list(looked_at)]
    for axis, (name, part, unit) in zip(axes, panels, strict=True):
        labels = mechanism.joint_names if name == "tau" and len(mechanism.joint_names) == mechanism.nv else WRENCH
        deviations = np.array([each.standard_deviation[name][part] for each in looked_at.values()])
        for k, column in enumerate(means[name][:, part].T):
            several = name != "tau" or len(mechanism.joint_names) == mechanism.nv
            (line,) = axis.plot(t, column, linewidth=1.0, label=labels[part][k] if several else None)
            middle, wide = column[list(looked_at)], BAND * deviations[:, k]
            axis.fill_between(times, middle - wide, middle + wide, color=line.get_color(), alpha=0.2, linewidth=0)
        axis.set_ylabel(f"{name} ({unit})")
        if several:
            axis.legend(fontsize="small", ncols=3)
    axes[-1].set_xlabel("time (s)")
    save_figure(figure, path)
