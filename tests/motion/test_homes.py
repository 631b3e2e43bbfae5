"""Homes of closed mechanisms: off folded configurations where there are others, and unchanged elsewhere."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion import homes
from factorgraph_dyn.motion.closed_places import freedoms
from factorgraph_dyn.motion.random_states import closed_home
from tests.folded import bennett, parallelogram, raised, scissor, slider_crank, three_cranks, zeroed

STATES = 20
LINKAGES = ("four_bar", "five_bar", "four_bar_chain", "stewart", "delta")


@pytest.mark.parametrize("stages", [2, 3, 4, 6])
def test_scissors_are_drawn_where_they_work(stages):
    mechanism = scissor(stages)
    assert freedoms(mechanism, raised(stages, 0.6)) == 1
    assert freedoms(mechanism, mechanism.neutral()) == stages  # the folded bars turn as one
    assert {freedoms(mechanism, mechanism.random_state(k)[0]) for k in range(STATES)} == {1}
    assert not mechanism.neutral().any()


@pytest.mark.parametrize("angle", [0.0, np.pi / 2])
@pytest.mark.parametrize("stages", [2, 3])
def test_scissors_leave_the_places_where_branches_meet(stages, angle):
    mechanism = zeroed(scissor(stages), raised(stages, angle))
    assert freedoms(mechanism, mechanism.neutral()) > 1
    assert {freedoms(mechanism, mechanism.random_state(k)[0]) for k in range(STATES)} == {1}


def test_slider_cranks_of_equal_bars_drive_their_sliders():
    """Folded, the bars turn as one and the slider rests; there are as many freedoms, and loops hold as much."""
    mechanism = slider_crank()
    assert freedoms(mechanism, np.array([0.3, 0.0, 0.0])) == 1
    states = [mechanism.random_state(k) for k in range(STATES)]
    assert all(abs(np.sin(q[1] / 2)) > 1e-3 for q, _ in states)  # the rod is off the crank
    assert all(v[2] for _, v in states)
    assert not mechanism.neutral().any()


def test_unfolding_keeps_to_limits():
    mechanism = scissor(2, limits=(-0.2, 1.4))
    states = [mechanism.random_state(k)[0] for k in range(STATES)]
    assert {freedoms(mechanism, q) for q in states} == {1}
    assert all(-0.2 <= q[0] <= 1.4 for q in states)


@pytest.mark.parametrize("mechanism", [bennett(0.0), bennett(1.0), bennett(np.pi), three_cranks(), parallelogram(1, 2)])
def test_overconstrained_linkages_stay_where_their_joints_move(mechanism):
    assert not closed_home(mechanism).any()
    assert {freedoms(mechanism, mechanism.random_state(k)[0]) for k in range(STATES)} == {1}


@pytest.mark.parametrize("name", LINKAGES)
def test_regular_homes_are_not_looked_at_twice(name, monkeypatch):
    mechanism = fgd.robots.BUILT_IN[name]()
    before = closed_home(mechanism)
    monkeypatch.setattr(homes, "_neighbours", None)  # what only singular homes need
    assert np.array_equal(closed_home(fgd.robots.BUILT_IN[name]()), before)
