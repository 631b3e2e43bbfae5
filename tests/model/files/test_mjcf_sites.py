"""Sites of MJCF that are written by their two ends, against MuJoCo."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.kinematics import link_poses
from tests.model.files.test_mjcf import POSES, WELDED, engine_for

SITE = '<site name="p" pos=".1 .2 .3" euler="5 0 9"/>'
ENDS = [".1 .2 .3 .2 -.1 .5", "0 0 0 0 0 .3", "0 0 .3 0 0 0", ".1 0 0 -.1 0 0"]


def welded(ends, weld='site1="p" site2="s"'):
    return WELDED.format(weld).replace(SITE, f'<site name="p" type="capsule" size=".01" fromto="{ends}"/>')


@pytest.mark.parametrize("ends", ENDS)
def test_a_site_between_two_ends_is_where_mujoco_has_it(ends, tmp_path):
    mechanism, engine = engine_for(welded(ends), tmp_path)
    q, v = mechanism.random_state(1)
    engine.set_state(q, v)
    frame = next(frame for frame in mechanism.frames if frame.name == "p")
    T = link_poses(mechanism, q)[frame.link] @ frame.placement
    np.testing.assert_allclose(T[:3, 3], engine.data.site("p").xpos, atol=POSES)
    np.testing.assert_allclose(T[:3, :3].ravel(), engine.data.site("p").xmat, atol=POSES)


@pytest.mark.parametrize("ends", ENDS)
def test_a_weld_to_it_holds_what_mujocos_holds(ends, tmp_path):
    mechanism, engine = engine_for(welded(ends), tmp_path)
    engine.set_state(*mechanism.random_state(3))
    assert np.abs(engine.data.efc_pos).max() < 1e-7


def test_a_site_between_one_end_is_refused():
    with pytest.raises(fgd.ModelError, match=r"m.xml:3: <site name=.p.>: fromto needs two different points"):
        fgd.loads(welded("0 0 1 0 0 1"), file="m.xml")


@pytest.mark.parametrize("z", ["1", "-1", "-100"])
@pytest.mark.parametrize("aside", ["0", "1e-16", "-8.74228e-08", "9.99e-08", "1e-07", "1.01e-07", "1e-06", "1e-3"])
def test_directions_almost_along_z_turn_as_in_mujoco(aside, z, tmp_path):
    unturned = 2e-6  # sites that are turned less MuJoCo takes to be turned as their bodies
    for x, y in ((aside, "0"), ("0", aside)):
        text = WELDED.format('body1="b" body2="c"').replace(SITE, f'<site name="p" zaxis="{x} {y} {z}"/>')
        mechanism, engine = engine_for(text, tmp_path)
        q, v = mechanism.random_state(1)
        engine.set_state(q, v)
        found = fgd.pose(mechanism, q, "p")[:3, :3].ravel()
        np.testing.assert_allclose(found, engine.data.site("p").xmat, atol=unturned)


SHARED = """<mujoco><worldbody>
  <body name="arm" euler="10 20 30"><joint name="j"/><geom size=".1" mass="1"/>{0}
    <body name="hand" pos="1 0 0"><joint name="k" axis="0 1 0" {1}/><geom size=".1" pos=".2 0 0" mass="1"/>{2}
      <body name="tip" pos=".1 0 0"><geom size=".1" mass="1"/>{3}</body>
    </body></body>
</worldbody></mujoco>"""
HAND, TIP = '<site name="hand" pos="0 0 .5"/>', '<site name="tip" pos=".3 0 .5"/>'


@pytest.mark.parametrize("joint", ["", 'pos="0 .1 .1"'])
@pytest.mark.parametrize("places", [(HAND, "", ""), ("", HAND, ""), ("", "", TIP), (TIP, HAND, "")])
def test_a_body_keeps_the_name_that_it_shares_with_a_site(places, joint, tmp_path):
    mechanism, engine = engine_for(SHARED.format(places[0], joint, *places[1:]), tmp_path)
    shared = [name for name in ("hand", "tip") if f'"{name}"' in "".join(places)]
    assert len(mechanism.warnings) == len(shared)
    q, v = mechanism.random_state(2)
    engine.set_state(q, v)
    for name in shared:
        said = f"<site name=\"{name}\">: a body has this name, too, and keeps it; the site is called '{name}_site'"
        assert any(said in warning for warning in mechanism.warnings)
    for robot in (mechanism, mechanism.merge_fixed()):
        for name in shared:
            np.testing.assert_allclose(fgd.pose(robot, q, name)[:3, 3], engine.data.body(name).xpos, atol=POSES)
            at_site = fgd.pose(robot, q, f"{name}_site")[:3, 3]
            np.testing.assert_allclose(at_site, engine.data.site(name).xpos, atol=POSES)


def test_a_weld_by_a_site_that_shares_its_name_with_a_body_is_at_the_site(tmp_path):
    text = welded(ENDS[0]).replace('name="p"', 'name="a"').replace('site1="p"', 'site1="a"')
    mechanism, engine = engine_for(text, tmp_path)
    assert "a_site" in mechanism.place_names
    engine.set_state(*mechanism.random_state(3))
    assert np.abs(engine.data.efc_pos).max() < 1e-7


def test_a_site_gets_a_name_that_nothing_else_has():
    text = SHARED.format(HAND, "", '<site name="hand_site"/>', "").replace('"tip"', '"hand_site_2"')
    assert set(fgd.loads(text).place_names) == {"world", "arm", "hand", "hand_site", "hand_site_2", "hand_site_3"}
