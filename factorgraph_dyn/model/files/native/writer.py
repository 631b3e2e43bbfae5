"""The package's own file format: a mechanism in full, as versioned JSON, to be read back exactly.

    {"format": "factorgraph_dyn mechanism", "version": 1, "name": ..., "gravity": [...],
     "links": [...], "joints": [...], "loops": [...], "couplings": [...], "frames": [...], "visuals": [...],
     "notes": [...]}

Numbers are written so that they read back to the same bits; infinite limits are the strings "inf"
and "-inf". Fields that have their default are left out. Meshes are named as the model's file named them, and sought
from the folder that this one is in. The same content without visuals and notes, hashed, is the mechanism's fingerprint.
"""

from __future__ import annotations

import hashlib
import json
import math
from dataclasses import MISSING, fields, replace
from typing import Any

import numpy as np

from factorgraph_dyn.model.description import CLOSED, PARTS, Description

FORMAT = "factorgraph_dyn mechanism"
VERSION = 1
UNHASHED = VISUALS, NOTES = "visuals", "notes"  # what no answer depends on


def to_dict(mechanism: Description) -> dict[str, Any]:
    """The mechanism as plain lists, numbers and strings, ready for JSON."""
    content: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "name": mechanism.name,
        "gravity": np.asarray(mechanism.gravity).tolist(),
    }
    for key in PARTS:
        content[key] = [_part_to_dict(part) for part in getattr(mechanism, key)]
    if mechanism.closure_tolerance != CLOSED:
        content["closure_tolerance"] = mechanism.closure_tolerance
    if mechanism.visuals:
        content[VISUALS] = [_part_to_dict(replace(visual, folder="")) for visual in mechanism.visuals]
    content[NOTES] = list(mechanism.notes)
    return content


def to_json(mechanism: Description) -> str:
    """The text of the mechanism's file, one part a line."""
    content = to_dict(mechanism)
    lines = []
    for key, value in content.items():
        if key in PARTS or key in UNHASHED:
            rows = ",\n".join("    " + json.dumps(item, allow_nan=False) for item in value)
            lines.append(f"  {json.dumps(key)}: [\n{rows}\n  ]" if value else f"  {json.dumps(key)}: []")
        else:
            lines.append(f"  {json.dumps(key)}: {json.dumps(value, allow_nan=False)}")
    return "{\n" + ",\n".join(lines) + "\n}\n"


def fingerprint(mechanism: Description) -> str:
    """A hash of all that answers depend on, as 64 hexadecimal digits; equal for equal mechanisms."""
    content = {key: value for key, value in to_dict(mechanism).items() if key not in UNHASHED}
    text = json.dumps(content, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def _part_to_dict(part: Any) -> dict[str, Any]:
    content = {}
    for item in fields(part):
        value = _plain(getattr(part, item.name))
        if value != _default_of(part, item):
            content[item.name] = value
    return content


def _default_of(part: Any, item: Any) -> Any:
    """What a field reads back as when it is left out, in the part's own shape."""
    if item.default_factory is not MISSING:
        return _plain(item.default_factory())
    if item.default is MISSING:
        return MISSING
    value = getattr(part, item.name)
    if isinstance(value, np.ndarray) and np.ndim(item.default) == 0:
        return _plain(np.full(value.shape, item.default))
    return _plain(item.default)


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, tuple | list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value
