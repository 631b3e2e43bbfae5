"""Compiled kernels on disk, so that a kernel is traced and optimised once a machine.

Takes the words that describe what is compiled; gives the object code and facts stored under their hash,
if they are there. An entry is one file:

    magic and checksum | length of what follows | the hash and the facts, as JSON | object code

Concurrent processes see all of it or nothing. A file that is damaged, of another version or of another kernel, whatever
its name, is ignored and replaced. Code is run as it lies there: a folder that belongs to another user, or that others
may write, is not used, and a warning says so. A folder that cannot be written only means that nothing is kept.
``FACTORGRAPH_DYN_CACHE`` moves the folder; "off" disables it. Reading takes well under a millisecond. Beyond
``MOST_BYTES`` the entries that were not used for the longest time are deleted; that is looked after now and then, when
one is written.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
import warnings
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factorgraph_dyn import storage

ENVIRONMENT_VARIABLE = "FACTORGRAPH_DYN_CACHE"
FORMAT = 2
_MAGIC = b"fgdk"
_CHECKSUM = 16  # bytes
MOST_BYTES = 512 * 2**20
KEPT_SHARE = 0.9  # of them, where some are deleted, so that the next entries find room
LOOKS_APART = 60.0  # s: looking at all entries takes as long as writing some
ABANDONED = 3600.0  # s after which a file that nobody has finished writing is deleted, too
_LOOKED = "looked_after"  # the file whose time says when that was
_ROOT = 0  # who can write everywhere anyway
_ONLY_OURS = 0o700
_OTHERS_WRITE = 0o022


@dataclass(frozen=True)
class Entry:
    """A compiled kernel.

    Attributes:
        facts: What the kernel object needs to know, as JSON can hold it.
        code: Object code.
    """

    facts: dict[str, Any]
    code: bytes


def folder() -> Path | None:
    """Where compiled kernels are kept, or None where they are not."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    if chosen is not None:
        return None if chosen.strip().lower() in ("", "off", "0", "none") else Path(chosen)
    return storage.FOLDERS.user_cache_path


def key(*parts: str) -> str:
    """The name under which a kernel is stored: a hash of everything that its code depends on."""
    return hashlib.sha256(repr((FORMAT, *parts)).encode()).hexdigest()


def read(name: str | None) -> Entry | None:
    """The stored kernel of a name; None where there is none, or a damaged one, and without a name."""
    place = folder()
    if place is None or name is None:
        return None
    path = _path(place, name)
    if not (_is_ours(place) and _is_ours(path.parent)):
        return None
    try:
        content = storage.read(path, MOST_BYTES)
    except OSError:
        return None
    with suppress(OSError):  # a folder may be for reading only
        os.utime(path)  # it was used now
    return _decode(content, name)


def write(name: str | None, entry: Entry) -> bool:
    """Store a kernel; whether that was possible. One without a name is not kept."""
    place = folder()
    if place is None or name is None:
        return False
    path = _path(place, name)
    try:
        for each in (place, path.parent):
            each.mkdir(mode=_ONLY_OURS, parents=True, exist_ok=True)
            if not _is_ours(each):
                return False
        storage.write(path, _encode(entry, name))
    except OSError:
        return False
    with suppress(OSError):
        _look_after(place)
    return True


def _is_ours(place: Path) -> bool:
    """Whether nobody else may have put something into a folder; where somebody may, a warning says who."""
    doubt = _doubt(place)
    if doubt:
        warnings.warn(
            f"The folder of compiled kernels {str(place)!r} {doubt}: they are machine code, which would be run, so "
            f"none is read from there or kept. Make it yours alone (chmod go-w), or set {ENVIRONMENT_VARIABLE} to "
            'another folder, or to "off".',
            RuntimeWarning,
            stacklevel=1,  # always from here, so that Python shows it once
        )
    return not doubt


def _doubt(place: Path) -> str:
    """Who else may have written to a folder; nothing where there is no such folder, or no such other."""
    if not hasattr(os, "geteuid"):
        return ""
    try:
        facts = place.stat()
    except OSError:
        return ""
    if facts.st_uid not in (os.geteuid(), _ROOT):
        return f"belongs to another user (number {facts.st_uid})"
    return f"may be written by others (mode {facts.st_mode & 0o777:o})" if facts.st_mode & _OTHERS_WRITE else ""


def _look_after(place: Path) -> None:
    """Delete what is too much, unless that was looked after a moment ago, by whatever process."""
    looked, now = place / _LOOKED, time.time()
    if looked.exists() and 0 <= now - looked.stat().st_mtime < LOOKS_APART:
        return
    looked.touch()
    for used, _, path in _files(place, ".*.part"):
        if now - used > ABANDONED:
            _delete(path)
    entries = sorted(_files(place, "*.fgdk"))
    bytes_left = sum(size for _, size, _ in entries)
    if bytes_left <= MOST_BYTES:
        return
    for _, size, path in entries:
        if bytes_left <= KEPT_SHARE * MOST_BYTES:
            return
        _delete(path)
        bytes_left -= size


def _files(place: Path, pattern: str) -> Iterator[tuple[float, int, Path]]:
    """When each of our files was used last, how large it is and where; one that another process deletes is left out."""
    for path in place.glob(f"[0-9a-f][0-9a-f]/{pattern}"):
        with suppress(OSError):
            facts = path.stat()
            yield facts.st_mtime, facts.st_size, path


def _delete(path: Path) -> None:
    with suppress(OSError):  # another process has it open, or was faster
        path.unlink()


def _path(place: Path, name: str) -> Path:
    return place / name[:2] / f"{name[2:]}.fgdk"


def _encode(entry: Entry, name: str) -> bytes:
    words = json.dumps({"kernel": name, "facts": entry.facts}, separators=(",", ":")).encode()
    payload = len(words).to_bytes(8, "little") + words + entry.code
    return _MAGIC + _checksum(payload) + payload


def _decode(content: bytes, name: str) -> Entry | None:
    start = len(_MAGIC) + _CHECKSUM
    payload = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _checksum(payload):
        return None
    length = int.from_bytes(payload[:8], "little")
    words = json.loads(payload[8 : 8 + length])
    return Entry(words["facts"], payload[8 + length :]) if words["kernel"] == name else None


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECKSUM).digest()
