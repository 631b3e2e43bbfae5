"""What all commands share: finding robots, the table options, and errors without tracebacks."""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable
from contextvars import ContextVar
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from factorgraph_dyn.checks import shown
from factorgraph_dyn.equations.problem import PROBLEM_NAMES, SEARCHED_NAMES, SOLVED_NAMES
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, robots
from factorgraph_dyn.show.tables import Format
from factorgraph_dyn.text import printable

if TYPE_CHECKING:
    Problem = str
    KernelProblem = str
    SearchedProblem = str
else:  # choices are read while the program runs
    Problem, KernelProblem = Literal[SOLVED_NAMES], Literal[PROBLEM_NAMES]
    SearchedProblem = Literal[SEARCHED_NAMES]

MODEL_FILES = (".urdf", ".xacro", ".xml", ".mjcf", ".sdf", ".world", ".json", ".yaml")


def complete_robot(incomplete: str) -> list[str]:
    """What a shell offers for ROBOT: built-in names, folders and model files."""
    begin = Path(incomplete)
    folder, start = (begin, "") if incomplete.endswith("/") else (begin.parent, begin.name)
    beside = sorted(path for path in folder.glob("*") if path.name.startswith(start) and path.name[0] != ".")
    return [
        *(name for name in robots.BUILT_IN if name.startswith(incomplete)),
        *(f"{path}/" for path in beside if path.is_dir()),
        *(str(path) for path in beside if path.suffix in MODEL_FILES),
    ]


RobotArgument = Annotated[
    str,
    typer.Argument(
        metavar="ROBOT",
        help="A built-in name (see 'fgdyn robots'), such as puma560 or pendulum:5, or a model file.",
        autocompletion=complete_robot,
    ),
]
XacroOption = Annotated[
    bool,
    typer.Option("--xacro", help="Expand the file by xacro first, which runs what it says: for files you trust."),
]
FormatOption = Annotated[Format, typer.Option("--format", help="How to print the rows.")]
WideOption = Annotated[bool, typer.Option("--wide", help="Show all columns, however wide the table gets.")]
ProblemOption = Annotated[Problem, typer.Option("--problem", help="Which quantities are known.")]
SeedOption = Annotated[int, typer.Option("--seed", help="Seed of the random state.")]
KnownOption = Annotated[
    str, typer.Option("--known", help="For hybrid: comma-separated joints whose acceleration is given.")
]
ParametersOption = Annotated[
    str,
    typer.Option(
        "--parameters",
        help="Comma-separated: what is an argument instead of a constant. Links or all: their inertial parameters; "
        "armature[joint], damping[joint], friction[joint], gravity.",
    ),
]


expands_xacro = ContextVar("expands_xacro", default=False)
"""Whether the command that runs was given --xacro."""


def with_xacro_option(command: Callable[..., None]) -> Callable[..., None]:
    """A command with the option --xacro where it takes a ROBOT; ``find_robot`` looks whether it was given."""
    signature = inspect.signature(command, eval_str=True)
    if "robot" not in signature.parameters:
        return command

    @wraps(command)
    def run(*, xacro: bool, **options: Any) -> None:
        asked = expands_xacro.set(xacro)
        try:
            command(**options)
        finally:
            expands_xacro.reset(asked)

    option = inspect.Parameter("xacro", inspect.Parameter.KEYWORD_ONLY, default=False, annotation=XacroOption)
    extended = signature.replace(parameters=[*signature.parameters.values(), option])
    run.__signature__ = extended  # type: ignore[attr-defined]
    return run


def split_names(text: str | None) -> list[str]:
    """The names in a comma-separated list, none where there is no text."""
    return [name.strip() for name in (text or "").split(",") if name.strip()]


def find_robot(name: str, *, warns: bool = True) -> Mechanism:
    """The mechanism of a built-in name, such as puma560 or pendulum:5, or of a model file.

    Args:
        name: Its name or path.
        warns: Whether the first of the file's warnings is told beside the answer: numbers of an open tree look like
            those of the closed mechanism that a file means.
    """
    kind, _, size = name.partition(":")
    there = os.path.exists(name)  # unlike Path.exists, False for names that no file can have
    if kind in robots.BUILT_IN and not there:
        build = robots.BUILT_IN[kind]
        if not size:
            return build()
        sized = [other for other, builder in robots.BUILT_IN.items() if inspect.signature(builder).parameters]
        count = _whole_number(size)
        if kind not in sized or count is None:
            raise InputError(
                f"There is no robot {shown(name)}: only {', '.join(sized)} take ':N', a whole number, such as "
                "pendulum:5."
            )
        return build(count)  # type: ignore[call-arg]
    if there or kind == "robot_descriptions":
        from factorgraph_dyn.model.files.load import load

        mechanism = load(name, xacro=expands_xacro.get())
        if warns and mechanism.warnings:
            _tell_warnings(name, mechanism.warnings)
        return mechanism
    what = "file" if Path(name).suffix.lower() in MODEL_FILES or Path(name).name != name else "robot or file"
    raise InputError(
        f"There is no {what} {name!r}. Built-in robots: {', '.join(robots.BUILT_IN)}; or give the "
        "path of a URDF, MJCF or SDF file."
    )


def _tell_warnings(name: str, warnings: tuple[str, ...]) -> None:
    first, *others = warnings
    further = f" (and {len(others)} more: fgdyn info {printable(name)})" if others else ""
    tell_warning(f"{first}{further}")


def tell_warning(message: str) -> None:
    """Write a warning to standard error, where it does not mix with results."""
    typer.echo(f"Warning: {message}", err=True)


def _whole_number(text: str) -> int | None:
    """The number that plain digits say; None for anything else, and for what is too long to be read."""
    try:
        return int(text) if text.isascii() and text.isdigit() else None
    except ValueError:
        return None
