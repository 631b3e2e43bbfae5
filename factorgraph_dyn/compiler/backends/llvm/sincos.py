"""Sine and cosine of vectors of angles, as LLVM functions.

Takes a vector width and how many angles there are; gives IR text of functions and of the calls that go through them.

    k = round(x 2/pi),   r = x - k pi/2 in steps (Cody & Waite 1980),   z = r^2
    sin r = r + r z P(z),   cos r = 1 + z (z Q(z) - 1/2),   then swap and negate by k mod 4

P and Q are degree 5, interpolated at Chebyshev points of 0 <= z <= (pi/4)^2. pi/2 is held to 107 bits: the result is
within 2 ulp, or 1e-33 |x|, for |x| up to 2^30 (2^20 without fused multiply-add). Beyond, where an angle's last digit is
worth more than a microradian's billionth, the answer is nan: all angles of a batch are looked at together, by the bits
of k, and one by one where some are too large.

Every step waits some four cycles for the result of the last, and a processor could begin others: two or three angles
are computed side by side, line by line, as many as registers hold.

The work runs once a kernel; the functions need no mathematics library.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Iterable, Sequence
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
_LARGEST_BITS, _LARGEST_BITS_WITHOUT_FMA = 30, 20  # of an angle
_SIDE_BY_SIDE = {4: 3}  # by width, else 2
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
    return 2.0 ** _largest_bits(fma)


def _largest_bits(fma: bool) -> int:
    return _LARGEST_BITS if fma else _LARGEST_BITS_WITHOUT_FMA


def angle_groups(count: int, width: int) -> dict[int, int]:
    """How many groups of three, two and one angle side by side a number of angles is taken in."""
    if count < 2:
        return {1: count}
    threes = count % 2 if _SIDE_BY_SIDE.get(width, 2) == 2 else (count - 2 * (-count % 3)) // 3
    return {size: number for size, number in ((3, threes), (2, (count - 3 * threes) // 2)) if number}


def sincos_functions(counts: Iterable[int], width: int, *, fma: bool) -> str:
    """IR of the vector sine and cosine.

    Args:
        counts: How many angles are taken at a time, for all calls.
        width: Angles a vector holds.
        fma: Whether the machine has fused multiply-add.
    """
    sizes = {size for count in counts for size in angle_groups(count, width)}
    if not sizes:
        return ""
    angles = [_Angle(k, width, fma) for k in range(max(sizes))]
    table, vector, limit = angles[0].table, f"<{width} x double>", farthest(fma=fma)
    numbers = ", ".join(f"{vector} {splat(number)}" for number in table)
    return "\n".join(
        [
            f"@sincos_constants{width} = internal global [{len(table)} x {vector}] [{numbers}], align {8 * width}",
            *(_group_function(angles[:size], width, fma) for size in sorted(sizes)),
            _far_function(width, limit),
        ]
    )


def sincos_calls(count: int, width: int, table: str, results: str) -> list[str]:
    """Lines that take the sines and cosines of vectors of angles, cosines first.

    Args:
        count: How many.
        width: Angles a vector holds.
        table: Where the slots of the angles in the workspace %w are listed, i32.
        results: Where the results go, two vectors an angle.
    """
    lines, first = [], 0
    for size, groups in angle_groups(count, width).items():
        places = [f"{results}_{size}", f"{results}_{size}_table"]
        lines += [
            f"  {places[0]} = getelementptr <{width} x double>, ptr {results}, i64 {2 * first}",
            f"  {places[1]} = getelementptr i32, ptr {table}, i64 {first}",
            f"  call void @sincos{size}x{width}(ptr %w, ptr {places[1]}, i64 {groups}, ptr {places[0]})",
        ]
        first += size * groups
    return lines


class _Angle:
    """What is done with one of the angles that are computed side by side.

    Attributes:
        lines: IR from its vector ``%x.<number>`` to ``%c.<number>``, its cosine, and ``%s.<number>``, its sine;
            ``%beyond.<number>`` has the bits of all angles up to it that only those have which are too large.
        table: Numbers that it reads from memory: a constant LLVM would spread by an instruction of its own.
    """

    def __init__(self, number: int, width: int, fma: bool) -> None:
        self.vector, self.integers, self.bits = f"<{width} x double>", f"<{width} x i64>", f"<{width} x i1>"
        self.number, self.width, self.fma = number, width, fma
        self.lines: list[str] = []
        self.table: list[float] = []
        # Without fused multiply-add the products k * part have to be exact (k has up to 20 bits), and so has
        # x - k (the first two parts), which is below 1 and a multiple of 2^-53.
        self._reduce(half_pi_parts(floats=2) if fma else half_pi_parts(32, 53, 85))
        self._gather_bits()
        self._polynomials()
        self._turn()

    def _line(self, name: str, value: str) -> str:
        """A line that gives a value a name, with the angle's number; the names in the value have it already."""
        named = f"%{name}.{self.number}"
        self.lines.append(f"  {named} = {value}")
        return named

    def _constant(self, number: float) -> str:
        self.table.append(number)
        place = f"getelementptr inbounds ({self.vector}, ptr @sincos_constants{self.width}, i64 {len(self.table) - 1})"
        return self._line(f"constant{len(self.table)}", f"load {self.vector}, ptr {place}, align {8 * self.width}")

    def _fma(self, name: str, a: str, b: str, c: str) -> str:
        vector = self.vector
        if self.fma:
            return self._line(
                name, f"call {vector} @llvm.fma.v{self.width}f64({vector} {a}, {vector} {b}, {vector} {c})"
            )
        product = self._line(f"{name}_m", f"fmul {vector} {a}, {b}")
        return self._line(name, f"fadd {vector} {product}, {c}")

    def _reduce(self, parts: tuple[float, ...]) -> None:
        """The rest r = x - k pi/2, and the bits of k."""
        x = f"%x.{self.number}"
        shifted = self._fma("shifted", x, self._constant(float(1 / _half_pi())), self._constant(_ROUND))
        k = self._line("k", f"fsub {self.vector} {shifted}, {self._constant(_ROUND)}")
        self.k_bits = self._line("k_bits", f"bitcast {self.vector} {shifted} to {self.integers}")
        self.r = x
        for place, part in enumerate(parts):
            self.r = self._fma(f"near{place}", k, self._constant(-part), self.r)

    def _gather_bits(self) -> None:
        """From k + 2^bits, which has no bits above that one where the angle is small enough."""
        bits = _largest_bits(self.fma)
        (round_bits,) = struct.unpack("<q", struct.pack("<d", _ROUND))
        biased = self._line("biased", f"sub {self.integers} {self.k_bits}, splat (i64 {round_bits - 2**bits})")
        before = f"%beyond.{self.number - 1}" if self.number else "%before"
        self._line("beyond", f"or {self.integers} {before}, {biased}")

    def _polynomials(self) -> None:
        """Sine and cosine of r, side by side."""
        vector, r = self.vector, self.r
        z = self._line("z", f"fmul {vector} {r}, {r}")
        sine, cosine = self._constant(_SINE[-1]), self._constant(_COSINE[-1])
        for degree in range(len(_SINE) - 2, -1, -1):
            sine = self._fma(f"sp{degree}", sine, z, self._constant(_SINE[degree]))
            cosine = self._fma(f"cp{degree}", cosine, z, self._constant(_COSINE[degree]))
        rz = self._line("rz", f"fmul {vector} {r}, {z}")
        half = self._fma("half", cosine, z, self._constant(-0.5))
        self.sine = self._fma("sine", rz, sine, r)
        self.cosine = self._fma("cosine", half, z, self._constant(1.0))

    def _turn(self) -> None:
        """Swap them and change signs, by the last two bits of k."""
        integers, sign = self.integers, f"splat (i64 {-(1 << 63)})"
        first = self._line("first", f"shl {integers} {self.k_bits}, splat (i64 63)")
        second = self._line("second", f"shl {integers} {self.k_bits}, splat (i64 62)")
        either = self._line("either", f"xor {integers} {first}, {second}")
        odd = self._line("odd", f"icmp slt {integers} {first}, zeroinitializer")
        self._chosen("c", odd, self.sine, self.cosine, self._line("c_sign", f"and {integers} {either}, {sign}"))
        self._chosen("s", odd, self.cosine, self.sine, self._line("s_sign", f"and {integers} {second}, {sign}"))

    def _chosen(self, name: str, odd: str, if_odd: str, if_even: str, sign: str) -> None:
        vector, integers = self.vector, self.integers
        chosen = self._line(f"{name}_of", f"select {self.bits} {odd}, {vector} {if_odd}, {vector} {if_even}")
        bits = self._line(f"{name}_bits", f"bitcast {vector} {chosen} to {integers}")
        turned = self._line(f"{name}_turned", f"xor {integers} {bits}, {sign}")
        self._line(name, f"bitcast {integers} {turned} to {vector}")


def _group_function(angles: Sequence[_Angle], width: int, fma: bool) -> str:
    """@sincos<size>x<width>(workspace, table of slots, groups, results): a loop over groups of angles."""
    integers, size = f"<{width} x i64>", len(angles)
    largest = 2 ** (_largest_bits(fma) + 1) - 1
    side_by_side = [line for lines in zip(*(angle.lines for angle in angles), strict=True) for line in lines]
    return _over_angles(
        f"sincos{size}x{width}",
        "#0",
        width,
        size,
        [f"  %before = phi {integers} [zeroinitializer, %entry], [%beyond.{size - 1}, %next]"],
        side_by_side,
        f"""  %doubtful = icmp ugt {integers} %beyond.{size - 1}, splat (i64 {largest})
  %any = call i1 @llvm.vector.reduce.or.v{width}i1(<{width} x i1> %doubtful)
  br i1 %any, label %far, label %done
far:
  %count = mul i64 %groups, {size}
  call void @sincos_far{width}(ptr %w, ptr %table, i64 %count, ptr %results)
  br label %done
done:""",
    )


def _far_function(width: int, limit: float) -> str:
    """@sincos_far<width>: make nan of the sines and cosines of angles that are too large."""
    vector, bits = f"<{width} x double>", f"<{width} x i1>"
    lines = [
        f"  %size = call {vector} @llvm.fabs.v{width}f64({vector} %x.0)",
        f"  %far = fcmp ogt {vector} %size, {splat(limit)}",
    ]
    for x in "cs":
        lines += [
            f"  %{x}0 = load {vector}, ptr %{x}p.0, align {8 * width}",
            f"  %{x}.0 = select {bits} %far, {vector} {splat(math.nan)}, {vector} %{x}0",
        ]
    return _over_angles(f"sincos_far{width}", "#1", width, 1, [], lines, "")


def _over_angles(
    name: str, attributes: str, width: int, size: int, state: list[str], lines: list[str], after: str
) -> str:
    """@<name>(workspace, table of slots, groups, results): a loop over groups of angles %x, their %c and %s stored."""
    vector, align = f"<{width} x double>", f"align {8 * width}"
    loads, stores = [], []
    for k in range(size):
        loads += [
            f"  %angle.{k} = add i64 %first, {k}",
            f"  %tp.{k} = getelementptr i32, ptr %table, i64 %angle.{k}",
            f"  %slot32.{k} = load i32, ptr %tp.{k}, align 4",
            f"  %slot.{k} = zext i32 %slot32.{k} to i64",
            f"  %xp.{k} = getelementptr {vector}, ptr %w, i64 %slot.{k}",
            f"  %x.{k} = load {vector}, ptr %xp.{k}, {align}",
            f"  %even.{k} = shl i64 %angle.{k}, 1",
            f"  %odd_slot.{k} = or i64 %even.{k}, 1",
            f"  %cp.{k} = getelementptr {vector}, ptr %results, i64 %even.{k}",
            f"  %sp.{k} = getelementptr {vector}, ptr %results, i64 %odd_slot.{k}",
        ]
        stores += [f"  store {vector} %c.{k}, ptr %cp.{k}, {align}", f"  store {vector} %s.{k}, ptr %sp.{k}, {align}"]
    return "\n".join(
        [
            f"define internal void @{name}(ptr noalias %w, ptr %table, i64 %groups, ptr %results) {attributes} {{",
            "entry:",
            "  br label %next",
            "next:",
            "  %i = phi i64 [0, %entry], [%i1, %next]",
            *state,
            f"  %first = mul i64 %i, {size}",
            *loads,
            *lines,
            *stores,
            "  %i1 = add i64 %i, 1",
            "  %more = icmp ult i64 %i1, %groups",
            "  br i1 %more, label %next, label %end",
            "end:",
            after,
            "  ret void",
            "}",
        ]
    )
