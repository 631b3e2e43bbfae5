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
