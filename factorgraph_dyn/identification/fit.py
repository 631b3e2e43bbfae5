"""Base parameters by generalised least squares, with the noise of each torque found from the data.

    minimise  sum over equations i of |R_i beta - z_i|^2 / sigma_i^2        sigma_i^2 = |R_i beta - z_i|^2 / (n_i - h_i)

in turns until the sigma_i stay, h_i being the part of the freedoms that fit equation i. The whitened triangle R
has its columns made equally long before its rank is decided: what the data leave open is left out of it. Work on
triangles alone, whatever the number of samples.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.base import ABSENT, Base, combinations, in_words, terms_of
from factorgraph_dyn.identification.triangles import Triangle
from factorgraph_dyn.spatial import Floats

UNEXCITED = 1e-10  # singular values of equally long columns, beside the largest: below, data say nothing
QUIETEST = 1e-13  # of the torques: noise below it is rounding
ROUNDS = 40
SETTLED_NOISE = 1e-6  # relative change of the noise's size


@dataclass(frozen=True, eq=False)
class Fit:
    """What a log says of base parameters, in units of its noise: R beta = z with noise of size one.

    Attributes:
        R: Independent rows, shape (rank, base parameters).
        z: What they should give, shape (rank,).
        beta: The base parameters that fit best; the nearest to zero where data leave them open.
        root: A square root of the covariance of what is determined, shape (base parameters, rank).
        sigma: Noise of each equation's torque.
        condition: Ratio of the largest to the least singular value of the regressor with columns of length one.
    """

    R: Floats
    z: Floats
    beta: Floats
    root: Floats
    sigma: Floats
    condition: float

    @property
    def rank(self) -> int:
        """How many combinations the data determine."""
        return len(self.z)


def fit_base(triangles: Sequence[Triangle], base: Base) -> Fit:
    """The best base parameters and the noise that they leave.

    Raises:
        InputError: Fewer torques than base parameters that they show.
    """
    rows = sum(triangle.count for triangle in triangles)
    sigma = np.array([_least_noise(triangle) / QUIETEST for triangle in triangles])
    for _ in range(ROUNDS):
        fit = _weighted(triangles, base, sigma)
        if rows <= fit.rank:
            raise InputError(
                f"{rows} measured torques cannot tell {fit.rank} base parameters and their noise: give more samples, "
                "some hundreds at least."
            )
        found = np.array([_noise(*each, fit) for each in zip(triangles, sigma.tolist(), strict=True)])
        settled = np.abs(np.log(found / sigma)).max() < SETTLED_NOISE
        sigma = found
        if settled:
            break
    return _weighted(triangles, base, sigma)


def _weighted(triangles: Sequence[Triangle], base: Base, sigma: Floats) -> Fit:
    """The fit with equations weighted by their noise."""
    b = len(base)
    wide = [triangle.wide(b) / noise for triangle, noise in zip(triangles, sigma, strict=True)]
    whole: Floats = np.asarray(np.linalg.qr(np.concatenate(wide), mode="r"))
    lengths = np.linalg.norm(whole[:, :b], axis=0)
    absent = lengths * base.sizes <= ABSENT * (lengths * base.sizes).max(initial=0.0)
    scale = np.where(absent, np.inf, lengths)
    left, values, right = np.linalg.svd(whole[:, :b] / scale, full_matrices=False)
    rank = int((values > UNEXCITED * values.max(initial=0.0)).sum()) if b else 0
    V, s, z = right[:rank].T, values[:rank], left[:, :rank].T @ whole[:, -1]
    root = V / s / scale[:, None]
    R = s[:, None] * V.T * np.where(absent, 0.0, lengths)
    return Fit(R, z, root @ z, root, sigma, float(s[0] / s[-1]) if rank else 1.0)


def _noise(triangle: Triangle, sigma: float, fit: Fit) -> float:
    """The noise of an equation from what a fit with a noise leaves of it, beside rounding."""
    spread = triangle.R[:, :-1] @ fit.root[triangle.columns] / sigma
    freedoms = max(triangle.count - float((spread * spread).sum()), 1.0)
    return max(float(np.sqrt(triangle.residual(fit.beta) / freedoms)), _least_noise(triangle))


def _least_noise(triangle: Triangle) -> float:
    return QUIETEST * (triangle.size or 1.0)


@dataclass(frozen=True, eq=False)
class BaseParameter:
    """A combination of unknowns that the data determine.

    Attributes:
        terms: Coefficients by the names of unknowns.
        value: What fits best, from the data alone.
        standard_deviation: Of that, from the data alone.
    """

    terms: Mapping[str, float]
    value: float
    standard_deviation: float

    @property
    def name(self) -> str:
        """The combination in words, such as ``link2.mc_x + 0.4318 link3.m``."""
        return in_words(self.terms)


def determined_parameters(fit: Fit, base: Base) -> tuple[BaseParameter, ...]:
    """The combinations that the data determine: the base parameters, or combinations of them where data are poor."""
    kept, K, names = list(range(len(base))), base.K, base.names
    if fit.rank < len(base):
        scaled = fit.R * base.sizes
        kept = _longest(scaled, fit.rank)
        mix = combinations(scaled, kept) * base.sizes[kept][:, None] / base.sizes
        K = mix @ K
    root = np.linalg.inv(fit.R[:, kept] * base.sizes[kept]) * base.sizes[kept][:, None]
    values, deviations = root @ fit.z, np.linalg.norm(root, axis=1)
    terms = terms_of(K, [base.kept[k] for k in kept], names)
    return tuple(BaseParameter(*each) for each in zip(terms, values.tolist(), deviations.tolist(), strict=True))


def _longest(matrix: Floats, count: int) -> list[int]:
    """Columns that span all others, that which is left longest taken first; sorted."""
    sizes = np.linalg.norm(matrix, axis=0)
    rest, kept = matrix / np.where(sizes > 0, sizes, np.inf), []
    for _ in range(count):
        lengths = np.linalg.norm(rest, axis=0)
        kept.append(int(lengths.argmax()))
        direction = rest[:, kept[-1]] / lengths.max()
        for _ in range(2):  # twice is enough
            rest = rest - np.outer(direction, direction @ rest)
    return sorted(kept)
