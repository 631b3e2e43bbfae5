"""Sine and cosine of vectors of angles, as LLVM functions.

Takes a vector width; gives IR text of ``@sincos_batch(workspace, table of slots, count, results)``.

    k = round(x 2/pi),   r = x - k pi/2 in steps (Cody & Waite 1980),   z = r^2
    sin r = r + r z P(z),   cos r = 1 - z/2 + z^2 Q(z),   then swap and negate by k mod 4

P and Q are degree 5, interpolated at Chebyshev points of 0 <= z <= (pi/4)^2. pi/2 is held to 138 bits
or more and the products k pi/2 are exact, so the result is within 2 ulp for |x| up to 2^30 (2^20 without fused
multiply-add). Beyond, where an angle's last digit is worth more than a microradian's billionth, the answer is nan.

The work runs once a kernel; the functions need no mathematics library.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from factorgraph_dyn.compiler.backends.llvm.body import splat

_SINE = (
    -0.16666666666666666,
    0.008333333333330946,
    -0.0001984126983675497,
    2.755731610068303e-06,
    -2.5051131455427946e-08,
    1.591810123027412e-10,
)
_COSINE = (
    0.041666666666666664,
    -0.0013888888888887395,
    2.4801587298763433e-05,
    -2.7557317270560326e-07,
    2.0876146024689747e-09,
    -1.1382614868556325e-11,
)
_ROUND = 1.5 * 2.0**52  # adding it leaves the nearest integer in the low bits
_LARGEST_ANGLE, _LARGEST_WITHOUT_FMA = 2.0**30, 2.0**20
_BITS = 300


@cache
def _half_pi() -> Fraction:
    """pi/2 to some 300 bits, by Machin's formula."""
    one = 1 << _BITS + 32

    def arctangent_of_inverse(n: int) -> int:
        term, total, k = one // n, 0, 0
        while term:
            total += -(term // (2 * k + 1)) if k % 2 else term // (2 * k + 1)
            term //= n * n
            k += 1
        return total

    return Fraction(2 * (4 * arctangent_of_inverse(5) - arctangent_of_inverse(239)), one)


@cache
def half_pi_parts(*places: int, floats: int = 1) -> tuple[float, ...]:
    """Numbers that sum to pi/2: one cut at each of these binary places, then the rest as so many full floats."""
    rest, parts = _half_pi(), []
    for place in places:
        parts.append(math.floor(rest * 2**place) / 2**place)
        rest -= Fraction(parts[-1])
    for _ in range(floats):
        parts.append(float(rest))
        rest -= Fraction(parts[-1])
    return tuple(parts)


def farthest(*, fma: bool) -> float:
    """The largest angle that has a sine and cosine, rad."""
    return _LARGEST_ANGLE if fma else _LARGEST_WITHOUT_FMA


def sincos_functions(width: int, *, fma: bool) -> str:
    """IR of the vector sine and cosine.

    Args:
        width: Angles a vector holds.
        fma: Whether the machine has fused multiply-add.
    """
    vector, integers, bits = f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>"
    align = f"align {8 * width}"
    lines: list[str] = []
    table: list[float] = []

    def in_memory(number: float) -> str:
        """A vector in memory, which an instruction reads by itself; a constant LLVM would spread by one of its own."""
        table.append(number)
        name = f"%constant{len(table)}"
        place = f"getelementptr inbounds ({vector}, ptr @sincos_constants, i64 {len(table) - 1})"
        lines.append(f"  {name} = load {vector}, ptr {place}, {align}")
        return name

    def multiply_add(name: str, a: str, b: str, c: str) -> str:
        if fma:
            lines.append(f"  {name} = call {vector} @llvm.fma.v{width}f64({vector} {a}, {vector} {b}, {vector} {c})")
        else:
            lines.append(f"  {name}_m = fmul {vector} {a}, {b}")
            lines.append(f"  {name} = fadd {vector} {name}_m, {c}")
        return name

    def polynomial(name: str, coefficients: tuple[float, ...]) -> str:
        value = in_memory(coefficients[-1])
        for degree in range(len(coefficients) - 2, -1, -1):
            value = multiply_add(f"%{name}{degree}", value, "%z", in_memory(coefficients[degree]))
        return value

    # Without fused multiply-add the products k * part have to be exact (k has up to 20 bits), and so has
    # x - k (the first two parts), which is below 1 and a multiple of 2^-53.
    parts = half_pi_parts(floats=3) if fma else half_pi_parts(32, 53, 85)
    multiply_add("%shifted", "%x", in_memory(float(1 / _half_pi())), in_memory(_ROUND))
    lines.append(f"  %k = fsub {vector} %shifted, {in_memory(_ROUND)}")
    lines.append(f"  %k_bits = bitcast {vector} %shifted to {integers}")
    near = "%x"
    for step, part in enumerate(parts):
        near = multiply_add(f"%near{step}", "%k", in_memory(-part), near)
    head = "\n".join(lines)
    lines.clear()
    lines.append(f"  %z = fmul {vector} %r, %r")
    sine = polynomial("sp", _SINE)
    lines.append(f"  %rz = fmul {vector} %r, %z")
    multiply_add("%sine", "%rz", sine, "%r")
    cosine = polynomial("cp", _COSINE)
    lines.append(f"  %zz = fmul {vector} %z, %z")
    multiply_add("%half", "%z", in_memory(-0.5), in_memory(1.0))
    multiply_add("%cosine", "%zz", cosine, "%half")
    tail = "\n".join(lines)
    numbers = ", ".join(f"{vector} {splat(number)}" for number in table)
    return f"""
@sincos_constants = internal global [{len(table)} x {vector}] [{numbers}], {align}
define internal void @sincos_batch(ptr noalias %w, ptr %table, i64 %count, ptr %results) #0 {{
entry:
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %next]
  %tp = getelementptr i32, ptr %table, i64 %i
  %slot32 = load i32, ptr %tp, align 4
  %slot = zext i32 %slot32 to i64
  %xp = getelementptr {vector}, ptr %w, i64 %slot
  %x = load {vector}, ptr %xp, {align}
{head}
  %size = call {vector} @llvm.fabs.v{width}f64({vector} %x)
  %far = fcmp ogt {vector} %size, {splat(farthest(fma=fma))}
  %r = select {bits} %far, {vector} {splat(math.nan)}, {vector} {near}
{tail}
  %odd_bit = and {integers} %k_bits, splat (i64 1)
  %odd = icmp ne {integers} %odd_bit, zeroinitializer
  %s0 = select {bits} %odd, {vector} %cosine, {vector} %sine
  %c0 = select {bits} %odd, {vector} %sine, {vector} %cosine
  %s_turn = shl {integers} %k_bits, splat (i64 62)
  %s_sign = and {integers} %s_turn, splat (i64 -9223372036854775808)
  %after = add {integers} %k_bits, splat (i64 1)
  %c_turn = shl {integers} %after, splat (i64 62)
  %c_sign = and {integers} %c_turn, splat (i64 -9223372036854775808)
  %s_bits = bitcast {vector} %s0 to {integers}
  %c_bits = bitcast {vector} %c0 to {integers}
  %s_xor = xor {integers} %s_bits, %s_sign
  %c_xor = xor {integers} %c_bits, %c_sign
  %s = bitcast {integers} %s_xor to {vector}
  %c = bitcast {integers} %c_xor to {vector}
  %even = shl i64 %i, 1
  %next_slot = or i64 %even, 1
  %cp = getelementptr {vector}, ptr %results, i64 %even
  %sp = getelementptr {vector}, ptr %results, i64 %next_slot
  store {vector} %c, ptr %cp, {align}
  store {vector} %s, ptr %sp, {align}
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %count
  br i1 %more, label %next, label %end
end:
  ret void
}}"""
