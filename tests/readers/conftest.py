"""Every test runs in a folder of its own: MuJoCo leaves a log where it runs."""

import pytest


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
