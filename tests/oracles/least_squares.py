"""Generalised least squares with exact constraints, in sixty digits: what estimates are compared with.

    minimise (H x - y)^T Sigma^-1 (H x - y)   subject to   P x = p

by its optimality conditions, in decimal arithmetic and without a thought for scaling:

    [0  P^T  H^T ] [x ]   [0]
    [P   0    0  ] [mu] = [p]        the upper left block of the inverse is the covariance of x
    [H   0 -Sigma] [l ]   [y]
"""

from __future__ import annotations

from decimal import Decimal, localcontext

import numpy as np

DIGITS = 60
ROUNDING = 1e-12  # of the longest row


def solve(P, p, H, y, Sigma, entries):
    """The mean (n,) of x, and its covariance with some entries (n, len(entries))."""
    x = _optimum(P, p, H, y, Sigma, np.eye(P.shape[1])[entries])
    return x[:, 0].astype(float), x[:, 1:].astype(float)


def solve_for(P, p, H, y, Sigma, X):
    """The mean (r,) and covariance (r, r) of X x."""
    with localcontext() as context:
        context.prec = DIGITS
        exact = np.vectorize(decimal, otypes=[object])(X) @ _optimum(P, p, H, y, Sigma, X)
        return exact[:, 0].astype(float), exact[:, 1:].astype(float)


def decimal(number):
    """A number of double or extended precision, exactly."""
    high = float(number)
    return Decimal(high) + Decimal(float(number - high))


def _optimum(P, p, H, y, Sigma, X):
    """The mean of x, and its covariances with X x, in all digits, shape (n, 1 + r)."""
    n, m, k = P.shape[1], len(P), len(H)
    with localcontext() as context:
        context.prec = DIGITS
        rows = [{} for _ in range(n + m + k)]
        for block, first_row, first_column in (
            (P.T, 0, n),
            (H.T, 0, n + m),
            (P, n, 0),
            (H, n + m, 0),
            (-Sigma, n + m, n + m),
        ):
            for i, j in zip(*np.nonzero(block), strict=True):
                rows[first_row + i][first_column + j] = decimal(block[i, j])
        rhs = np.full((n + m + k, 1 + len(X)), Decimal(0))
        rhs[n:, 0] = [decimal(value) for value in (*p, *y)]
        for i, j in zip(*np.nonzero(X), strict=True):
            rhs[j, 1 + i] = decimal(X[i, j])
        return _eliminated(rows, rhs)[:n]


def _eliminated(rows, rhs):
    """The solution of a sparse system, the sparsest rows first."""
    left, steps = set(range(len(rows))), []
    holding = {}
    for number, row in enumerate(rows):
        for column in row:
            holding.setdefault(column, set()).add(number)
    while left:
        number = min(left, key=lambda i: len(rows[i]) if rows[i] else 10**9)
        row = rows[number]
        largest = max(abs(value) for value in row.values())  # fails where the system is singular
        column = min((c for c in row if abs(row[c]) > largest * Decimal("1e-20")), key=lambda c: len(holding[c]))
        left.remove(number)
        for c in row:
            holding[c].discard(number)
        for other in list(holding[column]):
            factor = rows[other].pop(column) / row[column]
            for c, value in row.items():
                if c != column:
                    rows[other][c] = rows[other].get(c, Decimal(0)) - factor * value
                    holding[c].add(other)
            rhs[other] -= factor * rhs[number]
        holding[column] = set()
        steps.append((number, column))
    x = np.full(rhs.shape, Decimal(0))
    for number, column in reversed(steps):
        total = rhs[number].copy()
        for c, value in rows[number].items():
            if c != column:
                total -= value * x[c]
        x[column] = total / rows[number][column]
    return x


def independent_rows(A):
    """Indices of rows that span all, by Gram-Schmidt on rows of unit length, the longest remainder first.

    Rows of rounding, as loops in oblique planes leave them out of their plane, are none.
    """
    sizes = np.linalg.norm(A, axis=1)
    rest = A / np.where(sizes > ROUNDING * sizes.max(), sizes, np.inf)[:, None]
    chosen = []
    while True:
        lengths = np.linalg.norm(rest, axis=1)
        best = int(np.argmax(lengths))
        if lengths[best] < 1e-8:
            return sorted(chosen)
        chosen.append(best)
        direction = rest[best] / lengths[best]
        for _ in range(2):
            rest = rest - np.outer(rest @ direction, direction)
        rest[best] = 0.0


def stacked(graph, state, sensors):
    """H, y and Sigma of all sensors over the variables of a graph."""
    mechanism = state.mechanism
    read = [sensor.factor(state, sensor.values(mechanism)).substitute(graph.known) for sensor in sensors]
    rows = sum(factor.rows for factor in read)
    H, Sigma, start = np.zeros((rows, graph.columns)), np.zeros((rows, rows)), 0
    for factor, sensor in zip(read, sensors, strict=True):
        here = slice(start, start + factor.rows)
        for variable, block in factor.blocks:
            H[here, graph.column_slices[variable]] += block
        sigma = np.asarray(sensor.sigma)
        Sigma[here, here] = sigma if sigma.ndim == 2 else np.diag(np.broadcast_to(sigma, (factor.rows,)) ** 2)
        start += factor.rows
    return H, np.concatenate([factor.rhs for factor in read]), Sigma
