"""``fgdyn compile`` and ``fgdyn bench``."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Annotated

import typer

from factorgraph_dyn.commands.common import (
    FormatOption,
    KernelProblem,
    KnownOption,
    ParametersOption,
    RobotArgument,
    WideOption,
    find_robot,
    split_names,
)
from factorgraph_dyn.commands.sensor_files import read_sensors
from factorgraph_dyn.compare.benchmark import benchmark_kernels, machine_name
from factorgraph_dyn.compiler import compile
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.show.tables import Format, print_rows

SPARE = ("robot", "nv", "Pinocchio ns one call", "MuJoCo ns one call", "operations", "ordering")
OrderingOption = Annotated[
    str | None, typer.Option("--ordering", help="Name of an ordering; the one of fewest operations by default.")
]


def compile_kernel(
    robot: RobotArgument,
    problem: Annotated[KernelProblem, typer.Option("--problem", help="What the kernel computes.")] = "forward",
    ordering: OrderingOption = None,
    known: KnownOption = "",
    outputs: Annotated[
        str, typer.Option("--outputs", help="Comma-separated results instead of the usual ones: a,da/dq,T[link6].")
    ] = "",
    parameters: ParametersOption = "",
    sensors: Annotated[
        Path | None, typer.Option("--sensors", help="For estimate: TOML file with sensors, as of fgdyn estimate.")
    ] = None,
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write C source to this file, its header beside it.")
    ] = None,
    c: Annotated[Path | None, typer.Option("--c", hidden=True)] = None,  # as --output was called before
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Compile a problem in an ordering to machine code, and tell what it costs.

    Example:
        fgdyn compile puma560 --problem inverse -o puma560.c
    """
    mechanism = find_robot(robot)
    if (problem == "estimate") != (sensors is not None):
        raise InputError(
            f"The problem is {problem!r} and --sensors is {'not given' if sensors is None else 'given'}; the estimate "
            "problem, and no other, has sensors: fgdyn compile ROBOT --problem estimate --sensors FILE.toml."
        )
    measured = () if sensors is None else tuple(each.sensor for each in read_sensors(sensors, mechanism))
    begin = time.perf_counter()
    kernel = compile(
        mechanism,
        problem,
        ordering=ordering,
        known_accelerations=split_names(known),
        outputs=split_names(outputs) or None,
        parameters=split_names(parameters) or None,
        measurements=measured,
    )
    seconds = time.perf_counter() - begin
    count = kernel.operations
    row = {
        "robot": mechanism.name,
        "problem": problem,
        "ordering": kernel.ordering.name,
        "multiplications": count.multiplications,
        "additions": count.additions,
        "divisions": count.divisions,
        "sincos": count.sincos,
        "accuracy": kernel.accuracy,
        "seconds": seconds,
    }
    output = output or c
    if output is not None:
        try:
            source, header = kernel.to_c(output)
        except OSError as error:
            raise InputError(f"The C source cannot be written to {str(output)!r}: {error.strerror}.") from None
        row["source"], row["header"] = str(source), str(header)
    print_rows([row], format, f"Kernel of {mechanism.name}", wide=wide, spare=("robot",))


def bench(
    robot: Annotated[
        str, typer.Argument(metavar="ROBOT", help="A robot or file, or 'papers' for the tables of the papers.")
    ],
    ordering: OrderingOption = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="With 'papers': draw times over chain length.")] = None,
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Time kernels beside Pinocchio and MuJoCo, where installed; 'papers' prints the papers' tables beside ours.

    Example:
        fgdyn bench puma560
    """
    if robot == "papers":
        _bench_papers(plot, format, wide)
        return
    if plot is not None:
        raise InputError("--plot draws the papers' chains: fgdyn bench papers --plot FILE.")
    mechanism = find_robot(robot)
    orderings = None if ordering is None else {"forward": ordering, "inverse": ordering}
    title = f"{mechanism.name}, {mechanism.nv} freedoms, one core of {machine_name()}"
    print_rows(benchmark_kernels(mechanism, orderings), format, title, wide=wide, spare=SPARE)


def _bench_papers(plot: Path | None, format: Format, wide: bool) -> None:
    """Measure the tables of the papers and print them beside the published figures."""
    from factorgraph_dyn.compare import papers
    from factorgraph_dyn.show.pictures.canvas import check_drawable
    from factorgraph_dyn.show.plots.chains import plot_chains

    if plot is not None:
        check_drawable(plot)  # before minutes of measuring
    chains = "M^-1 B over chain length"
    tables = {
        "M^-1 B (Kroeg, Gattringer & Mueller)": papers.input_matrix_tables(),
        chains: papers.chain_sweep(rounds=papers.ROUNDS // 3),
        "Orderings of the PUMA 560 in GTSAM (Xie & Dellaert)": papers.ordering_tables(),
        "Matrix-free products of spatial operators": papers.operator_growth(rounds=papers.ROUNDS // 3),
    }
    if format == "table":
        for title, rows in tables.items():
            print_rows(rows, format, title, wide=wide)
    else:
        print_rows([{"table": title} | row for title, rows in tables.items() for row in rows], format)
    if plot is not None:
        plot_chains(tables[chains], plot)
