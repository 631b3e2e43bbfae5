"""The command line ``fgdyn``: words become calls, errors become one message and exit code 2."""

from __future__ import annotations

import importlib
import sys
from typing import Annotated

import typer
from rich.console import Console

from factorgraph_dyn import __version__
from factorgraph_dyn.errors import FactorGraphDynError

COMMAND_GROUPS = ("dynamics", "models", "loops", "iwim", "show", "search", "compiler")

app = typer.Typer(
    name="fgdyn",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)


def print_version(asked: bool) -> None:
    """Print the version and end, if that is asked for."""
    if asked:
        print(f"fgdyn {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    """Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm."""


for group in COMMAND_GROUPS:
    importlib.import_module(f"factorgraph_dyn.commands.{group}").register(app)


def main() -> None:
    """Run ``fgdyn``."""
    try:
        app()
    except FactorGraphDynError as error:
        Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False).print(f"fgdyn: {error}")
        sys.exit(2)


if __name__ == "__main__":
    main()
