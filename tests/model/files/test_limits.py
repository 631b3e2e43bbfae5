"""Limits of torque and speed come from every format and survive being written, as everything that URDF can hold."""

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.native.writer import to_json
from factorgraph_dyn.model.files.urdf.writer import losses, to_urdf
from tests.model.files import test_sdf, test_urdf

INF = np.inf
JOINT_TAGS = """<joint name="h" range="-1 1" {}/><geom size=".1" pos=".1 0 0"/></body></worldbody>
<actuator>{}</actuator></mujoco>"""


def bounds(mechanism, joint):
    found = mechanism.joint_by_name[joint]
    return found.effort_limit.tolist(), found.velocity_limit.tolist()


def test_urdf_limits():
    mechanism = fgd.loads(test_urdf.chain(["revolute", "continuous", "planar", "fixed"]))
    assert bounds(mechanism, "j0") == bounds(mechanism, "j1") == ([3.0], [4.0])
    assert bounds(mechanism, "j2") == ([3.0] * 3, [4.0] * 3)
    assert bounds(mechanism, "j3") == ([], [])
    unlimited = fgd.loads(test_urdf.chain(["continuous"], extra='<limit effort="-1" velocity="inf"/>'))
    assert bounds(unlimited, "j0") == ([INF], [INF])


def test_sdf_limits():
    axis = "<axis><xyz>0 0 1</xyz><limit><effort>7</effort><velocity>-1</velocity></limit></axis>"
    axis2 = "<axis2><xyz>1 0 0</xyz><limit><velocity>2</velocity></limit></axis2>"
    body = test_sdf.link("a") + test_sdf.link("b") + test_sdf.joint("j", "universal", "a", "b", axis + axis2)
    assert bounds(fgd.loads(test_sdf.world(test_sdf.named("r", body))), "j") == ([7.0, INF], [INF, 2.0])


@pytest.mark.parametrize(
    ("joint", "actuators", "limit"),
    [
        ("", '<motor joint="h" gear="-10"/>', INF),
        ("", '<motor joint="h" gear="-10" ctrlrange="-1 2"/>', 20.0),
        ("", '<position joint="h" ctrlrange="-1 2"/>', INF),
        ("", '<position joint="h" gear="2" forcerange="-3 3"/><motor joint="h" ctrlrange="-1 1"/>', 7.0),
        ("", '<motor joint="h" forcerange="-3 3" forcelimited="false"/>', INF),
        ('actuatorfrcrange="-5 4"', '<motor joint="h" gear="10" ctrlrange="-1 1"/>', 5.0),
        ('actuatorfrcrange="-5 4" actuatorfrclimited="false"', "", INF),
    ],
)
def test_mjcf_limits(joint, actuators, limit):
    text = "<mujoco><worldbody><body>" + JOINT_TAGS.format(joint, actuators)
    assert bounds(fgd.loads(text), "h") == ([limit], [INF])


def limited():
    """A tree of all that URDF can hold."""
    kinds = ["revolute", "prismatic", "continuous", "planar", "fixed", "floating"]
    mechanism = fgd.loads(test_urdf.chain(kinds))
    joints = {joint.name: joint for joint in mechanism.joints}
    joints["j0"] = replace(joints["j0"], effort_limit=INF, limits=(-1.0, INF), damping=0.3, actuated=False)
    joints["j1"] = replace(joints["j1"], velocity_limit=INF, limits=None)
    joints["j5"] = replace(joints["j5"], damping=0.2)
    return replace(mechanism, joints=tuple(joints.values())).add_frame("tool", "l2", np.eye(4))


def test_limits_survive_both_formats():
    mechanism = limited()
    assert losses(mechanism) == []
    read = fgd.loads(to_urdf(mechanism))
    for joint in mechanism.joints:
        again = read.joint_by_name[joint.name]
        assert bounds(read, joint.name) == bounds(mechanism, joint.name)
        assert (again.kind, again.limits, again.actuated) == (joint.kind, joint.limits, joint.actuated)
        np.testing.assert_array_equal(again.damping, joint.damping)
    assert read.place("tool")[0] == "tool"
    assert fgd.loads(to_json(mechanism)).fingerprint == mechanism.fingerprint
    plain = replace(mechanism, joints=tuple(replace(j, effort_limit=INF) for j in mechanism.joints))
    assert plain.fingerprint != mechanism.fingerprint


def test_other_readers_take_the_file(tmp_path):
    pin = pytest.importorskip("pinocchio")
    (tmp_path / "r.urdf").write_text(to_urdf(limited()))
    model = pin.buildModelFromUrdf(str(tmp_path / "r.urdf"))
    assert model.njoints == 6  # the universe and five that move
    assert model.getFrameId("tool") < model.nframes


@pytest.mark.parametrize("bad", [-1.0, np.nan, "fast", [1.0, 2.0]])
def test_bad_limits_are_refused(bad):
    with pytest.raises(fgd.ModelError, match="effort_limit of joint 'j'"):
        fgd.Joint("j", "revolute", "a", "b", effort_limit=bad)


def test_what_urdf_cannot_hold_is_named():
    spring = replace(limited().joint_by_name["j0"], armature=0.1, stiffness=2.0)
    rest = [joint for joint in limited().joints if joint.name != "j0"]
    moon = replace(limited(), joints=(spring, *rest), gravity=(0, 0, -1.6))
    assert losses(moon) == ["armature of joints j0", "springs of joints j0", "gravity [0.0, 0.0, -1.6]"]
    with pytest.raises(fgd.ModelError, match=r"armature of joints j0.*lossy=True"):
        to_urdf(moon)
    assert "not in this file: springs of joints j0" in to_urdf(moon, lossy=True)
    assert losses(fgd.robots.four_bar()) == ["loops " + fgd.robots.four_bar().loops[0].name]
