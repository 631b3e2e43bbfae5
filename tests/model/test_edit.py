"""New mechanisms from old ones, the package's own files, and closures from YAML."""

import sys
import types
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.kinematics import link_jacobian, link_poses

SAME = {"rtol": 1e-9, "atol": 1e-9}
TREES = [fgd.robots.random_tree(7, seed=seed, branching=1.5) for seed in range(4)]


@pytest.fixture(params=range(len(TREES)), ids=str)
def tree(request):
    return TREES[request.param]


@pytest.mark.parametrize("name", ["robot.urdf", "robot.xml", "robot"])
def test_a_file_that_is_no_json_is_not_named_as_another_format(name, tmp_path):
    with pytest.raises(fgd.InputError, match=r"ends otherwise.*'fgdyn convert robot\.json -o robot\.urdf'"):
        fgd.robots.rrr().save(tmp_path / name)
    assert not list(tmp_path.iterdir())


def kinetic_energy(mechanism, q, v):
    return 0.5 * v @ fgd.mass_matrix(mechanism, q) @ v


@pytest.mark.parametrize("robot", [*TREES, fgd.robots.four_bar(), fgd.robots.humanoid()], ids=lambda m: m.name)
def test_saved_mechanisms_come_back_exactly(robot, tmp_path):
    path = tmp_path / "robot.json"
    robot.save(path)
    read = fgd.load(path)
    assert read.fingerprint == robot.fingerprint
    assert read.warnings == robot.warnings
    read.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == path.read_text()


def test_fingerprint_sees_every_number(tree):
    heavier = tree.add_payload(tree.link_names[-1], 1e-12)
    assert heavier.fingerprint != tree.fingerprint
    assert tree.rename({}).fingerprint == tree.fingerprint


HEAD = '{"format": "factorgraph_dyn mechanism", "version": 1, "name": "x",\n'
BAD_JSON = {
    "not JSON": "{",
    '"format"': "{}",
    "version 9": '{"format": "factorgraph_dyn mechanism", "version": 9}',
    "occurs twice": '{"format": 1, "format": 2}',
    "not a finite": '{"format": NaN}',
    "unknown fields mas": HEAD + '"links": [{"name": "a", "mas": 1}]}',
    "not a number": HEAD + '"links": [{"name": "a", "mass": "1"}]}',
    "incomplete": HEAD + '"joints": [{"name": "a"}]}',
    "nested too deeply": '{"a":' + "[" * 100000,
}


@pytest.mark.parametrize("reason", BAD_JSON)
def test_bad_own_files_are_refused(reason):
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.loads(BAD_JSON[reason], file="bad.json")
    assert str(caught.value).startswith("bad.json:")


def test_locked_joints_leave_the_rest_of_the_mass_matrix(tree):
    q, _ = tree.random_state(0)
    locked = tree.joint_names[::2]
    smaller = tree.lock({name: q[tree.q_slice(name)] for name in locked})
    free = [name for name in tree.joint_names if name not in locked]
    assert list(smaller.joint_names) == free
    rows = np.concatenate([np.arange(tree.nv)[tree.v_slice(name)] for name in free])
    q_free = np.concatenate([q[tree.q_slice(name)] for name in free])
    M = fgd.mass_matrix(tree, q)[np.ix_(rows, rows)]
    np.testing.assert_allclose(fgd.mass_matrix(smaller, q_free), M, **SAME)


def test_a_lock_reaches_coupled_joints():
    links = tuple(fgd.Link(n, 1.0, (0, 0, 0), np.eye(3)) for n in "abc")
    joints = (fgd.Joint("x", "revolute", "a", "b"), fgd.Joint("y", "revolute", "a", "c"))
    geared = fgd.Mechanism("g", links, joints, couplings=(fgd.Coupling("xy", "y", "x", 2.0, 0.1),))
    locked = geared.lock({"x": 0.3})
    assert (locked.nv, locked.couplings) == (0, ())
    angle = np.arctan2(*locked.joint_by_name["y"].placement[[1, 0], 0])
    assert angle == pytest.approx(0.7)
    with pytest.raises(fgd.ModelError, match="lock only one"):
        geared.lock({"x": 0.3, "y": 0.0})


def test_payload_adds_its_own_energy(tree):
    q, v = tree.random_state(1)
    link = tree.link_names[-1]
    com, inertia = np.array([0.1, 0.2, 0.3]), np.diag([0.3, 0.4, 0.5])
    V = link_jacobian(tree, q, link) @ v
    G = fgd.Link("payload", 2.0, com, inertia).spatial_inertia
    loaded = tree.add_payload(link, 2.0, com, inertia)
    expected = kinetic_energy(tree, q, v) + 0.5 * V @ G @ V
    assert kinetic_energy(loaded, q, v) == pytest.approx(expected, rel=1e-10)


def test_floating_robot_on_another_base_moves_alike(tree):
    floating = tree.float_base()
    one_freedom = all(joint.nv in (1, 6) for joint in floating.movable_joints)
    q, v = floating.random_state(2)
    tip = tree.link_names[-1]
    other = floating.change_base(tip)
    assert other.base == floating.base
    if not one_freedom:
        pytest.skip("coordinates of reversed joints of several freedoms differ")
    # the same motion: same joint coordinates, the new floating link placed and moving as before
    q_other, v_other = q.copy(), v.copy()
    name = other.movable_joints[0].name
    T = link_poses(floating, q)[tip]
    joint_into = tree.topology.joint_into[tip]
    path = {joint.name for joint in tree.topology.path_to_base(tip)}
    assert other.joint_by_name[joint_into.name].parent == tip
    assert path <= set(other.joint_by_name)
    for joint in other.movable_joints[1:]:
        q_other[other.q_slice(joint.name)] = q[floating.q_slice(joint.name)]
        v_other[other.v_slice(joint.name)] = v[floating.v_slice(joint.name)]
    q_other[other.q_slice(name)] = other.joint_by_name[name].type.coordinates(None, 0.0, T)
    v_other[other.v_slice(name)] = link_jacobian(floating, q, tip) @ v
    assert kinetic_energy(other, q_other, v_other) == pytest.approx(kinetic_energy(floating, q, v), rel=1e-9)


WALKER = """<mujoco><worldbody>{0}
  <body name="torso" pos="0 0 1"><freejoint name="root"/><geom type="box" size=".1 .2 .3"/>
    <body name="leg" pos="0 .1 -.3"><joint name="hip" axis="0 1 0"/><geom size=".1" pos="0 .1 -.4"/></body></body>
</worldbody>{1}</mujoco>"""


@pytest.mark.parametrize(
    ("beside", "held"),
    [
        ("", ""),
        ('<site name="goal" pos="1 0 0"/>', ""),
        ('<body name="ball" pos="2 0 0"><freejoint name="free"/><geom size=".1"/></body>', ""),
        ("", '<equality><connect name="tether" body1="torso" anchor="0 0 .3"/></equality>'),
    ],
)
def test_a_floating_robot_floats_on_another_base_whatever_else_is_in_the_world(beside, held):
    walker = fgd.loads(WALKER.format(beside, held))
    other = walker.change_base("leg")
    assert (other.base, other.nv) == ("world", walker.nv)
    assert (other.joint_by_name["root"].parent, other.joint_by_name["root"].child) == ("world", "leg")
    assert [loop.name for loop in other.loops] == [loop.name for loop in walker.loops]
    q, v = walker.random_state(4)
    q_other, v_other = other.neutral(), np.zeros(other.nv)
    for name in walker.joint_names:
        q_other[other.q_slice(name)], v_other[other.v_slice(name)] = q[walker.q_slice(name)], v[walker.v_slice(name)]
    leg = fgd.pose(walker, q, "leg")
    q_other[other.q_slice("root")] = other.joint_by_name["root"].type.coordinates(None, 0.0, leg)
    v_other[other.v_slice("root")] = fgd.jacobian(walker, q, "leg") @ v
    assert fgd.energy(other, q_other, v_other) == pytest.approx(fgd.energy(walker, q, v), rel=1e-9)
    for name in walker.place_names:
        np.testing.assert_allclose(fgd.pose(other, q_other, name), fgd.pose(walker, q, name), atol=1e-9)
    np.testing.assert_allclose(other.close(q_other), q_other, atol=1e-6)


def floating_pair(kind, **effects):
    """Two bodies in space with a joint between them."""
    body = np.diag([0.2, 0.3, 0.25])
    place = fgd.translation(0.3, -0.2, 0.1)
    return fgd.Mechanism(
        "pair",
        (fgd.Link("world"), fgd.Link("A", 1.0, (0.1, 0, 0), body), fgd.Link("B", 2.0, (0, 0.2, 0.1), body)),
        (
            fgd.Joint("free", "floating", "world", "A", actuated=False),
            fgd.Joint("between", kind, "A", "B", place, axis=(0.6, 0, 0.8), **effects),
        ),
        gravity=(0, 0, 0),
    )


@pytest.mark.parametrize(
    ("kind", "effects"),
    [
        ("revolute", {"stiffness": 3.0, "rest": 0.4, "damping": 0.5, "friction": 0.3, "armature": 0.2}),
        ("helical", {"pitch": 0.1, "stiffness": 3.0, "rest": 0.4, "damping": 0.5, "friction": 0.3, "armature": 0.2}),
        ("prismatic", {"stiffness": 3.0, "rest": 0.4, "damping": 0.5}),
        ("universal", {"stiffness": (3, 4), "rest": (0.4, 0.1), "damping": (0.5, 1), "friction": (0.3, 0)}),
        ("universal", {"armature": (0.1, 0.4)}),
        ("spherical", {"damping": 0.5, "armature": 0.2}),
        ("planar", {"stiffness": (0, 0, 3.0), "rest": (0, 0, 0.4), "damping": (0, 0, 0.5), "friction": (0, 0, 0.3)}),
        ("planar", {"armature": (0, 0, 0.4)}),
        ("floating", {"damping": (0.5, 0.5, 0.5, 0, 0, 0)}),
    ],
)
def test_effects_of_joints_are_the_same_from_another_base(kind, effects):
    one = floating_pair(kind, **effects)
    other = one.change_base("B")
    q, v = one.random_state(5)
    solution, T = fgd.forward_dynamics(one, q, v, np.zeros(one.nv)), fgd.poses(one, q)
    q_other = np.zeros(other.nq)
    q_other[other.q_slice("free")] = other.joint_by_name["free"].type.coordinates(None, 0.0, T["B"])
    turned = other.joint_by_name["between"]
    _, placement = other.place("A")
    T_frame_child = np.linalg.inv(T["B"] @ np.asarray(turned.placement)) @ T["A"] @ np.linalg.inv(placement)
    q_other[other.q_slice("between")] = turned.type.coordinates(turned.axes, turned.pitch, T_frame_child)
    J = np.vstack([fgd.jacobian(other, q_other, name) for name in ("A", "B")])
    v_other = np.linalg.lstsq(J, np.concatenate([solution.twists[name] for name in ("A", "B")]), rcond=None)[0]
    again = fgd.forward_dynamics(other, q_other, v_other, np.zeros(other.nv))
    for name in ("A", "B"):
        np.testing.assert_allclose(again.twists[name], solution.twists[name], **SAME)
        np.testing.assert_allclose(again.accelerations[name], solution.accelerations[name], **SAME)
    assert sum(fgd.energy(other, q_other, v_other)) == pytest.approx(sum(fgd.energy(one, q, v)), rel=1e-10)


@pytest.mark.parametrize(
    ("kind", "effects", "named"),
    [
        ("planar", {"stiffness": (1, 0, 0)}, "stiffness"),
        ("planar", {"damping": 0.1}, "damping"),
        ("spherical", {"damping": (0.1, 0.2, 0.1)}, "damping"),
        ("spherical", {"friction": 0.1}, "friction"),
        ("floating", {"armature": 0.1}, "armature"),
    ],
)
def test_effects_that_no_reversed_joint_has_are_refused(kind, effects, named):
    with pytest.raises(fgd.ModelError, match=rf"'between' is {kind}, .* has {named} .* Set its {named} to 0"):
        floating_pair(kind, **effects).change_base("B")


def test_effects_of_a_floating_joint_stay_with_its_link():
    robot = fgd.robots.rrr().float_base()
    joint = replace(robot.joints[0], damping=0.1)
    damped = replace(robot, joints=(joint, *robot.joints[1:]))
    with pytest.raises(fgd.ModelError, match="floats and has damping"):
        damped.change_base("link3")
    assert damped.change_base(joint.child).joints[0].damping.any()


def test_base_changes_back(tree):
    one = tree
    for link in (tree.link_names[-1], tree.link_names[2], tree.base):
        one = one.change_base(link)
    if any(joint.nv > 1 for joint in tree.movable_joints):
        pytest.skip("coordinates of reversed joints of several freedoms differ")
    q, v = tree.random_state(3)
    np.testing.assert_allclose(fgd.mass_matrix(one, q), fgd.mass_matrix(tree, q), **SAME)
    np.testing.assert_allclose(fgd.bias(one, q, v), fgd.bias(tree, q, v), **SAME)


def test_subset_of_a_chain_is_its_end():
    arm = fgd.robots.puma560()
    q = arm.neutral()
    third = arm.topology.outward[2].parent
    part = arm.subset(base=third)
    assert part.base == third
    assert part.joint_names == arm.joint_names[2:]
    np.testing.assert_allclose(fgd.bias(part, q[2:], np.zeros(4)), fgd.bias(arm, q, np.zeros(6))[2:], **SAME)
    single = arm.subset(tips=[arm.topology.outward[1].child])
    assert single.joint_names == arm.joint_names[:2]
    with pytest.raises(fgd.InputError, match="not beyond"):
        arm.subset(base=third, tips=[arm.base])


def test_renaming_and_frames():
    arm = fgd.robots.rrr()
    joint, link = arm.joint_names[0], arm.link_names[-1]
    renamed = arm.rename({joint: "first", link: "hand"}, name="arm").add_frame("tool", "hand", np.eye(4))
    assert (renamed.name, renamed.joint_names[0]) == ("arm", "first")
    assert renamed.add_frame("tip", "tool").frames[-1].link == "hand"
    with pytest.raises(fgd.InputError, match="'gone' is not in"):
        arm.rename({"gone": "x"})
    with pytest.raises(fgd.InputError, match="'gone' is not in"):
        arm.add_payload("gone", 1.0)


FIVE_BAR = """<robot name="five_bar"><link name="base"/>
{}</robot>"""
SIDE = """<link name="{0}1"><inertial><origin xyz="0 0 .5"/><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1"/></inertial></link>
<link name="{0}2"><inertial><origin xyz="0 0 .5"/><mass value="1"/>
  <inertia ixx=".1" iyy=".1" izz=".1"/></inertial></link>
<link name="end_{0}"/>
<joint name="mot_{0}" type="continuous"><parent link="base"/><child link="{0}1"/>
  <origin xyz="{1} 0 0" rpy="0 {2} 0"/><axis xyz="0 1 0"/></joint>
<joint name="elbow_{0}" type="continuous"><parent link="{0}1"/><child link="{0}2"/>
  <origin xyz="0 0 1" rpy="0 {3} 0"/><axis xyz="0 1 0"/></joint>
<joint name="tip_{0}" type="fixed"><parent link="{0}2"/><child link="end_{0}"/><origin xyz="0 0 1.2"/></joint>"""


@pytest.mark.parametrize(
    "yaml",
    [
        "closed_loop: [['end_left', 'end_right']]\ntype: ['3d']\nname_mot: ['mot_left', 'mot_right']\n",
        "# note\nclosed_loop:\n  - [end_left, tip_right]  # a joint stands for its child\n"
        "type:\n  - 3D\nname_mot: [mot_left, mot_right]\njoint_name: []\njoint_type: []\n",
    ],
)
def test_closures_from_yaml(tmp_path, yaml):
    sides = SIDE.format("left", "-.5", "-.4", ".9") + SIDE.format("right", ".5", ".4", "-.9")
    (tmp_path / "bar.urdf").write_text(FIVE_BAR.format(sides))
    (tmp_path / "bar.yaml").write_text(yaml)
    mechanism = fgd.load(tmp_path / "bar.yaml")
    (loop,) = mechanism.loops
    assert (loop.kind, {loop.predecessor, loop.successor}) == ("spherical", {"end_left", "end_right"})
    assert [joint.name for joint in mechanism.movable_joints if joint.actuated] == ["mot_left", "mot_right"]
    q, v = mechanism.random_state(0)
    assert mechanism.closure_error(q, v) < 1e-8
    again = fgd.load(tmp_path / "bar.urdf", closures=tmp_path / "bar.yaml")
    assert again.fingerprint == mechanism.fingerprint


CLOSED = "closed_loop: [['end_left', 'end_right']]\n"


@pytest.mark.parametrize(
    ("yaml", "reason"),
    [
        ("closed_loop: [['a', 'end_right']]", "no link, frame or joint"),
        ("closed_loop: [['end_left', 'end_right']", "expected ',' or ']'"),
        ("closed_loop: [['end_left']]", "pair of names"),
        ("closed_loop: [['end_left', 'end_right']]\ntype: ['5d']", "types: 6d, 3d"),
        ("closed_loop: [['end_left', 'end_right']]\ntype: []", "one of 6d, 3d for every"),
        ("closed_loop: [['end_left', 'end_left']]", "same link"),
        ("closed_loop: [['end_left', 'end_right']]\nclosed_loop: []", "occurs twice"),
        ("closed_loop: [[&a end_left, *a]]", "aliases"),
        ("closed_loop: " + 5000 * "[" + 5000 * "]", "too deeply"),
        ("closed_loop: [" + 50_000 * "a," + "]", "100015 bytes, and a list of closures at most 100000"),
        (
            CLOSED + "motors: ['mot_left']",
            "bar.yaml:2: the key 'motors' is not known; keys: closed_loop, type",
        ),
        (CLOSED + "name_mot: ['']", "bar.yaml:2: 'name_mot' must be a list of names, none of them empty"),
        (CLOSED + "name_mot: 'mot_left'", "'name_mot' must be a list of names"),
        (CLOSED + "name_mot: ['mot']", "bar.yaml:2: the motor 'mot' may be several joints: mot_left, mot_right"),
        (CLOSED + "name_mot: ['mot_le']", "'mot_le' is no movable joint. Joints: mot_left, elbow_left, mot_right"),
        (CLOSED + "name_mot: ['tip_left']", "'tip_left' is no movable joint"),
        (CLOSED + "joint_name: ['elbow_left']", "must list a type for every joint"),
        (CLOSED + "joint_name: ['elbow']\njoint_type: [FIXED]", "bar.yaml:2: 'elbow' is no movable joint"),
        (CLOSED + "joint_name: [elbow_left]\njoint_type: [UJOINT_ZY]", "bar.yaml:3: .*types: spherical, cardan, fixed"),
    ],
)
def test_bad_closures_are_refused(tmp_path, yaml, reason):
    sides = SIDE.format("left", "-.5", "-.4", ".9") + SIDE.format("right", ".5", ".4", "-.9")
    (tmp_path / "bar.urdf").write_text(FIVE_BAR.format(sides))
    (tmp_path / "bar.yaml").write_text(yaml)
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.load(tmp_path / "bar.yaml")
    assert "bar.yaml:" in str(caught.value)


def test_robot_descriptions_by_name(tmp_path, monkeypatch):
    path = tmp_path / "robot.urdf"
    path.write_text("<robot name='described'><link name='a'/></robot>")
    package, module = types.ModuleType("robot_descriptions"), types.ModuleType("robot_descriptions.x_description")
    package.__path__ = []
    module.URDF_PATH = str(path)
    monkeypatch.setitem(sys.modules, "robot_descriptions", package)
    monkeypatch.setitem(sys.modules, "robot_descriptions.x_description", module)
    assert fgd.load("robot_descriptions:x_description").name == "described"
    with pytest.raises(fgd.ModelError, match="has no robot 'gone'"):
        fgd.load("robot_descriptions:gone")
    with pytest.raises(fgd.ModelError, match="no robot description's name"):
        fgd.load("robot_descriptions:os.path/../x")
    monkeypatch.setitem(sys.modules, "robot_descriptions", None)
    with pytest.raises(fgd.ModelError, match=r"pip install factorgraph_dyn\[descriptions\]"):
        fgd.load("robot_descriptions:x_description")


def test_another_base_keeps_the_tolerance():
    mechanism = fgd.robots.five_bar().tolerate(1e-3)
    assert mechanism.change_base(mechanism.link_names[-1]).closure_tolerance == 1e-3
