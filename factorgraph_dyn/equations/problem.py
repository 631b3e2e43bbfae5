"""What is computed: every problem by what is given, sought and kept, its arguments, results and orderings.

    problem               kernel                      known, kept (parameters)        result
    forward               (q, v, tau) -> a            tau
    inverse               (q, v, a) -> tau            a, tau of passive joints
    hybrid                (q, v, a, tau) -> a, tau    one of a, tau a joint
    iwim                  q -> (nv, inputs)           kept: tau of motors, contacts   da / dtau, da / du
    inverse_mass_matrix   q -> (nv, nv)               kept: tau of the tree           da / dtau
    mass_matrix           q -> (nv, nv)               kept: a of the tree             dtau / da
    regressor             (q, v, a) -> (nv, 10 links) a of the tree                   dtau / dparameters
    kinematics            (q, v) -> T, J, ...         everything: nothing is solved
    estimate              (q, v, values) -> a, ...    tau of passive joints           most probable for sensors

Takes the words a user asks with; gives a checked `Problem`, and the graph whose variables its orderings list. A new
problem is an entry of `PROBLEMS`. The work runs once a kernel.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import prod
from typing import Literal

import numpy as np

from factorgraph_dyn.checks import as_names, check_choice, check_kind
from factorgraph_dyn.equations.dynamics_graph import dynamics_graph
from factorgraph_dyn.equations.factors import contact_force
from factorgraph_dyn.equations.free import GRAVITY, NOTHING_FREE, PARAMETERS, Free, free_parameters
from factorgraph_dyn.equations.given import Known, Mask
from factorgraph_dyn.equations.inputs import Contact, ContactLike, as_contacts, motor_entries, no_inputs
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph
from factorgraph_dyn.equations.quantities import (
    check_output,
    derived_by,
    quantity,
    shape_of,
    split_derivative,
    split_name,
)
from factorgraph_dyn.equations.sensors import (
    Acceleration,
    Accelerometer,
    AngularAcceleration,
    ExternalWrench,
    Sensor,
    Torque,
)
from factorgraph_dyn.equations.sensors.asked import check_estimated, check_measurements
from factorgraph_dyn.equations.sensors.together import outside_frames, outside_wrenches
from factorgraph_dyn.equations.state import evaluate_state
from factorgraph_dyn.equations.wrenches import check_axes
from factorgraph_dyn.errors import InputError, OrderingError, check_name
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.motion.masses import check_mass
from factorgraph_dyn.spatial import Array

MATRIX = "matrix"  # what the responses to units are called among outputs

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
        matrix: What the responses to the kept variables are called together.
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
    matrix: str = ""

    @property
    def inputs(self) -> bool:
        """Whether it asks what inputs do: motors, and contacts."""
        return self.kept is not None and not self.drives_trees

    @property
    def asks_for_motors(self) -> bool:
        """Whether it matters which joints have a motor."""
        return "passive" in (self.a, self.tau)

    @property
    def solves_nothing(self) -> bool:
        """Whether nothing is sought: q and v say it all."""
        return self.a == self.tau == "all"

    @property
    def is_searched(self) -> bool:
        """Whether there are orderings to search for; a search takes no sensors, which estimates want."""
        return not self.solves_nothing and "values" not in self.arguments


PROBLEMS = {
    "forward": ProblemKind(("q", "v", "tau"), ("a",), "none", "all", "aba", "aba"),
    "inverse": ProblemKind(("q", "v", "a"), ("tau",), "all", "passive", "rnea", "rnea"),
    "hybrid": ProblemKind(("q", "v", "a", "tau"), ("a", "tau"), "chosen", "others", "aba", "colamd"),
    "iwim": ProblemKind(("q",), (MATRIX,), "none", "passive", "aba", kept="tau", drives_trees=False, matrix="M^-1 B"),
    "inverse_mass_matrix": ProblemKind(
        ("q",), (MATRIX,), "none", "none", "aba", kept="tau", tree_only=True, matrix="M^-1"
    ),
    "mass_matrix": ProblemKind(("q",), (MATRIX,), "none", "none", "rnea", kept="a", tree_only=True, matrix="M"),
    "regressor": ProblemKind(("q", "v", "a"), ("regressor",), "all", "none", "rnea", tree_only=True),
    "kinematics": ProblemKind(("q", "v"), (), "all", "all", "none", tree_only=True),
    "estimate": ProblemKind(("q", "v", "values"), ("a", "tau"), "none", "passive", "aba", drives_trees=False),
}
WITHOUT_WRENCHES = (Torque, Acceleration, Accelerometer, AngularAcceleration, ExternalWrench)  # read none of joints
CONTACT_FORCE = contact_force("", 0).kind
PROBLEM_NAMES = tuple(PROBLEMS)
SOLVED_NAMES = tuple(name for name, kind in PROBLEMS.items() if kind.solved_in)  # by the graph, in one go
SEARCHED_NAMES = tuple(name for name, kind in PROBLEMS.items() if kind.is_searched)


@dataclass(frozen=True, eq=False)
class Problem:
    """A problem of a mechanism.

    Attributes:
        name: One of `PROBLEM_NAMES`.
        outputs: Names of its results: a, tau, T[link], A[frame], F[joint], com and so on.
        known_a, known_tau: Which entries of a and tau are given, shape (nv,).
        pushed: Links and frames on which an external wrench acts, an argument each.
        guarded: Whether its kernel looks for states that it cannot answer, and answers nan.
        wrench_axes: Of these wrenches, "local" or "world".
        contacts: Whose forces are responded to, after those of the motors.
        measurements: Sensors of an estimate, whose readings are an argument, one after the other.
        free: Inertial parameters and others that are arguments instead of constants.
        motors: For iwim, the entries of tau that are responded to, in the order in which their joints were listed.
    """

    name: str
    outputs: tuple[str, ...]
    known_a: Mask
    known_tau: Mask
    pushed: tuple[str, ...] = ()
    guarded: bool = True
    wrench_axes: str = "local"
    contacts: tuple[Contact, ...] = ()
    measurements: tuple[Sensor, ...] = ()
    free: Free = NOTHING_FREE
    motors: tuple[int, ...] = ()

    def size_of(self, mechanism: Mechanism, name: str) -> int:
        """How many numbers an argument has."""
        return prod(self.shape_of(mechanism, name))

    @property
    def reads_wrenches(self) -> bool:
        """Whether a sensor reads a joint's wrench, which depends on how inertia is shared among links."""
        return not all(isinstance(sensor, WITHOUT_WRENCHES) for sensor in self.measurements)

    @property
    def arguments(self) -> tuple[str, ...]:
        """Of the kernel, in order: q, v, a, tau, wrench[link], parameters, armature[joint], ..."""
        wrenches = (f"wrench[{link}]" for link in self.pushed)
        return (*PROBLEMS[self.name].arguments, *wrenches, *self.free.arguments)

    def shape_of(self, mechanism: Mechanism, argument: str) -> tuple[int, ...]:
        """The shape of an argument, without batch axes."""
        if argument == PARAMETERS:
            return len(self.free.links), COUNT
        if argument == "values":
            return (sum(sensor.size(mechanism) for sensor in self.measurements),)
        return shape_of(mechanism, argument)

    @property
    def derivatives(self) -> tuple[str, ...]:
        """Those of its outputs that are derivatives."""
        return tuple(name for name in self.outputs if split_derivative(name))

    @property
    def kept(self) -> str | None:
        """Kind of variable, a or tau, whose unit values are responded to; else None."""
        return PROBLEMS[self.name].kept

    @property
    def causes(self) -> tuple[int, ...]:
        """The entries of a or tau whose unit values are responded to, in the order of the result's columns."""
        given = self.known_a if self.kept == "a" else self.known_tau
        return self.motors or tuple(np.flatnonzero(~given).tolist())

    @property
    def solves_nothing(self) -> bool:
        """Whether nothing is sought, so that there is nothing to eliminate."""
        return PROBLEMS[self.name].solves_nothing

    @property
    def matrix(self) -> str:
        """What the one matrix that it gives is called, empty where it gives none."""
        return PROBLEMS[self.name].matrix

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
        contacts, sensors = [contact.key for contact in self.contacts], [sensor.key for sensor in self.measurements]
        asked = (self.name, self.outputs, self.pushed, self.guarded, *masks, self.wrench_axes, contacts, sensors)
        return repr((*asked, self.free, self.motors))

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
    axes: str = "local",
    contacts: Sequence[ContactLike] = (),
    measurements: Sequence[Sensor] = (),
    parameters: str | Sequence[str] | None = None,
) -> Problem:
    """The problem that a user's words describe.

    Args:
        mechanism: The mechanism.
        name: One of `PROBLEM_NAMES`.
        known_accelerations: For hybrid problems, joints whose acceleration is given, or one boolean
            an entry of a.
        actuated: For inverse dynamics, iwim and estimates, joints that have a motor; by default the joints marked
            actuated, for inverse dynamics of a tree every joint; of joints coupled to each other, as by mimic, one. The
            columns of iwim are in their order.
        outputs: Results to give instead of the usual ones.
        external_wrenches: Links and frames on which an external wrench acts.
        guards: Whether its kernel looks for states that it cannot answer.
        axes: Of these wrenches, "local" or "world".
        contacts: For iwim, places where forces act, as for ``fgd.iwim``.
        measurements: For estimates, sensors, which need no values.
        parameters: What is an argument instead of a constant: links (or "all"), armature[joint], gravity, ...

    Raises:
        InputError: A word that is not known.
    """
    check_choice(name, PROBLEMS, "The problem")
    kind = PROBLEMS[name]
    everything = np.ones(check_mechanism(mechanism).nv, dtype=bool)
    chosen, motors = _chosen(mechanism, name, known_accelerations), _motors(mechanism, name, actuated)
    entries = {"none": ~everything, "all": everything, "chosen": chosen, "others": ~chosen, "passive": ~motors}
    sensors = check_measurements(mechanism, name, measurements)
    pushed = _pushed(mechanism, name, external_wrenches)
    guarded = check_kind(guards, bool, "guards", "True or False")
    places = _contacts(mechanism, name, contacts)
    if kind.inputs and not (motors.any() or places):
        raise no_inputs(mechanism)
    axes, free = check_axes(axes), _free(mechanism, name, parameters)
    asked = Problem(name, (), entries[kind.a], entries[kind.tau], pushed, guarded, axes, places, sensors, free)
    if kind.inputs:
        asked = replace(asked, motors=motor_entries(mechanism, actuated))
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
    pushes = outside_wrenches(shown, outside_frames(problem.measurements))
    graph = dynamics_graph(evaluate_state(shown, *shown.random_state(0)), problem.known(), pushes=pushes)
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


def _motors(mechanism: Mechanism, problem: str, actuated: Iterable[str] | None) -> Mask:
    """The entries of tau that belong to motors, shape (nv,)."""
    kind = PROBLEMS[problem]
    if actuated is not None and not kind.asks_for_motors:
        takers = ", ".join(name for name, other in PROBLEMS.items() if other.asks_for_motors)
        raise InputError(
            f"actuated is for the problems {takers}; this one is {problem!r}, whose answer does not depend on it. "
            "Leave it out."
        )
    return mechanism.torque_entries(mechanism.motors if actuated is None and not kind.drives_trees else actuated)


def _pushed(mechanism: Mechanism, problem: str, links: Sequence[str]) -> tuple[str, ...]:
    names = as_names(links, "external_wrenches")
    for name in names:
        mechanism.place(name)
    if names and problem == "estimate":
        raise InputError("An estimate takes wrenches from outside as measurements: fgd.sensors.ExternalWrench(frame).")
    if names and PROBLEMS[problem].kept:
        raise InputError(f"The result of problem {problem!r} does not depend on external wrenches.")
    if len(set(names)) < len(names):
        raise InputError(f"external_wrenches names a place twice: {', '.join(names)}.")
    return names


def _free(mechanism: Mechanism, problem: str, words: str | Sequence[str] | None) -> Free:
    free = NOTHING_FREE if words is None else free_parameters(mechanism, words)
    if problem == "estimate" and free.arguments:
        raise InputError(
            "Kernels of estimates have constant parameters; give the mechanism others with mechanism.with_parameters."
        )
    for name in free.others if PROBLEMS[problem].kept else ():
        if name == GRAVITY or split_name(name)[0] != "armature":
            raise InputError(f"The result of problem {problem!r} does not depend on {name}.")
    return free


def _contacts(mechanism: Mechanism, problem: str, contacts: Sequence[ContactLike]) -> tuple[Contact, ...]:
    placed = as_contacts(contacts)
    for contact in placed:
        mechanism.place(contact.link)
    if placed and not PROBLEMS[problem].inputs:
        raise InputError(f"contacts are inputs of the problem 'iwim'; this one is {problem!r}. Give external_wrenches.")
    return placed


def _outputs(mechanism: Mechanism, problem: Problem, outputs: Sequence[str] | None) -> tuple[str, ...]:
    kind, sensors = PROBLEMS[problem.name], problem.measurements
    if outputs is None:
        usual = kind.outputs or tuple(f"{what}[{tip}]" for tip in mechanism.topology.tips for what in ("T", "J"))
        return (*usual, *(f"W[{frame}]" for frame in outside_frames(sensors)))
    names = as_names(outputs, "outputs")
    if not names:
        raise InputError("outputs is empty; name at least one, such as 'a' or 'F[joint]'.")
    for name in names:
        if names.count(name) > 1:
            raise InputError(f"outputs names {name!r} twice; name each result once.")
        if sensors:
            check_estimated(mechanism, sensors, name)
        elif kind.kept:
            offers = (MATRIX, *(f"d{MATRIX}/d{argument}" for argument in problem.arguments))
            check_name(name, offers, "output", f"what problem {problem.name!r} gives", InputError)
        else:
            check_output(mechanism, name, problem.arguments)
        if kind.solves_nothing and not quantity(name).follows_state:
            raise InputError(
                f"Problem {problem.name!r} is given q and v, which do not determine {name}. Take problem 'inverse', "
                "which is given accelerations, or 'forward', which is given torques, with the same outputs."
            )
        if name in ("com", "momentum"):
            check_mass(mechanism)
    return names
