"""A trajectory becomes a plot: coordinates, torques, energy and closure error over time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from factorgraph_dyn.show.canvas import new_figure, save_figure
from factorgraph_dyn.solve.simulation import Trajectory

MOST_LABELS = 12  # more curves than this go unnamed


def plot_trajectory(trajectory: Trajectory, path: str | Path) -> None:
    """Draw a trajectory into a file; the name's ending tells the format (png, pdf, svg)."""
    mechanism, t = trajectory.mechanism, trajectory.t
    with_torques = bool(trajectory.tau.any())
    panels = 3 + with_torques if mechanism.is_closed_kind else 2 + with_torques
    figure = new_figure(7.0, 2.1 * panels, layout="constrained")
    axes = list(np.atleast_1d(figure.subplots(panels, 1, sharex=True)))
    axis = axes.pop(0)
    for name in mechanism.joint_names:
        for k, column in enumerate(trajectory.q[:, mechanism.q_slice(name)].T):
            several = mechanism.joint_by_name[name].nq > 1
            axis.plot(t, column, label=f"{name} {k}" if several else name)
    axis.set_ylabel("q (rad, m)")
    if mechanism.nq <= MOST_LABELS:
        axis.legend(fontsize="small", ncols=2)
    if with_torques:
        axis = axes.pop(0)
        for name in mechanism.joint_names:
            column = trajectory.tau[:, mechanism.v_slice(name)]
            if column.any():
                axis.plot(t, column, label=name)
        axis.set_ylabel("torque (N m, N)")
        axis.legend(fontsize="small", ncols=2)
    axis = axes.pop(0)
    for label, values in (("kinetic", trajectory.kinetic), ("potential", trajectory.potential),
                          ("total", trajectory.energy)):  # fmt: skip
        axis.plot(t, values, label=label)
    axis.set_ylabel("energy (J)")
    axis.legend(fontsize="small", ncols=3)
    if axes:
        axes[0].semilogy(t, np.maximum(trajectory.closure_error, 1e-17))
        axes[0].set_ylabel("closure error")
        axis = axes[0]
    axis.set_xlabel("time (s)")
    save_figure(figure, path)
