"""Orderings that leave unknowns without good pivots where they ask for them: these wait, and rounding is no pivot."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.route import CAREFUL, Route
from tests.helpers import relative_error

ORDERINGS = ("aba", "crba", "colamd", "metis", "min_degree", "min_fill", "natural")


def body(name):
    return fgd.Link(name, 1.0, (0.0, 0.0, 0.0), np.eye(3))


def far_weight():
    """A wrist of four hinges, one of whose links has a weight 400 m away, welded to it."""
    return fgd.Mechanism(
        "far weight",
        [fgd.Link("base"), *(body(f"link{k}") for k in range(1, 6))],
        [
            fgd.Joint("joint1", "revolute", "base", "link1", axis=(0, 1, 0), actuated=False),
            fgd.Joint("joint2", "revolute", "link1", "link2", axis=(1, 0, 0)),
            fgd.Joint("joint3", "revolute", "link2", "link3", axis=(0.7071, 0.7071, 0)),
            fgd.Joint("joint4", "fixed", "link3", "link4", fgd.translation(400, 0, 0)),
            fgd.Joint("joint5", "revolute", "link3", "link5", axis=(0, 1, 0), actuated=False),
        ],
        gravity=(0, 0, 0),
    )


def held_by_a_universal_joint():
    """Two links that a hinge and a universal joint hold together, with angles that files round to 6e-17 and 1e-8."""
    links = [
        fgd.Link("base"),
        fgd.Link("link2", 1.0, [0.0, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        fgd.Link("link6", 1.0, [0.0, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
        fgd.Link("link7", 1.0, [0.0, 0.0, 0.0], [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]]),
    ]
    joints = [
        fgd.Joint(
            "joint2",
            "revolute",
            "base",
            "link2",
            placement=[[1.0, 0.0, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [0.0, 0.0, 1.0, 0.0], [0.0, 0.0, 0.0, 1.0]],
            axis=[0.0, 1.0, 0.0],
            actuated=False,
        ),
        fgd.Joint(
            "joint6",
            "fixed",
            "link2",
            "link6",
            placement=[
                [-9.632679474506778e-05, 0.9999999953605743, 7.076562705722032e-10, 0.0],
                [-0.9999999953335894, -9.632679474766714e-05, 7.346410172560451e-06, 0.0],
                [7.346410206643587e-06, -1.2246467991143063e-16, 0.9999999999730151, 0.0],
                [0.0, 0.0, 0.0, 1.0],
            ],
            axis=[0.0, 0.0, 1.0],
        ),
        fgd.Joint(
            "joint7",
            "revolute",
            "link6",
            "link7",
            placement=[
                [-6.123233995736766e-17, 5.3589793292521924e-08, -0.9999999999999986, 0.0],
                [7.498798913309288e-33, 0.9999999999999986, 5.3589793292521924e-08, 0.0],
                [1.0, 3.2814284336339646e-24, -6.123233995736757e-17, 0.0],
                [0.0, 0.0, 0.0, 1.0],
            ],
            axis=[1.0, 0.0, 1e-08],
            actuated=False,
        ),
    ]
    loops = [
        fgd.Loop(
            "loop1",
            "universal",
            "link7",
            "link6",
            [[1.0, 0.0, 0.0, 0.2], [0.0, 1.0, 0.0, -0.1], [0.0, 0.0, 1.0, 0.4], [0.0, 0.0, 0.0, 1.0]],
            [
                [-1.4161467939412865e-08, -0.9092974491269032, 0.4161467878180805, 0.25738845720762893],
                [9.092975027166965e-09, -0.4161467878180806, -0.9092974491269032, -0.32210429905035826],
                [0.9999999999999999, -9.092974323935468e-09, 1.4161468390953176e-08, 0.20000000657388478],
                [0.0, 0.0, 0.0, 1.0],
            ],
            [
                [1.2623466365722318, -1.351341426627278, 0.9935421071887461],
                [-0.06626601860987588, 0.5501328302503228, 0.8324438022223272],
            ],
            pitch=0.0,
        ),
    ]
    return fgd.Mechanism("held", links, joints, loops, gravity=(0, 0, 0))


@pytest.mark.parametrize("ordering", ORDERINGS)
def test_unknowns_wait_for_good_pivots(ordering):
    """Where all turns are zero, hinges about one axis leave no pivot for the link between them."""
    mechanism = far_weight()
    kernel = fgd.compile(mechanism, "hybrid", ordering=ordering)
    assert kernel.ordering.name == ordering
    tau, still = np.array([1.0, -2.0, 0.5, 3.0]), np.zeros(4)
    for q in (mechanism.random_state(0)[0], np.array([0.3, np.pi / 2, 0.0, 0.0])):
        a, _ = kernel(q, still, still, tau)
        assert relative_error(a, fgd.forward_dynamics(mechanism, q, still, tau).a) < 1e-9


@pytest.mark.parametrize("ordering", [None, *ORDERINGS])
def test_rounding_is_no_pivot_of_repeated_forces(ordering):
    mechanism = held_by_a_universal_joint()
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    q, v = mechanism.random_state(0)
    assert relative_error(kernel(q, v, np.array([1.0, 0.0])), np.array([1 / 3, 0.0])) < 1e-9


def test_one_careful_route_is_patient():
    assert [route.patient for route in CAREFUL].count(True) == 1
    assert not Route().patient
