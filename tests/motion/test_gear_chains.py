"""Couplings in chains of any ratios: they are linear and independent, and so can always be closed."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.closed_places import freedoms

OFFSET = 0.1  # rad
INERTIA = 0.02  # of each wheel about its axis, kg m^2
AGREES = 1e-12
SOLVED_ONCE = 1e-7  # relative: velocities that are completed are not refined
CHAINS = [
    (1e6, 1e-6),
    (1e-6, 1e-6),
    (1e3, 1e3, 1e-6, 1e-6),
    (1e-4, 1e-4, 1e-4),
    (1e2, -1e4, 1e-6, 1.0),
    (-1e12, 1e-12),
]
STEEP = [*CHAINS, (1e6, 1e6), (1e-6, 1e6), (1e4, 1e4, 1e4), (1e12,), (1e-12,)]


def geared(ratios):
    """Wheels about parallel upright axes, each coupled to the one before it."""
    wheels = [fgd.Link(f"x{k}", 1.0, (0.1, 0, 0), np.eye(3) * 0.01) for k in range(len(ratios) + 1)]
    joints = [fgd.Joint(f"j{k}", "revolute", "base", wheel.name) for k, wheel in enumerate(wheels)]
    gears = [fgd.Coupling(f"g{k}", f"j{k + 1}", f"j{k}", ratio, OFFSET) for k, ratio in enumerate(ratios)]
    return fgd.Mechanism("gears", [fgd.Link("base"), *wheels], joints, couplings=gears)


@pytest.mark.parametrize("ratios", STEEP, ids=str)
def test_chains_close_and_keep_one_freedom(ratios):
    mechanism = geared(ratios)
    q, v = mechanism.random_state(0)
    largest = max(1.0, np.abs(q).max())
    assert mechanism.closure_error(mechanism.neutral()) <= mechanism.closure_tolerance
    assert mechanism.closure_error(q, v) <= 1e-14 * largest * len(ratios)
    assert freedoms(mechanism, q) == 1


@pytest.mark.parametrize("ratios", STEEP, ids=str)
def test_chains_turn_by_the_products_of_their_ratios(ratios):
    mechanism = geared(ratios)
    turns = np.cumprod((1.0, *ratios))
    v = mechanism.complete_velocity(mechanism.neutral(), turns, given=["j0"])
    assert v == pytest.approx(turns, rel=SOLVED_ONCE)


@pytest.mark.parametrize("ratios", [(1e6, 1e-6), (1e3, 1e3, 1e-6, 1e-6)], ids=str)
def test_chains_close_with_a_held_joint(ratios):
    mechanism = geared(ratios)
    q = mechanism.close(np.full(mechanism.nq, 0.3), hold=["j0"])
    assert q[0] == 0.3
    assert mechanism.closure_error(q) <= mechanism.closure_tolerance


@pytest.mark.parametrize("ratios", CHAINS, ids=str)
def test_kernels_and_graph_of_chains_agree_with_one_wheel(ratios):
    mechanism, turns = geared(ratios), np.cumprod((1.0, *ratios))
    q, v = mechanism.random_state(0)
    tau = np.arange(1.0, mechanism.nv + 1)
    a = turns * (turns @ tau) / (INERTIA * (turns @ turns))  # all wheels as seen at the first
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert fgd.forward_dynamics(mechanism, q, v, tau).a == pytest.approx(a, rel=AGREES)
        assert fgd.compile(mechanism, "forward")(q, v, tau) == pytest.approx(a, rel=AGREES)


def test_rings_of_gears_are_closed_by_few_digits():
    mechanism = geared((3.0, 0.5))
    ring = fgd.Coupling("back", "j2", "j0", 1.5 + 1e-9, 1.5 * OFFSET)  # what the others say already, to nine digits
    mechanism = fgd.Mechanism("ring", mechanism.links, mechanism.joints, couplings=[*mechanism.couplings, ring])
    assert freedoms(mechanism, mechanism.neutral()) == 1


@pytest.mark.parametrize("ratio", [10.0, 120.0, -120.0, 1e4])
def test_a_loop_closes_from_anywhere_with_a_geared_motor(ratio):
    """Steps that close the loop are not refused for what they do to the gear, which counts by its ratio."""
    bar = fgd.robots.four_bar()
    crank, rotor = bar.joints[0], fgd.Link("rotor", 0.1, inertia=np.eye(3) * 1e-4)
    spin = fgd.Joint("spin", "continuous", bar.base, "rotor", axis=crank.axis)
    gear = fgd.Coupling("gear", "spin", crank.name, ratio)
    mechanism = replace(bar, links=(*bar.links, rotor), joints=(*bar.joints, spin), couplings=(gear,))
    rng = np.random.default_rng(0)
    for _ in range(10):
        q = rng.uniform(-np.pi, np.pi, mechanism.nq)
        q[-1] = ratio * q[0]
        assert mechanism.closure_error(mechanism.close(q)) <= 1e-14 * max(1.0, abs(ratio))
