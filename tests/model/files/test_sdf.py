"""SDF: written from random trees in the format's own conventions, and each feature by itself."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.rotations import from_rpy
from factorgraph_dyn.model.files.urdf.writer import _rpy
from factorgraph_dyn.motion.kinematics import link_poses
from factorgraph_dyn.spatial import inverse_pose, pose

AGREES = 1e-9  # relative

SDF_KINDS = {"revolute": "revolute", "prismatic": "prismatic", "spherical": "ball", "universal": "universal",
             "helical": "screw", "fixed": "fixed", "continuous": "continuous"}  # fmt: skip


def numbers(values):
    return " ".join(repr(float(x)) for x in np.ravel(values))


def pose_text(T):
    return numbers([*T[:3, 3], *_rpy(T[:3, :3])])


def random_chain(rng, kinds):
    links, joints = [fgd.Link("world")], []
    for i, kind in enumerate(kinds):
        A = rng.normal(size=(3, 3))
        links.append(fgd.Link(f"l{i}", rng.uniform(1, 3), rng.normal(size=3), A @ A.T + np.eye(3)))
        T = pose(from_rpy(rng.uniform(-1, 1, 3)), rng.normal(size=3))
        parent = "world" if i == 0 else f"l{rng.integers(max(0, i - 2), i)}"
        axis = rng.normal(size=(2, 3)) if kind == "universal" else rng.normal(size=3)
        pitch = 0.3 if kind == "helical" else 0.0
        joints.append(fgd.Joint(f"j{i}", kind, parent, f"l{i}", T, axis, pitch, damping=0.1 * (kind != "fixed")))
    return fgd.Mechanism("chain", tuple(links), tuple(joints))


def written(mechanism, rng):
    """The mechanism as SDF, with link frames anywhere on the links."""
    neutral = np.concatenate([np.zeros(0), *(joint.type.neutral() for joint in mechanism.joints)])
    T_world = link_poses(mechanism, neutral)
    parts = []
    for link in mechanism.links[1:]:
        T_link_file = pose(from_rpy(rng.uniform(-1, 1, 3)), rng.normal(size=3))
        T_file_com = inverse_pose(T_link_file) @ pose(np.eye(3), link.com)
        T_world_file = T_world[link.name] @ T_link_file
        I = link.inertia  # noqa: E741
        parts.append(
            f"<link name='{link.name}'><pose>{pose_text(T_world_file)}</pose><inertial>"
            f"<pose>{pose_text(T_file_com)}</pose><mass>{link.mass!r}</mass><inertia>"
            + "".join(f"<i{a}{b}>{float(I['xyz'.index(a), 'xyz'.index(b)])!r}</i{a}{b}>"
                      for a, b in ("xx", "yy", "zz", "xy", "xz", "yz"))
            + "</inertia></inertial></link>"
        )  # fmt: skip
        joint = mechanism.topology.joint_into[link.name]
        axes = ""
        in_model = rng.random() < 0.5
        for tag, axis in zip(("axis", "axis2"), joint.axes, strict=False):
            xyz = T_world[link.name][:3, :3] @ axis if in_model else axis
            where = " expressed_in='__model__'" if in_model else ""
            axes += f"<{tag}><xyz{where}>{numbers(xyz)}</xyz><dynamics><damping>0.1</damping></dynamics></{tag}>"
        relative = "__model__" if rng.random() < 0.5 else ""
        T = T_world[link.name] if relative else inverse_pose(T_link_file)
        thread = f"<screw_thread_pitch>{joint.pitch * 2 * np.pi!r}</screw_thread_pitch>" if joint.pitch else ""
        damped = joint.kind not in ("fixed", "spherical")
        parts.append(
            f"<joint name='{joint.name}' type='{SDF_KINDS[joint.kind]}'><parent>{joint.parent}</parent>"
            f"<child>{joint.child}</child><pose relative_to='{relative}'>{pose_text(T)}</pose>"
            f"{axes if damped else ''}{thread}</joint>"
        )
    return f"<sdf version='1.7'><model name='chain'>{''.join(parts)}</model></sdf>"


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_come_back(seed):
    rng = np.random.default_rng(seed)
    kinds = rng.permutation(["revolute", "prismatic", "universal", "helical", "fixed", "continuous", "revolute"])
    ours = random_chain(rng, list(kinds))
    read = fgd.loads(written(ours, rng))
    assert read.joint_names == ours.joint_names
    q, v = ours.random_state(seed)
    M = fgd.mass_matrix(ours, q)
    assert np.abs(fgd.mass_matrix(read, q) - M).max() < AGREES * np.abs(M).max()
    h = fgd.bias(ours, q, v)
    assert np.abs(fgd.bias(read, q, v) - h).max() < AGREES * np.abs(h).max()


def test_ball_joint_comes_back_up_to_its_axes():
    rng = np.random.default_rng(0)
    ours = random_chain(rng, ["revolute", "spherical", "revolute"])
    read = fgd.loads(written(ours, rng))
    assert read.joint_by_name["j1"].kind == "spherical"
    q, _ = ours.random_state(0)
    np.testing.assert_allclose(fgd.mass_matrix(read, q), fgd.mass_matrix(ours, q), rtol=AGREES, atol=AGREES * 50)


BODY = "<inertial><mass>1</mass></inertial>"


def model(*parts, version="1.7"):
    return f"<sdf version='{version}'><model name='m'>{''.join(parts)}</model></sdf>"


def link(name, at="0 0 0 0 0 0", relative=""):
    return f"<link name='{name}'><pose relative_to='{relative}'>{at}</pose>{BODY}</link>"


def joint(name, kind, parent, child, inside="<axis><xyz>0 0 1</xyz></axis>"):
    return f"<joint name='{name}' type='{kind}'><parent>{parent}</parent><child>{child}</child>{inside}</joint>"


def place(mechanism, name):
    """The pose of a link or frame of the file at q = 0."""
    frames = {frame.name: frame for frame in mechanism.frames}
    poses = link_poses(mechanism, np.zeros(mechanism.nq))
    return poses[frames[name].link] @ frames[name].placement if name in frames else poses[name]


def test_poses_relative_to_frames_joints_and_links():
    mechanism = fgd.loads(
        model(
            link("a", "1 0 0 0 0 0"),
            "<frame name='f' attached_to='a'><pose>0 2 0 0 0 1.5707963267948966</pose></frame>",
            link("b", "3 0 0 0 0 0", "f"),
            joint("j", "revolute", "a", "b", "<pose>0 0 1 0 0 0</pose><axis><xyz>1 0 0</xyz></axis>"),
            link("c", "0 0 1 0 0 0", "j"),
            joint("k", "revolute", "b", "c"),
        )
    )
    np.testing.assert_allclose(place(mechanism, "b")[:3, 3], [1, 5, 0], atol=1e-12)
    np.testing.assert_allclose(place(mechanism, "c")[:3, 3], [1, 5, 2], atol=1e-12)
    np.testing.assert_allclose(place(mechanism, "f")[:3, 3], [1, 2, 0], atol=1e-12)


@pytest.mark.parametrize(
    ("version", "extra", "expected"),
    [
        ("1.7", "", [0, 0, 1]),
        ("1.7", " expressed_in='__model__'", [0, -1, 0]),
        ("1.7", " expressed_in='a'", [0, -1, 0]),
        ("1.4", "", [0, -1, 0]),  # older files write axes in the model's frame
        ("1.10", "", [0, 0, 1]),
    ],
)
def test_axis_frames(version, extra, expected):
    text = model(
        link("a"),
        link("b", "0 0 0 -1.5707963267948966 0 0"),
        joint("j", "revolute", "a", "b", f"<axis><xyz{extra}>0 0 1</xyz></axis>"),
        version=version,
    )
    np.testing.assert_allclose(fgd.loads(text).joint_by_name["j"].axes[0], expected, atol=1e-12)


def test_loops_and_joints_met_from_their_child():
    four_bar = model(
        link("a"), link("b", "0 0 1 0 0 0"), link("c", "1 0 1 0 0 0"), link("d", "1 0 0 0 0 0"),
        joint("ab", "revolute", "a", "b", "<axis><xyz>0 1 0</xyz></axis>"),
        joint("cb", "revolute", "c", "b", "<axis><xyz>0 1 0</xyz></axis>"),
        joint("dc", "revolute", "d", "c", "<axis><xyz>0 1 0</xyz></axis>"),
        joint("ad", "revolute", "a", "d", "<axis><xyz>0 1 0</xyz></axis>"),
    )  # fmt: skip
    mechanism = fgd.loads(four_bar)
    assert len(mechanism.loops) == 1
    assert mechanism.closure_error(np.zeros(3)) < 1e-12
    turned = fgd.loads(
        model(link("a"), link("b", "0 0 1 0 0 0"), joint("j", "revolute", "b", "a", "<axis><xyz>0 1 0</xyz></axis>"))
    )
    assert turned.joint_by_name["j"].parent == "a"
    # turning a by +q about y against b is turning b by -q against a
    R = link_poses(turned, np.array([0.3]))["b"][:3, :3]
    np.testing.assert_allclose(R, from_rpy(np.array([0, -0.3, 0])), atol=1e-12)


def test_nested_and_included_models(tmp_path):
    (tmp_path / "arm").mkdir()
    inner = model(link("tip", "0 0 1 0 0 0")).replace("name='m'", "name='arm'")
    (tmp_path / "arm/model.sdf").write_text(inner)
    outer = model(
        link("base"),
        "<include><uri>model://arm</uri><name>left</name><pose>0 1 0 0 0 0</pose></include>",
        "<model name='right'><pose>0 -1 0 0 0 0</pose>" + link("tip") + "</model>",
        joint("l", "revolute", "base", "left::tip"),
        joint("r", "fixed", "base", "right::tip", ""),
    )
    (tmp_path / "robot.sdf").write_text(outer)
    mechanism = fgd.load(tmp_path / "robot.sdf")
    assert set(mechanism.link_names) == {"world", "base", "left::tip", "right::tip"}
    np.testing.assert_allclose(place(mechanism, "left::tip")[:3, 3], [0, 1, 1], atol=1e-12)
    with pytest.raises(fgd.ModelError, match="outside the folder"):
        fgd.loads(outer.replace("model://arm", "../../arm"), file=str(tmp_path / "arm/x.sdf"), folder=tmp_path / "arm")


def test_free_models_float_or_are_fixed(tmp_path):
    path = tmp_path / "m.sdf"
    path.write_text(model(link("a", "0 0 2 0 0 0")))
    assert fgd.load(path).nv == 0
    assert fgd.load(path, floating_base=True).joint_names == ("floating_base",)


def test_gearbox_and_mimic_are_couplings():
    about_y = "<axis><xyz>0 1 0</xyz></axis>"
    mechanism = fgd.loads(
        model(
            link("base"), link("in"), link("out"), link("third"),
            joint("ji", "revolute", "base", "in", about_y), joint("jo", "revolute", "base", "out", about_y),
            joint("g", "gearbox", "in", "out", "<gearbox_ratio>4</gearbox_ratio><gearbox_reference_body>base"
                  "</gearbox_reference_body><axis><xyz>0 1 0</xyz></axis><axis2><xyz>0 -1 0</xyz></axis2>"),
            joint("jm", "revolute", "base", "third", "<axis><xyz>0 1 0</xyz><mimic joint='ji'><multiplier>2"
                  "</multiplier><offset>.5</offset><reference>.1</reference></mimic></axis>"),
        )
    )  # fmt: skip
    mimic, gear = sorted(mechanism.couplings, key=lambda coupling: coupling.ratio)
    assert (mimic.joint, mimic.source, mimic.ratio, mimic.offset) == ("jm", "ji", 2.0, pytest.approx(0.3))
    assert (gear.joint, gear.source, gear.ratio) == ("jo", "ji", 4.0)


def limited(lower, upper):
    limit = f"<limit><lower>{lower}</lower><upper>{upper}</upper></limit>"
    return model(link("a"), link("b"), joint("j", "revolute", "a", "b", f"<axis><xyz>0 0 1</xyz>{limit}</axis>"))


@pytest.mark.parametrize(
    ("lower", "upper", "limits"),
    [
        ("-inf", "inf", None),
        ("-INF", "Infinity", None),
        ("-1e16", "1e16", None),
        ("-1.79769e+308", "1.79769e+308", None),
        ("-1", "inf", (-1, np.inf)),
        ("-1e17", "2", (-np.inf, 2)),
        ("-1", "2", (-1, 2)),
    ],
)
def test_infinite_limits_are_none(lower, upper, limits):
    mechanism = fgd.loads(limited(lower, upper))
    assert mechanism.joint_by_name["j"].limits == limits
    assert not mechanism.warnings


@pytest.mark.parametrize(("lower", "upper"), [("inf", "inf"), ("-inf", "-1e16"), ("2", "1")])
def test_limits_that_nothing_is_between_are_noted(lower, upper):
    mechanism = fgd.loads(limited(lower, upper))
    assert mechanism.joint_by_name["j"].limits is None
    assert any("nothing is between" in warning for warning in mechanism.warnings)


@pytest.mark.parametrize("canonical", ["", "b"])
def test_the_model_itself_can_be_a_parent(canonical):
    """The model's frame is part of its canonical link; the joint is at its child."""
    text = model(
        link("a", "1 0 0 0 0 0"),
        link("b", "0 2 0 0 0 0"),
        link("c", "0 0 3 0 0 0"),
        joint("ab", "revolute", "a", "b"),
        joint("j", "revolute", "__model__", "c"),
    ).replace("name='m'", f"name='m' canonical_link='{canonical}'")
    mechanism = fgd.loads(text)
    assert mechanism.joint_by_name["j"].parent == (canonical or "a")
    assert mechanism.joint_by_name["fixed_base"].child == (canonical or "a")
    np.testing.assert_allclose(place(mechanism, "c")[:3, 3], [0, 0, 3], atol=1e-12)


def test_the_model_in_a_model_can_be_a_child():
    inner = (
        "<model name='n' canonical_link='c'>" + link("b") + link("c") + joint("bc", "fixed", "b", "c", "") + "</model>"
    )
    mechanism = fgd.loads(model(link("a"), inner, joint("j", "revolute", "a", "n::__model__")))
    assert mechanism.joint_by_name["j"].child == "n::c"


@pytest.mark.parametrize("order", [1, -1])
def test_a_link_and_a_joint_of_one_name(order):
    """As a frame the name means the link; the joint keeps its own pose."""
    knee = joint("b", "revolute", "a", "b", "<pose>0 0 .5 0 0 0</pose><axis><xyz>0 0 1</xyz></axis>")
    parts = [
        link("a"),
        link("b", "0 0 1 0 0 0"),
        knee,
        link("c", "1 0 0 0 0 0", "b"),
        joint("d", "fixed", "b", "c", ""),
    ]
    mechanism = fgd.loads(model(*parts[::order], version="1.6"))
    assert {"a", "b", "c"} < set(mechanism.link_names)
    np.testing.assert_allclose(place(mechanism, "c")[:3, 3], [1, 0, 1], atol=1e-12)
    base, child = ("c", "b") if order < 0 else ("a", "b")
    assert {mechanism.joint_by_name["b"].parent, mechanism.joint_by_name["b"].child} == {"a", child}
    assert mechanism.joint_by_name["fixed_base"].child == base
    assert any("share the name" in warning for warning in mechanism.warnings)


def test_a_link_called_world_is_not_the_world():
    mechanism = fgd.loads(model(link("world", "0 0 1 0 0 0"), link("b"), joint("j", "revolute", "world", "b")))
    assert mechanism.link_names == ("world", "m::world", "b")
    assert mechanism.joint_by_name["j"].parent == "m::world"
    np.testing.assert_allclose(place(mechanism, "m::world")[:3, 3], [0, 0, 1], atol=1e-12)
    assert any("called 'm::world'" in warning for warning in mechanism.warnings)


def world(*parts, version="1.7"):
    return f"<sdf version='{version}'><world name='w'>{''.join(parts)}</world></sdf>"


def named(name, *parts):
    return f"<model name='{name}'>{''.join(parts)}</model>"


ARM = link("a") + link("b", "0 0 1 0 0 0") + joint("j", "revolute", "a", "b")


def test_placement_frames():
    placed = f"<model name='n' placement_frame='tip'><pose>1 0 0 0 0 0</pose>{link('x')}{link('tip', '0 0 2 0 0 0')}"
    fixed = joint("k", "fixed", "x", "tip", "") + "</model>"
    mechanism = fgd.loads(model(link("a"), placed, fixed, joint("j", "revolute", "a", "n::x")))
    np.testing.assert_allclose(place(mechanism, "n::tip")[:3, 3], [1, 0, 0], atol=1e-12)
    np.testing.assert_allclose(place(mechanism, "n::x")[:3, 3], [1, 0, -2], atol=1e-12)


def test_the_folder_does_not_move_where_includes_are_sought(tmp_path):
    """Beside the main file, beside the including one, and in the folder of models above; the first wins."""
    arm = model(link("tip", "{} 0 0 0 0 0")).replace("name='m'", "name='arm'")
    robot = model(link("base"), "<include><uri>model://arm</uri></include>", joint("j", "revolute", "base", "arm::tip"))
    robots = tmp_path / "models" / "robot"
    (robots / "arm").mkdir(parents=True)
    (robots / "model.sdf").write_text(robot)
    (robots / "arm/model.sdf").write_text(arm.format(1))
    for folder in (None, robots, tmp_path):
        assert place(fgd.load(robots / "model.sdf", folder=folder), "arm::tip")[0, 3] == 1
    assert place(fgd.loads(robot, folder=robots), "arm::tip")[0, 3] == 1
    (tmp_path / "models/arm").mkdir()
    (tmp_path / "models/arm/model.sdf").write_text(arm.format(2))
    assert place(fgd.load(robots / "model.sdf", folder=tmp_path), "arm::tip")[0, 3] == 1
    (robots / "arm/model.sdf").unlink()
    (robots / "arm").rmdir()
    assert place(fgd.load(robots / "model.sdf", folder=tmp_path), "arm::tip")[0, 3] == 2
    with pytest.raises(fgd.ModelError, match="cannot be read"):
        fgd.load(robots / "model.sdf")


@pytest.mark.parametrize(
    ("word", "true"), [("1", True), ("True", True), (" TRUE ", True), ("False", False), ("", False)]
)
def test_booleans_are_written_in_letters_of_either_case(word, true):
    assert fgd.loads(model(f"<static>{word}</static>", ARM)).nv == (0 if true else 1)
    hinge = joint("j", "revolute", "a", "b")
    turned = model(link("a"), f"<link name='b'><pose degrees='{word}'>0 0 0 0 0 90</pose></link>", hinge)
    expected = from_rpy(np.array([0, 0, np.pi / 2 if true else 90.0]))
    np.testing.assert_allclose(fgd.pose(fgd.loads(turned), [0.0], "b")[:3, :3], expected, atol=1e-12)
    axis = f"<axis><xyz>0 1 0</xyz><use_parent_model_frame>{word}</use_parent_model_frame></axis>"
    hinge = joint("j", "revolute", "a", "b", axis)
    given = fgd.loads(model(link("a"), link("b", "0 0 0 0 0 1"), hinge)).joint_by_name["j"].axes
    np.testing.assert_allclose(given[0], [np.sin(1), np.cos(1), 0] if true else [0, 1, 0], atol=1e-12)


LEANING = "<frame name='f'><pose relative_to='n::l'/></frame><model name='n' {}><pose relative_to='f'/>{}</model>"
BAD = {
    "leans on itself": model(link("a", "0 0 0 0 0 0", "b"), link("b", "0 0 0 0 0 0", "a")),
    "is not in the model": model(link("a"), joint("j", "revolute", "a", "gone")),
    "used twice": model(link("a"), link("a")),
    "joint type 'hinge'": model(link("a"), link("b"), joint("j", "hinge", "a", "b")),
    "<axis> is missing": model(link("a"), link("b"), joint("j", "revolute", "a", "b", "")),
    "no <model>": "<sdf version='1.7'/>",
    "no version of SDF": model(link("a"), version="x"),
    "it must hold 6": model(link("a", "1 2 3")),
    "pose leans on itself": model(link("a"), LEANING.format("", link("l", relative="world"))),
    "or on more than 200 frames": model(link("a"), LEANING.format("placement_frame='l'", link("l"))),
    "'x' is used twice in the model": model(
        link("a"), joint("x", "fixed", "world", "a", ""), joint("x", "ball", "a", "a")
    ),
    "'r' is used twice in the world": world(named("r", ARM), named("r", ARM)),
    "'gone' is not in the model": model(link("a")).replace("name='m'", "name='m' canonical_link='gone'"),
    "attached to itself": model(link("a"), link("b"), joint("j", "fixed", "__model__", "b", "")).replace(
        "name='m'", "name='m' canonical_link='__model__'"
    ),
    "must be finite": limited("nan", "1"),
    "the text is 'yes'; it must be one of true, 1, false, 0": model(link("a"), "<static>yes</static>"),
    "the attribute 'degrees' is 'on'": model("<link name='a'><pose degrees='on'>0 0 0 0 0 0</pose></link>"),
}


@pytest.mark.parametrize("reason", BAD)
def test_bad_files_are_refused(reason):
    with pytest.raises(fgd.ModelError, match=reason) as caught:
        fgd.loads(BAD[reason], file="bad.sdf")
    assert str(caught.value).startswith("bad.sdf:1:")


@pytest.mark.parametrize("kind", ["revolute", "prismatic", "universal"])
def test_drakes_rotors_are_armature(kind):
    rotor = "<axis><xyz>0 0 1</xyz></axis><axis2><xyz>0 1 0</xyz></axis2><drake:rotor_inertia>0.3</drake:rotor_inertia>"
    mechanism = fgd.loads(
        model(link("a"), joint("j", kind, "world", "a", rotor + "<drake:gear_ratio>-10</drake:gear_ratio>"))
    )
    assert np.allclose(mechanism.joint_by_name["j"].armature, 30.0, rtol=1e-15)
    assert not mechanism.warnings
    negative = fgd.loads(model(link("a"), joint("j", kind, "world", "a", rotor.replace("0.3", "-0.3"))))
    assert not negative.joint_by_name["j"].armature.any()
    assert any("the reflected inertia of the rotor is -0.3" in found for found in negative.warnings)


@pytest.mark.parametrize("place", ["model", "link", "joint"])
def test_extensions_that_are_not_read_are_noted(place):
    extra = "<drake:linear_bushing_rpy/>"
    text = model(link("a"), joint("j", "revolute", "world", "a")).replace(f"</{place}>", f"{extra}</{place}>")
    found = fgd.loads(text).warnings
    assert any("elements <drake:linear_bushing_rpy> are not read" in warning for warning in found)
    assert not fgd.loads(text.replace("linear_bushing_rpy", "collision_filter_group")).warnings


@pytest.mark.parametrize("value", ["0.7", "0.0"])
def test_damping_about_the_axis_of_a_ball_is_noted(value):
    axis = f"<axis><xyz>0 1 0</xyz><dynamics><damping>{value}</damping></dynamics></axis>"
    warnings = fgd.loads(model(link("a"), joint("j", "ball", "world", "a", axis))).warnings
    assert any("a ball joint has no axis" in found for found in warnings) == (value == "0.7")
