"""Files are written whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from factorgraph_dyn import storage


def test_a_file_is_replaced_whole(tmp_path):
    path = tmp_path / "a.json"
    storage.write(path, b"old")
    storage.write(path, b"new")
    assert path.read_bytes() == b"new"
    assert os.listdir(tmp_path) == ["a.json"]


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    storage.write(path, b"old")

    def fail(*_):
        raise OSError("the disk is gone")

    monkeypatch.setattr(Path, "replace", fail)
    with pytest.raises(OSError, match="gone"):
        storage.write(path, b"new")
    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["a.json"]
