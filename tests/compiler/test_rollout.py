"""Rollouts in machine code: beside loops over another engine's accelerations, and beside simulations of loops."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn import spatial
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.rollout import ENTRY_POINT, emit_rollout
from factorgraph_dyn.compiler.rollout import compiled
from factorgraph_dyn.compiler.rollout.compiled import compiled_rollout
from factorgraph_dyn.compiler.rollout.proof import HOLDS, largest_error
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import references, symbols
from factorgraph_dyn.compiler.tape.tape import Tape
from tests.helpers import lossy, relative_error
from tests.mechanisms import single_loop
from tests.oracles.engines import pinocchio_oracle

ROUNDING = 1e-11
STEP = 2e-3
rng = np.random.default_rng(0)


@cache
def ball_and_plane() -> fgd.Mechanism:
    """A floating body, an arm on a ball joint, and a tip that slides and turns on a plane; all lose energy."""
    body = fgd.Link("body", 2.0, (0.1, 0.2, -0.1), np.diag([0.3, 0.5, 0.7]))
    arm = fgd.Link("arm", 1.0, (0.3, 0.0, 0.1), np.diag([0.1, 0.2, 0.15]))
    tip = fgd.Link("tip", 0.5, (0.1, 0.1, 0.3), np.diag([0.02, 0.03, 0.04]))
    joints = [
        fgd.Joint("root", "floating", "world", "body"),
        fgd.Joint("ball", "spherical", "body", "arm", damping=0.2),
        fgd.Joint("plane", "planar", "arm", "tip", axis=(0.6, 0.0, 0.8), friction=0.3),
    ]
    return fgd.Mechanism("free", [fgd.Link("world"), body, arm, tip], joints)


def starts(mechanism, count):
    states = [mechanism.random_state(np.random.default_rng(k)) for k in range(count)]
    return np.array([q for q, _ in states]), np.array([v for _, v in states])


class PinocchioLoop:
    """Textbook steps on Pinocchio's accelerations and its own composition of turns."""

    def __init__(self, mechanism):
        self.mechanism, self.engine = mechanism, pinocchio_oracle(mechanism)

    def acceleration(self, q, v, tau):
        joints = self.mechanism.movable_joints
        damping, friction = (np.concatenate([getattr(j, word) for j in joints]) for word in ("damping", "friction"))
        return self.engine.forward_dynamics(q, v, tau - damping * v - friction * np.sign(v))

    def semi_implicit(self, q, v, tau, step):
        a = self.acceleration(q, v, tau)
        (u, du), v_new = self.engine.center_of_mass_rates(q, v, a), v + step * a
        u = u + step * du
        return self.flown(self.moved(q, step * v_new), v_new, self.engine.center_of_mass(q) + step * u, u)

    def flown(self, q, v, c, u):
        """A state with the first joint, where it floats, moved so that the centre of mass is at c and moves by u."""
        if self.mechanism.joints[0].kind == "floating":
            R = self.engine.link_pose(q, self.mechanism.joints[0].child)[:3, :3]
            q[:3] += c - self.engine.center_of_mass(q)
            v[3:6] += R.T @ (u - self.engine.center_of_mass_rates(q, v, 0 * v)[0])
        return q, v

    def rk4(self, q, v, tau, step):
        """The classical method, q in coordinates: where q moves by v."""
        a_1 = self.acceleration(q, v, tau)
        v_2 = v + step / 2 * a_1
        a_2 = self.acceleration(q + step / 2 * v, v_2, tau)
        v_3 = v + step / 2 * a_2
        a_3 = self.acceleration(q + step / 2 * v_2, v_3, tau)
        v_4 = v + step * a_3
        a_4 = self.acceleration(q + step * v_3, v_4, tau)
        return q + step / 6 * (v + 2 * v_2 + 2 * v_3 + v_4), v + step / 6 * (a_1 + 2 * a_2 + 2 * a_3 + a_4)

    def moved(self, q, way):
        theirs, ours = self.engine.integrate(q, way), q.copy()
        for joint in self.mechanism.movable_joints:
            model = self.engine._joint(joint)
            part = theirs[model.idx_q : model.idx_q + model.nq]
            here = self.mechanism.q_slice(joint.name)
            ours[here] = [*part[:2], np.arctan2(part[3], part[2])] if joint.kind == "planar" else part
        return ours


def by_pinocchio(mechanism, integrator, q, v, tau, step):
    loop, rows = PinocchioLoop(mechanism), [(q, v)]
    for torque in tau:
        rows.append(getattr(loop, integrator)(*rows[-1], torque, step))
    return np.array([q for q, _ in rows]), np.array([v for _, v in rows])


@pytest.mark.parametrize(
    ("mechanism", "integrator"),
    [
        (fgd.robots.puma560(), "semi_implicit"),
        (fgd.robots.puma560(), "rk4"),
        (ball_and_plane(), "semi_implicit"),
    ],
    ids=["puma semi_implicit", "puma rk4", "free semi_implicit"],
)
def test_rollouts_equal_a_loop_over_pinocchio(mechanism, integrator):
    q, v = starts(mechanism, 5)  # a full tile and one that is not
    tau = rng.normal(size=(5, 20, mechanism.nv))
    q_rows, v_rows = fgd.rollout(mechanism, q, v, tau, STEP, integrator=integrator)
    assert q_rows.shape == (5, 21, mechanism.nq)
    for k in range(5):
        expected = by_pinocchio(mechanism, integrator, q[k], v[k], tau[k], STEP)
        wrapped = fgd.difference(mechanism, expected[0], q_rows[k])  # an angle of Pinocchio's has lost its turns
        assert np.abs(wrapped).max() < ROUNDING
        assert relative_error(v_rows[k], expected[1]) < ROUNDING


@pytest.mark.parametrize(("integrator", "order"), [("semi_implicit", 1), ("rk4", 4)])
def test_errors_fall_with_the_order_also_on_turns(integrator, order):
    mechanism = replace(
        ball_and_plane(), joints=[replace(joint, friction=0.0) for joint in ball_and_plane().joints]
    )  # friction has a kink
    q, v = mechanism.random_state(1)

    def end(steps, integrator):
        q_rows, v_rows = fgd.rollout(
            mechanism, q, v, np.ones((steps, mechanism.nv)), 0.2 / steps, integrator=integrator
        )
        return q_rows[-1], v_rows[-1]

    q_end, v_end = end(2000, "rk4")
    errors = []
    for steps in (40, 80):
        q_found, v_found = end(steps, integrator)
        assert abs(np.linalg.norm(q_found[3:7]) - 1) < 1e-15
        errors.append(max(np.abs(fgd.difference(mechanism, q_end, q_found)).max(), np.abs(v_found - v_end).max()))
    assert np.log2(errors[0] / errors[1]) == pytest.approx(order, abs=0.2)


def test_losses_and_springs_act_as_in_simulations():
    mechanism = lossy(fgd.robots.rrr(), 0)
    q, v = mechanism.random_state(0)
    tau = np.array([1.0, -2.0, 0.5])
    q_rows, v_rows = fgd.rollout(mechanism, q, v, np.broadcast_to(tau, (50, 3)), STEP, integrator="rk4")
    expected = fgd.simulate(mechanism, q, v, tau, 50 * STEP, STEP)
    assert relative_error(q_rows, expected.q) < ROUNDING
    assert relative_error(v_rows, expected.v) < ROUNDING


def test_energy_stays_without_losses():
    mechanism = fgd.robots.puma560()
    q, v = starts(mechanism, 3)
    energies = {}
    for integrator in ("semi_implicit", "rk4"):
        states = fgd.rollout(mechanism, q, v, np.zeros((500, 6)), 1e-3, integrator=integrator)
        kinetic, potential = fgd.energy(mechanism, *states)
        total = kinetic + potential
        energies[integrator] = float((np.ptp(total, axis=-1) / np.ptp(kinetic, axis=-1)).max())
    assert energies["rk4"] < 1e-6
    assert 1e-5 < energies["semi_implicit"] < 0.1


def test_batches_broadcast_and_threads_change_nothing():
    mechanism = fgd.robots.puma560()
    q, v = rng.normal(size=(4, 1, 6)), rng.normal(size=6)
    tau = rng.normal(size=(3, 8, 6))
    q_rows, v_rows = fgd.rollout(mechanism, q, v, tau, STEP)
    assert q_rows.shape == v_rows.shape == (4, 3, 9, 6)
    for one in [(0, 0), (3, 2), (2, 1)]:
        single = fgd.rollout(mechanism, q[one[0], 0], v, tau[one[1]], STEP)
        np.testing.assert_array_equal(q_rows[one], single[0])
        np.testing.assert_array_equal(v_rows[one], single[1])
    for threads in (2, 5, 40):
        np.testing.assert_array_equal(fgd.rollout(mechanism, q, v, tau, STEP, threads=threads)[0], q_rows)
    strided = np.asfortranarray(tau), np.repeat(tau, 2, axis=-1)[..., ::2], tau[::-1][::-1]
    for other in strided:
        np.testing.assert_array_equal(fgd.rollout(mechanism, q, v, other, STEP)[0], q_rows)
    np.testing.assert_array_equal(fgd.rollout(mechanism, q.tolist(), v, tau, STEP)[1], v_rows)


def test_some_steps_are_recorded_and_the_last():
    mechanism = fgd.robots.rrr()
    tau = rng.normal(size=(2, 10, 3))
    every, _ = fgd.rollout(mechanism, np.zeros(3), np.ones(3), tau, STEP)
    for record_every, rows in ((1, range(11)), (2, range(0, 11, 2)), (4, [0, 4, 8, 10]), (10, [0, 10]), (99, [0, 10])):
        some, _ = fgd.rollout(mechanism, np.zeros(3), np.ones(3), tau, STEP, record_every=record_every)
        np.testing.assert_array_equal(some, every[:, list(rows)])
    assert fgd.rollout(mechanism, np.zeros(3), np.ones(3), tau[:, :0], STEP)[0].shape == (2, 1, 3)
    assert fgd.rollout(mechanism, np.zeros((0, 3)), np.ones(3), tau[0], STEP)[0].shape == (0, 11, 3)


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
@pytest.mark.parametrize("robot", ["four_bar", "five_bar"])
def test_loops_stay_closed_and_move_as_simulated(robot, integrator):
    mechanism = fgd.robots.BUILT_IN[robot]()
    q, v = starts(mechanism, 5)
    q_rows, v_rows = fgd.rollout(mechanism, q, v, np.zeros((300, mechanism.nv)), STEP, integrator=integrator)
    for k in range(5):
        for state in zip(q_rows[k, ::30], v_rows[k, ::30], strict=True):
            assert mechanism.closure_error(*state) < 1e-12 * (1.0 + np.abs(state[1]).max())
    kernel = fgd.compile(mechanism)
    expected = fgd.simulate(mechanism, q[1], v[1], None, 20 * STEP, STEP, method=integrator, engine=kernel)
    assert relative_error(q_rows[1, :21], expected.q) < 1e-8
    assert relative_error(v_rows[1, :21], expected.v) < 1e-8


@pytest.mark.slow
def test_quaternions_and_loops_go_together():
    mechanism = fgd.robots.stewart()
    q, v = mechanism.random_state(0)
    q_rows, v_rows = fgd.rollout(mechanism, q, v, np.zeros((100, mechanism.nv)), 1e-3)
    assert max(mechanism.closure_error(*state) for state in zip(q_rows[::20], v_rows[::20], strict=True)) < 1e-12
    kinetic, potential = fgd.energy(mechanism, q_rows, v_rows)
    assert np.ptp(kinetic + potential) < 0.02 * np.ptp(kinetic)


def test_couplings_are_kept():
    arm = fgd.robots.rrr()
    mechanism = replace(arm, couplings=[fgd.Coupling("gear", "joint3", "joint2", ratio=-0.5, offset=0.2)])
    q, v = mechanism.random_state(2)
    q_rows, _ = fgd.rollout(mechanism, q, v, np.zeros((100, 3)), STEP)
    assert np.abs(q_rows[:, 2] + 0.5 * q_rows[:, 1] - 0.2).max() < 1e-14
    expected = fgd.simulate(mechanism, q, v, None, 100 * STEP, STEP, method="semi_implicit")
    assert relative_error(q_rows, expected.q) < ROUNDING


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fixed", "revolute", "prismatic", "universal", "spherical", "planar"])
def test_loops_of_all_kinds_are_closed(kind):
    assert compiled_rollout(single_loop(kind), "semi_implicit").accuracy < HOLDS


def test_loops_that_hold_nothing_change_nothing():
    """A loop of a floating joint has no equation to close."""
    mechanism = fgd.robots.four_bar()
    free = fgd.Loop("free", "floating", mechanism.base, mechanism.links[-1].name)
    q, v = mechanism.random_state(0)
    tau = np.ones((5, mechanism.nv))
    expected = fgd.rollout(mechanism, q, v, tau, STEP)
    found = fgd.rollout(replace(mechanism, loops=(*mechanism.loops, free)), q, v, tau, STEP)
    assert relative_error(found[1], expected[1]) < ROUNDING
    tree = replace(fgd.robots.rrr(), loops=[fgd.Loop("free", "floating", "base", "link3")])
    assert np.isfinite(fgd.rollout(tree, np.zeros(3), np.ones(3), np.ones((5, 3)), STEP)[0]).all()


def test_loops_that_are_not_covered_are_refused_in_words():
    screw = single_loop("helical")
    with pytest.raises(fgd.CompileError, match=r"not covered: loop .* is helical.*fgd\.simulate"):
        fgd.rollout(screw, *screw.random_state(0), np.zeros((1, screw.nv)), STEP)


@pytest.mark.parametrize("size", [1e-6, 1e4])
def test_loops_of_any_size(size):
    from factorgraph_dyn.model.sizes.units import described_in

    bar = fgd.robots.four_bar()
    mechanism = described_in(bar, 1.0 / size, 1.0)  # a metre becomes `size` of them
    q, v = bar.random_state(0)
    expected, _ = fgd.rollout(bar, q, v, np.zeros((50, 3)), STEP)
    found, _ = fgd.rollout(mechanism, q, v, np.zeros((50, 3)), STEP)
    assert max(mechanism.closure_error(place) for place in found) < 1e-12 * max(size, 1.0)
    assert relative_error(found, expected) < 1e-9


def test_a_motion_without_an_answer_is_nan_from_there_on():
    mechanism = ball_and_plane()
    q, v = starts(mechanism, 2)
    tau = np.zeros((2, 6, mechanism.nv))
    tau[1, 3, :3] = 1e9  # turns by far more than a step can
    q_rows, v_rows = fgd.rollout(mechanism, q, v, tau, STEP)
    assert np.isfinite(q_rows[0]).all()
    assert np.isfinite(q_rows[1, :4]).all()
    assert np.isnan(q_rows[1, 4:]).all()
    assert np.isnan(v_rows[1, 4:]).all()


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"q0": np.zeros(5)}, r"q0 has shape \(5,\).*joint1, joint2"),
        ({"v0": np.full(6, np.nan)}, "v0 is not finite at joints joint1"),
        ({"tau": np.zeros(6)}, r"tau has shape \(6,\); it must be \(\.\.\., steps, 6\)"),
        ({"tau": np.zeros((3, 5))}, r"tau has shape \(3, 5\)"),
        ({"tau": np.where(np.eye(6) > 0, np.inf, 0.0)}, "tau is not finite at joints joint1"),
        ({"step": 0.0}, "step is 0; it must be positive"),
        ({"integrator": "euler"}, "integrator is 'euler'.*rk4, semi_implicit"),
        ({"record_every": 0}, "record_every is 0"),
        ({"record_every": 2**64 + 1}, r"record_every is 18446744073709551617; .* 1 or more, below 2\*\*63"),
        ({"record_every": 10**5000}, "record_every is a value of type int that cannot be shown"),
        ({"threads": 0}, "threads is 0"),
        ({"threads": 2**40}, "threads is 1099511627776; .* 1 to 1024"),
        ({"q0": np.zeros((2, 6)), "v0": np.zeros((3, 6))}, r"q0 \(2, 6\), v0 \(3, 6\).*broadcast"),
    ],
)
def test_bad_input_is_refused_in_words(bad, words):
    mechanism = fgd.robots.puma560()
    given = {"q0": np.zeros(6), "v0": np.zeros(6), "tau": np.zeros((4, 6)), "step": STEP} | bad
    with pytest.raises(fgd.InputError, match=words):
        fgd.rollout(mechanism, **given)


def test_bad_starts_are_refused_in_words():
    five_bar = fgd.robots.five_bar()
    open_start = np.stack([five_bar.neutral(), np.full(4, 0.1)])
    with pytest.raises(fgd.InputError, match=r"The start of rollout \(1,\) has no accelerations: .*mechanism\.close"):
        fgd.rollout(five_bar, open_start, np.zeros(4), np.zeros((3, 4)), STEP)
    with pytest.raises(fgd.InputError, match="'root' has length 2"):
        fgd.rollout(ball_and_plane(), 2 * ball_and_plane().neutral(), np.zeros(12), np.zeros((3, 12)), STEP)


# ---- numbers of their own


@pytest.mark.parametrize("integrator", ["semi_implicit", "rk4"])
def test_every_rollout_may_have_its_own_body_friction_and_gravity(integrator):
    arm = lossy(fgd.robots.rrr(), 3)
    q, v = starts(arm, 9)
    tau = rng.normal(size=(9, 12, 3))
    bodies = arm.parameters() * rng.uniform(0.8, 1.2, (9, 1, 1))
    friction, gravity = rng.uniform(0, 1, (9, 1)), rng.normal(size=(9, 3))
    given = {"gravity": gravity, "all": bodies, "friction[joint2]": friction}
    found = fgd.rollout(arm, q, v, tau, STEP, integrator=integrator, parameters=given)
    for k in (0, 4, 8):
        own = replace(arm.with_parameters(bodies[k]), gravity=gravity[k])
        joints = [replace(j, friction=friction[k]) if j.name == "joint2" else j for j in own.joints]
        expected = fgd.rollout(replace(own, joints=joints), q[k], v[k], tau[k], STEP, integrator=integrator)
        for rows, wanted in zip(found, expected, strict=True):
            assert relative_error(rows[k], wanted) < ROUNDING


def test_numbers_of_their_own_broadcast_and_default_to_the_mechanisms():
    bar = fgd.robots.four_bar()
    q, v = bar.random_state(0)
    link, tau = bar.link_names[1], np.zeros((20, bar.nv))
    usual, _ = fgd.rollout(bar, q, v, tau, STEP)
    shared = fgd.rollout(bar, q, v, tau, STEP, parameters={link: bar.parameters([link])[0]})[0]
    assert relative_error(shared, usual) < ROUNDING
    heavier = bar.parameters([link])[0] * np.array([1.0, 2.0])[:, None, None]
    found = fgd.rollout(bar, np.stack([q] * 3), v, tau, STEP, parameters={link: heavier}, threads=2)[0]
    assert found.shape == (2, 3, 21, bar.nq)
    assert relative_error(found[0, 2], usual) < ROUNDING
    other = bar.with_parameters(heavier[1], [link])
    assert relative_error(found[1, 1], fgd.rollout(other, q, v, tau, STEP)[0]) < ROUNDING


def test_results_are_written_where_they_are_wanted():
    arm = fgd.robots.rrr()
    q, v = starts(arm, 5)
    tau = rng.normal(size=(5, 6, 3))
    expected = fgd.rollout(arm, q, v, tau, STEP)
    out = np.empty((5, 7, 3)), np.empty((5, 7, 3))
    found = fgd.rollout(arm, q, v, tau, STEP, out=out)
    assert all(np.shares_memory(*pair) for pair in zip(found, out, strict=True))
    np.testing.assert_array_equal(out, expected)
    on = fgd.rollout(arm, expected[0][:, -1], expected[1][:, -1], tau, STEP)
    fgd.rollout(arm, out[0][:, -1], out[1][:, -1], tau, STEP, out=out)  # from where they ended, over themselves
    np.testing.assert_array_equal(out, on)


@pytest.mark.parametrize(
    ("bad", "words"),
    [
        ({"parameters": [1.0]}, r"parameters is \[1\.0\]; it must be a dict"),
        ({"parameters": {"link9": np.zeros(10)}}, "no parameter 'link9'.*link1, link2"),
        ({"parameters": {"link1": np.zeros((2, 9))}}, r"parameters\['link1'\] has shape \(2, 9\).*\(\.\.\., 10\)"),
        ({"parameters": {"all": np.zeros((4, 10))}}, r"must be \(\.\.\., 3, 10\)"),
        ({"parameters": {"gravity": 9.81}}, r"parameters\['gravity'\] has shape \(\)"),
        ({"parameters": {"gravity": [0, 0, np.nan]}}, r"parameters\['gravity'\] holds values that are not finite"),
        ({"parameters": {"gravity": np.zeros((2, 3))}, "q0": np.zeros((4, 3))}, r"parameters\['gravity'\] \(2, 3\)"),
        ({"out": np.zeros((5, 3))}, r"out is float64 \(5, 3\); it must be two arrays"),
        ({"out": (np.zeros((5, 3)), np.zeros((4, 3)))}, r"\(4, 3\); it must be .* of shape \(5, 3\)"),
        ({"out": (np.zeros((5, 3)), np.zeros((5, 3), np.float32))}, "float32"),
        ({"out": (np.zeros((5, 3)),) * 2}, "Arrays 0 and 1 of out.*have memory in common"),
        ({"out": (lambda x: (x[:5], x[4:]))(np.zeros((9, 3)))}, "Arrays 0 and 1 of out.*have memory in common"),
    ],
)
def test_bad_numbers_and_places_are_refused_in_words(bad, words):
    given = {"q0": np.zeros(3), "v0": np.zeros(3), "tau": np.zeros((4, 3)), "step": STEP} | bad
    with pytest.raises(fgd.InputError, match=words):
        fgd.rollout(fgd.robots.rrr(), **given)


# ---- how it is made


def test_turns_of_symbols_are_those_of_numbers():
    turns = np.array([0.0, 1e-9, 1e-4, 0.3, 1.0, 3.0, 7.9]) / np.sqrt(3.0)
    tape = Tape(samples=len(turns))
    w = symbols(tape, [tape.input(name, turns) for name in "xyz"])
    samples = SampledTape(tape)
    values = np.array([samples.values(int(ref)) for ref in references(tape, spatial.quaternion_of_turn(w))])
    expected = spatial.quaternion_of_turn(np.column_stack([turns] * 3)).T
    assert np.abs(values - expected).max() < 4e-15
    v = np.array([0.3, -0.4, 0.5])
    ends = np.array([samples.values(int(ref)) for ref in references(tape, spatial.arc(w, v))])
    assert np.abs(ends - spatial.arc(np.column_stack([turns] * 3), v).T).max() < 4e-15


def test_a_wrong_loop_is_not_given_away(monkeypatch):
    mechanism = replace(fgd.robots.rrr(), name="proved")
    honest = compiled.integrator_pieces

    def too_far(*words):
        """The pieces of an arm whose first joint stays."""
        pieces = honest(*words)
        outputs = (pieces.last.inputs[0], *pieces.last.outputs[1:])
        return replace(pieces, last=replace(pieces.last, outputs=outputs))

    monkeypatch.setattr(compiled, "integrator_pieces", too_far)
    with pytest.raises(fgd.CompileError, match="does not do what its kernel does in a loop"):
        fgd.rollout(mechanism, np.zeros(3), np.ones(3), np.zeros((2, 3)), STEP)


def test_a_proof_sees_rows_that_are_mixed_up():
    rollout = compiled_rollout(fgd.robots.rrr(), "semi_implicit")
    assert rollout.accuracy < HOLDS

    def swapped(*words):
        q_rows, v_rows = rollout.run(*words)
        return q_rows[:, [0, 2, 1]], v_rows

    def too_long(starts, step, every):
        return rollout.run(starts, 1.01 * step, every)

    for wrong in (swapped, too_long):
        assert largest_error(wrong, rollout.kernel, rollout.problem, "semi_implicit") > HOLDS


def nearly_flat_rhombus() -> fgd.Mechanism:
    """Four bars of nearly one length, which lie nearly in a line at some states: closing is far from linear there."""
    ends = [spatial.pose(np.eye(3), np.array([length, 0.0, 0.0])) for length in (1.0, 1.01)]
    links = [fgd.Link("base"), *(fgd.Link(name, 1.0, (0.5, 0.0, 0.0), np.eye(3) / 100) for name in "abc")]
    joints = [
        fgd.Joint("A", "revolute", "base", "a", axis=(0, 0, 1)),
        fgd.Joint("B", "revolute", "a", "b", ends[0], axis=(0, 0, 1)),
        fgd.Joint("C", "revolute", "base", "c", ends[1], axis=(0, 0, 1)),
    ]
    return fgd.Mechanism("rhombus", links, joints, [fgd.Loop("D", "revolute", "b", "c", ends[0], ends[0], (0, 0, 1))])


def test_a_proof_tells_curved_closures_from_mistakes():
    rollout = compiled_rollout(nearly_flat_rhombus(), "semi_implicit")
    assert rollout.accuracy < HOLDS

    def too_long(starts, step, every):
        return rollout.run(starts, (1 + 1e-6) * step, every)

    assert largest_error(too_long, rollout.kernel, rollout.problem, "semi_implicit") > HOLDS


def test_the_loop_is_the_same_around_ir_and_assembly():
    rollout, host = compiled_rollout(fgd.robots.rrr(), "rk4"), machine.host()
    text = emit_rollout(compiled.step_programs(rollout.kernel, "rk4", rollout.problem), host, segment=100)
    other = replace(rollout, code=machine.load(machine.object_code(text, host), (ENTRY_POINT,), host))
    assert largest_error(other.run, rollout.kernel, rollout.problem, "rk4") < HOLDS


def test_rollouts_are_kept_on_disk(monkeypatch, tmp_path):
    mechanism = replace(fgd.robots.rrr(), name="kept")
    monkeypatch.setenv("FACTORGRAPH_DYN_CACHE", str(tmp_path))
    first = compiled_rollout(mechanism, "rk4")
    assert compiled_rollout(mechanism, "rk4") is first
    monkeypatch.setattr(machine, "object_code", None)  # nothing is compiled again
    again = compiled_rollout(replace(mechanism), "rk4")
    assert again is not first
    assert again.accuracy == first.accuracy


def test_no_rollouts_with_parameters_of_their_own():
    arm = fgd.robots.rrr()
    own = {"gravity": np.zeros((0, 3)), "link2": arm.parameters(["link2"])[0]}
    q, v = fgd.rollout(arm, np.zeros((0, 3)), np.zeros(3), np.zeros((5, 3)), 0.01, parameters=own)
    assert q.shape == v.shape == (0, 6, 3)


def test_a_plane_that_holds_what_stays_in_it_anyway():
    """Hinges that turn in the plane of a loop: nothing is left to close but rounding, and nothing is closed."""
    axis = np.array([0.48, 0.6, 0.64])
    turned = spatial.pose(spatial.rotation_about(np.array([0.8, 0.0, -0.6]), 0.3), np.array([0.2, 0.1, 0.3]))
    links = [fgd.Link("ground"), *(fgd.Link(name, 1.0, (0.1, 0.0, 0.2), np.eye(3)) for name in ("one", "two"))]
    joints = [
        fgd.Joint("first", "revolute", "ground", "one", turned, axis=axis),
        fgd.Joint("second", "revolute", "one", "two", spatial.pose(np.eye(3), np.array([0.6, -0.8, 0.3])), axis=axis),
    ]
    loop = fgd.Loop("plane", "planar", "two", "ground", successor_placement=turned, axis=axis)
    tree = fgd.Mechanism("hinges", links, joints)
    mechanism = fgd.Mechanism("held", links, joints, [loop])
    q, v, tau = np.array([0.3, -0.4]), np.array([1.0, 0.5]), np.ones((20, 2))
    for found, expected in zip(
        fgd.rollout(mechanism, q, v, tau, STEP), fgd.rollout(tree, q, v, tau, STEP), strict=True
    ):
        assert relative_error(found, expected) < ROUNDING
