"""The process in which a xacro file is expanded: it reads a request, bounds itself, and writes the URDF or why not.

Run by ``expand_xacro.py`` as a script; nothing of the package is imported, so that it starts quickly. The request is
JSON on the standard input. Exit code 0 goes with the URDF on the standard output, ``FAILED`` with a message.
"""

from __future__ import annotations

import importlib
import json
import os
import sys
from contextlib import suppress
from typing import Any

FAILED = 3


def main() -> int:
    """Answer the request; the exit code."""
    request = json.load(sys.stdin.buffer)
    answer = os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # what the file's own expressions print is not the answer
    _bound(request["seconds"], request["memory"])
    try:
        content = _expanded(request["file"], request["folder"], request["arguments"])
        if len(content) > request["bytes"]:
            raise ValueError(f"it becomes a text of {len(content)} bytes, and at most {request['bytes']} are read")
        code = 0
    except Exception as error:  # whatever the file's own expressions and includes raise
        cause: Any = error
        while getattr(cause, "exc", None) is not None:  # xacro wraps what expressions raise
            cause = cause.exc
        message = str(error) if str(cause) else f"{type(cause).__name__} {error}"
        content, code = " ".join(message.split()).encode("utf-8", "replace"), FAILED
    with answer:
        answer.write(content)
    return code


def _bound(seconds: int, memory: int) -> None:
    """Bound time and memory where the system can; a bound that is there already and lower stays."""
    try:
        resource: Any = importlib.import_module("resource")
    except ImportError:  # on Windows
        return
    for name, most in (("RLIMIT_CPU", seconds + 1), ("RLIMIT_AS", memory), ("RLIMIT_CORE", 0)):
        with suppress(AttributeError, ValueError, OSError):
            resource.setrlimit(getattr(resource, name), (most, most))


def _expanded(file: str, folder: str | None, arguments: dict[str, str]) -> bytes:
    packages: Any = importlib.import_module("xacrodoc.packages")
    xacro: Any = importlib.import_module("xacro")
    if folder is not None:
        packages.look_in([folder])
    packages.walk_up_from(file)
    return bytes(xacro.process_file(file, mappings=arguments).toxml().encode())


if __name__ == "__main__":
    sys.exit(main())
