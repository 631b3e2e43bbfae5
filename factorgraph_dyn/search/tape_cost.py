"""Operations of an ordering, counted from its remembered steps without compiling it.

Takes an ordering; gives how many operations its kernel has, by the compiler's own count (`compiler.program`). About a
millisecond an ordering of a six-joint arm once its steps are known.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from factorgraph_dyn.compiler.program import Draft, Operations
from factorgraph_dyn.compiler.tape.tape import Node
from factorgraph_dyn.search.steps import Step, Stepper


@dataclass(frozen=True)
class TapeCost:
    """What a kernel costs.

    Attributes:
        operations: Scalar operations a state.
        instructions: Vector instructions that they take the time of, if asked for; else 0.
        made: Values made by elimination, before any is found dead or shared.
        quality: Worst quality of a pivot: its size beside the largest entry of its column.
        steady: Worst ratio of a pivot's smallest size to its usual one, over the sampled states.
    """

    operations: Operations
    instructions: float
    made: int
    quality: float
    steady: float


class TapeScorer:
    """Costs of the orderings of one problem."""

    def __init__(self, stepper: Stepper) -> None:
        self.stepper = stepper

    def cost(self, ordering: Sequence[str], limit: float = math.inf, *, instructions: bool = True) -> TapeCost | None:
        """The cost of an ordering's kernel; instructions are counted if asked for.

        None where it has no safe pivots, or where elimination makes more values than ``limit``.
        """
        steps = self.stepper.steps(ordering, limit)
        if steps is None:
            return None
        draft = self._draft(steps)
        return TapeCost(
            operations=draft.operations,
            instructions=draft.instructions if instructions else 0.0,
            made=sum(len(step.forward) for step in steps),
            quality=min(step.quality for step in steps),
            steady=min(step.steady for step in steps),
        )

    def _draft(self, steps: Sequence[Step]) -> Draft:
        """The operations that results and guards need, with common factors drawn out."""
        tape = self.stepper.tape
        offered: dict[int, Node] = {}
        for step in steps:  # the first maker has to win: the last to run comes first here
            offered.update(step.backward)
        for step in reversed(steps):
            offered.update(step.forward)

        def node_of(index: int) -> Node:
            made = offered.get(index) if index >= tape.own else None
            return tape.node(index) if made is None else made

        draft = Draft(node_of, [*self.stepper.roots, *(ref for step in steps for ref in step.watched)])
        draft.draw_out_factors(tape)
        return draft
