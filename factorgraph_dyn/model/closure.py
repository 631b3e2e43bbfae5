"""Closing loops and couplings: configurations and velocities that satisfy them.

The error of a loop is what is left of its relative pose after the best motion of the loop joint,
seen along the directions C that the joint constrains (S^T C = 0, C orthonormal):

    e = C^T log( T_frame_child(q_best)^-1  T_frame_child )         (m, rad)
    J = C^T ( J_child - Ad_child_frame J_frame )                   e_dot = J v on the closure

and of a coupling it is q_joint - ratio q_source - offset. Gauss-Newton steps of least norm bring
e to zero and stay near the start, so that the assembly mode is kept. Work is done once a state.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.model.kinematics import integrate, link_jacobian, link_poses, loop_pose
from factorgraph_dyn.model.parts import Loop
from factorgraph_dyn.spatial import Floats

if TYPE_CHECKING:
    from factorgraph_dyn.model.mechanism import Mechanism

CLOSED = 1e-8  # largest closure error of a state that counts as closed, m, rad, and per s
CONVERGED = 1e-13  # closure error at which Gauss-Newton stops
RANK_TOLERANCE = 1e-6  # singular values below this share of the largest count as zero
MAX_ITERATIONS = 200
MAX_STEP = 0.5  # longest Gauss-Newton step, rad or m, so that the assembly mode is kept
RANDOM_TRIES = 100


@dataclass(frozen=True)
class Constraint:
    """The closure error of one loop or coupling and its Jacobian, J v = d(error)/dt."""

    name: str
    error: Floats  # (rows,)
    jacobian: Floats  # (rows, nv)


def constraints(mechanism: Mechanism, q: Floats) -> list[Constraint]:
    """The closure errors of all loops and couplings at a configuration."""
    poses = link_poses(mechanism, q)
    found = [_loop_constraint(mechanism, q, poses, loop) for loop in mechanism.loops]
    for coupling in mechanism.couplings:
        row = np.zeros((1, mechanism.nv))
        row[0, mechanism.v_slices[coupling.joint]] = 1.0
        row[0, mechanism.v_slices[coupling.source]] -= coupling.ratio
        here, source = (q[mechanism.q_slices[n]] for n in (coupling.joint, coupling.source))
        found.append(Constraint(coupling.name, here - coupling.ratio * source - coupling.offset, row))
    return found


def closure_error(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> float:
    """The largest closure error of the configuration and, where given, of the velocity."""
    error = 0.0
    for constraint in constraints(mechanism, q):
        error = max(error, float(np.abs(constraint.error).max(initial=0.0)))
        if v is not None:
            error = max(error, float(np.abs(constraint.jacobian @ v).max(initial=0.0)))
    return error


def is_closed(mechanism: Mechanism, q: Floats) -> bool:
    """Whether a configuration closes all loops and couplings."""
    return closure_error(mechanism, q) <= CLOSED


def check_closed(mechanism: Mechanism, q: Floats, v: Floats) -> None:
    """Raise a ClosureError naming the loop or coupling that a state violates, and by how much."""
    for constraint in constraints(mechanism, q):
        error = float(np.abs(constraint.error).max(initial=0.0))
        if error > CLOSED:
            raise ClosureError(
                f"q is off the closure of {constraint.name!r} by {error:.3g} (m or rad; allowed "
                f"{CLOSED:g}). Use q = mechanism.close(q).",
                constraint=constraint.name,
                distance=error,
            )
        speed = float(np.abs(constraint.jacobian @ v).max(initial=0.0))
        if speed > CLOSED * max(1.0, float(np.abs(v).max(initial=0.0))):
            raise ClosureError(
                f"v breaks the closure of {constraint.name!r} by {speed:.3g} (m/s or rad/s; allowed "
                f"{CLOSED:g}). Use v = mechanism.complete_velocity(q, v, given=[...]) with the joints "
                "whose velocity you choose.",
                constraint=constraint.name,
                distance=speed,
            )


def close(mechanism: Mechanism, q: Floats, hold: tuple[str, ...] = ()) -> Floats:
    """The configuration nearest to q that closes everything, by Gauss-Newton with least-norm steps."""
    free = np.ones(mechanism.nv, dtype=bool)
    for name in hold:
        free[mechanism.v_slice(name)] = False
    best, best_error = q, np.inf
    for _ in range(MAX_ITERATIONS):
        found = constraints(mechanism, q)
        error = _stack_errors(found)
        size = float(np.abs(error).max(initial=0.0))
        if size < 0.5 * best_error:
            best, best_error = q, size
        elif size <= CLOSED:
            break  # rounding keeps it from falling further
        elif size < best_error:
            best, best_error = q, size
        if best_error <= CONVERGED:
            break
        J = np.vstack([constraint.jacobian for constraint in found])[:, free]
        step = np.zeros(mechanism.nv)
        step[free] = -np.linalg.lstsq(J, error, rcond=RANK_TOLERANCE)[0]
        longest = float(np.abs(step).max(initial=0.0))
        q = integrate(mechanism, q, step, min(1.0, MAX_STEP / longest) if longest else 1.0)
    if best_error > CLOSED:
        worst = max(constraints(mechanism, best), key=lambda c: float(np.abs(c.error).max(initial=0)))
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
    J = np.vstack([np.zeros((0, mechanism.nv)), *(c.jacobian for c in found)])
    completed = np.where(fixed, v, 0.0)
    target = -J @ completed
    solution, _, rank, _ = np.linalg.lstsq(J[:, ~fixed], target, rcond=RANK_TOLERANCE)
    completed[~fixed] = solution
    scale = max(1.0, float(np.abs(v).max(initial=0.0)))
    for constraint in found:
        speed = float(np.abs(constraint.jacobian @ completed).max(initial=0.0))
        if speed > CLOSED * scale:
            raise ClosureError(
                f"The velocities given at joints {', '.join(given)} contradict the closure of "
                f"{constraint.name!r} by {speed:.3g} m/s or rad/s. Give fewer joints.",
                constraint=constraint.name,
                distance=speed,
            )
    if rank < (~fixed).sum():
        _, _, rows = np.linalg.svd(J[:, ~fixed])
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


def random_closed_state(mechanism: Mechanism, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """A random closed configuration and a random velocity that keeps it closed."""
    neutral = np.concatenate([np.zeros(0), *(joint.type.neutral() for joint in mechanism.joints)])
    for attempt in range(RANDOM_TRIES):
        # Ever nearer to the neutral configuration, which most descriptions draw closed.
        reach = 0.9**attempt
        way = reach * rng.uniform(-1.0, 1.0, mechanism.nv)
        try:
            q = close(mechanism, integrate(mechanism, neutral, way))
        except ClosureError:
            continue
        J = np.vstack([c.jacobian for c in constraints(mechanism, q)])
        v = rng.normal(size=mechanism.nv)
        v -= np.linalg.lstsq(J, J @ v, rcond=RANK_TOLERANCE)[0]
        if closure_error(mechanism, q, v) <= CLOSED:
            return q, v
    raise ClosureError(
        f"No closed configuration of mechanism {mechanism.name!r} was found in {RANDOM_TRIES} tries "
        "near its neutral one. Check the placements of its loops."
    )


def constraint_directions(S: Floats) -> Floats:
    """An orthonormal basis C (6, 6 - k) of the directions a joint with subspace S constrains."""
    left, values, _ = np.linalg.svd(S)
    rank = int((values > RANK_TOLERANCE).sum())
    return left[:, rank:]


def _loop_constraint(mechanism: Mechanism, q: Floats, poses: dict[str, Floats], loop: Loop) -> Constraint:
    T_frame_child = loop_pose(loop, poses)
    q_best = loop.type.coordinates(loop.axes, loop.pitch, T_frame_child)
    T_best = loop.type.pose(loop.axes, loop.pitch, q_best)
    C = constraint_directions(loop.type.subspace(loop.axes, loop.pitch, T_best))
    error = spatial.logarithm(spatial.inverse_pose(T_best) @ T_frame_child)

    J_successor = link_jacobian(mechanism, q, loop.successor)
    J_child = spatial.inverse_adjoint(loop.successor_placement) @ J_successor
    J_predecessor = link_jacobian(mechanism, q, loop.predecessor)
    J_frame = spatial.inverse_adjoint(loop.predecessor_placement) @ J_predecessor
    J = J_child - spatial.inverse_adjoint(T_frame_child) @ J_frame
    return Constraint(loop.name, C.T @ error, C.T @ J)


def _stack_errors(found: list[Constraint]) -> Floats:
    return np.concatenate([np.zeros(0), *(constraint.error for constraint in found)])
