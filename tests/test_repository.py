"""Promises of the repository: imports follow the flow, examples run, README code prints what it says."""

from __future__ import annotations

import ast
import graphlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.joint_kinds import KINDS

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "factorgraph_dyn"
ARGUMENTS = {"08_better_forward_dynamics": ["4"]}  # s of search

# A room may import from itself and from rooms it is given; nothing flows back.
ROOMS = (
    "text",
    "errors",
    "spatial",
    "checks",
    "storage",
    "memory",
    "numerics",
    "notebook",
    "model",
    "motion",
    "equations",
    "ordering",
    "solve",
    "textbook",
    "compiler",
    "identification",
    "compare",
    "search",
    "show",
)
MAY_IMPORT = {room: set(ROOMS[:i]) for i, room in enumerate(ROOMS)}
MAY_IMPORT["compiler"] -= {"solve", "textbook"}
# Users ask a mechanism for its states: one file of the model passes that on.
PASSES_ON = {PACKAGE / "model" / "moving.py": {"motion"}}


def imports(path: Path) -> set[str]:
    """The modules of the package that a file imports, also inside functions."""
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        else:
            continue
        found.update(name.split(".")[1] for name in names if name.startswith("factorgraph_dyn."))
    return found


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_imports_follow_the_flow(room):
    files = sorted((PACKAGE / room).rglob("*.py")) if (PACKAGE / room).is_dir() else [PACKAGE / f"{room}.py"]
    assert files
    for path in files:
        backwards = imports(path) - MAY_IMPORT[room] - {room} - PASSES_ON.get(path, set())
        assert not backwards, f"{path.relative_to(ROOT)} imports {backwards}"


def test_no_modules_import_each_other():
    modules = {".".join(path.relative_to(ROOT).with_suffix("").parts): path for path in PACKAGE.rglob("*.py")}
    modules = {name.removesuffix(".__init__"): path for name, path in modules.items()}
    graph = {}
    for name, path in modules.items():
        found = [node for node in ast.parse(path.read_text()).body if isinstance(node, ast.ImportFrom) and node.module]
        named = {(f"{node.module}.{alias.name}", node.module) for node in found for alias in node.names}
        graph[name] = {whole if whole in modules else module for whole, module in named} - {name}
    list(graphlib.TopologicalSorter(graph).static_order())  # raises a CycleError that names the modules


def test_joint_kinds_are_asked_not_named():
    own_words = {PACKAGE / "model" / "files", PACKAGE / "compare" / "peers"}  # of file formats and engines
    own = r"\b(joint|j|loop|part|out\[0\])\.kind (==|!=|in|not in) "
    named = re.compile(rf'{own}|(?<!\.)\bkind (==|!=) "({"|".join(KINDS)})"')
    for path in PACKAGE.rglob("*.py"):
        if not own_words & set(path.parents):
            assert not named.search(path.read_text()), f"{path.relative_to(ROOT)}: add a trait to model/joint_kinds"


def test_a_threshold_has_one_value():
    number = re.compile(r"^_?([A-Z][A-Z_0-9]*) = ([\d.]+e-?\d+|\d+\.\d*)\b", re.MULTILINE)
    values: dict[str, set[float]] = {}
    for path in PACKAGE.rglob("*.py"):
        for name, value in number.findall(path.read_text()):
            values.setdefault(name, set()).add(float(value))
    assert len(values) > 50
    assert not {name: found for name, found in values.items() if len(found) > 1}


def test_every_module_is_in_a_room():
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or (path / "__init__.py").exists()}
    assert rooms == {*MAY_IMPORT, "commands", "cli", "__init__", "__main__"}


@pytest.mark.parametrize("room", ["model", "equations", "compiler"])
def test_gtsam_stays_out(room):
    for path in (PACKAGE / room).rglob("*.py"):
        assert not re.search(r"^\s*(import|from) gtsam", path.read_text(), re.MULTILINE), path


def test_importing_loads_nothing_heavy():
    heavy = ("gtsam", "llvmlite", "networkx", "matplotlib", "scipy", "typer", "yaml")
    program = f"import sys, factorgraph_dyn as fgd; {{}}; print([name for name in {heavy} if name in sys.modules])"
    for used in ("fgd.__version__", "fgd.Mechanism", "fgd.robots.five_bar().random_state(0)", "fgd.Ordering"):
        done = subprocess.run([sys.executable, "-c", program.format(used)], capture_output=True, text=True, check=True)
        assert done.stdout.strip() == "[]", used


def test_names_are_told_without_being_imported():
    program = "import sys, factorgraph_dyn as fgd; print(set(fgd.__all__) <= set(dir(fgd)), 'numpy' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["True", "False"]
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = fgd.nonsense


def test_exports_exist_and_are_sorted():
    for name in fgd.__all__:
        assert getattr(fgd, name) is not None


def test_the_version_has_one_place():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    assert "version" in project["project"]["dynamic"]
    assert project["tool"]["hatch"]["version"]["path"] == "factorgraph_dyn/__init__.py"
    assert f"version: {fgd.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    assert f"## [{fgd.__version__}]" in (ROOT / "CHANGELOG.md").read_text()


def test_changes_are_told_in_the_form_of_keep_a_changelog():
    lines = (ROOT / "CHANGELOG.md").read_text().splitlines()
    versions = [line for line in lines if line.startswith("## ")]
    assert versions[0] == "## [Unreleased]"
    assert all(re.fullmatch(r"## \[(Unreleased|\d+\.\d+\.\d+)\]( - \d{4}-\d\d-\d\d)?", line) for line in versions)
    kinds = {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}
    assert {line.removeprefix("### ") for line in lines if line.startswith("### ")} <= kinds


@pytest.mark.parametrize("name", ["LICENSE", "CONTRIBUTING.md", "CODE_OF_CONDUCT.md", "SECURITY.md", "CITATION.cff"])
def test_what_people_look_for_is_there(name):
    assert (ROOT / name).read_text().strip()


@pytest.mark.parametrize("example", sorted((ROOT / "examples").glob("*.py")), ids=lambda path: path.stem)
def test_examples_run(example, tmp_path):
    environment = {**os.environ, "MPLBACKEND": "Agg"}
    done = subprocess.run(
        [sys.executable, str(example), *ARGUMENTS.get(example.stem, ())],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env=environment,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip()


def readme_blocks() -> list[tuple[str, str]]:
    """Python blocks of the README that are followed by their output."""
    text = (ROOT / "README.md").read_text()
    return re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", text, re.DOTALL)


@pytest.mark.parametrize("block", readme_blocks())
def test_readme_code_prints_what_it_says(block, tmp_path):
    code, output = block
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == output.strip()


def test_readme_has_code_with_output():
    assert readme_blocks()
