"""What loops hold, and joints move, by less than files and floats tell: the graph answers, and says so."""

import numpy as np
import pytest

import factorgraph_dyn as fgd

ROUND = np.diag([0.02, 0.02, 0.02])


def spinning(axis, point, inertia, scale=1.0):
    """A link on a hinge, of which a ball holds a point, and a wheel beside it."""
    links = [fgd.Link("ground"), fgd.Link("body", 1.0, (0, 0, 0), inertia), fgd.Link("wheel", 1.0, (0, 0, 0), ROUND)]
    links = [fgd.Link(link.name, link.mass, link.com, np.asarray(link.inertia) * scale**2) for link in links]
    joints = [fgd.Joint("hinge", "revolute", "ground", "body", axis=axis)]
    joints += [fgd.Joint("axle", "revolute", "ground", "wheel")]
    place = fgd.translation(*(scale * np.array(point)))
    ball = fgd.Loop("ball", "spherical", "ground", "body", place, place)
    return fgd.Mechanism("spinning", links, joints, [ball], gravity=(0, 0, 0))


def pushed(mechanism, scale=1.0):
    return fgd.forward_dynamics(mechanism, np.zeros(2), np.zeros(2), np.array([1.0, 100.0]) * scale**2).a


@pytest.mark.parametrize("scale", [1.0, 1e-6, 1e6])
def test_faint_closure_is_told(scale):
    """pi in eight digits puts a ball that is meant to lie on the axis beside it."""
    mechanism = spinning((0, 0, 1), (5e-8, 0, 1), ROUND, scale)
    with pytest.warns(fgd.NearSingularWarning, match="by 'ball' holds a motion of mechanism 'spinning' by 5e-08"):
        pushed(mechanism, scale)


def test_closure_that_holds_or_does_not_is_not_told(recwarn):
    assert pushed(spinning((0, 0, 1), (0, 0, 1), ROUND))[0] == pytest.approx(50.0, rel=1e-12)
    assert pushed(spinning((0, 0, 1), (1e-3, 0, 1), ROUND))[0] == pytest.approx(0.0, abs=1e-9)
    assert not recwarn.list


def test_needles_are_told():
    """A rod about its own axis, which a file has tilted by rounding."""
    mechanism = spinning((0, 1e-8, 1), (0, 0, 0), np.diag([0.04, 0.04, 0.0]))
    with pytest.warns(fgd.NearSingularWarning, match="Joints hinge of mechanism 'spinning' move less inertia than"):
        pushed(mechanism)
