"""Sine and cosine of vectors of angles, as LLVM functions.

Takes a vector width; gives IR text of ``@sincos_batch<width>(workspace, table of slots, count, results)``.

    k = round(x 2/pi),   r = x - k pi/2 in steps (Cody & Waite 1980),   z = r^2
    sin r = r + r z P(z),   cos r = 1 + z (z Q(z) - 1/2),   then swap and negate by k mod 4

P and Q are degree 5, interpolated at Chebyshev points of 0 <= z <= (pi/4)^2. pi/2 is held to 138 bits
or more and the products k pi/2 are exact, so the result is within 2 ulp for |x| up to 2^30 (2^20 without fused
multiply-add). Beyond, where an angle's last digit is worth more than a microradian's billionth, the answer is nan:
all angles of a batch are looked at together, by the sum of their squares, and one by one where it is too large.

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
    steps = _Steps(width, fma)
    limit = farthest(fma=fma)
    numbers = ", ".join(f"{steps.vector} {splat(number)}" for number in steps.table)
    return f"""
@sincos_constants{width} = internal global [{len(steps.table)} x {steps.vector}] [{numbers}], align {8 * width}
{_over_angles(f"sincos_batch{width}", "#0", steps.vector, steps.lines, _look_for_far_ones(width, limit))}
{_over_angles(f"sincos_far{width}", "#1", steps.vector, _spoil(width, limit), "")}"""


class _Steps:
    """What is done with an angle.

    Attributes:
        lines: IR from %x to %c, its cosine, and %s, its sine; %sum becomes %squares.
        table: Numbers that it reads from memory: a constant LLVM would spread by an instruction of its own.
    """

    def __init__(self, width: int, fma: bool) -> None:
        self.vector, self.integers, self.bits = f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>"
        self.width, self.fma = width, fma
        self.lines: list[str] = []
        self.table: list[float] = []
        # Without fused multiply-add the products k * part have to be exact (k has up to 20 bits), and so has
        # x - k (the first two parts), which is below 1 and a multiple of 2^-53.
        self._reduce(half_pi_parts(floats=3) if fma else half_pi_parts(32, 53, 85))
        self._fma("%squares", "%x", "%x", "%sum")
        self._polynomials()
        self._turn()

    def _line(self, name: str, value: str) -> None:
        self.lines.append(f"  {name} = {value}")

    def _constant(self, number: float) -> str:
        self.table.append(number)
        place = f"getelementptr inbounds ({self.vector}, ptr @sincos_constants{self.width}, i64 {len(self.table) - 1})"
        name = f"%constant{len(self.table)}"
        self._line(name, f"load {self.vector}, ptr {place}, align {8 * self.width}")
        return name

    def _fma(self, name: str, a: str, b: str, c: str) -> str:
        vector = self.vector
        if self.fma:
            self._line(name, f"call {vector} @llvm.fma.v{self.width}f64({vector} {a}, {vector} {b}, {vector} {c})")
        else:
            self._line(f"{name}_m", f"fmul {vector} {a}, {b}")
            self._line(name, f"fadd {vector} {name}_m, {c}")
        return name

    def _reduce(self, parts: tuple[float, ...]) -> None:
        """%r = x - k pi/2, and the bits of k."""
        self._fma("%shifted", "%x", self._constant(float(1 / _half_pi())), self._constant(_ROUND))
        self._line("%k", f"fsub {self.vector} %shifted, {self._constant(_ROUND)}")
        self._line("%k_bits", f"bitcast {self.vector} %shifted to {self.integers}")
        near = "%x"
        for name, part in zip([*(f"%near{k}" for k in range(len(parts) - 1)), "%r"], parts, strict=True):
            near = self._fma(name, "%k", self._constant(-part), near)

    def _polynomials(self) -> None:
        """Sine and cosine of r, side by side."""
        vector = self.vector
        self._line("%z", f"fmul {vector} %r, %r")
        sine, cosine = self._constant(_SINE[-1]), self._constant(_COSINE[-1])
        for degree in range(len(_SINE) - 2, -1, -1):
            sine = self._fma(f"%sp{degree}", sine, "%z", self._constant(_SINE[degree]))
            cosine = self._fma(f"%cp{degree}", cosine, "%z", self._constant(_COSINE[degree]))
        self._line("%rz", f"fmul {vector} %r, %z")
        half = self._fma("%half", cosine, "%z", self._constant(-0.5))
        self._fma("%sine", "%rz", sine, "%r")
        self._fma("%cosine", half, "%z", self._constant(1.0))

    def _turn(self) -> None:
        """Swap them and change signs, by the last two bits of k."""
        vector, integers, sign = self.vector, self.integers, f"splat (i64 {-(1 << 63)})"
        self._line("%first", f"shl {integers} %k_bits, splat (i64 63)")
        self._line("%second", f"shl {integers} %k_bits, splat (i64 62)")
        self._line("%either", f"xor {integers} %first, %second")
        self._line("%odd", f"icmp slt {integers} %first, zeroinitializer")
        for name, even, odd, turn in (("c", "cosine", "sine", "either"), ("s", "sine", "cosine", "second")):
            self._line(f"%{name}_sign", f"and {integers} %{turn}, {sign}")
            self._line(f"%{name}_of", f"select {self.bits} %odd, {vector} %{odd}, {vector} %{even}")
            self._line(f"%{name}_bits", f"bitcast {vector} %{name}_of to {integers}")
            self._line(f"%{name}_turned", f"xor {integers} %{name}_bits, %{name}_sign")
            self._line(f"%{name}", f"bitcast {integers} %{name}_turned to {vector}")


def _over_angles(name: str, attributes: str, vector: str, lines: list[str], after: str) -> str:
    """@<name>(workspace, table of slots, count, results): a loop over angles %x, with their %c and %s stored."""
    align = f"align {8 * int(vector[1])}"
    total = f"  %sum = phi {vector} [zeroinitializer, %entry], [%squares, %next]" if after else ""
    return "\n".join(
        [
            f"define internal void @{name}(ptr noalias %w, ptr %table, i64 %count, ptr %results) {attributes} {{",
            "entry:",
            "  br label %next",
            "next:",
            "  %i = phi i64 [0, %entry], [%i1, %next]",
            total,
            "  %tp = getelementptr i32, ptr %table, i64 %i",
            "  %slot32 = load i32, ptr %tp, align 4",
            "  %slot = zext i32 %slot32 to i64",
            f"  %xp = getelementptr {vector}, ptr %w, i64 %slot",
            f"  %x = load {vector}, ptr %xp, {align}",
            "  %even = shl i64 %i, 1",
            "  %next_slot = or i64 %even, 1",
            f"  %cp = getelementptr {vector}, ptr %results, i64 %even",
            f"  %sp = getelementptr {vector}, ptr %results, i64 %next_slot",
            *lines,
            f"  store {vector} %c, ptr %cp, {align}",
            f"  store {vector} %s, ptr %sp, {align}",
            "  %i1 = add i64 %i, 1",
            "  %more = icmp ult i64 %i1, %count",
            "  br i1 %more, label %next, label %end",
            "end:",
            after,
            "  ret void",
            "}",
        ]
    )


def _look_for_far_ones(width: int, limit: float) -> str:
    """Look at angles one by one where their squares together are more than that of the largest one that has a sine.

    What is not a number counts as more.
    """
    return f"""  %doubtful = fcmp ugt <{width} x double> %squares, {splat(limit**2)}
  %any = call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> %doubtful)
  br i1 %any, label %far, label %done
far:
  call void @sincos_far{width}(ptr %w, ptr %table, i64 %count, ptr %results)
  br label %done
done:"""


def _spoil(width: int, limit: float) -> list[str]:
    """Make nan of the sines and cosines of angles that are too large."""
    vector, bits = f"<{width} x double>", f"<{width} x i1>"
    lines = [
        f"  %size = call {vector} @llvm.fabs.v{width}f64({vector} %x)",
        f"  %far = fcmp ogt {vector} %size, {splat(limit)}",
    ]
    for x in "cs":
        lines += [
            f"  %{x}0 = load {vector}, ptr %{x}p, align {8 * width}",
            f"  %{x} = select {bits} %far, {vector} {splat(math.nan)}, {vector} %{x}0",
        ]
    return lines
