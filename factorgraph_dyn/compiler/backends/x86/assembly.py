"""The arithmetic of a program as x86-64 assembly over vectors of four (AVX2) or eight (AVX-512) states.

Takes a program; gives a body of functions in assembly, which LLVM's assembler puts beside the code it makes itself of
everything around them. A compiler would allocate registers by the code's look; here every use of every value is known
(see `registers`), constants are read from a table, and nothing is searched for: a kernel's code is made in about half
the time and has a quarter fewer instructions. `vectors` writes what differs between the two instruction sets.

    add, sub, mul     one instruction of three operands, the last of which may be in memory
    a b + c           one fused instruction, whose result takes the register of a, b or c: of one that is not needed
                      any more, else of one that is in memory too, else of a copy
    1 / a             a division

The calling convention is that of Linux and other Unix systems: the workspace is in %rdi, and no register is preserved.
The work runs once a kernel.
"""

from __future__ import annotations

import re
import struct
from collections import Counter
from dataclasses import replace

from factorgraph_dyn.compiler.backends.llvm.body import Body, Functions
from factorgraph_dyn.compiler.backends.llvm.machine import Machine
from factorgraph_dyn.compiler.backends.x86.registers import Registers
from factorgraph_dyn.compiler.backends.x86.vectors import LESS, MORE, NOT_AT_MOST, NOT_MORE, SETS, Vectors
from factorgraph_dyn.compiler.program import Guard, Program
from factorgraph_dyn.compiler.tape import tape as t

_WHOLE = 1 << 60
_SLOT = re.compile(r"slot (\d+);")
_SIGN_BIT, _ALL_BUT_SIGN = 1 << 63, (1 << 63) - 1
_WORDS = {t.ADD: "vaddpd", t.SUB: "vsubpd", t.MUL: "vmulpd"}


def is_for(machine: Machine) -> bool:
    """Whether a machine runs this assembly."""
    unix = "x86_64" in machine.triple and not any(name in machine.triple for name in ("windows", "darwin", "apple"))
    return unix and machine.fma and machine.width in SETS


def emit_assembly(program: Program, width: int, name: str = "") -> Body:
    """The program's arithmetic as functions in assembly.

    Args:
        program: What to compute.
        width: States a vector holds.
        name: What the names of its functions begin with.
    """
    return _Assembler(program, SETS[width], name).emit()


def _bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


class _Assembler(Functions):
    def __init__(self, program: Program, vectors: Vectors, name: str) -> None:
        self.vectors = vectors
        self.constant_places: dict[int, int] = {}
        self.number = 0
        super().__init__(program, vectors.width, True, _WHOLE, name)

    def cheap_nodes(self) -> set[int]:
        """None: what is in memory is read from there by the instruction that needs it."""
        return set()

    def emit(self) -> Body:
        """All functions, and the table of their constants."""
        body = super().emit()
        align = f".p2align {self.vectors.bytes.bit_length() - 1}"
        words = self.vectors.table(list(self.constant_places))
        table = [".section .rodata", align, f"{self.table}:", *words, ".text"]
        declared = [f"declare dso_local void @{self.name}part{number}(ptr) #0" for number in range(len(self.parts))]
        return replace(body, text="\n".join([_module_assembly(table), body.text, *declared]))

    @property
    def table(self) -> str:
        """The label of the table of constants."""
        return f".L{self.name}constants"

    def part(self, number: int) -> str:
        """One function."""
        self.number = number
        self.registers = self._registers(number)
        for node in self.parts[number]:
            if node not in self.fused:
                self._operation(node)
                self._keep(node)
                self.registers.used(node)
                self.registers.now += 1
                self.free += self.left
                self.left.clear()
        if number == len(self.parts) - 1:
            for node in {*self.outputs_of, *self.guards_of} - self.part_of.keys():
                self.registers.load(node)
                self._keep(node)
                self.registers.used(node)
        self.release(number)
        code = [*self.vectors.start(self.table), *_addressed(self.registers.lines, self.vectors)]
        return _module_assembly([".p2align 4", f"{self.name}part{number}:", *code, "retq"])

    def _registers(self, number: int) -> Registers:
        """Nothing in registers yet, and all that is in memory at the start of a part."""
        order = [node for node in self.parts[number] if node not in self.fused]
        uses: dict[int, list[int]] = {}
        for now in range(len(order) - 1, -1, -1):
            for read in {*self._reads_of(order[now])}:
                uses.setdefault(read, []).append(now)
        homes = {node: self._address(slot) for node, slot in self.slot.items()}
        homes |= {node: self._constant(_bits(value)) for node, value in self.program.constants.items()}
        registers = Registers([], homes, uses, self.vectors)
        registers.new_home = self._spill
        registers.leave_home = self._forget
        self.spilled: dict[int, int] = {}
        self.left: list[int] = []
        return registers

    def _reads_of(self, node: int) -> list[int]:
        """What an instruction reads: of a fused product the factors."""
        reads = self.program.operands(node)
        return [x for read in reads for x in (self.program.operands(read) if read in self.fused else (read,))]

    def _address(self, slot: int) -> str:
        return f"slot {slot};"

    def _constant(self, bits: int) -> str:
        place = self.constant_places.setdefault(bits, len(self.constant_places))
        return self.vectors.constant(self.table, place)

    def _spill(self, value: int) -> str:
        slot = self.spilled[value] = self.new_slot()
        return self._address(slot)

    def _forget(self, value: int) -> None:
        slot = self.spilled.pop(value, None)
        if slot is not None:
            self.left.append(slot)  # the instruction that is being written may still read it

    def _line(self, instruction: str) -> None:
        self.registers.lines.append(instruction)

    # Instructions

    def _operation(self, node: int) -> None:
        operation, left, right = self.program.nodes[node]
        if operation in (t.ADD, t.SUB) and (left in self.fused or right in self.fused):
            self._fused(node, left, right, operation == t.SUB)
        elif operation in _WORDS:
            self._binary(node, _WORDS[operation], left, right, swaps=operation != t.SUB)
        elif operation == t.RECIPROCAL:
            self._reciprocal(node, left)
        else:
            self._sign(node, left)

    def _binary(self, node: int, word: str, a: int, b: int, *, swaps: bool) -> None:
        """a word b, of which b may be in memory."""
        registers = self.registers
        if swaps and not registers.holds(a) and (registers.holds(b) or self._later(b) < self._later(a)):
            a, b = b, a
        if not registers.holds(a):
            registers.load(a, (b,))
        first, second = registers.operand(a), registers.operand(b)
        registers.used(a, b)
        result = registers.room()
        self._line(f"{word} {second}, {first}, {registers.name(result)}")
        registers.put(node, result)

    def _later(self, value: int) -> int:
        """When a value that is used now is used after that."""
        uses = self.registers.uses[value]
        return uses[-2] if len(uses) > 1 else _WHOLE

    def _fused(self, node: int, left: int, right: int, subtract: bool) -> None:
        """c + a b with signs; the result takes the register of one of the three."""
        registers = self.registers
        if right in self.fused:
            c, product, minus_product, minus_c = left, right, subtract, False
        else:
            c, product, minus_product, minus_c = right, left, False, subtract
        a, b = self.program.operands(product)
        self._load_all_but_one(a, b, c)
        names = {value: registers.operand(value) for value in (a, b, c)}
        registers.used(a, b, c)
        given_up = self._given_up(a, b, c, names)
        result = names[given_up]
        word = "vf" + ("n" if minus_product else "") + ("msub" if minus_c else "madd")
        other = b if given_up == a else a
        if given_up == c:
            x, y = (a, b) if _is_register(names[b]) else (b, a)
            self._line(f"{word}231pd {names[x]}, {names[y]}, {result}")
        elif _is_register(names[other]):
            self._line(f"{word}213pd {names[c]}, {names[other]}, {result}")
        else:
            self._line(f"{word}132pd {names[other]}, {names[c]}, {result}")
        registers.put(node, self.vectors.number(result))

    def _load_all_but_one(self, a: int, b: int, c: int) -> None:
        """Bring values to registers until one of the three operands at most is in memory."""
        registers = self.registers
        while True:
            away = [value for value in (a, b, c) if not registers.holds(value)]
            if len(away) < 2:
                return
            registers.load(min(away, key=self._later), (a, b, c))

    def _given_up(self, a: int, b: int, c: int, names: dict[int, str]) -> int:
        """The operand whose register the result takes, in which no value is then lost."""
        registers = self.registers
        here = [value for value in (c, a, b) if _is_register(names[value])]
        for value in here:
            if not registers.holds(value):
                return value
        known = [value for value in here if value in registers.homes]
        if known:
            value = max(known, key=registers.next_use)
            registers.drop(value)
            return value
        away = [value for value in (c, a, b) if value not in here]
        value = away[0] if away else c
        copy = registers.name(registers.room(tuple(here)))
        self._line(self.vectors.load(names[value], copy))
        names[value] = copy
        return value

    def _reciprocal(self, node: int, a: int) -> None:
        registers = self.registers
        number = registers.take((a,))
        result = registers.name(number)
        self._line(self.vectors.load(self._constant(_bits(1.0)), result))
        self._line(f"vdivpd {registers.operand(a)}, {result}, {result}")
        registers.used(a)
        registers.put(node, number)

    def _sign(self, node: int, a: int) -> None:
        """-1 or 1, and the value itself where it is zero or not a number."""
        registers = self.registers
        if not registers.holds(a):
            registers.load(a)
        taken = [registers.take((a,)) for _ in range(3)]
        value, zero, mask, result = registers.operand(a), *map(registers.name, taken)
        self._line(self.vectors.load(self._constant(0), zero))
        before = value
        for comparison, number in ((LESS, -1.0), (MORE, 1.0)):
            yes = self._constant(_bits(number))
            registers.lines += self.vectors.choose(comparison, value, zero, yes, before, result, mask)
            before = result
        registers.give_back(*taken[:2])
        registers.used(a)
        registers.put(node, taken[2])

    # Results

    def _keep(self, node: int) -> None:
        """Store a value where later code looks for it."""
        registers = self.registers
        value = registers.operand(node)
        for slot, negative in self.outputs_of.get(node, ()):
            if negative:
                taken = registers.take((node,))
                minus = registers.name(taken)
                self._line(self.vectors.negated(self._constant(_SIGN_BIT), value, minus))
                self._line(f"vmovapd {minus}, {self._address(slot)}")
                registers.give_back(taken)
            else:
                self._line(f"vmovapd {value}, {self._address(slot)}")
                registers.homes.setdefault(node, self._address(slot))
        for guard in self.guards_of.get(node, ()):
            self._watch(node, guard)
        if node in self.part_of and self.last_part.get(node, -1) > self.number:
            self.slot[node] = self.new_slot()
            registers.homes[node] = self._address(self.slot[node])
            self._line(f"vmovapd {value}, {registers.homes[node]}")

    def _watch(self, node: int, guard: Guard) -> None:
        """Set all bits of the guard in lanes in which a value is not as it has to be."""
        registers = self.registers
        taken = registers.take((node,))
        registers.lines += self.vectors.watch(
            registers.operand(node),
            self._constant(_ALL_BUT_SIGN),
            NOT_AT_MOST if guard.small else NOT_MORE,
            self._constant(_bits(guard.threshold)),
            self._address(self.guard_slot),
            registers.name(taken),
        )
        registers.give_back(taken)


def _is_register(operand: str) -> bool:
    return operand.startswith("%")


def _addressed(lines: list[str], vectors: Vectors) -> list[str]:
    """Instructions with addresses for slots.

    An address near a register takes three bytes less of code than a far one, and code is to fit the first-level cache:
    the slots around each of the registers for pointers are those used most.
    """
    text = "\n".join(lines)
    counts = Counter(int(slot) // vectors.near for slot in _SLOT.findall(text))
    windows = [window for window, _ in counts.most_common(len(vectors.pointers))]
    pointers = dict(zip(windows, vectors.pointers, strict=False))
    middle = vectors.near // 2

    def address(found: re.Match[str]) -> str:
        window, place = divmod(int(found[1]), vectors.near)
        pointer = pointers.get(window)
        far = f"{vectors.bytes * int(found[1])}(%rdi)"
        return far if pointer is None else f"{vectors.bytes * (place - middle)}({pointer})"

    starts = [
        f"leaq {vectors.bytes * (vectors.near * window + middle)}(%rdi), {pointer}"
        for window, pointer in pointers.items()
    ]
    return [*starts, *_SLOT.sub(address, text).split("\n")]


def _module_assembly(lines: list[str]) -> str:
    """Assembly as LLVM's IR quotes it."""
    text = r"\0A".join(lines)
    return f'module asm "{text}"'
