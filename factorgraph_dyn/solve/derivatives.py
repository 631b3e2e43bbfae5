"""Derivatives of forward and inverse dynamics through the graph: one elimination, many right-hand sides.

With x the solution of A x = b and ' the change along an entry of an argument,

    A x' = b' - A' x

is the graph that was solved, with other right-hand sides: as many as q, v and what is given have entries, all of them
columns of one variable that is kept out of the elimination. A' and b' come from the same factor functions, called with
dual numbers (`dual`). Changes of q are along velocities: a joint moves as ``fgd.integrate`` would move it.

With loops and couplings a derivative has a meaning along the closure: for changes of q, v and a that keep it, to first
order, the products of the derivatives with these changes sum up to the change of the answer. Single columns off the
closure are those of the equations as they are written, by least squares where these contradict each other.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Factor, Known, LinearGraph, State, Variable, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.given import check_wrenches
from factorgraph_dyn.equations.problem import PROBLEMS
from factorgraph_dyn.equations.quantities import check_output, split_derivative, split_name
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.motion import masses
from factorgraph_dyn.motion.independence import independent_rows
from factorgraph_dyn.motion.kinematics import place_jacobian, place_pose
from factorgraph_dyn.motion.masses import moving_bodies
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.solve.dual import changes_of, duals
from factorgraph_dyn.solve.dynamics import Wrenches, forward_dynamics, inverse_dynamics
from factorgraph_dyn.solve.elimination import eliminate
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.solve.solution import Solution
from factorgraph_dyn.spatial import Array, Floats, inverse_adjoint

_DIRECTIONS = "directions"


def _twist(state: State, name: str) -> Array:
    link, pose = state.mechanism.place(name)
    return np.asarray(inverse_adjoint(pose) @ state.twists[link])


# What follows from the state alone, by its kind.
_OF_STATES: dict[str, Callable[[State, str], Any]] = {
    "T": lambda state, name: place_pose(state.mechanism, state.q, name),
    "J": lambda state, name: place_jacobian(state.mechanism, state.q, name),
    "V": _twist,
    "com": lambda state, _: masses.center_of_mass(moving_bodies(state.mechanism), state.q),
    "momentum": lambda state, _: masses.momentum(moving_bodies(state.mechanism), state.q, state.twists),
    "kinetic_energy": lambda state, _: masses.kinetic_energy(moving_bodies(state.mechanism), state.v, state.twists),
    "potential_energy": lambda state, _: masses.potential_energy(moving_bodies(state.mechanism), state.q),
}


@dataclass(frozen=True, eq=False)
class Derivatives:
    """The answer of a dynamics problem, and how it changes with every argument.

    ``derivatives["da/dq"]``, ``derivatives["dF[elbow]/dv"]``: a column for every entry of the argument, for q every
    freedom. For names without brackets there are attributes, too: ``derivatives.da_dq``.

    Attributes:
        solution: The answer itself.
        arguments: Where each argument's entries lie among the directions.
        changes: Of every variable of the graph, shape (entries, directions).
        state: The mechanism at (q, v) in dual numbers, which know their changes.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> found = fgd.derivatives(arm, np.zeros(2), np.zeros(2), tau=np.zeros(2))
        >>> found["dF[joint2]/dq"].shape
        (6, 2)
    """

    solution: Solution
    arguments: Mapping[str, slice]
    changes: Mapping[Variable, Floats]
    state: State

    @property
    def a(self) -> Floats:
        """Joint accelerations, shape (nv,)."""
        return self.solution.a

    @property
    def tau(self) -> Floats:
        """Joint torques, shape (nv,)."""
        return self.solution.tau

    def __repr__(self) -> str:
        return f"Derivatives of {self.solution.state.mechanism.name!r} by {', '.join(self.arguments)}"

    def __getitem__(self, name: str) -> Floats:
        parts = split_derivative(name) if isinstance(name, str) else None
        if parts is None:
            raise InputError(f"{name!r} is no derivative; ask for d<output>/d<argument>, such as 'da/dq'.")
        check_output(self.solution.state.mechanism, name, tuple(self.arguments))
        output, argument = parts
        return self._change(*split_name(output))[..., self.arguments[argument]]

    def __getattr__(self, name: str) -> Floats:
        output, between, argument = name.partition("_d")
        if not (between and output.startswith("d")):
            raise AttributeError(
                f"Derivatives have no attribute {name!r}; ask for one such as da_dq, or for ['da/dq']."
            )
        return self[f"{output}/d{argument}"]

    def _change(self, kind: str, owner: str) -> Floats:
        """The change of an output along all directions."""
        if kind in _OF_STATES:
            return changes_of(_OF_STATES[kind](self.state, owner), self._count)
        if kind == "A":
            link, pose = self.state.mechanism.place(owner)
            return np.asarray(inverse_adjoint(pose) @ self._variable_change(kind, link))
        return self._variable_change(kind, owner) if kind == "F" else self._joint_change(kind)

    def _variable_change(self, kind: str, owner: str) -> Floats:
        """Of a variable of the graph; the base's acceleration does not change."""
        found = (change for variable, change in self.changes.items() if variable[:2] == (kind, owner))
        return next(found, np.zeros((6, self._count)))

    @property
    def _count(self) -> int:
        return max((part.stop for part in self.arguments.values()), default=0)

    def _joint_change(self, kind: str) -> Floats:
        """Of a or tau: what is given changes as it is given, the rest as it was solved for."""
        mechanism = self.solution.state.mechanism
        change = np.zeros((mechanism.nv, self._count))
        if kind in self.arguments:
            change[:, self.arguments[kind]] = np.eye(mechanism.nv)
        for joint in mechanism.movable_joints:
            variable = self.solution.graph.by_name.get(f"{kind}[{joint.name}]")
            if variable is not None:
                places = np.arange(mechanism.nv)[mechanism.v_slices[joint.name]]
                mask = self._known_mask(variable, joint.nv)
                change[places[~mask]] = self.changes[variable]
        return change

    def _known_mask(self, variable: Variable, nv: int) -> npt.NDArray[np.bool_]:
        value = self.solution.graph.known.get(Variable(variable.kind, variable.owner, nv))
        return np.zeros(nv, dtype=bool) if value is None or value.mask is None else value.mask


def derivatives(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    *,
    tau: npt.ArrayLike | None = None,
    a: npt.ArrayLike | None = None,
    ordering: OrderingLike | None = None,
    external_wrenches: Wrenches | None = None,
) -> Derivatives:
    """Forward dynamics, given tau, or inverse dynamics, given a, with all first derivatives.

    Args:
        mechanism: The mechanism.
        q: Coordinates, rad and m, shape (nq,).
        v: Velocities, rad/s and m/s, shape (nv,).
        tau: Joint torques, N m and N, shape (nv,).
        a: Joint accelerations, rad/s^2 and m/s^2, shape (nv,).
        ordering: Name of an ordering, or variable names in the order of elimination; by default aba or rnea.
        external_wrenches: Wrench [moment; force] on a link, in its frame, by link name; each is an argument
            ``wrench[link]``.

    Raises:
        FactorGraphDynError: Bad input, or a state that leaves something undetermined.

    Examples:
        >>> arm = fgd.robots.pendulum(2)
        >>> found = fgd.derivatives(arm, np.zeros(2), np.zeros(2), tau=np.zeros(2))
        >>> np.allclose(found.da_dtau, fgd.inverse_mass_matrix(arm, np.zeros(2)))
        True
    """
    check_mechanism(mechanism)
    if (tau is None) == (a is None):
        raise InputError("Give either tau, for forward dynamics, or a, for inverse dynamics.")
    name, given = ("forward", tau) if tau is not None else ("inverse", a)
    solve = forward_dynamics if tau is not None else inverse_dynamics
    assert given is not None
    chosen = PROBLEMS[name].solved_in if ordering is None else ordering
    solution = solve(mechanism, q, v, given, ordering=chosen, external_wrenches=external_wrenches)
    wrenches = check_wrenches(mechanism, external_wrenches)
    varied = _Varied(solution, "tau" if tau is not None else "a", mechanism.check_v(given), wrenches)
    return Derivatives(solution, varied.arguments, varied.solved(), varied.state)


@dataclass(frozen=True, eq=False)
class _Varied:
    """A solved graph whose arguments change.

    Attributes:
        solution: The answer.
        given: Which of a and tau is given.
        values: Its values.
        wrenches: Wrenches from outside.
    """

    solution: Solution
    given: str
    values: Floats
    wrenches: Mapping[str, Floats]

    @cached_property
    def arguments(self) -> dict[str, slice]:
        nv = len(self.values)
        sizes = {"q": nv, "v": nv, self.given: nv} | {f"wrench[{link}]": 6 for link in self.wrenches}
        ends: list[int] = np.cumsum([*sizes.values()]).tolist()
        return {name: slice(end - size, end) for (name, size), end in zip(sizes.items(), ends, strict=True)}

    @property
    def _count(self) -> int:
        return int(max(part.stop for part in self.arguments.values()))

    def _units(self, argument: str, values: Floats) -> npt.NDArray[np.object_]:
        """An argument whose entries change one by one."""
        changes = np.zeros((len(values), self._count))
        changes[:, self.arguments[argument]] = np.eye(len(values))
        return duals(values, changes)

    @cached_property
    def state(self) -> State:
        state = self.solution.state
        mechanism = state.mechanism
        changes = np.zeros((mechanism.nq, self._count))
        for joint in mechanism.movable_joints:
            here, first = mechanism.q_slices[joint.name], mechanism.v_slices[joint.name].start
            for k, unit in enumerate(np.eye(joint.nv)):
                changes[here, first + k] = joint.type.rate(state.q[here], unit)
        return evaluate_state(mechanism, duals(state.q, changes), self._units("v", state.v))

    @cached_property
    def rows(self) -> list[Floats]:
        """Of every factor of the graph, b' - A' x, shape (rows, directions)."""
        solution, values = self.solution, self._units(self.given, self.values)
        masks = _masks(solution, len(self.values))
        other = np.zeros(len(self.values))
        a, tau = (values, other) if self.given == "a" else (other, values)
        wrenches = {link: self._units(f"wrench[{link}]", wrench) for link, wrench in self.wrenches.items()}
        kept = independent_rows(solution.state.mechanism, solution.state.q).kept
        graph = dynamics_graph(self.state, Known(a, tau, *masks), wrenches, closure=kept)
        return [self._row(factor) for factor in graph.factors]

    def _row(self, factor: Factor) -> Floats:
        change = changes_of(factor.rhs, self._count)
        for variable, block in factor.blocks:
            if block.dtype == object:
                change -= np.einsum("ijd,j->id", changes_of(block, self._count), self.solution.values[variable])
        return change

    def solved(self) -> Mapping[Variable, Floats]:
        """The changes of all variables."""
        solution, mechanism = self.solution, self.solution.state.mechanism
        graph = solution.graph
        column = Variable(_DIRECTIONS, mechanism.name, self._count)
        factors = tuple(
            Factor(factor.kind, factor.owner, (*factor.blocks, (column, -row)), np.zeros(factor.rows))
            for factor, row in zip(graph.factors, self.rows, strict=True)
        )
        net = eliminate(
            LinearGraph((*graph.variables, column), factors, graph.known), solution.ordering, graph_units(mechanism)
        )
        return net.respond({column: np.eye(self._count)})


def _masks(solution: Solution, nv: int) -> tuple[npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Which entries of a and tau are known."""
    mechanism, found = solution.state.mechanism, []
    for kind in ("a", "tau"):
        mask = np.ones(nv, dtype=bool)
        for joint in mechanism.movable_joints:
            known = solution.graph.known.get(Variable(kind, joint.name, joint.nv))
            part = False if known is None else True if known.mask is None else known.mask
            mask[mechanism.v_slices[joint.name]] = part
        found.append(mask)
    return found[0], found[1]
