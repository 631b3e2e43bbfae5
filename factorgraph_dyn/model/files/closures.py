"""A YAML list of closures turns a URDF's tree into a mechanism with loops.

    closed_loop: [['frame_a', 'frame_b'], ...]     pairs that coincide
    type:        ['6d', ...]                       6d: all six freedoms (fixed), 3d: the points (spherical)
    name_mot:    ['mot1', ...]                     the joints with a motor
    joint_name:  ['knee', ...]                     joints of kinds that URDF has no word for
    joint_type:  ['SPHERICAL', ...]                theirs: SPHERICAL, CARDAN (about x, then y) or FIXED

as published with example-parallel-robots (Gepetto). There is no other key. A name is a link, a frame, or a joint,
which stands for the link it moves. A motor is a joint's name, or words of it that no other joint's name has:
``mot1`` means ``mot1_left``, never ``mot10``.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, NoReturn

import numpy as np
import yaml

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import EFFECTS, Frame, Joint, Loop
from factorgraph_dyn.spatial import Floats

MOST_BYTES = 100_000  # of a file: published ones have less than three thousand, and PyYAML takes seconds for as many
DEEPEST = 20  # levels of lists in a file, where three are needed
LOOP_KINDS = {"6d": "fixed", "3d": "spherical"}
JOINT_KINDS = {"spherical": "spherical", "cardan": "universal", "fixed": "fixed"}
CARDAN_AXES = ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0))
KEYS = ("closed_loop", "type", "name_mot", "joint_name", "joint_type")


@dataclass(frozen=True)
class Closures:
    """What a file of closures lists.

    Attributes:
        loops: Pairs of names with a loop kind each.
        motors: Names of joints, or None where the file does not say.
        kinds: The kind of joints that the URDF gives another one, by name.
        lines: Where the keys stand.
    """

    loops: tuple[tuple[str, str, str], ...]
    motors: tuple[str, ...] | None
    kinds: Mapping[str, str]
    lines: Mapping[str, int]


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
    if len(content) > MOST_BYTES:
        _fail(file, 1, f"the file has {len(content)} bytes, and a list of closures at most {MOST_BYTES}")
    entries = _entries(content, file)
    lines = {key: line for key, (_, line) in entries.items()}
    if not lines:
        _fail(file, 1, f"the file lists nothing; keys: {', '.join(KEYS)}")
    for key, line in lines.items():
        if key not in KEYS:
            _fail(file, line, f"the key {key[:60]!r} is not known; keys: {', '.join(KEYS)}")
    pairs, line = entries.get("closed_loop", ([], 1))
    kinds, kinds_line = entries.get("type", (["6d"] * len(pairs), line))
    if not isinstance(pairs, list) or not isinstance(kinds, list) or len(kinds) != len(pairs):
        _fail(file, kinds_line, "'type' must list one of 6d, 3d for every pair of 'closed_loop'")
    loops = []
    for pair, kind in zip(pairs, kinds, strict=True):
        if not isinstance(pair, list) or len(pair) != 2 or not all(isinstance(n, str) and n for n in pair):
            _fail(file, line, f"a closed loop is {str(pair)[:60]!r}; it must be a pair of names")
        loops.append((str(pair[0]), str(pair[1]), _kind(kind, LOOP_KINDS, "a closure's type", file, kinds_line)))
    motors = _names(entries, "name_mot", file) if "name_mot" in entries else None
    joints, types = _names(entries, "joint_name", file), _names(entries, "joint_type", file)
    line = lines.get("joint_type", lines.get("joint_name", 1))
    if len(types) != len(joints) or len(set(joints)) != len(joints):
        _fail(file, line, "'joint_type' must list a type for every joint of 'joint_name', each of them named once")
    types = tuple(_kind(kind, JOINT_KINDS, "a joint's type", file, line) for kind in types)
    return Closures(tuple(loops), motors, dict(zip(joints, types, strict=True)), lines)


def add_closures(mechanism: Mechanism, closures: Closures, file: str) -> Mechanism:
    """The mechanism with the listed loops and kinds of joints, and with motors at the listed joints only."""
    loops = (*mechanism.loops, *_loops(mechanism, closures, file))
    joints, notes = _of_their_kinds(mechanism, closures, file)
    if closures.motors is not None:
        movable = {joint.name: joint for joint in joints if joint.nv}
        driven = {_driven(motor, movable, file, closures.lines["name_mot"]) for motor in closures.motors}
        joints = tuple(replace(joint, actuated=joint.name in driven) for joint in joints)
    try:
        return replace(mechanism, joints=joints, loops=loops, notes=(*mechanism.notes, *notes))
    except ModelError as error:  # such as a coupling of a joint that is spherical now
        return _fail(file, 1, f"the model cannot be closed so: {str(error).rstrip('.')}")


def _loops(mechanism: Mechanism, closures: Closures, file: str) -> Iterator[Loop]:
    frames = {frame.name: frame for frame in mechanism.frames}
    for index, (first, second, kind) in enumerate(closures.loops, start=1):
        line = closures.lines["closed_loop"]
        (link_a, T_a), (link_b, T_b) = (_place(mechanism, frames, n, file, line) for n in (first, second))
        if link_a == link_b:
            _fail(file, line, f"{first!r} and {second!r} are on the same link {link_a!r}")
        yield Loop(f"closed_loop_{index}", kind, link_a, link_b, T_a, T_b)


def _of_their_kinds(mechanism: Mechanism, closures: Closures, file: str) -> tuple[tuple[Joint, ...], list[str]]:
    """The joints of the kinds that the file lists, and what was left out of those it changes.

    Limits go without a word: every hinge of a URDF has them, and they bound one coordinate.
    """
    found = {joint.name: joint for joint in mechanism.joints}
    notes = []
    for name, kind in closures.kinds.items():
        line, old = closures.lines["joint_name"], found.get(name)
        if old is None or not old.nv:
            listing = ", ".join(joint.name for joint in mechanism.movable_joints)
            _fail(file, line, f"{name!r} is no movable joint of {mechanism.name!r}. Joints: {listing}")
        axis = CARDAN_AXES if kind == "universal" else (0.0, 0.0, 1.0)
        found[name] = Joint(name, kind, old.parent, old.child, old.placement, axis, actuated=old.actuated)
        if lost := [effect for effect in EFFECTS if np.any(getattr(old, effect))]:
            notes.append(f"{file}:{line}: joint {name!r} is {kind} and has no {', '.join(lost)} any more.")
    return tuple(found.values()), notes


def _driven(motor: str, movable: Mapping[str, Joint], file: str, line: int) -> str:
    """The joint that a motor's name means."""
    if motor in movable:
        return motor
    words = re.compile(rf"(?<![^\W_]){re.escape(motor)}(?![^\W_])")  # not in the middle of a word or number
    found = [name for name in movable if words.search(name)]
    if len(found) > 1:
        _fail(file, line, f"the motor {motor!r} may be several joints: {', '.join(found)}. Name each that has a motor")
    if not found:
        _fail(file, line, f"the motor {motor!r} is no movable joint. Joints: {', '.join(movable)}")
    return found[0]


def _place(mechanism: Mechanism, frames: Mapping[str, Frame], name: str, file: str, line: int) -> tuple[str, Floats]:
    """The link a name is on, and the pose of the named frame in it."""
    if name in frames:
        return frames[name].link, np.asarray(frames[name].placement)
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


def _names(entries: Mapping[str, tuple[Any, int]], key: str, file: str) -> tuple[str, ...]:
    """The names that a key lists; none where it is not there."""
    names, line = entries.get(key, ([], 1))
    if not isinstance(names, list) or not all(isinstance(name, str) and name.strip() for name in names):
        _fail(file, line, f"{key!r} must be a list of names, none of them empty")
    return tuple(str(name) for name in names)


def _kind(word: object, kinds: Mapping[str, str], what: str, file: str, line: int) -> str:
    """The kind that a word of the file means, in capitals or not."""
    if not isinstance(word, str) or word.lower() not in kinds:
        _fail(file, line, f"{what} is {str(word)[:60]!r}; types: {', '.join(kinds)}")
    return kinds[word.lower()]


def _fail(file: str, line: int, message: str) -> NoReturn:
    raise ModelError(f"{file}:{line}: {message}.", file=file, line=line) from None
