"""Vector registers for straight-line code whose every use is known ahead.

Takes the order of instructions and when each value is used; gives registers. When one is needed and none is free, the
value whose next use is farthest away leaves (Belady 1966, the fewest reloads there can be). A value that is in memory
anyway (an argument, a constant, a result, one that left before) goes without a store, and is read from there by the
instruction that needs it.

The work runs once an instruction.
"""

from __future__ import annotations

from collections.abc import Callable

from factorgraph_dyn.compiler.backends.x86.vectors import Vectors

_NEVER = 1 << 60
_FREE, _TAKEN = -1, -2  # what a register holds that holds no value
_STORE = 2  # how much sooner a value may be needed again that leaves without a store


class Registers:
    """Where the values of straight-line code are.

    Attributes:
        lines: Instructions so far.
        homes: Memory operands of the values that are in memory.
        uses: When each value is used from now on, the next use last.
        vectors: The instruction set.
    """

    def __init__(self, lines: list[str], homes: dict[int, str], uses: dict[int, list[int]], vectors: Vectors) -> None:
        self.lines = lines
        self.homes = homes
        self.uses = uses
        self.vectors = vectors
        self.name = vectors.register
        self.now = 0
        self._register: dict[int, int] = {}
        self._held = [_FREE] * vectors.registers
        self.new_home: Callable[[int], str] = lambda value: ""
        self.leave_home: Callable[[int], None] = lambda value: None

    def holds(self, value: int) -> bool:
        """Whether a value is in a register."""
        return value in self._register

    def operand(self, value: int) -> str:
        """A value as instructions name it: its register, else its place in memory."""
        register = self._register.get(value)
        return self.homes[value] if register is None else self.name(register)

    def next_use(self, value: int) -> int:
        """When a value is used next."""
        uses = self.uses.get(value)
        return uses[-1] if uses else _NEVER

    def load(self, value: int, keep: tuple[int, ...] = ()) -> None:
        """Bring a value from memory to a register, without moving those to keep."""
        register = self.room(keep)
        self.lines.append(self.vectors.load(self.homes[value], self.name(register)))
        self.put(value, register)

    def room(self, keep: tuple[int, ...] = ()) -> int:
        """A free register; the values to keep stay where they are."""
        held = self._held
        if _FREE in held:
            return held.index(_FREE)
        fixed = {self._register[value] for value in keep if value in self._register}
        victim = max(
            (value for register, value in enumerate(held) if value >= 0 and register not in fixed), key=self._distance
        )
        if victim not in self.homes:
            self.homes[victim] = self.new_home(victim)
            self.lines.append(f"vmovapd {self.name(self._register[victim])}, {self.homes[victim]}")
        return self.drop(victim)

    def _distance(self, value: int) -> int:
        distance = self.next_use(value) - self.now
        return _STORE * distance if value in self.homes else distance

    def put(self, value: int, register: int) -> None:
        """Note that a register holds a value."""
        self._held[register] = value
        self._register[value] = register

    def take(self, keep: tuple[int, ...] = ()) -> int:
        """A register for the moment, until it is given back."""
        register = self.room(keep)
        self._held[register] = _TAKEN
        return register

    def give_back(self, *registers: int) -> None:
        """Free registers that were taken."""
        for register in registers:
            self._held[register] = _FREE

    def drop(self, value: int) -> int:
        """Free the register of a value."""
        register = self._register.pop(value)
        self._held[register] = _FREE
        return register

    def used(self, *values: int) -> None:
        """Note that values have been used now; those that never are again leave."""
        for value in {*values}:
            uses = self.uses.get(value)
            if uses and uses[-1] == self.now:
                uses.pop()
            if not uses:
                if value in self._register:
                    self.drop(value)
                self.leave_home(value)
