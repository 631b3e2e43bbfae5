"""The help: grouped, quick because nothing is imported for it; every command's ends with an example that parses."""

import importlib
import re
import shlex
import subprocess
import sys
from typing import get_type_hints

import pytest
from typer.main import get_command
from typer.testing import CliRunner

from factorgraph_dyn.cli import COMMANDS, HOMES, app, load_command
from factorgraph_dyn.commands.common import complete_robot

HEAVY = ("numpy", "gtsam", "llvmlite", "networkx", "matplotlib")


def test_help_groups_the_commands_and_imports_nothing_heavy():
    program = f"""
import sys
from typing import get_type_hints
from factorgraph_dyn.cli import app
sys.argv = ["fgdyn", "--help"]
try:
    app()
except SystemExit:
    print("heavy:", [name for name in {HEAVY} if name in sys.modules])
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert "heavy: []" in done.stdout
    panels = re.findall(r"─ (\w+) ─", done.stdout)
    assert panels == ["Options", *COMMANDS]
    for name in HOMES:
        assert re.search(rf"│ {name} +\w", done.stdout), name
    assert "Example: fgdyn" in done.stdout
    assert "--install-completion" in done.stdout


@pytest.mark.parametrize("name", HOMES)
def test_every_help_ends_with_an_example_that_parses(name):
    command = load_command(name)
    listed = get_command(app).commands[name]
    assert command.help.startswith(listed.help)
    assert command.epilog.startswith(f"Example: fgdyn {name}")
    words = shlex.split(command.epilog.removeprefix("Example: "))[2:]
    command.make_context(name, words)  # raises where an option or argument is not known


def test_typing_errors_are_answered_with_the_nearest_command():
    done = subprocess.run([sys.executable, "-m", "factorgraph_dyn", "comapre"], capture_output=True, text=True)
    assert done.returncode == 2
    assert "compare" in done.stderr


def test_shells_complete_robots(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "five.urdf").write_text("")
    (tmp_path / "five.txt").write_text("")
    (tmp_path / "fives").mkdir()
    assert complete_robot("five") == ["five_bar", "fives/", "five.urdf"]
    assert complete_robot("pu") == ["puma560"]


@pytest.mark.parametrize("name", HOMES)
def test_help_shows_every_bracket_of_its_source(name):
    module, function = HOMES[name]
    call = getattr(importlib.import_module(f"factorgraph_dyn.commands.{module}"), function)
    hints = get_type_hints(call, include_extras=True).values()
    given = [info.help or "" for hint in hints for info in getattr(hint, "__metadata__", ())]
    written = re.findall(r"\S*\[\S*", " ".join([call.__doc__, *given]))
    done = CliRunner().invoke(app, [name, "--help"], env={"COLUMNS": "1000", "TERMINAL_WIDTH": "1000"})
    assert not [word for word in written if word not in done.output]
