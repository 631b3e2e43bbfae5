"""A YAML list of closures turns a URDF's tree into a mechanism with loops.

    closed_loop: [['frame_a', 'frame_b'], ...]     pairs that coincide
    type:        ['6d', ...]                       6d: all six freedoms (fixed), 3d: the points (spherical)
    name_mot:    ['mot1', ...]                     the joints with a motor

as published with example-parallel-robots (Gepetto). A name is a link, a frame, or a joint, which
stands for the link it moves.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import yaml

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Loop
from factorgraph_dyn.spatial import Floats

DEEPEST = 20  # levels of lists in a file, where three are needed
LOOP_KINDS = {"6d": "fixed", "3d": "spherical"}


@dataclass(frozen=True)
class Closures:
    """What a file of closures lists: pairs of names with a loop kind each, and the motors or None."""

    loops: tuple[tuple[str, str, str, int], ...]  # first, second, kind, line
    motors: tuple[str, ...] | None


def is_closure_file(content: bytes) -> bool:
    """Whether a file's content is a YAML of closures."""
    return re.search(rb"^closed_loop\s*:", content, re.MULTILINE) is not None and content.lstrip()[:1] not in (
        b"<",
        b"{",
    )


def parse_closures(content: bytes, file: str) -> Closures:
    """The closures that a YAML file lists.

    Raises:
        ModelError: Not such a file; says file and line.
    """
    entries = _entries(content, file)
    pairs, line = entries.get("closed_loop", ([], 1))
    kinds, kinds_line = entries.get("type", (["6d"] * len(pairs), line))
    motors, _ = entries.get("name_mot", (None, 1))
    if not isinstance(pairs, list) or not isinstance(kinds, list) or len(kinds) != len(pairs):
        _fail(file, kinds_line, "'type' must list one of 6d, 3d for every pair of 'closed_loop'")
    loops = []
    for pair, kind in zip(pairs, kinds, strict=True):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(n, str) and n for n in pair):
            _fail(file, line, f"a closed loop is {str(pair)[:60]!r}; it must be a pair of names")
        if not isinstance(kind, str) or kind.lower() not in LOOP_KINDS:
            _fail(file, kinds_line, f"a closure's type is {str(kind)[:60]!r}; types: {', '.join(LOOP_KINDS)}")
        loops.append((str(pair[0]), str(pair[1]), LOOP_KINDS[kind.lower()], line))
    if motors is not None and not (isinstance(motors, list) and all(isinstance(m, str) for m in motors)):
        _fail(file, line, "'name_mot' must be a list of joint names")
    return Closures(tuple(loops), None if motors is None else tuple(str(m) for m in motors))


def add_closures(mechanism: Mechanism, closures: Closures, file: str) -> Mechanism:
    """The mechanism with the listed loops, and with motors at the listed joints only."""
    loops = list(mechanism.loops)
    for index, (first, second, kind, line) in enumerate(closures.loops, start=1):
        (link_a, T_a), (link_b, T_b) = (_place(mechanism, n, file, line) for n in (first, second))
        if link_a == link_b:
            _fail(file, line, f"{first!r} and {second!r} are on the same link {link_a!r}")
        loops.append(Loop(f"closed_loop_{index}", kind, link_a, link_b, T_a, T_b))
    joints, notes = mechanism.joints, list(mechanism.notes)
    if closures.motors is not None:
        # Files in the wild list stems of names: 'mot1' for 'mot1_left', so a part of the name counts.
        driven = {j.name for j in joints if any(motor in j.name for motor in closures.motors)}
        unmatched = [m for m in closures.motors if not any(m in j.name for j in joints)]
        notes += [f"{file}: motor {motor!r} is in no joint's name." for motor in unmatched]
        joints = tuple(replace(joint, actuated=joint.name in driven) for joint in joints)
    return replace(mechanism, joints=joints, loops=tuple(loops), notes=tuple(notes))


def _place(mechanism: Mechanism, name: str, file: str, line: int) -> tuple[str, Floats]:
    """The link a name is on, and the pose of the named frame in it."""
    for frame in mechanism.frames:
        if frame.name == name:
            return frame.link, np.asarray(frame.placement)
    if name in mechanism.link_by_name:
        return name, np.eye(4)
    if name in mechanism.joint_by_name:
        return mechanism.joint_by_name[name].child, np.eye(4)
    return _fail(file, line, f"{name!r} is no link, frame or joint of {mechanism.name!r}")


def _entries(content: bytes, file: str) -> dict[str, tuple[Any, int]]:
    """The keys of the file with their values, all of them texts and lists of texts, and their lines."""
    try:
        text = content.decode("utf-8-sig")
        depth = 0
        for event in yaml.parse(text, Loader=yaml.BaseLoader):  # one by one, so that what is too deep ends early
            if isinstance(event, yaml.AliasEvent):
                _fail(file, 1, "the file has aliases (*name), which are not read; write the lists out")
            depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
            if depth > DEEPEST:
                _fail(file, 1, "the file is nested too deeply")
        loader = yaml.BaseLoader(text)
        node = loader.get_single_node()
        if not isinstance(node, yaml.MappingNode):
            _fail(file, 1, "the file is no list of 'key: value'")
        entries: dict[str, tuple[Any, int]] = {}
        for key, value in node.value:
            line = key.start_mark.line + 1
            if str(key.value) in entries:
                _fail(file, line, f"the key {key.value!r} occurs twice")
            entries[str(key.value)] = (loader.construct_object(value, deep=True), line)
    except UnicodeDecodeError as error:
        _fail(file, 1, f"the file is not UTF-8: {error}")
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        _fail(file, mark.line + 1 if mark else 1, f"the file is not YAML: {getattr(error, 'problem', None) or error}")
    return entries


def _fail(file: str, line: int, message: str) -> NoReturn:
    raise ModelError(f"{file}:{line}: {message}.", file=file, line=line) from None
