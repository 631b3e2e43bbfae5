"""What MkDocs is told beyond mkdocs.yml: pages' scripts and pictures, mathematics, pages from the repository's root.

Equations between ``$$`` lines, and ``$`` in a line, become MathML, which browsers draw by themselves.
With ``FGD_DOCS=links`` no code is run and pictures are empty: enough to check every link in seconds.
"""

from __future__ import annotations

import os
import re
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts import command_page, pages

FROM_ROOT = ("CHANGELOG.md", "CODE_OF_CONDUCT.md", "CONTRIBUTING.md", "SECURITY.md")
PICTURES = pages.ROOT / "examples" / "pictures"
FENCED = re.compile(r"(^```.*?^```$|`[^`\n]+`)", re.DOTALL | re.MULTILINE)
DISPLAYED = re.compile(r"^\$\$\n(.*?)\n\$\$$", re.DOTALL | re.MULTILINE)
INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+)\$(?![$\w])")


def on_files(files: Files, config: Any) -> Files:
    """Add what is not in docs/: files that pages' code writes, their scripts, pages and pictures of the repository."""
    for name in FROM_ROOT:
        files.append(File.generated(config, name, content=_from_root((pages.ROOT / name).read_text())))
    for path in PICTURES.iterdir():
        files.append(File.generated(config, f"pictures/{path.name}", abs_src_path=str(path)))
    files.append(File.generated(config, "reference/command_line.md", content=command_page.text()))
    with_code = [page for page in pages.pages() if pages.script(page)]
    with ThreadPoolExecutor(os.cpu_count()) as executor:
        for page, written in zip(with_code, executor.map(_written, with_code), strict=True):
            folder = page.parent.relative_to(pages.DOCS)
            for name, content in written.items():
                files.append(File.generated(config, (folder / name).as_posix(), content=content))
    return files


def on_page_markdown(markdown: str, page: Any, **_: Any) -> str:
    """Equations as MathML, and a link to the page's script."""
    parts = FENCED.split(markdown)
    parts[::2] = [_with_equations(text) for text in parts[::2]]
    source = pages.DOCS / page.file.src_uri
    if source.exists() and pages.script(source) and "reference" not in source.parts:
        parts.append(f"\n\n[The code of this page as a script]({source.stem}.py){{ .script download }}\n")
    return "".join(parts)


def _written(page: Path) -> dict[str, bytes]:
    """The page's script and all files that it shows and writes."""
    files = {f"{page.stem}.py": pages.script(page).encode()}
    names = pages.made(page)
    if os.environ.get("FGD_DOCS") == "links":
        return files | dict.fromkeys(names, b"")
    if not names or pages.lacking(page):
        return files
    with tempfile.TemporaryDirectory() as folder:
        done = pages.run(page, Path(folder))
        if done.returncode:
            raise PluginError(f"The code of {page} does not run:\n{done.stderr}")
        return files | {name: (Path(folder) / name).read_bytes() for name in names}


def _from_root(text: str) -> str:
    """A page of the repository's root: its links into docs/ lead to their pages."""
    return re.sub(r"\]\(docs/", "](", text)


def _with_equations(text: str) -> str:
    text = DISPLAYED.sub(lambda m: f'<div class="equation">{convert(m[1], display="block")}</div>', text)
    return INLINE.sub(lambda m: convert(m[1]), text)
