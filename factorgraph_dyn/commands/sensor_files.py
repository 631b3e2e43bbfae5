"""Sensors in a TOML file, and the columns of a log that hold their readings.

    [[sensor]]
    kind = "Torque"                  # a class of fgd.sensors
    joint = ["shoulder", "elbow"]    # or frame, or name; a list makes a sensor each, "*" one for every motor
    sigma = 0.1                      # a number, a list, a matrix; inf where nothing is known
    columns = ["tau_1", "tau_2"]     # of the log, where they are not called Torque[shoulder], Torque[elbow]
    value = 0.0                      # instead of columns, for what never changes

Other keys are those of the class: components, axes, terms. A name that stands twice is two sensors.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.checks import check_mapping
from factorgraph_dyn.equations import sensors as kinds
from factorgraph_dyn.equations.sensors import Sensor
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.logs import Log, entry_names
from factorgraph_dyn.spatial import Floats

NAMES = tuple(name for name in kinds.__all__ if name != "Sensor")


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

    def readings(self, mechanism: Mechanism, log: Log) -> Floats:
        """What it reads at every sample, shape (samples, size)."""
        size = self.sensor.size(mechanism)
        if self.value is not None or np.isinf(self.sensor.noise(mechanism).s).all():
            always = replace(self.sensor, value=self.value).values(mechanism)  # type: ignore[type-var]
            return np.array(np.broadcast_to(always, (log.samples, size)))
        columns = self.columns or self._usual_columns(log, size)
        found = log.read(columns)
        if found.shape[1] != size:
            raise InputError(
                f"{self.sensor.label} reads {size} numbers; its columns {', '.join(columns)} hold {found.shape[1]}."
            )
        return found

    def _usual_columns(self, log: Log, size: int) -> tuple[str, ...]:
        """One for each entry, unless the log holds them as one array."""
        if self.sensor.label in log.columns:
            return (self.sensor.label,)
        components: Any = getattr(self.sensor, "components", None) or getattr(self.sensor, "names", range(size))
        return tuple(entry_names(self.sensor.label, np.atleast_1d(components).tolist()))


def read_sensors(path: Path, mechanism: Mechanism) -> list[LoggedSensor]:
    """The sensors that a file describes."""
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise InputError(f"The sensors file {str(path)!r} cannot be read: {error.strerror}.") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The sensors file {str(path)!r} is not TOML: {error}.") from None
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
    columns = (columns,) if isinstance(columns, str) else tuple(map(str, columns))
    allowed = [field.name for field in fields(kind) if field.name != "value"]
    for key in entry:
        check_name(key, [*allowed, "columns", "value"], "key", f"a {kind.__name__} of {str(path)!r}", InputError)
    if allowed[0] not in entry:
        raise InputError(f"A {kind.__name__} of the sensors file {str(path)!r} has no {allowed[0]}.")
    places = entry.pop(allowed[0])
    if places == "*":
        places = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    places = places if isinstance(places, list) else [places]
    share, rest = divmod(len(columns), len(places))
    if rest:
        raise InputError(f"{len(columns)} columns cannot be shared by {len(places)} sensors {kind.__name__}.")
    for k, place in enumerate(places):
        yield LoggedSensor(kind(place, **entry), columns[k * share : (k + 1) * share], value)
