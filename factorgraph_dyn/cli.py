"""The command line ``fgdyn``: words become calls, errors become one message and exit code 2."""

from __future__ import annotations

import importlib
import sys

import typer
from rich.console import Console

from factorgraph_dyn.errors import FactorGraphDynError

COMMAND_GROUPS = ("dynamics", "models", "loops", "rhs", "show", "lab", "compiler")

app = typer.Typer(
    name="fgdyn",
    help="Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
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
