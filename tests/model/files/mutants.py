"""Damaged copies of model files: what comes out must be a mechanism or the package's own error."""

from __future__ import annotations

import random
import re
import time
import traceback
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from factorgraph_dyn.errors import FactorGraphDynError
from factorgraph_dyn.model.files.load import loads

NASTY = [
    b"nan", b"inf", b"-inf", b"1e400", b"-1", b"0", b"", b"abc", b"1e-320", b"9" * 400, b"1 2", b"${x}",
    b"0x10", b"--", b"&lt;", b"\x00", b"\xff\xfe", b"true", b"1e308", b"-1e308", b"world", b"__model__",
    b"..", b"/etc/passwd", b"1,2,3",
]  # fmt: skip
NESTS = b"<body>" * 300, b"<model name='m'>" * 300, b"<frame name='f'>" * 300, b"[" * 5000


@dataclass
class Report:
    """What became of the damaged copies."""

    loaded: int = 0
    refused: int = 0
    foreign: list[str] = field(default_factory=list)
    unlocated: list[str] = field(default_factory=list)
    slowest: float = 0.0
    slowest_file: str = ""


def load_mutants(files: Sequence[Path], count: int, seed: int) -> Report:
    """Load damaged copies of files, drawn at random."""
    rng = random.Random(seed)
    contents = {path: path.read_bytes() for path in files}
    report = Report()
    for _ in range(count):
        path = rng.choice(files)
        damaged = mutate(contents[path], rng)
        start = time.perf_counter()
        try:
            _ = loads(damaged, file=str(path), folder=path.parent).warnings
            report.loaded += 1
        except FactorGraphDynError as error:
            report.refused += 1
            if path.name not in str(error) and not error.details.get("file"):
                report.unlocated.append(f"{path}: {error}")
        except BaseException:
            report.foreign.append(f"{path}\n{traceback.format_exc(limit=-4)}")
        taken = time.perf_counter() - start
        if taken > report.slowest:
            report.slowest, report.slowest_file = taken, str(path)
    return report


def mutate(content: bytes, rng: random.Random) -> bytes:
    """A copy with one kind of damage, or up to four."""
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        content = rng.choice(DAMAGES)(content, rng)
    return content


def _flip(content: bytes, rng: random.Random) -> bytes:
    data = bytearray(content)
    for _ in range(rng.randint(1, 8)):
        if data:
            data[rng.randrange(len(data))] = rng.randrange(256)
    return bytes(data)


def _cut(content: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(content) + 1), rng.randint(1, 2000)
    return content[:start] + content[start + length :]


def _truncate(content: bytes, rng: random.Random) -> bytes:
    return content[: rng.randrange(len(content) + 1)]


def _double(content: bytes, rng: random.Random) -> bytes:
    start, length = rng.randrange(len(content) + 1), rng.randint(1, 2000)
    piece = content[start : start + length]
    place = rng.randrange(len(content) + 1)
    return content[:place] + piece + content[place:]


def _value(content: bytes, rng: random.Random) -> bytes:
    """Another value for an attribute, text or JSON number: a nasty one, or one from elsewhere."""
    spans = [m.span(1) for m in re.finditer(rb'(?:"|\'|>|: ?)([^"\'<>{}\[\]]{1,80})(?:"|\'|<|,)', content)]
    if not spans:
        return content
    start, end = rng.choice(spans)
    other = rng.choice(spans)
    new = rng.choice(NASTY) if rng.random() < 0.6 else content[other[0] : other[1]]
    return content[:start] + new + content[end:]


def _element(content: bytes, rng: random.Random) -> bytes:
    """One whole line, tag or element removed, repeated or moved."""
    spans = [m.span() for m in re.finditer(rb"<(\w+)[^<>]*/>|<(\w+)[^<>]*>[^<>]*</\2>|<[^<>]*>", content)]
    if not spans:
        return content
    start, end = rng.choice(spans)
    place = rng.choice(spans)[0]
    piece = content[start:end]
    choice = rng.randrange(3)
    if choice == 0:
        return content[:start] + content[end:]
    if choice == 1:
        return content[:end] + piece * rng.choice([1, 1, 50]) + content[end:]
    return content[:place] + piece + content[place:]


def _insert(content: bytes, rng: random.Random) -> bytes:
    place = rng.randrange(len(content) + 1)
    extra = rng.choice(
        [
            *NASTY,
            *NESTS,
            b"<!DOCTYPE a [<!ENTITY b 'c'>]>",
            b"<!--",
            b"-->",
            b"<![CDATA[",
            b"]]>",
            b"<include file='../x'/>",
        ]
    )
    return content[:place] + extra + content[place:]


DAMAGES = [_flip, _cut, _truncate, _double, *[_value] * 5, *[_element] * 4, _insert]
