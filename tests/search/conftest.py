"""Searches in tests are short."""

import pytest

from factorgraph_dyn.search import search


@pytest.fixture(autouse=True)
def short_rounds(monkeypatch):
    monkeypatch.setattr(search, "ROUND", 60)
