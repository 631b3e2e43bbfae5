"""Rows become a table for people, or JSON or CSV for programs.

A table fits the terminal, and 80 columns where there is none: nothing is cut. What matters least is left out and named
below the table, as are notes; where all columns matter, those that do not fit go on in a table below.
"""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

import numpy as np
from rich import box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table
from rich.text import Text

from factorgraph_dyn.text import in_spreadsheet, printable

Format = Literal["table", "json", "csv"]
Rows = Sequence[Mapping[str, Any]]
NOTE = "note"  # the column whose words stand below the table
BETWEEN = 2  # blanks between columns
ENDLESS = 100_000


def print_rows(
    rows: Rows,
    format: Format = "table",
    title: str = "",
    *,
    wide: bool = False,
    spare: Sequence[str] = (),
) -> None:
    """Print rows that share their columns; a column missing in a row is left empty.

    Args:
        rows: Values by column.
        format: For people or for programs, which get all columns.
        title: Stands above the table.
        wide: Whether to print all columns side by side, however long the lines get.
        spare: Columns that may be left out where the table is too wide, the one that matters least first.
    """
    fullest_first = sorted(rows, key=len, reverse=True)  # its columns set the order
    columns = list(dict.fromkeys(column for row in fullest_first for column in row))
    if not rows and format != "json":
        if format == "table":  # a program sees by itself that a file is empty
            print(f"{title}: there are none." if title else "There is nothing to show.")
    elif format == "json":
        print(json.dumps([_plain(dict(row)) for row in rows], indent=2))
    elif format == "csv":
        writer = csv.writer(sys.stdout, lineterminator="\n")
        writer.writerows([_csv_cell(value) for value in line] for line in (columns, *_lines(rows, columns)))
    else:
        _print_tables(rows, columns, title, wide, spare)


def _print_tables(rows: Rows, columns: Sequence[str], title: str, wide: bool, spare: Sequence[str]) -> None:
    terminal = Console()
    room = ENDLESS if wide else terminal.width
    words = _notes(rows, columns[0]) if NOTE in columns else []
    columns = [columns[0], *(column for column in columns[1:] if column != NOTE and _is_told(rows, column))]
    shown = [row for row in rows if any(row.get(column) is not None for column in columns[1:])] or rows
    chosen, left_out = _choose(shown, columns, room, spare)
    if left_out:
        words = [*words, f"--wide shows also: {', '.join(left_out)}"]
    folded = terminal.is_terminal  # a pipe has no width: there a text is long where it does not fit
    width = room if folded else ENDLESS
    console = Console(markup=False, emoji=False, highlight=False, width=width, height=25)  # F[elbow] is no markup
    if title:
        console.print(Text(title, "bold"))
    for number, part in enumerate(_parts(shown, chosen, room)):
        table = _table(shown, part, _widths(shown, part, room, folded))
        console.print(*[""] * bool(number), table, sep="\n", crop=False)
    for number, line in enumerate(words):
        console.print(*[""] * (not number), Text(line), sep="\n")


def _table(rows: Rows, columns: Sequence[str], widths: Sequence[int]) -> Table:
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, padding=(0, BETWEEN - 1, 0, 0))
    for column, width in zip(columns, widths, strict=True):
        numeric = column != columns[0] and _is_numeric(rows, column)
        table.add_column(column, justify="right" if numeric else "left", overflow="fold", width=width)
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    return table


def _widths(rows: Rows, columns: Sequence[str], room: int, folded: bool = True) -> list[int]:
    """The width of each column: heads, and texts if folded, are broken where the table would be too wide."""
    natural = [_width(rows, column, whole=True) for column in columns]
    least = [
        _width(rows, column, whole=column == columns[0] or not (folded or _is_numeric(rows, column)))
        for column in columns
    ]
    surplus = sum(natural) + BETWEEN * (len(columns) - 1) - room
    for index in sorted(range(len(columns)), key=lambda k: least[k] - natural[k]):
        taken = min(max(surplus, 0), natural[index] - least[index])
        natural[index] -= taken
        surplus -= taken
    return natural


def _choose(rows: Rows, columns: Sequence[str], room: int, spare: Sequence[str]) -> tuple[list[str], list[str]]:
    """The columns that fit, and those left out; only spare ones are."""
    left_out: list[str] = []
    for column in spare:
        if _least(rows, [c for c in columns if c not in left_out]) <= room:
            break
        if column in columns:
            left_out.append(column)
    return [c for c in columns if c not in left_out], [c for c in columns if c in left_out]


def _parts(rows: Rows, columns: Sequence[str], room: int) -> Iterable[list[str]]:
    """The columns in parts that fit, each beginning with the first one."""
    first, *others = columns
    part = [first]
    for column in others:
        if len(part) > 1 and _least(rows, [*part, column]) > room:
            yield part
            part = [first]
        part.append(column)
    yield part


def _least(rows: Rows, columns: Sequence[str]) -> int:
    """The least width of a table: numbers and the rows' names stay whole, other texts may go on in the next line."""
    return sum(_widths(rows, columns, 0)) + BETWEEN * (len(columns) - 1)


def _width(rows: Rows, column: str, whole: bool) -> int:
    """The width of a column, with its texts whole or a word a line; numbers are always whole."""
    cells = [_cell(row.get(column)) for row in rows]
    heads = [column]
    if not whole:
        heads = column.split()
        if not _is_numeric(rows, column):
            cells = [word for cell in cells for word in cell.split()]
    return max(map(cell_len, (*heads, *cells)))


def _notes(rows: Rows, name: str) -> list[str]:
    """The notes of rows, each with the row's name."""
    return [f"{row[name]}: {row[NOTE]}" for row in rows if row.get(NOTE)]


def _is_told(rows: Rows, column: str) -> bool:
    """Whether any row has something in a column."""
    return any(_cell(row.get(column)) for row in rows)


def _is_numeric(rows: Rows, column: str) -> bool:
    return any(isinstance(row.get(column), (int, float, np.number)) for row in rows)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.0f}" if 1e4 <= np.abs(value) < 1e7 else f"{value:.4g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(_cell(item) for item in value)
    return printable(str(value))


def _lines(rows: Rows, columns: Sequence[str]) -> Iterable[list[Any]]:
    return ([_plain(row.get(column)) for column in columns] for row in rows)


def _csv_cell(value: Any) -> Any:
    """The same value; a text that a spreadsheet would compute is marked as text."""
    return in_spreadsheet(value) if isinstance(value, str) else value


def _plain(value: Any) -> Any:
    """The same value as JSON can hold it; numbers that are not finite become null."""
    if isinstance(value, Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return _plain(value.tolist())
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value
