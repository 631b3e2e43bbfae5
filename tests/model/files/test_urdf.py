"""URDF: every joint type, odd files that load with warnings, and files that are refused with their line."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from factorgraph_dyn.compare.peers.engines import engine_of
from factorgraph_dyn.motion.kinematics import link_poses

AGREES = 1e-10  # relative, with other engines

LINK = """<link name="{0}"><inertial><origin xyz=".1 .2 -.1" rpy=".3 -.2 .5"/><mass value="2"/>
<inertia ixx=".3" iyy=".4" izz=".5" ixy=".01" ixz="-.02" iyz=".03"/></inertial></link>"""
JOINT = """<joint name="{0}" type="{1}"><parent link="{2}"/><child link="{3}"/>
<origin xyz=".3 -.1 .2" rpy=".4 .5 -.6"/><axis xyz="{4}"/>{5}</joint>"""
LIMIT = '<limit lower="-1" upper="2" effort="3" velocity="4"/>'


def robot(*parts):
    return "<robot name='r'>\n" + "\n".join(parts) + "\n</robot>"


def chain(kinds, axis="0 0 1", extra=LIMIT):
    parts = ["<link name='base'/>"]
    parent = "base"
    for i, kind in enumerate(kinds):
        parts += [LINK.format(f"l{i}"), JOINT.format(f"j{i}", kind, parent, f"l{i}", axis, extra)]
        parent = f"l{i}"
    return robot(*parts)


def turned(extra=""):
    """A chain whose joints and centres of mass are turned by quaternions."""
    text = chain(["revolute", "prismatic"]).replace("<robot ", "<robot version='1.1' ")
    text = text.replace('rpy=".4 .5 -.6"', f'quat_xyzw="1 -2 3 4" {extra}')
    return text.replace('rpy=".3 -.2 .5"', 'quat_xyzw=".5 .5 -.5 .5"')


def agreement(text, tmp_path, **options):
    path = tmp_path / "robot.urdf"
    path.write_text(text)
    mechanism = fgd.load(path, **options)
    return compare_with_engine(mechanism, engine_of(mechanism, path), states=5)


def test_all_joint_types_agree_with_pinocchio(tmp_path):
    kinds = ["revolute", "continuous", "prismatic", "fixed", "planar", "revolute", "floating", "continuous"]
    assert agreement(chain(kinds), tmp_path).within(AGREES)


def test_oblique_axes_damping_and_friction(tmp_path):
    extra = LIMIT + '<dynamics damping="0.7" friction="0.3"/>'
    text = chain(["revolute", "prismatic", "continuous"], axis=".3 -.4 .5", extra=extra)
    assert agreement(text, tmp_path).within(AGREES)
    joint = fgd.loads(text).joint_by_name["j1"]
    assert (joint.damping, joint.friction, joint.limits) == (0.7, 0.3, (-1.0, 2.0))


def test_quaternions_agree_with_pinocchio(tmp_path):
    unit = turned().replace("1 -2 3 4", " ".join(str(x) for x in np.array([1, -2, 3, 4]) / np.sqrt(30)))
    assert agreement(unit, tmp_path).within(AGREES)
    assert not fgd.load(tmp_path / "robot.urdf").warnings
    poses = [link_poses(fgd.loads(text), np.zeros(2))["l1"] for text in (unit, turned())]
    assert np.abs(poses[0] - poses[1]).max() < AGREES


def test_floating_base_agrees_with_pinocchio(tmp_path):
    text = chain(["revolute", "revolute"])
    text = text.replace("<link name='base'/>", LINK.format("base"))
    assert agreement(text, tmp_path, floating_base=True).within(AGREES)


def test_floating_base_keeps_what_floats(tmp_path):
    (tmp_path / "r.urdf").write_text(chain(["fixed", "floating"]).replace(LINK.format("l0"), "<link name='l0'/>"))
    floating = fgd.load(tmp_path / "r.urdf", floating_base=True)
    assert floating.joint_names == ("j1",)
    assert floating.joint_by_name["j1"].kind == "floating"
    assert not floating.joint_by_name["j1"].actuated
    assert not floating.warnings


@pytest.mark.parametrize("on", ["base", "mount"])
def test_a_base_with_mass_is_freed_beside_what_floats(on, tmp_path):
    mount = LINK.format("mount") + JOINT.format("f", "fixed", "base", "mount", "0 0 1", "")
    text = chain(["floating"]).replace("</robot>", mount * (on == "mount") + "</robot>")
    (tmp_path / "r.urdf").write_text(text.replace("<link name='base'/>", LINK.format("base")) if on == "base" else text)
    freed = fgd.load(tmp_path / "r.urdf", floating_base=True)
    assert freed.joint_names == ("floating_base", "j0")
    assert np.linalg.eigvalsh(fgd.mass_matrix(freed, freed.neutral()))[0] > 0


def test_what_stays_on_a_base_that_others_float_on_is_noted(tmp_path):
    arm = LINK.format("arm") + JOINT.format("elbow", "revolute", "base", "arm", "0 0 1", LIMIT)
    (tmp_path / "r.urdf").write_text(chain(["floating"]).replace("</robot>", arm + "</robot>"))
    kept = fgd.load(tmp_path / "r.urdf", floating_base=True)
    assert kept.joint_names == ("j0", "elbow")
    (warning,) = kept.warnings
    assert "floating_base=True frees nothing more: j0 float on the base 'base', and elbow move on it" in warning


def test_inertial_without_mass_is_not_used(tmp_path):
    text = chain(["revolute", "continuous"]).replace('<mass value="2"/>', "", 1)
    assert agreement(text, tmp_path).within(AGREES)
    mechanism = fgd.load(tmp_path / "robot.urdf")
    assert not mechanism.links[1].inertia.any()
    start = f"{tmp_path / 'robot.urdf'}:3: <inertial>: link 'l0' has no <mass>; its <inertial> is not used"
    assert any(warning.startswith(start) for warning in mechanism.warnings)
    written = fgd.loads(chain(["revolute", "continuous"]).replace('<mass value="2"/>', '<mass value="0"/>', 1))
    assert written.links[1].inertia.any()


def test_mimic_becomes_coupling():
    text = chain(["revolute", "continuous"]).replace(
        'name="j1" type="continuous">', 'name="j1" type="continuous"><mimic joint="j0" multiplier="-2" offset=".5"/>'
    )
    (coupling,) = fgd.loads(text).couplings
    assert (coupling.joint, coupling.source, coupling.ratio, coupling.offset) == ("j1", "j0", -2.0, 0.5)


def test_mimic_of_nothing_is_noted():
    text = chain(["revolute"]).replace(LIMIT, LIMIT + '<mimic joint="gone"/>')
    mechanism = fgd.loads(text)
    assert not mechanism.couplings
    assert any("'gone' is not in the file" in warning for warning in mechanism.warnings)


@pytest.mark.parametrize("tag", ["drake:rotor_inertia", "rotorInertia"])
def test_rotor_inertia_of_a_transmission(tag):
    transmission = f"""<transmission><joint name="j0"/><actuator name="m"><{tag} value="2e-4"/>
    <mechanicalReduction>100</mechanicalReduction></actuator></transmission>"""
    mechanism = fgd.loads(chain(["revolute"]).replace("</robot>", transmission + "</robot>"))
    assert mechanism.joint_by_name["j0"].armature == pytest.approx(2.0)
    assert not mechanism.warnings


def test_link_with_two_parents_closes_a_loop():
    text = robot(
        *(LINK.format(name) for name in "abcd"),
        JOINT.format("ab", "revolute", "a", "b", "0 0 1", LIMIT),
        JOINT.format("bc", "revolute", "b", "c", "0 0 1", LIMIT),
        JOINT.format("ad", "revolute", "a", "d", "0 0 1", LIMIT),
        JOINT.format("dc", "revolute", "d", "c", "0 0 1", LIMIT),
    )
    mechanism = fgd.loads(text)
    assert len(mechanism.loops) == 1
    assert any("closes a loop" in warning for warning in mechanism.warnings)


def test_merged_links_keep_the_dynamics_and_leave_frames():
    text = chain(["revolute", "fixed", "revolute", "fixed", "fixed"])
    kept, merged = fgd.loads(text), fgd.loads(text).merge_fixed()
    q, v = kept.random_state(0)
    assert merged.link_names == ("base", "l0", "l2")
    assert {frame.name for frame in merged.frames} == {"l1", "l3", "l4"}
    np.testing.assert_allclose(fgd.mass_matrix(merged, q), fgd.mass_matrix(kept, q), rtol=1e-12)
    np.testing.assert_allclose(fgd.bias(merged, q, v), fgd.bias(kept, q, v), rtol=1e-11, atol=1e-12)
    frame = next(frame for frame in merged.frames if frame.name == "l4")
    T = link_poses(merged, q)[frame.link] @ frame.placement
    np.testing.assert_allclose(T, link_poses(kept, q)["l4"], atol=1e-14)


GEARED = """<transmission><joint name="j0"/><actuator name="m"><mechanicalReduction>{}</mechanicalReduction></actuator>
</transmission>"""
ODD = {
    "'--'": "<!-- a -- b --><robot name='r'><link name='a'/></robot>",
    "follows the root": "<robot name='r'><link name='a'/></robot>\n<junk",
    "negative: -5": chain(["revolute"]).replace('effort="3"', 'effort="-5"'),
    "no <limit>": chain(["revolute"], extra=""),
    "nothing is between lower 9 and upper 2": chain(["revolute"]).replace('lower="-1"', 'lower="9"'),
    "neither it nor what it carries": robot(
        "<link name='a'/><link name='b'/>", JOINT.format("j", "continuous", "a", "b", "0 0 1", "")
    ),
    "the axis has no xyz": chain(["revolute"]).replace('<axis xyz="0 0 1"/>', "<axis/>"),
    "ixz, iyz is missing": chain(["revolute"]).replace('ixz="-.02" iyz=".03"', ""),
    "quat_xyzw is not used": chain(["revolute"]).replace('rpy=".4 .5 -.6"', 'quat_xyzw="1 0 0 1"'),
    "triangle inequality": chain(["revolute"]).replace('izz=".5"', 'izz="50"'),
    "is normalised": chain(["revolute"], axis="0 0 2"),
    "damping is negative": chain(["revolute"], extra=LIMIT + '<dynamics damping="-1"/>'),
    "the reduction is not used": chain(["revolute"]).replace("</robot>", GEARED.format(50) + "</robot>"),
    "<turnGravityOff> is not used. The same holds for 1 more": chain(["revolute"]).replace(
        "</robot>", "<gazebo reference='l0'><turnGravityOff>true</turnGravityOff></gazebo>" * 2 + "</robot>"
    ),
    "<gravity> is not used": chain(["revolute"]).replace("</robot>", "<gazebo><gravity>0</gravity></gazebo></robot>"),
    "<springStiffness> is not used": chain(["revolute"]).replace(
        "</robot>", "<gazebo reference='j0'><springStiffness>5</springStiffness></gazebo></robot>"
    ),
    "left unexpanded": chain(["revolute"]).replace("</robot>", "<xacro:thing/></robot>"),
    "<inertial>: the link has several; only the first is used": chain(["revolute"]).replace(
        "</inertial>", "</inertial>\n<inertial><mass value='9'/></inertial>"
    ),
}
EXTENSIONS = {
    "Gazebo's joint 'shut' is not read: a loop that it closes stays open. Give it as a <loop>":
        "<gazebo><joint name='shut' type='revolute'><parent>l0</parent><child>base</child></joint></gazebo>",
    "joints that it couples move freely": "<gazebo><plugin name='m' filename='libmimic_joint_plugin.so'/></gazebo>",
    "plugins are not run; forces": "<gazebo><plugin name='m' filename='libbuoyancy.so'/></gazebo>",
    "<static> is not used": "<gazebo><static>True</static></gazebo>",
    "<kinematic> is not used": "<gazebo reference='l0'><kinematic>1</kinematic></gazebo>",
    "linear of Gazebo's <velocity_decay> is not used":
        "<gazebo reference='l0'><velocity_decay><linear>1e-3</linear><angular>0.0</angular></velocity_decay></gazebo>",
    "spring_stiffness of Gazebo's <dynamics>": "<gazebo reference='j0'><axis><dynamics><spring_stiffness>5"
        "</spring_stiffness><damping>0</damping></dynamics></axis></gazebo>",
    "that it mimics 'j0' is not read": "<ros2_control name='c'><joint name='j1'><param name='mimic'>j0</param></joint>"
        "</ros2_control>",
    "MuJoCo's gravity='0 0 -1' is not used": "<mujoco><option gravity='0 0 -1'/></mujoco>",
    "MuJoCo's balanceinertia='true' is not used": "<mujoco><compiler balanceinertia='true'/></mujoco>",
    "its first joint, 'j0', alone": "<transmission><joint name='j0'/><joint name='j1'/><actuator><motorInertia>.1"
        "</motorInertia></actuator></transmission>",
    "only the first actuator's rotor": "<transmission><joint name='j0'/><actuator><motorInertia>.1</motorInertia>"
        "</actuator><actuator><motorInertia>.2</motorInertia></actuator></transmission>",
    "its joint is 'gone'": "<transmission><joint name='gone'/><actuator><motorInertia>1</motorInertia></actuator>"
        "</transmission>",
    "its joint is 'f'": "<link name='e'/><joint name='f' type='fixed'><parent link='l1'/><child link='e'/></joint>"
        "<transmission><joint name='f'/><actuator><motorInertia>1</motorInertia></actuator></transmission>",
    "elements <drake:mimic> of joints are not read": "<link name='e'/><joint name='f' type='fixed'><parent link='l1'/>"
        "<child link='e'/><drake:mimic joint='j0'/></joint>",
    "the attribute 'spring_stiffness' is not used": "<link name='e'/><joint name='f' type='fixed'><parent link='l1'/>"
        "<child link='e'/><dynamics spring_stiffness='5' damping='1'/></joint>",
}  # fmt: skip


@pytest.mark.parametrize("warning", EXTENSIONS)
def test_extensions_that_change_the_motion_are_noted_with_their_line(warning):
    text = chain(["revolute", "revolute"]).replace("</robot>", EXTENSIONS[warning] + "</robot>")
    (found,) = fgd.loads(text, file="r.urdf").warnings
    assert found.startswith("r.urdf:11: <")
    assert warning in found


@pytest.mark.parametrize("warning", ODD)
def test_odd_files_load_with_a_warning(warning):
    assert any(warning in found for found in fgd.loads(ODD[warning]).warnings)


BAD = {
    "Expand xacro": (chain(["revolute"]).replace('"2"', '"${m}"', 1), 3),
    "fgd.load\\(path, xacro=True\\)": (robot("<xacro:macro name='m'/>"), 2),
    "joint type 'hinge'": (chain(["hinge"]), 5),
    "defined twice, first in line 2": (robot("<link name='a'/>", "<link name='a'/>"), 3),
    "link 'gone' is not in the file": (
        robot("<link name='a'/>", JOINT.format("j", "fixed", "gone", "a", "0 0 1", "")), 3
    ),
    "cannot be negative": (robot("<link name='a'><inertial><mass value='-1'/></inertial></link>"), 2),
    "must be finite": (robot("<link name='a'><inertial><mass value='1e999'/></inertial></link>"), 2),
    "the axis is zero": (chain(["revolute"], axis="0 0 0"), 6),
    "it must hold 3": (chain(["revolute"], axis="0 1"), 6),
    "<parent> is missing": (robot("<link name='a'/>", "<joint name='j' type='fixed'><child link='a'/></joint>"), 3),
    "by rpy and quat_xyzw": (turned('rpy="0 0 1"'), 6),
    "the quaternion is zero": (turned().replace("1 -2 3 4", "0 0 0 0"), 6),
    "no <link>": ("<robot name='r'/>", 1),
    "form a cycle": (
        robot("<link name='a'/><link name='b'/>", JOINT.format("j", "fixed", "a", "b", "0 0 1", ""),
              JOINT.format("k", "fixed", "b", "a", "0 0 1", "")), 1
    ),
    "not connected": (robot("<link name='a'/><link name='b'/>"), 1),
}  # fmt: skip


@pytest.mark.parametrize("reason", BAD)
def test_bad_files_are_refused_with_their_line(reason):
    text, line = BAD[reason]
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.loads(text, file="bad.urdf")
    assert str(caught.value).startswith(f"bad.urdf:{line}:")


LOOP = """<loop name="close" type="revolute"><predecessor link="l1"><origin xyz=".2 0 0"/></predecessor>
<successor link="other"><origin xyz="0 .3 0"/></successor><axis xyz="0 0 1"/></loop>"""


def test_loop_elements_become_loops():
    other = LINK.format("other") + JOINT.format("jo", "continuous", "base", "other", "0 0 1", "")
    text = chain(["continuous", "continuous"]).replace("</robot>", other + LOOP + "</robot>")
    mechanism = fgd.loads(text)
    (loop,) = mechanism.loops
    assert (loop.name, loop.kind, loop.predecessor, loop.successor) == ("close", "revolute", "l1", "other")
    assert np.array_equal(np.asarray(loop.predecessor_placement)[:3, 3], [0.2, 0, 0])
    assert np.array_equal(np.asarray(loop.successor_placement)[:3, 3], [0, 0.3, 0])
    assert mechanism.nv == 3
    with pytest.raises(fgd.ModelError, match="loop 'close' has it as successor"):
        fgd.loads(text.replace('successor link="other"', 'successor link="othr"'))


def test_elements_that_are_not_read_are_noted_once():
    text = chain(["continuous"]).replace("</robot>", "<material name='m'/><gear/><gear/></robot>")
    assert [w for w in fgd.loads(text).warnings if "not read" in w] == [
        "<text>:7: <gear>: elements <gear> are not read. The same holds for 1 more."
    ]


def test_what_says_nothing_is_not_noted():
    gazebo = "<gazebo><turnGravityOff>false</turnGravityOff><dampingFactor>0.0</dampingFactor><plugin/></gazebo>"
    gazebo += "<gazebo><gravity>true</gravity><static>false</static></gazebo>" + GEARED.format("1.0")
    gazebo += "<gazebo><velocity_decay><linear>0.0</linear></velocity_decay><selfCollide>true</selfCollide></gazebo>"
    mujoco = "<mujoco><compiler boundmass='0' meshdir='m' settotalmass='-1'/><option gravity='0 0 -9.81'/></mujoco>"
    mimic = "<mimic joint='j0'/>"
    gazebo += "<gazebo><plugin filename='libmimic.so'><joint>j0</joint><mimicJoint>j1</mimicJoint></plugin></gazebo>"
    control = "<ros2_control><joint name='j1'><param name='mimic'>j0</param></joint><joint name='j0'/></ros2_control>"
    text = chain(["revolute", "revolute"]).replace("</robot>", gazebo + mujoco + control + "</robot>")
    assert not fgd.loads(mimic.join(text.rsplit("</joint>\n", 1)).replace(mimic, mimic + "</joint>\n")).warnings


@pytest.mark.parametrize(
    ("lower", "upper", "limits"),
    [("-inf", "inf", None), ("-1", "inf", (-1, np.inf)), ("-1e16", "2", (-np.inf, 2)), ("-1.8e308", "1e17", None)],
)
def test_infinite_limits_are_none(lower, upper, limits):
    text = chain(["revolute"]).replace(
        'lower="-1" upper="2" effort="3"', f'lower="{lower}" upper="{upper}" effort="inf"'
    )
    mechanism = fgd.loads(text)
    assert mechanism.joint_by_name["j0"].limits == limits
    assert not mechanism.warnings


COUPLING = """<coupling name="geared"><predecessor link="{}"/><successor link="{}"/><ratio value="6.0"/></coupling>"""


def with_rotor(parent, coupling):
    """A chain of two with a rotor on one of its links, geared."""
    joint = JOINT.format("spin", "continuous", parent, "rotor", "0 0 1", "").replace(
        "<joint", '<joint independent="false"'
    )
    return chain(["continuous", "continuous"]).replace("</robot>", LINK.format("rotor") + joint + coupling + "</robot>")


def test_coupling_gears_a_rotor_to_a_joint():
    """M of the independent joints is G^T M G with q = G y, as generalized_rbda has it."""
    mechanism = fgd.loads(with_rotor("l0", COUPLING.format("l1", "rotor")))
    (coupling,) = mechanism.couplings
    assert (coupling.name, coupling.joint, coupling.source, coupling.ratio) == ("geared", "spin", "j1", 6.0)
    assert [joint.name for joint in mechanism.movable_joints if joint.actuated] == ["j0", "j1"]
    assert not any("not read" in warning for warning in mechanism.warnings)
    q, v = mechanism.random_state(0)
    assert q[2] == pytest.approx(6 * q[1])
    tau = np.array([0.3, -0.2, 0.0])
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    G = np.array([[1, 0], [0, 1], [0, 6]])
    M, h = fgd.mass_matrix(mechanism.tree, q), fgd.bias(mechanism.tree, q, v)
    np.testing.assert_allclose(a, G @ np.linalg.solve(G.T @ M @ G, G.T @ (tau - h)), rtol=1e-9)
    np.testing.assert_allclose(fgd.inverse_dynamics(mechanism, q, v, a).tau, tau, atol=1e-9)


@pytest.mark.parametrize("ends", [("l1", "rotor"), ("rotor", "l1"), ("l0", "l1"), ("base", "rotor")])
def test_couplings_of_several_joints_are_noted(ends):
    mechanism = fgd.loads(with_rotor("base", COUPLING.format(*ends)), file="geared.urdf")
    assert not mechanism.couplings
    (warning,) = [warning for warning in mechanism.warnings if "coupling" in warning]
    assert warning.startswith("geared.urdf:")
    assert "move freely" in warning


def test_bad_couplings_are_refused():
    good = with_rotor("l0", COUPLING.format("l1", "rotor"))
    for old, new, reason in (
        ('successor link="rotor"', 'successor link="rotr"', "coupling 'geared' has it as successor"),
        ('<ratio value="6.0"/>', "", "<ratio> is missing"),
        ('value="6.0"', 'value="x"', "not a number"),
    ):
        with pytest.raises(fgd.ModelError, match=reason):
            fgd.loads(good.replace(old, new))


def test_closures_beside_a_file_are_noted(tmp_path):
    (tmp_path / "r.urdf").write_text(chain(["continuous"]))
    (tmp_path / "r.yaml").write_text("closed_loop: [['base', 'l0']]\ntype: ['3d']\n")
    assert any("lists loop closures" in warning for warning in fgd.load(tmp_path / "r.urdf").warnings)
    assert len(fgd.load(tmp_path / "r.yaml").loops) == 1
