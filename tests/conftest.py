"""Every test runs in folders of its own, and NumPy on one thread."""

import os

import pytest

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # before NumPy is imported: small matrices are solved faster by one thread


@pytest.fixture(autouse=True)
def own_folders(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # MuJoCo leaves a log where it runs
    monkeypatch.setenv("FACTORGRAPH_DYN_ORDERINGS", str(tmp_path / "orderings"))
