"""``fgdyn search``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from factorgraph_dyn.commands.common import (
    FormatOption,
    KernelProblem,
    KnownOption,
    RobotArgument,
    find_robot,
    split_names,
)
from factorgraph_dyn.search import SearchResult, search_orderings
from factorgraph_dyn.search.scores import Objective
from factorgraph_dyn.show.tables import print_rows


def register(app: typer.Typer) -> None:
    """Add the commands to the app."""
    app.command()(search)


def search(
    robot: RobotArgument,
    problem: Annotated[KernelProblem, typer.Option("--problem", help="What the kernel computes.")] = "forward",
    budget: Annotated[float, typer.Option(help="Seconds to search.")] = 60.0,
    objective: Annotated[Objective, typer.Option(help="What shall be small.")] = "operations",
    known: KnownOption = "",
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Results file to go on from and to keep up to date.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on from the results file if it exists.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of the random moves.")] = 0,
    format: FormatOption = "table",
) -> None:
    """Search for a better elimination ordering; Ctrl-C keeps the best so far.

    The best is saved for this robot: kernels compiled with ordering "search" use it.
    """
    result = search_orderings(
        find_robot(robot),
        problem,
        budget=budget,
        objective=objective,
        seed=seed,
        known_accelerations=split_names(known),
        results=output,
        resume=resume,
    )
    print_rows(_rows(result), format, f"{problem} dynamics of {result.mechanism.name}")
    if format == "table":
        print(" ".join(result.variables))


def _rows(result: SearchResult) -> list[dict[str, Any]]:
    rows = [_row(name, b.operations, b.error, b.seconds_a_state) for name, b in result.baseline.items()]
    if result.operations is not None:
        rows.append(_row("search", result.operations, result.error, result.seconds_a_state))
    else:
        rows.append({"ordering": "search", "score": result.score, "proved": result.proved})
    rows[-1] |= {"evaluations": result.evaluations, "seconds": round(result.seconds, 1)}
    return rows


def _row(name: str, operations: Any, error: float | None, seconds: float | None) -> dict[str, Any]:
    row = {
        "ordering": name,
        "operations": operations.total,
        "multiplications": operations.multiplications,
        "additions": operations.additions,
        "divisions": operations.divisions,
        "error": error,
    }
    return row if seconds is None else row | {"time_ns": 1e9 * seconds}
