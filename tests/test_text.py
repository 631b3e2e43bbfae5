"""Texts of others: harmless on terminals, in comments of code and in spreadsheets; numbers by one strict rule."""

import csv
import io
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

import factorgraph_dyn as fgd
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.text import acting_character, in_comment, in_spreadsheet, parse_number, printable

texts = st.text(st.characters(exclude_categories=())) | st.text(alphabet="*/\\?\n\r -a\u202e\x1b\ud800=+@")


@given(texts)
def test_a_comment_holds_plain_characters_only(text):
    comment = in_comment(text)
    assert comment.isascii()
    assert comment.isprintable() or not comment
    assert not set(comment) & set('*\\?"')
    assert len(comment) == len(text)
    assert in_comment(comment) == comment


@given(texts)
def test_what_is_printed_can_be_written_and_does_not_act(text):
    shown = printable(text)
    assert shown.encode() or not shown
    assert acting_character(shown) is None
    assert not {unicodedata.category(letter) for letter in shown} & {"Cc", "Cs", "Zl", "Zp"}
    assert not {unicodedata.bidirectional(letter) for letter in shown} & {"RLO", "LRO", "RLI", "LRI", "FSI", "RLE"}
    assert (shown == text) == (acting_character(text) is None)


def test_words_of_any_script_are_printed_as_they_are():
    for text in ("名前_λ_😀", "پا_راست", "Gelenk größer 3", "a\u00a0b", "👩\u200d🔧"):
        assert printable(text) == text


@pytest.mark.parametrize("text", ["1", "+1", "-1", "1.", ".5", "1e-3", "1E+05", " 2 ", "\t3\n", "inf", "-Infinity"])
def test_numbers_are_read_as_c_reads_them(text):
    assert parse_number(text) == float(text)


@pytest.mark.parametrize("text", ["", "1_000", "１", "1e1_0", "٣", "0x10", "1,5", "1 2", "1\u00a0", "two", "1f", "--1"])
def test_other_words_are_no_numbers(text):
    with pytest.raises(ValueError, match=r"not a number|could not convert"):
        parse_number(text)


def test_errors_escape_and_cut_what_files_say():
    error = fgd.ModelError("joint '\x1b[31m\u202e\ud800'\nof " + "x" * 100_000)
    assert acting_character(str(error)) is None
    assert str(error).startswith(r"joint '\x1b[31m\u202e\ud800'\nof xxx")
    assert len(str(error)) < 11_000


def test_no_cell_of_a_csv_table_is_a_formula(capsys):
    names = ["=HYPERLINK(1)", "+1", "-1", "@SUM(A1)", "  =1", "\t=1", "＝1", "plain", "'", "a=b", "\r1"]
    print_rows([{"=name": name, "number": -1.5} for name in names], "csv")
    rows = list(csv.reader(io.StringIO(capsys.readouterr().out, newline="")))
    assert rows[0] == ["'=name", "number"]
    assert [row[1] for row in rows[1:]] == ["-1.5"] * len(names)
    assert [row[0] for row in rows[1:]] == [*(f"'{printable(name)}" for name in names[:7]), *names[7:-1], r"\r1"]
    assert in_spreadsheet("F[elbow]") == "F[elbow]"


def test_tables_escape_what_acts(capsys):
    print_rows([{"name": "a\x1b[2J", "value": 1.0}])
    assert "\x1b[2J" not in (out := capsys.readouterr().out)
    assert r"a\x1b[2J" in out
