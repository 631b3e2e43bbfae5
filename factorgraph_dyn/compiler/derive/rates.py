"""How values of a tape change with its inputs: forward differentiation, all directions in one pass.

Takes how the inputs change along some directions; gives, for any reference, its change along each direction that it
depends on, as references of the same tape, on which equal values are one node:

    a + b    a' + b'          1 / a    -a' / a^2       sin a    a' cos a
    a b      a' b + a b'      sign a   0               cos a   -a' sin a

A sign is taken for a constant: at zero, too, the change is that of the branch that the value takes. What has been
solved for elsewhere may be told like an input. The work runs once a kernel, a microsecond a node and direction.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.tape import ZERO, Tape, operands

Change = dict[int, int]
"""References by direction; a direction that is not there changes nothing."""

_NOTHING: Change = {}


class Rates:
    """Changes of a tape's values, computed as far as asked for."""

    def __init__(self, tape: Tape, inputs: Mapping[int, Change]) -> None:
        """Start from the changes of some references; other inputs are constant."""
        self.tape = tape
        self._known: dict[int, Change] = {}
        for ref, change in inputs.items():
            self.tell(ref, change)

    def tell(self, ref: int, change: Change) -> None:
        """Let the change of a value be known, unless it is already."""
        if ref:
            self._known.setdefault(abs(ref), signed(change, ref))

    def of(self, ref: int) -> Change:
        """The change of a reference."""
        node = abs(ref)
        if node not in self._known:
            for ancestor in self._missing(node):
                self._known[ancestor] = self._change(ancestor)
        return signed(self._known[node], ref)

    def of_sum(self, terms: Iterable[tuple[int, int]]) -> Change:
        """The change of a sum of products, the second factors of which stay as they are."""
        total: Change = {}
        for changing, constant in terms:
            for direction, rate in self.of(changing).items():
                term = self.tape.mul(rate, constant)
                total[direction] = self.tape.add(total.get(direction, ZERO), term)
        return total

    def _missing(self, node: int) -> list[int]:
        """The node and those of its ancestors whose change is not known, operands first."""
        missing, stack = {node}, [node]
        while stack:
            for read in operands(self.tape.node(stack.pop())):
                if read not in self._known and read not in missing:
                    missing.add(read)
                    stack.append(read)
        return sorted(missing)

    def _change(self, node: int) -> Change:
        tape, known = self.tape, self._known
        operation, a, b = tape.node(node)
        if operation in (t.CONSTANT, t.INPUT, t.SIGN):
            return _NOTHING
        if operation in (t.ADD, t.SUB):
            return self._sum(known[a], signed(known[b], 1 if operation == t.ADD else -1))
        if operation == t.MUL:
            return self._sum(self._scaled(known[a], b), self._scaled(known[b], a))
        if not known[a]:
            return _NOTHING
        if operation == t.RECIPROCAL:
            return self._scaled(known[a], -tape.mul(node, node))
        return self._scaled(known[a], tape.cos(a) if operation == t.SIN else -tape.sin(a))

    def _scaled(self, change: Change, factor: int) -> Change:
        return {direction: self.tape.mul(rate, factor) for direction, rate in change.items()}

    def _sum(self, first: Change, second: Change) -> Change:
        if not first or not second:
            return first or second
        total = dict(first)
        for direction, rate in second.items():
            total[direction] = self.tape.add(total.get(direction, ZERO), rate)
        return {direction: rate for direction, rate in total.items() if rate}


def signed(change: Change, ref: int) -> Change:
    """The change of a reference from that of its node."""
    return change if ref > 0 else {direction: -rate for direction, rate in change.items()}
