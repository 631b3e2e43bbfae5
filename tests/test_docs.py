"""Code in the documents runs, and prints what they say."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(r"```(python|text)\n(.*?)```", re.DOTALL)
LINK = re.compile(r"\]\(([\w./-]+)\)")


@pytest.mark.parametrize("page", [p for p in PAGES if "```python" in p.read_text()], ids=lambda page: page.stem)
def test_pages_print_what_they_say(page, tmp_path):
    blocks = BLOCK.findall(page.read_text())
    code = "\n".join(text for kind, text in blocks if kind == "python")
    said = "\n".join(text.strip() for kind, text in blocks if kind == "text")
    script = tmp_path / "page.py"
    script.write_text(code)
    done = subprocess.run([sys.executable, str(script)], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == said


@pytest.mark.parametrize("page", [*PAGES, *sorted(ROOT.glob("*.md"))], ids=lambda page: page.stem)
def test_links_lead_somewhere(page):
    for target in LINK.findall(page.read_text()):
        assert (page.parent / target).exists(), target


def test_the_first_screen_of_the_readme_is_code_with_its_output():
    lines = (ROOT / "README.md").read_text().splitlines()
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
