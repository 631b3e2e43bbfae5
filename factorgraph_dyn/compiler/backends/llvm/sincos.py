"""Sine and cosine of vectors of angles, as LLVM functions.

Takes a vector width; gives IR text of ``@sincos_batch(workspace, table of slots, count, results)``.

    k = round(x 2/pi),   r = x - k pi/2 in steps (Cody & Waite 1980),   z = r^2
    sin r = r + r z P(z),   cos r = 1 - z/2 + z^2 Q(z),   then swap and negate by k mod 4

P and Q are degree 5, interpolated at Chebyshev points of 0 <= z <= (pi/4)^2. pi/2 is held to 138 bits
or more and the products k pi/2 are exact, so the result is within 2 ulp for |x| up to 2^30 (2^20 without fused
multiply-add). Beyond, x 2/pi mod 4 is an integer product with the right window of 2/pi's bits
(Payne & Hanek 1983), lane by lane. Infinite angles give nan.

The work runs once a kernel; the functions need no mathematics library.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache

from factorgraph_dyn.compiler.backends.llvm.body import double

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
_FAR, _FAR_WITHOUT_FMA = 2.0**30, 2.0**20
_BITS = 1400
_WORDS = 22
_PADDING = 64  # zero bits before those of 2/pi in the table


@cache
def _half_pi() -> Fraction:
    """pi/2 to some 1400 bits, by Machin's formula."""
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


def _two_over_pi_words() -> str:
    bits = int((1 / _half_pi()) * (1 << (64 * _WORDS - _PADDING)))
    words = [(bits >> (64 * (_WORDS - 1 - k))) & (2**64 - 1) for k in range(_WORDS)]
    return ", ".join(f"i64 {word}" for word in words)


def sincos_functions(width: int, *, fma: bool) -> str:
    """IR of the vector sine and cosine.

    Args:
        width: Angles a vector holds.
        fma: Whether the machine has fused multiply-add.
    """
    far = _FAR if fma else _FAR_WITHOUT_FMA
    return "\n".join([_reduce_far(), _patch_far(width, far), _batch(width, fma, far)])


def _reduce_far() -> str:
    """@reduce_far(x, *r, *k): one angle of any size."""
    high, low = half_pi_parts(floats=2)
    return f"""
@two_over_pi = private unnamed_addr constant [{_WORDS} x i64] [{_two_over_pi_words()}]

define internal void @reduce_far(double %x, ptr %rp, ptr %kp) #1 {{
  %bits = bitcast double %x to i64
  %e0 = lshr i64 %bits, 52
  %e = and i64 %e0, 2047
  %finite = icmp ne i64 %e, 2047
  br i1 %finite, label %regular, label %undefined
undefined:
  %nan = fsub double %x, %x
  store double %nan, ptr %rp
  store i64 0, ptr %kp
  ret void
regular:
  %fraction = and i64 %bits, 4503599627370495
  %m = or i64 %fraction, 4503599627370496
  %at = sub i64 %e, {1075 - _PADDING + 2}
  %word = lshr i64 %at, 6
  %shift = and i64 %at, 63
  %p0 = getelementptr i64, ptr @two_over_pi, i64 %word
  %p1 = getelementptr i64, ptr %p0, i64 1
  %p2 = getelementptr i64, ptr %p0, i64 2
  %p3 = getelementptr i64, ptr %p0, i64 3
  %w0 = load i64, ptr %p0
  %w1 = load i64, ptr %p1
  %w2 = load i64, ptr %p2
  %w3 = load i64, ptr %p3
  %a2 = call i64 @llvm.fshl.i64(i64 %w0, i64 %w1, i64 %shift)
  %a1 = call i64 @llvm.fshl.i64(i64 %w1, i64 %w2, i64 %shift)
  %a0 = call i64 @llvm.fshl.i64(i64 %w2, i64 %w3, i64 %shift)
  %mm = zext i64 %m to i128
  %b0 = zext i64 %a0 to i128
  %b1 = zext i64 %a1 to i128
  %b2 = zext i64 %a2 to i128
  %m0 = mul i128 %b0, %mm
  %m1 = mul i128 %b1, %mm
  %m2 = mul i128 %b2, %mm
  %c0 = lshr i128 %m0, 64
  %t1 = add i128 %m1, %c0
  %c1 = lshr i128 %t1, 64
  %t2 = add i128 %m2, %c1
  %r0 = trunc i128 %m0 to i64
  %r1 = trunc i128 %t1 to i64
  %r2 = trunc i128 %t2 to i64
  %q0 = lshr i64 %r2, 62
  %f1 = call i64 @llvm.fshl.i64(i64 %r2, i64 %r1, i64 2)
  %f0 = call i64 @llvm.fshl.i64(i64 %r1, i64 %r0, i64 2)
  %up = lshr i64 %f1, 63
  %q = add i64 %q0, %up
  %fh = zext i64 %f1 to i128
  %fl = zext i64 %f0 to i128
  %fs = shl i128 %fh, 64
  %f = or i128 %fs, %fl
  %below = icmp slt i128 %f, 0
  %minus_f = sub i128 0, %f
  %size = select i1 %below, i128 %minus_f, i128 %f
  %zeros = call i128 @llvm.ctlz.i128(i128 %size, i1 false)
  %shifted = shl i128 %size, %zeros
  %top0 = lshr i128 %shifted, 75
  %top1 = trunc i128 %top0 to i64
  %next0 = lshr i128 %shifted, 43
  %next1 = trunc i128 %next0 to i64
  %next2 = and i64 %next1, 4294967295
  %top = sitofp i64 %top1 to double
  %next = sitofp i64 %next2 to double
  %next_scaled = fmul double %next, {double(2.0**-32)}
  %zeros64 = trunc i128 %zeros to i64
  %exponent0 = sub i64 {1023 - 53}, %zeros64
  %exponent = shl i64 %exponent0, 52
  %scale = bitcast i64 %exponent to double
  %product = fmul double %top, {double(high)}
  %minus_product = fneg double %product
  %error = call double @llvm.fma.f64(double %top, double {double(high)}, double %minus_product)
  %low0 = fmul double %top, {double(low)}
  %low1 = fmul double %next_scaled, {double(high)}
  %low2 = fadd double %low0, %low1
  %low = fadd double %error, %low2
  %sum = fadd double %product, %low
  %r_size = fmul double %sum, %scale
  %x_below = icmp slt i64 %bits, 0
  %flip = xor i1 %below, %x_below
  %r_minus = fneg double %r_size
  %r = select i1 %flip, double %r_minus, double %r_size
  %q_minus = sub i64 0, %q
  %k = select i1 %x_below, i64 %q_minus, i64 %q
  store double %r, ptr %rp
  store i64 %k, ptr %kp
  ret void
}}"""


def _patch_far(width: int, far: float) -> str:
    """@patch_far(x, r, k): reduce again the lanes that are far out."""
    return f"""
define internal void @patch_far(ptr %x, ptr %r, ptr %k) #1 {{
entry:
  br label %next
next:
  %lane = phi i64 [0, %entry], [%lane1, %then]
  %xp = getelementptr double, ptr %x, i64 %lane
  %rp = getelementptr double, ptr %r, i64 %lane
  %kp = getelementptr i64, ptr %k, i64 %lane
  %value = load double, ptr %xp
  %size = call double @llvm.fabs.f64(double %value)
  %far = fcmp ogt double %size, {double(far)}
  br i1 %far, label %reduce, label %then
reduce:
  call void @reduce_far(double %value, ptr %rp, ptr %kp)
  br label %then
then:
  %lane1 = add i64 %lane, 1
  %more = icmp ult i64 %lane1, {width}
  br i1 %more, label %next, label %end
end:
  ret void
}}"""


def _batch(width: int, fma: bool, far: float) -> str:
    vector, integers, bits = f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>"
    lines: list[str] = []

    def splat(value: float) -> str:
        return f"splat (double {double(value)})"

    def multiply_add(name: str, a: str, b: str, c: str) -> str:
        if fma:
            lines.append(f"  {name} = call {vector} @llvm.fma.v{width}f64({vector} {a}, {vector} {b}, {vector} {c})")
        else:
            lines.append(f"  {name}_m = fmul {vector} {a}, {b}")
            lines.append(f"  {name} = fadd {vector} {name}_m, {c}")
        return name

    def polynomial(name: str, coefficients: tuple[float, ...]) -> str:
        value = splat(coefficients[-1])
        for degree in range(len(coefficients) - 2, -1, -1):
            value = multiply_add(f"%{name}{degree}", value, "%z", splat(coefficients[degree]))
        return value

    # Without fused multiply-add the products k * part have to be exact (k has up to 20 bits), and so has
    # x - k (the first two parts), which is below 1 and a multiple of 2^-53.
    parts = half_pi_parts(floats=3) if fma else half_pi_parts(32, 53, 85)
    multiply_add("%shifted", "%x", splat(float(1 / _half_pi())), splat(_ROUND))
    lines.append(f"  %k = fsub {vector} %shifted, {splat(_ROUND)}")
    lines.append(f"  %k_bits = bitcast {vector} %shifted to {integers}")
    near = "%x"
    for step, part in enumerate(parts):
        near = multiply_add(f"%near{step}", "%k", splat(-part), near)
    head = "\n".join(lines)
    lines.clear()
    lines.append(f"  %z = fmul {vector} %r, %r")
    sine = polynomial("sp", _SINE)
    lines.append(f"  %rz = fmul {vector} %r, %z")
    multiply_add("%sine", "%rz", sine, "%r")
    cosine = polynomial("cp", _COSINE)
    lines.append(f"  %zz = fmul {vector} %z, %z")
    multiply_add("%half", "%z", splat(-0.5), splat(1.0))
    multiply_add("%cosine", "%zz", cosine, "%half")
    tail = "\n".join(lines)
    align = f"align {8 * width}"
    return f"""
define internal void @sincos_batch(ptr noalias %w, ptr %table, i64 %count, ptr %results) #0 {{
entry:
  %xs = alloca {vector}, {align}
  %rs = alloca {vector}, {align}
  %ks = alloca {integers}, {align}
  br label %next
next:
  %i = phi i64 [0, %entry], [%i1, %join]
  %tp = getelementptr i32, ptr %table, i64 %i
  %slot32 = load i32, ptr %tp, align 4
  %slot = zext i32 %slot32 to i64
  %xp = getelementptr {vector}, ptr %w, i64 %slot
  %x = load {vector}, ptr %xp, {align}
{head}
  %size = call {vector} @llvm.fabs.v{width}f64({vector} %x)
  %far = fcmp ogt {vector} %size, {splat(far)}
  %any = call i1 @llvm.vector.reduce.or.v{width}i1({bits} %far)
  br i1 %any, label %patch, label %join, !prof !0
patch:
  store {vector} %x, ptr %xs, {align}
  store {vector} {near}, ptr %rs, {align}
  store {integers} %k_bits, ptr %ks, {align}
  call void @patch_far(ptr %xs, ptr %rs, ptr %ks)
  %r_far = load {vector}, ptr %rs, {align}
  %k_far = load {integers}, ptr %ks, {align}
  br label %join
join:
  %r = phi {vector} [{near}, %next], [%r_far, %patch]
  %quadrant = phi {integers} [%k_bits, %next], [%k_far, %patch]
{tail}
  %odd_bit = and {integers} %quadrant, splat (i64 1)
  %odd = icmp ne {integers} %odd_bit, zeroinitializer
  %s0 = select {bits} %odd, {vector} %cosine, {vector} %sine
  %c0 = select {bits} %odd, {vector} %sine, {vector} %cosine
  %s_turn = shl {integers} %quadrant, splat (i64 62)
  %s_sign = and {integers} %s_turn, splat (i64 -9223372036854775808)
  %after = add {integers} %quadrant, splat (i64 1)
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
}}
!0 = !{{!"branch_weights", i32 1, i32 100000}}"""
