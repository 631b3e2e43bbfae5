"""How results show themselves: arrays in a few words, tables in notebooks.

Names come from model files and are escaped: a page shows them and nothing else.
"""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from factorgraph_dyn.spatial import Floats

MOST_SHOWN = 8  # entries of a vector that a line shows


class Rows(list[dict[str, Any]]):
    """Rows of a table, which notebooks show as one."""

    def _repr_html_(self) -> str:
        return html_table(self)


def short(array: Floats) -> str:
    """A vector in a line, or the shape of what is larger."""
    if array.ndim == 1 and array.size <= MOST_SHOWN:
        return np.array2string(array, precision=4, suppress_small=False, max_line_width=200)
    return f"array {array.shape}".replace(",)", ")")


def html_table(rows: Sequence[Mapping[str, Any]], title: str = "", remark: str = "") -> str:
    """Rows that share their columns as an HTML table, with what stands above and below it."""
    columns = list(dict.fromkeys(column for row in rows for column in row))
    head = "".join(f"<th>{html.escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(_html_cell(row.get(column)) for column in columns) + "</tr>" for row in rows)
    caption = f"<caption>{html.escape(title)}</caption>" if title else ""
    below = f"<p>{html.escape(remark)}</p>" if remark else ""
    return f"<table>{caption}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{below}"


def _html_cell(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        value = "yes" if value else "no"
    if isinstance(value, (int, float, np.number)):
        text = f"{value:.4g}" if isinstance(value, (float, np.floating)) else str(value)
        return f'<td style="text-align: right">{text}</td>'
    if isinstance(value, np.ndarray):
        value = " ".join(f"{entry:.4g}" for entry in value.ravel())
    return f'<td style="text-align: left">{html.escape("" if value is None else str(value))}</td>'
