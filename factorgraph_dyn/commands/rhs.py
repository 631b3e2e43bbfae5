"""``fgdyn iwim`` and ``fgdyn bench papers``: one more right-hand side."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from factorgraph_dyn.commands.common import FormatOption, RobotArgument, SeedOption, find_robot, split_names
from factorgraph_dyn.compare import papers as measured
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.show.canvas import check_drawable, new_figure, save_figure
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.solve import Contact, input_dynamics


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command()(iwim)


def iwim(
    robot: RobotArgument,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated places: LINK_OR_FRAME\\[@x:y:z]\\[/wrench]\\[/world], such as foot@0:0:-0.1/world; "
            "'frames' for every frame of the model."
        ),
    ] = None,
    actuated: Annotated[
        str | None, typer.Option(help="Comma-separated joints; by default those with motors, '' for none.")
    ] = None,
    method: Annotated[str, typer.Option(help="columns, iim, eufm or carpentier.")] = "columns",
    q: Annotated[str | None, typer.Option(help="Comma-separated coordinates; by default random.")] = None,
    seed: SeedOption = 0,
    format: FormatOption = "table",
) -> None:
    """Print M^-1 B: the joint accelerations that unit motor torques and contact forces cause."""
    mechanism = find_robot(robot)
    v = np.zeros(mechanism.nv)
    coordinates = mechanism.random_state(seed)[0] if q is None else mechanism.check_q(_numbers(q, "--q", ","))
    if contacts == "frames":
        places = [Contact(frame.name) for frame in mechanism.frames]
    else:
        places = [_contact(text) for text in split_names(contacts)]
    joints = None if actuated is None else split_names(actuated)
    answer = input_dynamics(mechanism, coordinates, v, actuated=joints, contacts=places, method=method)
    rows = []
    for name in mechanism.joint_names:
        entries = mechanism.v_slice(name)
        for k, row in enumerate(answer.matrix[entries]):
            label = name if entries.stop - entries.start == 1 else f"{name}.{k}"
            rows.append({"acceleration": label} | dict(zip(answer.names, row.tolist(), strict=True)))
    print_rows(rows, format, f"M^-1 B of {mechanism.name}, {len(answer.names)} inputs, by {method}")


def papers(
    plot: Annotated[Path | None, typer.Option(help="Draw times over chain length to this file.")] = None,
    rounds: Annotated[int, typer.Option(min=1, help="How often every call is timed.")] = measured.ROUNDS,
    format: FormatOption = "table",
) -> None:
    """Measure the tables of the papers and print them beside the published figures."""
    if plot is not None:
        check_drawable(plot)  # before minutes of measuring
    tables = {
        "M^-1 B (Kroeg, Gattringer & Mueller)": measured.input_matrix_tables(rounds),
        "M^-1 B over chain length": measured.chain_sweep(rounds=max(1, rounds // 3)),
        "Orderings of the PUMA 560 in GTSAM (Xie & Dellaert)": measured.ordering_tables(rounds),
        "Matrix-free products of spatial operators": measured.operator_growth(rounds=max(1, rounds // 3)),
    }
    if format == "table":
        for title, rows in tables.items():
            print_rows(rows, format, title)
    else:
        print_rows([{"table": title} | row for title, rows in tables.items() for row in rows], format)
    if plot is not None:
        _draw_sweep(tables["M^-1 B over chain length"], plot)


def _contact(text: str) -> Contact:
    """A contact from LINK_OR_FRAME[@x:y:z][/wrench][/world]."""
    place, *options = text.split("/")
    name, _, point = place.partition("@")
    unknown = [option for option in options if option not in ("wrench", "world", "force", "link")]
    if unknown:
        raise InputError(
            f"The contact {text!r} has the option {unknown[0]!r}; it may have /force, /wrench, /link, /world."
        )
    where = _numbers(point, f"The point of contact {text!r}", ":") if point else [0.0, 0.0, 0.0]
    kind = "wrench" if "wrench" in options else "force"
    return Contact(name, where, kind, axes="world" if "world" in options else "link")


def _numbers(text: str, what: str, separator: str) -> list[float]:
    try:
        return [float(part) for part in text.split(separator)]
    except ValueError:
        raise InputError(f"{what} is {text!r}; give numbers separated by {separator!r}.") from None


def _draw_sweep(rows: list[dict[str, Any]], path: Path) -> None:
    figure = new_figure(9.0, 3.6, layout="constrained")
    axes = figure.subplots(1, 2, sharex=True)
    for axis, inputs in zip(axes, ("one input", "all inputs"), strict=True):
        for method, style in (("columns", "o-"), ("iim", "s--"), ("eufm", "^:"), ("O(n)", "-")):
            times = [row[f"{method}, {inputs} (ms)"] for row in rows]
            axis.plot([row["links"] for row in rows], times, style, label=method, markersize=4)
        axis.set(title=f"chain, {inputs}", xlabel="links", ylabel="time (ms)", yscale="log")
        axis.grid(alpha=0.3)
    axes[0].legend()
    save_figure(figure, path)
