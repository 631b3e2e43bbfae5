"""A program: the operations that some results need, in the order in which they run; what back ends consume.

Takes a tape, results and guards; gives straight-line code.

    dead code   only ancestors of results and guards stay
    factoring   a b + a c with both products used nowhere else becomes a (b + c); over sums of more terms it would
                save up to 1.5 % of the operations, and no instruction where multiplication and addition fuse
    schedule    depth first from the results, the operand that needs more registers first
    stages      sines and cosines are taken together, after the operations that their angles need; what parameters alone
                need comes before all others, and runs once where all states of a batch share them

The work runs once a kernel; a `Draft`, in which operations are counted, once an ordering of a search.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import astuple, dataclass
from functools import cached_property
from math import prod

from factorgraph_dyn.compiler.schedule import depth_first_orders, waiting_time
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.field import PRIME
from factorgraph_dyn.compiler.tape.tape import Node, Tape, operands

DIVISION_TIME = 12.0  # instructions that one vector division takes the time of
SINCOS_TIME = 30.0  # and a sine and cosine together
WORTH_SPARING = 0.2  # of a matrix, to look up where its entries are


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

    def __sub__(self, other: Operations) -> Operations:
        return Operations(*(mine - yours for mine, yours in zip(astuple(self), astuple(other), strict=True)))

    def __str__(self) -> str:
        return (
            f"{self.multiplications} multiplications, {self.additions} additions, "
            f"{self.divisions} divisions, {self.sincos} sincos"
        )


@dataclass(frozen=True)
class Operand:
    """An argument or result: its shape without the batch axes."""

    shape: tuple[int, ...]

    @property
    def size(self) -> int:
        """Numbers a state has."""
        return prod(self.shape)


@dataclass(frozen=True)
class Guard:
    """A value that must stay away from zero for a state's results to be trusted.

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
        arguments, results: Shapes of what goes in and comes out.
        nodes: Operation and operands of every node that is needed.
        constants: Value of every constant node.
        inputs: Input nodes, in the order of the arguments' entries.
        outputs: References, in the order of the results' entries.
        guards: Values that are watched.
        stages: For every stage, the angles whose sine and cosine are taken first, and the arithmetic nodes
            in the order in which they run after that. Where there are parameters, the first stage is what depends on
            nothing else, and is neither a result nor watched.
        parameters: How many of the last arguments are parameters of the mechanism.
    """

    arguments: tuple[Operand, ...]
    results: tuple[Operand, ...]
    nodes: Mapping[int, Node]
    constants: Mapping[int, float]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    guards: tuple[Guard, ...]
    stages: tuple[tuple[list[int], list[int]], ...]
    parameters: int = 0

    def operands(self, node: int) -> tuple[int, ...]:
        """The nodes an operation reads."""
        return operands(self.nodes[node])

    @cached_property
    def sources(self) -> tuple[int | None, ...]:
        """For every output, the first one that has its value; None for a zero.

        Matrices of which a good part is zero, or repeats itself, are computed without that part and filled up when
        they are handed out; of all other results every entry is its own source.
        """
        found: list[int | None] = list(range(len(self.outputs)))
        first: dict[int, int] = {}
        start = 0
        for operand in self.results:
            here = range(start, start + operand.size)
            start += operand.size
            alike = [None if not self.outputs[k] else first.setdefault(self.outputs[k], k) for k in here]
            spared = sum(source != k for source, k in zip(alike, here, strict=True))
            if len(operand.shape) > 1 and spared >= WORTH_SPARING * operand.size:
                found[here.start : here.stop] = alike
        return tuple(found)

    @cached_property
    def sines_and_cosines(self) -> Mapping[int, list[int]]:
        """The sine and cosine nodes of each angle."""
        found: dict[int, list[int]] = {angle: [] for angles, _ in self.stages for angle in angles}
        for node, (operation, angle, _) in self.nodes.items():
            if operation in _TURNS:
                found[angle].append(node)
        return found

    @cached_property
    def _draft(self) -> Draft:
        return Draft(self.nodes.__getitem__, _roots(self.outputs, self.guards))

    @property
    def operations(self) -> Operations:
        """How many scalar operations one state costs."""
        return self._draft.operations

    @property
    def once(self) -> tuple[int, ...]:
        """The nodes that depend on parameters alone, in the order in which they run."""
        return tuple(self.stages[0][1]) if self.parameters else ()

    @cached_property
    def shared_operations(self) -> Operations:
        """How many scalar operations one state costs where all states of a large batch share the parameters."""
        return self.operations - count_operations(map(self.nodes.__getitem__, self.once))

    @property
    def cost(self) -> float:
        """Operations of a state, on average over batches that share parameters and batches that do not."""
        return (self.operations.total + self.shared_operations.total) / 2

    @property
    def instructions(self) -> float:
        """Vector instructions that it takes the time of."""
        return self._draft.instructions


class Draft:
    """The operations that some values need, and how often each is used: simplified and counted.

    Attributes:
        nodes: Every node that is needed.
        uses: How often it is read, and asked for.
    """

    def __init__(self, node_of: Callable[[int], Node], roots: Iterable[int]) -> None:
        self.nodes: dict[int, Node] = {}
        self.uses = uses = dict.fromkeys(roots, 1)
        stack = list(uses)
        while stack:
            index = stack.pop()
            node = self.nodes[index] = node_of(index)
            for read in operands(node):
                if read in uses:
                    uses[read] += 1
                else:
                    uses[read] = 1
                    stack.append(read)

    def draw_out_factors(self, tape: Tape) -> None:
        """Make a (b + c) of a b + a c where nothing else needs the products."""
        nodes, uses, residues, constants = self.nodes, self.uses, tape.residue, tape.constants
        known = {residues[index]: index for index in nodes}
        fresh: dict[int, int] = {}
        lowest = len(tape)  # no value of the tape before it reads a later one
        for index in sorted(nodes):
            operation, x, y = nodes.get(index, _GONE)
            if operation not in _SUMS or uses[x] != 1 or uses[y] != 1:
                continue
            (of_x, p, q), (of_y, r, s) = nodes[x], nodes[y]
            if of_x != t.MUL or of_y != t.MUL:
                continue
            if p in (r, s):
                a, b = p, q
            elif q in (r, s):
                a, b = q, p
            else:
                continue
            c = s if r == a else r
            if b in constants and c in constants:
                continue  # value numbering left two constants apart on purpose
            of_b, of_c = (fresh[k] if k in fresh else residues[k] for k in (b, c))
            total = (of_b + of_c if operation == t.ADD else of_b - of_c) % PRIME
            inner = known.get(total)
            if inner is None or inner not in nodes or self._needs(inner, index, min(lowest, index)):
                inner = len(tape) + len(fresh)
                fresh[inner], known[total] = total, inner
                nodes[inner], uses[inner] = (operation, b, c), 0
                uses[b] += 1
                uses[c] += 1
            elif index < inner < len(tape):
                lowest = min(lowest, index)
            nodes[index] = (t.MUL, a, inner)
            uses[a] += 1
            uses[inner] += 1
            self._release(x)
            self._release(y)

    def _release(self, index: int) -> None:
        """Use a value once less; what nothing uses is gone."""
        stack = [index]
        while stack:
            index = stack.pop()
            self.uses[index] -= 1
            if not self.uses[index]:
                stack += operands(self.nodes.pop(index))
                del self.uses[index]

    def _needs(self, index: int, other: int, lowest: int) -> bool:
        """Whether a value is made of another; values before the lowest are made of what is before it."""
        seen, stack = {index}, [index]
        while stack:
            for read in operands(self.nodes[stack.pop()]):
                if read == other:
                    return True
                if read >= lowest and read not in seen:
                    seen.add(read)
                    stack.append(read)
        return False

    @property
    def operations(self) -> Operations:
        """How many scalar operations they are."""
        return count_operations(self.nodes.values())

    @property
    def instructions(self) -> float:
        """Vector instructions that they take the time of: a product that only one sum needs is fused with it."""
        nodes, uses, counts = self.nodes, self.uses, self.operations
        fused = sum(
            operation in _SUMS and ((nodes[x][0] == t.MUL and uses[x] == 1) or (nodes[y][0] == t.MUL and uses[y] == 1))
            for operation, x, y in nodes.values()
        )
        return counts.total - fused + (DIVISION_TIME - 1) * counts.divisions + SINCOS_TIME * counts.sincos


def count_operations(nodes: Iterable[Node]) -> Operations:
    """How many scalar operations some nodes are."""
    listed = list(nodes)
    kinds = [operation for operation, _, _ in listed]
    return Operations(
        multiplications=kinds.count(t.MUL),
        additions=kinds.count(t.ADD) + kinds.count(t.SUB),
        divisions=kinds.count(t.RECIPROCAL),
        sincos=len({angle for operation, angle, _ in listed if operation in _TURNS}),
    )


_SUMS, _TURNS = frozenset((t.ADD, t.SUB)), frozenset((t.SIN, t.COS))
_GONE: Node = (t.CONSTANT, 0, 0)


def build(
    tape: Tape,
    inputs: Sequence[int],
    outputs: Sequence[int],
    guards: Sequence[Guard] = (),
    milestones: Sequence[int] = (),
    *,
    arguments: Sequence[Operand] | None = None,
    results: Sequence[Operand] | None = None,
    parameters: int = 0,
) -> Program:
    """The program of some outputs of a tape.

    Args:
        tape: Where the values are.
        inputs: References of the arguments' entries, in order.
        outputs: References of the results' entries, in order.
        guards: Values to watch.
        milestones: Values on the way in an order that may keep fewer values waiting than the order in
            which the outputs need them.
        arguments, results: Shapes of what goes in and comes out; one vector of all entries by default.
        parameters: How many of the last arguments are parameters of the mechanism.
    """
    roots = _roots(outputs, guards)
    draft = Draft(tape.node, roots)
    draft.draw_out_factors(tape)
    states = sum(operand.size for operand in arguments[: len(arguments) - parameters]) if arguments else len(inputs)
    once = _once(draft.nodes, roots, set(inputs[:states])) if parameters else []
    stages = _stages(draft.nodes, roots, [abs(ref) for ref in milestones], once)
    if parameters:
        stages = (([], once), *stages)
    constants = {0: 0.0} | {node: tape.constants[node] for node in draft.nodes if node in tape.constants}
    return Program(
        (Operand((len(inputs),)),) if arguments is None else tuple(arguments),
        (Operand((len(outputs),)),) if results is None else tuple(results),
        draft.nodes,
        constants,
        tuple(inputs),
        tuple(outputs),
        tuple(guards),
        stages,
        parameters,
    )


def _roots(outputs: Sequence[int], guards: Sequence[Guard]) -> list[int]:
    return [*(abs(ref) for ref in outputs), *(abs(guard.ref) for guard in guards)]


def _once(nodes: Mapping[int, Node], roots: list[int], states: set[int]) -> list[int]:
    """The arithmetic that needs no argument of a state, without what is sought itself, in an order in which it runs."""
    at_hand = {index for index, (operation, _, _) in nodes.items() if operation in (t.CONSTANT, t.INPUT)}
    reads = {index: operands(node) for index, node in nodes.items()}
    (order,) = depth_first_orders(reads, [sorted(nodes)], at_hand)
    varying = states | {index for index, (operation, _, _) in nodes.items() if operation in _TURNS} | set(roots)
    for index in order:
        if not varying.isdisjoint(reads[index]):
            varying.add(index)
    return [index for index in order if index not in varying]


def _stages(
    nodes: Mapping[int, Node], roots: list[int], milestones: list[int], once: Sequence[int]
) -> tuple[tuple[list[int], list[int]], ...]:
    """Angles and arithmetic in the order in which they run, after what runs once."""
    on_the_way = [node for node in milestones if node in nodes]
    turns = {index: angle for index, (operation, angle, _) in nodes.items() if operation in _TURNS}
    angles_left = set(turns.values())
    done = {index for index, (operation, _, _) in nodes.items() if operation in (t.CONSTANT, t.INPUT)}
    done.update(once)
    reads = {index: operands(node) for index, node in nodes.items()}
    stages: list[tuple[list[int], list[int]]] = []
    ready: list[int] = []
    while True:
        nested = {
            angle: {turns[x] for x in Draft(nodes.__getitem__, [angle]).nodes if x in turns} for angle in angles_left
        }
        goals = [angle for angle, above in nested.items() if not above & angles_left]
        candidates = [sorted(goals)] if goals else [roots, on_the_way + roots]
        orders = depth_first_orders(reads, candidates, done)
        order = min(orders, key=lambda order: waiting_time(reads, order))
        done.update(order)
        stages.append((ready, order))
        if not goals:
            return tuple(stages)
        ready = sorted(goals)
        angles_left.difference_update(goals)
        done.update(index for index, angle in turns.items() if angle in goals)
