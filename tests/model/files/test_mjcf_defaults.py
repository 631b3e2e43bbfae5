"""What elements of MJCF inherit from their default classes, against MuJoCo."""

import mujoco
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from tests.model.files.test_mjcf import AGREES, engine_for

CLASSES = """<default><geom type="box" size=".1 .3 .2" pos=".1 .2 0" euler="10 0 40"/>
  <default class="quat"><geom quat="1 .3 .2 .1"/><default class="below"><geom zaxis="1 2 3"/></default></default>
  <default class="turned"><geom axisangle="1 2 0 20"/></default></default>"""


def geom(own, classes=CLASSES):
    return f"""<mujoco>{classes}<worldbody><body name="b"><joint name="j" axis="0 1 1"/><joint axis="1 0 0"/>
      <geom {own}/></body></worldbody></mujoco>"""


@pytest.mark.parametrize("chosen", ["", "class='quat'", "class='below'", "class='turned'"])
@pytest.mark.parametrize(
    "own", ["", "quat='1 .3 .2 .1'", "axisangle='1 0 0 30'", "xyaxes='1 1 0 0 1 1'", "euler='5 6 7'"]
)
def test_an_orientation_replaces_the_inherited_one(chosen, own, tmp_path):
    mechanism, engine = engine_for(geom(f"{chosen} {own}"), tmp_path)
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


@pytest.mark.parametrize("place", ["element", "class"])
def test_two_orientations_in_one_place_are_refused(place):
    twice = "quat='1 0 0 0' euler='1 2 3'"
    text = geom(twice) if place == "element" else geom("", f"<default><geom size='.1' {twice}/></default>")
    with pytest.raises(fgd.ModelError, match="given twice, by quat and euler"):
        fgd.loads(text)


SHORT = {
    "cylinder": "size='.1 .3'",
    "capsule": "size='.1 .3'",
    "box": "size='.1 .3 .2'",
    "ellipsoid": "size='.1 .3 .2'",
}


@pytest.mark.parametrize("own", ["size='.05'", "size='.05' class='c'", "class='c'"])
@pytest.mark.parametrize("kind", SHORT)
def test_sizes_that_are_not_given_are_inherited(kind, own, tmp_path):
    inner = "<default class='c'><geom size='.04 .06'/></default>"
    classes = f"<default><geom type='{kind}' pos='.1 .2 0' {SHORT[kind]}/>{inner}</default>"
    mechanism, engine = engine_for(geom(own, classes), tmp_path)
    assert compare_with_engine(mechanism, engine, states=2).within(AGREES)


BALL = """<mujoco><default><general gear="1 2 3"/></default><worldbody>
  <body name="a"><joint name="j" type="ball"/><geom size=".1" pos=".1 .2 0"/></body></worldbody>
<actuator><motor joint="j" gear="7"/></actuator></mujoco>"""


def test_gears_that_are_not_given_are_inherited(tmp_path):
    mechanism, engine = engine_for(BALL, tmp_path)
    _, B = fgd.load_actuation(tmp_path / "model.xml", mechanism)
    assert B[:, 0].tolist() == engine.model.actuator_gear[0, :3].tolist() == [7, 2, 3]


def test_an_inherited_polynomial_stays_one():
    """MuJoCo keeps its higher coefficients, so that the damping is not constant."""
    text = geom("size='.1'", "").replace("<joint ", "<joint damping='2' ")
    text = text.replace("<worldbody>", "<default><joint damping='1 .5'/></default><worldbody>")
    assert mujoco.MjModel.from_xml_string(text).dof_dampingpoly[0, 0] == 0.5
    with pytest.raises(fgd.ModelError, match="damping is a polynomial"):
        fgd.loads(text)
