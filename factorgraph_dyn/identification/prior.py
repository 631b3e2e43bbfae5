"""What is known of the unknowns before the data: a mean, and a square root of a covariance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import check_finite, check_positive, shown
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.columns import Columns
from factorgraph_dyn.identification.triangles import Triangle
from factorgraph_dyn.model.parameters import COUNT
from factorgraph_dyn.model.sizes import lengths
from factorgraph_dyn.spatial import Floats

LIGHTEST = 0.1  # of the heaviest link: what lighter ones may be wrong by
NEAREST_REACH = 0.1  # of the mechanism's extent: where a link's mass may be
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
    given, n = np.asarray(spread, dtype=np.float64), shape[0] * shape[1]
    if given.shape == (n, n):
        sizes = np.sqrt(np.abs(np.diag(given)))
        try:
            return np.asarray(np.linalg.cholesky(given / np.outer(sizes, sizes)) * sizes[:, None])
        except np.linalg.LinAlgError:
            raise InputError("The covariance of the prior is not positive definite.") from None
    sigma = check_finite(np.broadcast_to(given, shape) if given.ndim < 2 else given, shape, "sigma of the prior")
    if (sigma <= 0).any():
        raise InputError("sigma of the prior must be positive; leave links that are known out of links=.")
    return np.diag(sigma.ravel())
