"""The most probable z and its covariance, from rows K z = y + L e with independent unit noises e.

Rows K_1 that determine z are chosen first, exact ones before all others, always the one that adds most among those that
add about as much for their standard deviations as any. Every other row is a combination C of rows that are hardly
vaguer, K_2 = C K_1, and asks of the noises

    D e = d        D = (L_2 - C L_1) / s_2,   d = (C y_1 - y_2) / s_2

The most probable noises are the least that do, and what is left open of them is the null space Z of D, with the
covariance Z Z^T. All entries of D are of order one whatever the standard deviations are, zero included: nothing is
weighted, and there is no limit of decades. Any unknown is a combination c of K_1 z:

    mean    c (y_1 + L_1 e)          covariance    (c L_1 Z)(c L_1 Z)^T

Combinations are found by Gram-Schmidt on rows of unit length; coefficients of rows that do not take part come out as
rounding, and are set to zero so that no vague row speaks through it. Numbers only; once a state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations.given import Mask
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING
from factorgraph_dyn.spatial import Floats, stacked

INDEPENDENT = 1e-10  # part of a row that others do not say, below which it says nothing new
HARDLY_VAGUER = 32.0  # by which chosen rows may say less for their standard deviations, for the sake of digits
CONTRADICTED = 1e-8  # of its terms, by which exact rows may miss each other
UNTESTED = 1e-9  # of a noise, that others must tell for it to be tested
ROUNDING = 4 * float(np.finfo(np.float64).eps)


Indices = npt.NDArray[np.intp]


class Evidence(NamedTuple):
    """Rows about z.

    Attributes:
        K, y, L: Coefficients (m, k), values (m,) and what unit noises are multiplied by (m, noises).
        K_terms: Lengths of the rows of what K is summed from, (m,).
        y_terms: Sizes of what y is summed from, (m,).
        labels: Who says each row.
    """

    K: Floats
    y: Floats
    L: Floats
    K_terms: Floats
    y_terms: Floats
    labels: tuple[str, ...]

    @property
    def s(self) -> Floats:
        """Standard deviations, (m,)."""
        return np.asarray(np.linalg.norm(self.L, axis=1))


def joined(parts: Sequence[Evidence], k: int) -> Evidence:
    """All rows below each other."""
    noises = np.cumsum([0, *(part.L.shape[1] for part in parts)])
    wide = [np.zeros((len(part.y), noises[-1])) for part in parts]
    for part, L, first, end in zip(parts, wide, noises[:-1], noises[1:], strict=True):
        L[:, first:end] = part.L
    return Evidence(
        np.vstack([np.zeros((0, k)), *(part.K for part in parts)]),
        stacked(part.y for part in parts),
        np.vstack([np.zeros((0, noises[-1])), *wide]),
        stacked(part.K_terms for part in parts),
        stacked(part.y_terms for part in parts),
        tuple(label for part in parts for label in part.labels),
    )


def nothing(s: Floats, tolerance: float) -> Floats:
    """Parts of rows that say nothing: loops tolerate that much of exact ones, while noise makes little of a little."""
    return np.where(s > 0, min(tolerance, RANK_ROUNDING), tolerance)


class Basis:
    """Rows that determine all that can be determined, and any row as their combination.

    Attributes:
        chosen: Indices of the rows, in order.
        Q: Orthonormal rows that span them, shape (r, k).
    """

    def __init__(self, rows: Floats, s: Floats, tolerance: float, slack: float = 1.0) -> None:
        """Choose from rows of unit length or zero, shape (m, k), with standard deviations s.

        Of rows that say up to `slack` times less for their standard deviations than others, the longest is chosen.
        """
        self.tolerance, self.slack = tolerance, slack
        self.chosen: list[int] = []
        self.Q = np.zeros((0, rows.shape[1]))
        self.left: list[float] = []
        least = nothing(s, tolerance)
        for candidates in (np.asarray(s == 0), np.asarray(s > 0)):
            self._choose(rows, np.where(s > 0, s, 1.0), candidates, least)
        self._triangle = np.tril(rows[self.chosen] @ self.Q.T)

    def _choose(self, rows: Floats, s: Floats, candidates: Mask, least: Floats) -> None:
        rest = np.where(candidates[:, None], rows, 0.0)
        rest -= (rest @ self.Q.T) @ self.Q
        while len(self.Q) < rows.shape[1]:
            lengths = np.linalg.norm(rest, axis=1)
            worth = np.where(lengths > least, lengths / s, 0.0)
            if not worth.any():
                return
            best = int(np.where(worth >= worth.max() / self.slack, lengths, 0.0).argmax())
            direction = rows[best].copy()
            for _ in range(2):  # twice is enough
                direction -= (self.Q @ direction) @ self.Q
            direction /= np.linalg.norm(direction)
            self.Q = np.vstack([self.Q, direction])
            self.chosen.append(best)
            self.left.append(float(lengths[best]))
            rest -= np.outer(rest @ direction, direction)
            rest[best] = 0.0

    def combinations(self, rows: Floats) -> Floats:
        """Rows of at most unit length as combinations of the chosen ones, shape (m, r)."""
        seen = rows @ self.Q.T
        sharp = np.minimum.accumulate(np.array([1.0, *self.left]))[:-1]
        seen[np.abs(seen) < ROUNDING / sharp] = 0.0
        return np.asarray(np.linalg.solve(self._triangle.T, seen.T).T)

    def open(self, rows: Floats) -> Mask:
        """Which of the rows, of at most unit length, are not determined, shape (m,)."""
        unsaid = rows - (rows @ self.Q.T) @ self.Q
        return np.asarray(np.linalg.norm(unsaid, axis=1) > self.tolerance)

    @cached_property
    def open_directions(self) -> Floats:
        """An orthonormal basis of the z that no row says anything of, shape (k, k - r)."""
        full, _ = np.linalg.qr(self.Q.T, mode="complete")
        return np.asarray(full[:, len(self.Q) :])


@dataclass(frozen=True, eq=False)
class Posterior:
    """What the rows say of z.

    Attributes:
        basis: The rows that determine it.
        expected: Means of their readings, shape (r,), in rows of unit length.
        root: Square root of the covariance of their readings, shape (r, r or less).
        residuals: What values are above the expected ones, in unit noises, (noises,).
        tests: Square root of the covariance of the residuals, (noises, degrees of freedom).
        gain: How the means follow the values of all rows, (r, m).
        chi_square: Sum of the squared residuals.
        log_likelihood: Of the values of all noisy rows.
    """

    basis: Basis
    expected: Floats
    root: Floats
    residuals: Floats
    tests: Floats
    gain: Floats
    chi_square: float
    log_likelihood: float

    def mean(self, combinations: Floats) -> Floats:
        """Of combinations of the basis' rows."""
        return np.asarray(combinations @ self.expected)

    def square_root(self, combinations: Floats) -> Floats:
        """S, with S S^T the covariance of combinations of the basis' rows."""
        return np.asarray(combinations @ self.root)


def posterior(rows: Evidence, tolerance: float, unsure: float | None) -> Posterior:
    """What rows say.

    Args:
        rows: The rows; their standard deviations are finite.
        tolerance: Part of a row that others do not say, below which it says nothing new.
        unsure: Part of its terms by which the mechanism's own exact rows may miss each other; None lets them.

    Raises:
        InputError: Exact rows contradict each other.
    """
    unit, lengths = of_unit_length(rows, tolerance)
    y, s, L = unit.y, unit.s, unit.L
    basis = Basis(unit.K, s, tolerance, HARDLY_VAGUER)
    first = np.array(basis.chosen, dtype=int)
    others = np.setdiff1d(np.arange(len(y)), first)
    C = basis.combinations(unit.K)
    misses = y - C @ y[first]
    if unsure is not None:
        sizes = unit.y_terms + np.abs(y) + np.abs(C) @ (np.abs(y[first]) + unit.y_terms[first])
        _check_exact([i for i in others if s[i] == 0], misses, sizes, C, first, rows.labels, unsure)
    second = others[s[others] > 0]
    told, left, moves = _least_noises((L[second] - C[second] @ L[first]) / s[second][:, None])
    d = -misses[second] / s[second]
    noises = moves @ d
    chi_square = float(noises @ noises)
    expected = y[first] + L[first] @ noises
    gain = _gain(L[first] @ moves / s[second], C[second], first, second, len(y)) / lengths
    likelihood = _log_likelihood(rows, chi_square)
    return Posterior(basis, expected, L[first] @ left, -noises, told, gain, chi_square, likelihood)


def of_unit_length(rows: Evidence, tolerance: float) -> tuple[Evidence, Floats]:
    """The rows at unit length, or zero where nothing but rounding is left of them, and their lengths."""
    lengths = np.linalg.norm(rows.K, axis=1)
    silent = lengths <= nothing(rows.s, tolerance) * rows.K_terms
    lengths = np.where(silent, np.where(rows.K_terms > 0, rows.K_terms, 1.0), lengths)
    K = np.where(silent[:, None], 0.0, rows.K / lengths[:, None])
    terms = rows.K_terms / lengths, rows.y_terms / lengths
    return Evidence(K, rows.y / lengths, rows.L / lengths[:, None], *terms, rows.labels), lengths


def _least_noises(D: Floats) -> tuple[Floats, Floats, Floats]:
    """Orthonormal bases of what D e = d tells of e and of what it leaves open, and what gives the least e for d."""
    Q, R = np.linalg.qr(D.T, mode="complete")
    told, left = Q[:, : len(D)], Q[:, len(D) :]
    return told, left, np.linalg.solve(R[: len(D)], told.T).T if len(D) else told


def _gain(moves: Floats, C: Floats, first: Indices, second: Indices, count: int) -> Floats:
    """How the means of the first rows follow all values: by themselves, and by what the second ones are missed by."""
    gain = np.zeros((len(first), count))
    gain[:, first] = np.eye(len(first)) + moves @ C
    gain[:, second] = -moves
    return gain


def _log_likelihood(rows: Evidence, chi_square: float) -> float:
    """Logarithm of the density of the noisy rows' values."""
    noisy = rows.s > 0
    _, size = np.linalg.slogdet(rows.L[noisy])
    return float(-0.5 * chi_square - size - 0.5 * int(noisy.sum()) * np.log(2 * np.pi))


def _check_exact(
    exact: Sequence[int], misses: Floats, sizes: Floats, C: Floats, first: Indices, labels: Sequence[str], unsure: float
) -> None:
    """Raise an InputError where exact rows contradict each other."""
    for i in exact:
        allowed = max(CONTRADICTED, unsure)
        if abs(misses[i]) <= allowed * sizes[i]:
            continue
        others = [labels[j] for j, c in zip(first, C[i], strict=True) if abs(c) > allowed and labels[j] != labels[i]]
        said = ", ".join(dict.fromkeys(others)) or "the equations of motion"
        raise InputError(
            f"Exact values contradict each other: {labels[i]} misses what follows from {said} by "
            f"{abs(misses[i]) / sizes[i]:.1e} of its terms. Give one of them a standard deviation, or leave it out.",
            labels=(labels[i], *dict.fromkeys(others)),
        )
