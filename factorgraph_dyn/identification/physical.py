"""The nearest parameters that bodies can have.

A body's moments of order two, one and zero are a positive semidefinite matrix (Wensing, Kim & Slotine, 2018), and
armature, damping and friction are not negative:

    minimise |y|^2   so that   p = mean + S y   has   [[tr(I) / 2 - I, h], [h^T, m]] >= floor   in every link

with S a square root of the covariance: near is what is probable, and what the data determine well hardly moves. A
semidefinite program for Clarabel, asked only where the mean is not possible. Runs once a log.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from factorgraph_dyn.errors import FactorGraphDynError
from factorgraph_dyn.identification.columns import Columns
from factorgraph_dyn.identification.posterior import Unknowns
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.spatial import Floats

LEAST_MOMENT = 1e-9  # of a link's size: eigenvalues of its matrix of moments are no smaller
SOLVER_TOLERANCE = 1e-10
_UPPER = ([0, 0, 1, 0, 1, 2, 0, 1, 2, 3], [0, 1, 1, 2, 2, 2, 3, 3, 3, 3])  # entries of Clarabel's cone, in its order


def moments(parameters: Floats) -> Floats:
    """The matrices of moments of rows of parameters, shape (..., 4, 4)."""
    m, h = parameters[..., 0], parameters[..., 1:4]
    xx, xy, yy, xz, yz, zz = np.moveaxis(parameters[..., 4:], -1, 0)
    half = 0.5 * (xx + yy + zz)
    rows = [[half - xx, -xy, -xz], [-xy, half - yy, -yz], [-xz, -yz, half - zz]]
    P = np.zeros((*m.shape, 4, 4))
    P[..., :3, :3] = np.moveaxis(np.array(rows), (0, 1), (-2, -1))
    P[..., :3, 3] = P[..., 3, :3] = h
    P[..., 3, 3] = m
    return P


def of_moments(P: Floats) -> Floats:
    """The parameters of matrices of moments, shape (..., 10)."""
    S = P[..., :3, :3]
    inertia = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    six = inertia[..., [0, 0, 1, 0, 1, 2], [0, 1, 1, 2, 2, 2]]
    return np.concatenate([P[..., 3:, 3], P[..., :3, 3], six], axis=-1)


def make_possible(columns: Columns, unknowns: Unknowns, sizes: Floats) -> Floats:
    """The most probable unknowns that bodies and joints can have, shape (columns,).

    Args:
        columns: The unknowns' names.
        unknowns: What is known of them.
        sizes: Of the parameters of each link, shape (links, 10).

    Raises:
        FactorGraphDynError: Clarabel is needed and not installed, or finds no answer.
    """
    p = unknowns.mean
    if _is_possible(columns, p, sizes):
        return p
    y = _solve(columns, unknowns, sizes)
    return _lifted(columns, p + unknowns.metric @ y, sizes)


def _scaled(columns: Columns, values: Floats, sizes: Floats) -> Floats:
    """The matrices of moments of all links in units of the links' sizes, shape (..., links, 4, 4)."""
    rows = values[..., : columns.inertial].reshape(*values.shape[:-1], len(columns.links), COUNT)
    return moments(rows / sizes)


def _is_possible(columns: Columns, p: Floats, sizes: Floats) -> bool:
    least = np.linalg.eigvalsh(_scaled(columns, p, sizes)).min(initial=np.inf)
    return bool(least >= LEAST_MOMENT and (p[columns.inertial :] >= 0).all())


def _solve(columns: Columns, unknowns: Unknowns, sizes: Floats) -> Floats:
    """The smallest y with which all links are possible."""
    clarabel, sparse = _clarabel()
    n, links = len(unknowns.mean), len(columns.links)
    weights = np.where(np.equal(*_UPPER), 1.0, np.sqrt(2.0))
    margin = 2 * LEAST_MOMENT  # so that the solver's own error stays above the floor

    def vectors(values: Floats) -> Floats:
        return (_scaled(columns, values, sizes)[..., _UPPER[0], _UPPER[1]] * weights).reshape(*values.shape[:-1], -1)

    effects = np.arange(columns.inertial, n)
    spread = np.linalg.norm(unknowns.metric, axis=1)[effects]
    A = np.vstack([-vectors(unknowns.metric.T).T, -unknowns.metric[effects] / spread[:, None]])
    floor = np.tile(np.eye(4)[_UPPER] * margin, links)
    b = np.concatenate([vectors(unknowns.mean) - floor, unknowns.mean[effects] / spread])
    cones = [*(clarabel.PSDTriangleConeT(4) for _ in range(links)), clarabel.NonnegativeConeT(len(effects))]
    settings = clarabel.DefaultSettings()
    settings.verbose = False
    settings.tol_feas = settings.tol_gap_abs = settings.tol_gap_rel = SOLVER_TOLERANCE
    problem = clarabel.DefaultSolver(
        sparse.csc_matrix(np.eye(n)), np.zeros(n), sparse.csc_matrix(A), b, cones, settings
    )
    found = problem.solve()
    if str(found.status) not in ("Solved", "AlmostSolved"):
        raise FactorGraphDynError(
            f"Clarabel finds no parameters that bodies can have near those that fit ({found.status}). Look at those of "
            "physical=False: data with wrong signs or units look so."
        )
    return np.asarray(found.x)


def _lifted(columns: Columns, p: Floats, sizes: Floats) -> Floats:
    """The same, above the floor by the last digit: what a solver leaves below it is added."""
    p = p.copy()
    P = _scaled(columns, p, sizes)
    least = np.linalg.eigvalsh(P)[:, 0] if len(P) else np.zeros(0)
    P = P + np.maximum(LEAST_MOMENT - least, 0.0)[:, None, None] * np.eye(4)
    low = least < LEAST_MOMENT
    rows = p[: columns.inertial].reshape(-1, COUNT)
    rows[low] = (of_moments(P) * sizes)[low]
    p[columns.inertial :] = np.maximum(p[columns.inertial :], 0.0)
    return p


def _clarabel() -> tuple[Any, Any]:
    try:
        import clarabel
        from scipy import sparse
    except ImportError:
        raise FactorGraphDynError(
            "The parameters that fit best belong to no body; finding the nearest that do needs Clarabel, which is not "
            "installed. Run: pip install 'factorgraph_dyn[identify]', or ask for physical=False."
        ) from None
    return clarabel, sparse
