"""Compiled kernels on disk, so that a kernel is traced and optimised once a machine.

Takes the words that describe what is compiled; gives the object code and facts stored under their hash,
if they are there. An entry is one file:

    magic and checksum | length of the facts | facts as JSON | object code

Concurrent processes see all of it or nothing. A file that is damaged or of another version is ignored and replaced. A
folder that cannot be written only means that nothing is kept. ``FACTORGRAPH_DYN_CACHE`` moves the folder; "off"
disables it. Reading takes well under a millisecond.
"""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factorgraph_dyn import storage

ENVIRONMENT_VARIABLE = "FACTORGRAPH_DYN_CACHE"
FORMAT = 1
_MAGIC = b"fgdk"
_CHECKSUM = 16  # bytes


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


def read(name: str) -> Entry | None:
    """The stored kernel of a name; None where there is none, or a damaged one."""
    place = folder()
    if place is None:
        return None
    try:
        content = _path(place, name).read_bytes()
    except OSError:
        return None
    return _decode(content)


def write(name: str, entry: Entry) -> bool:
    """Store a kernel; whether that was possible."""
    place = folder()
    if place is None:
        return False
    path = _path(place, name)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        storage.write(path, _encode(entry))
    except OSError:
        return False
    return True


def _path(place: Path, name: str) -> Path:
    return place / name[:2] / f"{name[2:]}.fgdk"


def _encode(entry: Entry) -> bytes:
    facts = json.dumps(entry.facts, separators=(",", ":")).encode()
    payload = len(facts).to_bytes(8, "little") + facts + entry.code
    return _MAGIC + _checksum(payload) + payload


def _decode(content: bytes) -> Entry | None:
    start = len(_MAGIC) + _CHECKSUM
    payload = content[start:]
    if content[: len(_MAGIC)] != _MAGIC or content[len(_MAGIC) : start] != _checksum(payload):
        return None
    length = int.from_bytes(payload[:8], "little")
    return Entry(json.loads(payload[8 : 8 + length]), payload[8 + length :])


def _checksum(payload: bytes) -> bytes:
    return hashlib.blake2b(payload, digest_size=_CHECKSUM).digest()
