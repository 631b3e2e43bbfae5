"""What a picture is about: a mechanism, a problem, its graph, an ordering and each elimination step.

Takes a mechanism and words; gives the graph with the known variables of every factor kept, which
drawings need and solvers do not, and the elimination as a sequence of steps. Only structure is
looked at, so the work runs once a mechanism and problem.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factorgraph_dyn.equations import Factor, Known, LinearGraph, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.problem import PROBLEMS, solved_problem
from factorgraph_dyn.model import Mechanism, check_mechanism, check_movable
from factorgraph_dyn.ordering import Ordering, OrderingLike, Structure, choose_ordering, eliminate_structure
from factorgraph_dyn.ordering.structure import StructuralElimination


@dataclass(frozen=True, eq=False)
class Subject:
    """A mechanism's graph for a problem.

    Attributes:
        problem: "forward", "inverse" or "hybrid".
        graph: The unknowns and their equations.
        known_of: Names of the known variables that each factor holds, in the order of the factors.
    """

    mechanism: Mechanism
    problem: str
    graph: LinearGraph
    known_of: tuple[tuple[str, ...], ...]

    @cached_property
    def known(self) -> tuple[Variable, ...]:
        """The variables that are known in full and stand in an equation."""
        mentioned = {name for names in self.known_of for name in names}
        return tuple(variable for variable in self.graph.known if str(variable) in mentioned)

    def order(self, ordering: OrderingLike | None = None) -> Ordering:
        """The ordering that a name or sequence stands for; by default the problem's classical one."""
        wanted = PROBLEMS[self.problem].classical if ordering is None else ordering
        return choose_ordering(self.mechanism, self.graph, wanted)

    def structure(self, ordering: Ordering) -> Structure:
        """The Bayes net that the ordering gives."""
        return eliminate_structure(self.graph, [self.graph.by_name[name] for name in ordering])

    @cached_property
    def neighbours(self) -> Mapping[str, frozenset[str]]:
        """Names of the unknowns that share an equation with each unknown, itself included."""
        found: dict[str, set[str]] = {name: {name} for name in self.graph.by_name}
        for factor in self.graph.factors:
            held = [str(variable) for variable, _ in factor.blocks]
            for name in held:
                found[name].update(held)
        return {name: frozenset(names) for name, names in found.items()}


@dataclass(frozen=True)
class ShownStep:
    """One elimination step.

    Attributes:
        variable: Name of the variable that is eliminated.
        parents: What it depends on from now on.
        gathered: Numbers of the equations it used up; those of the graph come first, then new ones.
        made: Number of the equation it left over its parents, or None.
        rows: Rows of that equation.
    """

    variable: str
    parents: tuple[str, ...]
    gathered: tuple[int, ...]
    made: int | None
    rows: int


def make_subject(
    mechanism: Mechanism, problem: str = "forward", known_accelerations: Iterable[str] | None = None
) -> Subject:
    """The graph of a problem, ready to be drawn.

    Args:
        mechanism: The mechanism.
        problem: "forward", "inverse" or "hybrid".
        known_accelerations: Joints whose acceleration a hybrid problem gives; by default every
            second freedom, or every motor's where there are loops, as in comparisons of orderings.
    """
    q = check_mechanism(mechanism).tree.neutral()  # structure does not depend on the state
    state = evaluate_state(mechanism, q, np.zeros(mechanism.nv))
    graph = dynamics_graph(state, solved_problem(mechanism, problem, known_accelerations).known())
    if not graph.variables:
        check_movable(mechanism, "draw")
    full = dynamics_graph(state, Known.nothing(mechanism.nv))
    complete = {str(x) for x, value in graph.known.items() if value.mask is None}
    held = tuple(tuple(name for name in _mentions(mechanism, factor) if name in complete) for factor in full.factors)
    return Subject(mechanism, problem, graph, held)


def elimination_steps(subject: Subject, ordering: Ordering) -> tuple[ShownStep, ...]:
    """What each step of the elimination uses up and leaves behind."""
    elimination = StructuralElimination(subject.graph)
    steps = []
    for name in ordering:
        variable = subject.graph.by_name[name]
        gathered = tuple(sorted(elimination.holding[variable]))
        before = set(elimination.factors)
        parents = elimination.eliminate(variable)
        made = next(iter(set(elimination.factors) - before), None)
        rows = 0 if made is None else elimination.factors[made].rows
        ordered = tuple(str(x) for x in subject.graph.variables if x in parents)
        steps.append(ShownStep(name, ordered, gathered, made, rows))
    return tuple(steps)


def _mentions(mechanism: Mechanism, factor: Factor) -> list[str]:
    """Every variable of an equation of the graph in which only base and loop torques are known."""
    names = [str(variable) for variable, _ in factor.blocks]
    if factor.kind == "acceleration":
        joint = mechanism.joint_by_name.get(factor.owner)
        loop = next((loop for loop in mechanism.loops if loop.name == factor.owner), None)
        ends = (joint.parent,) if joint else (loop.predecessor, loop.successor) if loop else ()
        names += [f"A[{link}]" for link in ends if link == mechanism.base]
    if factor.kind == "torque" and factor.owner not in mechanism.joint_by_name:
        names.append(f"tau[{factor.owner}]")
    return names
