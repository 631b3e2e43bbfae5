"""``fgdyn diagnose`` and ``fgdyn simulate``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
import typer

from factorgraph_dyn.commands.common import FormatOption, RobotArgument, find_robot, split_names
from factorgraph_dyn.errors import FactorGraphDynError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.integrators import Integrator
from factorgraph_dyn.show.pictures.canvas import check_drawable
from factorgraph_dyn.show.plots.trajectory import plot_trajectory
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.show.web_page import check_page
from factorgraph_dyn.solve.loops.diagnosis import diagnose as diagnose_mechanism
from factorgraph_dyn.solve.simulation import simulate as simulate_mechanism
from factorgraph_dyn.solve.trajectory import Trajectory
from factorgraph_dyn.spatial import Floats

StartOption = Annotated[
    int | None, typer.Option("--seed", help="Start at the random state of this seed; else neutral, at rest.")
]


def diagnose(
    robot: RobotArgument,
    seed: StartOption = None,
    actuated: Annotated[str | None, typer.Option(help="Comma-separated joints with motors.")] = None,
    format: FormatOption = "table",
) -> None:
    """Mobility, redundant constraints, over- and under-actuation, and what is not unique.

    Example:
        fgdyn diagnose five_bar --seed 1
    """
    mechanism = find_robot(robot)
    q, _ = _start(mechanism, seed)
    names = None if actuated is None else split_names(actuated)
    found = diagnose_mechanism(mechanism, q, actuated=names)
    print_rows(found.rows(), format, f"Diagnosis of {mechanism.name}")


def simulate(
    robot: RobotArgument,
    duration: Annotated[
        float, typer.Option(help="Seconds to simulate, rounded to whole steps, of which there must be one.")
    ] = 1.0,
    step: Annotated[float, typer.Option(help="Seconds of a time step.")] = 1e-3,
    method: Annotated[Integrator, typer.Option(help="How to integrate.")] = "rk4",
    engine: Annotated[
        Literal["kernel", "graph"], typer.Option(help="Compile first, or eliminate at every step.")
    ] = "kernel",
    seed: StartOption = None,
    plot: Annotated[Path | None, typer.Option(help="Draw joints, energy and closure error into this file.")] = None,
    view: Annotated[Path | None, typer.Option(help="Show the motion in this page (.html), to turn and play.")] = None,
    format: FormatOption = "table",
) -> None:
    """Let the mechanism move freely, without torques, and report energy and closure.

    energy is that at the start. Its drift is the largest error of the integration, as a share of how far the kinetic
    energy ranges; where damping or friction act, its change from start to end is told instead.

    Example:
        fgdyn simulate five_bar --seed 1 --duration 5 --plot motion.svg --view motion.html
    """
    mechanism = find_robot(robot)
    q, v = _start(mechanism, seed)
    if plot is not None:
        check_drawable(plot)  # before the work, not after it
    if view is not None:
        check_page(view, "the view")
    accelerate: Any = "graph"
    if engine == "kernel":
        from factorgraph_dyn.compiler import compile

        accelerate = compile(mechanism, "forward")
    try:
        trajectory = simulate_mechanism(mechanism, q, v, None, duration, step, method=method, engine=accelerate)
    except FactorGraphDynError as error:
        if seed is not None or not mechanism.is_closed_kind:
            raise
        # loops are often drawn folded, where no step is small enough
        elsewhere = "It began at the neutral configuration, which may be singular: --seed 1 begins elsewhere."
        raise type(error)(f"{error} {elsewhere}", **error.details) from None
    if plot is not None:
        plot_trajectory(trajectory, plot)
    if view is not None:
        trajectory.view(view)
    row = {
        "robot": mechanism.name,
        "method": method,
        "steps": len(trajectory.t) - 1,
        "time s": float(trajectory.t[-1]),
        "energy J": float(trajectory.energy[0]),
        **_energy_row(trajectory),
        "closure error": float(trajectory.closure_error.max()),
        "largest speed": float(np.abs(trajectory.v).max(initial=0.0)),
    }
    losses = "" if trajectory.is_conservative else ", which damping and friction slow down"
    print_rows([row], format, f"Free motion of {mechanism.name}{losses}")


def _energy_row(trajectory: Trajectory) -> dict[str, float]:
    """The error of an energy that is kept, or what is lost of another."""
    if trajectory.is_conservative:
        return {"energy drift": trajectory.energy_drift}
    return {"energy change J": float(trajectory.energy[-1] - trajectory.energy[0])}


def _start(mechanism: Mechanism, seed: int | None) -> tuple[Floats, Floats]:
    if seed is not None:
        return mechanism.random_state(seed)
    return mechanism.neutral(), np.zeros(mechanism.nv)
