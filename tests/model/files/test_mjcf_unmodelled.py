"""What an MJCF file says and a mechanism does not have: MuJoCo's answer differs, and a warning says why and where."""

import mujoco
import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.peers.mujoco import MujocoEngine

DIFFERS = 1e-3  # of the largest force: far more than rounding
AGREES = 1e-10

ROBOT = """<mujoco>
{before}
<worldbody>
  <body name="a" pos="0 0 1" {body}>
    <joint name="j" axis="0 1 0" {joint}/><geom name="g" type="capsule" fromto="0 0 0 .3 0 .1" size=".05" {geom}/>
    <site name="s" pos=".3 .1 0"/>
    <body name="b" pos=".3 0 .1"><joint name="k" axis="1 1 0"/><geom type="box" size=".1 .05 .02" pos=".1 0 0"/>
      <site name="t" pos=".1 .2 .1"/></body></body>
  <site name="far" pos="2 0 1"/>
</worldbody>
{after}
</mujoco>"""


def robot(before="", after="", body="", joint="", geom=""):
    return ROBOT.format(before=before, after=after, body=body, joint=joint, geom=geom)


INERTIAL, GEOM = "<inertial mass='1' pos='.1 0 0' diaginertia='1 1 1'/>", "<geom size='.1' mass='2'/>"
FUSED = """<mujoco><compiler inertiafromgeom="{0}" fusestatic="{1}"/><worldbody>
<body><joint/>{2}<body name="c" pos=".5 0 0">{3}<body pos="0 1 0">{4}</body></body></body></worldbody></mujoco>"""


@pytest.mark.parametrize("fused", [True, False])
@pytest.mark.parametrize("from_geoms", ["true", "auto", "false"])
@pytest.mark.parametrize(
    "masses",
    [(INERTIAL, GEOM, ""), (GEOM, INERTIAL, ""), (INERTIAL, INERTIAL, ""), (INERTIAL, "", GEOM), (INERTIAL, "", ""),
     (INERTIAL + GEOM, "", INERTIAL + GEOM)],
)  # fmt: skip
def test_inertials_that_mujoco_leaves_out_of_fused_bodies_are_noted(masses, from_geoms, fused):
    text = FUSED.format(from_geoms, str(fused).lower(), *masses)
    model, mechanism = mujoco.MjModel.from_xml_string(text), fgd.loads(text, file="m.xml")
    data, theirs = mujoco.MjData(model), np.zeros((1, 1))
    mujoco.mj_forward(model, data)
    mujoco.mj_fullM(model, data, theirs)
    noted = [warning for warning in mechanism.warnings if "MuJoCo leaves this out where it fuses body" in warning]
    assert all(warning.startswith("m.xml:2: <inertial>: ") for warning in noted)
    differs = abs(fgd.mass_matrix(mechanism, [0.0]) - theirs).max() > DIFFERS
    assert bool(noted) == differs == (fused and from_geoms == "true" and masses[0] != masses[2] and any(masses[1:]))


ONE_JOINT = "<joint joint='j' coef='2'/>"


def fixed(attributes, joints="<joint joint='j' coef='2'/><joint joint='k' coef='-1'/>"):
    return f"<tendon><fixed {attributes}>{joints}</fixed></tendon>"


def spatial(attributes):
    return f"<tendon><spatial {attributes}><site site='t'/><site site='far'/></spatial></tendon>"


def actuator(text, more=""):
    return f"{more}<actuator>{text}</actuator>"


DIFFERENT = {  # MuJoCo has other forces or another mass matrix: what the warning says, its line, the file
    "density": ("the density of the medium", 2, robot("<option density='1000'/>")),
    "viscosity": ("the viscosity of the medium", 2, robot("<option viscosity='1'/>")),
    "wind": ("the density of the medium", 2, robot("<option density='1.2' wind='20 0 0'/>")),
    "fluidshape": ("the density of", 2, robot("<option density='100'/>", geom="fluidshape='ellipsoid'")),
    "gravcomp": ("gravcomp is not used", 4, robot(body="gravcomp='1'")),
    "springs off": ("spring='disable'", 2, robot("<option><flag spring='disable'/></option>", joint="stiffness='9'")),
    "dampers off": ("damper='disable'", 2, robot("<option><flag damper='disable'/></option>", joint="damping='9'")),
    "negative damping": ("damping is negative (-9)", 5, robot(joint="damping='-9'")),
    "negative spring": ("stiffness is negative (-9)", 5, robot(joint="stiffness='-9'")),
    "negative armature": ("armature is negative (-1)", 5, robot(joint="armature='-1'")),
    "motor's negative damping": ("damping is negative (-9)", 11, robot(
        after=actuator("<motor joint='j' damping='-9'/>"))),
    "tendon's spring": ("stiffness is not used", 11, robot(after=fixed("stiffness='5'"))),
    "tendon's damping": ("damping is not used", 11, robot(after=fixed("damping='5'"))),
    "tendon's polynomial": ("damping is not used", 11, robot(after=fixed("damping='0 5'", ONE_JOINT))),
    "tendon's armature": ("armature is not used", 11, robot(after=fixed("armature='5'"))),
    "bending spring": ("stiffness is not used", 11, robot(after=spatial("stiffness='5' springlength='.1'"))),
    "bending damper": ("damping is not used", 11, robot(after=spatial("damping='5'"))),
    "bending armature": ("armature is not used", 11, robot(after=spatial("armature='5'"))),
    "motor on two": ("armature and damping are not used", 11, robot(
        after=actuator("<motor tendon='x' damping='2' armature='.3'/>", fixed("name='x'")))),
}  # fmt: skip


def equations(model, q, v):
    """MuJoCo's mass matrix and forces, all that is passive included."""
    data = mujoco.MjData(model)
    data.qpos[:], data.qvel[:] = q, v
    mujoco.mj_forward(model, data)
    M = np.zeros((model.nv, model.nv))
    mujoco.mj_fullM(model, data, M)
    return M, data.qfrc_bias - data.qfrc_passive


@pytest.mark.parametrize("case", DIFFERENT)
def test_what_mujoco_has_beyond_a_mechanism_is_a_warning(case):
    warning, line, text = DIFFERENT[case]
    mechanism = fgd.loads(text, file="robot.xml")
    q, v = np.array([0.3, -0.4]), np.array([2.0, -1.0])
    M, h = equations(mujoco.MjModel.from_xml_string(text), q, v)
    theirs = np.column_stack([M, h])
    ours = np.column_stack([fgd.mass_matrix(mechanism, q), fgd.bias(mechanism, q, v)])
    assert np.abs(ours - theirs).max() > DIFFERS * np.abs(theirs).max()
    assert any(found.startswith(f"robot.xml:{line}:") and warning in found for found in mechanism.warnings)


FUSING = """<mujoco><compiler fusestatic="true" {0}/><worldbody>
<body name="stand" {1}><geom size=".1" mass="1"/></body>
<body name="arm"><joint axis="0 1 0"/><geom size=".1" pos=".5 0 0" mass="1"/>
<body name="tip" pos="1 0 0"><site name="s"/></body></body></worldbody></mujoco>"""
FUSED_OTHERWISE = {
    "the static body has no part in settotalmass": (2, FUSING.format('settotalmass="2"', 'mocap="true"')),
    "has no part in settotalmass": (2, FUSING.format('settotalmass="2"', 'fuse="false"')),
    "the body's bounds count": (4, FUSING.format('boundinertia=".05"', "")),
    "MuJoCo leaves it out where it calls the body simple": (2, """<mujoco><worldbody>
<body><joint type="slide" armature=".2" springdamper="1 1" ref=".7"/><geom size=".1" mass="1"/></body>
</worldbody></mujoco>"""),
}  # fmt: skip


@pytest.mark.parametrize("warning", FUSED_OTHERWISE)
def test_what_mujoco_decides_for_itself_is_a_warning(warning):
    line, text = FUSED_OTHERWISE[warning]
    mechanism = fgd.loads(text, file="robot.xml")
    M, h = equations(mujoco.MjModel.from_xml_string(text), [0.3], [2.0])
    ours = np.array([fgd.mass_matrix(mechanism, [0.3])[0, 0], fgd.bias(mechanism, [0.3], [2.0])[0]])
    assert np.abs(ours - [M[0, 0], h[0]]).max() > DIFFERS * np.abs(ours).max()
    assert any(found.startswith(f"robot.xml:{line}:") and warning in found for found in mechanism.warnings)


@pytest.mark.parametrize("scale", ["scale='2'", "massscale='3'", "scale='2 1 1' scaling='geometry'"])
def test_frames_that_scale_what_is_in_them_are_refused(scale):
    text = robot().replace("<worldbody>", f"<worldbody><frame {scale}>").replace("</worldbody>", "</frame></worldbody>")
    with pytest.raises(fgd.ModelError, match="scales what is in it"):
        fgd.loads(text)
    plain = fgd.loads(text.replace(scale, "scale='1'"))
    assert plain.fingerprint == fgd.loads(robot()).fingerprint


@pytest.mark.parametrize(("attribute", "place"), [("heft", "body"), ("inerter", "joint"), ("porosity", "geom")])
def test_attributes_that_are_not_known_are_a_warning(attribute, place):
    warnings = fgd.loads(robot(**{place: f"{attribute}='2'"})).warnings
    assert any(f"the attribute {attribute!r} is not known" in found for found in warnings)


BALL = """<mujoco><worldbody><body><joint name="j" type="ball"/><geom size=".1" pos=".5 0 0" mass="1"/></body>
</worldbody><actuator><{0} joint="j" forcerange="0 4"/></actuator></mujoco>"""


@pytest.mark.parametrize(
    "servo", ["orientation kp='3'", "general gaintype='so3' gainprm='3' biastype='so3' biasprm='0 -3 0'"]
)
def test_orientation_servos_push_about_every_axis(servo, tmp_path):
    (tmp_path / "robot.xml").write_text(BALL.format(servo))
    assert mujoco.MjModel.from_xml_path(str(tmp_path / "robot.xml")).nv == 3
    mechanism = fgd.load(tmp_path / "robot.xml")
    assert mechanism.joint_by_name["j"].effort_limit.tolist() == [4.0, 4.0, 4.0]
    assert any("an orientation servo is not modelled" in found for found in mechanism.warnings)
    names, B = fgd.load_actuation(tmp_path / "robot.xml", mechanism)
    assert names == ()
    assert B.shape == (3, 0)


def test_a_tendon_without_a_name_moves_no_actuator(tmp_path):
    """An actuator at a site names no tendon; nor does the tendon have a name."""
    text = actuator("<motor site='t' gear='1 0 0 0 0 0'/>", fixed(""))
    (tmp_path / "robot.xml").write_text(robot(after=text))
    mechanism = fgd.load(tmp_path / "robot.xml")
    assert not any(joint.actuated for joint in mechanism.movable_joints)
    assert any("it acts through a site" in found for found in mechanism.warnings)
    assert fgd.load_actuation(tmp_path / "robot.xml", mechanism)[0] == ()


def test_generated_names_keep_off_those_of_bodies_further_down():
    two = "<joint name='j'/><joint name='k' axis='1 0 0'/>"
    bodies = f"<body name='a'>{two}<geom size='.1'/></body><body><geom size='.1'/></body>"
    text = f"<mujoco><worldbody>{bodies}<body name='a_before_k'/><body name='body_1'/></worldbody></mujoco>"
    names = fgd.loads(text).link_names
    assert len(names) == len(set(names)) == 6
    assert {"a_before_k", "body_1"} < set(names)


UNUSED = {
    "acts through a site": (11, actuator("<motor site='t' gear='1 0 0 0 0 0'/><motor site='s' gear='1 0 0 0 0 0'/>")),
    "for 1 more": (11, actuator("<motor site='t' gear='1 0 0 0 0 0'/><motor site='s' gear='1 0 0 0 0 0'/>")),
    "acts through a tendon that bends": (11, actuator("<motor tendon='x'/>", spatial("name='x'"))),
    "joint 'gone' is not in the file": (11, actuator("<motor joint='gone'/>")),
    "a muscle's force": (11, actuator("<muscle joint='j' lengthrange='-1 1'/>")),
    "by its length, speed": (11, actuator("<general joint='j' biastype='muscle' lengthrange='-1 1'/>")),
    "a motor's circuit": (11, actuator("<dcmotor joint='j' motorconst='.1' resistance='2'/>")),
    "a cylinder's pressure": (11, actuator("<cylinder joint='j'/>")),
    "a damper's force": (11, actuator("<damper joint='j' kv='1' ctrlrange='0 1'/>")),
    "adhesion acts through contacts": (11, actuator("<adhesion body='a' ctrlrange='0 1'/>")),
    "the plugin is not run": (11, actuator("<plugin joint='j' plugin='mujoco.pid'/>")),
    "flexible parts are not modelled": (
        11,
        "<deformable><flex name='f' dim='1' body='a b' element='0 1'/></deformable>",
    ),
}


@pytest.mark.parametrize("warning", UNUSED)
def test_what_is_not_used_is_a_warning(warning):
    line, after = UNUSED[warning]
    mechanism = fgd.loads(robot(after=after), file="robot.xml")
    assert any(found.startswith(f"robot.xml:{line}:") and warning in found for found in mechanism.warnings)


@pytest.mark.parametrize("word", ["frictionloss", "damping", "stiffness", "armature"])
def test_what_is_negative_is_taken_as_zero(word):
    ours, plain = (fgd.loads(robot(joint=text)).joint_by_name["j"] for text in (f"{word}='-1'", ""))
    assert all(
        getattr(ours, key) == getattr(plain, key) == 0 for key in ("friction", "damping", "stiffness", "armature")
    )
    assert any(
        f"{word} is negative (-1); it is taken as 0." in x for x in fgd.loads(robot(joint=f"{word}='-1'")).warnings
    )


@pytest.mark.parametrize("values", ["0 0", ".1 0"])
def test_what_springdamper_does_not_replace_is_used(values):
    mechanism = fgd.loads(robot(joint=f"stiffness='3' damping='2' springdamper='{values}'"))
    assert (mechanism.joint_by_name["j"].stiffness, mechanism.joint_by_name["j"].damping) == (3, 2)
    assert any("must be positive" in warning for warning in mechanism.warnings) == (values != "0 0")


def test_plain_motors_and_servos_need_no_warning():
    text = actuator("<motor joint='j'/><position joint='k' kp='5'/><velocity joint='j'/>")
    assert not fgd.loads(robot(after=text)).warnings


@pytest.mark.parametrize("held", ["hand", "finger"])
def test_what_is_moved_from_outside_holds_nothing(held):
    hand = '<body name="hand" mocap="true"><body name="finger"><geom size=".1"/></body></body>'
    text = robot(after=f"<equality><weld body1='b' body2='{held}'/></equality>").replace(
        "</worldbody>", f"{hand}</worldbody>"
    )
    mechanism = fgd.loads(text)
    assert not mechanism.loops
    assert any("moved from outside (mocap)" in warning for warning in mechanism.warnings)


@pytest.mark.parametrize("flag", ["equality", "constraint"])
def test_equalities_that_the_file_turns_off_are_not_read(flag):
    before = f"<option><flag {flag}='disable'/></option>"
    mechanism = fgd.loads(robot(before, "<equality><connect body1='b' anchor='0 0 0'/></equality>"))
    assert not mechanism.loops
    assert any("not active" in warning for warning in mechanism.warnings)


@pytest.mark.parametrize("last", ["enable", "disable"])
def test_of_several_options_the_last_counts(last):
    """Included files have options of their own."""
    options = "<option gravity='0 0 -3' density='9'><flag gravity='{}' damper='disable'/></option>"
    first = "enable" if last == "disable" else "disable"
    text = robot(options.format(first) + f"<option density='0'><flag gravity='{last}' damper='enable'/></option>")
    mechanism = fgd.loads(text)
    q, v = np.array([0.3, -0.4]), np.array([2.0, -1.0])
    _, h = equations(mujoco.MjModel.from_xml_string(text), q, v)
    assert np.abs(fgd.bias(mechanism, q, v) - h).max() < AGREES * np.abs(h).max()
    assert not mechanism.warnings


def test_what_has_no_force_at_all_is_the_same_as_in_mujoco(tmp_path):
    path = tmp_path / "robot.xml"
    path.write_text(
        robot("<option wind='1 0 0' integrator='implicit'/>", spatial("range='0 9'"), geom="fluidshape='ellipsoid'")
    )
    mechanism = fgd.load(path)
    q, v = np.array([0.3, -0.4]), np.array([2.0, -1.0])
    M, h = equations(MujocoEngine.load(mechanism, path).model, q, v)
    assert not mechanism.warnings
    assert np.abs(fgd.mass_matrix(mechanism, q) - M).max() < AGREES
    assert np.abs(fgd.bias(mechanism, q, v) - h).max() < AGREES * np.abs(h).max()
