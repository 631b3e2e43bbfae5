"""Closure that first order leaves open and second order does not is told; closure that only repeats itself is not."""

import warnings

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import described_in
from factorgraph_dyn.solve.loops.singularity import warn_of_bent_closure
from tests.mechanisms import random_planar, random_spatial, single_loop

Y = (0, 1, 0)


def rod(name):
    return fgd.Link(name, 1.0, (0.5, 0, 0), np.diag([1e-3, 0.1, 0.1]))


def pinned_chain(reach):
    """Two links of 1 m whose end is pinned at a distance of the shoulder."""
    joints = (
        fgd.Joint("shoulder", "revolute", "base", "upper", axis=Y),
        fgd.Joint("elbow", "revolute", "upper", "lower", fgd.translation(1, 0, 0), axis=Y),
    )
    ends = fgd.translation(reach, 0, 0), fgd.translation(1, 0, 0)
    pin = fgd.Loop("pin", "revolute", "base", "lower", *ends, axis=Y)
    return fgd.Mechanism("stretched", (fgd.Link("base"), rod("upper"), rod("lower")), joints, loops=(pin,))


@pytest.mark.parametrize("length", [1e-6, 1.0, 1e6])
def test_a_chain_that_is_locked_at_full_stretch_is_told(length):
    chain, still = described_in(pinned_chain(2.0), length, 1.0), np.zeros(2)
    for _ in range(2):  # every time
        with pytest.warns(fgd.NearSingularWarning, match=r"'pin' lets joints shoulder, elbow move to first order"):
            fgd.forward_dynamics(chain, still, still, still)


def test_the_same_chain_with_some_slack_is_regular():
    chain = pinned_chain(1.9)
    bend = np.arccos(0.95)
    with warnings.catch_warnings():
        warnings.simplefilter("error", fgd.NearSingularWarning)
        fgd.forward_dynamics(chain, [-bend, 2 * bend], np.zeros(2), np.zeros(2))


def test_a_parallelogram_is_told_where_it_lies_in_a_line():
    """Two ways part there; elsewhere three of its constraints only repeat each other."""
    joints = (
        fgd.Joint("first", "revolute", "base", "crank", axis=Y),
        fgd.Joint("second", "revolute", "crank", "coupler", fgd.translation(1, 0, 0), axis=Y),
        fgd.Joint("third", "revolute", "coupler", "rocker", fgd.translation(2, 0, 0), axis=Y),
    )
    ends = fgd.translation(2, 0, 0), fgd.translation(1, 0, 0)
    pin = fgd.Loop("pin", "revolute", "base", "rocker", *ends, axis=Y)
    links = (fgd.Link("base"), rod("crank"), rod("coupler"), rod("rocker"))
    parallelogram = fgd.Mechanism("parallelogram", links, joints, loops=(pin,))
    assert is_told(parallelogram, np.array([0.0, 0.0, np.pi]))
    assert not is_told(parallelogram, np.array([0.5, -0.5, np.pi + 0.5]))


def is_told(mechanism, q):
    with warnings.catch_warnings(record=True):
        warnings.simplefilter("always")
        return warn_of_bent_closure(fgd.evaluate_state(mechanism, q, np.zeros(mechanism.nv)))


BUILT_IN = (
    fgd.robots.five_bar(),
    fgd.robots.four_bar(),
    fgd.robots.four_bar_chain(3),
    fgd.robots.delta(),
    fgd.robots.stewart(),
)
RANDOM = (*map(random_planar, range(4)), *map(random_spatial, range(4)))
SINGLE = tuple(single_loop(kind) for kind in ("spherical", "revolute", "universal", "fixed", "prismatic"))


@pytest.mark.parametrize("mechanism", [*BUILT_IN, *RANDOM, *SINGLE], ids=lambda m: m.name)
def test_loops_that_only_repeat_each_other_are_not_told(mechanism):
    assert not any(is_told(mechanism, mechanism.random_state(seed)[0]) for seed in range(4))
