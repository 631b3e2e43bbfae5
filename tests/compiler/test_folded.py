"""Kernels of linkages whose joint zeros are folded or singular: they hold where the linkage works."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.motion import homes
from tests.folded import bennett, parallelogram, raised, scissor, zeroed

AGREES = 1e-9
UPRIGHT = np.pi / 2


def assert_kernels_agree_with_the_graph(mechanism, places):
    motor, rng = mechanism.joint_names[0], np.random.default_rng(0)
    forward = fgd.compile(mechanism, "forward")
    inverse = fgd.compile(mechanism, "inverse", actuated=[motor])
    for q in places:
        v = mechanism.complete_velocity(q, rng.normal(size=mechanism.nv), given=[motor])
        tau = rng.normal(size=mechanism.nv)
        a = fgd.forward_dynamics(mechanism, q, v, tau).a
        wanted = fgd.inverse_dynamics(mechanism, q, v, a, actuated=[motor]).tau
        assert np.abs(forward(q, v, tau) - a).max() <= AGREES * np.abs(a).max()
        assert np.abs(inverse(q, v, a) - wanted).max() <= AGREES * np.abs(wanted).max()


@pytest.mark.parametrize("stages", [2, 3, 4])
def test_scissors_folded_at_zero(stages):
    assert_kernels_agree_with_the_graph(scissor(stages), [raised(stages, th) for th in np.linspace(0.1, 1.4, 9)])


@pytest.mark.parametrize("zero", [0.0, UPRIGHT])
def test_scissors_with_zeros_where_branches_meet(zero):
    at_zero = raised(2, zero)
    places = [raised(2, th) - at_zero for th in np.linspace(0.1, 1.4, 9)]
    assert_kernels_agree_with_the_graph(zeroed(scissor(2), at_zero), places)


def test_kernels_of_scissors_tell_folded_states():
    mechanism = scissor(2)
    folded, still = np.array([0.3, 0.0, 0.4, 0.0, 0.0]), np.zeros(5)
    assert np.isnan(fgd.compile(mechanism, "forward")(folded, still, np.ones(5))).all()


@pytest.mark.parametrize(
    "mechanism", [bennett(0.0), bennett(1.0), bennett(np.pi), parallelogram(1.0, 2.0), parallelogram(1.0, 1.0)]
)
def test_linkages_folded_and_assembled_at_zero(mechanism):
    assert_kernels_agree_with_the_graph(mechanism, [mechanism.random_state(k)[0] for k in range(9)])


def test_refusals_name_folded_zeros(monkeypatch):
    monkeypatch.setattr(homes, "UNFOLDING_TRIES", 0)
    mechanism = scissor(2, limits=(-9.0, 9.0))  # another than those whose homes are known
    with pytest.raises(fgd.CompileError, match=r"Closure leaves more freedoms at some .* \(1 at 3, 2 at 37\).*zeros"):
        fgd.compile(mechanism, "forward")
