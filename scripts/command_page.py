"""The page of the documentation that lists the commands of ``fgdyn``, from their own help."""

from __future__ import annotations

import inspect

import typer

from factorgraph_dyn.cli import COMMANDS, load_command

HEAD = """# Command line

`fgdyn` is installed with the package; `python -m factorgraph_dyn` does the same. ROBOT is built in (`fgdyn robots`
lists them) or a file: URDF, MJCF, SDF or the package's own JSON. Tables fit the terminal, `--wide` shows all columns,
and `--format json` or `csv` is for programs. Errors are one message on the error stream and exit code 2.

Your shell completes commands, options, robots and files after

```sh
fgdyn --install-completion        # bash, zsh, fish or PowerShell; open a new terminal afterwards
fgdyn --show-completion           # prints what would be installed
```
"""


def text() -> str:
    """The page, in Markdown."""
    sections = [HEAD]
    for group, names in COMMANDS.items():
        sections.append(f"## {group}\n")
        sections += [_command(name) for name in names]
    return "\n".join(sections)


def _command(name: str) -> str:
    command = load_command(name)
    context = typer.Context(command, info_name=f"fgdyn {name}")
    lines = [f"### {name}\n", f"{inspect.cleandoc(command.help or '')}\n"]
    lines += ["```sh", command.get_usage(context).removeprefix("Usage: ").strip(), "```\n"]
    rows = [record for parameter in command.get_params(context) if (record := _record(parameter, context))]
    lines += ["| argument | meaning |", "|---|---|", *(f"| `{written}` | {words} |" for written, words in rows), ""]
    example = (command.epilog or "").removeprefix("Example: ")
    return "\n".join([*lines, "Example:\n", "```sh", example, "```\n"])


def _record(parameter: object, context: typer.Context) -> tuple[str, str] | None:
    """How a parameter is written, and what it does."""
    record = parameter.get_help_record(context)  # type: ignore[attr-defined]
    if record is None or "--help" in record[0]:
        return None
    written, words = (" ".join(part.split()) for part in record)
    return written, words.replace("|", "\\|")  # in code a pipe is none of the table's
