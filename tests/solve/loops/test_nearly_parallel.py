"""Planar linkages whose axes are parallel only up to what a file's digits say: the graph moves them, and says so."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.model.sizes.units import described_in
from factorgraph_dyn.motion.closure import nearest_velocity

LINKAGES = {
    "four_bar": fgd.robots.four_bar(),
    "five_bar": fgd.robots.five_bar(),
    "chain": fgd.robots.four_bar_chain(3),
}
TILTS = (1e-10, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4)
OPEN = 30.0  # times the tilt, by which such a loop may stay open
FOLLOWS = 300.0  # times the square of the tilt, by which answers differ: cosines
ROUNDING = 1e-12

pytestmark = pytest.mark.filterwarnings("ignore:Closure by")


def tilted(mechanism, tilt):
    rng = np.random.default_rng(0)
    joints = [replace(joint, axis=joint.axis + tilt * rng.normal(size=3)) for joint in mechanism.joints]
    return replace(mechanism, joints=joints).tolerate(OPEN * tilt)


def state_of(mechanism, q, v):
    closed = mechanism.close(q)
    return closed, nearest_velocity(mechanism, closed, v)


def difference(found, true):
    return np.abs(found - true).max() / np.abs(true).max()


@pytest.mark.parametrize("tilt", TILTS)
@pytest.mark.parametrize("name", LINKAGES)
def test_answers_are_those_of_parallel_axes(name, tilt):
    flat, leaning = LINKAGES[name], tilted(LINKAGES[name], tilt)
    q, v = flat.random_state(0)
    there = state_of(leaning, q, v)
    tau, allowed = np.ones(flat.nv), FOLLOWS * tilt**2 + ROUNDING
    moved = fgd.forward_dynamics(flat, q, v, tau)
    with pytest.warns(fgd.NearSingularWarning, match="taken as free"):
        found = fgd.forward_dynamics(leaning, *there, tau)
    driven, derived = fgd.inverse_dynamics(leaning, *there, found.a), fgd.derivatives(leaning, *there, tau=tau)
    assert found.residual < ROUNDING
    assert difference(found.a, moved.a) < allowed
    assert difference(driven.tau, fgd.inverse_dynamics(flat, q, v, moved.a).tau) < allowed
    true = fgd.derivatives(flat, q, v, tau=tau)
    for asked in ("da/dq", "da/dv", "da/dtau"):
        assert difference(derived[asked], true[asked]) < allowed, asked


@pytest.mark.parametrize(("length", "mass"), [(1e-3, 1e-3), (1e3, 1e3)])
def test_units_do_not_matter(length, mass):
    leaning = tilted(LINKAGES["five_bar"], 1e-6)
    q, v = state_of(leaning, *LINKAGES["five_bar"].random_state(0))
    other = described_in(leaning, length, mass)
    tau = np.ones(leaning.nv)
    a = fgd.forward_dynamics(leaning, q, v, tau).a
    same = fgd.forward_dynamics(other, q, v, tau / (mass * length**2)).a
    assert difference(same, a) < ROUNDING


def test_forces_of_what_is_let_go_are_none():
    """Moments in the plane of a five-bar, which its tilted axes could use, are those of redundant loops: the least."""
    flat, leaning = LINKAGES["five_bar"], tilted(LINKAGES["five_bar"], 1e-6)
    q, v = flat.random_state(0)
    there = state_of(leaning, q, v)
    found = fgd.forward_dynamics(leaning, *there, np.ones(flat.nv))
    true = fgd.forward_dynamics(flat, q, v, np.ones(flat.nv))
    for name, F in true.wrenches.items():
        assert np.abs(found.wrenches[name] - F).max() < 1e-4 * np.abs(F).max(), name


def test_what_loops_hold_firmly_is_held():
    """Axes that lean by more than is tolerated lock the linkage."""
    flat = LINKAGES["four_bar"]
    locked = replace(tilted(flat, 1e-3), closure_tolerance=1e-8)
    q, still, tau = locked.close(flat.random_state(0)[0]), np.zeros(flat.nv), np.ones(flat.nv)
    held = fgd.forward_dynamics(locked, q, still, tau).a
    assert np.abs(held).max() < 1e-9 * np.abs(fgd.forward_dynamics(flat, flat.neutral(), still, tau).a).max()


@pytest.mark.parametrize("problem", ["forward", "inverse"])
def test_refused_kernels_say_why(problem):
    with pytest.raises(fgd.CompileError, match=r"'pin' holds a motion by .* parallel but for rounding"):
        fgd.compile(tilted(LINKAGES["four_bar"], 1e-8), problem)
