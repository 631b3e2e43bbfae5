"""The tape: folding, value numbering, sign sharing, and symbols inside arrays."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from factorgraph_dyn import CompileError
from factorgraph_dyn.compiler import program
from factorgraph_dyn.compiler.tape import field
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.tape.samples import SampledTape
from factorgraph_dyn.compiler.tape.symbol import Symbol, references, symbols
from factorgraph_dyn.compiler.tape.tape import ONE, ZERO, Tape


@pytest.fixture
def tape():
    return Tape()


@pytest.fixture
def xyz(tape):
    return symbols(tape, [tape.input(name) for name in "xyz"])


def test_zeros_and_ones_fold(tape, xyz):
    x = xyz[0]
    nodes = len(tape)
    assert (x * 0).ref == ZERO
    assert (x + 0).ref == (1 * x).ref == (x - 0.0).ref == x.ref
    assert (x - x).ref == ZERO
    assert (x * -1).ref == -x.ref
    assert len(tape) == nodes


def test_equal_functions_are_one_node(xyz):
    x, y, z = xyz
    assert (x + y) * z == x * z + y * z
    assert (x + y) * (x - y) == x * x - y * y
    assert x / y == 1 / (y / x)
    assert (y - x).ref == -(x - y).ref
    assert (x.sin() * x.sin() + x.cos() * x.cos()).ref == ONE
    assert (x + y).sin() == x.sin() * y.cos() + x.cos() * y.sin()
    assert (2 * x).cos() == x.cos() * x.cos() - x.sin() * x.sin()
    assert (x + math.pi / 2).sin() == x.cos()
    assert (-x).sin() == -(x.sin())
    assert (-x).sign() == -(x.sign())


def test_different_functions_are_not(xyz):
    x, y, z = xyz
    values = [x, y, z, x + y, x * y, x + y * z, x.sin(), x.cos(), (0.5 * x).sin(), x.sign()]
    assert len({abs(value.ref) for value in values}) == len(values)


def test_constants_are_the_numbers_they_stand_for(tape):
    constant = tape.constant
    assert tape.mul(constant(0.1), constant(0.2)) == constant(0.02)
    assert tape.add(constant(0.1), constant(0.2)) == constant(0.3)
    assert tape.add(constant(3.3), constant(-0.7)) == constant(2.6) != constant(4.0)
    root = constant(math.sqrt(0.5))
    assert tape.mul(root, root) == constant(0.5)
    x = tape.input("x")
    assert tape.add(tape.mul(tape.mul(x, root), root), tape.mul(constant(0.5), x)) == x
    assert tape.reciprocal(constant(-4.0)) == constant(-0.25)
    assert constant(1e-12) != ZERO
    with pytest.raises(CompileError, match="finite"):
        constant(math.inf)
    with pytest.raises(CompileError, match="zero"):
        tape.reciprocal(ZERO)


@settings(deadline=None, max_examples=60)
@given(st.floats(1e-6, 1e6), st.floats(1e-6, 1e6))
def test_folding_follows_floats(a, b):
    tape = Tape()
    for ref, value in (
        (tape.add(tape.constant(a), tape.constant(-b)), a - b),
        (tape.mul(tape.constant(a), tape.constant(-b)), -a * b),
    ):
        assert tape.constant_value(ref) == pytest.approx(value, rel=1e-12, abs=1e-14 * (a + b))


@settings(deadline=None, max_examples=60)
@given(st.integers(0, field.PRIME - 1), st.integers(-9, 9), st.integers(-9, 9))
def test_circle_points_add_like_angles(half_tangent, m, n):
    point = field.circle_point(half_tangent)
    assert (point[0] ** 2 + point[1] ** 2) % field.PRIME == 1
    assert field.turn(field.multiple(point, m), field.multiple(point, n)) == field.multiple(point, m + n)


def test_unit_inputs_have_unit_length(tape):
    x, y, z, w = symbols(tape, tape.unit_inputs(["x", "y", "z", "w"]))
    assert (x * x + y * y + z * z + w * w).ref == ONE


def test_symbols_work_in_object_arrays(tape, xyz):
    matrix = np.array([[1.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
    product = matrix @ xyz
    assert product.shape == (2,)
    assert product[0] == xyz[0] + 2 * xyz[1]
    assert product[1] == xyz[2]
    assert np.sin(xyz)[1] == xyz[1].sin()
    assert np.float64(2.0) * xyz[0] == xyz[0] + xyz[0]
    assert isinstance(np.float64(2.0) / xyz[0], Symbol)
    assert (xyz[0] ** 3) == xyz[0] * xyz[0] * xyz[0]
    assert references(tape, product).shape == (2,)
    with pytest.raises(TypeError, match="branch"):
        bool(xyz[0])


def test_samples_follow_the_tape(tape, xyz):
    x, y, _ = xyz
    samples = SampledTape(tape)
    value = (x.sin() + 2 * y) / (1 + x * x) - y.sign()
    a, b = samples.values(x.ref), samples.values(y.ref)
    np.testing.assert_allclose(samples.values(value.ref), (np.sin(a) + 2 * b) / (1 + a * a) - np.sign(b), rtol=1e-12)


def test_zeros_hidden_by_rounding_are_found(tape, xyz):
    x = xyz[0]
    c, s = math.cos(0.3), math.sin(0.3)
    almost = x * c * c + x * s * s
    samples = SampledTape(tape)
    assert samples.add(almost.ref, -x.ref) == ZERO
    assert samples.add((x + 1e-6).ref, -x.ref) != ZERO


def test_a_false_merge_is_noticed(tape, xyz):
    tape.merges.append((2, xyz[0].ref, xyz[1].ref, xyz[2].ref))
    with pytest.raises(CompileError, match="taken for one"):
        SampledTape(tape).check_merges()


def test_a_common_factor_is_not_drawn_out_of_its_own_result():
    """With n = a b + a c and b + c computed as n / a, writing n as a (b + c) would go in a circle."""
    tape = Tape()
    a, b, c = (tape.input(name) for name in "abc")
    n = tape.add(tape.mul(a, b), tape.mul(a, c))
    built = program.build(tape, [a, b, c], [n, tape.mul(n, tape.reciprocal(a))])
    x = np.random.default_rng(0).normal(size=(3, 20))
    found = Interpreter(built, list(x)).outputs()
    np.testing.assert_allclose(found, [x[0] * (x[1] + x[2]), x[1] + x[2]], rtol=1e-12)


def test_constants_are_one_up_to_rounding_and_no_further():
    """Where a robot is ill conditioned, a constant off by 1e-14 of itself shows in the ninth digit of an answer."""
    tape = Tape()
    first = tape.constant(0.123456789)
    assert tape.constant(0.123456789 * (1 + 1e-15)) == first
    assert tape.constant(0.123456789 * (1 + 1e-14)) != first
