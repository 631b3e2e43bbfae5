"""``fgdyn estimate``: a log of a robot and its sensors become the most probable torques, accelerations and forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import track

from factorgraph_dyn.commands.common import FormatOption, RobotArgument, find_robot
from factorgraph_dyn.commands.sensor_files import read_sensors
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.together import outside_frames
from factorgraph_dyn.errors import CompileError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.logs import Log, check_log_path, joint_columns, read_log, write_log
from factorgraph_dyn.show.canvas import check_drawable
from factorgraph_dyn.show.estimate_plot import plot_estimates
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.solve.estimation.estimate import Estimate, estimate
from factorgraph_dyn.spatial import Floats

LOOKED_AT = 40  # samples at which standard deviations and innovations are found, through the graph


class Samples(NamedTuple):
    """A log as arrays, a row a sample."""

    t: Floats
    q: Floats
    v: Floats
    values: Floats


def estimate_log(
    robot: RobotArgument,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CSV or NPZ with q, v and readings, a row a sample.")],
    sensors: Annotated[Path, typer.Option("--sensors", help="TOML file with one \\[\\[sensor]] after the other.")],
    out: Annotated[Path | None, typer.Option(help="Write all estimates to this .csv or .npz file.")] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw torques and outside wrenches with their bands.")] = None,
    format: FormatOption = "table",
) -> None:
    """Estimate torques, accelerations and outside wrenches from a log of noisy sensors.

    Columns of the log are q\\[joint], v\\[joint] and one of each sensor's name, such as Torque\\[elbow] or
    Accelerometer\\[hand].x. The sensors file has entries such as: \\[\\[sensor]] kind = "Torque", joint = "*",
    sigma = 0.1.
    The rows give each estimate's mean and standard deviation over the log, and how well each sensor fits the others:
    innovation is the root mean square of what it reads above what is probable, normalised; 1 where its noise is as
    it is said.

    Example:
        fgdyn estimate puma560 log.csv --sensors sensors.toml
    """
    mechanism = find_robot(robot)
    if plot is not None:
        check_drawable(plot)
    if out is not None:
        check_log_path(out)
    logged, read = read_sensors(sensors, mechanism), read_log(log)
    values = np.hstack([each.readings(mechanism, read) for each in logged])
    samples = Samples(_times(read), read.joints(mechanism, "q"), read.joints(mechanism, "v"), values)
    measured = [each.sensor for each in logged]
    names = ["a", "tau", *(f"W[{frame}]" for frame in outside_frames(measured))]
    places = np.unique(np.linspace(0, read.samples - 1, min(LOOKED_AT, read.samples)).astype(int))
    looked_at = {int(k): _at(mechanism, measured, samples, int(k)) for k in _progress(places, "standard deviations")}
    means = _means(mechanism, measured, samples, names)
    print_rows(
        _rows(mechanism, names, means, looked_at), format, f"Estimates of {mechanism.name}, {read.samples} samples"
    )
    if out is not None:
        write_log(out, {"t": samples.t, **means}, {name: _entry_names(mechanism, name) for name in means})
    if plot is not None:
        plot_estimates(mechanism, samples.t, means, looked_at, plot)


def _times(log: Log) -> Floats:
    return log.read(["t"])[:, 0] if "t" in log.columns else np.arange(log.samples, dtype=np.float64)


def _progress(places: Any, what: str) -> Any:
    """The places, with a bar on the terminal while they are gone through."""
    console = Console(stderr=True)
    return track(places, what, console=console, transient=True, disable=not console.is_terminal)


def _at(mechanism: Mechanism, sensors: Sequence[Sensor], samples: Samples, k: int) -> Estimate:
    """The estimate at one sample, through the graph."""
    sizes = [sensor.size(mechanism) for sensor in sensors]
    parts = np.split(samples.values[k], np.cumsum(sizes)[:-1])
    given = [replace(sensor, value=part) for sensor, part in zip(sensors, parts, strict=True)]  # type: ignore[type-var]
    return estimate(mechanism, samples.q[k], samples.v[k], given)


def _means(
    mechanism: Mechanism, sensors: Sequence[Sensor], samples: Samples, names: Sequence[str]
) -> dict[str, Floats]:
    """The most probable values at all samples, by a kernel; through the graph where there is none."""
    try:
        kernel = compile(mechanism, "estimate", measurements=sensors, outputs=names)
    except CompileError:
        found = [_at(mechanism, sensors, samples, k) for k in _progress(range(len(samples.q)), "samples")]
        return {name: np.array([each.mean(name) for each in found]) for name in names}
    results = kernel(samples.q, samples.v, samples.values)
    return dict(zip(names, results, strict=True))


def _rows(
    mechanism: Mechanism, names: Sequence[str], means: dict[str, Floats], looked_at: dict[int, Estimate]
) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for name in names:
        deviations = np.mean([each.standard_deviation[name] for each in looked_at.values()], axis=0)
        for k, entry in enumerate(_entry_names(mechanism, name)):
            column = means[name][:, k]
            rows.append(
                {
                    "name": entry,
                    "mean": float(np.nanmean(column)),
                    "least": float(np.nanmin(column)),
                    "largest": float(np.nanmax(column)),
                    "standard deviation": float(deviations[k]),
                }
            )
    labels = next(iter(looked_at.values())).innovations
    for label in labels:
        found = np.concatenate([each.innovations[label] for each in looked_at.values()])
        tested = found[np.isfinite(found)]
        rows.append({"name": label, "innovation": float(np.sqrt(np.mean(tested**2))) if len(tested) else None})
    return rows


def _entry_names(mechanism: Mechanism, name: str) -> list[str]:
    if name not in ("a", "tau"):
        return [f"{name}.{component}" for component in ("mx", "my", "mz", "fx", "fy", "fz")]
    return joint_columns(mechanism, name)
