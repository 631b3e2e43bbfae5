"""Where this user's files are kept, and how files are read and written.

Only regular files are opened for reading, and never more of them than a bound: a pipe would wait for a writer, and a
device may never end. A file is written so that others who are reading see all of it or the one before.
"""

from __future__ import annotations

import errno
import os
import stat
import uuid
from pathlib import Path
from typing import BinaryIO

import platformdirs

FOLDERS = platformdirs.PlatformDirs("factorgraph_dyn", appauthor=False)  # by the customs of each system
MOST_BYTES = 32_000_000  # of a file of text that a user gives: states, sensors, orderings
KINDS = {stat.S_IFIFO: "a pipe", stat.S_IFDIR: "a folder", stat.S_IFSOCK: "a socket"}  # else a device

# So that opening a pipe does not wait, a terminal does not take over the process, and no child inherits the file. Not
# every system has these; Windows would translate line ends.
_FLAGS = os.O_RDONLY
for _flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"):
    _FLAGS |= getattr(os, _flag, 0)


def opened(path: str | os.PathLike[str], most: int) -> BinaryIO:
    """A regular file of at most so many bytes, open for reading.

    Raises:
        OSError: It cannot be opened, is no regular file, or is larger; ``strerror`` says which.
    """
    try:
        handle = os.open(path, _FLAGS)
    except ValueError as error:  # a null character or half a character in the name
        raise OSError(errno.EINVAL, str(error), str(path)) from None
    try:
        facts = os.fstat(handle)  # of what is open, whatever the path may lead to by now
        if not stat.S_ISREG(facts.st_mode):
            kind = KINDS.get(stat.S_IFMT(facts.st_mode), "a device")
            raise OSError(errno.EINVAL, f"it is {kind}, and only regular files are read", str(path))
        if facts.st_size > most:
            raise _too_large(path, most)
        return open(handle, "rb")
    except BaseException:
        os.close(handle)
        raise


def read(path: str | os.PathLike[str], most: int = MOST_BYTES) -> bytes:
    """The content of a regular file.

    Raises:
        OSError: It cannot be read, is no regular file, or holds more than ``most`` bytes; ``strerror`` says which.
    """
    with opened(path, most) as file:
        size = os.fstat(file.fileno()).st_size
        content = file.read(size + 1)
        if size < len(content) <= most:  # a file may grow, and some say that their size is zero
            content += file.read(most + 1 - len(content))
    if len(content) > most:
        raise _too_large(path, most)
    return content


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


def _too_large(path: str | os.PathLike[str], most: int) -> OSError:
    return OSError(errno.EFBIG, f"it is too large: at most {most} bytes are read", str(path))
