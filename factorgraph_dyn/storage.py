"""Where this user's files are kept, and how a file is written that others may be reading."""

from __future__ import annotations

import uuid
from pathlib import Path

import platformdirs

FOLDERS = platformdirs.PlatformDirs("factorgraph_dyn", appauthor=False)  # by the customs of each system


def write(path: Path, content: bytes) -> None:
    """Write a file in one move: a reader sees all of it or the one before.

    Raises:
        OSError: It cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{uuid.uuid4().hex}.part")
    try:
        temporary.write_bytes(content)
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
