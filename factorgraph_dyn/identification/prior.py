"""What is known of the unknowns before the data: a mean, and a square root of a covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_finite, check_positive, real_numbers, shown
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.columns import Columns
from factorgraph_dyn.identification.triangles import Triangle
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.model.sizes import lengths
from factorgraph_dyn.spatial import Floats

LIGHTEST = 0.1  # of the heaviest link: what lighter ones may be wrong by
NEAREST_REACH = 0.1  # of the mechanism's extent: where a link's mass may be
PRIOR_SYMMETRY = 1e-9  # how far correlations of a covariance may be from symmetric
POWERS = np.array([0, 1, 1, 1, 2, 2, 2, 2, 2, 2])  # of a length in the unit of each parameter
PriorLike = float | tuple[npt.ArrayLike, npt.ArrayLike] | None


@dataclass(frozen=True, eq=False)
class Prior:
    """What is known before the data.

    Attributes:
        mean: Of all unknowns, shape (columns,).
        root: A square root of their covariance, shape (columns, columns).
        is_known: Whether they are known at all; if not, the root only measures what is near.
    """

    mean: Floats
    root: Floats
    is_known: bool


def make_prior(
    columns: Columns, triangles: Sequence[Triangle], motion: tuple[Floats, Floats], prior: PriorLike
) -> Prior:
    """The prior that a user means.

    Args:
        columns: The unknowns.
        triangles: The data, for the sizes of torques.
        motion: Root mean squares of velocities and accelerations, shape (nv,) each.
        prior: A relative spread, a mean and its deviations or covariance, or None.
    """
    sizes = np.concatenate([link_sizes(columns).ravel(), _effect_sizes(columns, triangles, motion)])
    if prior is None:
        return Prior(columns.values, np.diag(sizes), False)
    if isinstance(prior, tuple):
        return _given(columns, sizes, prior)
    spread = check_positive(prior, "prior, the relative spread of the mechanism's own parameters,", InputError)
    with np.errstate(over="ignore"):  # ``infer_unknowns`` says so
        return Prior(columns.values, np.diag(spread * sizes), True)


def link_sizes(columns: Columns) -> Floats:
    """What the parameters of each link may be of, by its mass and length, shape (links, 10)."""
    mechanism = columns.mechanism
    reaches, extent = lengths.reaches(mechanism), lengths.extent(mechanism) or 1.0
    heaviest = max((link.mass for link in mechanism.links if link.name != mechanism.base), default=0.0) or 1.0
    masses = [max(mechanism.link_by_name[name].mass, LIGHTEST * heaviest) for name in columns.links]
    reach = [max(reaches[name], NEAREST_REACH * extent) for name in columns.links]
    return np.asarray(np.array(masses)[:, None] * np.array(reach)[:, None] ** POWERS)


def _effect_sizes(columns: Columns, triangles: Sequence[Triangle], motion: tuple[Floats, Floats]) -> Floats:
    """Effects that would make up the whole torque of their joint, or what the joint of the greatest torque has."""
    torques = {triangle.entry: triangle.size for triangle in triangles}
    largest = max(torques.values()) or 1.0
    speeds, accelerations = (np.where(x > 0, x, x.max(initial=0.0) or 1.0) for x in motion)
    per = {"armature": accelerations, "damping": speeds, "friction": np.ones_like(speeds)}
    felt = [(torques.get(e.entry) or largest) / float(per[e.kind][e.entry]) for e in columns.effects]
    return np.asarray(np.maximum(np.array(felt), columns.values[columns.inertial :]))


def _given(columns: Columns, sizes: Floats, prior: tuple[npt.ArrayLike, npt.ArrayLike]) -> Prior:
    """A mean and deviations or covariance of the links' parameters; effects are known to their own sizes."""
    if len(prior) != 2:
        raise InputError(f"prior is {shown(prior)}; it must be (mean, sigma) or (mean, covariance).")
    shape, n = (len(columns.links), COUNT), columns.inertial
    mean = columns.values.copy()
    mean[:n] = check_finite(prior[0], shape, "The mean of the prior").ravel()
    root = np.diag(sizes)
    root[:n, :n] = _root(prior[1], shape)
    return Prior(mean, root, True)


def _root(spread: npt.ArrayLike, shape: tuple[int, int]) -> Floats:
    """A square root of the covariance of parameters, from deviations or a matrix."""
    n = shape[0] * shape[1]
    allowed = f", one, {COUNT} for every link, shape {shape}, or a covariance of shape {(n, n)}"
    given = real_numbers(spread, "sigma of the prior", InputError, allowed)
    if given.shape not in ((), (1,), (COUNT,), (1, COUNT), shape, (n, n)):
        raise InputError(f"sigma of the prior has shape {given.shape}; it must be real numbers{allowed}.")
    if given.shape == (n, n):
        return _root_of_covariance(given)
    sigma = np.broadcast_to(given, shape)
    if not (np.isfinite(sigma) & (sigma > 0)).all():
        raise InputError(
            f"sigma of the prior is {shown(spread)}; it must be positive and finite everywhere. Leave links that are "
            "known out of links=."
        )
    return np.diag(sigma.ravel())


def _root_of_covariance(covariance: Floats) -> Floats:
    """Its lower triangular square root, or an InputError."""
    what, variances = "The covariance of the prior", np.diag(covariance)
    if not np.isfinite(covariance).all():
        raise InputError(f"{what} holds values that are not finite. Give numbers, large ones for what is not known.")
    if not (variances > 0).all():
        raise InputError(
            f"{what} is not positive definite: a variance on its diagonal is {variances.min():g}. Leave links that are "
            "known out of links=."
        )
    sizes = np.sqrt(variances)
    correlation = covariance / sizes[:, None] / sizes
    asymmetry = float(np.abs(correlation - correlation.T).max())
    if not asymmetry <= PRIOR_SYMMETRY:
        raise InputError(f"{what} is not symmetric: correlations differ by {asymmetry:.3g}. Give the whole matrix.")
    try:
        return np.asarray(np.linalg.cholesky(0.5 * (correlation + correlation.T)) * sizes[:, None])
    except np.linalg.LinAlgError:
        raise InputError(f"{what} is not positive definite: some of its correlations exclude each other.") from None
