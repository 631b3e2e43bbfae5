"""``fgdyn search``."""

from __future__ import annotations

from pathlib import Path
from textwrap import fill
from typing import Annotated

import typer

from factorgraph_dyn.commands.common import (
    FormatOption,
    KnownOption,
    ParametersOption,
    RobotArgument,
    SearchedProblem,
    WideOption,
    find_robot,
    split_names,
)
from factorgraph_dyn.search import search_orderings
from factorgraph_dyn.search.scores import Objective
from factorgraph_dyn.show.tables import print_rows

SPARE = ("divisions", "additions", "multiplications", "evaluations", "error")


def search(
    robot: RobotArgument,
    problem: Annotated[SearchedProblem, typer.Option("--problem", help="What the kernel computes.")] = "forward",
    budget: Annotated[float, typer.Option(help="Seconds to search.")] = 60.0,
    objective: Annotated[Objective, typer.Option(help="What shall be small.")] = "operations",
    known: KnownOption = "",
    parameters: ParametersOption = "",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Results file to go on from and to keep up to date.")
    ] = None,
    resume: Annotated[bool, typer.Option(help="Go on from the results file, and from what earlier runs found.")] = True,
    seed: Annotated[int, typer.Option(help="Seed of the random moves.")] = 0,
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Search for a better elimination ordering; Ctrl-C keeps the best so far.

    The best is saved for this robot: kernels compiled with ordering "search" use it, and the next search goes on
    from it.

    Example:
        fgdyn search puma560 --budget 30
    """
    result = search_orderings(
        find_robot(robot),
        problem,
        budget=budget,
        objective=objective,
        seed=seed,
        known_accelerations=split_names(known),
        parameters=split_names(parameters) or None,
        results=output,
        resume=resume,
    )
    print_rows(result.rows(), format, f"{problem} dynamics of {result.mechanism.name}", wide=wide, spare=SPARE)
    if format == "table":
        if result.remark:
            print(result.remark)
        print()
        print(fill(" ".join(result.variables), 80, break_long_words=False, break_on_hyphens=False))
