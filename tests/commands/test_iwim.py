"""``fgdyn iwim`` and the papers' tables."""

from __future__ import annotations

import csv
import io
import json

import numpy as np
import pytest
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn.cli import app
from factorgraph_dyn.compare import papers
from factorgraph_dyn.show.plots.chains import plot_chains


def run(*words: str):
    return CliRunner().invoke(app, list(words), catch_exceptions=True)


def test_json_holds_the_matrix():
    result = run("iwim", "rrr", "--q", "0.1,0.2,0.3", "--contacts", "link3@1:0:0/world", "--format", "json")
    rows = json.loads(result.stdout)
    contact = fgd.Contact("link3", (1, 0, 0), axes="world")
    expected = fgd.iwim(fgd.robots.rrr(), [0.1, 0.2, 0.3], contacts=[contact])
    assert [row["acceleration"] for row in rows] == ["joint1", "joint2", "joint3"]
    assert np.allclose([list(row.values())[1:] for row in rows], expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("method", ["columns", "iim", "eufm", "carpentier"])
def test_csv_of_a_floating_robot_with_all_frames(method):
    result = run("iwim", "humanoid", "--contacts", "frames", "--method", method, "--format", "csv")
    rows = list(csv.DictReader(io.StringIO(result.stdout)))
    assert len(rows) == 24
    assert len(rows[0]) == 1 + 42
    assert rows[0]["acceleration"] == "root.0"


def test_contacts_on_one_link_have_columns_of_their_own():
    words = ["--q", "0.1,0.2,0.3", "--actuated", "", "--contacts", "link3@0:0:0,link3@1:0:0"]
    rows = list(csv.reader(io.StringIO(run("iwim", "rrr", *words, "--format", "csv").stdout)))
    heel = ["link3.fx", "link3.fy", "link3.fz"]
    assert rows[0] == ["acceleration", *heel, *(f"{name} #2" for name in heel)]
    contacts = [fgd.Contact("link3"), fgd.Contact("link3", (1, 0, 0))]
    expected = fgd.iwim(fgd.robots.rrr(), [0.1, 0.2, 0.3], actuated=[], contacts=contacts)
    assert np.allclose([[float(x) for x in row[1:]] for row in rows[1:]], expected, rtol=1e-5, atol=1e-5)


def test_the_table_is_printed():
    result = run("iwim", "five_bar")
    assert result.exit_code == 0
    assert "M^-1 B of five_bar" in result.stdout


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--contacts", "hand"], "'hand'"),
        (["--contacts", "link3/up"], "'up'.*/wrench"),
        (["--contacts", "link3@1:x:0"], "numbers separated by ':'"),
        (["--actuated", ""], "No inputs"),
        (["--q", "1,2,z"], "numbers separated by ','"),
        (["--method", "magic"], "'magic'"),
    ],
)
def test_bad_words_are_named(words, message):
    result = run("iwim", "rrr", *words)
    assert isinstance(result.exception, fgd.InputError)
    with pytest.raises(fgd.InputError, match=message):
        raise result.exception


def test_the_tables_of_the_papers_have_all_rows(monkeypatch, tmp_path):
    monkeypatch.setattr(papers, "CHAIN_LINKS", 3)
    monkeypatch.setattr(papers, "SWEEP", (1, 2))
    monkeypatch.setattr(papers, "OPERATOR_SIZES", (2, 4))
    methods = papers.input_matrix_tables(rounds=1)
    assert [row["method"] for row in methods] == 3 * ["columns", "iim", "eufm", "O(n)"]
    assert all(row["ours (ms)"] > 0 for row in methods)
    orderings = papers.ordering_tables(rounds=1)
    assert [row["ordering"] for row in orderings] == ["rnea", "colamd", "metis", "crba", "aba", "colamd", "metis"]
    assert len(papers.operator_growth((2, 4), rounds=1)) == 2
    sweep = papers.chain_sweep((1, 2), rounds=1)
    pytest.importorskip("matplotlib")
    plot_chains(sweep, tmp_path / "sweep.svg")
    assert (tmp_path / "sweep.svg").read_text().startswith("<?xml")
    with pytest.raises(fgd.InputError, match=r"ends in .*written"):
        plot_chains(sweep, tmp_path / "sweep.unknown")
