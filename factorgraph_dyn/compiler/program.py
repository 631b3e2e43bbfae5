"""A program: the part of a tape that its outputs need, in the order in which it runs.

Takes a tape, outputs and guards; gives straight-line code for the back ends.

    dead code   only ancestors of outputs and guards stay
    factoring   a b + a c with both products used nowhere else becomes a (b + c); over sums of more terms it would
                save up to 1.5 % of the operations, and no instruction where multiplication and addition fuse
    schedule    depth first from the outputs, the operand that needs more registers first
    stages      sines and cosines are taken together, after the operations that their angles need

The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.compiler.schedule import depth_first_order, waiting_time
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.field import PRIME
from factorgraph_dyn.compiler.tape.tape import Tape


@dataclass(frozen=True)
class Operations:
    """How many scalar operations one state costs."""

    multiplications: int
    additions: int
    divisions: int
    sincos: int

    @property
    def total(self) -> int:
        """Multiplications, additions and divisions together."""
        return self.multiplications + self.additions + self.divisions

    def __str__(self) -> str:
        return (
            f"{self.multiplications} multiplications, {self.additions} additions, "
            f"{self.divisions} divisions, {self.sincos} sincos"
        )


@dataclass(frozen=True)
class Guard:
    """A value that must stay away from zero for a state's outputs to be trusted.

    Attributes:
        ref: The value, usually a pivot of the elimination.
        threshold: Its size has to be above this.
        label: What it is, in names of joints and links.
        small: The opposite: its size has to be at most the threshold.
    """

    ref: int
    threshold: float
    label: str
    small: bool = False


@dataclass(frozen=True)
class Program:
    """Straight-line code.

    Attributes:
        operation, left, right: Of every node, by node number.
        constants: Value of every constant node.
        inputs: Input nodes, in the order of the kernel's arguments.
        outputs: References, in the order of the kernel's results.
        guards: Values that must not be small.
        stages: For every stage, the angles whose sine and cosine are taken first, and the arithmetic nodes
            in the order in which they run after that.
    """

    operation: list[int]
    left: list[int]
    right: list[int]
    constants: dict[int, float]
    inputs: list[int]
    outputs: list[int]
    guards: tuple[Guard, ...]
    stages: tuple[tuple[list[int], list[int]], ...]

    def operands(self, node: int) -> tuple[int, ...]:
        """The nodes an operation reads."""
        return operands(self.operation[node], self.left[node], self.right[node])

    @property
    def operations(self) -> Operations:
        """How many scalar operations one state costs."""
        kinds = [self.operation[node] for _, nodes in self.stages for node in nodes]
        return Operations(
            multiplications=kinds.count(t.MUL),
            additions=kinds.count(t.ADD) + kinds.count(t.SUB),
            divisions=kinds.count(t.RECIPROCAL),
            sincos=sum(len(angles) for angles, _ in self.stages),
        )


def operands(operation: int, left: int, right: int) -> tuple[int, ...]:
    """The nodes that an operation reads."""
    if operation in (t.ADD, t.SUB, t.MUL):
        return left, right
    return () if operation in (t.CONSTANT, t.INPUT) else (left,)


def build(
    tape: Tape,
    inputs: Sequence[int],
    outputs: Sequence[int],
    guards: Sequence[Guard] = (),
    milestones: Sequence[int] = (),
) -> Program:
    """The program of some outputs of a tape.

    Args:
        tape: Where the values are.
        inputs: References of the arguments, in order.
        outputs: References of the results, in order.
        guards: Values to watch.
        milestones: Values on the way in an order that may keep fewer values waiting than the order in
            which the outputs need them.
    """
    operation, left, right = list(tape.operation), list(tape.left), list(tape.right)
    roots = [abs(ref) for ref in outputs] + [abs(guard.ref) for guard in guards]
    _factor_products(tape, operation, left, right, roots)
    stages = _stages(operation, left, right, roots, [abs(ref) for ref in milestones])
    used = {node for angles, nodes in stages for node in (*angles, *nodes)}
    used.update(roots)
    used.update(read for node in tuple(used) for read in operands(operation[node], left[node], right[node]))
    constants = {node: value for node, value in tape.constants.items() if node in used or not node}
    return Program(operation, left, right, constants, list(inputs), list(outputs), tuple(guards), stages)


def live_nodes(operation: list[int], left: list[int], right: list[int], roots: Sequence[int]) -> list[int]:
    """Ancestors of the roots, roots included, in no particular order."""
    seen, stack = set(roots), list(set(roots))
    while stack:
        node = stack.pop()
        for read in operands(operation[node], left[node], right[node]):
            if read not in seen:
                seen.add(read)
                stack.append(read)
    return list(seen)


def _factor_products(tape: Tape, operation: list[int], left: list[int], right: list[int], roots: list[int]) -> None:
    """Rewrite a b + a c as a (b + c) in place where no other node needs the products."""
    live = sorted(live_nodes(operation, left, right, roots))
    uses = [0] * len(operation)
    for node in live:
        for read in operands(operation[node], left[node], right[node]):
            uses[read] += 1
    for root in roots:
        uses[root] += 1
    known = {tape.residue[node]: node for node in live if node < len(tape)}
    residue = list(tape.residue)
    for node in live:
        if operation[node] not in (t.ADD, t.SUB):
            continue
        x, y = left[node], right[node]
        if operation[x] != t.MUL or operation[y] != t.MUL or uses[x] != 1 or uses[y] != 1:
            continue
        common = {left[x], right[x]} & {left[y], right[y]}
        if not common:
            continue
        a = common.pop()
        b = right[x] if left[x] == a else left[x]
        c = right[y] if left[y] == a else left[y]
        if b in tape.constants and c in tape.constants:
            continue  # value numbering left two constants apart on purpose
        sign = 1 if operation[node] == t.ADD else -1
        total = (residue[b] + sign * residue[c]) % PRIME
        inner = known.get(total)
        if inner is None or (inner > node and node in live_nodes(operation, left, right, [inner])):
            inner = len(operation)
            operation.append(operation[node])
            left.append(b)
            right.append(c)
            residue.append(total)
            uses.append(1)
            known[total] = inner
        else:
            uses[inner] += 1
            uses[b] -= 1
            uses[c] -= 1
        uses[a] -= 1
        operation[node], left[node], right[node] = t.MUL, a, inner


def _stages(
    operation: list[int], left: list[int], right: list[int], roots: list[int], milestones: list[int]
) -> tuple[tuple[list[int], list[int]], ...]:
    """Angles and arithmetic in the order in which they run."""
    live = live_nodes(operation, left, right, roots)
    alive = set(live)
    on_the_way = [node for node in milestones if node in alive]
    angles_left = {left[node] for node in live if operation[node] in (t.SIN, t.COS)}
    done: set[int] = {node for node in live if operation[node] in (t.CONSTANT, t.INPUT)}
    stages: list[tuple[list[int], list[int]]] = []
    ready: list[int] = []
    while True:
        nested = {angle: _angles_above(operation, left, right, angle) for angle in angles_left}
        goals = [angle for angle, above in nested.items() if not above & angles_left]
        candidates = [sorted(goals)] if goals else [roots, on_the_way + roots]
        orders = [depth_first_order(operation, left, right, targets, done) for targets in candidates]
        order = min(orders, key=lambda nodes: waiting_time(operation, left, right, nodes))
        done.update(order)
        stages.append((ready, order))
        if not goals:
            return tuple(stages)
        ready = sorted(goals)
        angles_left.difference_update(goals)
        done.update(node for node in live if operation[node] in (t.SIN, t.COS) and left[node] in goals)


def _angles_above(operation: list[int], left: list[int], right: list[int], angle: int) -> set[int]:
    """Angles of the sines and cosines that an angle itself is computed from."""
    ancestors = live_nodes(operation, left, right, [angle])
    return {left[node] for node in ancestors if operation[node] in (t.SIN, t.COS)}
