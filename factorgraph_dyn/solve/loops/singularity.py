"""Why a problem with loops has no answer, several, or a badly conditioned one, in names of joints.

Looks at the dense system in the unknown accelerations, the sought torques and the constraint forces,

    [ M_u  -B  -J^T ] [a_u   ]     [ tau_known - h - M_k a_k ]
    [ J_u   0    0  ] [tau   ]  =  [ gamma - J_k a_k         ]
                      [lambda]

with J a = gamma from ``closure_rows``, and rows and columns scaled to order one. Undetermined constraint forces are no
fault: they are internal wrenches. Run only where the quick estimates of the elimination are suspicious or it failed.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.equations import Known, State, evaluate_state
from factorgraph_dyn.equations.inputs import Inputs, joint_forces
from factorgraph_dyn.errors import (
    ClosureError,
    FactorGraphDynError,
    NearSingularWarning,
    ResidualError,
    SingularSystemError,
)
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.sizes.carried import usual_inertia
from factorgraph_dyn.model.sizes.units import natural
from factorgraph_dyn.motion.closure import faint_values, rank_tolerance
from factorgraph_dyn.motion.random_states import lost_closures
from factorgraph_dyn.numerics.rank import Decomposed, balanced
from factorgraph_dyn.numerics.tolerances import SINGULAR
from factorgraph_dyn.solve.loops.closure_rows import closure_rows
from factorgraph_dyn.solve.matrices.mass_matrix import bias, mass_matrix
from factorgraph_dyn.solve.own_units import own_known, own_state, own_wrenches
from factorgraph_dyn.spatial import Floats

NEARLY_SINGULAR_SYSTEM = 1e6  # condition numbers above it are worth a warning: ten digits are left of the answer
TAKES_PART = 1e-6  # share of a null direction above which an entry moves
NEXT_TO_NOTHING = 1e-14  # of the inertia that a joint carries, below which what it moves is rounding of that
LOST = 1e-8  # of its strength elsewhere, below which closure holds a motion no more
SEED = 0  # of the motion that is tried: the same question gets the same answer
CONTRADICTION = 1e-9  # misfit that makes a system a contradiction, relative to its right-hand side


@dataclass(frozen=True, eq=False)
class Kkt:
    """The dense system of a problem, scaled, with its singular values.

    Attributes:
        system: Scaled matrix.
        rhs: Scaled right-hand side.
        entries: Kind ("a", "tau" or "lambda") and index in the joint vector of every column.
        decomposed: The matrix by its singular values.
        inertia: What every freedom moves, in own units, shape (nv,).
    """

    system: Floats
    rhs: Floats
    entries: tuple[tuple[str, int], ...]
    decomposed: Decomposed
    inertia: Floats

    def undetermined(self) -> dict[str, set[int]]:
        """Indices of a and tau that null directions of the system move."""
        moved: dict[str, set[int]] = {"a": set(), "tau": set()}
        for (kind, index), directions in zip(self.entries, self.decomposed.null_space, strict=True):
            if kind in moved and np.abs(directions).max(initial=0.0) > TAKES_PART:
                moved[kind].add(index)
        return moved


def kkt(state: State, known: Known, external: Mapping[str, Floats] | None = None) -> Kkt:
    """The dense system of a problem, in the mechanism's own units."""
    known, external = own_known(state, known), own_wrenches(state, external)
    state = own_state(state)
    mechanism, rows = state.mechanism, closure_rows(state).kept
    J, M = rows.J, mass_matrix(mechanism, state.q)
    pushes = Inputs(("external",), np.zeros((mechanism.nv, 1)), {link: F[:, None] for link, F in external.items()})
    h = bias(mechanism, state.q, state.v) - joint_forces(state, pushes)[:, 0]
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
    rhs = np.concatenate([tau - h - M @ a, rows.gamma - J @ a])
    entries = (
        *(("a", int(i)) for i in unknown),
        *(("tau", int(i)) for i in sought),
        *(("lambda", i) for i in range(len(J))),
    )
    scaled = balanced(system)
    return Kkt(scaled.matrix, scaled.rows * rhs, entries, scaled.decomposed, np.diag(M))


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
    _warn_of_needles(state, known, dense.inertia)
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
    condition = dense.decomposed.condition
    if condition > NEARLY_SINGULAR_SYSTEM:
        warnings.warn(
            f"Mechanism {mechanism.name!r} is close to a singular configuration: condition number "
            f"{condition:.1e}. The answer satisfies the equations, but changes by up to that factor "
            "times a change of the state.",
            NearSingularWarning,
            stacklevel=5,
        )


def _warn_of_needles(state: State, known: Known, inertia: Floats) -> None:
    """Warn of freedoms whose inertia is less than rounding of what they carry, as about the axis of a thin rod."""
    faint = (inertia < NEXT_TO_NOTHING * usual_inertia(own_state(state).mechanism)) & (inertia > 0) & ~known.a_mask
    if faint.any():
        names = _names(state.mechanism, set(np.flatnonzero(faint).tolist()))
        warnings.warn(
            f"Joints {', '.join(names)} of mechanism {state.mechanism.name!r} move less inertia than rounding of what "
            "they carry; their accelerations may have no digits. Give links inertia, joints armature, or use a kernel.",
            NearSingularWarning,
            stacklevel=7,
        )


def warn_of_lost_closure(state: State) -> bool:
    """Whether loops hold less than they do elsewhere, as where the bars of a linkage lie in a line; warns if so."""
    mechanism = state.mechanism
    try:
        lost = lost_closures(mechanism, state.q, None, LOST)
    except ClosureError:  # nothing to compare with
        return False
    if lost:
        warnings.warn(
            f"Mechanism {mechanism.name!r} is at a singular configuration: closure by {', '.join(map(repr, lost))} "
            "leaves more freedoms here than elsewhere. The answer satisfies the equations at this state, but is not "
            "the limit of those beside it; kernels give nan here.",
            NearSingularWarning,
            stacklevel=8,
        )
    return bool(lost)


def warn_of_bent_closure(state: State) -> bool:
    """Whether motions that loops allow to first order are closed to second order by no acceleration; warns if so.

    Of a motion v with J v = 0 closure asks J a = gamma, quadratic in v, which must lie in the range of J. Where loops
    only repeat each other it does for every such v. Where it does not for a random one, the mechanism is locked, as a
    chain at full stretch whose end is pinned, or several ways part here. Nothing is compared with states elsewhere.
    """
    own = own_state(state)
    mechanism, rows = own.mechanism, closure_rows(own)
    free, tolerance = rows.decomposed.null_space, rank_tolerance(mechanism)
    motion = free @ np.random.default_rng(SEED).normal(size=free.shape[1])
    motion /= np.abs(motion).max(initial=np.finfo(float).tiny)
    bent = closure_rows(evaluate_state(mechanism, own.q, motion * natural(mechanism).v))
    gamma = bent.gamma / bent.row_units
    misfit = np.abs(gamma - rows.decomposed.range @ (rows.decomposed.range.T @ gamma))
    # What is linear and less than the tolerance is rounding of a file; what is quadratic comes with the root of it.
    if not misfit.max(initial=0.0) > max(tolerance, np.sqrt(tolerance) * np.abs(gamma).max(initial=0.0)):
        return False
    loops = dict.fromkeys(name for name, part in zip(rows.names, misfit, strict=True) if part > 0.5 * misfit.max())
    held = np.array([np.abs(J).max(initial=0.0) > 0 for J in rows.own_J[[n in loops for n in rows.names]].T])
    joints = _names(mechanism, set(np.flatnonzero(held & (np.abs(motion) > TAKES_PART)).tolist()))
    warnings.warn(
        f"Mechanism {mechanism.name!r} is at a singular configuration: closure by {', '.join(map(repr, loops))} lets "
        f"joints {', '.join(joints)} move to first order, and not to second order: they are locked, or several ways "
        "part here. The answer satisfies the equations at this state, but hardly any motion begins with it; kernels "
        "give nan here.",
        NearSingularWarning,
        stacklevel=8,
    )
    return True


def warn_of_faint_closure(state: State) -> bool:
    """Whether loops hold a motion by less than counts, and by more than rounding does; warns if so.

    A point of a link that is a little off the link's axis, because a file has pi in eight digits, would lock it.
    """
    mechanism, rows = state.mechanism, closure_rows(own_state(state))
    left, values, _ = np.linalg.svd(rows.own_J, full_matrices=False)
    shares, faint = faint_values(values, rank_tolerance(mechanism))
    if not len(faint):
        return False
    parts = np.abs(left[:, faint]).max(axis=1)
    names = dict.fromkeys(name for name, part in zip(rows.names, parts, strict=True) if part > 0.5 * parts.max())
    warnings.warn(
        f"Closure by {', '.join(map(repr, names))} holds a motion of mechanism {mechanism.name!r} by "
        f"{shares[faint[0]]:.1g} of what it may hold others by. Up to {rank_tolerance(mechanism):g} may be rounding of "
        "a file: the motion is taken as free here, and as held by kernels. Mend the placements, or give more digits.",
        NearSingularWarning,
        stacklevel=8,
    )
    return True


def contradiction(
    state: State, known: Known, external: Mapping[str, Floats] | None, error: ResidualError
) -> FactorGraphDynError:
    """The error for given values that no answer satisfies, with loops and joints named."""
    mechanism, found = state.mechanism, closure_rows(state)
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
    singular = ", or leave the singular configuration" if mechanism.loops else " to hybrid_dynamics"
    return ResidualError(
        f"The motors at joints {', '.join(motors) or 'none'} of mechanism {mechanism.name!r} cannot produce "
        f"this motion: a torque is missing along joints {', '.join(_names(mechanism, set(rows)))}. Seek more "
        f"torques with actuated=[...], give fewer accelerations{singular}.",
        joints=tuple(_names(mechanism, set(rows))),
    )


def _names(mechanism: Mechanism, indices: set[int]) -> list[str]:
    return [
        name
        for name in mechanism.joint_names
        if indices & set(range(mechanism.v_slices[name].start, mechanism.v_slices[name].stop))
    ]
