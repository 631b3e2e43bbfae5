"""Pages of docs/ whose code runs: what they print stands in them, what they draw is beside them in the site.

A page is Markdown. Its ``python`` blocks are one script, from top to bottom; its ``text`` blocks are what the script
prints. Pictures and pages that it shows and that are not in the repository are files that the script writes.
Where a page says ``<!-- needs: casadi, cc -->``, its code runs only where these are installed.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
BLOCK = re.compile(r"^```(python|text)\n(.*?)^```", re.DOTALL | re.MULTILINE)
NEEDS = re.compile(r"<!-- needs: ([\w, ]+) -->")
SHOWN = re.compile(r'(?:\]\(|src=")([\w-]+\.(?:svg|png|gif|html))(?:\)|")')


def pages() -> list[Path]:
    """All pages, sorted."""
    return sorted(DOCS.rglob("*.md"))


def script(page: Path) -> str:
    """The code of a page; empty where it has none."""
    return "\n".join(code for kind, code in BLOCK.findall(page.read_text()) if kind == "python")


def said(page: Path) -> str:
    """What a page says that its code prints."""
    return "".join(text for kind, text in BLOCK.findall(page.read_text()) if kind == "text").strip()


def lacking(page: Path) -> list[str]:
    """The packages and programs that a page's code needs and that are not installed."""
    named = NEEDS.search(page.read_text())
    names = named[1].split(", ") if named else []
    return [name for name in names if not (importlib.util.find_spec(name) or shutil.which(name))]


def made(page: Path) -> list[str]:
    """The files beside a page that it shows and that its code writes."""
    return sorted(name for name in set(SHOWN.findall(page.read_text())) if not (page.parent / name).exists())


def run(page: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run a page's code in a folder."""
    path = folder / f"{page.stem}.py"
    path.write_text(script(page))
    environment = {**os.environ, "MPLBACKEND": "Agg", "PYTHONPATH": str(ROOT)}
    return subprocess.run([sys.executable, str(path)], cwd=folder, capture_output=True, text=True, env=environment)
