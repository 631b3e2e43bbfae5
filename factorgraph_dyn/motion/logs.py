"""Logs of robots: CSV with a header, or NPZ, as columns by name; gaps, nan and wrong columns are refused in words.

A column is named as what it holds: ``t``, ``q[elbow]``, ``v[elbow]``, ``Torque[elbow]``, and with an entry where there
are several: ``q[root].0``, ``Accelerometer[hand].x``. An NPZ file may hold ``q``, ``v`` and ``Accelerometer[hand]`` as
whole arrays, a row a sample; single numbers in it are left alone.
"""

from __future__ import annotations

import csv
import zlib
from collections import Counter
from collections.abc import Mapping, Sequence
from io import TextIOWrapper
from pathlib import Path
from zipfile import BadZipFile, is_zipfile

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from factorgraph_dyn import storage
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.text import parse_number

MOST_BYTES = 4_000_000_000  # of one log
PAUSE = 5.0  # of the usual step around it: what is longer is a pause, of which a window tells nothing


class Log:
    """Columns of numbers by name, one row a sample."""

    def __init__(self, path: Path, columns: Mapping[str, Floats]) -> None:
        self.path, self.columns = path, columns
        lengths = {name: len(column) for name, column in columns.items()}
        if not lengths:
            raise InputError(f"The log {str(path)!r} holds no arrays; give one a quantity, a row a sample.")
        if len(set(lengths.values())) != 1:
            raise InputError(f"The log {str(path)!r} has columns of different lengths: {lengths}.")
        self.samples = next(iter(lengths.values()))
        if not self.samples:
            raise InputError(f"The log {str(path)!r} holds no samples.")
        if "t" in columns and not (np.diff(self.read(["t"])[:, 0]) > 0).all():
            row = int(np.argmin(np.diff(columns["t"]) > 0)) + 2
            raise InputError(f"The times t of the log {str(path)!r} do not increase at sample {row}.")

    def check(self, names: Sequence[str]) -> None:
        """Raise an InputError unless there are these columns."""
        missing = [name for name in names if name not in self.columns]
        if missing:
            raise InputError(
                f"The log {str(self.path)!r} has no column {', '.join(missing)}. Columns: {', '.join(self.columns)}."
            )

    def width(self, name: str) -> int:
        """How many numbers a column holds at each sample: one, or those of an array."""
        return self.columns[name].size // self.samples

    def read(self, names: Sequence[str]) -> Floats:
        """Columns side by side, shape (samples, columns), all of them finite."""
        self.check(names)
        parts = [self.columns[name].reshape(self.samples, -1) for name in names]
        table = np.hstack([np.zeros((self.samples, 0)), *parts])
        gaps = np.argwhere(~np.isfinite(table))
        if len(gaps):
            owners = [name for name, part in zip(names, parts, strict=True) for _ in range(part.shape[1])]
            raise InputError(
                f"The log {str(self.path)!r} has {len(gaps)} gaps; the first is sample {gaps[0, 0] + 1} of column "
                f"{owners[gaps[0, 1]]!r}. Fill them, or cut these samples out."
            )
        return np.asarray(table, dtype=np.float64)

    @property
    def t(self) -> Floats:
        """The times, s; sample numbers where the log has none."""
        return self.read(["t"])[:, 0] if "t" in self.columns else np.arange(self.samples, dtype=np.float64)

    def holds(self, mechanism: Mechanism, kind: str) -> bool:
        """Whether there is anything of q, v, a or tau of joints."""
        return kind in self.columns or any(name in self.columns for name in joint_columns(mechanism, kind))

    def torques(self, mechanism: Mechanism) -> Floats:
        """tau[joint], or Torque[joint], of all joints; nan where the log has no column, shape (samples, nv)."""
        if "tau" in self.columns and self.columns["tau"].ndim == 2:
            return self.read(["tau"])
        found = np.full((self.samples, mechanism.nv), np.nan)
        for kind in ("Torque", "tau"):
            for k, name in enumerate(joint_columns(mechanism, kind)):
                if name in self.columns:
                    found[:, k] = self.read([name])[:, 0]
        if np.isnan(found).all():
            raise InputError(
                f"The log {str(self.path)!r} has no torque, such as tau[{mechanism.joint_names[0]}]. Columns: "
                f"{', '.join(self.columns)}."
            )
        return found

    def joints(self, mechanism: Mechanism, kind: str) -> Floats:
        """q or v of all joints, shape (samples, nq or nv)."""
        if kind in self.columns and self.columns[kind].ndim == 2:
            return self.read([kind])
        return self.read(joint_columns(mechanism, kind))


def joint_columns(mechanism: Mechanism, kind: str) -> list[str]:
    """The columns of q, v, a or tau of all joints, such as ``q[elbow]``."""
    sizes = {joint.name: joint.nq if kind == "q" else joint.nv for joint in mechanism.movable_joints}
    return [name for joint, size in sizes.items() for name in entry_names(f"{kind}[{joint}]", range(size))]


def entry_names(name: str, entries: Sequence[object]) -> list[str]:
    """The columns of a quantity: its name, or one for every entry."""
    return [name] if len(entries) == 1 else [f"{name}.{entry}" for entry in entries]


def read_log(path: Path) -> Log:
    """The log in a file, told by its ending."""
    try:
        if path.suffix == ".npz":
            return _read_npz(path)
        with TextIOWrapper(storage.opened(path, MOST_BYTES), "utf-8-sig", newline="") as file:  # spreadsheets' mark
            return _read_csv(path, list(csv.reader(file)))
    except OSError as error:
        raise InputError(f"The log {str(path)!r} cannot be read: {error.strerror or error}.") from None
    except (ValueError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"The log {str(path)!r} is no table of numbers: {error}.") from None


def _read_npz(path: Path) -> Log:
    with storage.opened(path, MOST_BYTES) as file:
        if not is_zipfile(file):  # NumPy would speak of pickles
            raise InputError(
                f"The log {str(path)!r} is not an .npz archive; write one with numpy.savez, or a .csv file."
            )
        file.seek(0)
        try:
            with np.load(file, allow_pickle=False) as content:
                arrays = {name: np.asarray(content[name], dtype=np.float64) for name in content.files}
        except (BadZipFile, ValueError, zlib.error):
            raise InputError(
                f"The log {str(path)!r} is damaged, or holds other things than arrays of numbers; write it by "
                "numpy.savez."
            ) from None
    return Log(path, {name: array for name, array in arrays.items() if array.ndim})


def check_log_path(path: Path) -> None:
    """Raise an InputError unless a log can be written under this name."""
    if path.suffix not in (".csv", ".npz"):
        raise InputError(f"The output {str(path)!r} must end in .csv or .npz.")


def write_log(path: Path, arrays: Mapping[str, Floats], columns: Mapping[str, Sequence[str]]) -> None:
    """Write a log: whole arrays to .npz, columns by name to .csv.

    Args:
        path: Of the file.
        arrays: Values by name, a row a sample.
        columns: Names of each array's columns; by default its own.
    """
    check_log_path(path)
    try:
        if path.suffix == ".npz":
            np.savez(path, **dict(arrays))  # type: ignore[arg-type]
            return
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.writer(file)
            writer.writerow([column for name in arrays for column in columns.get(name, [name])])
            writer.writerows(np.column_stack(list(arrays.values())).tolist())
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error.strerror}.") from None


def _read_csv(path: Path, rows: list[list[str]]) -> Log:
    if not rows:
        raise InputError(f"The log {str(path)!r} is empty; its first line has to name the columns.")
    names = [name.strip() for name in rows[0]]
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        raise InputError(f"The log {str(path)!r} has several columns {', '.join(repeated)}; name each once.")
    for number, row in enumerate(rows[1:], start=2):
        if len(row) != len(names):
            raise InputError(f"Line {number} of the log {str(path)!r} has {len(row)} columns, not {len(names)}.")
    numbers = [[parse_number(cell) if cell.strip() else np.nan for cell in row] for row in rows[1:]]
    table = np.array(numbers, dtype=np.float64).reshape(-1, len(names))
    return Log(path, {name: table[:, k] for k, name in enumerate(names)})


def differentiated(t: Floats, values: Floats, window: int) -> tuple[Floats, slice]:
    """Rates of change by parabolas through as many neighbours, and the samples that have all of them.

    At equal distances the slope of a parabola at its middle sample is that of a straight line; elsewhere a line's is
    that of another time.

    Args:
        t: Increasing times, s, shape (samples,).
        values: Shape (samples, ...).
        window: Number of samples of a parabola, odd, 3 or more: more smooth noise more, and quick changes, too.

    Raises:
        InputError: Times with gaps, or fewer samples than a parabola takes.
    """
    half = window // 2
    if window < 3 or window % 2 == 0 or len(t) < window:
        raise InputError(f"window is {window}; it must be an odd number of samples, 3 to {len(t)}.")
    _check_gaps(t, window)
    inner = slice(half, len(t) - half)
    weights = _slope_weights(t, half)
    parts = (
        np.expand_dims(weight, tuple(range(1, values.ndim))) * values[k : len(t) - 2 * half + k]
        for k, weight in enumerate(weights)
    )
    return np.asarray(sum(parts)), inner


def _slope_weights(t: Floats, half: int) -> Floats:
    """What each neighbour's value counts for in the slope of the parabola at a sample, shape (window, samples).

    Of the columns 1, x and x^2 of a least-squares fit, with x the time from the middle, the part r of x that the others
    do not tell gives the slope: r / (r . x).
    """
    count = len(t) - 2 * half
    x = np.array([t[k : count + k] - t[half : half + count] for k in range(2 * half + 1)])
    span = x[-1] - x[0]
    x /= span
    rest, squares = x - x.mean(axis=0), x**2 - (x**2).mean(axis=0)
    rest -= squares * ((rest * squares).sum(axis=0) / (squares**2).sum(axis=0))
    return np.asarray(rest / ((rest * x).sum(axis=0) * span))


def _check_gaps(t: Floats, window: int) -> None:
    """Refuse steps that are far longer than those around them; steps may change, and be lost now and then."""
    steps = np.diff(t)
    around = sliding_window_view(np.pad(steps, window, mode="reflect"), 2 * window + 1)
    usual = np.median(around, axis=1)
    long = np.flatnonzero(steps > PAUSE * usual)
    if len(long):
        first = int(long[0])
        raise InputError(
            f"The log has a gap: from t = {t[first]:g} s to {t[first + 1]:g} s, and steps of {usual[first]:g} s around "
            "it. Accelerations are not found across gaps: give them as columns a[joint], or a log of each part."
        )
