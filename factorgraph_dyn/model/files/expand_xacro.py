"""A xacro file becomes the URDF it stands for, by the packages xacro and xacrodoc where they are installed.

Xacro files are programs: they evaluate expressions and include other files, also of packages that ``$(find ...)``
names: sought above the file, in the folder that the caller names and where ROS knows them. They are expanded only
where the caller asks for it, in a process of its own (``xacro_process.py``), whose time and memory are bounded. That
process may do what its user may do: it is no sandbox. Runs once a file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import NoReturn

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.files import xml_tree
from factorgraph_dyn.model.files.xacro_process import FAILED
from factorgraph_dyn.model.files.xml_tree import shorten

NEEDS_EXPANDING = ("xacro:include", "xacro:macro", "xacro:property", "xacro:arg", "xacro:if", "xacro:unless")
HOW = (
    "this is a xacro file, a program that runs while it is expanded. If you trust it, load its file by "
    "fgd.load(path, xacro=True), or xacro_arguments={name: value}; in commands, by the option --xacro"
)
MOST_SECONDS = 30  # of one expansion; those of large robots take some seconds
MOST_MEMORY = 2 * 2**30  # bytes of one expansion
_HINT = (
    "Its arguments are given by fgd.load(path, xacro_arguments={name: value}); packages that it names have to lie "
    "above it, or in the folder of fgd.load(path, folder=...)"
)
_PROCESS = Path(__file__).with_name("xacro_process.py")
_SHOWN = 600  # characters of a failure


def expanded(file: Path, folder: Path | None, arguments: Mapping[str, str]) -> bytes:
    """The URDF text of a xacro file.

    Args:
        file: The file.
        folder: A folder in which packages lie, or None.
        arguments: Values of its <xacro:arg>s by name.

    Raises:
        ModelError: The extra is not installed, or the file cannot be expanded, not in the time and memory allowed, or
            becomes larger than files that are read.
    """
    if find_spec("xacrodoc") is None or find_spec("xacro") is None:
        message = f"{file}: xacro files are expanded by an extra: pip install 'factorgraph_dyn[xacro]'."
        raise ModelError(message, file=str(file))
    request = {
        "file": str(file),
        "folder": None if folder is None else str(folder),
        "arguments": {str(name): str(value) for name, value in arguments.items()},
        "seconds": MOST_SECONDS,
        "memory": MOST_MEMORY,
        "bytes": xml_tree.MAX_BYTES,
    }
    try:
        code, answer = _answer(json.dumps(request).encode())
    except subprocess.TimeoutExpired:
        _fail(file, f"it is not done after {MOST_SECONDS} s")
    except OSError as error:
        _fail(file, f"no process can be started for it: {error.strerror or error}")
    if code == FAILED:
        _fail(file, f"{shorten(answer.decode(errors='replace'), _SHOWN)}. {_HINT}")
    if code:
        _fail(file, f"its process ended with code {code}" if code > 0 else f"its process was ended by signal {-code}")
    return answer  # what is larger than files that are read was not written whole, and is no XML


def _answer(request: bytes) -> tuple[int, bytes]:
    """The exit code and output of the process, which gets the request as input.

    Both are files, so that neither side waits for the other, nor for what else holds the ends of a pipe.
    """
    path = os.pathsep.join(entry for entry in sys.path if entry)
    with TemporaryFile() as asked, TemporaryFile() as answered:
        asked.write(request)
        asked.seek(0)
        process = subprocess.Popen(
            [sys.executable, "-P", str(_PROCESS)],
            stdin=asked,
            stdout=answered,
            start_new_session=True,
            env={**os.environ, "PYTHONPATH": path},
        )
        try:
            code = process.wait(MOST_SECONDS)
        finally:
            if process.poll() is None:
                _end(process)
        answered.seek(0)
        return code, answered.read(xml_tree.MAX_BYTES + 1)


def _end(process: subprocess.Popen[bytes]) -> None:
    """End the process and those it has started."""
    if hasattr(os, "killpg"):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
    process.kill()
    process.wait()


def _fail(file: Path, reason: str) -> NoReturn:
    raise ModelError(f"{file}: the xacro file cannot be expanded: {reason}.", file=str(file)) from None
