"""Tables fit 80 columns and cut nothing; notes and what was left out stand below."""

import io
import re
import sys

import pytest

from factorgraph_dyn.commands.compiler import SPARE as BENCH_SPARE
from factorgraph_dyn.commands.dynamics import SPARE as COMPARE_SPARE
from factorgraph_dyn.show.tables import print_rows

COMPARED = [
    {"ordering": "rnea", "note": "The rnea ordering needs every joint acceleration; unknown ones: 6."},
    *(
        {"ordering": name, "nonzeros": 22711, "fill": 1155, "clique": 53, "depth": 11, "time_us": 8921.34,
         "error": 1.4091e-16, "operations": 24699, "pivot": 0.69641, "kernel_error": 7.3791e-16, "kernel_ns": 1468.1,
         "note": ""}
        for name in ("aba", "min_degree")
    ),
]  # fmt: skip
BENCHED = [
    {"robot": "puma560", "nv": 600007, "problem": problem, "ordering": "min_degree", "operations": 14720,
     "ns a state": 1252.3, "ns one call": 2290.1, "Pinocchio ns a state": 16970.4, "times faster": 128.21,
     "Pinocchio ns one call": 19020.3, "times faster (one call)": 7.0321, "MuJoCo ns one call": 12537.3}
    for problem in ("inverse", "forward")
]  # fmt: skip


class Terminal(io.StringIO):
    def isatty(self):
        return True


def printed(monkeypatch, rows, *, terminal=True, width=80, **options):
    stream = Terminal() if terminal else io.StringIO()
    monkeypatch.setattr(sys, "stdout", stream)
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", "dumb")
    print_rows(rows, "table", "title", **options)
    return re.sub(r"\x1b\[[0-9;]*m", "", stream.getvalue())


@pytest.mark.parametrize("terminal", [True, False])
@pytest.mark.parametrize(("rows", "spare"), [(COMPARED, COMPARE_SPARE), (BENCHED, BENCH_SPARE)])
def test_tables_fit_80_columns_and_cut_nothing(monkeypatch, rows, spare, terminal):
    text = printed(monkeypatch, rows, spare=spare, terminal=terminal)
    assert max(map(len, text.splitlines())) <= 80
    assert "…" not in text
    assert "min_degree" in text
    left_out = text.partition("--wide shows also: ")[2].strip().split(", ")
    for column, value in rows[-1].items():
        number = str(value)[:4]
        assert (number in text) != (column in left_out), column


def test_notes_stand_below_and_rows_without_figures_are_left_out(monkeypatch):
    lines = printed(monkeypatch, COMPARED, spare=COMPARE_SPARE).splitlines()
    assert [line.split()[0] for line in lines[3:5]] == ["aba", "min_degree"]
    assert lines[6].startswith("rnea: The rnea ordering needs")


def test_wide_shows_everything_side_by_side(monkeypatch):
    text = printed(monkeypatch, COMPARED, spare=COMPARE_SPARE, wide=True)
    head = next(line for line in text.splitlines() if line.startswith("ordering"))
    assert head.split() == [column for column in COMPARED[-1] if column != "note"]
    assert "--wide" not in text


def test_what_must_not_be_left_out_goes_on_below(monkeypatch):
    rows = [{"joint": f"joint{k}"} | {f"a_long_name_{j}": k + j / 7 for j in range(9)} for k in range(2)]
    text = printed(monkeypatch, rows)
    assert max(map(len, text.splitlines())) <= 80
    assert all(f"a_long_name_{j}" in text for j in range(9))
    assert len([line for line in text.splitlines() if line.startswith("joint1")]) > 1


def test_texts_go_on_in_the_next_line_of_a_terminal(monkeypatch):
    rows = [{"robot": "arm", "links": 3, "about": "many words " * 12, "empty": ""}]
    text = printed(monkeypatch, rows)
    assert max(map(len, text.splitlines())) <= 80
    assert text.count("words") == 12
    assert "empty" not in text
    assert any("many words " * 12 in line + " " for line in printed(monkeypatch, rows, terminal=False).splitlines())


@pytest.mark.parametrize(("format", "said"), [("table", "Files: there are none.\n"), ("json", "[]\n"), ("csv", "")])
def test_no_rows_are_said_to_be_none(capsys, format, said):
    print_rows([], format, "Files")
    assert capsys.readouterr().out == said
