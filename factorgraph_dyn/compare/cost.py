"""What an ordering costs: its kernel's operations, its structure, its parallel steps, its time.

Takes a mechanism, a problem and an ordering; gives everything that can be said without running the kernel.
The estimated time is

    (operations - fused pairs + a division's and a sincos's share) / (states a vector register * instructions a ns)

for a kernel over many states on this machine, some 30 % right; registers, caches and chains of dependent
operations are left out. Traced once an ordering, 10 to 100 ms.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compare.accuracy import draw_states
from factorgraph_dyn.compiler import Operations
from factorgraph_dyn.compiler.backends.llvm import machine
from factorgraph_dyn.compiler.program import Program
from factorgraph_dyn.compiler.tape.interpret import Interpreter
from factorgraph_dyn.compiler.trace import trace
from factorgraph_dyn.equations.problem import Problem, make_problem, problem_graph
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering, OrderingLike, Structure, choose_ordering, eliminate_structure
from factorgraph_dyn.ordering.halves import joined

INSTRUCTIONS_A_NS = 3.0  # vector instructions that a core retires
PIVOT_STATES = 256


@dataclass(frozen=True)
class OrderingCost:
    """What an ordering costs.

    Attributes:
        ordering: The ordering.
        operations: Of its kernel, after simplification.
        instructions: Vector instructions: fused pairs are one, divisions and sines many.
        estimated_ns: Estimated time of a state in a large batch on this machine, ns.
        smallest_pivot: Smallest size of a pivot beside its usual one, over random states; 1 without pivots.
        structure: Of the Bayes net: fill, cliques, depth, operations of dense blocks, work per level.

    Examples:
        >>> cost = fgd.ordering_cost(fgd.robots.pendulum(2), "inverse", "rnea")
        >>> cost.structure.fill, cost.operations.total > 0
        (0, True)
    """

    ordering: Ordering
    operations: Operations
    instructions: float
    estimated_ns: float
    smallest_pivot: float
    structure: Structure

    def __repr__(self) -> str:
        return (
            f"<OrderingCost of {self.ordering.name!r}: {self.operations.total} operations, "
            f"about {self.estimated_ns:.0f} ns a state, fill {self.structure.fill}, depth {self.structure.depth}>"
        )


def ordering_cost(
    mechanism: Mechanism,
    problem: str = "forward",
    ordering: OrderingLike | None = None,
    *,
    known_accelerations: Sequence[str] = (),
    actuated: Iterable[str] | None = None,
) -> OrderingCost:
    """What an ordering of a problem costs.

    Args:
        mechanism: The mechanism.
        problem: As for `compile`.
        ordering: As for `compile`; by default the classical one.
        known_accelerations: Of a hybrid problem, the joints whose acceleration is given.
        actuated: Of inverse and iwim problems, the joints that have a motor.

    Raises:
        OrderingError: The ordering does not fit the problem.
        CompileError: The ordering has no safe pivots.

    Examples:
        >>> cost = fgd.ordering_cost(fgd.robots.pendulum(3), "forward", "metis")
        >>> cost.structure.depth < fgd.ordering_cost(fgd.robots.pendulum(3), "forward", "aba").structure.depth
        True
    """
    asked = make_problem(mechanism, problem, known_accelerations, actuated)
    graph = problem_graph(mechanism, asked)
    chosen = choose_ordering(mechanism, graph, asked.classical if ordering is None else ordering, halves=True)
    program = trace(mechanism, asked, chosen).program
    return OrderingCost(
        ordering=chosen,
        operations=program.operations,
        instructions=program.instructions,
        estimated_ns=program.instructions / (machine.host().width * INSTRUCTIONS_A_NS),
        smallest_pivot=smallest_pivot(mechanism, asked, program),
        structure=eliminate_structure(graph, [graph.by_name[name] for name in joined(chosen.variables)]),
    )


def smallest_pivot(mechanism: Mechanism, problem: Problem, program: Program, seed: int = 2) -> float:
    """Smallest size of a pivot beside its usual one, over random states."""
    pivots = [guard for guard in program.guards if not guard.small]
    if not pivots:
        return 1.0
    rng = np.random.default_rng(seed)
    count = 16 if mechanism.is_closed_kind else PIVOT_STATES
    q, v = draw_states(mechanism, count, rng)
    values = {"q": q, "v": v, "a": rng.normal(size=v.shape), "tau": rng.normal(size=v.shape)}
    inputs = [column for name in problem.arguments for column in values[name].T]
    run = Interpreter(program, inputs)
    sizes = [np.abs(run.value(guard.ref)) for guard in pivots]
    return float(min(size.min() / np.median(size) for size in sizes))
