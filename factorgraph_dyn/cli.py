"""The command line ``fgdyn``: words become calls, errors become one message and exit code 2.

A command is imported when it is run: ``fgdyn --help`` reads the first lines of docstrings from the source.
A command is one function with a docstring that ends in an example, and one line in ``COMMANDS``.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import sys
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from typer.core import TyperCommand, TyperGroup

from factorgraph_dyn import __version__
from factorgraph_dyn.errors import FactorGraphDynError

# Where each command lives, by the heading under which the help lists it: module of ``commands`` and function.
COMMANDS = {
    "Look": {
        "robots": ("dynamics", "list_robots"),
        "info": ("models", "info"),
        "diagnose": ("loops", "diagnose"),
        "draw": ("show", "draw"),
        "report": ("show", "report"),
        "view": ("show", "view"),
    },
    "Solve": {
        "solve": ("dynamics", "solve"),
        "iwim": ("iwim", "iwim"),
        "simulate": ("loops", "simulate"),
        "estimate": ("estimate", "estimate_log"),
        "identify": ("identify", "identify_log"),
    },
    "Compile": {
        "compile": ("compiler", "compile_kernel"),
        "bench": ("compiler", "bench"),
    },
    "Search": {
        "compare": ("dynamics", "compare"),
        "search": ("search", "search"),
    },
    "Files": {
        "convert": ("models", "convert"),
        "check": ("models", "check"),
    },
}
HOMES = {name: home for commands in COMMANDS.values() for name, home in commands.items()}
EXAMPLE = "\n\nExample:\n"


class Commands(TyperGroup):
    """Commands that are known by name and first line until one of them is run."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        for panel, commands in COMMANDS.items():
            for name, home in commands.items():
                self.commands[name] = TyperCommand(name, help=escape(summary(*home)), rich_help_panel=panel)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that words ask for, imported."""
        name, command, rest = super().resolve_command(ctx, args)
        return name, None if command is None else load_command(str(command.name)), rest


def summary(module: str, function: str) -> str:
    """The first line of a command's docstring."""
    return next(
        (ast.get_docstring(node) or "").splitlines()[0]
        for node in _syntax(module).body
        if isinstance(node, ast.FunctionDef) and node.name == function
    )


@cache
def _syntax(module: str) -> ast.Module:
    path = Path(__file__).parent / "commands" / f"{module}.py"
    return ast.parse(path.read_text(encoding="utf-8"))


def load_command(name: str) -> Any:
    """A command, ready to run; the example at the end of its docstring ends its help."""
    module, function = HOMES[name]
    call = getattr(importlib.import_module(f"factorgraph_dyn.commands.{module}"), function)
    common = importlib.import_module("factorgraph_dyn.commands.common")
    words, _, example = inspect.cleandoc(call.__doc__).partition(EXAMPLE)
    paragraphs = "\n\n".join(" ".join(text.split()) for text in words.split("\n\n"))
    one = typer.Typer(add_completion=False)
    epilog = escape(f"Example: {' '.join(example.split())}")
    one.command(name, help=escape(paragraphs), epilog=epilog)(common.with_xacro_option(call))
    command = typer.main.get_command(one)
    for parameter in command.params:  # T[link6] is no markup
        parameter.help = escape(getattr(parameter, "help", None) or "")  # type: ignore[attr-defined]
    return command


app = typer.Typer(name="fgdyn", cls=Commands, no_args_is_help=True, pretty_exceptions_enable=False)


def print_version(asked: bool) -> None:
    """Print the version and end, if that is asked for."""
    if asked:
        print(f"fgdyn {__version__}")
        raise typer.Exit


@app.callback(epilog="Example: fgdyn compare puma560. Each command has a --help of its own.")
def options(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and exit.", is_eager=True, callback=print_version)
    ] = False,
) -> None:
    """Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm."""


def main() -> None:
    """Run ``fgdyn``."""
    try:
        app()
    except FactorGraphDynError as error:
        Console(stderr=True, soft_wrap=True, highlight=False, markup=False, emoji=False).print(f"fgdyn: {error}")
        sys.exit(2)


if __name__ == "__main__":
    main()
