"""Shapes and meshes: what files say of them, which files may be read, and that dynamics know nothing of them."""

import json
import struct

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files.native.writer import to_json
from factorgraph_dyn.model.files.urdf.writer import to_urdf
from factorgraph_dyn.motion.kinematics import link_pose
from factorgraph_dyn.show.view import meshes
from factorgraph_dyn.show.view.looks import looks
from factorgraph_dyn.show.view.mesh_files import find_mesh
from factorgraph_dyn.show.view.meshes import read_mesh

OUTSIDE = ("../../m.stl", "/m.stl", "file:///{root}/m.stl", "package://../m.stl", "link.stl")
CORNERS = np.array([(0, 0, 0), (1, 0, 0), (0, 2, 0), (0, 0, 3)], dtype=float)
FACES = ((0, 2, 1), (0, 1, 3), (1, 2, 3), (0, 3, 2))

URDF = """<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material>
<link name="base"><visual><geometry><box size="1 2 3"/></geometry><material name="red"/></visual></link>
<link name="arm"><inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1"/></inertial>
<visual><origin xyz="0 0 1" rpy="0 1.5707963267948966 0"/>
<geometry><cylinder radius="0.1" length="2"/></geometry></visual>
<visual><geometry><mesh filename="{mesh}" scale="2 2 2"/></geometry></visual>
<visual><geometry><sphere radius="oops"/></geometry></visual></link>
<joint name="j" type="revolute"><parent link="base"/><child link="arm"/><axis xyz="0 0 1"/>
<limit lower="-1" upper="1"/></joint>
</robot>"""

MJCF = """<mujoco><compiler meshdir="assets"/><asset><mesh name="m" file="m.stl" scale="2 2 2"/></asset><worldbody>
<geom type="plane" size="1 1 1"/><body name="b" pos="0 0 1"><joint name="j" pos="0 0 0.5"/>
<geom type="capsule" fromto="0 0 0 0 0 1" size="0.1" rgba="0 1 0 1"/>
<geom type="box" size="1 2 3" pos="1 0 0" mass="1"/>
<geom type="ellipsoid" size="1 2 3" group="3" mass="1"/><geom type="mesh" mesh="m" mass="0"/>
</body></worldbody></mujoco>"""

SDF = """<sdf version="1.7"><model name="m"><link name="a"><pose>0 0 1 0 0 0</pose>
<visual name="v"><pose>1 0 0 0 0 0</pose>
<geometry><capsule><radius>0.1</radius><length>0.5</length></capsule></geometry>
<material><diffuse>0 0 1 1</diffuse></material></visual></link></model></sdf>"""


def binary_stl():
    facets = b"".join(struct.pack("<12fH", *[0.0] * 3, *CORNERS[list(face)].ravel(), 0) for face in FACES)
    return b" " * 80 + struct.pack("<I", len(FACES)) + facets


def text_stl():
    rows = [f"vertex {x:g} {y:g} {z:g}" for face in FACES for x, y, z in CORNERS[list(face)]]
    return ("solid s\n" + "\n".join(rows) + "\nendsolid").encode()


def obj():
    corners = "".join(f"v {x} {y} {z}\n" for x, y, z in CORNERS)
    return (corners + "".join(f"f {a + 1}/1/1 {b + 1}//2 {c - 4}\n" for a, b, c in FACES)).encode()


def collada():
    numbers = " ".join(f"{k} 0" for face in FACES for k in face)
    return f"""<COLLADA><asset><unit meter="0.01"/><up_axis>Y_UP</up_axis></asset>
    <library_geometries><geometry id="g"><mesh>
    <source id="p"><float_array>{" ".join(map(str, CORNERS.ravel()))}</float_array></source>
    <vertices id="v"><input semantic="POSITION" source="#p"/></vertices>
    <polylist count="4"><input semantic="VERTEX" source="#v" offset="0"/>
    <input semantic="NORMAL" source="#n" offset="1"/>
    <vcount>3 3 3 3</vcount><p>{numbers}</p></polylist></mesh></geometry></library_geometries><library_visual_scenes>
    <visual_scene id="s"><node><translate>0 0 100</translate><instance_geometry url="#g"/></node></visual_scene>
    </library_visual_scenes></COLLADA>""".encode()


@pytest.mark.parametrize(
    ("name", "make"), [("m.stl", binary_stl), ("m.STL", text_stl), ("m.obj", obj), ("m.dae", collada)]
)
def test_meshes_of_all_formats_are_the_same_body(tmp_path, name, make):
    file = tmp_path / name
    file.write_bytes(make())
    corners, triangles = read_mesh(file)
    expected = CORNERS
    if name == "m.dae":  # in centimetres, y up, a metre along z
        expected = (0.01 * (CORNERS + np.array((0, 0, 100)))) @ np.array(((1, 0, 0), (0, 0, -1), (0, 1, 0))).T
    assert len(corners) == len(triangles) == 4
    np.testing.assert_allclose(corners[np.lexsort(corners.T)], expected[np.lexsort(expected.T)], atol=1e-6)


@pytest.mark.parametrize(
    "content", [b"", b"f 1 2", b"v 1 2\nf 1 1 1", b"\x00" * 200, b"v nan 0 0\nf 1 1 1", b"<COLLADA/>"]
)
@pytest.mark.parametrize("name", ["m.stl", "m.obj", "m.dae", "m.txt"])
def test_damaged_meshes_are_no_meshes(tmp_path, name, content):
    (tmp_path / name).write_bytes(content)
    assert read_mesh(tmp_path / name) is None


def test_fine_meshes_are_made_coarser(tmp_path, monkeypatch):
    u, w = np.meshgrid(np.linspace(0, 3, 40), np.linspace(0, 6, 40))
    ball = np.column_stack([(np.sin(u) * np.cos(w)).ravel(), (np.sin(u) * np.sin(w)).ravel(), np.cos(u).ravel()])
    faces = "".join(f"f {k + 1} {k + 2} {k + 42} {k + 41}\n" for k in range(39 * 40) if k % 40 < 39)
    file = tmp_path / "ball.obj"
    file.write_text("".join(f"v {x} {y} {z}\n" for x, y, z in ball) + faces)
    fine = read_mesh(file)
    monkeypatch.setattr(meshes, "MOST_TRIANGLES", 500)
    coarse = read_mesh(file)
    assert len(fine.triangles) > 2000
    assert 100 < len(coarse.triangles) <= 500
    np.testing.assert_allclose(np.linalg.norm(coarse.corners, axis=1), 1.0, atol=1e-6)


def test_urdf_visuals_have_sizes_places_and_colours(tmp_path):
    (tmp_path / "urdf").mkdir()
    (tmp_path / "meshes").mkdir()
    (tmp_path / "meshes" / "m.stl").write_bytes(binary_stl())
    file = tmp_path / "urdf" / "r.urdf"
    file.write_text(URDF.format(mesh="../meshes/m.stl"))
    robot = fgd.load(file)
    assert [(v.link, v.shape, v.size.tolist()) for v in robot.visuals] == [
        ("base", "box", [1, 2, 3]),
        ("arm", "cylinder", [0.1, 2]),
        ("arm", "mesh", [2, 2, 2]),
    ]
    assert robot.visuals[0].colour.tolist() == [1, 0, 0, 1]
    np.testing.assert_allclose(robot.visuals[1].placement @ (0, 0, 1, 1), (1, 0, 1, 1), atol=1e-12)
    shown = looks(robot)
    assert (len(shown["visuals"]), len(shown["meshes"]), shown["missing"]) == (3, 1, [])
    assert np.max(shown["visuals"][2]["box"], axis=0) == pytest.approx([2, 4, 6])
    page = fgd.view(robot).page
    assert json.dumps(shown["meshes"][0]["corners"]) in page


def test_mjcf_and_sdf_visuals_are_where_the_geoms_are():
    robot = fgd.loads(MJCF)
    capsule, box, mesh = robot.visuals
    there = link_pose(robot, np.zeros(1), "b") @ capsule.placement  # visuals are in link frames, which joints have
    np.testing.assert_allclose(there[:3, 3], (0, 0, 1.5), atol=1e-12)
    assert (capsule.shape, capsule.size.tolist(), capsule.colour.tolist()) == ("capsule", [0.1, 1.0], [0, 1, 0, 1])
    assert (box.shape, box.size.tolist()) == ("box", [2, 4, 6])
    assert (mesh.mesh, mesh.size.tolist(), mesh.folder) == ("assets/m.stl", [2, 2, 2], "")
    (visual,) = fgd.loads(SDF).visuals
    assert (visual.shape, visual.size.tolist(), visual.colour.tolist()) == ("capsule", [0.1, 0.5], [0, 0, 1, 1])
    np.testing.assert_allclose(visual.placement[:3, 3], (1, 0, 0))


@pytest.mark.parametrize(
    "inside", ['<plane normal="0 0 1"/>', '<cdf filename="m.cdf"/>', '<box size="1 2 3"/><material name="red"/>', ""]
)
def test_what_is_no_shape_of_a_body_is_left_out(inside):
    """Other engines' files have planes, fields of distances and misplaced materials in their geometries."""
    urdf = f'<robot name="r"><link name="a"><visual><geometry>{inside}</geometry></visual></link></robot>'
    sdf = f'<sdf version="1.7"><model name="m"><link name="a"><visual name="v"><geometry>{inside}</geometry></visual>'
    assert [visual.shape for visual in fgd.loads(urdf).visuals] == ["box"] * ("box" in inside)
    assert not fgd.loads(f"{sdf}</link></model></sdf>").visuals


@pytest.mark.parametrize("name", OUTSIDE)
def test_meshes_outside_the_files_package_are_not_read(tmp_path, name):
    (tmp_path / "m.stl").write_bytes(binary_stl())
    folder = tmp_path / "package" / "inner"
    folder.mkdir(parents=True)
    (folder / "link.stl").symlink_to(tmp_path / "m.stl")
    visual = fgd.Visual("a", "mesh", (1, 1, 1), mesh=name.format(root=tmp_path), folder=str(folder))
    assert find_mesh(visual) is None
    if name != "link.stl":
        assert (
            find_mesh(fgd.Visual("a", "mesh", (1, 1, 1), mesh="x/m.stl", folder=""), [tmp_path]) == tmp_path / "m.stl"
        )


def test_packages_are_found_above_the_file(tmp_path):
    folder = tmp_path / "my_robot" / "urdf"
    folder.mkdir(parents=True)
    (tmp_path / "my_robot" / "m.stl").write_bytes(binary_stl())
    for name in ("package://my_robot/m.stl", "package:///my_robot/m.stl", "model://my_robot/m.stl", "../m.stl"):
        visual = fgd.Visual("a", "mesh", (1, 1, 1), mesh=name, folder=str(folder))
        assert find_mesh(visual) == tmp_path / "my_robot" / "m.stl"


def package_mesh(name, folder):
    return find_mesh(fgd.Visual("a", "mesh", (1, 1, 1), mesh=name, folder=str(folder)))


@pytest.mark.parametrize("kind", ["package", "model"])
def test_a_folder_is_no_package_by_its_name(tmp_path, kind):
    """A model in the user's home may not read what lies beside it, under whatever name it calls for."""
    for name in ("robot/urdf", "secrets", "robot/meshes"):
        (tmp_path / name).mkdir(parents=True)
    mesh = tmp_path / "secrets" / "m.stl"
    mesh.write_bytes(binary_stl())
    here = tmp_path / "robot" / "urdf"
    assert package_mesh(f"{kind}://secrets/m.stl", here) is None
    assert package_mesh(f"{kind}://{tmp_path.name}/secrets/m.stl", here) is None
    (tmp_path / "robot" / "meshes" / "m.stl").write_bytes(binary_stl())
    assert package_mesh(f"{kind}://meshes/m.stl", here) == tmp_path / "robot" / "meshes" / "m.stl"  # its own
    for mark in ("package.xml", "model.config"):
        (tmp_path / "secrets" / mark).touch()
        assert package_mesh(f"{kind}://secrets/m.stl", here) == mesh
        (tmp_path / "secrets" / mark).unlink()


def test_a_link_in_the_models_folder_makes_no_package(tmp_path):
    (tmp_path / "secrets").mkdir()
    (tmp_path / "secrets" / "m.stl").write_bytes(binary_stl())
    (tmp_path / "arm").mkdir()
    (tmp_path / "arm" / "parts").symlink_to(tmp_path / "secrets")
    assert package_mesh("package://parts/m.stl", tmp_path / "arm") is None


def test_packages_are_found_where_the_user_says(tmp_path, monkeypatch):
    (tmp_path / "all" / "arm").mkdir(parents=True)
    (tmp_path / "all" / "arm" / "m.stl").write_bytes(binary_stl())
    (tmp_path / "robot").mkdir()
    assert package_mesh("package://arm/m.stl", tmp_path / "robot") is None
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(tmp_path / "all"))
    assert package_mesh("package://arm/m.stl", tmp_path / "robot") == tmp_path / "all" / "arm" / "m.stl"


def test_missing_meshes_are_told_and_links_stay_to_be_seen():
    robot = fgd.loads(URDF.format(mesh="nowhere.stl"))
    assert looks(robot)["missing"] == [1]


def test_looks_have_no_part_in_dynamics_and_survive_edits():
    robot = fgd.loads(URDF.format(mesh="m.stl"))
    bare = fgd.Mechanism(robot.name, robot.links, robot.joints)
    assert robot.fingerprint == bare.fingerprint
    assert len(robot.float_base().visuals) == len(robot.change_base("arm").visuals) == 3
    assert {v.link for v in robot.lock(["j"]).merge_fixed().visuals} == {"base"}
    assert [v.link for v in robot.rename({"arm": "limb"}).visuals] == ["base", "limb", "limb"]
    assert len(robot.subset(base="arm").visuals) == 2
    turned = robot.change_base("arm")
    for old, new in zip(robot.visuals, turned.visuals, strict=True):
        at = fgd.pose(turned, np.zeros(1), "arm") @ fgd.pose(robot, np.zeros(1), old.link) @ old.placement
        np.testing.assert_allclose(fgd.pose(turned, np.zeros(1), new.link) @ new.placement, at, atol=1e-12)


@pytest.mark.parametrize("file", ["robot.json", "robot.urdf"])
def test_looks_are_saved_and_meshes_sought_from_where_they_are_saved(tmp_path, file):
    robot = fgd.loads(URDF.format(mesh="meshes/m.stl"))
    path = tmp_path / file
    path.write_text(to_json(robot) if file.endswith("json") else to_urdf(robot))
    found = fgd.load(path)
    assert found.fingerprint == robot.fingerprint
    for old, new in zip(robot.visuals, found.visuals, strict=True):
        assert (new.link, new.shape, new.mesh, new.folder) == (old.link, old.shape, old.mesh, str(tmp_path))
        np.testing.assert_allclose(new.size, old.size)
        np.testing.assert_allclose(new.placement, old.placement, atol=1e-15)
        assert (new.colour is None and old.colour is None) or np.allclose(new.colour, old.colour)


def test_a_saved_file_does_not_say_where_meshes_are_sought():
    text = to_json(fgd.loads(URDF.format(mesh="m.stl"))).replace('"mesh": "m.stl"', '"mesh": "m.stl", "folder": "/etc"')
    with pytest.raises(fgd.ModelError, match="unknown fields folder"):
        fgd.loads(text)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("a", "cone", 1), "Shape 'cone'"),
        (("a", "box", 1), "size"),
        (("a", "sphere", -1), "positive"),
        (("a", "box", "x"), "size"),
    ],
)
def test_bad_visuals_are_refused_in_words(arguments, words):
    with pytest.raises(fgd.ModelError, match=words):
        fgd.Visual(*arguments)


def test_visuals_are_on_links_that_there_are():
    with pytest.raises(fgd.ModelError, match="nowhere"):
        fgd.Mechanism("m", (fgd.Link("base"),), (), visuals=(fgd.Visual("nowhere", "sphere", 1.0),))
