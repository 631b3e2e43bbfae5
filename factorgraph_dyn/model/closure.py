"""Closing loops and couplings: configurations and velocities that satisfy them.

The error of a loop is what is left of its relative pose after the best motion of the loop joint,
seen along the directions C that the joint constrains (S^T C = 0, C orthonormal):

    e = C^T log( T_frame_child(q_best)^-1  T_frame_child )         (m, rad)
    J = C^T ( J_child - Ad_child_frame J_frame )                   e_dot = J v on the closure

and of a coupling it is q_joint - ratio q_source - offset. Gauss-Newton steps of least norm bring
e to zero and stay near the start, so that the assembly mode is kept. Work is done once a state.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.model.kinematics import integrate, joint_motion, loop_pose
from factorgraph_dyn.model.loop_groups import RANK_TOLERANCE, least_norm, loop_paths
from factorgraph_dyn.model.parts import Coupling, Loop
from factorgraph_dyn.spatial import Array, Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

CLOSED = 1e-8  # largest closure error of a state that counts as closed, m, rad, and per s
CONVERGED = 1e-13  # closure error at which Gauss-Newton stops
MAX_ITERATIONS = 200
MAX_STEP = 0.5  # longest Gauss-Newton step, rad or m, so that the assembly mode is kept


@dataclass(frozen=True)
class Constraint:
    """The closure error of one loop or coupling and its Jacobian, J v = d(error)/dt.

    Attributes:
        name: Of the loop or coupling.
        error: m or rad, shape (rows,).
        jacobian: shape (rows, nv).
        directions: C of a loop, in its frame on the successor, shape (6, rows); None of a coupling.
    """

    name: str
    error: Floats
    jacobian: Floats
    directions: Floats | None = None


def constraints(mechanism: Mechanism, q: Floats) -> list[Constraint]:
    """The closure errors of all loops and couplings at a configuration, with their Jacobians."""
    places = _Places(mechanism, q)
    found = [_loop_constraint(places, loop) for loop in mechanism.loops]
    for coupling in mechanism.couplings:
        error = coupling_error(mechanism, coupling, q)
        found.append(Constraint(coupling.name, error, coupling_row(mechanism, coupling)))
    return found


def coupling_row(mechanism: Mechanism, coupling: Coupling) -> Floats:
    """The Jacobian of a coupling, shape (1, nv)."""
    row = np.zeros((1, mechanism.nv))
    row[0, mechanism.v_slices[coupling.joint]] = 1.0
    row[0, mechanism.v_slices[coupling.source]] -= coupling.ratio
    return row


def stacked_jacobian(mechanism: Mechanism, found: list[Constraint]) -> Floats:
    """The Jacobians of all constraints, one below the other, shape (rows, nv)."""
    return np.vstack([np.zeros((0, mechanism.nv)), *(constraint.jacobian for constraint in found)])


def violations(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> Iterator[tuple[str, float, float]]:
    """Name, closure error and its rate (0 without v) of every loop and coupling.

    Needs only the poses and twists of the links, so that checking a state takes linear time.
    """
    places = _Places(mechanism, q)
    twists = None if v is None else places.twists(v)
    for loop in mechanism.loops:
        T_frame_child, C, error = _loop_error(places, loop)
        rate = 0.0
        if twists is not None:
            V_child = spatial.inverse_adjoint(loop.successor_placement) @ twists[loop.successor]
            V_frame = spatial.inverse_adjoint(loop.predecessor_placement) @ twists[loop.predecessor]
            rate = _largest(C.T @ (V_child - spatial.inverse_adjoint(T_frame_child) @ V_frame))
        yield loop.name, _largest(C.T @ error), rate
    for coupling in mechanism.couplings:
        rate = 0.0
        if v is not None:
            here, source = (v[mechanism.v_slices[n]] for n in (coupling.joint, coupling.source))
            rate = _largest(here - coupling.ratio * source)
        yield coupling.name, _largest(coupling_error(mechanism, coupling, q)), rate


def closure_error(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> float:
    """The largest closure error of the configuration and, where given, of the velocity."""
    return max((max(error, rate) for _, error, rate in violations(mechanism, q, v)), default=0.0)


def is_closed(mechanism: Mechanism, q: Floats) -> bool:
    """Whether a configuration closes all loops and couplings."""
    return closure_error(mechanism, q) <= CLOSED


def check_closed(mechanism: Mechanism, q: Floats, v: Floats) -> None:
    """Raise a ClosureError naming the loop or coupling that a state violates, and by how much."""
    allowed_speed = CLOSED * max(1.0, float(np.abs(v).max(initial=0.0)))
    for name, error, speed in violations(mechanism, q, v):
        if error > CLOSED:
            raise ClosureError(
                f"q is off the closure of {name!r} by {error:.3g} (m or rad; allowed {CLOSED:g}). "
                "Use q = mechanism.close(q).",
                constraint=name,
                distance=error,
            )
        if speed > allowed_speed:
            raise ClosureError(
                f"v breaks the closure of {name!r} by {speed:.3g} (m/s or rad/s; allowed "
                f"{allowed_speed:g}). Use v = mechanism.complete_velocity(q, v, given=[...]) with the "
                "joints whose velocity you choose.",
                constraint=name,
                distance=speed,
            )


def close(mechanism: Mechanism, q: Floats, hold: tuple[str, ...] = (), iterations: int = MAX_ITERATIONS) -> Floats:
    """The configuration nearest to q that closes everything, by Gauss-Newton with least-norm steps."""
    free = np.ones(mechanism.nv, dtype=bool)
    for name in hold:
        free[mechanism.v_slice(name)] = False
    best, best_error = q, np.inf
    for _ in range(iterations):
        found = constraints(mechanism, q)
        size = max((_largest(constraint.error) for constraint in found), default=0.0)
        if size < 0.5 * best_error:
            best, best_error = q, size
        elif size <= CLOSED:
            break  # rounding keeps it from falling further
        elif size < best_error:
            best, best_error = q, size
        if best_error <= CONVERGED:
            break
        step, _ = least_norm(mechanism, [c.jacobian for c in found], [-c.error for c in found], free)
        longest = float(np.abs(step).max(initial=0.0))
        q = integrate(mechanism, q, step, min(1.0, MAX_STEP / longest) if longest else 1.0)
    if best_error > CLOSED:
        worst = max(constraints(mechanism, best), key=lambda c: _largest(c.error))
        held = f" with joints {', '.join(hold)} held" if hold else ""
        raise ClosureError(
            f"Mechanism {mechanism.name!r} cannot be closed from this q{held}: {worst.name!r} stays open "
            f"by {best_error:.3g} (m or rad; allowed {CLOSED:g}). Start nearer to a closed "
            "configuration, hold fewer joints, or check the placements of the loop.",
            constraint=worst.name,
            distance=best_error,
            q=best,
        )
    return best


def complete_velocity(mechanism: Mechanism, q: Floats, v: Floats, given: tuple[str, ...]) -> Floats:
    """The velocities with J v = 0 that agree with v at the given joints, shape (nv,)."""
    fixed = np.zeros(mechanism.nv, dtype=bool)
    for name in given:
        fixed[mechanism.v_slice(name)] = True
    found = constraints(mechanism, q)
    completed = np.where(fixed, v, 0.0)
    targets = [-c.jacobian @ completed for c in found]
    solution, rank = least_norm(mechanism, [c.jacobian for c in found], targets, ~fixed)
    completed += solution
    scale = max(1.0, float(np.abs(v).max(initial=0.0)))
    for constraint in found:
        speed = _largest(constraint.jacobian @ completed)
        if speed > CLOSED * scale:
            raise ClosureError(
                f"The velocities given at joints {', '.join(given)} contradict the closure of "
                f"{constraint.name!r} by {speed:.3g} m/s or rad/s. Give fewer joints.",
                constraint=constraint.name,
                distance=speed,
            )
    if rank < (~fixed).sum():
        _, _, rows = np.linalg.svd(stacked_jacobian(mechanism, found)[:, ~fixed])
        loose = np.abs(rows[rank:]).max(axis=0) > RANK_TOLERANCE
        moving = np.zeros(mechanism.nv, dtype=bool)
        moving[~fixed] = loose
        names = [n for n in mechanism.joint_names if moving[mechanism.v_slices[n]].any()]
        missing = int((~fixed).sum() - rank)
        raise ClosureError(
            f"The velocities given at joints {', '.join(given) or 'none'} leave {missing} freedom(s): "
            f"joints {', '.join(names)} are not determined. Give {missing} more of them.",
            joints=tuple(names),
        )
    return completed


def nearest_velocity(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    """The velocity nearest to v that keeps everything closed, shape (nv,)."""
    jacobians = [constraint.jacobian for constraint in constraints(mechanism, q)]
    return np.asarray(v - least_norm(mechanism, jacobians, [J @ v for J in jacobians])[0])


def constraint_directions(S: Floats) -> Floats:
    """An orthonormal basis C (6, 6 - k) of the directions a joint with subspace S constrains."""
    left, values, _ = np.linalg.svd(S)
    rank = int((values > RANK_TOLERANCE).sum())
    return left[:, rank:]


class _Places:
    """Where the links of a mechanism are at a configuration, and which twists its joints allow."""

    def __init__(self, mechanism: Mechanism, q: Floats) -> None:
        self.mechanism = mechanism
        self.poses: dict[str, Floats] = {mechanism.base: np.eye(4)}
        self.steps: dict[str, Floats] = {}  # T_parent_child by joint
        self.subspaces: dict[str, Floats] = {}
        for joint in mechanism.topology.outward:
            T_parent_child, S = joint_motion(joint, q[mechanism.q_slices[joint.name]])
            self.poses[joint.child] = self.poses[joint.parent] @ T_parent_child
            self.steps[joint.name] = T_parent_child
            self.subspaces[joint.name] = S

    def twists(self, v: Floats) -> dict[str, Floats]:
        """The twist of every link by name."""
        found = {self.mechanism.base: np.zeros(6)}
        for joint in self.mechanism.topology.outward:
            carried = spatial.inverse_adjoint(self.steps[joint.name]) @ found[joint.parent]
            found[joint.child] = carried + self.subspaces[joint.name] @ v[self.mechanism.v_slices[joint.name]]
        return found


def _loop_error(places: _Places, loop: Loop) -> tuple[Floats, Floats, Floats]:
    """The relative pose of a loop's sides, the constrained directions and the error twist."""
    T_frame_child = loop_pose(loop, places.poses)
    q_best = loop.type.coordinates(loop.axes, loop.pitch, T_frame_child)
    T_best = loop.type.pose(loop.axes, loop.pitch, q_best)
    C = constraint_directions(loop.type.subspace(loop.axes, loop.pitch, T_best))
    return T_frame_child, C, spatial.logarithm(spatial.inverse_pose(T_best) @ T_frame_child)


def _loop_constraint(places: _Places, loop: Loop) -> Constraint:
    mechanism = places.mechanism
    _, C, error = _loop_error(places, loop)
    T_side_world = spatial.inverse_pose(places.poses[loop.successor] @ loop.successor_placement)
    J = np.zeros((6, mechanism.nv))
    outward, inward = loop_paths(mechanism, loop)
    for sign, path in ((1.0, outward), (-1.0, inward)):
        for joint in path:
            Ad_side_child = spatial.adjoint(T_side_world @ places.poses[joint.child])
            J[:, mechanism.v_slices[joint.name]] += sign * Ad_side_child @ places.subspaces[joint.name]
    return Constraint(loop.name, C.T @ error, C.T @ J, C)


def coupling_error(mechanism: Mechanism, coupling: Coupling, q: Array) -> Array:
    """By how much a coupling misses, q_joint - ratio q_source - offset, for floats or symbols, shape (1,)."""
    here, source = (q[mechanism.q_slices[n]] for n in (coupling.joint, coupling.source))
    return np.asarray(here - coupling.ratio * source - coupling.offset)


def _largest(values: Floats) -> float:
    return float(np.abs(values).max(initial=0.0))
