"""Operations of an ordering, counted from its remembered steps without compiling it.

Takes an ordering; gives how many multiplications, additions and divisions its kernel has after dead code is
removed and common factors are drawn out, as `compiler.program` does it. About a millisecond an ordering
of a six-joint arm once its steps are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.compare.cost import DIVISION_TIME
from factorgraph_dyn.compiler.tape import tape as t
from factorgraph_dyn.compiler.tape.field import PRIME
from factorgraph_dyn.search.steps import Maker, Step, Stepper


@dataclass(frozen=True)
class TapeCost:
    """What a kernel costs.

    Attributes:
        multiplications, additions, divisions: Scalar operations a state.
        fused: Multiplications that can be one instruction with the addition that follows.
        made: Values made by elimination, before any is found dead or shared.
        quality: Worst quality of a pivot: its size beside the largest entry of its column.
        steady: Worst ratio of a pivot's smallest size to its usual one, over the sampled states.
    """

    multiplications: int
    additions: int
    divisions: int
    fused: int
    made: int
    quality: float
    steady: float

    @property
    def operations(self) -> int:
        """Multiplications, additions and divisions together."""
        return self.multiplications + self.additions + self.divisions

    @property
    def instructions(self) -> float:
        """Estimated time in units of one vector instruction: fused pairs are one, a division many."""
        return self.operations - self.fused + (DIVISION_TIME - 1) * self.divisions


class TapeScorer:
    """Costs of the orderings of one problem."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper

    def cost(self, ordering: Sequence[str], limit: float = math.inf, *, fused: bool = True) -> TapeCost | None:
        """The cost of an ordering's kernel; fused pairs are counted if asked for.

        None where it has no safe pivots, or where elimination makes more values than ``limit``.
        """
        steps = self.stepper.steps(ordering, limit)
        if steps is None:
            return None
        makers, uses = self._live(steps)
        self._draw_out_factors(makers, uses)
        kinds = [makers[node][0] for node, count in uses.items() if count > 0]
        return TapeCost(
            multiplications=kinds.count(t.MUL),
            additions=kinds.count(t.ADD) + kinds.count(t.SUB),
            divisions=kinds.count(t.RECIPROCAL),
            fused=_fused(makers, uses) if fused else 0,
            made=sum(len(step.forward) for step in steps),
            quality=min(step.quality for step in steps),
            steady=min(step.steady for step in steps),
        )

    def _live(self, steps: Sequence[Step]) -> tuple[dict[int, Maker], dict[int, int]]:
        """Makers of the values that outputs and pivots need, and how often each is used."""
        tape = self.stepper.tape
        offered: dict[int, Maker] = {}
        for step in steps:  # the first maker has to win: the last to run comes first here
            offered.update(step.backward)
        for step in reversed(steps):
            offered.update(step.forward)
        operation, left, right, base = tape.operation, tape.left, tape.right, tape.base_size
        roots = [*self.stepper.outputs, *dict.fromkeys(p for step in steps for p in step.pivots)]
        uses = dict.fromkeys(roots, 1)
        makers: dict[int, Maker] = {}
        stack = list(uses)
        while stack:
            node = stack.pop()
            maker = offered.get(node) if node >= base else None
            if maker is None:
                maker = (operation[node], left[node], right[node])
            makers[node] = maker
            kind, a, b = maker
            if kind in _BINARY:
                if a in uses:
                    uses[a] += 1
                else:
                    uses[a] = 1
                    stack.append(a)
                if b in uses:
                    uses[b] += 1
                else:
                    uses[b] = 1
                    stack.append(b)
            elif kind not in _LEAVES:
                if a in uses:
                    uses[a] += 1
                else:
                    uses[a] = 1
                    stack.append(a)
        return makers, uses

    def _draw_out_factors(self, makers: dict[int, Maker], uses: dict[int, int]) -> None:
        """Count a b + a c as a (b + c) where nothing else needs the products."""
        tape = self.stepper.tape
        residue, constants = tape.residue, tape.constants
        known = {residue[node]: node for node in makers}
        fresh: dict[int, int] = {}
        for node in sorted(makers):
            kind, x, y = makers[node]
            if kind not in _SUMS or uses[x] != 1 or uses[y] != 1:
                continue
            (kind_x, p, q), (kind_y, r, s) = makers[x], makers[y]
            if kind_x != t.MUL or kind_y != t.MUL:
                continue
            if p in (r, s):
                a, b = p, q
            elif q in (r, s):
                a, b = q, p
            else:
                continue
            c = s if r == a else r
            if b in constants and c in constants:
                continue
            residue_b = fresh[b] if b < 0 else residue[b]
            residue_c = fresh[c] if c < 0 else residue[c]
            total = (residue_b + (residue_c if kind == t.ADD else -residue_c)) % PRIME
            inner = known.get(total)
            if inner is None:
                inner = -len(fresh) - 1  # a value that is on no tape
                fresh[inner] = total
                known[total] = inner
                makers[inner] = (kind, b, c)
                uses[inner] = 1
            else:
                uses[inner] += 1
                uses[b] -= 1
                uses[c] -= 1
            uses[a] -= 1
            uses[x] = uses[y] = 0
            makers[node] = (t.MUL, a, inner)


_SUMS = frozenset((t.ADD, t.SUB))
_BINARY = frozenset((t.ADD, t.SUB, t.MUL))
_LEAVES = frozenset((t.CONSTANT, t.INPUT))


def _fused(makers: dict[int, Maker], uses: dict[int, int]) -> int:
    """How many products go into one sum only, at most one a sum."""
    count = 0
    for node, (kind, x, y) in makers.items():
        if (
            kind in _SUMS
            and uses[node] > 0
            and ((makers[x][0] == t.MUL and uses[x] == 1) or (makers[y][0] == t.MUL and uses[y] == 1))
        ):
            count += 1
    return count
