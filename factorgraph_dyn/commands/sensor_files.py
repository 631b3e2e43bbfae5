"""Sensors in a TOML file, and the columns of a log that hold their readings.

    [[sensor]]
    kind = "Torque"                  # a class of fgd.sensors
    joint = ["shoulder", "elbow"]    # or frame, or name; a list makes a sensor each, "*" one for every motor
    sigma = 0.1                      # a number, a list, a matrix; inf where nothing is known
    columns = ["tau_1", "tau_2"]     # of the log, where they are not called Torque[shoulder], Torque[elbow]
    value = 0.0                      # instead of columns, for what never changes

Other keys are those of the class: components, axes, terms. A name that stands twice is two sensors, and no column is
read by both. Components have columns of their own, such as Accelerometer[hand].x, also where one alone is read;
Accelerometer[hand] alone is an array of all, or what its only sensor reads.
"""

from __future__ import annotations

import tomllib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from factorgraph_dyn import storage
from factorgraph_dyn.checks import as_names, check_mapping
from factorgraph_dyn.equations import sensors as kinds
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.equations.sensors.sensor import OfComponents
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.logs import Log, entry_names
from factorgraph_dyn.spatial import Floats

NAMES = tuple(name for name in kinds.__all__ if name != "Sensor")


class Entry(NamedTuple):
    """One number a sample: a column of a log, or one of an array's."""

    column: str
    number: int


@dataclass(frozen=True, eq=False)
class LoggedSensor:
    """A sensor without a value, and where its readings are.

    Attributes:
        columns: Names of the log's columns; nothing for the usual ones.
        value: What it always reads; None where the log tells.
    """

    sensor: Sensor
    columns: tuple[str, ...]
    value: Any

    @property
    def title(self) -> str:
        """What messages call it, with its components where it does not read all."""
        components = getattr(self.sensor, "components", None)
        return self.sensor.label + ("" if components is None else f" ({', '.join(np.atleast_1d(components).tolist())})")

    def always(self, mechanism: Mechanism) -> Floats | None:
        """What it reads at every sample alike, shape (size,); None where the log tells."""
        if self.value is None and not np.isinf(self.sensor.noise(mechanism).s).all():
            return None
        return replace(self.sensor, value=self.value).values(mechanism)  # type: ignore[type-var]

    def entries(self, mechanism: Mechanism, log: Log, alone: bool) -> list[Entry]:
        """Where each number that it reads is in the log; ``alone`` where no other sensor has its label."""
        size = self.sensor.size(mechanism)
        if not self.columns and isinstance(self.sensor, OfComponents):
            return self._of_components(self.sensor, log, size, alone)
        label = self.sensor.label
        columns = self.columns or ((label,) if label in log.columns else entry_names(label, range(size)))
        return self._all_entries(columns, log, size)

    def _of_components(self, sensor: OfComponents, log: Log, size: int, alone: bool) -> list[Entry]:
        """Columns such as Accelerometer[hand].x, or those of one array; a plain column only where it is no riddle."""
        label, names = sensor.label, sensor.names
        chosen = names if sensor.components is None else np.atleast_1d(sensor.components).tolist()
        own = [f"{label}.{name}" for name in chosen]
        told_apart = any(f"{label}.{name}" in log.columns for name in names)
        if label in log.columns and not told_apart:
            if log.width(label) == len(names):
                return [Entry(label, names.index(name)) for name in chosen]
            if alone:
                return self._all_entries((label,), log, size)
        return self._all_entries(own, log, size)

    def _all_entries(self, columns: Sequence[str], log: Log, size: int) -> list[Entry]:
        log.check(columns)
        found = [Entry(name, k) for name in columns for k in range(log.width(name))]
        if len(found) != size:
            raise InputError(f"{self.title} reads {size} numbers; its columns {', '.join(columns)} hold {len(found)}.")
        return found


def read_readings(logged: Sequence[LoggedSensor], mechanism: Mechanism, log: Log) -> Floats:
    """What all sensors read at every sample, side by side, shape (samples, sum of sizes).

    Raises:
        InputError: The log lacks columns, has gaps, or two sensors would read the same numbers: they count for
            independent of each other.
    """
    always = [each.always(mechanism) for each in logged]
    told = [each for each, value in zip(logged, always, strict=True) if value is None]
    labels = Counter(each.sensor.label for each in told if not each.columns)
    readers: dict[Entry, LoggedSensor] = {}
    parts = [np.zeros((log.samples, 0))]
    for each, value in zip(logged, always, strict=True):
        if value is not None:
            parts.append(np.broadcast_to(value, (log.samples, len(value))))
            continue
        for entry in each.entries(mechanism, log, labels[each.sensor.label] == 1):
            if entry in readers:
                raise InputError(
                    f"{readers[entry].title} and {each.title} both read the column {entry.column} of the log "
                    f"{str(log.path)!r}; give one of them columns = [...] of its own, or leave it out."
                )
            readers[entry] = each
            parts.append(log.read([entry.column])[:, [entry.number]])
    return np.hstack(parts)


def read_sensors(path: Path, mechanism: Mechanism) -> list[LoggedSensor]:
    """The sensors that a file describes."""
    try:
        content = tomllib.loads(storage.read(path).decode())
    except OSError as error:
        raise InputError(f"The sensors file {str(path)!r} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The sensors file {str(path)!r} is not TOML: {error}.") from None
    except RecursionError:
        raise InputError(f"The sensors file {str(path)!r} cannot be read: it is nested too deeply.") from None
    entries = content.get("sensor")
    if not isinstance(entries, list) or not entries:
        raise InputError(
            f"The sensors file {str(path)!r} has no [[sensor]]; each needs kind, joint or frame, and sigma."
        )
    for entry in entries:
        check_mapping(entry, f"A [[sensor]] of {str(path)!r}", "a table with kind, joint or frame, and sigma")
    found = [logged for entry in entries for logged in _entry(dict(entry), mechanism, path)]
    for logged in found:
        logged.sensor.noise(mechanism)  # refuses what is not there
    return found


def _entry(entry: dict[str, Any], mechanism: Mechanism, path: Path) -> Iterator[LoggedSensor]:
    """The sensors of one entry."""
    if "kind" not in entry:
        raise InputError(f"A [[sensor]] of {str(path)!r} has no kind. Kinds: {', '.join(NAMES)}.")
    check_name(entry["kind"], NAMES, "sensor", f"fgd.sensors ({str(path)!r})", InputError)
    kind: Any = getattr(kinds, entry.pop("kind"))
    columns, value = entry.pop("columns", ()), entry.pop("value", None)
    columns = as_names(columns, f"columns of the {kind.__name__} of {str(path)!r}")
    allowed = [field.name for field in fields(kind) if field.name != "value"]
    for key in entry:
        check_name(key, [*allowed, "columns", "value"], "key", f"a {kind.__name__} of {str(path)!r}", InputError)
    if allowed[0] not in entry:
        raise InputError(f"A {kind.__name__} of the sensors file {str(path)!r} has no {allowed[0]}.")
    places = entry.pop(allowed[0])
    if places == "*":
        places = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    places = places if isinstance(places, list) else [places]
    if not places:
        raise InputError(
            f"A {kind.__name__} of the sensors file {str(path)!r} is on no {allowed[0]}; name one or more."
        )
    share, rest = divmod(len(columns), len(places))
    if rest:
        raise InputError(f"{len(columns)} columns cannot be shared by {len(places)} sensors {kind.__name__}.")
    for k, place in enumerate(places):
        yield LoggedSensor(kind(place, **entry), columns[k * share : (k + 1) * share], value)
