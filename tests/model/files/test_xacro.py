"""Xacro files are programs: expanded where the caller asks, within bounds; else the message says how."""

import sys

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files import expand_xacro, xml_tree

MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="pendulum" params="n parent mass"><link name="rod${n}"><inertial><origin xyz="0 0 -1"/>
<mass value="${2 * mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge${n}" type="continuous"><parent link="${parent}"/><child link="rod${n}"/>
<origin xyz="0 0 ${-n}"/></joint></xacro:macro></robot>"""
ROBOT = """<robot name="twins" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="{}"/>
<xacro:arg name="mass" default="1.5"/><link name="base"/><xacro:pendulum n="1" parent="base" mass="$(arg mass)"/>
<xacro:pendulum n="2" parent="rod1" mass="1"/></robot>"""
ONE = """<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:property name="x" value="{}"/><link name="${{x}}"/></robot>"""


@pytest.fixture
def package(tmp_path):
    """A package of two files, one of which includes the other."""
    folder = tmp_path / "twins_description"
    (folder / "urdf").mkdir(parents=True)
    (folder / "package.xml").write_text("<package><name>twins_description</name></package>")
    (folder / "urdf" / "macro.xacro").write_text(MACRO)
    return folder


@pytest.mark.parametrize("place", ["macro.xacro", "$(find twins_description)/urdf/macro.xacro"])
def test_xacro_files_are_expanded(package, place):
    pytest.importorskip("xacrodoc")
    path = package / "urdf" / "twins.urdf.xacro"
    path.write_text(ROBOT.format(place))
    mechanism = fgd.load(path, xacro=True)
    assert (mechanism.name, mechanism.joint_names) == ("twins", ("hinge1", "hinge2"))
    assert [link.mass for link in mechanism.links] == [0.0, 3.0, 2.0]
    assert fgd.load(path, xacro_arguments={"mass": 4}).link_by_name["rod1"].mass == 8.0


def test_packages_beside_the_file_are_sought_in_the_folder_given(package, tmp_path):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "twins.xacro"
    path.write_text(ROBOT.format("$(find twins_description)/urdf/macro.xacro"))
    with pytest.raises(fgd.ModelError, match=r"twins_description.*folder="):
        fgd.load(path, xacro=True)
    assert fgd.load(path, xacro=True, folder=tmp_path).nv == 2


def test_without_the_extra_the_message_says_how(package, monkeypatch):
    path = package / "urdf" / "twins.xacro"
    path.write_text(ROBOT.format("macro.xacro"))
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    monkeypatch.setitem(sys.modules, "xacrodoc.packages", None)
    with pytest.raises(fgd.ModelError, match=r"pip install 'factorgraph_dyn\[xacro\]'"):
        fgd.load(path, xacro=True)


def test_failures_of_a_xacro_file_are_model_errors(tmp_path):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "broken.xacro"
    path.write_text(ROBOT.format("nowhere.xacro"))
    with pytest.raises(fgd.ModelError, match=r"broken.xacro.*cannot be expanded.*nowhere"):
        fgd.load(path, xacro=True)


@pytest.mark.parametrize("ending", ["urdf", "xacro", "urdf.xacro", "xml"])
def test_nothing_is_expanded_unless_the_caller_asks(tmp_path, monkeypatch, ending):
    """Whatever the file's ending: the message has file, line and what to do."""
    path = tmp_path / f"robot.{ending}"
    path.write_text(ONE.format("made"))
    monkeypatch.setattr(expand_xacro.subprocess, "Popen", lambda *_, **__: pytest.fail("it was run"))
    asks = r":2: <xacro:property name=\"x\">: .*fgd.load\(path, xacro=True\).*xacro_arguments=.*--xacro"
    with pytest.raises(fgd.ModelError, match=f"{ending}{asks}"):
        fgd.load(path)
    with pytest.raises(fgd.ModelError, match=f"<text>{asks}"):
        fgd.loads(path.read_text())


@pytest.mark.parametrize("asked", [{"xacro": True}, {"xacro_arguments": {}}, {"xacro": True, "xacro_arguments": {}}])
def test_the_caller_asks_by_a_word_or_by_arguments(tmp_path, asked):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "robot.urdf"
    path.write_text(ONE.format("made"))
    assert fgd.load(path, **asked).base == "made"
    path.write_text("<robot name='r'><link name='plain'/></robot>")
    assert fgd.load(path, **asked).base == "plain"
    with pytest.raises(fgd.InputError, match="xacro_arguments is 3; it must be a mapping"):
        fgd.load(path, xacro_arguments=3)


def test_an_expansion_without_end_is_ended(tmp_path, monkeypatch):
    pytest.importorskip("xacrodoc")
    monkeypatch.setattr(expand_xacro, "MOST_SECONDS", 1)
    path = tmp_path / "robot.xacro"
    path.write_text(ONE.format("${9**9**9**9}"))
    with pytest.raises(fgd.ModelError, match=r"robot.xacro.*cannot be expanded: it is not done after 1 s"):
        fgd.load(path, xacro=True)


@pytest.mark.skipif(sys.platform != "linux", reason="not every system bounds the memory of a process")
def test_the_memory_of_an_expansion_is_bounded(tmp_path, monkeypatch):
    pytest.importorskip("xacrodoc")
    monkeypatch.setattr(expand_xacro, "MOST_MEMORY", 2**28)
    path = tmp_path / "robot.xacro"
    path.write_text(ONE.format("${[0] * 10**8}"))
    with pytest.raises(fgd.ModelError, match="cannot be expanded: MemoryError"):
        fgd.load(path, xacro=True)


def test_the_size_of_what_a_file_becomes_is_bounded(tmp_path, monkeypatch):
    pytest.importorskip("xacrodoc")
    monkeypatch.setattr(xml_tree, "MAX_BYTES", 1000)
    path = tmp_path / "robot.xacro"
    path.write_text(ONE.format("${'a' * 1000}"))
    with pytest.raises(fgd.ModelError, match=r"becomes a text of \d+ bytes, and at most 1000 are read"):
        fgd.load(path, xacro=True)


def test_an_expansion_that_ends_its_process_is_a_model_error(tmp_path, monkeypatch):
    process = tmp_path / "process.py"
    path = tmp_path / "robot.xacro"
    path.write_text(ONE.format("1"))
    monkeypatch.setattr(expand_xacro, "_PROCESS", process)
    for line, words in (
        ("os._exit(7)", "ended with code 7"),
        ("os.abort()", "ended by signal 6"),
        ("print('<html/>')", "root element is none that is known"),
    ):
        process.write_text(f"import os\n{line}\n")
        with pytest.raises(fgd.ModelError, match=words):
            fgd.load(path, xacro=True)
