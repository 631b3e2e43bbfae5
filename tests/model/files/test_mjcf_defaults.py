"""What elements of MJCF inherit from their default classes, against MuJoCo."""

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
