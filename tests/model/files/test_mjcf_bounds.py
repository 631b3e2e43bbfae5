"""Bodies of MJCF whose mass is the compiler's bound, against MuJoCo."""

import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from tests.model.files.test_mjcf import AGREES, engine_for

FRAMED = '<frame pos="1 1 1" euler="10 0 20"><body name="c" pos="0 .2 .1" quat="1 2 3 4"><joint/></body></frame>'
INSIDE = {
    "nothing": "",
    "a body": '<body name="c" pos="0 .2 .1" euler="30 20 10"><joint axis="1 0 0"/></body>',
    "a fixed body": '<body name="c" pos="0 .2 .1" euler="30 20 10"/>',
    "a framed body": FRAMED,
    "a geom without mass": '<geom size=".1" mass="0" pos="1 0 0"/>',
    "an inertial without mass": '<inertial mass="0" pos=".5 .5 .5" diaginertia="1 1 1"/>',
    "a geom": '<geom size=".1" mass=".5" pos="1 0 0"/>',
}


def bounded(inside, place='pos=".3 0 0" euler="0 40 0"', compiler=""):
    return f"""<mujoco><compiler boundmass="1" boundinertia=".1" {compiler}/><worldbody>
      <body name="b" {place}><joint name="j" axis="0 1 0"/>{inside}</body></worldbody></mujoco>"""


@pytest.mark.parametrize("compiler", ["", "inertiafromgeom='true'", "settotalmass='3'"])
@pytest.mark.parametrize("inside", INSIDE)
def test_bounds_act_as_mujocos(inside, compiler, tmp_path):
    mechanism, engine = engine_for(bounded(INSIDE[inside], compiler=compiler), tmp_path)
    assert compare_with_engine(mechanism, engine, states=3).within(AGREES)


def test_the_bound_of_a_free_body_acts_as_mujocos(tmp_path):
    text = bounded("").replace('<joint name="j" axis="0 1 0"/>', '<freejoint name="j"/>')
    mechanism, engine = engine_for(text, tmp_path)
    assert compare_with_engine(mechanism, engine, states=3).within(AGREES)


def test_the_place_of_a_bound_is_noted():
    warnings = fgd.loads(bounded(""), file="m.xml").warnings
    assert any(found.startswith('m.xml:2: <body name="b">: the body has no mass but boundmass') for found in warnings)
    assert not fgd.loads(bounded(INSIDE["a geom"])).warnings
    assert not fgd.loads(bounded("", place="")).warnings
