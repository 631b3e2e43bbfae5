"""Elimination on a tape, against dense solves and the graph, where pivots vanish."""

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import program
from factorgraph_dyn.compiler.derive.again import Again
from factorgraph_dyn.compiler.eliminate import UNIT, Elimination, Unknown
from factorgraph_dyn.compiler.refine import Remaining, refined
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.motion.random_states import far_closed_state

ROUNDING = 1e-12
SPECIAL = 40


def solved(tape, inputs, rows, unknowns, special=0):
    """The program of the unknowns' values."""
    result = Elimination(tape, SampledTape(tape, special), dict(enumerate(rows)), unknowns).run()
    outputs = [result.solution[column][UNIT] for unknown in unknowns for column in unknown.columns]
    return program.build(tape, inputs, outputs, result.guards, result.milestones)


def values(built, columns):
    """The program's outputs at some states, shape (states, outputs)."""
    return np.stack([np.asarray(value) for value in Interpreter(built, columns).outputs()], axis=-1)


@pytest.mark.parametrize("size", [2, 3])
def test_entries_that_vanish_in_turn_are_rotated_together(size):
    """A product of plane rotations has no entry that is safe in all states; as a matrix it is regular in all."""
    rng = np.random.default_rng(size)
    tape = Tape(samples=SPECIAL + 24)
    samples = rng.normal(size=(size - 1, SPECIAL + 24))
    samples[:, :SPECIAL] = rng.integers(-2, 3, (size - 1, SPECIAL)) * np.pi / 2
    angles = [tape.input(f"x{k}", samples[k]) for k in range(size - 1)]
    right = [tape.input(f"b{k}") for k in range(size)]
    matrix = [[1 if i == j else 0 for j in range(size)] for i in range(size)]
    for k, angle in enumerate(angles):
        cosine, sine = tape.cos(angle), tape.sin(angle)
        for j in range(size):
            upper, lower = matrix[k][j], matrix[k + 1][j]
            matrix[k][j] = tape.add(tape.mul(cosine, upper), -tape.mul(sine, lower))
            matrix[k + 1][j] = tape.add(tape.mul(sine, upper), tape.mul(cosine, lower))
    rows = [{j: ref for j, ref in enumerate(row) if ref} | {UNIT: -b} for row, b in zip(matrix, right, strict=True)]
    built = solved(tape, [*angles, *right], rows, [Unknown("x", tuple(range(size)))], SPECIAL)
    turns = rng.integers(-2, 3, (200, size - 1)) * np.pi / 2
    turns[100:] += rng.normal(0, 1e-3, turns[100:].shape)
    b = rng.normal(size=(200, size))
    found = values(built, [*turns.T, *b.T])
    for state in range(200):
        Q = np.eye(size)
        for k, angle in enumerate(turns[state]):
            turn = np.eye(size)
            turn[k : k + 2, k : k + 2] = [[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]]
            Q = turn @ Q
        np.testing.assert_allclose(found[state], Q.T @ b[state], atol=ROUNDING)


def test_a_pivot_that_is_zero_at_a_usual_state_is_refused():
    tape = Tape(samples=4)
    x, b = tape.input("x", np.array([1.0, 2.0, 0.0, 1.5])), tape.input("b")
    with pytest.raises(fgd.CompileError, match=r"no safe pivot for a\[elbow\]: at 1 of 4 random states") as raised:
        solved(tape, [x, b], [{0: x, UNIT: -b}], [Unknown("a[elbow]", (0,))])
    assert raised.value.details["variable"] == "a[elbow]"


def test_a_pivot_may_vanish_at_a_special_state_and_is_watched_there():
    tape = Tape(samples=4)
    x, b = tape.input("x", np.array([0.0, 2.0, 1.0, 1.5])), tape.input("b")
    built = solved(tape, [x, b], [{0: x, UNIT: -b}], [Unknown("a[elbow]", (0,))], special=1)
    failed = Interpreter(built, [np.array([0.0, 2.0]), np.ones(2)]).failures()
    np.testing.assert_array_equal(np.any(failed, axis=0), [True, False])


@pytest.mark.parametrize("ordering", fgd.ORDERING_NAMES[1:])
def test_kernels_are_right_at_quarter_turns_in_every_ordering(ordering):
    mechanism = fgd.robots.panda()
    rng = np.random.default_rng(4)
    q = rng.integers(-1, 2, (30, mechanism.nq)) * np.pi / 2
    q[0] = 0.0
    v, tau = rng.normal(size=(2, 30, mechanism.nv))
    found = fgd.compile(mechanism, "forward", ordering=ordering)(q, v, tau)
    expected = np.array([fgd.forward_dynamics(mechanism, *state).a for state in zip(q, v, tau, strict=True)])
    np.testing.assert_allclose(found, expected, atol=1e-10 * np.abs(expected).max())


@pytest.mark.parametrize("robot", ["five_bar", "stewart", "delta"])
def test_kernels_of_loops_are_right_or_refuse_in_other_assembly_modes(robot):
    mechanism = fgd.robots.BUILT_IN[robot]()
    rng = np.random.default_rng(8)
    states = [far_closed_state(mechanism, rng) for _ in range(10)]
    q, v = (np.array(values) for values in zip(*states, strict=True))
    tau = np.where(mechanism.torque_entries(), rng.normal(size=(10, mechanism.nv)), 0.0)
    found = fgd.compile(mechanism, "forward")(q, v, tau)
    given = ~np.isnan(found).any(axis=1)
    assert given.sum() >= 8
    for state in np.flatnonzero(given):
        expected = fgd.forward_dynamics(mechanism, q[state], v[state], tau[state]).a
        np.testing.assert_allclose(found[state], expected, atol=1e-9 * np.abs(expected).max())


@pytest.mark.parametrize("least", [1e-4, 1e-6])
def test_refinement_gives_back_the_digits_that_poor_pivots_lose(least):
    rng, n, states = np.random.default_rng(7), 2, 40
    A, b = rng.normal(size=(states, n, n)), rng.normal(size=(states, n))
    A[:, range(n), range(n)] = least  # and these are made pivots
    tape = Tape(samples=states)
    samples = SampledTape(tape)
    rows = {k: {j: tape.input(f"A{k}{j}", A[:, k, j]) for j in range(n)} for k in range(n)}
    for k, row in rows.items():
        row[UNIT] = tape.input(f"b{k}", b[:, k])
    how = ([Unknown(f"x{k}", (k,)) for k in range(n)], {k: k for k in range(n)}, ())
    poor = Again(samples, rows, *how, magnitudes={}, noisy=False).run()
    fine = refined(tape, rows, poor, lambda rows: Remaining(samples, rows, *how, magnitudes={}, noisy=False).run())
    expected = np.linalg.solve(A, -b[..., None])[..., 0]
    lost, left = (
        np.abs(np.stack([samples.values(found.solution[k][UNIT]) for k in range(n)], axis=-1) / expected - 1.0)
        for found in (poor, fine)
    )
    assert lost.max() > 1e-16 / least
    assert left.max() < 1e-13


def test_a_cosine_is_no_safe_pivot_even_where_all_samples_keep_it_from_zero():
    rng = np.random.default_rng(3)
    tape = Tape(samples=24)
    angle, right = tape.input("q", rng.uniform(-0.5, 0.5, 24)), tape.input("b", rng.normal(size=24))
    cosine, sine = tape.cos(angle), tape.sin(angle)
    rows = [{0: cosine, 1: -sine, UNIT: -right}, {0: sine, 1: cosine}]
    built = solved(tape, [angle, right], rows, [Unknown("x", (0,)), Unknown("y", (1,))])
    q, b = np.array([0.3, np.pi / 2, -np.pi / 2, np.pi]), np.array([0.7, -0.2, 1.0, 2.0])
    np.testing.assert_allclose(values(built, [q, b]), np.stack([np.cos(q) * b, -np.sin(q) * b], axis=-1), atol=1e-15)
