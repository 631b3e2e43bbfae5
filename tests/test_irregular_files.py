"""What is no regular file is refused at once: pipes would be waited for, devices may have no end."""

from __future__ import annotations

import os
import re
import signal
from pathlib import Path

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.commands.dynamics import _read_state
from factorgraph_dyn.commands.sensor_files import read_sensors
from factorgraph_dyn.compiler.kernel import cache
from factorgraph_dyn.motion.logs import read_log
from factorgraph_dyn.ordering import saved
from factorgraph_dyn.show.view.meshes import read_mesh
from tests.model.files import test_urdf

SECONDS = 20  # after which a test ends that waits for a pipe; they take milliseconds

pytestmark = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="the system has no named pipes")


def load_including(path):
    scene = path.with_name("scene.xml")
    scene.write_text(f'<mujoco><include file="{path.name}"/></mujoco>')
    return fgd.load(scene, folder="/")


def load_with_closures(path):
    model = path.with_name("chain.urdf")
    model.write_text(test_urdf.chain(["revolute"]))
    return fgd.load(model, closures=path)


READERS = {
    "model": fgd.load,
    "included file": load_including,
    "closures": load_with_closures,
    "actuation": lambda path: fgd.load_actuation(path, fgd.robots.rrr()),
    "ordering": saved.read,
    "state": lambda path: _read_state(path, "forward"),
    "sensors": lambda path: read_sensors(path, fgd.robots.rrr()),
    "log": lambda path: read_log(path.rename(path.with_suffix(".csv"))),
    "archive": lambda path: read_log(path.rename(path.with_suffix(".npz"))),
}


@pytest.fixture(autouse=True)
def alarm():
    """Ends a test that waits."""

    def ring(*_):
        pytest.fail("the reader waits")

    before = signal.signal(signal.SIGALRM, ring)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


def pipe(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to(os.devnull)


def folder(path):
    path.mkdir()


@pytest.mark.parametrize("make", [pipe, device, folder])
@pytest.mark.parametrize("reader", READERS)
def test_what_is_no_regular_file_is_refused(tmp_path, reader, make):
    path = tmp_path / "file"
    make(path)
    with pytest.raises(fgd.FactorGraphDynError, match=f"cannot be read: it is a {make.__name__}, and only regular"):
        READERS[reader](path)


@pytest.mark.parametrize("make", [pipe, device, folder])
def test_a_mesh_that_is_no_regular_file_is_no_mesh(tmp_path, make):
    path = tmp_path / "mesh.obj"
    make(path)
    assert read_mesh(path) is None


@pytest.mark.parametrize("make", [pipe, device, folder])
def test_a_cache_entry_that_is_no_regular_file_is_none(tmp_path, monkeypatch, make):
    monkeypatch.setenv(cache.ENVIRONMENT_VARIABLE, str(tmp_path))
    path = cache._path(tmp_path, "0" * 64)
    path.parent.mkdir()
    make(path)
    assert cache.read("0" * 64) is None


PACKAGE = Path(fgd.__file__).parent
# These read files of the package itself, its compiled peers and the system.
OWN = ("__init__", "cli", "show/web_page", "compiler/kernel/compile", "compare/benchmark", "compare/peers/casadi_code")
LINES = ("show/view/obj",)  # np.loadtxt of lines that have been read
READS = re.compile(
    r"\.read_(text|bytes)\(|(?<![.\w])(?<!def )open\(|\bpath\.open\((?!\"w)|np\.(loadtxt|genfromtxt|fromfile|memmap)\("
)


def test_files_of_users_are_opened_in_one_place():
    elsewhere = {path for path in PACKAGE.rglob("*.py") if READS.search(without_docstrings(path))}
    allowed = {PACKAGE / f"{name}.py" for name in (*OWN, *LINES, "storage")}
    assert elsewhere == allowed, "open them by storage.opened or storage.read"


def without_docstrings(path):
    return re.sub(r'""".*?"""', "", path.read_text(), flags=re.DOTALL)
