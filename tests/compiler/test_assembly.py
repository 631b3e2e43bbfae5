"""Assembly against LLVM's code of the same program, for every instruction set that this machine has."""

import dataclasses

import numpy as np
import pytest

import factorgraph_dyn as fgd
from factorgraph_dyn.compiler import program
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.backends.llvm.module import body_for
from factorgraph_dyn.compiler.backends.x86 import assembly
from factorgraph_dyn.compiler.program import DIVISION_TIME, SINCOS_TIME
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import make_problem
from tests.compiler.backend import assembly_widths, gufunc_of, random_program

pytestmark = pytest.mark.skipif(not assembly_widths(), reason="there is no assembly for this machine")
every_width = pytest.mark.parametrize("width", assembly_widths())
STRANGE = (0.0, -0.0, 5e-324, -2e-310, 1e-200, 1e200, -1e308, np.inf, -np.inf, np.nan, 1.0, -1.0)
LLVM = 1 << 40  # operations a function of IR may have: all of them


def assert_same_bits(built, x, outputs, width):
    """The same fused operations on the same operands, so the same bits; of nan there are several."""
    with np.errstate(all="ignore"):
        found, expected = (gufunc_of(built, [x.shape[1]], outputs, width=width, segment=s)(x) for s in (None, LLVM))
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@every_width
@pytest.mark.parametrize("seed", range(12))
def test_assembly_computes_what_llvm_does(seed, width):
    built = random_program(seed, steps=40 * (seed + 1), outputs=1 + seed % 9, guards=seed % 2 == 0)
    assert_same_bits(built, np.random.default_rng(seed).normal(size=(9, 7)), 1 + seed % 9, width)


@every_width
@pytest.mark.parametrize("seed", range(4))
def test_strange_numbers(seed, width):
    rng = np.random.default_rng(seed)
    x = rng.choice([*STRANGE, *rng.normal(size=4)], size=(64, 7))
    assert_same_bits(random_program(seed, steps=60, outputs=40, guards=seed % 2 == 0), x, 40, width)


@every_width
def test_every_operation_with_strange_numbers(width):
    tape = Tape()
    x, y, z = (tape.input(name) for name in "xyz")
    product, half = tape.mul(x, y), tape.constant(0.5)
    sums = [tape.add(product, z), tape.add(product, -z), tape.add(z, -product), -tape.add(tape.mul(half, x), z)]
    single = [tape.add(x, y), tape.add(x, -y), tape.mul(half, z), tape.reciprocal(x), tape.sign(y), -tape.sign(z)]
    built = program.build(tape, [x, y, z], [*sums, *single, x, -x, half, -half, product])
    grid = np.array(np.meshgrid(STRANGE, STRANGE, STRANGE)).reshape(3, -1).T
    assert_same_bits(built, grid, 15, width)


@every_width
@pytest.mark.parametrize("count", [15, 16, 17, 31, 32, 33, 300])
def test_values_that_wait_in_memory(count, width):
    """As many values as registers, and more than short addresses reach, all needed twice in another order."""
    tape = Tape()
    inputs = [tape.input(f"x{k}") for k in range(count)]
    values = [tape.mul(x, tape.constant(1.0 + k / 7)) for k, x in enumerate(inputs)]
    mixed = [
        tape.add(tape.mul(a, b), -c) for a, b, c in zip(values, values[::-1], values[1:] + values[:1], strict=True)
    ]
    order = np.random.default_rng(count).permutation(count)
    built = program.build(tape, inputs, [tape.mul(mixed[k], values[j]) for j, k in enumerate(order)])
    assert_same_bits(built, np.random.default_rng(0).normal(size=(11, count)), count, width)


@every_width
def test_sines_of_sines(width):
    tape = Tape()
    x = tape.input("x")
    angle = x
    for _ in range(4):
        angle = tape.add(tape.sin(angle), tape.mul(x, tape.cos(angle)))
    assert_same_bits(program.build(tape, [x], [angle, -tape.sin(angle)]), np.linspace(-9, 9, 41)[:, None], 2, width)


@every_width
def test_assembly_has_fewer_instructions_than_llvm(width):
    robot = fgd.robots.humanoid()
    built = trace(robot, make_problem(robot, "forward"), "aba").program
    text = assembly.emit_assembly(built, width).text
    operations = built.instructions - DIVISION_TIME * built.operations.divisions - SINCOS_TIME * built.operations.sincos
    assert text.count(r"\0Av") < 1.55 * operations


@every_width
def test_a_sum_that_needs_none_of_its_terms_again_copies_none(width):
    tape = Tape()
    a, b, c = (tape.add(tape.input(name), tape.input(name + "'")) for name in "abc")
    total = tape.add(tape.mul(a, b), c)
    text = assembly.emit_assembly(program.build(tape, list(tape.input_names), [total]), width).text
    assert [line.split()[0] for line in text.split(r"\0A") if line.startswith("v")].count("vmovapd") == 4
    assert "vfmadd" in text


@pytest.mark.parametrize(
    "other",
    [
        {"triple": "x86_64-pc-windows-msvc"},
        {"triple": "x86_64-apple-darwin23"},
        {"triple": "aarch64-unknown-linux-gnu"},
        {"fma": False},
        {"width": 2},
    ],
    ids=str,
)
def test_other_machines_have_ir(other):
    foreign = dataclasses.replace(machine.host(), **other)
    assert not assembly.is_for(foreign)
    assert "module asm" not in body_for(random_program(0), foreign).text


def test_kernels_of_narrower_instructions(monkeypatch):
    arm = fgd.robots.puma560()
    q, v = arm.random_state(0)
    answers, machines = [], set()
    for word in ("native", "avx512", "avx2", "SSE2"):
        monkeypatch.setenv(machine.ENVIRONMENT_VARIABLE, word)
        machines.add(machine.host())
        answers.append(fgd.compile(arm, "forward")(q, v, v))
    assert {found.width for found in machines} == {2, 4, 8} & set(range(machine.whole_host().width + 1))
    assert len({repr(found) for found in machines}) == len(machines)  # a part of the name in the cache
    np.testing.assert_allclose(answers, [answers[0]] * 4, rtol=1e-10)


def test_instructions_that_there_are_not(monkeypatch):
    monkeypatch.setenv(machine.ENVIRONMENT_VARIABLE, "avx1024")
    with pytest.raises(fgd.InputError, match=r"FACTORGRAPH_DYN_INSTRUCTIONS is 'avx1024'.*avx512, avx2, sse2"):
        fgd.compile(fgd.robots.rrr())
