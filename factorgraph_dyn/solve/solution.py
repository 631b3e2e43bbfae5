"""The answer of a dynamics problem: every acceleration, torque and wrench, and how well it fits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from factorgraph_dyn.equations import Known, LinearGraph, State, Variable
from factorgraph_dyn.equations.dynamics_graph import base_acceleration
from factorgraph_dyn.equations.factors import acceleration, wrench
from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.errors import ResidualError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.notebook import html_table, short
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.solve.elimination import BayesNet, eliminate
from factorgraph_dyn.solve.rows import factor_of
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.spatial import Floats, inverse_adjoint

RESIDUAL_TOLERANCE = 1e-9  # of the terms of an equation


@dataclass(frozen=True, eq=False)
class Solution:
    """All unknowns of a mechanism at a state.

    Attributes:
        a: Joint accelerations, rad/s^2 or m/s^2, shape (nv,).
        tau: Joint torques, N m or N, shape (nv,).
        residual: Largest misfit of an equation, relative to its terms.
        ordering: The ordering the graph was eliminated in.
        graph: The equations.
        state: The mechanism at (q, v).
        values: Every variable of the graph.
        eliminated: The Bayes net that was solved, where one was made; with loops it holds soft rows too.
        not_unique: Indices of the entries of internal wrenches that redundant loops leave free, by
            variable name such as ``F[tip]``; they were taken of least norm, moments over the mechanism's length.

    Examples:
        >>> arm = fgd.robots.rrr()
        >>> solution = fgd.inverse_dynamics(arm, np.zeros(3), np.zeros(3), np.ones(3))
        >>> print(solution.bayes_net)
        tau[joint1] | F[joint1]
        tau[joint2] | F[joint2]
        tau[joint3] | F[joint3]
        F[joint1] | A[link1], F[joint2]
        F[joint2] | A[link2], F[joint3]
        F[joint3] | A[link3]
        A[link3] | A[link2]
        A[link2] | A[link1]
        A[link1]
    """

    a: Floats
    tau: Floats
    residual: float
    ordering: Ordering
    graph: LinearGraph
    state: State
    values: Mapping[Variable, Floats]
    eliminated: BayesNet | None = None
    not_unique: Mapping[str, tuple[int, ...]] = field(default_factory=dict)

    def __repr__(self) -> str:
        name = self.state.mechanism.name
        return (
            f"<Solution of {name!r}: a {short(self.a)}, tau {short(self.tau)}, residual {self.residual:.1e}, "
            f"ordering {self.ordering.name!r}>"
        )

    def _repr_html_(self) -> str:
        mechanism = self.state.mechanism
        rows = [
            {"joint": name, "a": self.a[entries], "tau": self.tau[entries], "wrench": self.wrenches[name]}
            for name, entries in mechanism.v_slices.items()
        ]
        fit = f"residual {self.residual:.1e}, ordering {self.ordering.name}"
        return html_table(rows, f"Dynamics of {mechanism.name}", fit)

    @cached_property
    def twists(self) -> Mapping[str, Floats]:
        """Twist [omega; v] of every link by name, in its own frame, shape (6,) each."""
        return at_own_places(self.state.mechanism, self.state.twists)

    @cached_property
    def accelerations(self) -> Mapping[str, Floats]:
        """Spatial acceleration of every link by name, in its own frame, shape (6,) each.

        As in Newton-Euler algorithms gravity is included: the base accelerates upward with g.
        """
        mechanism = self.state.mechanism
        found = {mechanism.base: base_acceleration(mechanism)}
        for joint in mechanism.topology.outward:
            found[joint.child] = self.values[acceleration(joint.child)]
        return at_own_places(mechanism, found)

    @cached_property
    def wrenches(self) -> Mapping[str, Floats]:
        """Wrench [moment; force] each joint and loop passes to its child, in the child's link frame."""
        names = [*self.state.joints, *self.state.loops]
        return {name: self.values[wrench(name)] for name in names}

    @cached_property
    def bayes_net(self) -> BayesNet:
        """The Bayes net that was solved; its rows are in units of the mechanism, its variables are the graph's.

        Where cliques were eliminated, it is that of the same graph in the same ordering, variable by variable.
        """
        return self.eliminated or eliminate(self.graph, self.ordering, graph_units(self.state.mechanism))


def at_own_places(mechanism: Mechanism, motions: Mapping[str, Floats]) -> Mapping[str, Floats]:
    """Twists or accelerations of links, seen from where a link is by its name (``mechanism.place``)."""
    own = {link: inverse_adjoint(T) @ motions[link] for link, T in mechanism.own_placements.items() if link in motions}
    return {**motions, **own}


def joint_vectors(state: State, known: Known, values: Mapping[Variable, Floats]) -> tuple[Floats, Floats]:
    """a and tau in full: what was given, and what was solved for, shape (nv,) each."""
    return (
        _joint_vector(state.mechanism, "a", known.a, known.a_mask, values),
        _joint_vector(state.mechanism, "tau", known.tau, known.tau_mask, values),
    )


def _joint_vector(
    mechanism: Mechanism, kind: str, given: Floats, mask: Mask, values: Mapping[Variable, Floats]
) -> Floats:
    if mask.all():
        return given.copy()
    full = np.where(mask, given, np.nan)
    for variable, value in values.items():
        if variable.kind == kind and variable.owner in mechanism.joint_by_name:
            part = full[mechanism.v_slices[variable.owner]]
            if variable.size == len(part):
                part[:] = value
            else:
                part[np.isnan(part)] = value
    return full


def check_residual(
    residual: float, worst: int, graph: LinearGraph, ordering: Ordering, tolerance: float = RESIDUAL_TOLERANCE
) -> None:
    """Raise a ResidualError if an answer's backward error is too large for it to be trusted.

    Args:
        residual: The largest misfit of a row, relative to its terms.
        worst: That row.
        graph: The equations.
        ordering: The ordering they were eliminated in.
        tolerance: What is allowed.
    """
    if residual <= tolerance:  # nan must not hide
        return
    factor = factor_of(graph, worst)
    raise ResidualError(
        f"The answer misses equation {factor} by {residual:.2e} of its terms (allowed {tolerance:g}): the given "
        "values contradict the equations, or the system is too badly conditioned. Check what is given, or use "
        "another ordering.",
        residual=residual,
        factor=factor,
        graph=graph,
        ordering=ordering,
    )
