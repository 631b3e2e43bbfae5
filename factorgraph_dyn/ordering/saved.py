"""Orderings that a search found, kept in files.

A results file is JSON with the ordering, what it was found for and what it costs. The best ordering of every
mechanism and problem is also kept in a folder of the user, where ``ordering="search"`` finds it;
``FACTORGRAPH_DYN_ORDERINGS`` moves the folder. A problem is told by the names of its variables, and by whether
parameters of the mechanism are free: where no link has special inertias, other orderings are best. The package ships a
folder of such files for its own robots, written by

    FACTORGRAPH_DYN_ORDERINGS=factorgraph_dyn/ordering/shipped fgdyn search ROBOT --problem PROBLEM

and ``fgd.search_orderings(robot, problem, parameters="all")``.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from factorgraph_dyn import storage
from factorgraph_dyn.errors import InputError, OrderingError
from factorgraph_dyn.ordering.halves import joined

FORMAT = "factorgraph_dyn ordering"
VERSION = 1
BEST = "search"
"""The word that stands for the best ordering saved."""

SHIPPED = "shipped"
"""What an ordering that comes with the package is called."""

ENVIRONMENT_VARIABLE = "FACTORGRAPH_DYN_ORDERINGS"


@dataclass(frozen=True)
class SavedOrdering:
    """An ordering in a file.

    Attributes:
        mechanism: Name of the mechanism.
        fingerprint: The mechanism's.
        problem: Name of the problem.
        objective: What was made small.
        variables: The ordering.
        score: What it reached.
        facts: Costs, accuracy, how it was found; for people.
        elites: Score and ordering of other good ones, from which a search goes on.
        free: Whether parameters of the mechanism were arguments.
    """

    mechanism: str
    fingerprint: str
    problem: str
    objective: str
    variables: tuple[str, ...]
    score: float
    facts: Mapping[str, Any] = field(default_factory=dict)
    elites: tuple[tuple[float, tuple[str, ...]], ...] = ()
    free: bool = False


def is_saved(ordering: str) -> bool:
    """Whether a word stands for an ordering in a file."""
    return ordering == BEST or ordering.endswith(".json")


def write(path: Path, saved: SavedOrdering) -> None:
    """Write a results file; one that was there stays whole until the new one is.

    Raises:
        InputError: The path cannot be written.
    """
    text = json.dumps({"format": FORMAT, "version": VERSION, **asdict(saved)}, indent=1)
    try:
        storage.write(path, text.encode())
    except OSError as error:
        raise InputError(
            f"The results file {str(path)!r} cannot be written: {error.strerror}. Choose a path in a "
            "folder that exists and is yours."
        ) from error


def read(path: Path) -> SavedOrdering:
    """The ordering in a results file.

    Raises:
        OrderingError: There is no such file, or it is not a results file of this version.
    """
    try:
        content = json.loads(storage.read(path).decode())
    except OSError as error:
        raise OrderingError(f"The results file {str(path)!r} cannot be read: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise OrderingError(
            f"{str(path)!r} is not a results file: its JSON is broken ({error}). Search again, or name another file."
        ) from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise OrderingError(f"{str(path)!r} is not a results file of search_orderings; name another file.")
    if content.get("version") != VERSION:
        found = f"has version {content['version']!r}" if "version" in content else "does not say its version"
        raise OrderingError(
            f"The results file {str(path)!r} {found}; this package reads "
            f"version {VERSION}. Search again, or keep it for the package that wrote it."
        )
    try:
        return SavedOrdering(
            str(content["mechanism"]),
            str(content["fingerprint"]),
            str(content["problem"]),
            str(content["objective"]),
            tuple(map(str, content["variables"])),
            float(content["score"]),
            dict(content["facts"]),
            tuple((float(score), tuple(map(str, names))) for score, names in content["elites"]),
            bool(content.get("free", False)),
        )
    except (KeyError, TypeError, ValueError, OverflowError) as error:
        raise OrderingError(
            f"The results file {str(path)!r} lacks or garbles {error}. Search again, or name another file."
        ) from error


def check_found_for(saved: SavedOrdering, fingerprint: str, mechanism: str, path: Path) -> None:
    """Raise an OrderingError unless a results file was found for this mechanism."""
    if saved.fingerprint != fingerprint:
        raise OrderingError(
            f"The results file {str(path)!r} is for mechanism {saved.mechanism!r} with fingerprint "
            f"{saved.fingerprint[:12]}; this one is {mechanism!r} with {fingerprint[:12]}. Search again for "
            "it, or pass the file's variables as ordering= if the names are the same."
        )


def folder() -> Path:
    """Where the best orderings of this user are kept."""
    chosen = os.environ.get(ENVIRONMENT_VARIABLE)
    return Path(chosen) if chosen else storage.FOLDERS.user_data_path / "orderings"


def best_path(fingerprint: str, variables: Iterable[str], place: Path | None = None, *, free: bool = False) -> Path:
    """The file of the best ordering of a mechanism for the problem with these variables, by default of this user."""
    names = "\n".join(sorted(variables))
    problem = hashlib.sha256(names.encode()).hexdigest()
    ending = "-free" if free else ""
    return (folder() if place is None else place) / f"{fingerprint[:32]}-{problem[:16]}{ending}.json"


def shipped(fingerprint: str, variables: Iterable[str], *, free: bool = False) -> SavedOrdering | None:
    """The ordering that comes with the package for a mechanism and the problem with these variables, if one does."""
    path = best_path(fingerprint, variables, Path(__file__).parent / "shipped", free=free)
    return read(path) if path.exists() else None


def best(fingerprint: str, mechanism: str, variables: Iterable[str], *, free: bool = False) -> SavedOrdering:
    """The best ordering that this user's searches have found.

    Raises:
        OrderingError: None has been searched for.
    """
    path = best_path(fingerprint, variables, free=free)
    if not path.exists():
        raise OrderingError(
            f"No search has been saved for mechanism {mechanism!r} and this problem. Run "
            "fgd.search_orderings(mechanism, problem) or 'fgdyn search ROBOT' first, or choose another "
            "ordering."
        )
    saved = read(path)
    check_found_for(saved, fingerprint, mechanism, path)
    return saved


def keep_best(saved: SavedOrdering, beaten: SavedOrdering | None = None) -> Path | None:
    """Keep an ordering for ``ordering="search"`` unless a better one of the same objective is there.

    Args:
        saved: The ordering.
        beaten: What the search went on from. It gives way whatever its score says, which another version of the
            compiler may have counted.

    Returns:
        Its file, or None where the folder cannot be written or a better one stays.
    """
    path = best_path(saved.fingerprint, joined(saved.variables), free=saved.free)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        known = read(path) if path.exists() else None
    except OSError:
        return None
    except OrderingError:
        known = None  # broken or of another version: of no use to anybody
    if known is not None and known != beaten and known.objective == saved.objective and known.score <= saved.score:
        return None
    try:
        write(path, saved)
    except InputError:
        return None
    return path
