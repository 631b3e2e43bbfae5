"""Vector code against an interpreter: every width, cut into pieces, any memory layout."""

import numpy as np
import pytest

from factorgraph_dyn.compiler import program
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.tape.tape import Tape
from tests.compiler.backend import gufunc_of, random_program, widths

AGREEMENT = 1e-11
TWO_ULP = 2.0


def interpreted(built, x):
    return np.stack(Interpreter(built, list(np.moveaxis(x, -1, 0))).outputs(), axis=-1)


def assert_close(found, expected):
    scale = np.abs(expected).max(axis=0, keepdims=True) + 1e-300
    assert (np.abs(found - expected) / scale).max() < AGREEMENT


@pytest.mark.parametrize("width", widths())
@pytest.mark.parametrize("segment", [17, 1200, None])
def test_random_programs(width, segment):
    for seed in range(3):
        built = random_program(seed)
        x = np.random.default_rng(seed).normal(size=(37, 7))
        found = gufunc_of(built, [7], 5, width=width, segment=segment)(x)
        assert_close(found, interpreted(built, x))


@pytest.mark.parametrize("segment", [1200, 30, None])
@pytest.mark.parametrize("width", widths())
def test_what_parameters_alone_need_is_there_for_all_states(width, segment):
    built = random_program(6, guards=True, parameters=4)
    assert len(built.once) > 10
    assert built.shared_operations.total < 0.7 * built.operations.total
    gufunc = gufunc_of(built, [3, 4], 5, width=width, segment=segment)
    rng = np.random.default_rng(6)
    x, p = rng.normal(size=(37, 3)), rng.normal(size=(37, 4))
    x[5, 0] = 0.0  # a guard fails
    for parameters in (p, p[0]):
        states = np.hstack([x, np.broadcast_to(parameters, p.shape)])
        found, expected = gufunc(x, parameters), interpreted(built, states)
        assert np.isnan(found[5]).all()
        kept = np.abs(x[:, 0]) > 0.1
        assert_close(found[kept], expected[kept])
        assert (gufunc(x[8], parameters[8] if parameters.ndim > 1 else parameters) == found[8]).all()


def test_without_fused_multiply_add():
    built = random_program(5)
    x = np.random.default_rng(5).normal(size=(20, 7))
    assert_close(gufunc_of(built, [7], 5, fma=False)(x), interpreted(built, x))


@pytest.mark.parametrize("size", [1, 2, 3, 6, 7, 8, 13])
def test_any_number_of_columns_and_rows(size):
    tape = Tape()
    leaves = [tape.input(f"x{k}") for k in range(size)]
    built = program.build(tape, leaves, [-leaf for leaf in reversed(leaves)])
    gufunc = gufunc_of(built, [size], size)
    for rows in (0, 1, 7, 8, 9, 33):
        x = np.random.default_rng(rows).normal(size=(rows, size))
        np.testing.assert_array_equal(gufunc(x), -x[:, ::-1])


def test_results_do_not_depend_on_place_or_layout():
    built = random_program(2)
    gufunc = gufunc_of(built, [7], 5)
    x = np.random.default_rng(2).normal(size=(43, 7))
    expected = gufunc(x)
    for start in range(10):
        np.testing.assert_array_equal(gufunc(x[start : start + 3]), expected[start : start + 3])
    wide = np.zeros((43, 14))
    wide[:, ::2] = x
    np.testing.assert_array_equal(gufunc(wide[:, ::2]), expected)
    np.testing.assert_array_equal(gufunc(np.asfortranarray(x)), expected)
    np.testing.assert_array_equal(gufunc(x[::-1]), expected[::-1])
    shifted = np.frombuffer(b"\0" + x.tobytes(), dtype=np.uint8)[1:].view(np.float64).reshape(43, 7)
    np.testing.assert_array_equal(gufunc(shifted), expected)
    out = np.zeros((5, 43)).T
    assert gufunc(x, out=out) is out
    np.testing.assert_array_equal(out, expected)
    np.testing.assert_array_equal(gufunc(x.astype(">f8")), expected)


@pytest.mark.parametrize("segment", [40, None])
def test_a_guard_spoils_its_state_and_no_other(segment):
    built = random_program(3, guards=True)
    gufunc = gufunc_of(built, [7], 5, segment=segment)
    x = np.random.default_rng(3).normal(size=(50, 7))
    x[:, 0] = np.where(np.arange(50) % 11 == 4, 0.01, 1.0 + np.abs(x[:, 0]))
    x[20, 0] = np.nan
    bad = ~(np.abs(x[:, 0]) > 0.1)
    with np.errstate(invalid="ignore"):
        found = gufunc(x)
    assert np.isnan(found[bad]).all()
    assert not np.isnan(found[~bad]).any()
    assert_close(found[~bad], interpreted(built, x)[~bad])


@pytest.fixture(scope="module", params=[True, False], ids=["fma", "no fma"])
def sincos(request):
    if request.param and not machine.host().fma:
        pytest.skip("this machine has no fused multiply-add")
    tape = Tape()
    x = tape.input("x")
    return gufunc_of(program.build(tape, [x], [tape.sin(x), tape.cos(x)]), [1], 2, fma=request.param)


def ulp_error(found, x):
    """The largest error in units of the last place, or of what rounding of pi/2 to 107 bits is worth at an angle."""
    exact = np.stack([np.sin(np.longdouble(x)), np.cos(np.longdouble(x))], axis=-1)
    last_place = np.spacing(np.abs(exact.astype(np.float64)))
    return np.abs((found - exact) / np.maximum(last_place, PI_ROUNDING * np.abs(x)[:, None])).max()


PI_ROUNDING = 1e-33  # |pi/2 - its first two floats|, for every radian
has_long_double = np.finfo(np.longdouble).nmant > 60


@pytest.mark.skipif(not has_long_double, reason="needs a reference of more than 53 bits")
def test_sine_and_cosine_are_within_two_ulp(sincos):
    rng = np.random.default_rng(0)
    quarters = np.arange(-6400, 6400) * (np.pi / 2)
    points = [
        rng.uniform(-1e4, 1e4, 200_000),
        rng.uniform(-4, 4, 100_000),
        rng.normal(0, 1e-3, 10_000),
        quarters,
        np.nextafter(quarters, 1e9),
        10.0 ** rng.uniform(-300, 4, 10_000),
        rng.uniform(-1, 1, 50_000) * 2.0**20,
        rng.uniform(-1, 1, 50_000) * 2.0**30,
    ]
    for x in points:
        if np.abs(x).max() > 2.0**20 and np.isnan(sincos([2.0**21])).all():
            continue  # without fused multiply-add
        assert ulp_error(sincos(x[:, None]), x) <= TWO_ULP


def test_sine_and_cosine_of_what_is_no_angle(sincos):
    with np.errstate(invalid="ignore"):
        found = sincos(np.array([np.inf, -np.inf, np.nan, 1e22, -1.8e9, 0.0, -0.0, 5e-324])[:, None])
    assert np.isnan(found[:5]).all()
    np.testing.assert_array_equal(found[5:], [[0.0, 1.0], [-0.0, 1.0], [5e-324, 1.0]])
