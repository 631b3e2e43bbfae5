"""``fgdyn estimate``: a log of a robot and its sensors become the most probable torques, accelerations and forces."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, NamedTuple

import numpy as np
import typer

from factorgraph_dyn.commands.common import FormatOption, RobotArgument, find_robot
from factorgraph_dyn.commands.sensor_files import read_readings, read_sensors
from factorgraph_dyn.compiler import Kernel, compile
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.together import outside_frames, stacked_noise
from factorgraph_dyn.errors import CompileError, InputError
from factorgraph_dyn.identification.progress import watched
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.motion.logs import check_log_path, joint_columns, read_log, write_log
from factorgraph_dyn.show.pictures.canvas import check_drawable
from factorgraph_dyn.show.plots.estimate import plot_estimates
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.solve.estimation.estimate import Estimate, estimate
from factorgraph_dyn.spatial import Floats

LOOKED_AT = 40  # samples at which innovations are found, through the graph
BLOCK = 4096  # samples at a time, whose gains are held in memory


class Samples(NamedTuple):
    """A log as arrays, a row a sample."""

    t: Floats
    q: Floats
    v: Floats
    values: Floats


class Estimates(NamedTuple):
    """The most probable values and their standard deviations by name, shape (samples, size) each."""

    means: dict[str, Floats]
    deviations: dict[str, Floats]


def estimate_log(
    robot: RobotArgument,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CSV or NPZ with q, v and readings, a row a sample.")],
    sensors: Annotated[Path, typer.Option("--sensors", help="TOML file with one [[sensor]] after the other.")],
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write all estimates to this .csv or .npz file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option(help="Draw torques and outside wrenches with their bands.")] = None,
    out: Annotated[Path | None, typer.Option("--out", hidden=True)] = None,  # as --output was called before
    format: FormatOption = "table",
) -> None:
    """Estimate torques, accelerations and outside wrenches from a log of noisy sensors.

    Columns of the log are q[joint], v[joint] and one of each sensor's name, such as Torque[elbow] or
    Accelerometer[hand].x. The sensors file has entries such as: [[sensor]] kind = "Torque", joint = "*",
    sigma = 0.1. Without one called t, samples are counted.
    The rows give each estimate's mean and standard deviation over the log, and how well each sensor fits the others:
    innovation is the root mean square of what it reads above what is probable, normalised; 1 where its noise is as
    it is said, and untested where no other sensor tells. The file has both at every sample.

    Example:
        fgdyn estimate puma560 log.csv --sensors sensors.toml -o estimates.csv
    """
    mechanism = check_movable(find_robot(robot), "estimate")
    output = output or out
    if plot is not None:
        check_drawable(plot)
    if output is not None:
        check_log_path(output)
    logged, read = read_sensors(sensors, mechanism), read_log(log)
    values = read_readings(logged, mechanism, read)
    samples = Samples(read.t, read.joints(mechanism, "q"), read.joints(mechanism, "v"), values)
    measured = [each.sensor for each in logged]
    names = ["a", "tau", *(f"W[{frame}]" for frame in outside_frames(measured))]
    places = np.unique(np.linspace(0, read.samples - 1, min(LOOKED_AT, read.samples)).astype(int))
    looked_at = [_at(mechanism, measured, samples, k) for k in watched(places.tolist(), "innovations", None)]
    found = _estimates(mechanism, measured, samples, names)
    rows = [*_rows(mechanism, found), *_fits(looked_at)]
    print_rows(rows, format, f"Estimates of {mechanism.name}, {read.samples} samples")
    if output is not None:
        write_log(output, *_columns(mechanism, samples.t, found))
    if plot is not None:
        plot_estimates(mechanism, samples.t, found.means, found.deviations, plot)


def _at(mechanism: Mechanism, sensors: Sequence[Sensor], samples: Samples, k: int) -> Estimate:
    """The estimate at one sample, through the graph."""
    sizes = [sensor.size(mechanism) for sensor in sensors]
    parts = np.split(samples.values[k], np.cumsum(sizes)[:-1])
    given = [replace(sensor, value=part) for sensor, part in zip(sensors, parts, strict=True)]  # type: ignore[type-var]
    return estimate(mechanism, samples.q[k], samples.v[k], given)


def _estimates(mechanism: Mechanism, sensors: Sequence[Sensor], samples: Samples, names: Sequence[str]) -> Estimates:
    """The most probable values and their deviations at all samples, by a kernel; through the graph where there is none.

    Raises:
        InputError: The kernel has no answer at some sample.
    """
    try:
        kernel = compile(
            mechanism, "estimate", measurements=sensors, outputs=[*names, *(f"gain[{name}]" for name in names)]
        )
    except CompileError:
        found = [_at(mechanism, sensors, samples, k) for k in watched(range(len(samples.q)), "samples", None)]
        means = [np.array([each.mean(name) for each in found]) for name in names]
        deviations = [np.array([each.standard_deviation[name] for each in found]) for name in names]
        return Estimates(dict(zip(names, means, strict=True)), dict(zip(names, deviations, strict=True)))
    blocks = [
        _block(kernel, sensors, Samples(*(part[first : first + BLOCK] for part in samples)), first)
        for first in watched(range(0, len(samples.q), BLOCK), "samples", None)
    ]
    parts = [np.concatenate(part) for part in zip(*blocks, strict=True)]
    return Estimates(
        dict(zip(names, parts[: len(names)], strict=True)), dict(zip(names, parts[len(names) :], strict=True))
    )


def _block(kernel: Kernel, sensors: Sequence[Sensor], samples: Samples, first: int) -> list[Floats]:
    """Means, then deviations, of some samples: the noise of all readings, L e, moves a mean by gain L e."""
    results = kernel(samples.q, samples.v, samples.values)
    means, gains = results[: len(results) // 2], results[len(results) // 2 :]
    silent = np.flatnonzero(~np.isfinite(np.concatenate(means, axis=1)).all(axis=1))
    if len(silent):
        k = int(silent[0])
        reasons = " ".join(kernel.check(samples.q[k], samples.v[k], samples.values[k]))
        raise InputError(
            f"{len(silent)} samples have no answer; the first is sample {first + k + 1}: {reasons or 'singular.'} "
            "Cut these samples out, or add sensors."
        )
    L = stacked_noise(kernel.mechanism, sensors)
    return [*means, *(np.linalg.norm(gain @ L, axis=-1) for gain in gains)]


def _rows(mechanism: Mechanism, found: Estimates) -> list[dict[str, Any]]:
    return [
        {
            "name": entry,
            "mean": float(column.mean()),
            "least": float(column.min()),
            "largest": float(column.max()),
            "standard deviation": float(deviations.mean()),
        }
        for name, means in found.means.items()
        for entry, column, deviations in zip(
            _entry_names(mechanism, name), means.T, found.deviations[name].T, strict=True
        )
    ]


def _fits(looked_at: Sequence[Estimate]) -> list[dict[str, Any]]:
    """How well each sensor fits the others."""
    rows: list[dict[str, Any]] = []
    for label in looked_at[0].innovations:
        found = np.concatenate([each.innovations[label] for each in looked_at])
        tested = found[np.isfinite(found)]
        rows.append({"name": label, "innovation": float(np.sqrt(np.mean(tested**2))) if len(tested) else "untested"})
    return rows


def _entry_names(mechanism: Mechanism, name: str) -> list[str]:
    if name not in ("a", "tau"):
        return [f"{name}.{component}" for component in ("mx", "my", "mz", "fx", "fy", "fz")]
    return joint_columns(mechanism, name)


def _columns(mechanism: Mechanism, t: Floats, found: Estimates) -> tuple[dict[str, Floats], dict[str, Sequence[str]]]:
    """All estimates and their deviations by name, and the names of their entries."""
    deviations = {f"sigma({name})": columns for name, columns in found.deviations.items()}
    entries: dict[str, Sequence[str]] = {name: _entry_names(mechanism, name) for name in found.means}
    entries |= {f"sigma({name})": [f"sigma({entry})" for entry in entries[name]] for name in found.means}
    return {"t": t, **found.means, **deviations}, entries
