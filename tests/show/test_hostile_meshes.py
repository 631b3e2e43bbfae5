"""Files of meshes that would take gigabytes or hours: each takes a bounded multiple of its size, or gives no mesh."""

import re
import tracemalloc

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.files import xml_tree
from factorgraph_dyn.show.view import looks, meshes, obj
from factorgraph_dyn.show.view.meshes import read_mesh
from factorgraph_dyn.show.view.triangles import Quota

MOST_MEMORY = 400_000_000  # bytes while a file is read
CORNERS = "0 0 0 1 0 0 0 1 0"
TRIANGLE = '<triangles><input semantic="VERTEX" source="#v" offset="0"/><p>0 1 2</p></triangles>'
POLYGON = '<polylist><input semantic="VERTEX" source="#v"/><vcount>{}</vcount><p>0 1 2</p></polylist>'


def collada(faces=TRIANGLE, nodes="", scene="", corners=CORNERS):
    return (
        f'<COLLADA><library_geometries><geometry id="g"><mesh><source id="p"><float_array>{corners}</float_array>'
        '</source><vertices id="v"><input semantic="POSITION" source="#p"/></vertices>'
        f"{faces}</mesh></geometry></library_geometries><library_nodes>{nodes}</library_nodes><library_visual_scenes>"
        f'<visual_scene id="s">{scene}</visual_scene></library_visual_scenes></COLLADA>'
    ).encode()


def levels(each, count):
    """Nodes of which each shows the next one several times: each ** count triangles."""
    inner = [f'<node id="{k}">{f"""<instance_node url="#{k + 1}"/>""" * each}</node>' for k in range(count)]
    return "".join(inner) + f'<node id="{count}"><instance_geometry url="#g"/></node>'


HOSTILE = {
    "face.obj": lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf " + b"1 2 3 " * 10_000_000,
    "words.stl": lambda: b"vertex 1 2 3\n" * 4_900_000,
    "floats.dae": lambda: collada(corners="1 " * 15_000_000),
    "polygons.dae": lambda: collada(POLYGON.format(500_000_000)),
    "attributes.dae": lambda: b"<COLLADA " + b" ".join(b'b%x=""' % k for k in range(1_500_000)) + b"/>",
    "comments.dae": lambda: b"<COLLADA>" + b"<!------>" * 3_000_000 + b"</COLLADA>",
    "places.dae": lambda: collada(
        scene="<node><instance_geometry url='#g'/></node>" * 1900, corners=" ".join(["1.5"] * 150_000)
    ),
    "nodes.dae": lambda: collada(nodes=levels(5, 8), scene='<node><instance_node url="#0"/></node>'),
    "itself.dae": lambda: collada(
        nodes='<node id="n"><instance_geometry url="#g"/><instance_node url="#n"/></node>',
        scene='<node><instance_node url="#n"/></node>',
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_files_take_little_memory_and_give_no_mesh(tmp_path, name):
    file = tmp_path / name
    file.write_bytes(HOSTILE[name]())
    tracemalloc.start()
    try:
        found = read_mesh(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert found is None
    assert peak < MOST_MEMORY


def test_numbers_that_fit_no_machine_word_give_no_mesh(tmp_path):
    file = tmp_path / "m.obj"
    file.write_text(f"v 0 0 0\nv 1 0 0\nv 0 1 0\nf {10**20} 2 3\n")
    assert read_mesh(file) is None


def test_a_corner_without_coordinates_shifts_no_others(tmp_path):
    file = tmp_path / "m.obj"
    file.write_text("v\nv 0 0 0\nv 1 0 0\nv 0 1 0\nf 2 3 4\n")
    assert read_mesh(file) is None


def test_polygons_of_a_piece_count_corners_from_the_start(tmp_path, monkeypatch):
    """Files are read in pieces; numbers of corners go on, and negative ones count back over their borders."""
    lines = [f"v {k} {k * k} 0\n" for k in range(200)]
    lines += ["f 1 2 3 4 5\r\n", "  f\t-1/1/1 -2//3 -200\n", "v 7 8 9 1 1 1\n", "f -1 1 2\n"]
    file = tmp_path / "m.obj"
    file.write_text("".join(lines), newline="")
    whole = read_mesh(file)
    monkeypatch.setattr(obj, "PIECE", re.compile(rb".{1,50}[^\r\n]*", re.DOTALL))
    pieces = read_mesh(file)
    assert len(whole.triangles) == 5
    np.testing.assert_array_equal(whole.corners, pieces.corners)
    np.testing.assert_array_equal(whole.triangles, pieces.triangles)


def test_all_meshes_of_a_page_share_what_may_be_read(tmp_path, monkeypatch):
    for k in range(4):
        (tmp_path / f"m{k}.obj").write_text(f"v 0 0 {k}\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" + "#" * 800)
    visuals = [fgd.Visual("base", "mesh", (1, 1, 1), mesh=f"m{k}.obj", folder=str(tmp_path)) for k in range(4)]
    robot = fgd.Mechanism("m", (fgd.Link("base"),), (), visuals=visuals)
    assert len(looks.looks(robot)["meshes"]) == 4
    monkeypatch.setattr(looks, "MOST_READ", 300)  # numbers; a file counts for 104 and has 12
    shown = looks.looks(robot)
    assert len(shown["meshes"]) == 2
    assert shown["missing"] == [0]


def test_what_a_failed_file_took_is_gone(tmp_path):
    file = tmp_path / "m.stl"
    file.write_text("vertex 1 2 3\n" * 100 + "vertex a b c\n")
    page = Quota(meshes.MOST_READ)
    assert read_mesh(file, page) is None
    assert page.left < meshes.MOST_READ - 300


def test_long_tags_are_refused(monkeypatch):
    monkeypatch.setattr(xml_tree, "MAX_TAG", 200_000)
    text = '<robot name="r"><link name="a"/>{}</robot>'
    assert fgd.loads(text.format(" " * 500_000)).link_names == ("a",)
    with pytest.raises(fgd.ModelError, match="a tag has more than 200000 bytes"):
        fgd.loads(text.format(f'<link name="{"b" * 500_000}"/>'))
