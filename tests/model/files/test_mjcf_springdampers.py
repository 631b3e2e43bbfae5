"""Springs and dampers said by time constants and damping ratios, against MuJoCo's own model."""

import mujoco
import numpy as np
import pytest

import factorgraph_dyn as fgd

EXACT = 1e-12  # relative
SINGULAR = 1e-9  # relative, where MuJoCo adds next to nothing to a singular matrix


def arm(first="", second="", rest="", compiler=""):
    """Two bodies, a hinge off the reference and a second joint, some of them sprung."""
    return f"""<mujoco>
      <compiler angle="radian" {compiler}/>
      <worldbody>
        <body name="upper" pos="0 0 1" euler="0.3 0.2 0.1">
          <joint name="j" axis="0 1 0" ref="0.7" stiffness="3" damping="2" {first}/>
          <geom type="box" size=".1 .2 .3" pos=".3 0 0" mass="2"/>
          <body name="lower" pos=".5 0 .1" euler="0.5 0 0">
            <joint name="k" {second}/>
            <geom type="capsule" size=".1 .3" pos="0 .2 .1" mass="1.5"/>
          </body>
        </body>
      </worldbody>
      {rest}
    </mujoco>"""


CASES = {
    "hinges": arm("springdamper='.1 .5' armature='.3'", "springdamper='.2 1.5' axis='1 1 0' pos='0 .1 0' ref='-.4'"),
    "a slide": arm("", "type='slide' springdamper='.2 2' axis='1 2 0' ref='.3'"),
    "one of two": arm("springdamper='.02 .5'", "axis='1 0 0'"),
    "scaled masses": arm("springdamper='.1 .5'", "axis='1 0 0'", compiler="settotalmass='7'"),
    "beside a locked joint": arm(
        "springdamper='.1 .5'", "axis='1 0 0'", "<equality><joint joint1='k' polycoef='.2 0 0 0 0'/></equality>"
    ),
    "beside a servo": arm("springdamper='.1 .5'", "axis='1 0 0'", "<actuator><position joint='k' kp='3'/></actuator>"),
}


@pytest.mark.parametrize("case", CASES)
def test_springs_and_dampers_are_those_of_mujoco(case):
    theirs, ours = mujoco.MjModel.from_xml_string(CASES[case]), fgd.loads(CASES[case])
    assert not any("springdamper" in warning for warning in ours.warnings)
    for index in range(theirs.njnt):
        joint = ours.joint_by_name[theirs.joint(index).name]
        if joint.nv:
            assert joint.stiffness == pytest.approx(theirs.jnt_stiffness[index], rel=EXACT)
            assert joint.damping == pytest.approx(theirs.dof_damping[theirs.jnt_dofadr[index]], rel=EXACT)


def test_balls_are_damped_and_their_springs_noted():
    text = arm("", "type='ball' springdamper='.2 2' stiffness='5' damping='4'")
    theirs, ours = mujoco.MjModel.from_xml_string(text), fgd.loads(text)
    assert ours.joint_by_name["k"].damping == pytest.approx(theirs.dof_damping[1:], rel=EXACT)
    assert not np.any(ours.joint_by_name["k"].stiffness)
    assert sum("'k' is not used: springs act on hinges and slides" in warning for warning in ours.warnings) == 1


def test_where_a_joint_moves_no_mass_there_is_no_spring():
    text = arm("springdamper='.1 .5'", "axis='1 0 0' springdamper='.1 .5'").replace('mass="1.5"', 'mass="0"')
    ours = fgd.loads(text, file="arm.xml")
    assert not ours.joint_by_name["k"].stiffness.any()
    assert any(w.startswith("arm.xml:8: ") and "moves no mass" in w for w in ours.warnings)
    alone = fgd.loads(text.replace('<joint name="k"', '<joint name="k" armature="1"'))
    assert ours.joint_by_name["j"].stiffness == pytest.approx(alone.joint_by_name["j"].stiffness, rel=EXACT)


GIMBAL = """<mujoco><worldbody>
  <body euler="{0}"><joint name="y" axis="0 .3 1" springdamper=".3 .6"/><geom size=".1" mass="1" pos=".2 .1 .3"/>
    <body pos=".3 .2 .1" euler="{1}">
      {2}<geom type="box" size=".1 .2 .3" pos=".1 .2 .3" mass="1.7"/>
      <body pos=".3 .1 .2"><joint name="h" axis="1 .3 .2" springdamper=".5 .7"/>
        <geom type="box" size=".1 .13 .2" pos=".1 .3 .1" mass=".9"/></body></body></body>
</worldbody></mujoco>"""
LOCKED = {
    "z-x-z": '<joint axis="0 0 1"/><joint axis="1 0 0"/><joint name="c" axis="0 0 1" springdamper=".5 1"/>',
    "parallel slides": '<joint type="slide"/><joint type="slide" name="c" springdamper=".5 1"/>',
}


@pytest.mark.parametrize("joints", LOCKED)
@pytest.mark.parametrize("seed", range(8))
def test_joints_that_undo_one_another_leave_the_others_theirs(seed, joints):
    angles = np.random.default_rng(seed).uniform(-90, 90, (2, 3)).round(1)
    text = GIMBAL.format(*(" ".join(map(str, each)) for each in angles), LOCKED[joints])
    theirs, ours = mujoco.MjModel.from_xml_string(text), fgd.loads(text, file="m.xml")
    (warning,) = (warning for warning in ours.warnings if "springdamper" in warning)
    assert warning.startswith('m.xml:4: <joint name="c">: springdamper is not used: at the reference configuration')
    for name in ("y", "h", "c"):
        joint, index = ours.joint_by_name[name], theirs.joint(name).id
        nothing = 1e-12  # MuJoCo's for a joint that moves nothing
        assert joint.stiffness == pytest.approx(theirs.jnt_stiffness[index], rel=SINGULAR, abs=nothing)
        assert joint.damping == pytest.approx(theirs.dof_damping[theirs.jnt_dofadr[index]], rel=SINGULAR, abs=nothing)
