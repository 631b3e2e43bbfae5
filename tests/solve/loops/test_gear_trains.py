"""Gear trains of any ratios, against a dense solve in extended precision: thresholds mean the same for all."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.solve.loops.closure_rows import closure_rows
from tests.stress.oracle import Oracle

EXACT = 1e-9
RATIOS = (1e-6, 1.0, -1e6)
KINDS = {"turns": "rrrr", "racks": "rprp", "pinions": "prpr"}
MICROMETRE = 1e-6
CASES = [(kinds, ratios) for count in (1, 2) for ratios in product(RATIOS, repeat=count) for kinds in KINDS]
CASES += [(kinds, ratios) for ratios in ((1e6, 1e-6, 1e6), (1e-6, 1e6, 1e-6), (1e-3, 1e6, 1e3)) for kinds in KINDS]


def train(kinds: str, ratios: tuple[float, ...], size: float = 1.0) -> fgd.Mechanism:
    """Wheels and racks side by side on the base, each driven by the one before it."""
    wheels = range(len(ratios) + 1)
    names = {"r": "revolute", "p": "prismatic"}
    units = [size if kind == "p" else 1.0 for kind in kinds]
    links = [fgd.Link(f"wheel{i}", 1.0 + i, (0.1 * size, 0, 0.02 * size), np.diag([1, 2, 3]) * 1e-3 * size**2)
             for i in wheels]  # fmt: skip
    joints = [fgd.Joint(f"joint{i}", names[kinds[i]], "base", f"wheel{i}", fgd.translation(0.3 * i * size, 0, 0),
                        axis=(0, 1, 0)) for i in wheels]  # fmt: skip
    gears = [fgd.Coupling(f"gear{i}", f"joint{i + 1}", f"joint{i}", ratio * units[i + 1] / units[i])
             for i, ratio in enumerate(ratios)]  # fmt: skip
    return fgd.Mechanism("train", [fgd.Link("base"), *links], joints, couplings=gears)


def motion(mechanism: fgd.Mechanism) -> np.ndarray:
    """How the joints move together, the fastest by one rad or the mechanism's size."""
    way = np.cumprod([1.0, *(gear.ratio for gear in mechanism.couplings)])
    units = [mechanism.size if joint.is_slider else 1.0 for joint in mechanism.joints]
    return way / np.abs(way / units).max()


def problem(kinds: str, ratios: tuple[float, ...], size: float):
    mechanism = train(KINDS[kinds], ratios, size)
    way = motion(mechanism)
    units = np.array([size if joint.is_slider else 1.0 for joint in mechanism.joints])
    tau = np.linspace(1.0, 2.0, mechanism.nv) * size**2 / units
    return mechanism, 0.3 * way, 0.7 * way, 1.3 * way, tau


@pytest.mark.parametrize("size", [1.0, MICROMETRE])
@pytest.mark.parametrize(("kinds", "ratios"), CASES)
def test_dynamics_are_those_of_a_dense_solve(kinds, ratios, size):
    mechanism, q, v, a, tau = problem(kinds, ratios, size)
    every, none, motors = np.ones(len(v), bool), np.zeros(len(v), bool), mechanism.torque_entries(None)
    oracle = Oracle(mechanism, q, v)
    expected = oracle.ask(np.zeros(len(v)), tau, none, every)["a"].value.astype(float)
    for ordering in ("aba", "colamd"):
        found = fgd.forward_dynamics(mechanism, q, v, tau, ordering=ordering).a
        assert np.abs(found / expected - 1).max() < EXACT
    needed = oracle.ask(a, np.zeros(len(v)), every, ~motors)["tau"].value.astype(float)
    found = fgd.inverse_dynamics(mechanism, q, v, a).tau
    assert np.abs(found - needed).max() < EXACT * np.abs(needed).max()


@pytest.mark.parametrize("size", [1.0, MICROMETRE])
@pytest.mark.parametrize(("kinds", "ratios"), CASES)
def test_a_train_has_one_freedom(kinds, ratios, size):
    mechanism, q, v, _, _ = problem(kinds, ratios, size)
    found = fgd.diagnose(mechanism, q)
    assert (found.mobility, found.usual_mobility, found.missing_motors) == (1, 1, 0)
    assert not found.redundant
    assert not found.is_singular
    (moves,) = closure_rows(fgd.evaluate_state(mechanism, q, v)).motions.T
    assert np.abs(moves / moves[0] * v[0] / v - 1).max() < EXACT


@pytest.mark.parametrize("size", [1.0, MICROMETRE])
@pytest.mark.parametrize(("kinds", "ratios"), CASES)
def test_motors_accelerate_a_train(kinds, ratios, size):
    mechanism, q, _, _, _ = problem(kinds, ratios, size)
    motors = np.flatnonzero(mechanism.torque_entries(None))
    expected = Oracle(mechanism, q, np.zeros(mechanism.nv)).respond(motors)[0].value.astype(float)
    assert np.abs(fgd.iwim(mechanism, q) / expected - 1).max() < EXACT


def test_wheels_of_a_ring_repeat_each_other():
    """Three wheels in a ring whose ratios agree, however far apart they are: one gear too many."""
    chain = train("rrr", (1e6, 1e-3))
    ring = fgd.Mechanism("ring", chain.links, chain.joints,
                         couplings=[*chain.couplings, fgd.Coupling("last", "joint2", "joint0", 1e3)])  # fmt: skip
    q = np.array([1e-6, 1.0, 1e-3])
    found = fgd.diagnose(ring, q)
    assert (found.mobility, found.shared_redundant) == (1, 1)
    expected = fgd.forward_dynamics(chain, q, 0 * q, np.ones(3)).a
    assert np.abs(fgd.forward_dynamics(ring, q, 0 * q, np.ones(3)).a / expected - 1).max() < EXACT
