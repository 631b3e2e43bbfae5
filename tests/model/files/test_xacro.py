"""Xacro files are expanded where the extra is installed; else the message says how."""

import sys

import pytest

import factorgraph_dyn as fgd

MACRO = """<robot xmlns:xacro="http://www.ros.org/wiki/xacro">
<xacro:macro name="pendulum" params="n parent mass"><link name="rod${n}"><inertial><origin xyz="0 0 -1"/>
<mass value="${2 * mass}"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="hinge${n}" type="continuous"><parent link="${parent}"/><child link="rod${n}"/>
<origin xyz="0 0 ${-n}"/></joint></xacro:macro></robot>"""
ROBOT = """<robot name="twins" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="{}"/>
<xacro:arg name="mass" default="1.5"/><link name="base"/><xacro:pendulum n="1" parent="base" mass="$(arg mass)"/>
<xacro:pendulum n="2" parent="rod1" mass="1"/></robot>"""


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
    mechanism = fgd.load(path)
    assert (mechanism.name, mechanism.joint_names) == ("twins", ("hinge1", "hinge2"))
    assert [link.mass for link in mechanism.links] == [0.0, 3.0, 2.0]
    assert fgd.load(path, xacro_arguments={"mass": 4}).link_by_name["rod1"].mass == 8.0


def test_packages_beside_the_file_are_sought_in_the_folder_given(package, tmp_path):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "twins.xacro"
    path.write_text(ROBOT.format("$(find twins_description)/urdf/macro.xacro"))
    with pytest.raises(fgd.ModelError, match=r"twins_description.*folder="):
        fgd.load(path)
    assert fgd.load(path, folder=tmp_path).nv == 2


def test_without_the_extra_the_message_says_how(package, monkeypatch):
    path = package / "urdf" / "twins.xacro"
    path.write_text(ROBOT.format("macro.xacro"))
    monkeypatch.setitem(sys.modules, "xacrodoc", None)
    monkeypatch.setitem(sys.modules, "xacrodoc.packages", None)
    with pytest.raises(fgd.ModelError, match=r"pip install 'factorgraph_dyn\[xacro\]'"):
        fgd.load(path)
    with pytest.raises(fgd.ModelError, match=r"pip install 'factorgraph_dyn\[xacro\]'"):
        fgd.loads(path.read_text())


def test_failures_of_a_xacro_file_are_model_errors(tmp_path):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "broken.xacro"
    path.write_text(ROBOT.format("nowhere.xacro"))
    with pytest.raises(fgd.ModelError, match=r"broken.xacro.*cannot be expanded.*nowhere"):
        fgd.load(path)
