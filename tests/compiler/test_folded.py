"""Kernels of linkages whose joint zeros are folded or singular: they hold where the linkage works."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler.trace import Tracer
from factorgraph_dyn.motion import homes
from tests.folded import bennett, driven, parallelogram, raised, scissor, slider_crank, three_cranks, zeroed
from tests.stress.trial import make_trial, run_trial

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


@pytest.mark.parametrize("crank", [1.0, 1e-3])
def test_slider_cranks_of_equal_bars(crank):
    """Their folded branch has the same mobility: kernels are for the other one, and silent or right in this."""
    mechanism, rng = slider_crank(crank), np.random.default_rng(0)
    assert_kernels_agree_with_the_graph(mechanism, [driven(crank, angle) for angle in np.linspace(0.1, 1.4, 9)])
    for ordering in ("auto", "crba", "colamd", "natural"):
        forward = fgd.compile(mechanism, "forward", ordering=ordering)
        inverse = fgd.compile(mechanism, "inverse", actuated=["j2"], ordering=ordering)
        q, v, tau = driven(crank, 0.7), np.zeros(3), rng.normal(size=3)
        wanted = fgd.inverse_dynamics(mechanism, q, v, v, actuated=["j2"]).tau
        assert np.abs(inverse(q, v, v) - wanted).max() <= AGREES * np.abs(wanted).max()
        for angle in rng.uniform(-np.pi, np.pi, 9):
            folded, turning = np.array([angle, 0.0, 0.0]), np.array([rng.normal(), 0.0, 0.0])
            true = fgd.forward_dynamics(mechanism, folded, turning, tau).a
            found = forward(folded, turning, tau)
            assert np.isnan(found).all() or np.abs(found - true).max() <= AGREES * np.abs(true).max()


RIGID = np.array([1.3297290809541293, 3.2953165274487874, -0.4897772349342901, -2.187868779730799])


@pytest.mark.parametrize("ordering", ["aba", "crba", "colamd", "min_fill"])
def test_kernels_tell_plates_that_are_assembled_rigidly(ordering):
    mechanism, still = three_cranks(), np.zeros(4)
    assert np.abs(fgd.forward_dynamics(mechanism, RIGID, still, np.ones(4)).a).max() < AGREES
    kernel = fgd.compile(mechanism, "forward", ordering=ordering)
    assert np.isnan(kernel(RIGID, still, np.ones(4))).all()
    assert any("branch of loops" in words for words in kernel.check(RIGID, still, np.ones(4)))
    for problem, words in (("iwim", {"actuated": ["j0"]}), ("inverse", {"actuated": ["j0"], "outputs": ["tau", "a"]})):
        kernel = fgd.compile(mechanism, problem, ordering=ordering, **words)
        found = kernel(*(RIGID if name == "q" else still for name in kernel.arguments))
        assert np.isnan(found if problem == "iwim" else found[0]).all()


def test_kernels_of_plates_take_states_that_drifted():
    mechanism = three_cranks()
    kernel, rng = fgd.compile(mechanism, "forward"), np.random.default_rng(0)
    for k in range(20):
        q, v = mechanism.random_state(k)
        a = fgd.forward_dynamics(mechanism, q, v, np.ones(4)).a
        for drift in (1e-8, 1e-5, 1e-3):
            moved = kernel(q + drift * rng.uniform(-1, 1, 4), v, np.ones(4))
            assert np.abs(moved - a).max() <= 1e3 * drift * (np.abs(a).max() + np.abs(v).max() ** 2)


def test_proofs_look_into_other_branches(monkeypatch):
    monkeypatch.setattr(Tracer, "closed", lambda *_: None)
    with pytest.raises(fgd.CompileError, match="in some branch of the loops"):
        fgd.compile(three_cranks(radius=0.4), "forward")  # another than those in the cache


@pytest.mark.parametrize("ordering", ["auto", "crba", "natural"])
def test_hybrid_kernels_of_rhombi(ordering):
    """At some of the states they are tried at, the joint whose acceleration is given does not determine the others."""
    mechanism, rng = parallelogram(1.0, 1.0), np.random.default_rng(0)
    kernel = fgd.compile(mechanism, "hybrid", known_accelerations=["j1"], ordering=ordering)
    q, v = mechanism.random_state(3)
    tau = rng.normal(size=3)
    a = fgd.forward_dynamics(mechanism, q, v, tau).a
    found, torques = kernel(q, v, a, tau)
    assert np.abs(found - a).max() <= AGREES * np.abs(a).max()
    assert np.abs(torques - tau).max() <= AGREES * np.abs(tau).max()


def test_refusals_name_folded_zeros(monkeypatch):
    monkeypatch.setattr(homes, "UNFOLDING_TRIES", 0)
    mechanism = scissor(2, limits=(-9.0, 9.0))  # another than those whose homes are known
    with pytest.raises(
        fgd.CompileError, match=r"leaves 2 freedoms around the joint zeros and 1 elsewhere: these zeros"
    ):
        fgd.compile(mechanism, "forward")


def test_parts_that_almost_fit_elsewhere_are_not_tried_there():
    """A strut that is locked in a triangle, and fits the mirrored one but for a tilt of 1e-8: only there it is open."""
    verdicts = run_trial(make_trial(20261125, 724))
    assert {verdict.kind for verdict in verdicts} == {"right"}
