"""A trajectory becomes a plot: coordinates, torques, energy and closure error over time."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.show.pictures.canvas import check_drawable, new_figure, save_figure
from factorgraph_dyn.solve.trajectory import Trajectory

MOST_LABELS = 12  # more curves than this go unnamed
LEAST_SHOWN = 1e-17  # closure error: a logarithm has no zero


def plot_trajectory(trajectory: Trajectory, path: str | Path | None = None) -> Any:
    """A trajectory as a Matplotlib figure, written to a file too if there is a path, whose ending tells the format."""
    if path is not None:
        check_drawable(path)  # before the work, not after it
    panels = [_draw_coordinates, _draw_energy]
    if trajectory.tau.any():
        panels.insert(1, _draw_torques)
    if trajectory.mechanism.is_closed_kind:
        panels.append(_draw_closure_error)
    figure = new_figure(7.0, 2.1 * len(panels), layout="constrained")
    axes = np.atleast_1d(figure.subplots(len(panels), 1, sharex=True))
    for draw, axis in zip(panels, axes, strict=True):
        draw(trajectory, axis)
    axes[-1].set_xlabel("time (s)")
    if path is not None:
        save_figure(figure, path)
    return figure


def _draw_coordinates(trajectory: Trajectory, axis: Any) -> None:
    mechanism = trajectory.mechanism
    for name in mechanism.joint_names:
        for k, column in enumerate(trajectory.q[:, mechanism.q_slice(name)].T):
            several = mechanism.joint_by_name[name].nq > 1
            axis.plot(trajectory.t, column, label=f"{name} {k}" if several else name)
    axis.set_ylabel("q (rad, m)")
    if mechanism.nq <= MOST_LABELS:
        axis.legend(fontsize="small", ncols=2)


def _draw_torques(trajectory: Trajectory, axis: Any) -> None:
    for name in trajectory.mechanism.joint_names:
        column = trajectory.tau[:, trajectory.mechanism.v_slice(name)]
        if column.any():
            axis.plot(trajectory.t, column, label=name)
    axis.set_ylabel("torque (N m, N)")
    axis.legend(fontsize="small", ncols=2)


def _draw_energy(trajectory: Trajectory, axis: Any) -> None:
    for label, values in (("kinetic", trajectory.kinetic), ("potential", trajectory.potential),
                          ("total", trajectory.energy)):  # fmt: skip
        axis.plot(trajectory.t, values, label=label)
    axis.set_ylabel("energy (J)")
    axis.legend(fontsize="small", ncols=3)


def _draw_closure_error(trajectory: Trajectory, axis: Any) -> None:
    axis.semilogy(trajectory.t, np.maximum(trajectory.closure_error, LEAST_SHOWN))
    axis.set_ylabel("closure error")
