"""Files that commands write: -o and --output everywhere, --plot and --view for what is drawn beside it."""

from __future__ import annotations

import pytest
from typer.testing import CliRunner

from factorgraph_dyn.cli import HOMES, app, load_command

WRITERS = {
    "draw": "--output",
    "report": "--output",
    "view": "--output",
    "convert": "--output",
    "search": "--output",
    "compile": "--output",
    "estimate": "--output --plot",
    "identify": "--output --plot",
    "simulate": "--plot --view",
    "bench": "--plot",
}
BEFORE = {("identify", "--save"), ("identify", "--out"), ("estimate", "--out"), ("compile", "--c")}
COMMANDS = {name: load_command(name) for name in HOMES}


def options(command, *, hidden):
    found = [p for p in COMMANDS[command].params if p.opts[0].startswith("-") and p.hidden == hidden]
    return {word: option for option in found for word in option.opts}


@pytest.mark.parametrize("command", COMMANDS)
def test_one_name_for_the_file_that_is_written(command):
    seen = options(command, hidden=False)
    written = {word for word in ("--output", "--plot", "--view") if word in seen}
    assert written == set(WRITERS.get(command, "").split())
    assert not {"--out", "--save", "--c"} & set(seen)
    assert seen.get("-o") is seen.get("--output")


def test_what_they_were_called_before_is_taken_and_not_shown():
    assert {(command, word) for command in COMMANDS for word in options(command, hidden=True)} == BEFORE
    for command, word in BEFORE:
        assert f"{word} " not in CliRunner().invoke(app, [command, "--help"]).output


def test_the_old_name_of_c_source_still_writes_it(tmp_path):
    source = tmp_path / "arm.c"
    done = CliRunner().invoke(app, ["compile", "pendulum:1", "--c", str(source)])
    assert done.exit_code == 0, done.exception
    assert source.exists()
