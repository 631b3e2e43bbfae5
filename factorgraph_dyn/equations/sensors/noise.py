"""How exact a measurement is: standard deviations, or a covariance matrix.

    sigma     one number for all entries; a number each (0 exact, inf says nothing); or a covariance matrix
    noise     L e, for independent unit noises e: the covariance is L L^T

No entry of L is larger than the standard deviation of its row, however different those of the rows are. Once a sensor.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import real_numbers, shown
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.spatial import Floats

SYMMETRIC = 1e-12  # of the standard deviations, by which the halves of a covariance may differ
LEAST, LARGEST = 1e-100, 1e100  # whose squares, and products with the mechanism's units, are still numbers


class Noise(NamedTuple):
    """The noise of a reading.

    Attributes:
        L: What unit noises are multiplied by, zero for exact entries and infinite for unknown ones, shape (size, size).
        s: Standard deviations of the entries, from 0 to infinity, shape (size,).
    """

    L: Floats
    s: Floats

    @property
    def spoken(self) -> Floats:
        """L without the noises of exact and of unknown entries; unknown entries have zeros, shape (size, noises)."""
        noisy = (self.s > 0) & np.isfinite(self.s)
        return np.where(noisy[:, None], np.nan_to_num(self.L, posinf=0.0), 0.0)[:, noisy]


def make_noise(sigma: npt.ArrayLike, size: int, what: str) -> Noise:
    """The noise that a user's sigma describes.

    Raises:
        InputError: Negative numbers, wrong shapes, or a covariance that is not positive definite.
    """
    several = f" {size} of them," if size > 1 else ""
    allowed = f"a standard deviation,{several} or a {size}x{size} covariance matrix"
    if sigma is None:
        raise InputError(f"The noise of {what} is not given; give sigma, {allowed}.")
    given = real_numbers(sigma, f"The noise of {what}", InputError)
    if given.shape == (size, size):
        return _of_covariance(given, what)
    if given.shape not in ((), (size,)):
        raise InputError(f"The noise of {what} has shape {given.shape}; it must be {allowed}.")
    if np.isnan(given).any() or (given < 0).any():
        raise InputError(
            f"The noise of {what} is {shown(given.tolist())}; a standard deviation is 0 (exact) or positive, or inf "
            "where nothing is known."
        )
    s = np.broadcast_to(given, (size,)).astype(np.float64)
    _check_range(s[(s > 0) & np.isfinite(s)], what)
    return Noise(np.diag(s), s)


def _check_range(s: Floats, what: str) -> None:
    """Raise an InputError where standard deviations are too far from one for their squares."""
    if ((s < LEAST) | (s > LARGEST)).any():
        raise InputError(
            f"The noise of {what} has standard deviations {shown(s.tolist())}; give {LEAST:.0e} to {LARGEST:.0e}, 0 "
            "for what is exact, or inf where nothing is known."
        )


def _of_covariance(covariance: Floats, what: str) -> Noise:
    """The noise of correlated entries."""
    deviations = _deviations(covariance, what)
    _check_range(deviations, what)
    correlation = covariance / np.outer(deviations, deviations)
    if np.abs(correlation - correlation.T).max() > SYMMETRIC:
        raise InputError(f"The covariance of {what} is not symmetric: {shown(covariance.tolist())}.")
    correlation = (correlation + correlation.T) / 2
    least = float(np.linalg.eigvalsh(correlation)[0])
    if least <= len(correlation) * np.finfo(np.float64).eps:
        raise InputError(
            f"The covariance of {what} is not positive definite: the least eigenvalue of its correlations is "
            f"{least:.1e}. Give a positive definite one; for exact entries give standard deviations of 0."
        )
    return Noise(deviations[:, None] * np.linalg.cholesky(correlation), deviations)


def _deviations(covariance: Floats, what: str) -> Floats:
    variances = np.diag(covariance)
    if not np.isfinite(covariance).all() or (variances <= 0).any():
        raise InputError(
            f"The covariance of {what} is not positive definite: its diagonal is {shown(variances.tolist())}. Give "
            "finite numbers, positive on the diagonal."
        )
    return np.asarray(np.sqrt(variances), dtype=np.float64)
