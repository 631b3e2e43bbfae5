"""One self-contained page: style, script and data in one file, and no network.

The data is JSON in which every '<', '>' and '&' is escaped, scripts build their pages from text nodes only, and a
content security policy allows nothing but that one script: names in model files cannot do harm.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
import math
from importlib import resources
from pathlib import Path
from typing import Any

from factorgraph_dyn.checks import check_path
from factorgraph_dyn.errors import InputError


def web_page(folder: str, title: str, data: Any, scripts: tuple[str, ...]) -> str:
    """The page that the template ``page.html`` of a folder beside this file makes of data.

    Args:
        folder: Where the template, ``page.css`` and the scripts are.
        title: Of the page.
        data: Anything JSON can say; what is not finite becomes null.
        scripts: Files that make up the page's one script, in this order.
    """
    script = "\n".join(_part(folder, name) for name in scripts)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    values = {
        "TITLE": html.escape(title),
        "POLICY": f"default-src 'none'; style-src 'unsafe-inline'; script-src 'sha256-{digest}'",
        "STYLE": _part(folder, "page.css"),
        "DATA": _harmless_json(data),
        "SCRIPT": script,
    }
    pieces = _part(folder, "page.html").split("@@")  # odd pieces are the names of values
    return "".join(values[piece] if index % 2 else piece for index, piece in enumerate(pieces))


def check_page(path: str | Path, what: str) -> Path:
    """The path of a page, or an InputError where it does not end as one."""
    file = check_path(path, f"The path of {what}")
    if file.suffix.lower() not in (".html", ".htm"):
        raise InputError(f"{what[0].upper()}{what[1:]} is a page; {str(file)!r} must end in .html.")
    return file


def write_page(page: str, path: str | Path, what: str) -> None:
    """Write a page to an HTML file.

    Raises:
        InputError: No HTML file, or one that cannot be written.
    """
    file = check_page(path, what)
    try:
        file.write_text(page, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{what[0].upper()}{what[1:]} cannot be written to {str(file)!r}: {error.strerror}.") from None


def _harmless_json(data: Any) -> str:
    text = json.dumps(_finite(data), separators=(",", ":"), allow_nan=False)
    return text.replace("&", "\\u0026").replace("<", "\\u003c").replace(">", "\\u003e")


def _finite(data: Any) -> Any:
    """The data with null for numbers that JSON does not know."""
    if isinstance(data, float):
        return data if math.isfinite(data) else None
    if isinstance(data, dict):
        return {key: _finite(value) for key, value in data.items()}
    if isinstance(data, list | tuple):
        return [_finite(value) for value in data]
    return data


def _part(folder: str, name: str) -> str:
    return resources.files("factorgraph_dyn.show").joinpath(folder, name).read_text(encoding="utf-8")
