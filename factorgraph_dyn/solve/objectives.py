"""What is wanted beyond the physics: soft factors on torques and wrenches, and limits of torques.

An objective gives rows  weight (x - target) ~ 0  over variables of the dynamics graph; the answer
minimises the sum of their squares among all answers that the physics allows. Objectives
add up, and the limits of all of them hold.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_array, check_finite, check_mapping, check_parts, real_numbers, shown
from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Floats

PerJoint = float | Mapping[str, npt.ArrayLike]
Limits = float | Mapping[str, float | tuple[float, float]]


@runtime_checkable
class Objective(Protocol):
    """Anything that writes soft rows over the variables of a dynamics graph."""

    def factors(self, mechanism: Mechanism, graph: LinearGraph) -> Sequence[Factor]:
        """The soft rows, each with its weight multiplied in."""
        ...


@dataclass(frozen=True)
class MinimumTorque:
    """The torques of least weighted squares: minimises the sum of (weight (tau - target))^2.

    Args:
        weights: One number, or numbers by joint name (others 1): a larger weight spares that motor.
        target: Torques to stay near, by joint name (others 0), N m or N.
        limits: Largest torque of every motor, or by joint name a largest torque or (lower, upper);
            needs a QP solver: ``pip install factorgraph_dyn[qp]``.

    Examples:
        >>> five_bar = fgd.robots.five_bar(actuated=5)  # five motors, two freedoms
        >>> rest = np.zeros(5)
        >>> held = fgd.inverse_dynamics(five_bar, five_bar.neutral(), rest, rest, objective=fgd.MinimumTorque())
        >>> alone = fgd.inverse_dynamics(
        ...     five_bar, five_bar.neutral(), rest, rest, actuated=["left_shoulder", "right_shoulder"]
        ... )
        >>> bool(np.linalg.norm(held.tau) < np.linalg.norm(alone.tau))
        True
    """

    weights: PerJoint = 1.0
    target: Mapping[str, npt.ArrayLike] = field(default_factory=dict)
    limits: Limits | None = None

    def factors(self, mechanism: Mechanism, graph: LinearGraph) -> Sequence[Factor]:
        """One row for every torque that is sought."""
        sought = _variables(graph, "tau", mechanism.joint_names)
        check_mapping(self.target, "The target", "torques by joint name")
        _check_joints(self.target, mechanism, "target")
        weights = _weights(self.weights, mechanism, "torque weight")
        return [
            _pull(variable, weights.get(variable.owner, 1.0), self.target.get(variable.owner, 0.0))
            for variable in sought
        ]

    def bounds(self, mechanism: Mechanism, sought: Sequence[Variable]) -> tuple[Floats, Floats]:
        """Lower and upper bounds of the sought torques, one after the other; infinite where none."""
        limits = self.limits
        named: dict[str, tuple[float, float]] = {}
        if isinstance(limits, Mapping):
            _check_joints(limits, mechanism, "limits")
            named = {name: _interval(value, name) for name, value in limits.items()}
        elif limits is not None:
            named = {variable.owner: _interval(limits, variable.owner) for variable in sought}
        pairs = [named.get(variable.owner, (-np.inf, np.inf)) for variable in sought for _ in range(variable.size)]
        lower, upper = (np.array([pair[i] for pair in pairs], dtype=np.float64) for i in (0, 1))
        return lower, upper


@dataclass(frozen=True)
class MinimumWrench:
    """Wrenches of least weighted squares at joints and loops.

    Args:
        weights: One number for all joints and loops, or numbers (one, or six for moment and force)
            by joint or loop name; those not named are left alone.

    Examples:
        >>> five_bar = fgd.robots.five_bar(actuated=5)
        >>> rest = np.zeros(5)
        >>> gentle = [fgd.MinimumTorque(0.1), fgd.MinimumWrench({"tip": 1.0})]
        >>> fgd.inverse_dynamics(five_bar, five_bar.neutral(), rest, rest, objective=gentle).residual < 1e-9
        True
    """

    weights: PerJoint = 1.0

    def factors(self, mechanism: Mechanism, graph: LinearGraph) -> Sequence[Factor]:
        """One row for every entry of a named wrench."""
        names = [*(joint.name for joint in mechanism.joints), *(loop.name for loop in mechanism.loops)]
        weights: Mapping[str, npt.ArrayLike]
        weights = self.weights if isinstance(self.weights, Mapping) else dict.fromkeys(names, self.weights)
        for name in weights:
            check_name(name, names, "joint or loop", f"mechanism {mechanism.name!r}", InputError)
        return [_pull(Variable("F", name, 6), weight, 0.0) for name, weight in weights.items()]


@dataclass(frozen=True)
class SoftFactors:
    """Soft rows of the user's own, over variables of the dynamics graph, weights multiplied in.

    Examples:
        >>> five_bar = fgd.robots.five_bar(actuated=5)
        >>> rest = np.zeros(5)
        >>> taus = [fgd.Variable("tau", name, 1) for name in five_bar.joint_names]
        >>> rows = tuple(fgd.Factor("wish", tau.owner, ((tau, np.eye(1)),), np.zeros(1)) for tau in taus)
        >>> q = five_bar.neutral()
        >>> mine = fgd.inverse_dynamics(five_bar, q, rest, rest, objective=fgd.SoftFactors(rows))
        >>> least = fgd.inverse_dynamics(five_bar, q, rest, rest, objective=fgd.MinimumTorque())
        >>> np.allclose(mine.tau, least.tau)
        True
    """

    rows: tuple[Factor, ...]

    def __post_init__(self) -> None:
        rows = check_parts(self.rows, Factor, "rows", "fgd.Factor(kind, owner, blocks, rhs)")
        object.__setattr__(self, "rows", rows)

    def factors(self, mechanism: Mechanism, graph: LinearGraph) -> Sequence[Factor]:
        """The rows after what is known has been substituted."""
        substituted = [factor.substitute(graph.known) for factor in self.rows]
        for factor in substituted:
            for variable, _ in factor.blocks:
                graph.variable(str(variable))
        return [factor for factor in substituted if factor.blocks]


def torque_bounds(
    objectives: Sequence[Objective], mechanism: Mechanism, sought: Sequence[Variable]
) -> tuple[Floats, Floats] | None:
    """Bounds of the sought torques that hold the limits of all objectives, or None where none has limits."""
    limited = [o for o in objectives if isinstance(o, MinimumTorque) and o.limits is not None]
    if not limited:
        return None
    pairs = [objective.bounds(mechanism, sought) for objective in limited]
    lower, upper = np.max([low for low, _ in pairs], axis=0), np.min([high for _, high in pairs], axis=0)
    joints = [variable.owner for variable in sought for _ in range(variable.size)]
    for joint, low, high in zip(joints, lower, upper, strict=True):
        if low > high:
            raise InputError(
                f"The torque limits of joint {joint!r} contradict each other: one objective asks for {low:g} or more, "
                f"another for {high:g} or less. Limits of all objectives hold at once; widen one of them."
            )
    return lower, upper


def as_objectives(objective: Objective | Sequence[Objective] | None) -> tuple[Objective, ...]:
    """One objective, several or none as a tuple, or an InputError."""
    if objective is None:
        return ()
    given = tuple(objective) if isinstance(objective, (list, tuple)) else (objective,)
    for item in given:
        if not isinstance(item, Objective):
            raise InputError(
                f"{item!r} is no objective. Use MinimumTorque(), MinimumWrench(), SoftFactors(...), or an "
                "object with a method factors(mechanism, graph)."
            )
    return given


def _variables(graph: LinearGraph, kind: str, owners: Sequence[str]) -> list[Variable]:
    allowed = set(owners)
    return [v for v in graph.variables if v.kind == kind and v.owner in allowed]


def _pull(variable: Variable, weight: npt.ArrayLike, target: npt.ArrayLike) -> Factor:
    """Rows weight (x - target) ~ 0."""
    weights = _spread(weight, variable, "weight")
    targets = _spread(target, variable, "target")
    return Factor("objective", variable.owner, ((variable, np.diag(weights)),), weights * targets)


def _spread(value: npt.ArrayLike, variable: Variable, what: str) -> Floats:
    what = f"The {what} of {variable}"
    given = real_numbers(value, what, InputError)
    array = check_finite(given, (variable.size,) if given.ndim else (), what)
    return np.broadcast_to(array, (variable.size,)).astype(np.float64)


def _weights(weights: PerJoint, mechanism: Mechanism, what: str) -> Mapping[str, npt.ArrayLike]:
    found: Mapping[str, npt.ArrayLike]
    if isinstance(weights, Mapping):
        _check_joints(weights, mechanism, what)
        found = weights
    else:
        found = dict.fromkeys(mechanism.joint_names, weights)
    for name, weight in found.items():
        if not (real_numbers(weight, f"The {what} of joint {name!r}", InputError) > 0).all():
            raise InputError(f"The {what} of joint {name!r} is {weight!r}; it must be positive.")
    return found


def _check_joints(named: Mapping[str, object], mechanism: Mechanism, what: str) -> None:
    for name in named:
        check_name(name, mechanism.joint_names, "joint", f"mechanism {mechanism.name!r} ({what})", InputError)


def _interval(value: float | tuple[float, float], joint: str) -> tuple[float, float]:
    what = f"The torque limits of joint {joint!r}"
    given = real_numbers(value, what, InputError)
    lower, upper = check_array((-given, given) if given.ndim == 0 else given, (2,), what).tolist()
    if not lower <= upper:
        raise InputError(f"{what} are {shown(value)}; give a positive number or (lower, upper).")
    return lower, upper
