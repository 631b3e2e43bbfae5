"""Loops and couplings at a state: how far they are from closed, and the velocities that keep them closed.

The error of a loop is what is left of its relative pose after the best motion of the loop joint,
seen along the directions C that the joint constrains (S^T C = 0, C orthonormal):

    e = C^T log( T_frame_child(q_best)^-1  T_frame_child )         (m, rad)
    J = C^T ( J_child - Ad_child_frame J_frame )                   e_dot = J v on the closure

and of a coupling it is q_joint - ratio q_source - offset. What counts as closed is measured in the mechanism's own
size, so that a mechanism in millimetres is judged as the same one in metres:

    error   <=  tolerance                                          rad, and lengths in units of the size
    rate    <=  tolerance max(largest speed, REST own rate)        rad/s, and lengths likewise

Only joints between a loop's two sides are looked at. Work is done once a state.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.errors import ClosureError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.loop_groups import Group, loop_groups, loop_paths
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Coupling, Joint, Loop
from factorgraph_dyn.model.sizes.units import measured, natural_rate
from factorgraph_dyn.motion.gaps import Gap
from factorgraph_dyn.motion.kinematics import joint_motion
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING, RANK_TOLERANCE
from factorgraph_dyn.spatial import Array, Floats

COUPLED_TOLERANCE = 1e-14  # the same share of couplings, which are independent by their structure
UNSEEN_SHARE = 1e-13  # of a joint's motion: what a loop sees of it below is none
REST = 1e-3  # of the rate at which a mechanism falls over: what is slower is at rest, up to rounding


def rank_tolerance(mechanism: Mechanism) -> float:
    """The share of the largest singular value below which one is zero; loops that may be open repeat each other so."""
    return max(RANK_TOLERANCE, mechanism.closure_tolerance)


def group_tolerance(mechanism: Mechanism, group: Group) -> float:
    """The same for one group: couplings that close no ring are independent, however far apart their ratios are."""
    is_tree_of_couplings = min(group.members) >= len(mechanism.loops) and len(group.members) < len(group.joints)
    return COUPLED_TOLERANCE if is_tree_of_couplings else rank_tolerance(mechanism)


def faint_values(
    values: Floats, tolerance: float, rounding: float = RANK_ROUNDING
) -> tuple[Floats, npt.NDArray[np.intp]]:
    """Singular values of closure as shares, levers being of order one in own units, and which of them are faint."""
    shares = values / max(values.max(initial=0.0), 1.0)
    return shares, np.flatnonzero((shares > rounding) & (shares <= tolerance))


@dataclass(frozen=True)
class Constraint:
    """The closure error of one loop or coupling and its Jacobian, J v = d(error)/dt.

    Attributes:
        name: Of the loop or coupling.
        error: m or rad, shape (rows,).
        entries: Entries of v that move it.
        columns: The Jacobian there, shape (rows, entries).
        nv: Number of all velocities.
        directions: C of a loop, in its frame on the successor, shape (6, rows); None of a coupling.
        slides: Whether the error of a coupling is a length.
        weight: What its rows are multiplied by where they are weighed against others: a ratio is no strength.
    """

    name: str
    error: Floats
    entries: npt.NDArray[np.int64]
    columns: Floats
    nv: int
    directions: Floats | None = None
    slides: bool = False
    weight: float = 1.0

    @cached_property
    def jacobian(self) -> Floats:
        """All columns, shape (rows, nv)."""
        J = np.zeros((len(self.error), self.nv))
        J[:, self.entries] = self.columns
        return J

    @cached_property
    def gap(self) -> Gap:
        """How far it is open."""
        return self._gap(self.error)

    def rate(self, v: Floats) -> Gap:
        """How fast it opens at a velocity."""
        return self._gap(self.columns @ v[self.entries])

    def _gap(self, values: Floats) -> Gap:
        if self.directions is None:
            size = float(np.abs(values).max(initial=0.0))
            return Gap(0.0, size) if self.slides else Gap(size, 0.0)
        twist = self.directions @ values
        return Gap(float(np.linalg.norm(twist[:3])), float(np.linalg.norm(twist[3:])))


def constraints(mechanism: Mechanism, q: Floats, members: Iterable[int] | None = None) -> list[Constraint]:
    """The closure errors of all loops and couplings at a configuration, with their Jacobians.

    Args:
        mechanism: The mechanism.
        q: The configuration, shape (nq,).
        members: Which ones, loops counted first and then couplings; all by default.
    """
    motions = Motions(mechanism, q)
    parts: tuple[Loop | Coupling, ...] = (*mechanism.loops, *mechanism.couplings)
    chosen = parts if members is None else [parts[i] for i in members]
    return [motions.loop(part) if isinstance(part, Loop) else motions.coupling(part) for part in chosen]


def stacked_jacobian(mechanism: Mechanism, found: list[Constraint]) -> Floats:
    """The Jacobians of all constraints, one below the other, shape (rows, nv)."""
    return np.vstack([np.zeros((0, mechanism.nv)), *(constraint.jacobian for constraint in found)])


# ---- how far a state is from closed


def closure_error(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> float:
    """The largest closure error of the configuration and, where given, of the velocity; m, rad and per s."""
    found = constraints(mechanism, q)
    gaps = [c.gap for c in found] + ([] if v is None else [c.rate(v) for c in found])
    return max((max(gap) for gap in gaps), default=0.0)


def closing_errors(mechanism: Mechanism, q: Floats, v: Floats, least: float) -> tuple[Floats, Floats]:
    """How far what closure misses at a state may have moved each freedom, and its velocity, shape (nv,) each.

    Args:
        mechanism: The mechanism.
        q, v: The state, shapes (nq,) and (nv,).
        least: What is missed at least, as angles and lengths.
    """
    gains, found = np.ones(mechanism.nv), constraints(mechanism, q)
    for group in loop_groups(mechanism):
        members = [found[i] for i in group.members]
        weights, J = row_weights(members), group_jacobian(members, group)
        inverse = np.linalg.pinv(weights[:, None] * J, rcond=group_tolerance(mechanism, group)) * weights
        moved = np.linalg.norm(inverse, axis=1)
        gains[group.entries] = np.maximum(moved, 1.0)
    opening = max([least, *(max(c.gap) for c in found)])
    return opening * gains, max([opening, *(max(c.rate(v)) for c in found)]) * gains


def relative_error(mechanism: Mechanism, q: Floats) -> float:
    """The largest closure error of a configuration: rad, and lengths in parts of the mechanism's size."""
    return max((max(c.gap) for c in _in_own_size(mechanism, q)), default=0.0)


def openness(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> float:
    """How far a state is from closed, in parts of what the mechanism allows: at most 1 is closed."""
    found = _in_own_size(mechanism, q)
    parts = [max(c.gap) / mechanism.closure_tolerance for c in found]
    if v is not None:
        v_own = v / measured(mechanism).v
        allowed = _allowed_rate(mechanism, v_own)
        parts += [max(c.rate(v_own)) / allowed for c in found]
    return max(parts, default=0.0)


def is_closed(mechanism: Mechanism, q: Floats, v: Floats | None = None) -> bool:
    """Whether a state closes all loops and couplings as well as the mechanism demands."""
    return openness(mechanism, q, v) <= 1.0


def check_closed(mechanism: Mechanism, q: Floats, v: Floats) -> None:
    """Raise a ClosureError naming the loop or coupling that a state violates, and by how much."""
    for error in _misses(mechanism, q, v):
        raise error


def worst_miss(mechanism: Mechanism, q: Floats, v: Floats) -> ClosureError | None:
    """The error of the loop or coupling that a state misses most, by the number that `closure_error` gives."""
    return max(_misses(mechanism, q, v), key=lambda error: float(error.details["distance"]), default=None)


def _misses(mechanism: Mechanism, q: Floats, v: Floats) -> Iterator[ClosureError]:
    """An error for each loop or coupling that q is off, and for each that v breaks."""
    own = measured(mechanism)
    allowed, allowed_rate = mechanism.closure_tolerance, _allowed_rate(mechanism, v / own.v)
    for constraint in _in_own_size(mechanism, q):
        if max(gap := constraint.gap) > allowed:
            yield ClosureError(
                f"q is off the closure of {constraint.name!r} by {gap.text(own.length, allowed)}. "
                "Use q = mechanism.close(q).",
                constraint=constraint.name,
                distance=max(gap.angle, gap.distance * own.length),
            )
        if max(rate := constraint.rate(v / own.v)) > allowed_rate:
            yield ClosureError(
                f"v breaks the closure of {constraint.name!r} by {rate.text(own.length, allowed_rate, '/s')}. Use "
                "v = mechanism.complete_velocity(q, v, given=[...]) with the joints whose velocity you choose.",
                constraint=constraint.name,
                distance=max(rate.angle, rate.distance * own.length),
            )


def _in_own_size(mechanism: Mechanism, q: Floats) -> list[Constraint]:
    """All constraints at a configuration, with the mechanism's size as the unit of length."""
    own = measured(mechanism)
    return constraints(own.mechanism, q / own.q)


def _allowed_rate(mechanism: Mechanism, v: Floats) -> float:
    """How fast a closure may open at a velocity in own units."""
    speed = float(np.abs(v).max(initial=0.0))
    return mechanism.closure_tolerance * max(speed, REST * natural_rate(mechanism))


# ---- velocities that keep closed


def least_norm(
    mechanism: Mechanism,
    found: Sequence[Constraint],
    targets: Sequence[Floats],
    free: npt.NDArray[np.bool_] | None = None,
) -> tuple[Floats, int]:
    """The shortest x that fits J x = b best, shape (nv,), and the rank of J.

    Args:
        mechanism: The mechanism.
        found: All its constraints.
        targets: b of each constraint, shape (rows,).
        free: Entries of x that may be other than zero, shape (nv,); all by default.
    """
    x, rank = np.zeros(mechanism.nv), 0
    for group in loop_groups(mechanism):
        moves = np.ones(len(group.entries), dtype=bool) if free is None else free[group.entries]
        members = [found[i] for i in group.members]
        weights = row_weights(members)
        J = weights[:, None] * group_jacobian(members, group)[:, moves]
        b = weights * np.concatenate([targets[i] for i in group.members])
        x[group.entries[moves]], _, part_rank, _ = np.linalg.lstsq(J, b, rcond=group_tolerance(mechanism, group))
        rank += int(part_rank)
    return x, rank


def group_jacobian(found: Sequence[Constraint], group: Group) -> Floats:
    """The Jacobian of a group's constraints at the group's own entries, shape (rows, entries)."""
    blocks = [np.zeros((len(c.error), len(group.entries))) for c in found]
    for block, constraint in zip(blocks, found, strict=True):
        block[:, np.searchsorted(group.entries, constraint.entries)] = constraint.columns
    return np.vstack(blocks)


def row_weights(found: Sequence[Constraint]) -> Floats:
    """What the rows of constraints are multiplied by, so that none is strong by its unit, shape (rows,)."""
    return np.concatenate([np.full(len(constraint.error), constraint.weight) for constraint in found])


def nearest_velocity(mechanism: Mechanism, q: Floats, v: Floats) -> Floats:
    """The velocity nearest to v that keeps everything closed, shape (nv,)."""
    own = measured(mechanism)
    found = _in_own_size(mechanism, q)
    u = v / own.v
    for _ in range(2):  # of what stands still once leaves as much as v is inexact, through gears a thousand times that
        u = u - least_norm(mechanism, found, [c.columns @ u[c.entries] for c in found])[0]
    return np.asarray(u * own.v)


def complete_velocity(mechanism: Mechanism, q: Floats, v: Floats, given: tuple[str, ...]) -> Floats:
    """The velocities with J v = 0 that agree with v at the given joints, shape (nv,)."""
    fixed = np.zeros(mechanism.nv, dtype=bool)
    for name in given:
        fixed[mechanism.v_slice(name)] = True
    own = measured(mechanism)
    found = _in_own_size(mechanism, q)
    completed = np.where(fixed, v / own.v, 0.0)
    targets = [-c.columns @ completed[c.entries] for c in found]
    solution, rank = least_norm(mechanism, found, targets, ~fixed)
    completed += solution
    allowed = _allowed_rate(mechanism, completed)
    for constraint in found:
        if max(rate := constraint.rate(completed)) > allowed:
            raise ClosureError(
                f"The velocities given at joints {', '.join(given)} contradict the closure of "
                f"{constraint.name!r} by {rate.text(own.length, allowed, '/s')}. Give fewer joints.",
                constraint=constraint.name,
                distance=max(rate.angle, rate.distance * own.length),
            )
    if rank < (~fixed).sum():
        raise _undetermined(mechanism, stacked_jacobian(mechanism, found), fixed, rank, given)
    return np.where(fixed, v, completed * own.v)


def _undetermined(
    mechanism: Mechanism, J: Floats, fixed: npt.NDArray[np.bool_], rank: int, given: tuple[str, ...]
) -> ClosureError:
    """The error that names the joints which given velocities leave free."""
    _, _, rows = np.linalg.svd(J[:, ~fixed])
    moving = np.zeros(mechanism.nv, dtype=bool)
    moving[~fixed] = np.abs(rows[rank:]).max(axis=0) > rank_tolerance(mechanism)
    names = [n for n in mechanism.joint_names if moving[mechanism.v_slices[n]].any()]
    missing = int((~fixed).sum() - rank)
    return ClosureError(
        f"The velocities given at joints {', '.join(given) or 'none'} leave {missing} freedom(s): "
        f"joints {', '.join(names)} are not determined. Give {missing} more of them.",
        joints=tuple(names),
    )


# ---- one loop, one coupling


@kept_with_first
def constant_directions(loop: Loop) -> Floats | None:
    """The directions that a loop constrains; None where they vary, as a universal joint's do."""
    S = loop.constant_subspace
    return None if S is None else np.asarray(loop.type.constrained(loop.axes, S))


def coupling_error(mechanism: Mechanism, coupling: Coupling, q: Array) -> Array:
    """By how much a coupling misses, q_joint - ratio q_source - offset, for floats or symbols, shape (1,)."""
    here, source = (q[mechanism.q_slices[n]] for n in (coupling.joint, coupling.source))
    return np.asarray(here - coupling.ratio * source - coupling.offset)


class Motions:
    """The joints of a mechanism at a configuration, each looked at once and only where a loop needs it."""

    def __init__(self, mechanism: Mechanism, q: Array) -> None:
        self.mechanism = mechanism
        self.q = q
        self.known: dict[str, tuple[Array, Array]] = {}

    def of(self, joint: Joint) -> tuple[Array, Array]:
        """The pose T_parent_child and the subspace of a joint."""
        if joint.name not in self.known:
            self.known[joint.name] = joint_motion(joint, self.q[self.mechanism.q_slices[joint.name]])
        return self.known[joint.name]

    def side(self, path: Sequence[Joint], placement: Floats) -> tuple[Array, list[Array]]:
        """The pose of a loop's side in the link where its ways meet, and how each joint on the way moves it."""
        T_link_side, columns = placement, []
        for joint in path:
            T_parent_child, S = self.of(joint)
            columns.append(spatial.inverse_adjoint(T_link_side) @ S)
            T_link_side = T_parent_child @ T_link_side
        return T_link_side, columns

    def relative(self, loop: Loop) -> tuple[Array, Array, npt.NDArray[np.int64]]:
        """How a loop's sides are placed and move, for floats or symbols.

        The pose T_frame_child (4, 4), the Jacobian J (6, entries) of the successor's side beside the predecessor's, in
        the successor's frame, and the entries of v that it is of.
        """
        outward, inward = loop_paths(self.mechanism, loop)
        T_meet_child, child_columns = self.side(outward, loop.successor_placement)
        T_meet_frame, frame_columns = self.side(inward, loop.predecessor_placement)
        T_frame_child = spatial.inverse_pose(T_meet_frame) @ T_meet_child
        Ad_child_frame = spatial.inverse_adjoint(T_frame_child)
        J = np.hstack([np.zeros((6, 0)), *child_columns, *(-Ad_child_frame @ column for column in frame_columns)])
        return T_frame_child, J, self._entries([joint.name for joint in (*outward, *inward)])

    def loop(self, loop: Loop) -> Constraint:
        """The constraint of a loop."""
        T_frame_child, J, entries = self.relative(loop)
        q_best = loop.type.coordinates(loop.axes, loop.pitch, T_frame_child)
        T_best = loop.type.pose(loop.axes, loop.pitch, q_best)
        C = constant_directions(loop)
        if C is None:
            C = loop.type.constrained(loop.axes, loop.type.subspace(loop.axes, loop.pitch, T_best))
        error = spatial.logarithm(spatial.inverse_pose(T_best) @ T_frame_child)
        seen = C.T @ J
        seen[np.abs(seen) <= UNSEEN_SHARE * np.abs(J).max(axis=0, initial=0.0)] = (
            0.0  # a loop that holds nothing has no rank
        )
        return Constraint(loop.name, C.T @ error, entries, seen, self.mechanism.nv, C)

    def coupling(self, coupling: Coupling) -> Constraint:
        """The constraint of a coupling."""
        error = coupling_error(self.mechanism, coupling, self.q)
        entries = self._entries((coupling.joint, coupling.source))
        slides = self.mechanism.joint_by_name[coupling.joint].is_slider
        columns = np.array([[1.0, -coupling.ratio]])
        weight = float(np.exp2(-np.round(np.log2(np.hypot(1.0, coupling.ratio)))))  # a power of two rounds nothing
        return Constraint(coupling.name, error, entries, columns, self.mechanism.nv, None, slides, weight)

    def _entries(self, names: Iterable[str]) -> npt.NDArray[np.int64]:
        slices = [self.mechanism.v_slices[name] for name in names]
        return np.array([i for s in slices for i in range(s.start, s.stop)], dtype=int)
