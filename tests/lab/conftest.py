"""Searches in tests keep their orderings to themselves."""

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv("FACTORGRAPH_DYN_ORDERINGS", str(tmp_path / "orderings"))
