"""Every model that installed packages ship loads, or is refused for a known reason, and agrees."""

import argparse
import os
from pathlib import Path

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from factorgraph_dyn.compare.peers.engines import engine_of, handed_engine
from scripts import model_rows
from scripts.validate_models import model_files, package_folders

TOLERANCE = 1e-8  # relative; rounding of ill-conditioned mass matrices is allowed on top
STATES = 1  # scripts/validate_models.py does twenty
WANTED = ("example-robot-data", "gymnasium", "mujoco")
FOLDERS = [folder for folder in package_folders() if folder.name in WANTED]
FILES = [(folder, path) for folder in FOLDERS for path in model_files(folder)]
REFUSED = {
    "ur3.urdf": "no <link>",  # an empty file
    "model.xml": "comes from a mesh",  # MuJoCo's test model
}


def test_there_are_models():
    if "example-robot-data" not in {folder.name for folder in FOLDERS}:
        pytest.skip("example-robot-data is not installed")
    assert len([path for _, path in FILES if path.suffix == ".urdf"]) >= 60


@pytest.mark.parametrize(("folder", "path"), FILES, ids=lambda item: Path(item).name)
def test_model_loads_and_agrees(folder, path):
    try:
        mechanism = fgd.load(path, folder=folder)
    except fgd.ModelError as error:
        assert REFUSED[path.name] in str(error)  # noqa: PT017
        return
    if mechanism.nv:  # no engine here reads SDF
        engine = handed_engine(mechanism) if path.suffix == ".sdf" else engine_of(mechanism, path)
        assert compare_with_engine(mechanism, engine, states=STATES).within(TOLERANCE)
        assert mechanism.closure_error(mechanism.neutral()) < 1e-8


@pytest.fixture
def pendulum(tmp_path):
    path = tmp_path / "pendulum.xml"
    path.write_text(
        '<mujoco><worldbody><body><joint axis="0 1 0"/><geom size=".1" pos="0 0 -1"/></body></worldbody></mujoco>'
    )
    return path


OPTIONS = argparse.Namespace(seconds=60, max_nv=9, states=2, kernels=True, orderings=(), floating_base=False)


def test_row_has_graph_and_kernels(pendulum):
    known = {}
    row = model_rows.row_within(pendulum, pendulum.parent, OPTIONS, known)
    assert row["status"] == "ok", row
    assert row["kernel forward"] < 1e-14
    assert row["kernel inverse"] < 1e-14
    assert row["compared"] == 6
    again = model_rows.row_within(pendulum, pendulum.parent, OPTIONS, known)
    assert (again["status"], again["reason"]) == ("copy", "pendulum.xml")


def test_row_of_a_file_without_end_and_of_one_that_ends_the_process(pendulum, monkeypatch):
    def endless(*_):
        while True:
            pass

    brief = argparse.Namespace(**{**vars(OPTIONS), "seconds": 1})
    for ends, status in ((endless, "OUT OF TIME"), (lambda *_: os._exit(3), "CRASHED")):
        monkeypatch.setattr(model_rows, "_compare", ends)
        assert model_rows.row_within(pendulum, pendulum.parent, brief, {})["status"] == status
