"""Files nobody vouches for: bounded, located errors and nothing else, whatever the bytes are."""

import inspect
import os
import sys
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files import xml_tree
from factorgraph_dyn.model.files.closures import parse_closures
from tests.model import test_edit
from tests.model.files import test_mjcf, test_mjcf_unmodelled, test_sdf, test_urdf
from tests.model.files.mutants import load_mutants

MUTANTS = int(os.environ.get("FGD_MUTANTS", "400"))
SECONDS = 1.0  # what a damaged file of this size may take, many times what it does

LAUGHS = "<!DOCTYPE r [<!ENTITY a 'ha'><!ENTITY b '&a;&a;'>]><robot name='&b;'><link name='a'/></robot>"
OUTSIDE = "<!DOCTYPE r SYSTEM 'file:///etc/passwd'><robot><link name='a'/></robot>"

BAD = {
    "declares a document type": LAUGHS,
    "document type or entities": OUTSIDE,
    "nested deeper than": "<mujoco><worldbody>" + "<body>" * 5000,
    "not well-formed": "<robot><link name='a'></robot>",
    "no element found": "",
    "undefined entity": "<robot name='r'><link name='&x;'/></robot>",
    "none that is known": "<html/>",
    "that other MJCF files include": "<mujocoinclude/>",
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_xml_is_refused_with_file_and_line(reason):
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.loads(BAD[reason], file="bad.xml")
    assert str(caught.value).startswith("bad.xml:1:")


def test_size_and_number_of_elements_are_bounded(tmp_path, monkeypatch):
    path = tmp_path / "large.urdf"
    path.write_text("<robot name='r'>" + "<link name='a'/>" * 100 + "</robot>")
    monkeypatch.setattr(xml_tree, "MAX_ELEMENTS", 50)
    with pytest.raises(fgd.ModelError, match="more than 50 elements"):
        fgd.load(path)
    monkeypatch.setattr(xml_tree, "MAX_BYTES", 50)
    with pytest.raises(fgd.ModelError, match="at most 50 bytes are read"):
        fgd.load(path)


def test_files_that_cannot_be_read(tmp_path):
    for path in (tmp_path / "gone.urdf", tmp_path):
        with pytest.raises(fgd.ModelError, match="cannot be read"):
            fgd.load(path)


def test_a_text_can_include_nothing():
    with pytest.raises(fgd.ModelError, match="only files that are loaded"):
        fgd.loads("<mujoco><include file='/etc/passwd'/></mujoco>")


def test_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.xml").write_text("<mujocoinclude/>")
    (tmp_path / "model").mkdir()
    (tmp_path / "model/in.xml").symlink_to(tmp_path / "secret.xml")
    (tmp_path / "model/m.xml").write_text("<mujoco><include file='in.xml'/></mujoco>")
    with pytest.raises(fgd.ModelError, match="outside the folder"):
        fgd.load(tmp_path / "model/m.xml")


def test_a_folders_model_that_is_a_link_out_of_the_folder_is_not_followed(tmp_path):
    (tmp_path / "secret.sdf").write_text("<sdf version='1.7'><model name='m'><link name='l'/></model></sdf>")
    (tmp_path / "world" / "part").mkdir(parents=True)
    (tmp_path / "world/part/model.sdf").symlink_to(tmp_path / "secret.sdf")
    world = "<sdf version='1.7'><world name='w'><include><uri>model://part</uri></include></world></sdf>"
    (tmp_path / "world/w.sdf").write_text(world)
    with pytest.raises(fgd.ModelError, match="outside the folder"):
        fgd.load(tmp_path / "world/w.sdf")
    assert len(fgd.load(tmp_path / "world/w.sdf", folder=tmp_path).links) == 2


def test_nesting_that_the_stack_has_no_room_for_is_refused():
    """A caller may itself be deep in the stack."""
    text = "<mujoco><worldbody>" + "<body>" * 190 + "</body>" * 190 + "</worldbody></mujoco>"

    def called_deeply(times):
        return called_deeply(times - 1) if times else fgd.loads(text)

    assert len(fgd.loads(text).links) == 191
    with pytest.raises(fgd.ModelError, match="nested too deeply"):
        called_deeply(sys.getrecursionlimit() - len(inspect.stack(0)) - 200)


def test_the_number_of_included_files_is_bounded(tmp_path):
    """Each file includes the next one twice: 2^30 in all."""
    for i in range(30):
        twice = "".join(f"<include><uri>f{i + 1}.sdf</uri><name>n{k}</name></include>" for k in (0, 1))
        (tmp_path / f"f{i}.sdf").write_text(f"<sdf version='1.7'><model name='m'>{twice}</model></sdf>")
    (tmp_path / "f30.sdf").write_text("<sdf version='1.7'><model name='m'><link name='l'/></model></sdf>")
    with pytest.raises(fgd.ModelError, match="more than 200 files"):
        fgd.load(tmp_path / "f0.sdf")


def sample_files(folder: Path) -> list[Path]:
    """Files of every format that use most features."""
    fgd.loads(test_mjcf.LOOPY).save(folder / "loopy.json")
    texts = {
        "rich.xml": test_mjcf.RICH,
        "loopy.xml": test_mjcf.LOOPY,
        "chain.urdf": test_urdf.chain(["revolute", "planar", "floating", "prismatic", "continuous"]),
        "bar.urdf": test_edit.FIVE_BAR.format(test_edit.SIDE.format("l", "0", "0", "0")),
        "nested.sdf": test_sdf.model(
            test_sdf.link("a"),
            "<model name='n'>" + test_sdf.link("b", "1 0 0 0 0 0") + "</model>",
            "<frame name='f' attached_to='n::b'><pose>1 2 3 0 0 0</pose></frame>",
            test_sdf.joint("j", "universal", "a", "f", "<axis/><axis2><xyz expressed_in='f'>1 0 0</xyz></axis2>"),
            test_sdf.link("c", "0 0 0 0 0 0", "f"),
            test_sdf.joint("k", "screw", "c", "a", "<thread_pitch>2</thread_pitch><axis/>"),
            test_sdf.joint("l", "ball", "c", "n::b"),
        ),
        "geared.urdf": test_urdf.with_rotor(
            "l0", test_urdf.COUPLING.format("l1", "rotor") + test_urdf.GEARED.format(5)
        ),
        "driven.xml": test_mjcf_unmodelled.robot(
            "<compiler settotalmass='9' inertiafromgeom='true'/><option density='1'/>",
            "<tendon><fixed name='x' damping='0 1'><joint joint='j' coef='2'/></fixed></tendon><actuator>"
            "<dcmotor joint='j' damping='1' motorconst='.1' resistance='2'/><muscle tendon='x'/><motor site='t'/>"
            "</actuator>"
            "<equality><weld body1='b' torquescale='0' anchor='1 2 3' relpose='0 1 0 1 0 0 0'/></equality>",
        ),
        "world.sdf": test_sdf.world(
            "<frame name='f' attached_to='r'><pose relative_to='s'>1 2 3 0 0 0</pose></frame>",
            test_sdf.named("r", "<pose relative_to='s'/>", test_sdf.ARM),
            test_sdf.named("s", test_sdf.ARM).replace("name='s'", "name='s' canonical_link='b' placement_frame='a'"),
            test_sdf.joint("across", "revolute", "r::__model__", "s::b"),
            "<include><uri>model://sun</uri></include>",
        ),
    }
    for name, text in texts.items():
        (folder / name).write_text(text)
    return sorted(folder.iterdir())


def test_damaged_files_give_only_our_own_errors(tmp_path):
    files = sample_files(tmp_path)
    for path in files:
        fgd.load(path)
    report = load_mutants(files, MUTANTS, seed=1)
    assert report.foreign == []
    assert report.unlocated == []
    assert report.slowest < SECONDS
    assert report.loaded
    assert report.refused


TAGS = ["robot", "link", "joint", "parent", "child", "axis", "limit", "inertial", "mass", "inertia", "origin",
        "mujoco", "worldbody", "body", "geom", "freejoint", "site", "frame", "default", "compiler", "equality",
        "connect", "weld", "tendon", "fixed", "actuator", "motor", "sdf", "model", "pose", "xyz", "mimic",
        "transmission", "world", "include", "uri", "option", "replicate", "gearbox_ratio", "coupling", "ratio",
        "predecessor", "successor", "gazebo", "flag", "dcmotor", "muscle", "spatial", "plugin", "deformable", "flex",
        "static", "physics", "ode", "suspension", "velocity_decay", "placement_frame", "state"]  # fmt: skip
NAMES = ["name", "type", "link", "xyz", "rpy", "value", "pos", "quat", "euler", "axis", "size", "mass", "class",
         "body1", "body2", "joint", "joint1", "joint2", "anchor", "version", "relative_to", "attached_to",
         "range", "polycoef", "file", "childclass", "damping", "stiffness", "gear", "fromto", "coef"]  # fmt: skip
VALUES = ["a", "b", "world", "revolute", "hinge", "ball", "free", "universal", "0 0 1", "1 2 3 4", "0", "-1", "1",
          "1e308", "nan", "", "1.7", "fixed", "main", "capsule", "0 0 0 1 1 1", "__model__", "a::b"]  # fmt: skip

attributes = st.dictionaries(st.sampled_from(NAMES), st.sampled_from(VALUES), max_size=5)
elements = st.recursive(
    st.tuples(st.sampled_from(TAGS), attributes, st.sampled_from(VALUES)),
    lambda inner: st.tuples(st.sampled_from(TAGS), attributes, st.lists(inner, max_size=5)),
    max_leaves=12,
)


def text_of(element) -> str:
    tag, given_attributes, inside = element
    head = tag + "".join(f' {key}="{value}"' for key, value in given_attributes.items())
    body = inside if isinstance(inside, str) else "".join(text_of(item) for item in inside)
    return f"<{head}>{body}</{tag}>"


@pytest.mark.slow
@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.sampled_from(["robot", "mujoco", "sdf"]), st.lists(elements, max_size=8))
def test_random_elements_give_only_our_own_errors(root, inside):
    inner = "".join(text_of(element) for element in inside)
    wrapped = {
        "robot": f"<robot name='r'>{inner}</robot>",
        "mujoco": f"<mujoco><worldbody>{inner}</worldbody>{inner}</mujoco>",
        "sdf": f"<sdf version='1.7'><model name='m'>{inner}</model></sdf>",
    }[root]
    try:
        fgd.loads(wrapped, file="fuzz.xml")
    except fgd.FactorGraphDynError as error:
        assert str(error).startswith("fuzz.xml:")  # noqa: PT017


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="[]',\"#-:ab \n", max_size=60))
def test_random_yaml_gives_only_our_own_errors(text):
    try:
        parse_closures(("closed_loop: " + text).encode(), "fuzz.yaml")
    except fgd.ModelError as error:
        assert str(error).startswith("fuzz.yaml:")  # noqa: PT017
