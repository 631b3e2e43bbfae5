"""The documents: code runs and prints what they say, links lead somewhere, every public name is told."""

import ast
import os
import re
import subprocess
import sys

import pytest

import factorgraph_dyn as fgd
from scripts import pages

LINK = re.compile(r"\]\(([\w./-]+)\)")
ASSET = re.compile(r"""<(?:script|link|img|iframe)\b[^>]*?(?:src|href)=["']?((?:https?:)?//[^"'> ]+)""")
TOLD = re.compile(r"^::: factorgraph_dyn\.(\w+)$", re.MULTILINE)


@pytest.mark.parametrize("page", [p for p in pages.pages() if pages.script(p)], ids=lambda page: page.stem)
def test_pages_print_what_they_say(page, tmp_path):
    if pages.lacking(page):
        pytest.skip(f"without {', '.join(pages.lacking(page))}")
    done = pages.run(page, tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == pages.said(page)
    for name in pages.made(page):
        assert (tmp_path / name).stat().st_size > 0


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built strictly; pictures are left empty, because their pages have tests of their own."""
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--quiet", "--strict", "--site-dir", str(folder)]
    environment = {**os.environ, "FGD_DOCS": "links", "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, cwd=pages.ROOT, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def test_reading_the_site_asks_nothing_of_a_network(site):
    read = sorted(site.rglob("*.html"))
    assert len(read) > 30
    for page in read:
        assert not ASSET.findall(page.read_text()), page
    for style in site.rglob("*.css"):
        assert not re.findall(r"url\(['\"]?(?:https?:)?//", style.read_text()), style


def test_links_of_the_repository_lead_somewhere():
    for page in pages.ROOT.glob("*.md"):
        for target in LINK.findall(page.read_text()):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_every_public_name_is_in_the_reference():
    told = [name for page in (pages.DOCS / "reference").glob("*.md") for name in TOLD.findall(page.read_text())]
    assert sorted(told) == sorted(fgd.__all__)


def test_the_first_screen_of_the_readme_is_code_with_its_output():
    lines = (pages.ROOT / "README.md").read_text().splitlines()
    first = "\n".join(lines[:39])
    (code, output), *_ = re.findall(r"```python\n(.*?)```\s*```text\n(.*?)```", first, re.DOTALL)
    for wanted in (
        "fgd.load",
        "fgd.pose",
        "fgd.jacobian",
        "inverse_dynamics",
        "forward_dynamics",
        "compile",
        "five_bar",
    ):
        assert wanted in code
    assert output.strip()


def test_the_readme_is_short():
    text = (pages.ROOT / "README.md").read_text()
    assert len(text.encode()) <= 10_000
    assert all(len(line) <= 300 or line.startswith("<img") for line in text.splitlines())
    tables = re.findall(r"^\|(.*)\|$", text, re.MULTILINE)
    assert all(row.count("|") < 7 for row in tables)


def test_tests_that_the_table_of_numerical_cases_names_are_there():
    defined: dict[str, set[str]] = {}
    where = ""
    for line in (pages.DOCS / "contribute" / "numerics.md").read_text().splitlines():
        if not line.startswith("| "):
            continue
        for path, name in re.findall(r"`([\w/.]*)::(\w+)`", line.rsplit(" | ", 1)[1]):
            where = path or where
            if where not in defined:
                tree = ast.walk(ast.parse((pages.ROOT / where).read_text()))
                defined[where] = {node.name for node in tree if isinstance(node, ast.FunctionDef)}
            assert name in defined[where], f"{where}::{name}"
    assert len(defined) > 20


def test_environment_variables_are_listed():
    sources = "".join(path.read_text(encoding="utf-8") for path in (pages.ROOT / "factorgraph_dyn").rglob("*.py"))
    page = (pages.ROOT / "docs" / "understand" / "compiler.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `(FACTORGRAPH_DYN_[A-Z]+)`", page, re.MULTILINE)
    assert set(listed) == set(re.findall(r"FACTORGRAPH_DYN_[A-Z]+", sources))
