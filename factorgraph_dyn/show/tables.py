"""Rows become a table for people, or JSON or CSV for programs."""

from __future__ import annotations

import csv
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import numpy as np
from rich.console import Console
from rich.table import Table

Format = Literal["table", "json", "csv"]


def print_rows(rows: Sequence[Mapping[str, Any]], format: Format = "table", title: str = "") -> None:
    """Print rows that share their columns; a column missing in a row is left empty."""
    fullest_first = sorted(rows, key=len, reverse=True)  # its columns set the order
    columns = list(dict.fromkeys(column for row in fullest_first for column in row))
    if format == "json":
        print(json.dumps([_plain(dict(row)) for row in rows], indent=2))
    elif format == "csv":
        writer = csv.DictWriter(sys.stdout, columns, lineterminator="\n")
        writer.writeheader()
        writer.writerows(_plain(dict(row)) for row in rows)
    else:
        _print_table(rows, columns, title)


def _print_table(rows: Sequence[Mapping[str, Any]], columns: Sequence[str], title: str) -> None:
    console = Console(markup=False, emoji=False)  # names such as F[elbow] are no markup
    if not console.is_terminal:  # a pipe has no width: let long rows be long
        console = Console(markup=False, emoji=False, width=200)
    table = Table(title=title or None, title_justify="left")
    for column in columns:
        numeric = any(isinstance(row.get(column), (int, float)) for row in rows)
        table.add_column(column, justify="right" if numeric else "left")
    for row in rows:
        table.add_row(*(_cell(row.get(column)) for column in columns))
    console.print(table)


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (float, np.floating)):
        return f"{value:.4g}"
    if isinstance(value, (list, tuple, np.ndarray)):
        return " ".join(_cell(item) for item in value)
    return str(value)


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
