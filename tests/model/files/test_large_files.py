"""Files at the edge of what is allowed: refused early, or loaded in the time and memory of a small program."""

import json
import resource
import subprocess
import sys

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.commands.sensor_files import read_sensors
from factorgraph_dyn.model.files import xml_tree
from factorgraph_dyn.model.names import TakenNames
from factorgraph_dyn.model.notes import MOST, MOST_ALIKE, merged

LOADS = "import sys, factorgraph_dyn as fgd; m = fgd.load(sys.argv[1]); print(len(m.links), len(m.warnings))"
SECONDS, BYTES = 120, 3_000_000_000  # many times what a file takes: its code and libraries are among the bytes


def fixed(links):
    below = "".join(
        f"<link name='l{k}'/><joint name='j{k}' type='fixed'><parent link='l{k - 1}'/><child link='l{k}'/></joint>"
        for k in range(1, links)
    )
    return f"<robot name='r'><link name='l0'/>{below}</robot>"


def geoms(count):
    return "<mujoco><worldbody><body><joint/>" + "<geom size='1'/>" * count + "</body></worldbody></mujoco>"


def connects(count):
    bodies = "".join(f"<body name='{name}'><joint/><geom size='1'/></body>" for name in "ab")
    closed = "<connect body1='a' body2='b' anchor='0 0 0'/>" * count
    return f"<mujoco><worldbody>{bodies}</worldbody><equality>{closed}</equality></mujoco>"


def frames(count):
    first = "".join(f"<frame name='f{k}'/>" for k in range(count))
    return f"<sdf version='1.7'><model name='m'>{first}<link name='l'/></model></sdf>"


def odd_comments(count):
    return f"<robot name='r'><link name='l'/>{'<!----->' * count}</robot>"


@pytest.mark.parametrize(
    "text",
    [fixed(75_000), geoms(300_000), odd_comments(4_000_000), fixed(20) + " " * 25_000_000, '{"links": [' + " " * 10**7],
    ids=["links", "geoms", "comments", "blanks", "json"],
)
def test_what_no_robot_needs_is_refused(text, tmp_path):
    (tmp_path / "it.xml").write_text(text)
    for load in (lambda: fgd.loads(text, file="it.xml"), lambda: fgd.load(tmp_path / "it.xml")):
        with pytest.raises(fgd.ModelError, match=r"it\.xml: .*bytes|it\.xml:1: .*more than \d+ elements"):
            load()


def test_parts_of_the_packages_own_format_are_bounded():
    links = [{"name": f"l{k}"} for k in range(xml_tree.MAX_ELEMENTS + 1)]
    with pytest.raises(fgd.ModelError, match="more than 50000 parts"):
        fgd.loads(json.dumps({"format": "factorgraph_dyn mechanism", "version": 1, "name": "r", "links": links}))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "says"),
    [
        (fixed(12_000), "12000 0"),
        (geoms(45_000), "2 0"),
        (connects(15_000), "3 0"),
        (frames(30_000), "2 1"),
        (odd_comments(1_200_000), "1 1"),
    ],
    ids=["links", "geoms", "connects", "frames", "comments"],
)
def test_what_is_allowed_loads_in_bounded_time_and_memory(text, says, tmp_path):
    (tmp_path / "it.xml").write_text(text)

    def bounded():
        resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))

    words = [sys.executable, "-c", LOADS, str(tmp_path / "it.xml")]
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=bounded, check=True)
    assert done.stdout.strip() == says


def test_included_files_count_together(tmp_path, monkeypatch):
    monkeypatch.setattr(xml_tree, "MAX_ELEMENTS", 50)
    links = "".join(f"<link name='l{k}'/>" for k in range(20))
    (tmp_path / "part.sdf").write_text(f"<sdf version='1.7'><model name='p'>{links}</model></sdf>")
    parts = [f"<include><uri>part.sdf</uri><name>p{k}</name></include>" for k in range(3)]
    (tmp_path / "whole.sdf").write_text(f"<sdf version='1.7'><world name='w'>{''.join(parts[:2])}</world></sdf>")
    with pytest.raises(fgd.ModelError, match=r"all that is included has .* 52 elements; at most"):
        fgd.load(tmp_path / "whole.sdf")
    for k in range(3):
        (tmp_path / f"p{k}.xml").write_text(geoms(15))
    parts = [f"<include file='p{k}.xml'/>" for k in range(3)]
    (tmp_path / "whole.xml").write_text(f"<mujoco>{''.join(parts)}</mujoco>")
    with pytest.raises(fgd.ModelError, match=r"include.*has \d+ bytes and 61 elements"):
        fgd.load(tmp_path / "whole.xml")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<robot name='r'{}/>".format("".join(f" a{k}=''" for k in range(101))), "more than 100 attributes"),
        ("<robot name='r'>\n<link name='{}'/></robot>".format("n" * 1001), "of 1001 characters"),
        ("<mujoco><default>\n<geom size='{}'/></default></mujoco>".format("1 " * 600), "default size has more than"),
        (
            "<mujoco><worldbody>{}</worldbody></mujoco>".format(
                "<body><geom size='1'/><joint springdamper='1 1'/></body>" * 1001
            ),
            "1000 freedoms at most",
        ),
    ],
)
def test_what_would_be_repeated_for_every_element_is_bounded(text, reason):
    with pytest.raises(fgd.ModelError, match=rf"^<text>:[12]: .*{reason}"):
        fgd.loads(text)


def test_names_of_nested_models_are_bounded_together():
    name, inner = "n" * 300, "<link name='l'/>"
    for _ in range(5):
        inner = f"<model name='{name}'>{inner}</model>"
    with pytest.raises(fgd.ModelError, match="more than 1000 characters in all"):
        fgd.loads(f"<sdf version='1.7'><model name='m'>{inner}</model></sdf>")


def test_warnings_that_are_alike_are_counted():
    joints = "".join(
        f"<link name='l{k}'/><joint name='j{k}' type='revolute'><parent link='b'/><child link='l{k}'/>"
        "<axis xyz='0 0 2'/></joint>"
        for k in range(300)
    )
    warnings = fgd.loads(f"<robot name='r'><link name='b'/>{joints}</robot>").warnings
    assert len(warnings) == 3 * MOST_ALIKE  # of the axis, the missing limit and the missing mass
    assert sum("... and 250 more like it." in warning for warning in warnings) == 3
    assert sum("axis has length 2" in warning for warning in warnings) == MOST_ALIKE


def test_few_warnings_stay_as_they_are_and_many_are_cut():
    few = tuple(f"m.xml:{k}: <a name='n{k}'>: it is {k}." for k in range(MOST_ALIKE))
    assert merged(few) == few
    many = merged(f"m.xml:{k}: <{'ab'[k % 2]}{'x' * (k // 2)}>: odd." for k in range(2 * MOST))
    assert len(many) == MOST + 1
    assert many[-1] == f"... and {MOST} more warnings."
    assert merged(merged([*few, *few])) == merged([*few, *few])


def test_mechanisms_count_their_own_warnings():
    links = [fgd.Link("base"), *(fgd.Link(f"l{k}", 1.0, inertia=-np.eye(3)) for k in range(100))]
    joints = [fgd.Joint(f"j{k}", "revolute", "base", f"l{k}") for k in range(100)]
    warnings = fgd.Mechanism("r", links, joints).warnings
    assert len(warnings) == MOST_ALIKE
    assert warnings[-1].endswith("... and 50 more like it.")


def test_a_name_wanted_often_is_counted_on():
    names = TakenNames(["a", "a_3"])
    assert [names.new("a") for _ in range(3)] == ["a_2", "a_4", "a_5"]
    assert [names.new("b") for _ in range(2)] == ["b", "b_2"]
    assert len({names.new("c") for _ in range(100_000)}) == 100_000


def test_deep_toml_is_refused(tmp_path):
    path = tmp_path / "sensors.toml"
    path.write_text("a = " + "[" * 100_000)
    with pytest.raises(fgd.InputError, match=r"sensors\.toml.*nested too deeply"):
        read_sensors(path, fgd.robots.rrr())


def test_long_lists_of_closures_are_refused(tmp_path):
    (tmp_path / "r.urdf").write_text("<robot name='r'><link name='l'/></robot>")
    (tmp_path / "r.yaml").write_text("closed_loop: [" + "['a', 'b'], " * 20_000 + "]")
    with pytest.raises(fgd.ModelError, match=r"r\.yaml:1: .*closures at most"):
        fgd.load(tmp_path / "r.yaml")


ODD = ["1_000", "１", "0x10", "1\u00a02", "nan", "1e", "1,5", "infinit"]


@pytest.mark.parametrize("number", ODD)
def test_odd_numbers_are_refused_with_their_line(number):
    texts = (
        f"<robot name='r'>\n<link name='l'><inertial><mass value='{number}'/></inertial></link></robot>",
        f"<mujoco><worldbody>\n<body><joint damping='{number}'/><geom size='1'/></body></worldbody></mujoco>",
        "<sdf version='1.7'><model name='m'>\n<link name='l'><inertial><mass>"
        f"{number}</mass></inertial></link></model></sdf>",
    )
    for text in texts:
        with pytest.raises(fgd.ModelError, match=r"^m\.xml:2: .*(not a number|must be finite)"):
            fgd.loads(text, file="m.xml")


@pytest.mark.parametrize(("number", "value"), [("1.", 1.0), (".5", 0.5), ("+1", 1.0), ("1e-3", 1e-3), ("\n 2\t", 2.0)])
def test_numbers_as_real_files_have_them_are_read(number, value):
    robot = f"<robot name='r'><link name='l'><inertial><mass value='{number}'/></inertial></link></robot>"
    assert fgd.loads(robot).links[0].mass == value
