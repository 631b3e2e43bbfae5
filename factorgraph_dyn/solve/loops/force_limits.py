"""Torques within limits: a small quadratic program over what the physics leaves free.

    tau = tau_0 + N z       N: the torques that cause no motion, found by probing the elimination

Fixing tau and eliminating once more gives how every other objective answers to z, so that

    minimise |e_0 + E z|^2   subject to   lower <= tau_0 + N z <= upper

has as many unknowns as there are motors too many, whatever the size of the mechanism.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from factorgraph_dyn.errors import FactorGraphDynError, InputError
from factorgraph_dyn.spatial import Floats

ROUNDING = 1e-9  # share of a limit by which rounding may exceed it
NEARLY_MOST = 0.999  # torques that exceed their limits by this share of the largest excess are named
SLACK_WEIGHT = 1e-8  # of z beside the violation, when limits cannot hold


def choose_within(
    tau: Floats,
    N: Floats,
    e: Floats,
    E: Floats,
    lower: Floats,
    upper: Floats,
    names: Sequence[str],
    units: Floats,
) -> Floats:
    """The z of the quadratic program, shape (columns of N,).

    Args:
        tau: Torques at z = 0, shape (m,).
        N: shape (m, k).
        e: Objectives' misfits at z = 0, shape (r,).
        E: How they answer to z, shape (r, k).
        lower: Shape (m,); minus infinity where there is no limit.
        upper: Shape (m,).
        names: Joint of each torque.
        units: Of the torques, in those of the caller, shape (m,).

    Raises:
        InputError: No torques that cause this motion are within the limits.
    """
    rows = [(N[i], lower[i] - tau[i]) for i in np.flatnonzero(np.isfinite(lower))]
    rows += [(-N[i], tau[i] - upper[i]) for i in np.flatnonzero(np.isfinite(upper))]
    C = np.array([row for row, _ in rows]).reshape(len(rows), N.shape[1])
    b = np.array([bound for _, bound in rows])
    # The solver takes what is below 1e-15 for zero: torques are to be of order one, whatever the unit of time.
    size = max(float(np.abs(tau).max(initial=0.0)), float(b.max(initial=0.0))) or 1.0
    solved = _quadratic_program(E.T @ E, -E.T @ e / size, C, b / size) if N.shape[1] else None
    if solved is None:
        raise _cannot_hold(tau / size, N, lower / size, upper / size, C, b / size, names, units * size)
    return solved * size


def violated(tau: Floats, lower: Floats, upper: Floats) -> bool:
    """Whether torques exceed their limits by more than rounding."""
    room = ROUNDING * float(np.abs(tau).max(initial=0.0))
    return bool(((tau < lower - room) | (tau > upper + room)).any())


def _cannot_hold(
    tau: Floats, N: Floats, lower: Floats, upper: Floats, C: Floats, b: Floats, names: Sequence[str], units: Floats
) -> FactorGraphDynError:
    """The error that says by how much the limits must give."""
    k = N.shape[1]
    # minimise s^2 subject to C z + s >= b, s >= 0
    G = SLACK_WEIGHT * np.eye(k + 1)
    G[k, k] = 1.0
    widened = np.vstack([np.hstack([C, np.ones((len(C), 1))]), np.eye(k + 1)[k:]])
    solved = _quadratic_program(G, np.zeros(k + 1), widened, np.append(b, 0.0))
    best = tau if solved is None else tau + N @ solved[:k]
    over = np.maximum(lower - best, best - upper)
    most = np.flatnonzero(over > NEARLY_MOST * float(over.max()))
    best = units * best
    worst = float((units * over)[most].max())
    held = [f"{names[i]} ({best[i]:.4g})" for i in most.tolist()]
    return InputError(
        f"The torque limits cannot hold: every choice of torques that causes this motion exceeds some limit by "
        f"at least {worst:.3g} (N m or N). Nearest choice, at joints: {', '.join(held)}. Raise the limits, "
        "slow down the motion, or add motors.",
        violation=worst,
        torques=best,
    )


def _quadratic_program(G: Floats, g: Floats, C: Floats, b: Floats) -> Floats | None:
    """The x that minimises x^T G x / 2 - g^T x with C x >= b, or None where there is no such x."""
    solver = _solver()
    scale = float(np.trace(G)) / len(G) or 1.0
    try:
        solution = solver.solve_qp(G / scale, g / scale, C.T.copy(), b)[0]
    except ValueError as error:
        if "inconsistent" in str(error):
            return None
        raise InputError(
            "The objective leaves torques free that are to be chosen within limits. Give every motor a "
            f"positive weight in MinimumTorque. ({error})"
        ) from error
    return np.asarray(solution, dtype=np.float64)


def _solver() -> Any:
    try:
        import quadprog  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        raise InputError(
            "Torque limits need a QP solver, and quadprog is not installed. Run: "
            "pip install 'factorgraph_dyn[qp]' (or leave limits out)."
        ) from None
    return quadprog
