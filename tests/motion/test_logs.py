"""Logs: rates of change on the times that there are, gaps, and files as spreadsheets write them."""

from __future__ import annotations

import numpy as np
import pytest

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.motion.logs import differentiated, read_log

STEP = 1e-3
COUNT = 2000


def wave(t):
    """Two columns and their derivatives, by formula."""
    value = np.column_stack([9 * np.cos(9 * t) + 8.5 * np.cos(17 * t), np.sin(5 * t)])
    return value, np.column_stack([-81 * np.sin(9 * t) - 144.5 * np.sin(17 * t), 5 * np.cos(5 * t)])


def steps(kind):
    """Time steps of a log."""
    rng = np.random.default_rng(0)
    return {
        "even": np.full(COUNT, STEP),
        "faster then slower": np.repeat([STEP, 1.15 * STEP], COUNT // 2),
        "another rate": np.repeat([0.1 * STEP, STEP], COUNT // 2),
        "jittered": STEP * rng.uniform(0.2, 1.8, COUNT),
        "some lost": STEP * rng.choice([1.0, 2.0, 3.0], COUNT, p=[0.9, 0.08, 0.02]),
    }[kind]


@pytest.mark.parametrize("window", [3, 5, 9])
@pytest.mark.parametrize("kind", ["even", "faster then slower", "another rate", "jittered", "some lost"])
def test_rates_of_change_are_those_at_the_times_of_the_log(kind, window):
    t = np.concatenate([[0.0], np.cumsum(steps(kind))])
    value, exact = wave(t)
    found, inner = differentiated(t, value, window)
    assert found.shape == exact[inner].shape
    truncation = (window * STEP * 17) ** 2  # of the third derivative, beside the first
    assert (np.abs(found - exact[inner]).max(axis=0) < truncation * np.abs(exact).max(axis=0)).all()


def test_parabolas_are_differentiated_exactly_and_even_samples_as_by_lines():
    rng = np.random.default_rng(1)
    t = 10.0 + np.cumsum(rng.uniform(0.5, 1.5, 60))
    found, inner = differentiated(t, 3.0 - 2.0 * t + 0.5 * t**2, 5)
    assert np.allclose(found, t[inner] - 2.0, rtol=1e-10)
    even, noise = 0.01 * np.arange(50), rng.normal(size=50)
    lines = [np.polyfit(even[k - 3 : k + 4], noise[k - 3 : k + 4], 1)[0] for k in range(3, 47)]
    assert np.allclose(differentiated(even, noise, 7)[0], lines, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("place", [0, 1, 50, 98])
def test_gaps_are_refused_wherever_they_are(place):
    taken = np.full(99, STEP)
    taken[place] = 6 * STEP
    with pytest.raises(InputError, match=r"The log has a gap: from t = .* steps of 0\.001 s around it"):
        differentiated(np.concatenate([[0.0], np.cumsum(taken)]), np.zeros(100), 5)


def test_the_mark_at_the_beginning_of_a_spreadsheet_is_no_part_of_a_name(tmp_path):
    path = tmp_path / "log.csv"
    path.write_text("q[joint1],t\n1.0,0.0\n", encoding="utf-8-sig")
    assert list(read_log(path).columns) == ["q[joint1]", "t"]
