"""Unknowns from what data say of base parameters and from what was known before.

With p = mean + S x and R K p = z, noise and prior both of size one, singular values of G = R K S = U s V^T give

    x = V s / (s^2 + 1) U^T (z - R K mean)        covariance = S (V 1 / (s^2 + 1) V^T  +  V_0 V_0^T) S^T

where V_0 is what the data say nothing of: it stays at the prior's mean, and as uncertain as the prior. Without a prior
1 is 0, V_0 stays at the mean all the same, and its variance is infinite.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.base import Base
from factorgraph_dyn.identification.fit import Fit
from factorgraph_dyn.identification.prior import Prior
from factorgraph_dyn.spatial import Floats

SHARPEST = 1e5  # times better than the prior: in the metric, nothing is known more exactly, for a solver's sake
LEFT_OPEN = 1e-7  # share of an unknown, in its prior's units, that data do not determine where they leave it open


@dataclass(frozen=True, eq=False)
class Unknowns:
    """What is known of all unknowns.

    Attributes:
        mean: The most probable values, shape (columns,).
        root: A square root of the covariance; of what nothing is known it holds the prior's size, (columns, columns).
        metric: The same root, nowhere much sharper nor blunter than the prior: how far others are from the mean.
        unseen: Which ones the data leave open, alone at least.
        is_open: Which ones data and prior leave open.
    """

    mean: Floats
    root: Floats
    metric: Floats
    unseen: npt.NDArray[np.bool_]
    is_open: npt.NDArray[np.bool_]

    @property
    def covariance(self) -> Floats:
        """Of all unknowns; where one is open its variance is infinite and its covariances are nan."""
        covariance = self.root @ self.root.T
        covariance[self.is_open] = covariance[:, self.is_open] = np.nan
        covariance[self.is_open, self.is_open] = np.inf
        return np.asarray(covariance)


def infer_unknowns(fit: Fit, base: Base, prior: Prior) -> Unknowns:
    """The most probable unknowns."""
    with np.errstate(over="ignore", invalid="ignore"):  # said below
        G = fit.R @ base.K @ prior.root
        squares = np.square(G).sum() + np.square(prior.root).sum()
    if not np.isfinite(squares):
        raise InputError(
            "The prior is so wide that its variances, or those of the torques it allows, are beyond the largest "
            "numbers. Give smaller deviations, or prior=None where nothing is known."
        )
    left, s, right = np.linalg.svd(G)
    V, V_0 = right[: fit.rank].T, right[fit.rank :].T
    known = float(prior.is_known)
    e = left.T @ (fit.z - fit.R @ (base.K @ prior.mean))
    x = np.where(G.any(axis=0), V @ (s / (s**2 + known) * e), 0.0)
    root = prior.root @ np.hstack([V / np.sqrt(s**2 + known), V_0])
    metric = prior.root @ np.hstack([V / np.sqrt(np.minimum(s, SHARPEST) ** 2 + 1.0), V_0])
    lengths = np.linalg.norm(prior.root, axis=1)
    unseen = np.linalg.norm(prior.root @ V_0, axis=1) > LEFT_OPEN * lengths
    return Unknowns(prior.mean + prior.root @ x, root, metric, unseen, unseen & (not prior.is_known))
