"""Searches in tests keep their orderings to themselves, and are short."""

import pytest

from factorgraph_dyn.lab import search


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_ORDERINGS", str(tmp_path / "orderings"))


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(search, "ROUND", 60)
