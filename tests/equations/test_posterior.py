"""Rows as combinations of others."""

import numpy as np
import pytest

from factorgraph_dyn.equations.posterior import Basis

WEAK = 1e-3  # what the last of the chosen rows says that others do not
EXACT = 1e-10


@pytest.mark.parametrize("share", [5e-13, 1e-14, 1.0])
def test_a_small_coefficient_of_a_weak_row_is_one(share):
    """What it is made of is known as well as rows before it are, however weak the row itself is."""
    rows = np.array([[1.0, 0.0], [np.sqrt(1.0 - WEAK**2), WEAK]])
    basis = Basis(rows, np.ones(2), 1e-10)
    asked = np.array([[np.sqrt(1.0 - share**2), share]])
    assert basis.combinations(asked)[0, 1] == pytest.approx(share / WEAK, rel=EXACT)


def test_rounding_of_a_row_is_no_coefficient():
    """A row that others say exactly is no combination of one that is a million times as vague."""
    rng = np.random.default_rng(0)
    sharp, vague = rng.normal(size=(3, 4)), rng.normal(size=(1, 4))
    rows = np.vstack([sharp, vague])
    rows /= np.linalg.norm(rows, axis=1)[:, None]
    basis = Basis(rows, np.array([1.0, 1.0, 1.0, 1e6]), 1e-10)
    asked = rng.normal(size=(20, 3)) @ sharp
    asked /= np.linalg.norm(asked, axis=1)[:, None]
    assert basis.chosen[-1] == len(sharp)
    assert not basis.combinations(asked)[:, -1].any()
