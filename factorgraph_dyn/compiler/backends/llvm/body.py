"""The arithmetic of a program as LLVM functions over vectors of states.

Takes a program and a vector width; gives IR text. Every value is a vector with one state a lane.
Values that outlive a function are kept in the workspace, an array of vectors ("slots"):

    inputs | outputs | guard | cosine and sine of each angle | values passed between functions

Code is cut into functions of bounded length, because a compiler's effort grows faster than the
length of a function; the slots of passed values are reused, but for those of values that depend on parameters alone,
which stay for the states that come next. A product that only one sum uses is
fused with it. The work runs once a kernel.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from dataclasses import dataclass

from factorgraph_dyn.compiler.program import Guard, Program
from factorgraph_dyn.compiler.tape import tape as t

SEGMENT = 250
"""Operations a function has at most."""


def splat(value: float) -> str:
    """A vector of one number, in LLVM's exact notation."""
    return f"splat (double 0x{struct.unpack('>Q', struct.pack('>d', value))[0]:016X})"


@dataclass(frozen=True)
class Call:
    """One thing the kernel does to its workspace.

    Attributes:
        part: Number of the function to call, or None for a batch of sines and cosines.
        arguments: Slots of the angles.
        results: First slot of the cosines and sines, two an angle.
    """

    part: int | None
    arguments: tuple[int, ...] = ()
    results: int = 0


@dataclass(frozen=True)
class Body:
    """IR of a program's arithmetic.

    Attributes:
        name: What the names of its functions begin with, where a module has several bodies.
        text: Definitions of the functions ``@<name>part<k>(ptr workspace)``.
        calls: What runs, in order.
        once: How many of these need nothing but parameters.
        slots: Length of the workspace in vectors.
        output_slot: Where the outputs start; the inputs start at 0.
        guard_slot: Where the guard is, after the outputs: not a number in lanes whose outputs are not to be trusted,
            else zero.
        outputs: The slot of every output: several have the same value, and zeros are those of the guard.
    """

    name: str
    text: str
    calls: tuple[Call, ...]
    once: int
    slots: int
    output_slot: int
    guard_slot: int
    outputs: tuple[int, ...]


def emit_body(program: Program, width: int, *, fma: bool, segment: int = SEGMENT, name: str = "") -> Body:
    """The program's arithmetic as LLVM functions.

    Args:
        program: What to compute.
        width: States a vector holds.
        fma: Whether the machine has fused multiply-add.
        segment: Operations a function has at most.
        name: What the names of its functions begin with.
    """
    return _Emitter(program, width, fma, segment, name).emit()


class Functions:
    """The functions of a body: which operations each holds, and where values are kept between them."""

    def __init__(self, program: Program, width: int, fma: bool, segment: int, name: str) -> None:
        self.program = program
        self.name = name
        self.width = width
        self.fma = fma
        self.output_slot = len(program.inputs)
        self.stored = [place for place, source in enumerate(program.sources) if source == place]
        self.guard_slot = self.output_slot + len(self.stored)
        angle_slot = self.guard_slot + 1
        self.slot = {node: place for place, node in enumerate(program.inputs)}
        self.angle_slots = {
            angle: angle_slot + 2 * place
            for place, angle in enumerate(a for angles, _ in program.stages for a in angles)
        }
        self.end = angle_slot + 2 * len(self.angle_slots)
        self.free: list[int] = []
        self.parts, self.angles_before = _cut(program, segment)
        once = set(program.once)
        self.once = sum(bool(part) and once.issuperset(part) for part in self.parts) if once else 0
        self.part_of = {node: k for k, part in enumerate(self.parts) for node in part}
        self._place_sines_and_cosines()
        self.cheap = self.cheap_nodes()
        self._count_uses()
        self.many: list[tuple[int, int, bool]] = []

    def _place_sines_and_cosines(self) -> None:
        for angle, nodes in self.program.sines_and_cosines.items():
            for node in nodes:
                self.slot[node] = self.angle_slots[angle] + (self.program.nodes[node][0] == t.SIN)

    def cheap_nodes(self) -> set[int]:
        """Nodes that are computed again where they are needed, rather than passed on.

        One operation on inputs, sines, cosines and constants costs no more than a load, and values
        that are not kept leave room in the first-level cache.
        """
        program = self.program
        at_hand = {*self.slot, *program.constants}
        return {
            node
            for node, part in self.part_of.items()
            if part >= self.once and len(reads := program.operands(node)) == 2 and at_hand.issuperset(reads)
        } - set(self.angle_slots)

    def _count_uses(self) -> None:
        """Uses of every node, which products fuse, and the last part that reads a node."""
        program = self.program
        uses: defaultdict[int, int] = defaultdict(int)
        self.outputs_of: defaultdict[int, list[tuple[int, bool]]] = defaultdict(list)
        self.guards_of: defaultdict[int, list[Guard]] = defaultdict(list)
        for slot, place in enumerate(self.stored, start=self.output_slot):
            ref = program.outputs[place]
            self.outputs_of[abs(ref)].append((slot, ref < 0))
        for guard in program.guards:
            self.guards_of[abs(guard.ref)].append(guard)
        for node in (*self.outputs_of, *self.guards_of, *self.angle_slots):
            uses[node] += 2  # never fused
        for part in self.parts:
            for node in part:
                for read in program.operands(node):
                    uses[read] += 1
        self.fused: set[int] = set()
        self.last_part: dict[int, int] = {}
        self.ending: defaultdict[int, list[int]] = defaultdict(list)
        for number, part in enumerate(self.parts):
            for angle in self.angles_before.get(number, ()):
                self.last_part[angle] = number
            for node in part:
                for read in self._reads(node, number, uses):
                    self.last_part[read] = number
        for node, last in self.last_part.items():
            self.ending[last].append(node)

    def _reads(self, node: int, number: int, uses: dict[int, int]) -> list[int]:
        """What an operation reads; a product it is fused with counts with its factors."""
        program = self.program
        operands = program.operands(node)
        if self.fma and program.nodes[node][0] in (t.ADD, t.SUB):
            for place in (1, 0):
                product = operands[place]
                if program.nodes[product][0] == t.MUL and uses[product] == 1 and self.part_of[product] == number:
                    self.fused.add(product)
                    return [operands[1 - place], *program.operands(product)]
        return list(operands)

    def emit(self) -> Body:
        """All functions, and what runs."""
        pieces: list[str] = []
        calls: list[Call] = []
        for number in range(len(self.parts)):
            angles = self.angles_before.get(number)
            if angles:
                arguments = tuple(self.slot[angle] for angle in angles)
                calls.append(Call(None, arguments, self.angle_slots[angles[0]]))
            calls.append(Call(number))
            pieces.append(self.part(number))
        for start in range(0, len(self.many), SEGMENT):
            calls.append(Call(len(pieces)))
            pieces.append(self.stores(len(pieces), self.many[start : start + SEGMENT]))
        text, slots = "\n".join(pieces), dict(zip(self.stored, range(self.output_slot, self.guard_slot), strict=True))
        outputs = tuple(self.guard_slot if source is None else slots[source] for source in self.program.sources)
        return Body(self.name, text, tuple(calls), self.once, self.end, self.output_slot, self.guard_slot, outputs)

    def stores(self, number: int, outputs: list[tuple[int, int, bool]]) -> str:
        """A function that stores outputs which need no arithmetic: nodes, slots, and whether they are negative."""
        raise NotImplementedError

    def part(self, number: int) -> str:
        """One function."""
        raise NotImplementedError

    def release(self, number: int) -> None:
        """Free the slots of values that no part after this one reads."""
        for node in self.ending[number]:
            if self.part_of.get(node, -1) >= self.once and node in self.slot:
                self.free.append(self.slot.pop(node))

    def new_slot(self) -> int:
        """A slot for a value that is to be kept."""
        if self.free:
            return self.free.pop()
        self.end += 1
        return self.end - 1


class _Emitter(Functions):
    def __init__(self, program: Program, width: int, fma: bool, segment: int, name: str) -> None:
        super().__init__(program, width, fma, segment, name)
        self.vector = f"<{width} x double>"
        self.lines: list[str] = []
        self.names: dict[int, str] = {}
        self.counter = 0
        self.guard = ""

    def part(self, number: int) -> str:
        """One function."""
        self.lines, self.names, self.counter, self.guard = [], {}, 0, ""
        for node in self.parts[number]:
            if node not in self.fused:
                self._operation(node)
                self._keep(node, number)
        if number == len(self.parts) - 1:
            self._postpone_stores()
            for node in {*self.outputs_of, *self.guards_of} - self.part_of.keys():
                self._keep(node, number)
        if self.guard:
            self._store_guard()
        self.release(number)
        return self._function(number)

    def _postpone_stores(self) -> None:
        """Set aside the zeros of large matrices, of which thousands in one function would take LLVM minutes."""
        ready = [node for node in self.outputs_of if node not in self.part_of]
        if sum(len(self.outputs_of[node]) for node in ready) > SEGMENT:
            self.many = [(node, slot, negative) for node in ready for slot, negative in self.outputs_of.pop(node)]

    def stores(self, number: int, outputs: list[tuple[int, int, bool]]) -> str:
        """A function that stores outputs which need no arithmetic."""
        self.lines, self.names, self.counter = [], {}, 0
        for node, slot, negative in outputs:
            self._output(node, slot, negative)
        return self._function(number)

    def _output(self, node: int, slot: int, negative: bool) -> None:
        value = self._value(node)
        self._store(self._line(f"fneg {self.vector} {value}") if negative else value, slot)

    def _function(self, number: int) -> str:
        body = "\n".join(self.lines)
        return f"define internal void @{self.name}part{number}(ptr noalias %w) #0 {{\n{body}\n  ret void\n}}\n"

    def _keep(self, node: int, number: int) -> None:
        """Store a value where later code looks for it."""
        for slot, negative in self.outputs_of.get(node, ()):
            self._output(node, slot, negative)
        for guard in self.guards_of.get(node, ()):
            self._watch(self._value(node), guard)
        if node in self.part_of and node not in self.cheap and self.last_part.get(node, -1) > number:
            self.slot[node] = self.new_slot()
            self._store(self.names[node], self.slot[node])

    def _line(self, instruction: str) -> str:
        self.counter += 1
        name = f"%x{self.counter}"
        self.lines.append(f"  {name} = {instruction}")
        return name

    def _address(self, slot: int) -> str:
        return self._line(f"getelementptr inbounds {self.vector}, ptr %w, i64 {slot}")

    def _store(self, value: str, slot: int) -> None:
        address = self._address(slot)
        self.lines.append(f"  store {self.vector} {value}, ptr {address}, align {8 * self.width}")

    def _load(self, slot: int) -> str:
        address = self._address(slot)
        return self._line(f"load {self.vector}, ptr {address}, align {8 * self.width}")

    def _value(self, node: int) -> str:
        name = self.names.get(node)
        if name is None and node in self.cheap:
            self._operation(node)
            return self.names[node]
        if name is None:
            constant = self.program.constants.get(node)
            name = self._load(self.slot[node]) if constant is None else splat(constant)
            self.names[node] = name
        return name

    def _operation(self, node: int) -> None:
        program, vector = self.program, self.vector
        operation, left, right = program.nodes[node]
        if operation in (t.ADD, t.SUB):
            name = self._sum(left, right, operation == t.SUB)
        elif operation == t.MUL:
            name = self._line(f"fmul {vector} {self._value(left)}, {self._value(right)}")
        elif operation == t.RECIPROCAL:
            name = self._line(f"fdiv {vector} {splat(1.0)}, {self._value(left)}")
        else:
            name = self._sign(self._value(left))
        self.names[node] = name

    def _sum(self, left: int, right: int, subtract: bool) -> str:
        vector, program = self.vector, self.program
        for product, other, product_minus, other_minus in (
            (right, left, subtract, False),
            (left, right, False, subtract),
        ):
            if product in self.fused:
                a, b = (self._value(factor) for factor in program.operands(product))
                c = self._value(other)
                if product_minus:
                    a = self._line(f"fneg {vector} {a}")
                if other_minus:
                    c = self._line(f"fneg {vector} {c}")
                call = f"call {vector} @llvm.fma.v{self.width}f64"
                return self._line(f"{call}({vector} {a}, {vector} {b}, {vector} {c})")
        word = "fsub" if subtract else "fadd"
        return self._line(f"{word} {vector} {self._value(left)}, {self._value(right)}")

    def _sign(self, value: str) -> str:
        """-1 or 1, and the value itself where it is zero or not a number."""
        vector, bits = self.vector, f"<{self.width} x i1>"
        for comparison, result in (("olt", -1.0), ("ogt", 1.0)):
            test = self._line(f"fcmp {comparison} {vector} {value}, zeroinitializer")
            value = self._line(f"select {bits} {test}, {vector} {splat(result)}, {vector} {value}")
        return value

    def _watch(self, value: str, guard: Guard) -> None:
        vector = self.vector
        size = self._line(f"call {vector} @llvm.fabs.v{self.width}f64({vector} {value})")
        bad = "ugt" if guard.small else "ule"  # also true of what is not a number
        failed = self._line(f"fcmp {bad} {vector} {size}, {splat(guard.threshold)}")
        if self.guard:
            failed = self._line(f"or <{self.width} x i1> {self.guard}, {failed}")
        self.guard = failed

    def _store_guard(self) -> None:
        vector = self.vector
        before = self._load(self.guard_slot)
        after = self._line(
            f"select <{self.width} x i1> {self.guard}, {vector} {splat(float('nan'))}, {vector} {before}"
        )
        self._store(after, self.guard_slot)


def _cut(program: Program, segment: int) -> tuple[list[list[int]], dict[int, list[int]]]:
    """Parts of bounded length, and the angles taken before each."""
    parts: list[list[int]] = []
    angles_before: dict[int, list[int]] = {}
    for number, (angles, nodes) in enumerate(program.stages, start=1):
        if angles:
            angles_before[len(parts)] = angles
        pieces = max(1, -(-len(nodes) // segment))
        if not nodes and not angles and number < len(program.stages):
            continue
        size = -(-len(nodes) // pieces)
        parts.extend(nodes[k * size : (k + 1) * size] for k in range(pieces))
    return parts, angles_before
