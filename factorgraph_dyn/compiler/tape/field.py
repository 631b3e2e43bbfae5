"""Numbers, angles and unit vectors as residues modulo a prime.

Takes floats and random draws; gives residues modulo a prime p. An expression evaluated in this field with
random inputs is a fingerprint: two expressions that are equal as functions have equal fingerprints, two that
differ have different ones but for a chance of about one in 10^18. Constants are no random draws, so the prime
is one in which those of files stay apart: p = 2 r + 1 with r prime, so that every number but 1 and -1 has an
order of r or 2 r (modulo 2^61 - 1, where 2^61 = 1, a product of inertia of 2^-61 would be taken for 1); and
2, 3, 5, 7, 11 and 13 are squares, so that the sines of 45 and 60 degrees have residues.

    float      m 2^e          -> m 2^e mod p; a short decimal such as 0.1 is taken as the fraction it stands for
    angle      t at random    -> (cos, sin) = ((1 - t^2), 2 t) / (1 + t^2), a point of the unit circle
    unit       u at random    -> (2 u, |u|^2 - 1) / (|u|^2 + 1), a point of the unit sphere

The work runs once a traced input or constant.
"""

import math
from fractions import Fraction

PRIME = (1 << 60) - 135_497
_SHORT_DECIMAL = 12  # digits up to which a printed float is taken to be an exact decimal
_LARGEST_SQUARE = 2_000  # denominators, and roots of their products with numerators, up to which a root is recognised
_SQUARE_TOLERANCE = 4e-16

CirclePoint = tuple[int, int]
"""Residues of (cosine, sine)."""

EAST: CirclePoint = (1, 0)


def inverse(residue: int) -> int:
    """The residue r with r * residue = 1."""
    return pow(residue, -1, PRIME)


def residue_of_fraction(fraction: Fraction) -> int:
    """The residue of an exact fraction."""
    return fraction.numerator * inverse(fraction.denominator % PRIME) % PRIME


def square_root(residue: int) -> int | None:
    """A residue whose square is the given one, or None where there is none."""
    root = pow(residue, (PRIME + 1) // 4, PRIME)
    return root if root * root % PRIME == residue else None


def _short_decimal(value: float) -> Fraction | None:
    """The decimal that a float stands for but for its last bit, if it is a short one."""
    text = format(value, ".15g")
    digits = text.lower().split("e")[0].lstrip("-").replace(".", "").strip("0")
    return Fraction(text) if len(digits) <= _SHORT_DECIMAL else None


def _root_of_fraction(value: float) -> tuple[Fraction, int] | None:
    """(s, d) with value = s sqrt(d), d without square factors, as for the sine of pi/4."""
    square = value * value
    if not 1e-8 < square < 1e8:
        return None
    fraction = Fraction(square).limit_denominator(_LARGEST_SQUARE)
    if fraction.numerator * fraction.denominator > _LARGEST_SQUARE**2:
        return None  # chance finds such a fraction for any large number
    if abs(math.sqrt(fraction) - abs(value)) > _SQUARE_TOLERANCE * abs(value):
        return None
    # sqrt(n / m) = sqrt(n m) / m
    scale, rest = Fraction(1, fraction.denominator), fraction.numerator * fraction.denominator
    factor = 2
    while factor * factor <= rest:
        while rest % (factor * factor) == 0:
            rest //= factor * factor
            scale *= factor
        factor += 1
    return scale, rest


def residue_of_float(value: float) -> int:
    """The residue of a positive float, read as the number it was most likely meant to be.

    0.1 is 1/10, 0.7071067811865476 is the root of 1/2, and anything else the exact binary fraction,
    so that 0.1 * 0.2 = 0.02 and products of rotations by 45 degrees hold as they do on paper.
    """
    decimal = _short_decimal(value)
    if decimal is not None:
        return residue_of_fraction(decimal)
    root = _root_of_fraction(value)
    if root is not None:
        residue = square_root(root[1])
        if residue is not None:
            return residue_of_fraction(root[0]) * residue % PRIME
    return residue_of_fraction(Fraction(value))


def circle_point(half_tangent: int) -> CirclePoint:
    """The point of the unit circle with the given tangent of half its angle."""
    square = half_tangent * half_tangent % PRIME
    scale = inverse(1 + square)  # never zero: -1 is no square modulo p
    return (1 - square) * scale % PRIME, 2 * half_tangent * scale % PRIME


def turn(first: CirclePoint, second: CirclePoint) -> CirclePoint:
    """The point of the sum of two angles."""
    (c, s), (d, t) = first, second
    return (c * d - s * t) % PRIME, (s * d + c * t) % PRIME


def multiple(point: CirclePoint, factor: int) -> CirclePoint:
    """The point of an integer multiple of an angle."""
    if factor < 0:
        point, factor = (point[0], -point[1] % PRIME), -factor
    result = EAST
    while factor:
        if factor & 1:
            result = turn(result, point)
        point, factor = turn(point, point), factor >> 1
    return result


def constant_circle_point(angle: float) -> CirclePoint:
    """The point of a constant angle; multiples of pi/2 are exact."""
    quarters = angle / (math.pi / 2)
    if abs(quarters - round(quarters)) < 1e-14 * max(1.0, abs(quarters)):
        return multiple((0, 1), round(quarters) % 4)
    half_tangent = math.tan(angle / 2)
    residue = residue_of_float(abs(half_tangent))
    return circle_point(residue if half_tangent > 0 else PRIME - residue)


def sphere_point(parameters: list[int]) -> list[int]:
    """A point of the unit sphere with one more coordinate than there are parameters."""
    square = sum(u * u for u in parameters) % PRIME
    scale = inverse((square + 1) % PRIME)
    return [2 * u * scale % PRIME for u in parameters] + [(square - 1) * scale % PRIME]
