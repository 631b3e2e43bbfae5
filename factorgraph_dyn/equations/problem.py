"""What is computed: every problem by what is given, sought and kept, its arguments, results and orderings.

    problem               kernel                      known, kept (parameters)        result
    forward               (q, v, tau) -> a            tau
    inverse               (q, v, a) -> tau            a, tau of passive joints
    hybrid                (q, v, a, tau) -> a, tau    one of a, tau a joint
    iwim                  q -> (nv, inputs)           kept: tau of motors, contacts   da / dtau, da / du
    inverse_mass_matrix   q -> (nv, nv)               kept: tau of the tree           da / dtau
    mass_matrix           q -> (nv, nv)               kept: a of the tree             dtau / da
    kinematics            (q, v) -> T, J, ...         everything: nothing is solved

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
from factorgraph_dyn.equations.factors import contact_force
from factorgraph_dyn.equations.given import Known, Mask
from factorgraph_dyn.equations.inputs import Contact, ContactLike, as_contacts, no_inputs
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph
from factorgraph_dyn.equations.quantities import check_output, derived_by, quantity, split_derivative
from factorgraph_dyn.equations.state import evaluate_state
from factorgraph_dyn.equations.wrenches import check_axes
from factorgraph_dyn.errors import InputError, OrderingError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion.masses import check_mass
from factorgraph_dyn.spatial import Array

# Entries of a or tau: those chosen by the user or the others, those of joints with a motor or without one.
Entries = Literal["none", "all", "chosen", "others", "passive"]


@dataclass(frozen=True)
class ProblemKind:
    """An entry of the table of problems.

    Attributes:
        arguments: Of its kernel, in order.
        outputs: Its results where no others are asked for; none for poses and Jacobians of the last moving links.
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

    @property
    def inputs(self) -> bool:
        """Whether it asks what inputs do: motors, and contacts."""
        return self.kept is not None and not self.drives_trees

    @property
    def solves_nothing(self) -> bool:
        """Whether nothing is sought: q and v say it all."""
        return self.a == self.tau == "all"


PROBLEMS = {
    "forward": ProblemKind(("q", "v", "tau"), ("a",), "none", "all", "aba", "aba"),
    "inverse": ProblemKind(("q", "v", "a"), ("tau",), "all", "passive", "rnea", "rnea"),
    "hybrid": ProblemKind(("q", "v", "a", "tau"), ("a", "tau"), "chosen", "others", "aba", "colamd"),
    "iwim": ProblemKind(("q",), ("a",), "none", "passive", "aba", kept="tau", drives_trees=False),
    "inverse_mass_matrix": ProblemKind(("q",), ("a",), "none", "none", "aba", kept="tau", tree_only=True),
    "mass_matrix": ProblemKind(("q",), ("tau",), "none", "none", "rnea", kept="a", tree_only=True),
    "kinematics": ProblemKind(("q", "v"), (), "all", "all", "none", tree_only=True),
}
CONTACT_FORCE = contact_force("", 0).kind
PROBLEM_NAMES = tuple(PROBLEMS)
SOLVED_NAMES = tuple(name for name, kind in PROBLEMS.items() if kind.solved_in)  # by the graph, in one go


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem of a mechanism.

    Attributes:
        name: One of `PROBLEM_NAMES`.
        outputs: Names of its results: a, tau, T[link], A[frame], F[joint], com and so on; derivatives such as da/dq.
        known_a, known_tau: Which entries of a and tau are given, shape (nv,).
        pushed: Links and frames on which an external wrench acts, an argument each.
        guarded: Whether its kernel looks for states that it cannot answer, and answers nan.
        wrench_axes: Of these wrenches, "local" or "world".
        contacts: Whose forces are responded to, after those of the motors.
    """

    name: str
    outputs: tuple[str, ...]
    known_a: Mask
    known_tau: Mask
    pushed: tuple[str, ...] = ()
    guarded: bool = True
    wrench_axes: str = "local"
    contacts: tuple[Contact, ...] = ()

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
    def solves_nothing(self) -> bool:
        """Whether nothing is sought, so that there is nothing to eliminate."""
        return PROBLEMS[self.name].solves_nothing

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
        contacts = [contact.key for contact in self.contacts]
        return repr((self.name, self.outputs, self.pushed, self.guarded, *masks, self.wrench_axes, contacts))

    def check_solved(self) -> None:
        """Raise an OrderingError where there is nothing to eliminate."""
        if self.solves_nothing:
            raise OrderingError(f"Problem {self.name!r} has no unknowns to eliminate; it takes no ordering.")

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
    *,
    wrench_axes: str = "local",
    contacts: Sequence[ContactLike] = (),
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
        external_wrenches: Links and frames on which an external wrench acts.
        guards: Whether its kernel looks for states that it cannot answer.
        wrench_axes: Of these wrenches, "local" or "world".
        contacts: For iwim, places where forces act, as for ``fgd.iwim``.

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
    places = _contacts(mechanism, name, contacts)
    if kind.inputs and not (motors.any() or places):
        raise no_inputs(mechanism)
    asked = Problem(name, (), entries[kind.a], entries[kind.tau], pushed, guarded, check_axes(wrench_axes), places)
    return replace(asked, outputs=_outputs(mechanism, asked, outputs))


def with_closing_derivatives(mechanism: Mechanism, problem: Problem) -> Problem:
    """The problem with all derivatives that its own have a meaning with.

    In closed loops q, v and given accelerations change together, so that a derivative by one of them says something
    about the mechanism only with those by the others.
    """
    together = [name for name in ("q", "v", "a") if name in problem.arguments]
    lacking = [
        f"d{output}/d{name}"
        for output, arguments in derived_by(problem.outputs).items()
        if mechanism.is_closed_kind and set(arguments) & set(together)
        for name in together
        if name not in arguments
    ]
    return replace(problem, outputs=(*problem.outputs, *lacking)) if lacking else problem


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
    problem.check_solved()
    shown = mechanism.tree if problem.tree_only else mechanism
    graph = dynamics_graph(evaluate_state(shown, *shown.random_state(0)), problem.known())
    return without_kept(graph, problem)


def without_kept(graph: LinearGraph, problem: Problem) -> LinearGraph:
    """The graph whose variables are all to be eliminated."""
    if problem.kept is None:
        return graph
    kept = (problem.kept, CONTACT_FORCE)
    variables = tuple(variable for variable in graph.variables if variable.kind not in kept)
    stripped = tuple(
        Factor(factor.kind, factor.owner, tuple(pair for pair in factor.blocks if pair[0].kind not in kept), factor.rhs)
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
        mechanism.place(name)
    if names and PROBLEMS[problem].kept:
        raise InputError(f"The result of problem {problem!r} does not depend on external wrenches.")
    if len(set(names)) < len(names):
        raise InputError(f"external_wrenches names a place twice: {', '.join(names)}.")
    return names


def _contacts(mechanism: Mechanism, problem: str, contacts: Sequence[ContactLike]) -> tuple[Contact, ...]:
    placed = as_contacts(contacts)
    for contact in placed:
        mechanism.place(contact.link)
    if placed and not PROBLEMS[problem].inputs:
        raise InputError(f"contacts are inputs of the problem 'iwim'; this one is {problem!r}. Give external_wrenches.")
    return placed


def _outputs(mechanism: Mechanism, problem: Problem, outputs: Sequence[str] | None) -> tuple[str, ...]:
    kind = PROBLEMS[problem.name]
    if outputs is None:
        return kind.outputs or tuple(f"{what}[{tip}]" for tip in mechanism.topology.tips for what in ("T", "J"))
    names = as_names(outputs, "outputs")
    if kind.kept:
        raise InputError(f"The result of problem {problem.name!r} is one matrix; it takes no outputs.")
    if not names:
        raise InputError("outputs is empty; name at least one, such as 'a' or 'F[joint]'.")
    for name in names:
        check_output(mechanism, name, problem.arguments)
        if kind.solves_nothing and not quantity(name).follows_state:
            raise InputError(
                f"Problem {problem.name!r} is given q and v, which do not determine {name}. Take problem 'inverse', "
                "which is given accelerations, or 'forward', which is given torques, with the same outputs."
            )
        if name in ("com", "momentum"):
            check_mass(mechanism)
    return names
