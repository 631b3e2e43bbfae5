"""What people do in their first hour: messages name the right call, placements are written down, oddities are told."""

from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

import factorgraph_dyn as fgd


def test_a_text_is_for_loads():
    text = '<robot name="r"><link name="a"/>' + "<!-- much -->" * 1000 + "</robot>"
    with pytest.raises(fgd.ModelError, match=r"fgd\.loads\(text\)") as caught:
        fgd.load(text)
    assert len(str(caught.value)) < 300
    assert fgd.loads(text).nv == 0


def test_yaml_is_for_closures(tmp_path):
    (tmp_path / "m.yaml").write_text("name: robot\nlinks: [a]\n")
    with pytest.raises(fgd.ModelError, match=r"Models are URDF.*closures="):
        fgd.load(tmp_path / "m.yaml")
    (tmp_path / "c.yaml").write_text("closed_loop: [['a', 'b']]\ntype: ['3d']\n")
    with pytest.raises(fgd.ModelError, match=r"no 'c\.urdf' beside it.*closures="):
        fgd.load(tmp_path / "c.yaml")


@pytest.mark.parametrize(
    ("part", "field"),
    [
        (fgd.Link("arm", 1.0), "mass"),
        (fgd.Joint("elbow", "revolute", "a", "b"), "axis"),
        (fgd.Loop("pin", "revolute", "a", "b"), "axis"),
        (fgd.Coupling("gear", "a", "b"), "ratio"),
        (fgd.Frame("tool", "a"), "placement"),
        (fgd.robots.rrr(), "gravity"),
    ],
    ids=lambda value: getattr(value, "name", value),
)
def test_parts_say_how_to_change_them(part, field):
    before = getattr(part, field)
    with pytest.raises(FrozenInstanceError, match=rf"dataclasses\.replace\(\w+, {field}=") as caught:
        setattr(part, field, 2.0)
    assert isinstance(caught.value, fgd.FactorGraphDynError)
    with pytest.raises(fgd.FrozenError):
        delattr(part, field)
    assert getattr(part, field) is before


@pytest.mark.parametrize(("wrong", "meant"), [("puma", "puma560"), ("Panda", "panda"), ("stuart", "stewart")])
def test_robots_are_guessed(wrong, meant):
    with pytest.raises(AttributeError, match=rf"Did you mean robots\.{meant}\(\)\? Robots: rrr, puma560"):
        getattr(fgd.robots, wrong)
    assert not hasattr(fgd.robots, "xyzzy")


def test_placements_are_written_down():
    T = fgd.translation(1, 2, 3) @ fgd.rotation("z", np.pi / 2)
    np.testing.assert_array_equal(T, [[0, -1, 0, 1], [1, 0, 0, 2], [0, 0, 1, 3], [0, 0, 0, 1]])
    np.testing.assert_allclose(fgd.rotation((0, 0, 5), 0.3), fgd.rotation("z", 0.3), atol=1e-16)
    np.testing.assert_allclose(fgd.rotation((1, 1, 1), 2 * np.pi / 3)[:3, :3] @ [1, 2, 3], [3, 1, 2], atol=1e-15)
    fgd.Joint("j", "revolute", "a", "b", T)
    for bad in (("w", 0.1), ((0, 0, 0), 0.1), ("x", np.nan), ((1, 2), 0.1)):
        with pytest.raises(fgd.InputError, match="of a rotation"):
            fgd.rotation(*bad)
    with pytest.raises(fgd.InputError, match="y of a translation"):
        fgd.translation(0, "up", 0)


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e3])
def test_centres_of_mass_in_millimetres_are_told(scale):
    arm = fgd.robots.rrr()
    joints = [replace(j, placement=fgd.translation(*(scale * j.placement[:3, 3]))) for j in arm.joints]
    links = [replace(link, com=scale * link.com) for link in arm.links]
    right = replace(arm, joints=joints, links=links)
    assert right.warnings == ()
    wrong = replace(right, links=[*links[:-1], replace(links[-1], com=1000 * links[-1].com)])
    assert len(wrong.warnings) == 1
    assert f"link {links[-1].name!r}" in wrong.warnings[0]
    assert "millimetres" in wrong.warnings[0]


def test_robots_of_the_package_raise_no_doubts():
    for build in fgd.robots.BUILT_IN.values():
        assert not any("centre of mass" in warning for warning in build().warnings)
