"""Every model that installed packages ship loads, or is refused for a known reason, and agrees."""

from pathlib import Path

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.lab.engines import HandedEngine, compare_with_engine, engine_of
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
        engine = HandedEngine.build(mechanism) if path.suffix == ".sdf" else engine_of(mechanism, path)
        assert compare_with_engine(mechanism, engine, states=STATES).within(TOLERANCE)
        assert mechanism.closure_error(mechanism.neutral()) < 1e-8
