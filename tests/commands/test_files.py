"""fgdyn info, check and convert."""

import json
from dataclasses import replace

import pytest
import typer
from typer.testing import CliRunner

import factorgraph_dyn as fgd
from factorgraph_dyn import cli
from factorgraph_dyn.commands import models
from factorgraph_dyn.show.tables import print_rows
from tests.model import test_edit
from tests.model.files import test_mjcf, test_urdf


@pytest.fixture
def run():
    return lambda *words: CliRunner().invoke(cli.app, [str(word) for word in words])


@pytest.fixture
def loopy(tmp_path):
    path = tmp_path / "loopy.xml"
    path.write_text(test_mjcf.LOOPY)
    return path


def test_info_shows_the_tree_loops_and_warnings(run, tmp_path):
    path = tmp_path / "m.urdf"
    path.write_text(test_urdf.ODD["negative: -5"])
    shown = run("info", path).output
    assert "j0" in shown
    assert "the effort limit is negative" in shown
    rows = json.loads(run("info", path, "--format", "json").output)
    assert [row["link"].strip() for row in rows] == ["base", "l0"]


def test_warnings_of_a_file_are_told_beside_its_numbers(run, tmp_path):
    path = tmp_path / "m.urdf"
    path.write_text(test_urdf.ODD["negative: -5"])
    (tmp_path / "m.yaml").write_text("closed_loop: []\n")
    result = run("compile", path, "--format", "json")
    assert result.exit_code == 0
    assert json.loads(result.stdout)
    assert result.stderr.startswith("Warning: ")
    assert "lists loop closures, which are not used" in result.stderr
    assert f"1 more: fgdyn info {path}" in result.stderr


def test_info_lists_loops(run, loopy):
    shown = run("info", loopy).output
    assert "spherical loop" in shown
    assert "coupling" in shown


@pytest.mark.parametrize("robot", ["puma560", "loopy"])
def test_check_agrees(run, robot, loopy):
    result = run("check", loopy if robot == "loopy" else robot, "--states", 2, "--format", "json")
    assert result.exit_code == 0
    (row,) = json.loads(result.output)
    assert row["agrees"]
    assert row["engine"].startswith("mujoco" if robot == "loopy" else "pinocchio")


def test_check_hands_every_joint_kind_to_pinocchio(run, tmp_path):
    tree = fgd.robots.random_tree(12, seed=3, branching=1.5, kinds=("all",))
    damped = replace(tree, joints=[replace(joint, damping=0.3, friction=0.2, armature=0.1) for joint in tree.joints])
    damped.save(tmp_path / "all.json")
    assert run("check", tmp_path / "all.json", "--states", 3).exit_code == 0


def test_xacro_files_are_expanded_where_it_is_asked_for(run, tmp_path):
    pytest.importorskip("xacrodoc")
    path = tmp_path / "robot.urdf"
    tree = test_urdf.chain(["revolute"]).replace("<robot ", '<robot xmlns:xacro="http://www.ros.org/wiki/xacro" ', 1)
    path.write_text(tree.replace("<link ", '<xacro:property name="n" value="1"/><link ', 1))
    assert "by the option --xacro" in str(run("info", path).exception)
    assert "j0" in run("info", path, "--xacro").output
    assert "by the option --xacro" in str(run("info", path).exception)  # one command asks for itself
    assert run("check", path, "--xacro", "--states", 2).exit_code == 0


@pytest.mark.parametrize("command", sorted(set(cli.HOMES) - {"robots"}))
def test_every_command_that_takes_a_robot_has_the_option_of_xacro(command):
    assert "--xacro" in [word for option in cli.load_command(command).params for word in option.opts]


def test_a_missing_included_file_is_named_with_a_way_out(run, tmp_path):
    (tmp_path / "scene.xml").write_text('<mujoco><include file="arm.xml"/></mujoco>')
    message = str(run("check", tmp_path / "scene.xml").exception)
    assert "scene.xml:1: <include>" in message
    assert "arm.xml: the file cannot be read: No such file or directory. Put it there, or remove" in message


def test_check_tells_differences(run, tmp_path, monkeypatch):
    path = tmp_path / "m.urdf"
    path.write_text(test_urdf.chain(["revolute", "revolute"]))
    heavier = fgd.load(path).add_payload("l1", 1.0)
    monkeypatch.setattr(models, "find_robot", lambda _: heavier)
    assert run("check", path, "--states", 1).exit_code == 1


def test_convert_to_own_format_and_urdf(run, loopy, tmp_path):
    assert run("convert", loopy, tmp_path / "out.json").exit_code == 0
    assert fgd.load(tmp_path / "out.json").fingerprint == fgd.load(loopy).fingerprint
    tree = tmp_path / "tree.urdf"
    tree.write_text(test_urdf.chain(["revolute", "prismatic", "planar", "fixed", "continuous", "floating"]))
    assert run("convert", tree, tmp_path / "again.urdf").exit_code == 0
    read, again = fgd.load(tree), fgd.load(tmp_path / "again.urdf")
    q, v = read.random_state(0)
    assert fgd.bias(again, q, v) == pytest.approx(fgd.bias(read, q, v), rel=1e-9)


def test_convert_refuses(run, loopy, tmp_path):
    (tmp_path / "there.json").write_text("")
    for target, reason in (("x.urdf", "lose loops"), ("there.json", "--force"), ("x.doc", "not known")):
        result = run("convert", loopy, tmp_path / target)
        assert reason in str(result.exception)


def test_convert_says_what_urdf_loses(run, tmp_path):
    out = tmp_path / "bar.urdf"
    assert run("convert", "four_bar", "-o", out).exit_code != 0
    assert not out.exists()
    result = run("convert", "four_bar", "-o", out, "--lossy")
    assert "0 loops" in result.stdout  # what was lost is not counted
    assert result.exit_code == 0
    assert "lost: loops" in result.output
    assert fgd.load(out).nv == fgd.robots.four_bar().nv
    assert "Name one file" in str(run("convert", "four_bar").exception)


def test_closure_files_stand_for_their_urdf(run, tmp_path):
    sides = test_edit.SIDE.format("left", "-.5", "-.4", ".9") + test_edit.SIDE.format("right", ".5", ".4", "-.9")
    (tmp_path / "bar.urdf").write_text(test_edit.FIVE_BAR.format(sides))
    (tmp_path / "bar.yaml").write_text("closed_loop: [['end_left', 'end_right']]\ntype: ['3d']\n")
    assert "spherical loop" in run("info", tmp_path / "bar.yaml").output


def test_check_takes_a_link_with_two_parents(run, tmp_path):
    link, joint = test_urdf.LINK.format, test_urdf.JOINT.format
    extra = link("other") + joint("jo", "continuous", "base", "other", "0 0 1", "")
    closing = joint("close", "continuous", "other", "l1", "0 0 1", "")
    path = tmp_path / "m.urdf"
    path.write_text(test_urdf.chain(["continuous", "continuous"]).replace("</robot>", extra + closing + "</robot>"))
    assert len(fgd.load(path).loops) == 1
    assert run("check", path, "--states", 2).exit_code == 0


@pytest.mark.parametrize("command", sorted(typer.main.get_command(cli.app).commands))
def test_every_command_has_help(command):
    assert CliRunner().invoke(cli.app, [command, "--help"]).exit_code == 0


def test_names_in_brackets_are_no_markup(capsys):
    print_rows([{"name": "F[elbow]"}])
    assert "F[elbow]" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("name", "words"), [("x.urdf", "no file 'x.urdf'"), ("a/x", "no file 'a/x'"), ("x", "no robot or file 'x'")]
)
def test_a_file_that_is_not_there_is_called_a_file(run, name, words):
    assert str(run("info", name).exception).startswith(f"There is {words}. Built-in robots:")
