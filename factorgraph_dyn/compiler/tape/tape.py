"""The tape: a list of scalar operations in which equal values are written once.

Takes the operations of a computation one by one; gives a list of nodes without duplicates. A value is an
integer reference: 0 is the number zero, n > 0 the value of node n, -n its negative. Signs therefore cost
nothing and are shared; only the nodes below exist, and their operands are positive except where noted.

    constant, input              a number; an argument of the kernel
    add, sub, mul                left + right, left - right, left * right
    reciprocal, sin, cos, sign   of left

Every node carries its residue (see `field`): a new operation whose residue is known is the known node, one
whose residue is zero is zero. Constants fold in floating point, and a folded constant within a few roundings
of one that exists is that one; constants whose values differ are never one, whatever their residues say.

The work runs once an operation while tracing, about a microsecond each.
"""

import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.compiler.tape import field
from factorgraph_dyn.compiler.tape.field import PRIME
from factorgraph_dyn.errors import CompileError

CONSTANT, INPUT, ADD, SUB, MUL, RECIPROCAL, SIN, COS, SIGN = range(9)
ZERO, ONE = 0, 1

_SUM_ROUNDING = 4e-15  # a sum of constants this small beside its terms is zero
_SAME_DIGITS = 14  # significant digits in which two constants have to agree to be one, and
_SAME_VALUE = 3e-15  # their relative difference: a dozen roundings; what is more shows where a robot is ill conditioned
_SAME = 1e-13  # relative difference of two constants that are one because their residues are
_ROUNDING = 4.4e-16  # of a constant, as files and the folding of constants leave it
_SAMPLES = 32

Samples = np.ndarray[tuple[int], np.dtype[np.float64]]

Node = tuple[int, int, int]
"""An operation and its operands, nodes without sign."""

BINARY = frozenset((ADD, SUB, MUL))
NUMPY: dict[int, Callable[..., Any]] = {
    ADD: np.add,
    SUB: np.subtract,
    MUL: np.multiply,
    RECIPROCAL: np.reciprocal,
    SIN: np.sin,
    COS: np.cos,
    SIGN: np.sign,
}


def operands(node: Node) -> tuple[int, ...]:
    """The nodes that an operation reads."""
    operation, left, right = node
    if operation in BINARY:
        return left, right
    return () if operation <= INPUT else (left,)


def evaluate(node: Node, values: Any) -> npt.NDArray[np.float64]:
    """What an operation gives, from the values of its operands."""
    operation, left, right = node
    if operation in BINARY:
        return np.asarray(NUMPY[operation](values[left], values[right]))
    return np.asarray(NUMPY[operation](values[left]))


class Tape:
    """A growing list of operations on scalars, free of duplicates.

    Attributes:
        operation, left, right: Of every node; node 0 stands for the number zero.
        residue: Of every node, modulo the field's prime.
        constants: Value of every constant node.
        constant_errors: By how much a constant may be off, where that is known; of several of the same digits, what the
            most exact of them may be.
        input_names: Name of every input node.
        input_samples: Value of every input node at the sampled states.
        input_errors: By how much these may be off, as configurations that close loops are.
        merges: (operation, left, right, found) of the operations recognised as known nodes.
        own: Nodes from this one on may stem from another elimination: they are not taken apart, because their
            operands need not be there in this one.
    """

    def __init__(self, *, seed: int = 0, samples: int = _SAMPLES) -> None:
        self.random = random.Random(seed)
        self.sample_count = samples
        self.operation = [CONSTANT]
        self.left = [0]
        self.right = [0]
        self.residue = [0]
        self.constants: dict[int, float] = {0: 0.0}
        self.constant_errors: dict[int, float] = {}
        self.input_names: dict[int, str] = {}
        self.input_samples: dict[int, Samples] = {}
        self.input_errors: dict[int, Samples] = {}
        self.merges: list[tuple[int, int, int, int]] = []
        self.own = sys.maxsize
        self._known: dict[int, int] = {0: 0}
        self._constants_of_digits: defaultdict[str, list[int]] = defaultdict(list)
        self._circle_points: dict[int, field.CirclePoint] = {}
        self._signs: dict[int, int] = {}
        self.constant(1.0, error=0.0)

    def __len__(self) -> int:
        return len(self.operation)

    def node(self, index: int) -> Node:
        """Operation and operands of a node."""
        return self.operation[index], self.left[index], self.right[index]

    # Leaves

    def input(
        self,
        name: str,
        samples: Iterable[float] | None = None,
        residue: int | None = None,
        errors: npt.ArrayLike = 0.0,
    ) -> int:
        """Reference to a new input.

        Args:
            name: How messages call it.
            samples: Its value at the sampled states, one each; standard normal by default.
            residue: Its residue where inputs are related (see `unit_inputs`); random by default.
            errors: By how much the samples may be off, one number or one each.
        """
        if residue is None:
            residue = self.random.randrange(2, PRIME - 1)
        if samples is None:
            samples = [self.random.gauss(0.0, 1.0) for _ in range(self.sample_count)]
        node = self._append(INPUT, 0, 0, residue)
        self.input_names[node] = name
        self.input_samples[node] = np.array(list(samples), dtype=float)
        self.input_errors[node] = np.broadcast_to(np.asarray(errors, dtype=float), (self.sample_count,))
        return node

    def unit_inputs(self, names: Sequence[str], samples: Sequence[Iterable[float]] | None = None) -> list[int]:
        """References to new inputs whose squares sum to one, such as a quaternion's."""
        residues = field.sphere_point([self.random.randrange(PRIME) for _ in names[1:]])
        if samples is None:
            draws = np.array([[self.random.gauss(0, 1) for _ in names] for _ in range(self.sample_count)])
            samples = list((draws / np.linalg.norm(draws, axis=1, keepdims=True)).T)
        return [
            self.input(name, values, residue) for name, values, residue in zip(names, samples, residues, strict=True)
        ]

    def constant(self, value: float, residue: int | None = None, error: float | None = None) -> int:
        """Reference to a number.

        Args:
            value: The number.
            residue: Its residue where that is known better than from its digits.
            error: By how much the number may be off where it comes from, beyond its own rounding, if that is known.
        """
        value = float(value)
        if value == 0.0:
            return ZERO
        if not math.isfinite(value):
            raise CompileError(
                f"A constant of the model is {value}; the compiler needs finite numbers. "
                "Check the mechanism's inertias, placements and limits."
            )
        if value < 0.0:
            return -self.constant(-value, None if residue is None else PRIME - residue, error)
        digits = format(value, f".{_SAME_DIGITS - 1}e")
        alike = self._constants_of_digits[digits]
        node = next((known for known in alike if abs(self.constants[known] - value) <= _SAME_VALUE * value), None)
        if node is None:
            node = self._new_constant(value, residue, error or 0.0)
            alike.append(node)
        if error is not None:  # a crumb beside large numbers must not make crumbs of small numbers elsewhere
            error = max(error, _ROUNDING * value)
            self.constant_errors[node] = min(error, self.constant_errors.get(node, error))
        return node

    def _new_constant(self, value: float, residue: int | None, error: float) -> int:
        """The constant of a residue if it has this value, too; else a new one."""
        residue = field.residue_of_float(value) if residue is None else residue
        known = self._known.get(residue, 0)
        if known > 0 and known in self.constants:
            if abs(self.constants[known] - value) <= _SAME * value + error:
                return known
            residue = self.random.randrange(2, PRIME - 1)  # two numbers with one residue stay two
        node = self._append(CONSTANT, 0, 0, residue)
        self.constants[node] = value
        return node

    def constant_error(self, node: int) -> float:
        """By how much the value of a constant node may be off."""
        return self.constant_errors.get(node, _ROUNDING * self.constants[node])

    def _append(self, operation: int, left: int, right: int, residue: int) -> int:
        node = len(self.operation)
        self.operation.append(operation)
        self.left.append(left)
        self.right.append(right)
        self.residue.append(residue)
        self._known[residue] = node
        self._known[PRIME - residue] = -node
        return node

    # Arithmetic

    def add(self, a: int, b: int) -> int:
        """Reference to a + b."""
        if not a:
            return b
        if not b:
            return a
        residues = self.residue
        residue = (residues[a] if a > 0 else -residues[-a]) + (residues[b] if b > 0 else -residues[-b])
        residue %= PRIME
        known = self._known.get(residue)
        if known is not None:
            self.merges.append((ADD, a, b, known))
            return known
        constants = self.constants
        if (a if a > 0 else -a) in constants and (b if b > 0 else -b) in constants:
            return self._add_constants(a, b, residue)
        if a > 0:
            if b > 0:
                return self._append(ADD, a, b, residue)
            return self._append(SUB, a, -b, residue)
        if b > 0:
            return self._append(SUB, b, -a, residue)
        return -self._append(ADD, -a, -b, PRIME - residue)

    def _add_constants(self, a: int, b: int, residue: int) -> int:
        first = self.constants[abs(a)] * (1 if a > 0 else -1)
        second = self.constants[abs(b)] * (1 if b > 0 else -1)
        total = first + second
        size = abs(first) + abs(second)
        if abs(total) <= _SUM_ROUNDING * size:
            return ZERO
        error = self.constant_error(abs(a)) + self.constant_error(abs(b))
        return self.constant(total, residue, max(error, _ROUNDING * size))

    def sub(self, a: int, b: int) -> int:
        """Reference to a - b."""
        return self.add(a, -b)

    def mul(self, a: int, b: int) -> int:
        """Reference to a * b."""
        if not a or not b:
            return ZERO
        if a < 0:
            a, b = -a, -b
        negative = b < 0
        if negative:
            b = -b
        if a == ONE:
            node = b
        elif b == ONE:
            node = a
        else:
            residue = self.residue[a] * self.residue[b] % PRIME
            known = self._known.get(residue)
            if known is not None:
                self.merges.append((MUL, a, b, known))
                node = known
            elif a in self.constants:
                node = self.mul_constant(a, b, residue)
            elif b in self.constants:
                node = self.mul_constant(b, a, residue)
            else:
                node = self._append(MUL, a, b, residue)
        return -node if negative else node

    def mul_constant(self, constant: int, b: int, residue: int) -> int:
        """The product of a constant and a node, the constant first."""
        constants = self.constants
        if b in constants:
            error = self.constant_error(constant) * constants[b] + self.constant_error(b) * constants[constant]
            return self.constant(constants[constant] * constants[b], residue, error)
        if b < self.own and self.operation[b] == MUL and self.left[b] in constants:
            folded = self.mul(constant, self.left[b])
            return self.mul(folded, self.right[b])
        return self._append(MUL, constant, b, residue)

    def reciprocal(self, a: int) -> int:
        """Reference to 1 / a."""
        if a == ZERO:
            raise CompileError("The traced computation divides by zero: a denominator is zero in every state.")
        if a < 0:
            return -self.reciprocal(-a)
        residue = field.inverse(self.residue[a])
        if a in self.constants:
            value = 1.0 / self.constants[a]
            return self.constant(value, residue, self.constant_error(a) * value * value)
        known = self._known.get(residue)
        if known is None:
            return self._append(RECIPROCAL, a, 0, residue)
        self.merges.append((RECIPROCAL, a, 0, known))
        return known

    def div(self, a: int, b: int) -> int:
        """Reference to a / b."""
        return self.mul(a, self.reciprocal(b))

    def unknown(self, a: int) -> int:
        """Reference to a value that is computed as `a` is, but of which nothing is known.

        What is made of it is not simplified by what it is made of itself, so that rounding stays what it is.
        """
        if a < 0:
            return -self.unknown(-a)
        if self.operation[a] <= INPUT:
            return a
        return self._append(*self.node(a), self.random.randrange(2, PRIME - 1))

    def constant_value(self, a: int) -> float | None:
        """The number a reference stands for, or None where it is not a constant."""
        value = self.constants.get(abs(a))
        return value if value is None or a >= 0 else -value

    # Functions

    def sin(self, a: int) -> int:
        """Reference to the sine of a."""
        if a < 0:
            return -self.sin(-a)
        return self._function(SIN, a, self._circle_point(a)[1])

    def cos(self, a: int) -> int:
        """Reference to the cosine of a."""
        a = abs(a)
        return self._function(COS, a, self._circle_point(a)[0])

    def _function(self, operation: int, a: int, residue: int) -> int:
        if a in self.constants:
            angle = self.constants[a]
            exact = {0: 0.0, 1: 1.0, PRIME - 1: -1.0}.get(residue)
            value = math.sin(angle) if operation == SIN else math.cos(angle)
            return self.constant(value if exact is None else exact, residue)
        known = self._known.get(residue)
        return self._append(operation, a, 0, residue) if known is None else known

    def sign(self, a: int) -> int:
        """Reference to the sign of a: -1, 0 or 1."""
        if a < 0:
            return -self.sign(-a)
        if a in self.constants:
            return ONE if a else ZERO
        node = self._signs.get(a)
        if node is None:
            node = self._append(SIGN, a, 0, self.random.randrange(2, PRIME - 1))
            self._signs[a] = node
        return node

    def _circle_point(self, a: int) -> field.CirclePoint:
        """Residues of (cos a, sin a), consistent for sums and integer multiples of angles."""
        if a in self.constants:
            return field.constant_circle_point(self.constants[a])
        point = field.EAST
        for atom, factor in self._integer_terms(a).items():
            if atom in self.constants:
                angle = factor * self.constants[atom]
                point = field.turn(point, field.constant_circle_point(angle))
                continue
            if atom not in self._circle_points:
                half_tangent = self.random.randrange(2, PRIME - 1)
                self._circle_points[atom] = field.circle_point(half_tangent)
            point = field.turn(point, field.multiple(self._circle_points[atom], factor))
        return point

    def _integer_terms(self, a: int) -> dict[int, int]:
        """{node: factor} of the integer combination of nodes that node a is."""
        operation = self.operation[a]
        if operation in (ADD, SUB):
            terms = self._integer_terms(self.left[a])
            sign = 1 if operation == ADD else -1
            for node, factor in self._integer_terms(self.right[a]).items():
                terms[node] = terms.get(node, 0) + sign * factor
            return {node: factor for node, factor in terms.items() if factor}
        if operation == MUL and self.constants.get(self.left[a], 0.5).is_integer():
            factor = int(self.constants[self.left[a]])
            return {node: factor * n for node, n in self._integer_terms(self.right[a]).items()}
        return {a: 1}
