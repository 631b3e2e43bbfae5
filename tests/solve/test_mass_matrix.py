"""The mass matrix by both routes, against Pinocchio."""

from __future__ import annotations

import numpy as np
import pytest

import factorgraph_dyn as fgd
from tests.helpers import lossy, mixed_tree, relative_error
from tests.oracles.engines import pinocchio_oracle

AGREEMENT = 1e-11


@pytest.mark.parametrize("seed", range(8))
def test_both_routes_equal_pinocchio(seed):
    mechanism = lossy(mixed_tree(seed + 300), seed)
    q, _ = mechanism.random_state(seed)
    expected = pinocchio_oracle(mechanism).mass_matrix(q)
    for method in ("columns", "crba"):
        assert relative_error(fgd.mass_matrix(mechanism, q, method=method), expected) < AGREEMENT


def test_the_inverse_is_the_inverse():
    mechanism = fgd.robots.humanoid()
    q, _ = mechanism.random_state(0)
    product = fgd.mass_matrix(mechanism, q) @ fgd.inverse_mass_matrix(mechanism, q)
    assert relative_error(product, np.eye(mechanism.nv)) < 1e-9
