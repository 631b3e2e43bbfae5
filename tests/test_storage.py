"""Files are written whole or not at all."""

from __future__ import annotations

import os
import stat
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


def test_no_more_is_read_than_a_bound(tmp_path):
    path = tmp_path / "a.json"
    path.write_bytes(b"12345")
    assert storage.read(path, 5) == b"12345"
    with pytest.raises(OSError, match="at most 4 bytes are read"):
        storage.read(path, 4)


def test_a_file_that_grows_while_it_is_read_is_read_to_the_bound(tmp_path, monkeypatch):
    path = tmp_path / "a.json"
    path.write_bytes(b"1234567")
    true = os.fstat

    def earlier(handle):
        """What the system said when the file was shorter."""
        facts = list(true(handle))
        facts[stat.ST_SIZE] = 2
        return os.stat_result(facts)

    monkeypatch.setattr(os, "fstat", earlier)
    assert storage.read(path, 7) == b"1234567"
    with pytest.raises(OSError, match="at most 6 bytes are read"):
        storage.read(path, 6)


def test_a_name_that_no_file_can_have_is_an_error_of_files():
    for name in ("a\0b", "\ud800"):
        with pytest.raises(OSError, match=r"null|surrogates"):
            storage.read(name)
