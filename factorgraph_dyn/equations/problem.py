"""What is computed: every problem by what is given, sought and kept, its arguments, results and orderings.

    problem               kernel                      known, kept (parameters)        result
    forward               (q, v, tau) -> a            tau
    inverse               (q, v, a) -> tau            a, tau of passive joints
    hybrid                (q, v, a, tau) -> a, tau    one of a, tau a joint
    iwim                  q -> (nv, inputs)           kept: tau of the motors         da / dtau
    inverse_mass_matrix   q -> (nv, nv)               kept: tau of the tree           da / dtau
    mass_matrix           q -> (nv, nv)               kept: a of the tree             dtau / da

Takes the words a user asks with; gives a checked `Problem`, and the graph whose variables its orderings list. A new
problem is an entry of `PROBLEMS`. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np

from factorgraph_dyn.checks import as_names, check_choice, check_kind
from factorgraph_dyn.equations.dynamics_graph import dynamics_graph
from factorgraph_dyn.equations.given import Known, Mask
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph
from factorgraph_dyn.equations.quantities import check_output, split_derivative
from factorgraph_dyn.equations.state import evaluate_state
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.spatial import Array

# Entries of a or tau: those chosen by the user or the others, those of joints with a motor or without one.
Entries = Literal["none", "all", "chosen", "others", "passive"]


@dataclass(frozen=True)
class ProblemKind:
    """An entry of the table of problems.

    Attributes:
        arguments: Of its kernel, in order.
        outputs: Its results where no others are asked for.
        a, tau: Which entries are given.
        classical: The ordering that kernels take and pictures show: the textbook's, which costs the fewest
            operations of the classical ones.
        solved_in: The ordering in which the graph is solved with numbers; none where it is not solved in one go.
            The two differ for hybrid problems: what a kernel is given is fixed while it is compiled, and aba costs
            trees fewer operations (PUMA 560: 712 against 876); the graph takes any mixture, in loops also both of a
            and tau or neither, and colamd looks at what is unknown. Numbers take as long in either.
        kept: Kind of variable, a or tau, whose unit values are responded to; else None.
        tree_only: Whether loops and couplings are left out.
        drives_trees: Whether every joint of a tree counts as one with a motor.
    """

    arguments: tuple[str, ...]
    outputs: tuple[str, ...]
    a: Entries
    tau: Entries
    classical: str
    solved_in: str = ""
    kept: str | None = None
    tree_only: bool = False
    drives_trees: bool = True


PROBLEMS = {
    "forward": ProblemKind(("q", "v", "tau"), ("a",), "none", "all", "aba", "aba"),
    "inverse": ProblemKind(("q", "v", "a"), ("tau",), "all", "passive", "rnea", "rnea"),
    "hybrid": ProblemKind(("q", "v", "a", "tau"), ("a", "tau"), "chosen", "others", "aba", "colamd"),
    "iwim": ProblemKind(("q",), ("a",), "none", "passive", "aba", kept="tau", drives_trees=False),
    "inverse_mass_matrix": ProblemKind(("q",), ("a",), "none", "none", "aba", kept="tau", tree_only=True),
    "mass_matrix": ProblemKind(("q",), ("tau",), "none", "none", "rnea", kept="a", tree_only=True),
}
PROBLEM_NAMES = tuple(PROBLEMS)
SOLVED_NAMES = tuple(name for name, kind in PROBLEMS.items() if kind.solved_in)  # by the graph, in one go


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem of a mechanism.

    Attributes:
        name: One of `PROBLEM_NAMES`.
        outputs: Names of its results: a, tau, A[link], F[joint], V[link], and derivatives such as da/dq.
        known_a, known_tau: Which entries of a and tau are given, shape (nv,).
        pushed: Links on which an external wrench acts, an argument each.
        guarded: Whether its kernel looks for states that it cannot answer, and answers nan.
    """

    name: str
    outputs: tuple[str, ...]
    known_a: Mask
    known_tau: Mask
    pushed: tuple[str, ...] = ()
    guarded: bool = True

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the kernel, in order: q, v, a, tau, wrench[link]."""
        return (*PROBLEMS[self.name].arguments, *(f"wrench[{link}]" for link in self.pushed))

    @property
    def derivatives(self) -> tuple[str, ...]:
        """Those of its outputs that are derivatives."""
        return tuple(name for name in self.outputs if split_derivative(name))

    @property
    def kept(self) -> str | None:
        """Kind of variable, a or tau, whose unit values are responded to; else None."""
        return PROBLEMS[self.name].kept

    @property
    def tree_only(self) -> bool:
        """Whether loops and couplings are left out."""
        return PROBLEMS[self.name].tree_only

    @property
    def classical(self) -> str:
        """The ordering of a kernel where none is asked for."""
        return PROBLEMS[self.name].classical

    @property
    def key(self) -> str:
        """Text that differs wherever two problems of a mechanism do."""
        masks = self.known_a.tolist(), self.known_tau.tolist()
        return repr((self.name, self.outputs, self.pushed, self.guarded, *masks))

    def known(self, a: Array | None = None, tau: Array | None = None) -> Known:
        """What is known for values of a and tau, by default zero, shape (nv,) each."""
        zero = np.zeros(len(self.known_a))
        return Known(zero if a is None else a, zero if tau is None else tau, self.known_a, self.known_tau)


def make_problem(
    mechanism: Mechanism,
    name: str,
    known_accelerations: Sequence[str] | Mask = (),
    actuated: Iterable[str] | None = None,
    outputs: Sequence[str] | None = None,
    external_wrenches: Sequence[str] = (),
    guards: bool = True,
) -> Problem:
    """The problem that a user's words describe.

    Args:
        mechanism: The mechanism.
        name: One of `PROBLEM_NAMES`.
        known_accelerations: For hybrid problems, joints whose acceleration is given, or one boolean
            an entry of a.
        actuated: For inverse dynamics and iwim, joints that have a motor; by default the joints marked actuated,
            for inverse dynamics of a tree every joint.
        outputs: Results to give instead of the usual ones.
        external_wrenches: Links on which an external wrench acts.
        guards: Whether its kernel looks for states that it cannot answer.

    Raises:
        InputError: A word that is not known.
    """
    check_choice(name, PROBLEMS, "The problem")
    kind = PROBLEMS[name]
    everything = np.ones(check_mechanism(mechanism).nv, dtype=bool)
    if actuated is None and not kind.drives_trees:
        actuated = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    chosen, motors = _chosen(mechanism, name, known_accelerations), mechanism.torque_entries(actuated)
    entries = {"none": ~everything, "all": everything, "chosen": chosen, "others": ~chosen, "passive": ~motors}
    pushed = _pushed(mechanism, name, external_wrenches)
    guarded = check_kind(guards, bool, "guards", "True or False")
    asked = Problem(name, kind.outputs, entries[kind.a], entries[kind.tau], pushed, guarded)
    return asked if outputs is None else replace(asked, outputs=_outputs(mechanism, asked, outputs))


def solved_problem(mechanism: Mechanism, name: str, known_accelerations: Iterable[str] | None = None) -> Problem:
    """A problem that the graph solves; by default a hybrid one gives every second freedom, with loops each motor's."""
    check_choice(name, SOLVED_NAMES, "The problem")
    if known_accelerations is not None:
        return make_problem(mechanism, name, as_names(known_accelerations, "known_accelerations"))
    if name != "hybrid":
        return make_problem(mechanism, name)
    motors = check_mechanism(mechanism).torque_entries()
    return make_problem(mechanism, name, motors if mechanism.is_closed_kind else np.arange(mechanism.nv) % 2 == 0)


def problem_graph(mechanism: Mechanism, problem: Problem) -> LinearGraph:
    """The graph of a problem at a random state, for its structure; what it keeps as parameters is left out."""
    shown = mechanism.tree if problem.tree_only else mechanism
    graph = dynamics_graph(evaluate_state(shown, *shown.random_state(0)), problem.known())
    return without_kept(graph, problem)


def without_kept(graph: LinearGraph, problem: Problem) -> LinearGraph:
    """The graph whose variables are all to be eliminated."""
    kept = problem.kept
    if kept is None:
        return graph
    variables = tuple(variable for variable in graph.variables if variable.kind != kept)
    stripped = tuple(
        Factor(factor.kind, factor.owner, tuple(pair for pair in factor.blocks if pair[0].kind != kept), factor.rhs)
        for factor in graph.factors
    )
    return LinearGraph(variables, stripped, graph.known)


def _chosen(mechanism: Mechanism, problem: str, given: Sequence[str] | Mask) -> Mask:
    """The entries of a that a hybrid problem gives, shape (nv,)."""
    mask = np.zeros(mechanism.nv, dtype=bool)
    if isinstance(given, np.ndarray) and given.dtype == bool:
        if given.shape != mask.shape:
            raise InputError(
                f"known_accelerations has shape {given.shape}; a mask has one entry a freedom, shape {mask.shape}."
            )
        mask |= given
    else:
        for name in as_names(given, "known_accelerations"):
            mask[mechanism.v_slice(name)] = True
    if mask.any() and problem != "hybrid":
        raise InputError(f"known_accelerations is for the hybrid problem; this one is {problem!r}.")
    return mask


def _pushed(mechanism: Mechanism, problem: str, links: Sequence[str]) -> tuple[str, ...]:
    names = as_names(links, "external_wrenches")
    for name in names:
        mechanism.check_link(name)
    if names and PROBLEMS[problem].kept:
        raise InputError(f"The result of problem {problem!r} does not depend on external wrenches.")
    if len(set(names)) < len(names):
        raise InputError(f"external_wrenches names a link twice: {', '.join(names)}.")
    return names


def _outputs(mechanism: Mechanism, problem: Problem, outputs: Sequence[str]) -> tuple[str, ...]:
    names = as_names(outputs, "outputs")
    if problem.kept:
        raise InputError(f"The result of problem {problem.name!r} is one matrix; it takes no outputs.")
    if not names:
        raise InputError("outputs is empty; name at least one, such as 'a' or 'F[joint]'.")
    for name in names:
        check_output(mechanism, name, problem.arguments)
    return names
