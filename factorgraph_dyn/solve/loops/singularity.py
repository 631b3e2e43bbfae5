"""Why a problem with loops has no answer, several, or a badly conditioned one, in names of joints.

Looks at the dense system in the unknown accelerations, the sought torques and the constraint forces,

    [ M_u  -B  -J^T ] [a_u   ]     [ tau_known - h - M_k a_k ]
    [ J_u   0    0  ] [tau   ]  =  [ -Jdot v - J_k a_k       ]
                      [lambda]

with rows and columns scaled to order one. Undetermined constraint forces are no fault: they are
internal wrenches. Run only where the quick estimates of the elimination are suspicious or it failed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.equations import Known, State, dynamics_graph, evaluate_state
from factorgraph_dyn.errors import (
    FactorGraphDynError,
    NearSingularWarning,
    ResidualError,
    SingularSystemError,
)
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import Ordering
from factorgraph_dyn.ordering.classical import rnea
from factorgraph_dyn.solve.elimination import solve_graph
from factorgraph_dyn.solve.own_units import own_known, own_state, own_wrenches
from factorgraph_dyn.solve.scaling import graph_units
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.textbook.projectors import constraints_at

SINGULAR = 1e13  # condition numbers above it count as singular
NEAR_SINGULAR = 1e6  # and above this they are worth a warning
TAKES_PART = 1e-6  # share of a null direction above which an entry moves
CONTRADICTION = 1e-9  # misfit that makes a system a contradiction, relative to its right-hand side
BALANCING_ROUNDS = 20


@dataclass(frozen=True, eq=False)
class Kkt:
    """The dense system of a problem, scaled, with its singular values.

    Attributes:
        system: Scaled matrix.
        rhs: Scaled right-hand side.
        entries: Kind ("a", "tau" or "lambda") and index in the joint vector of every column.
    """

    system: Floats
    rhs: Floats
    entries: tuple[tuple[str, int], ...]

    def undetermined(self) -> dict[str, set[int]]:
        """Indices of a and tau that null directions of the system move."""
        _, _, directions = _decomposed(self.system)
        moved: dict[str, set[int]] = {"a": set(), "tau": set()}
        for column, (kind, index) in enumerate(self.entries):
            if kind in moved and np.abs(directions[:, column]).max(initial=0.0) > TAKES_PART:
                moved[kind].add(index)
        return moved

    def condition(self) -> float:
        """Ratio of the largest singular value to the least one that is not zero."""
        values, rank, _ = _decomposed(self.system)
        return float(values[0] / values[rank - 1]) if rank else 1.0


def kkt(state: State, known: Known, external: Mapping[str, Floats] | None = None) -> Kkt:
    """The dense system of a problem, in the mechanism's own units."""
    known, external = own_known(state, known), own_wrenches(state, external)
    state = own_state(state)
    found = constraints_at(state)
    mechanism, J, M = state.mechanism, found.J, found.H
    h = _bias(state, external)
    unknown, sought = np.flatnonzero(~known.a_mask), np.flatnonzero(~known.tau_mask)
    a = np.where(known.a_mask, known.a, 0.0)
    tau = np.where(known.tau_mask, known.tau, 0.0)
    B = np.eye(mechanism.nv)[:, sought]
    system = np.block(
        [
            [M[:, unknown], -B, -J.T],
            [J[:, unknown], np.zeros((len(J), len(sought) + len(J)))],
        ]
    )
    rhs = np.concatenate([tau - h - M @ a, -found.Jdot_v - J @ a])
    entries = (
        *(("a", int(i)) for i in unknown),
        *(("tau", int(i)) for i in sought),
        *(("lambda", i) for i in range(len(J))),
    )
    scaled, row_scale = _balanced(system)
    return Kkt(scaled, row_scale * rhs, entries)


def check(state: State, known: Known, external: Mapping[str, Floats] | None, *, torques_chosen: bool = False) -> None:
    """Raise if a or tau is undetermined; warn near a singular configuration.

    Args:
        state: The mechanism at (q, v).
        known: What is given.
        external: Wrenches from outside.
        torques_chosen: Whether objectives choose among torques, so that several are no fault.
    """
    dense = kkt(state, known, external)
    moved = dense.undetermined()
    mechanism = state.mechanism
    if moved["a"]:
        names = _names(mechanism, moved["a"])
        raise SingularSystemError(
            f"The accelerations of joints {', '.join(names)} of mechanism {mechanism.name!r} are "
            "undetermined: they move no inertia, or the given values leave them a freedom. Give their "
            "accelerations or torques, or give the links inertia.",
            joints=tuple(names),
        )
    if moved["tau"] and not torques_chosen:
        names = _names(mechanism, moved["tau"])
        raise SingularSystemError(
            f"The torques of joints {', '.join(names)} of mechanism {mechanism.name!r} are not unique: there "
            "are more motors than freedoms, or the configuration is singular. Pass "
            "objective=MinimumTorque(), or seek fewer torques with actuated=[...].",
            joints=tuple(names),
        )
    condition = dense.condition()
    if condition > NEAR_SINGULAR:
        warnings.warn(
            f"Mechanism {mechanism.name!r} is close to a singular configuration: condition number "
            f"{condition:.1e}. The answer satisfies the equations, but changes by up to that factor "
            "times a change of the state.",
            NearSingularWarning,
            stacklevel=5,
        )


def contradiction(
    state: State, known: Known, external: Mapping[str, Floats] | None, error: ResidualError
) -> FactorGraphDynError:
    """The error for given values that no answer satisfies, with loops and joints named."""
    mechanism, found = state.mechanism, constraints_at(state)
    broken = found.broken(found.nearest_acceleration(known.a, known.a_mask)[0])
    if broken:
        worst = max(broken, key=broken.__getitem__)
        if not known.a_mask.any():
            return SingularSystemError(
                f"No accelerations keep {', '.join(map(repr, broken))} closed at this velocity (off by "
                f"{broken[worst]:.3g}): mechanism {mechanism.name!r} is at a singular configuration. Move "
                "away from it, or bring the velocity to rest.",
                constraints=broken,
            )
        return ResidualError(
            f"The given accelerations break the closure of {', '.join(map(repr, broken))}: {worst!r} by "
            f"{broken[worst]:.3g} m/s^2 or rad/s^2. Give only as many as there are freedoms, or complete them: "
            "fgd.constraints(mechanism, q, v).complete_acceleration(a, given=[...]).",
            constraints=broken,
        )
    dense = kkt(state, known, external)
    solution = np.linalg.lstsq(dense.system, dense.rhs, rcond=1.0 / SINGULAR)[0]
    misfit = np.abs(dense.system @ solution - dense.rhs)
    allowed = CONTRADICTION * max(float(np.abs(dense.rhs).max(initial=0.0)), 1e-300)
    rows = [int(row) for row in np.flatnonzero(misfit[: mechanism.nv] > allowed)]
    if not rows:
        return error
    motors = _names(mechanism, set(np.flatnonzero(~known.tau_mask).tolist()))
    return ResidualError(
        f"The motors at joints {', '.join(motors) or 'none'} of mechanism {mechanism.name!r} cannot produce "
        f"this motion: a torque is missing along joints {', '.join(_names(mechanism, set(rows)))}. Seek more "
        "torques with actuated=[...], give fewer accelerations, or leave the singular configuration.",
        joints=tuple(_names(mechanism, set(rows))),
    )


def _bias(state: State, external: Mapping[str, Floats] | None) -> Floats:
    """The torques of the tree without accelerations, wrenches from outside included, shape (nv,)."""
    mechanism = state.mechanism
    tree = evaluate_state(mechanism.tree, state.q, state.v)
    graph = dynamics_graph(tree, Known.inverse(np.zeros(mechanism.nv)), external)
    names = tuple(name for name in rnea(mechanism.tree) if name in graph.by_name)
    values = solve_graph(graph, Ordering("rnea", names), units=graph_units(mechanism.tree)).values
    h = np.zeros(mechanism.nv)
    for variable, value in values.items():
        if variable.kind == "tau":
            h[mechanism.v_slices[variable.owner]] = value
    return h


def _balanced(system: Floats) -> tuple[Floats, Floats]:
    """The system with rows and columns scaled to length one, more or less, and the rows' scale."""
    scaled = system.copy()
    row_scale = np.ones(len(system))
    for _ in range(BALANCING_ROUNDS):
        rows = np.sqrt(np.linalg.norm(scaled, axis=1))
        rows = 1.0 / np.where(rows > 0, rows, 1.0)
        scaled *= rows[:, None]
        row_scale *= rows
        columns = np.sqrt(np.linalg.norm(scaled, axis=0))
        scaled /= np.where(columns > 0, columns, 1.0)
    return scaled, row_scale


def _decomposed(system: Floats) -> tuple[Floats, int, Floats]:
    """Singular values, rank, and the null directions as rows."""
    if not system.size:
        return np.ones(1), 0, np.eye(system.shape[1])
    _, values, rows = np.linalg.svd(system)
    rank = int((values > max(values[0], 1e-300) / SINGULAR).sum())
    return values, rank, rows[rank:]


def _names(mechanism: Mechanism, indices: set[int]) -> list[str]:
    return [
        name
        for name in mechanism.joint_names
        if indices & set(range(mechanism.v_slices[name].start, mechanism.v_slices[name].stop))
    ]
