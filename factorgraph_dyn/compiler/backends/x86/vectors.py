"""What AVX2 and AVX-512 write differently: names and numbers of registers, constants, comparisons.

Takes operands; gives instructions in the notation of AT&T, in which the result is last.

                  AVX2                              AVX-512
    registers     16 of 4 doubles                   32 of 8 doubles
    constants     whole vectors in a table          one double each, spread by the instruction that reads it
    comparisons   a vector of all bits or none      a mask register, of which %k1 is used here
    near          8 slots around a pointer          256 of them: short addresses count in vectors

The work runs once an instruction.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence

LESS, MORE, NOT_MORE, NOT_AT_MOST = 0x11, 0x1E, 0x1A, 0x16
"""Comparisons; of nan the first two are false, the others true."""


class Vectors(ABC):
    """An instruction set for vectors.

    Attributes:
        width: Doubles a register holds.
        registers: How many there are.
        near: Slots that the short addresses around one pointer reach.
        pointers: Registers that slots are addressed by.
    """

    width: int
    registers: int
    near: int
    pointers: tuple[str, ...]
    _prefix: str

    @property
    def bytes(self) -> int:
        """Length of a vector."""
        return 8 * self.width

    def register(self, number: int) -> str:
        """A register as instructions name it."""
        return f"{self._prefix}{number}"

    def number(self, name: str) -> int:
        """The number of a register."""
        return int(name.removeprefix(self._prefix))

    @abstractmethod
    def constant(self, table: str, place: int) -> str:
        """The operand of a constant in a table."""

    @abstractmethod
    def table(self, words: Sequence[int]) -> list[str]:
        """Constants in memory."""

    @abstractmethod
    def start(self, table: str) -> list[str]:
        """What a function needs before it reads constants of a table."""

    @abstractmethod
    def load(self, operand: str, register: str) -> str:
        """Bring what is in memory to a register."""

    @abstractmethod
    def negated(self, sign_bit: str, value: str, result: str) -> str:
        """- value."""

    @abstractmethod
    def choose(self, comparison: int, left: str, right: str, yes: str, no: str, result: str, mask: str) -> list[str]:
        """``yes`` where the comparison of left with right is true, else ``no``; a mask may be lost."""

    @abstractmethod
    def watch(self, value: str, all_but_sign: str, comparison: int, threshold: str, place: str, bad: str) -> list[str]:
        """Set all bits of a place in memory where a value's size is so beside a threshold; bad is lost."""


class Avx2(Vectors):
    """Vectors of four doubles."""

    width, registers, near, _prefix = 4, 16, 8, "%ymm"
    pointers = ("%rax", "%rcx", "%rdx", "%rsi", "%r8", "%r9", "%r10", "%r11")

    def constant(self, table: str, place: int) -> str:
        """The operand of a constant in a table."""
        return f"{table}+{self.bytes * place}(%rip)"

    def table(self, words: Sequence[int]) -> list[str]:
        """Constants in memory."""
        return [f".quad {', '.join([hex(word)] * self.width)}" for word in words]

    def start(self, table: str) -> list[str]:
        """What a function needs before it reads constants of a table."""
        return []

    def load(self, operand: str, register: str) -> str:
        """Bring what is in memory to a register."""
        return f"vmovapd {operand}, {register}"

    def negated(self, sign_bit: str, value: str, result: str) -> str:
        """- value."""
        return f"vxorpd {sign_bit}, {value}, {result}"

    def choose(self, comparison: int, left: str, right: str, yes: str, no: str, result: str, mask: str) -> list[str]:
        """``yes`` where the comparison of left with right is true, else ``no``; a mask may be lost."""
        return [f"vcmppd ${comparison}, {right}, {left}, {mask}", f"vblendvpd {mask}, {yes}, {no}, {result}"]

    def watch(self, value: str, all_but_sign: str, comparison: int, threshold: str, place: str, bad: str) -> list[str]:
        """Set all bits of a place in memory where a value's size is so beside a threshold; bad is lost."""
        return [
            f"vandpd {all_but_sign}, {value}, {bad}",
            f"vcmppd ${comparison}, {threshold}, {bad}, {bad}",
            f"vorpd {place}, {bad}, {bad}",
            f"vmovapd {bad}, {place}",
        ]


class Avx512(Vectors):
    """Vectors of eight doubles; of AVX-512 only what is called F, which all that have any have."""

    width, registers, near, _prefix = 8, 32, 256, "%zmm"
    pointers = ("%rax", "%rcx", "%rdx", "%rsi", "%r8", "%r9", "%r10")
    _table, _middle = "%r11", 1024  # short addresses reach 128 doubles to either side
    _spread = "{1to8}"

    def constant(self, table: str, place: int) -> str:
        """The operand of a constant in a table."""
        return f"{8 * place - self._middle}({self._table}){self._spread}"

    def table(self, words: Sequence[int]) -> list[str]:
        """Constants in memory."""
        return [f".quad {hex(word)}" for word in words]

    def start(self, table: str) -> list[str]:
        """What a function needs before it reads constants of a table."""
        return [f"leaq {table}+{self._middle}(%rip), {self._table}"]

    def load(self, operand: str, register: str) -> str:
        """Bring what is in memory to a register."""
        if operand.endswith(self._spread):
            return f"vbroadcastsd {operand.removesuffix(self._spread)}, {register}"
        return f"vmovapd {operand}, {register}"

    def negated(self, sign_bit: str, value: str, result: str) -> str:
        """- value."""
        return f"vpxorq {sign_bit}, {value}, {result}"

    def choose(self, comparison: int, left: str, right: str, yes: str, no: str, result: str, mask: str) -> list[str]:
        """``yes`` where the comparison of left with right is true, else ``no``; a mask may be lost."""
        return [f"vcmppd ${comparison}, {right}, {left}, %k1", f"vblendmpd {yes}, {no}, {result} {{%k1}}"]

    def watch(self, value: str, all_but_sign: str, comparison: int, threshold: str, place: str, bad: str) -> list[str]:
        """Set all bits of a place in memory where a value's size is so beside a threshold; bad is lost."""
        return [
            f"vpandq {all_but_sign}, {value}, {bad}",
            f"vcmppd ${comparison}, {threshold}, {bad}, %k1",
            f"vpternlogq $255, {bad}, {bad}, {bad}",
            f"vmovapd {bad}, {place} {{%k1}}",
        ]


SETS: dict[int, Vectors] = {vectors.width: vectors for vectors in (Avx2(), Avx512())}
"""Instruction sets by the doubles of a vector."""
