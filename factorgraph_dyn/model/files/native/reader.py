"""A file in the package's own format, which ``writer`` describes, becomes a mechanism."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.description import CLOSED, PARTS
from factorgraph_dyn.model.files.native.writer import FORMAT, NOTES, UNHASHED, VERSION, VISUALS
from factorgraph_dyn.model.files.xml_tree import MAX_ELEMENTS
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import BOUNDS
from factorgraph_dyn.model.visuals import Visual

TEXTS = {"kind", "shape", "mesh", *(field for _, names in PARTS.values() for field in names)}


def read_native(text: str, file: str) -> Mechanism:
    """The mechanism of a file in the package's own format.

    Raises:
        ModelError: Not JSON, another version, or parts that make no mechanism.
    """
    try:
        content = json.loads(text, object_pairs_hook=_no_duplicates, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise ModelError(
            f"{file}:{error.lineno}: the file is not JSON: {error.msg}.", file=file, line=error.lineno
        ) from None
    except (RecursionError, ValueError) as error:
        reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise ModelError(f"{file}:1: the file cannot be read as JSON: {reason}.", file=file) from None
    try:
        return _from_dict(content, str(Path(file).parent))
    except ModelError as error:
        line = _line_of(text, str(error.details.get("part", "")))
        raise ModelError(f"{file}:{line}: {error}", file=file, line=line) from None


def _from_dict(content: Any, folder: str) -> Mechanism:
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise ModelError(f'The file must be a JSON object with "format": "{FORMAT}".')
    if content.get("version") != VERSION or isinstance(content.get("version"), bool):
        found = f"has version {content['version']!r}" if "version" in content else "does not say its version"
        raise ModelError(f"The file {found}; this package reads version {VERSION}.")
    _check_keys(content, {"format", "version", "name", "gravity", "closure_tolerance", *UNHASHED, *PARTS}, "the file")
    if sum(len(items) for key in (*PARTS, VISUALS) if isinstance(items := content.get(key), list)) > MAX_ELEMENTS:
        raise ModelError(f"The file has more than {MAX_ELEMENTS} parts; it is not read.")
    parts: dict[str, Any] = {key: tuple(_parts(content.get(key, []), key, kind)) for key, (kind, _) in PARTS.items()}
    visuals = _parts(content.get(VISUALS, []), VISUALS, Visual)
    parts[VISUALS] = tuple(replace(visual, folder=folder) for visual in visuals)
    notes = content.get(NOTES, [])
    if not isinstance(notes, list) or not all(isinstance(note, str) for note in notes):
        raise ModelError("'notes' must be a list of strings.", part='"notes"')
    name = content.get("name")
    if not isinstance(name, str):
        raise ModelError("'name' must be a string.")
    gravity = _value("gravity", content.get("gravity", [0.0, 0.0, -9.81]), "the file")
    if not isinstance(gravity, list) or len(gravity) != 3 or any(isinstance(entry, list) for entry in gravity):
        raise ModelError("'gravity' must be a list of 3 numbers.", part='"gravity"')
    tolerance = _value("closure_tolerance", content.get("closure_tolerance", CLOSED), "the file")
    return Mechanism(name, **parts, gravity=gravity, notes=tuple(notes), closure_tolerance=tolerance)


def _parts(items: Any, key: str, kind: type[Any]) -> list[Any]:
    if not isinstance(items, list):
        raise ModelError(f"'{key}' must be a list.", part=f'"{key}"')
    made = []
    allowed = {item.name for item in fields(kind)} - {"folder"}  # a file does not say where to look for others
    for index, item in enumerate(items):
        where = f"{key}[{index}]"
        if not isinstance(item, dict):
            raise ModelError(f"{where} must be an object.", part=f'"{key}"')
        name = item.get("name")
        part = json.dumps({"name": name})[1:-1] if isinstance(name, str) else f'"{key}"'
        try:
            _check_keys(item, allowed, where)
            values = {field: _value(field, value, where) for field, value in item.items()}
            made.append(kind(**values))
        except ModelError as error:
            raise ModelError(f"{where}: {error}", part=part) from None
        except TypeError as error:  # a required field is missing
            raise ModelError(f"{where} is incomplete: {error}.", part=part) from None
    return made


def _value(field: str, value: Any, where: str) -> Any:
    """A field's value checked for its type: text, truth, numbers or lists of numbers."""
    if field in TEXTS:
        if not isinstance(value, str) or not value:
            raise ModelError(f"{where}: '{field}' must be a non-empty string.")
        return value
    if field == "actuated":
        if not isinstance(value, bool):
            raise ModelError(f"{where}: 'actuated' must be true or false.")
        return value
    if field == "limits":
        if value is None:
            return None
        if not isinstance(value, list) or len(value) != 2:
            raise ModelError(f"{where}: 'limits' must be null or [lower, upper].")
        return tuple(_limit(item, where) for item in value)
    if field in BOUNDS:
        return (
            [_limit(item, where, field) for item in value] if isinstance(value, list) else _limit(value, where, field)
        )
    return _numbers(value, f"{where}: '{field}'", 0)


def _limit(item: Any, where: str, field: str = "limits") -> float:
    if item in ("inf", "-inf"):
        return float(item)
    number = _numbers(item, f"{where}: '{field}'", 2)
    assert isinstance(number, float)
    return number


def _numbers(value: Any, what: str, depth: int) -> Any:
    if isinstance(value, list) and depth < 2:
        return [_numbers(item, what, depth + 1) for item in value]
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    raise ModelError(f"{what} holds {str(value)[:60]!r}, which is not a number.")


def _check_keys(item: Mapping[str, Any], allowed: set[str], where: str) -> None:
    if unknown := sorted(str(key)[:60] for key in item if key not in allowed):
        raise ModelError(f"{where} has unknown fields {', '.join(unknown)}. Fields: {', '.join(sorted(allowed))}.")


def _no_duplicates(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) != len(pairs):
        keys = [key for key, _ in pairs]
        twice = next(key for key, times in Counter(keys).items() if times > 1)
        raise ValueError(f"the field {twice[:60]!r} occurs twice in one object")
    return content


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is not a finite number")


def _line_of(text: str, part: str) -> int:
    """The line where a piece of text first occurs, 1 where it is not found."""
    position = text.find(part) if part else -1
    return 1 if position < 0 else text.count("\n", 0, position) + 1
