"""The closure of loops and couplings at the level of accelerations, against its definition and the graph."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.equations.inputs import joint_forces
from factorgraph_dyn.motion.closure import constraints
from factorgraph_dyn.motion.kinematics import integrate
from factorgraph_dyn.solve.loops.closure_rows import closure_rows
from tests.helpers import relative_error
from tests.mechanisms import random_planar, random_spatial

AGREEMENT = 1e-9
FINITE_DIFFERENCES = 1e-6


def geared() -> fgd.Mechanism:
    chain = fgd.robots.four_bar_chain(2)
    names = chain.joint_names
    return replace(chain, couplings=(fgd.Coupling("gear", names[0], names[-1], ratio=-1.0),))


ROBOTS = [fgd.robots.five_bar, fgd.robots.stewart, fgd.robots.delta, geared, lambda: random_planar(3),
          lambda: random_spatial(1)]  # fmt: skip


@pytest.mark.parametrize("build", ROBOTS)
def test_rows_forces_and_rates(build):
    mechanism = build()
    q, v = mechanism.random_state(1)
    rows = closure_rows(fgd.evaluate_state(mechanism, q, v))
    J = np.vstack([c.jacobian for c in constraints(mechanism, q)])
    assert (rows.J == J).all()
    assert relative_error(joint_forces(rows.state, rows.forces), J.T) < AGREEMENT
    assert list(dict.fromkeys(rows.names)) == [part.name for part in (*mechanism.loops, *mechanism.couplings)]

    def rates(time: float) -> np.ndarray:
        return np.vstack([c.jacobian for c in constraints(mechanism, integrate(mechanism, q, v, time))]) @ v

    assert relative_error(-rows.gamma, (rates(1e-6) - rates(-1e-6)) / 2e-6) < FINITE_DIFFERENCES
    a = fgd.forward_dynamics(mechanism, q, v, np.ones(mechanism.nv)).a
    assert not rows.broken(a)
    assert relative_error(rows.J @ a, rows.gamma) < AGREEMENT


@pytest.mark.parametrize("build", ROBOTS)
def test_independent_rows_say_the_same(build):
    mechanism = build()
    q, v = mechanism.random_state(1)
    rows = closure_rows(fgd.evaluate_state(mechanism, q, v))
    assert len(rows.independent) == rows.rank == len(rows.reduced.J)
    assert mechanism.nv - rows.rank == fgd.diagnose(mechanism, q).mobility
    for some in (rows.own_J[list(rows.independent)], rows.reduced.own_J):
        assert np.linalg.matrix_rank(np.vstack([some, rows.own_J]), 1e-6) == np.linalg.matrix_rank(some, 1e-6)
    assert relative_error(joint_forces(rows.state, rows.reduced.forces), rows.reduced.J.T) < AGREEMENT
    moved = rows.nearest_acceleration(np.zeros(mechanism.nv), np.zeros(mechanism.nv, dtype=bool))[0]
    assert relative_error(rows.reduced.J @ moved, rows.reduced.gamma) < AGREEMENT
    first = rows.independent[0]
    assert rows.names[first] in rows.broken(moved + rows.J[first])
