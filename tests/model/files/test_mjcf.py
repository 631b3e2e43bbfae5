"""MJCF against MuJoCo: poses, dynamics, and what equalities hold."""

import mujoco
import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from factorgraph_dyn.compare.peers.mujoco import MujocoEngine
from factorgraph_dyn.motion.kinematics import integrate, link_poses

AGREES = 1e-10  # relative, with MuJoCo
DIFFERENCED = 1e-6  # relative, where the rate of MuJoCo's Jacobian is a difference quotient
POSES = 1e-12  # m and rotation entries

RICH = """
<mujoco model="rich">
  <compiler angle="degree" eulerseq="zYx" autolimits="true" balanceinertia="true" boundinertia="1e-5"/>
  <option gravity="1 -2 -9"/>
  <default>
    <joint armature=".1" damping=".2"/>
    <geom density="700"/>
    <default class="stiff"><joint stiffness="3" springref="20" frictionloss=".4"/>
      <default class="stiffer"><joint stiffness="9"/></default></default>
    <default class="limited"><joint range="-60 45"/><geom mass="1.5"/></default>
  </default>
  <worldbody>
    <geom type="plane" size="1 1 1"/>
    <site name="origin" pos="1 2 3" zaxis="1 1 0"/>
    <body name="arm" pos=".1 .2 .3" euler="10 20 30">
      <geom type="capsule" fromto="0 0 0 .2 .3 .1" size=".04"/>
      <joint name="a1" pos=".05 0 0" axis="1 2 3" ref="25"/>
      <joint name="a2" type="slide" pos="0 .1 0" axis="0 1 1" ref=".3" class="stiff" springref=".1"/>
      <joint name="a3" axis="0 0 1" class="stiffer"/>
      <body name="fixed" pos="0 0 .1" axisangle="0 1 1 40">
        <geom type="box" size=".1 .2 .05" pos=".1 0 0" quat="1 .2 .3 .4"/>
        <geom type="ellipsoid" size=".1 .2 .3" xyaxes="1 1 0 0 1 1"/>
        <body name="ball" pos=".3 0 0" childclass="limited">
          <joint name="b" type="ball" pos="0 .1 .05" damping="1" range="0 90"/>
          <geom type="cylinder" size=".1 .2"/>
          <frame pos="0 0 .2" euler="0 90 0">
            <body name="framed" pos=".1 0 0">
              <joint name="f" axis="0 1 0" pos=".1 .2 .3"/>
              <geom type="sphere" size=".1" pos="0 .1 0"/>
              <site name="tip" pos=".1 .1 .1" euler="30 0 0"/>
            </body>
          </frame>
        </body>
      </body>
    </body>
    <body name="free" pos="3 3 3" quat="0 1 0 0">
      <freejoint name="root"/>
      <inertial pos=".1 .1 0" mass="3" fullinertia=".3 .4 .5 .01 .02 .03"/>
      <body name="tail" pos="0 .2 0"><joint axis="1 0 0"/>
        <inertial pos="0 0 .1" quat="1 1 0 0" mass="1" diaginertia=".1 .2 .25"/></body>
    </body>
  </worldbody>
</mujoco>"""


def engine_for(text, tmp_path):
    path = tmp_path / "model.xml"
    path.write_text(text)
    mechanism = fgd.load(path)
    return mechanism, MujocoEngine.load(mechanism.tree, path)


def test_rich_model_agrees_with_mujoco(tmp_path):
    mechanism, engine = engine_for(RICH, tmp_path)
    assert compare_with_engine(mechanism, engine, states=10).within(AGREES)


def test_poses_of_bodies_and_sites_agree(tmp_path):
    mechanism, engine = engine_for(RICH, tmp_path)
    frames = {frame.name: frame for frame in mechanism.frames}
    for seed in range(5):
        q, v = mechanism.random_state(seed)
        engine.set_state(q, v)
        poses = link_poses(mechanism, q)
        for i in range(1, engine.model.nbody):
            name = engine.model.body(i).name
            T = poses[name] if name not in frames else poses[frames[name].link] @ frames[name].placement
            np.testing.assert_allclose(T[:3, 3], engine.data.xpos[i], atol=POSES)
            np.testing.assert_allclose(T[:3, :3].ravel(), engine.data.xmat[i], atol=POSES)
        for name in ("tip", "origin"):
            T = poses[frames[name].link] @ frames[name].placement
            np.testing.assert_allclose(T[:3, 3], engine.data.site(name).xpos, atol=POSES)
            np.testing.assert_allclose(T[:3, :3].ravel(), engine.data.site(name).xmat, atol=POSES)


def test_names_of_generated_parts():
    mechanism = fgd.loads(RICH)
    assert mechanism.joint_names == ("a1", "a2", "a3", "b", "f", "root", "tail_hinge")
    assert {"arm_before_a2", "arm_before_a3"} < set(mechanism.link_names)
    assert mechanism.joint_by_name["f"].limits == pytest.approx(np.deg2rad([-60, 45]))


LOOPY = """
<mujoco>
  <compiler angle="radian"/>
  <default><geom type="capsule" size=".02"/></default>
  <worldbody>
    <body name="crank"><joint name="crank" axis="0 1 0"/><geom fromto="0 0 0 0 0 .3"/>
      <body name="rod" pos="0 0 .3"><joint name="rod" axis="0 1 0" ref=".2"/><geom fromto="0 0 0 .8 0 0"/>
        <site name="end" pos=".8 0 0"/></body></body>
    <body name="rocker" pos=".8 0 0"><joint name="rocker" axis="0 1 0"/><geom fromto="0 0 0 0 0 .3"/></body>
    <body name="gear" pos="0 1 0"><joint name="gear" axis="0 0 1" ref=".4"/><geom fromto="0 0 0 .2 0 0"/></body>
    <body name="held" pos="0 2 0"><freejoint/><geom fromto="0 0 0 .2 0 0"/></body>
    <body name="slow" pos="0 3 0"><joint name="slow" axis="1 0 0"/><geom fromto="0 0 0 0 .2 0"/></body>
  </worldbody>
  <equality>
    <connect name="pin" body1="rod" body2="rocker" anchor=".8 0 0"/>
    <weld name="grip" body1="rocker" body2="held" relpose="0 .1 .2 .9 .1 .2 .3"/>
    <joint joint1="gear" joint2="crank" polycoef=".1 -2 0 0 0"/>
    <tendon tendon1="t"/>
  </equality>
  <tendon><fixed name="t"><joint joint="slow" coef="2"/><joint joint="gear" coef="-3"/></fixed></tendon>
  <actuator><motor joint="crank" gear="7"/></actuator>
</mujoco>"""


def test_closed_states_satisfy_mujocos_equalities(tmp_path):
    mechanism, engine = engine_for(LOOPY, tmp_path)
    assert [loop.kind for loop in mechanism.loops] == ["spherical", "fixed"]
    assert len(mechanism.couplings) == 2
    for seed in range(3):
        q, v = mechanism.random_state(seed)
        engine.set_state(q, v)
        rows = engine.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        assert rows.sum() == 3 + 6 + 2
        assert np.abs(engine.data.efc_pos[rows]).max() < 1e-7
        J = engine.data.efc_J.reshape(-1, engine.model.nv)[rows]
        assert np.abs(J @ engine.data.qvel).max() < 1e-7


def test_closed_forward_dynamics_agree_with_mujocos_constraints_made_hard(tmp_path):
    """M a + h = tau + J^T f with J a + J_dot v = 0, all from MuJoCo's own M, h and J."""
    mechanism, engine = engine_for(LOOPY, tmp_path)

    def jacobian(q, v):
        engine.set_state(q, v)
        rows = engine.data.efc_type == mujoco.mjtConstraint.mjCNSTR_EQUALITY
        return engine.data.efc_J.reshape(-1, engine.model.nv)[rows] @ engine._X(q)

    step = 1e-5
    for seed in range(3):
        q, v = mechanism.random_state(seed)
        tau = np.random.default_rng(seed).normal(size=mechanism.nv)
        J = jacobian(q, v)
        ahead, behind = (jacobian(integrate(mechanism, q, v, s), v) for s in (step, -step))
        rate = (ahead - behind) @ v / (2 * step)
        M, h = engine.mass_matrix(q), engine.forces(q, v)
        zeros = np.zeros((len(J), len(J)))
        kkt = np.block([[M, J.T], [J, zeros]])
        theirs = np.linalg.lstsq(kkt, np.concatenate([tau - h, -rate]), rcond=1e-10)[0][: mechanism.nv]
        ours = fgd.forward_dynamics(mechanism, q, v, tau).a
        assert np.abs(ours - theirs).max() < DIFFERENCED * np.abs(theirs).max()


def test_only_driven_joints_are_actuated():
    mechanism = fgd.loads(LOOPY)
    assert [joint.name for joint in mechanism.movable_joints if joint.actuated] == ["crank"]


def test_actuation_matrix_agrees_with_mujoco(tmp_path):
    actuators = """<actuator><motor joint="a1" gear="7"/><position joint="a2"/><general tendon="t" gear="2"/>
      <motor joint="b" gear="1 2 3"/><motor site="tip" gear="1 0 0 0 0 0"/></actuator>
      <tendon><fixed name="t"><joint joint="a3" coef="2"/><joint joint="f" coef="-3"/></fixed></tendon>"""
    text = RICH.replace("</mujoco>", actuators + "</mujoco>").replace("<default>", '<default><general gear="5"/>', 1)
    mechanism, engine = engine_for(text, tmp_path)
    names, B = fgd.load_actuation(tmp_path / "model.xml", mechanism)
    assert names == ("actuator_1", "actuator_2", "actuator_3", "actuator_4")
    engine.set_state(*mechanism.random_state(0))
    for i in range(4):
        tau = np.zeros(engine.model.nv)
        engine.data.ctrl[:] = 0.0
        engine.data.ctrl[i] = 1.0
        mujoco.mj_forward(engine.model, engine.data)
        on, theirs = engine.data.qfrc_actuator.copy(), engine.data.actuator_force.copy()
        assert theirs[i] != 0
        engine.data.ctrl[:] = 0.0
        mujoco.mj_forward(engine.model, engine.data)
        tau = (on - engine.data.qfrc_actuator) / (theirs[i] - engine.data.actuator_force[i])
        np.testing.assert_allclose(B[:, i], tau, atol=1e-12)


def test_armature_and_damping_of_actuators_and_tendons(tmp_path):
    extras = """<actuator><motor joint="a1" gear="7" armature=".02" damping=".3"/></actuator>
      <tendon><fixed name="t" damping=".2" armature=".1"><joint joint="a3" coef="2"/></fixed></tendon>
      <actuator><position tendon="t" gear="3" armature=".5"/></actuator>"""
    mechanism, engine = engine_for(RICH.replace("</mujoco>", extras + "</mujoco>"), tmp_path)
    assert mechanism.joint_by_name["a1"].armature == pytest.approx(0.1 + 49 * 0.02)
    assert compare_with_engine(mechanism, engine, states=3).within(AGREES)


def test_equality_of_one_joint_locks_it():
    text = LOOPY.replace('joint2="crank" polycoef=".1 -2 0 0 0"', 'polycoef=".1 0 0 0 0"')
    mechanism = fgd.loads(text.replace('<tendon tendon1="t"/>', ""))
    assert mechanism.joint_by_name["gear"].kind == "fixed"


def test_total_mass_is_scaled(tmp_path):
    text = RICH.replace('angle="degree"', 'angle="degree" settotalmass="20"')
    mechanism, engine = engine_for(text, tmp_path)
    assert sum(link.mass for link in mechanism.links) == pytest.approx(20)
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


def test_included_files_are_read_in_the_folder_only(tmp_path):
    (tmp_path / "inner").mkdir()
    part = '<mujocoinclude><body name="b"><joint name="j"/><geom size=".1"/></body></mujocoinclude>'
    (tmp_path / "part.xml").write_text(part)
    for name, path in (("ok.xml", "part.xml"), ("inner/bad.xml", "../part.xml")):
        text = f"<mujoco><worldbody><include file='{path}'/></worldbody></mujoco>"
        (tmp_path / name).write_text(text)
    assert fgd.load(tmp_path / "ok.xml").joint_names == ("j",)
    with pytest.raises(fgd.ModelError, match="outside the folder"):
        fgd.load(tmp_path / "inner/bad.xml")
    assert fgd.load(tmp_path / "inner/bad.xml", folder=tmp_path).nv == 1
    (tmp_path / "self.xml").write_text("<mujoco><worldbody><include file='self.xml'/></worldbody></mujoco>")
    with pytest.raises(fgd.ModelError, match="included twice"):
        fgd.load(tmp_path / "self.xml")


def include_tree(folder, files):
    """Files by their paths; a text without brackets is the body of that name, with a joint, in a file of its own."""
    for path, text in files.items():
        (folder / path).parent.mkdir(exist_ok=True, parents=True)
        body = f"<worldbody><body name='{text}'><joint/><geom size='.1'/></body></worldbody>"
        (folder / path).write_text(f"<mujoco>{text if '<' in text else body}</mujoco>")
    return folder / "main.xml"


INCLUDE = "<include file='{}'/>".format
NESTED = {
    "beside the including file": {"sub/b.xml": "near"},
    "beside the main file": {"b.xml": "main"},
    "beside both": {"b.xml": "main", "sub/b.xml": "near"},
    "two deep": {"sub/b.xml": INCLUDE("deep/c.xml"), "sub/deep/c.xml": "never", "deep/c.xml": "main"},
    "two deep, beside": {"sub/b.xml": INCLUDE("c.xml"), "sub/c.xml": "near"},
    "with a backslash": {"sub/b.xml": INCLUDE("deep\\c.xml"), "deep/c.xml": "main"},
}


@pytest.mark.parametrize("case", NESTED)
def test_nested_includes_are_found_where_mujoco_finds_them(case, tmp_path):
    files = {"main.xml": INCLUDE("sub/a.xml"), "sub/a.xml": INCLUDE("b.xml"), **NESTED[case]}
    path = include_tree(tmp_path, files)
    theirs = mujoco.MjModel.from_xml_path(str(path))
    assert fgd.load(path).link_names == tuple(theirs.body(i).name for i in range(theirs.nbody))


def test_nested_include_that_mujoco_takes_from_outside_is_refused(tmp_path):
    files = {"sub/a.xml": INCLUDE("../b.xml"), "b.xml": "inside", "main.xml": INCLUDE("sub/a.xml")}
    path = include_tree(tmp_path / "model", files)
    include_tree(tmp_path, {"b.xml": "outside"})
    with pytest.raises(fgd.ModelError, match="outside the folder"):
        fgd.load(path)
    assert fgd.load(path, folder=tmp_path).link_names[-1] == "outside"


def masses(model):
    return {model.body(i).name: model.body_mass[i] for i in range(1, model.nbody)}


STATIC = (
    "<body name='static'><geom size='.1' mass='3'/></body><body name='held'><inertial pos='0 0 0' mass='5'/></body>"
)
MOVING = (
    "<body name='moving'><joint/><geom size='.1' mass='2'/><body name='on'><geom size='.1' mass='1'/></body></body>"
)


@pytest.mark.parametrize("extra", ["", "boundmass='4'", "inertiafromgeom='true'", "fusestatic='true'"])
def test_total_mass_is_shared_with_static_bodies(extra):
    world = f"<geom size='.1' mass='7'/>{STATIC}{MOVING}".replace("mass='5'/>", "mass='5' diaginertia='1 1 1'/>")
    text = f"<mujoco><compiler settotalmass='12' {extra}/><worldbody>{world}</worldbody></mujoco>"
    theirs = mujoco.MjModel.from_xml_string(text)
    ours = {link.name: link.mass for link in fgd.loads(text).links}
    if "fusestatic" in extra:  # links that MuJoCo has merged
        assert sum(ours.values()) == pytest.approx(12)
        assert ours["moving"] + ours["on"] == pytest.approx(theirs.body("moving").mass[0])
    else:
        assert {name: ours[name] for name in masses(theirs)} == pytest.approx(masses(theirs))


@pytest.mark.parametrize("geom", ["", "<geom size='.1' mass='0'/>", "<geom size='.1' group='5'/>", "<geom size='.1'/>"])
def test_inertial_counts_where_no_geom_does(geom, tmp_path):
    inertial = "<inertial pos='.1 .2 0' mass='5' diaginertia='1 2 2.5'/>"
    text = f"""<mujoco><compiler inertiafromgeom="true" inertiagrouprange="0 4"/>
      <worldbody><body><joint/>{inertial}{geom}</body></worldbody></mujoco>"""
    mechanism, engine = engine_for(text, tmp_path)
    assert mechanism.links[1].mass == pytest.approx(engine.model.body_mass[1])
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


WELDED = """<mujoco><default><geom size=".1" contype="0" conaffinity="0"/></default><worldbody>
  <body name="a" pos="0 0 1" euler="10 20 30"><joint axis="0 1 0"/><geom pos=".3 0 .1"/>
    <body name="b" pos=".3 0 .1"><joint axis="1 1 0"/><geom/><site name="p" pos=".1 .2 .3" euler="5 0 9"/></body></body>
  <body name="c" pos="1 0 0" euler="5 -20 3"><freejoint/><geom/><site name="s" pos=".3 .1 .2" euler="20 0 0"/></body>
</worldbody><equality><weld {}/></equality></mujoco>"""
WELDS = [
    'body1="b" body2="c"',
    'body1="b" body2="c" anchor=".1 .2 .3"',
    'body1="b" body2="c" relpose=".1 .2 .3 1 .1 .2 .3"',
    'body1="b" body2="c" relpose=".1 .2 .3 1 .1 .2 .3" anchor=".4 .1 0"',
    'site1="p" site2="s"',
]


@pytest.mark.parametrize("torquescale", [0, 0.5])
@pytest.mark.parametrize("weld", WELDS)
def test_welds_hold_what_mujocos_hold(weld, torquescale, tmp_path):
    mechanism, engine = engine_for(WELDED.format(f'{weld} torquescale="{torquescale}"'), tmp_path)
    q, v = mechanism.random_state(3)
    engine.set_state(q, v)
    assert mechanism.loops[0].kind == ("fixed" if torquescale else "spherical")
    assert np.abs(engine.data.efc_pos).max() < 1e-7
    theirs = engine.data.efc_J.reshape(-1, mechanism.nv) @ engine._X(q)
    ours = fgd.constraints(mechanism, q, v).J
    rank = np.linalg.matrix_rank(theirs)
    assert rank == np.linalg.matrix_rank(ours) == (6 if torquescale else 3)
    assert np.linalg.matrix_rank(np.vstack([theirs, ours]), tol=1e-7) == rank


@pytest.mark.parametrize("actuator", [
    '<dcmotor joint="j" motorconst=".1" resistance="2" damping=".7" gear="3" armature=".05"/>',
    '<damper joint="j" kv="1" ctrlrange="0 1" damping=".7" gear="3"/>',
    '<cylinder joint="j" damping=".7" gear="3"/>', '<pid joint="j" kp="1" damping=".7" gear="3"/>',
    '<muscle joint="j" lengthrange="-1 1" damping=".7" gear="3"/>',
])  # fmt: skip
def test_damping_of_every_actuator_acts(actuator, tmp_path):
    text = f"<mujoco><worldbody>{BODY}</worldbody><actuator>{actuator}</actuator></mujoco>"
    mechanism, engine = engine_for(text.format('<geom size=".1" pos=".3 0 0"/>'), tmp_path)
    assert mechanism.joint_by_name["j"].damping == pytest.approx(9 * 0.7)
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


@pytest.mark.parametrize("default", [
    "<motor damping='1'/><position damping='2'/>", "<position damping='2'/><motor damping='1'/>",
    "<motor damping='5'/><default class='c'><general damping='3'/></default>",
    "<cylinder damping='5'/><default class='c'><motor gear='3'/></default>",
])  # fmt: skip
def test_actuators_of_all_kinds_share_their_defaults(default, tmp_path):
    chosen = "class='c'" if "class" in default else ""
    text = f"""<mujoco><default>{default}</default><worldbody>{BODY}</worldbody>
      <actuator><motor joint='j' {chosen}/></actuator></mujoco>"""
    mechanism, engine = engine_for(text.format('<geom size=".1" pos=".3 0 0"/>'), tmp_path)
    assert mechanism.joint_by_name["j"].damping > 0
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


BODY = "<body name='b'><joint name='j'/>{}</body>"
BAD = {
    "comes from a mesh": BODY.format("<geom type='mesh' mesh='m'/>"),
    "polynomial of higher degree": BODY.format("<geom size='.1'/>")
    + BODY.format("<geom size='.1'/>").replace("'b'", "'c'").replace("'j'", "'k'")
    + "</worldbody><equality><joint joint1='j' joint2='k' polycoef='0 1 2 0 0'/></equality><worldbody>",
    "is not read. Expand it": "<body><replicate count='3'/></body>",
    "default class 'gone'": BODY.format("<geom class='gone' size='.1'/>"),
    "default class 'lost'": "</worldbody><actuator><motor joint='j' class='lost'/></actuator><worldbody>",
    "needs 1 positive sizes": BODY.format("<geom/>"),
    "joint type 'bad'": "<body><joint type='bad'/></body>",
    "only joint of a body of the world": "<body><body><freejoint/></body></body>",
    "given twice": "<body euler='0 0 0' zaxis='0 0 1'/>",
    "defined twice": "<body name='x'/><body name='x'/>",
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_files_are_refused_with_their_line(reason):
    text = f"<mujoco>\n<worldbody>\n{BAD[reason]}</worldbody></mujoco>"
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.loads(text, file="bad.xml")
    assert str(caught.value).startswith("bad.xml:3:")


ODD = {
    "springs act on hinges": "<body><joint type='ball' stiffness='1'/><geom size='.1'/></body>",
    "gravcomp is not used": "<body gravcomp='1'><joint/><geom size='.1'/></body>",
    "is empty": "<body><joint range='3 3'/><geom size='.1'/></body>",
    "armature of a free joint acts": "<body><joint type='free' armature='1'/><geom size='.1'/></body>",
    "frictionloss of a free joint acts": "<body><joint type='free' frictionloss='1'/><geom size='.1'/></body>",
    "springyield is not used": "<body><joint stiffness='1' springyield='1'/><geom size='.1'/></body>",
}


@pytest.mark.parametrize("warning", ODD)
def test_what_is_left_out_is_noted(warning):
    mechanism = fgd.loads(f"<mujoco><worldbody>{ODD[warning]}</worldbody></mujoco>")
    assert any(warning in found for found in mechanism.warnings)


def test_damping_of_a_turned_free_body_is_mujocos(tmp_path):
    body = "<body><joint type='free' damping='2'/><geom size='.1' pos='.3 0 0'/></body>"
    mechanism, engine = engine_for(f"<mujoco><worldbody>{body}</worldbody></mujoco>", tmp_path)
    assert not mechanism.warnings
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)
