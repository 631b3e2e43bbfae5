"""The rows of a graph as GTSAM weighs them: exact equations of order one, readings whitened.

    noise L e     L^-1 (block x - rhs) with unit noise; rows of infinite deviation say nothing and are left out
    exact row     divided by its size r_i = max_j |a_ij| c_j, for unknowns of one natural unit c_j each

GTSAM finds pivots of exact rows only above 1e-9, whatever the units. Variables stay in SI, so that only rows can be
scaled: after this scaling pivots of column j are about 1 / c_j at every step of any elimination, and one factor for all
rows puts them around one. What GTSAM would lose all the same is refused (``gtsam_pivots``). Once a state.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.motion.closure import rank_tolerance
from factorgraph_dyn.numerics.tolerances import RANK_ROUNDING
from factorgraph_dyn.ordering.general import colamd
from factorgraph_dyn.solve.gtsam_pivots import Natural, Rows, check_pivots
from factorgraph_dyn.solve.scaling import NO_UNITS, graph_units, variable_units
from factorgraph_dyn.spatial import Floats, stacked

Units = Mapping[Variable, Floats]


class WeighedRows(NamedTuple):
    """An equation, and which of its rows are exact; the others have unit noise."""

    factor: Factor
    exact: npt.NDArray[np.bool_]


def weighed_rows(graph: LinearGraph, sigma: float) -> list[WeighedRows]:
    """The equations of a graph that say something.

    Args:
        graph: The equations.
        sigma: Standard deviation of those without a noise of their own, 0 if they are exact.

    Raises:
        InputError: Equations or readings that GTSAM would lose.
    """
    found = list(_whitened(graph, sigma))
    if not any(rows.exact.any() for rows in found):
        return found
    units = variable_units(graph, NO_UNITS if graph.mechanism is None else graph_units(graph.mechanism))
    common = _common_size(found, units)
    scaled = [_scaled(rows, units, common) for rows in found]
    _check_pivots(graph, scaled, units, common)
    return scaled


def _whitened(graph: LinearGraph, sigma: float) -> Iterator[WeighedRows]:
    for factor in graph.factors:
        L, s = factor.noise or (sigma * np.eye(factor.rows), np.full(factor.rows, sigma))
        says = np.isfinite(s)
        if says.any() or not factor.rows:
            exact = s[says] == 0
            # Exact and unknown entries have noises of their own (``make_noise``), so that the rest of L has an inverse.
            mix = np.linalg.inv(L[np.ix_(says, says)] + np.diag(exact)) @ np.eye(factor.rows)[says]
            yield WeighedRows(_mixed(factor, mix), exact)


def _mixed(factor: Factor, mix: Floats) -> Factor:
    """Combinations of an equation's rows."""
    blocks = tuple((variable, mix @ block) for variable, block in factor.blocks)
    return Factor(factor.kind, factor.owner, blocks, mix @ factor.rhs)


def _common_size(found: Sequence[WeighedRows], units: Units) -> float:
    """The size of exact rows that puts their entries around one for all columns, so far as these are alike."""
    held = [units[variable] for factor, exact in found if exact.any() for variable, _ in factor.blocks]
    exponents = np.log2(np.concatenate(held))
    return float(np.exp2(np.round((exponents.max() + exponents.min()) / 2)))


def _scaled(rows: WeighedRows, units: Units, common: float) -> WeighedRows:
    """The rows, those that are exact of the common size for unknowns of one unit each."""
    factor, exact = rows
    sizes = [np.abs(block * units[variable]).max(axis=1) for variable, block in factor.blocks]
    largest = np.max(sizes, axis=0, initial=0.0)
    scale = np.ones(factor.rows)
    np.divide(common, largest, out=scale, where=exact & (largest > 0))
    return WeighedRows(_mixed(factor, np.diag(scale)), exact)


def _check_pivots(graph: LinearGraph, scaled: Sequence[WeighedRows], units: Units, common: float) -> None:
    """Raise an InputError where GTSAM would misjudge a pivot in the order that it takes by itself."""
    order = colamd(graph)
    ends = dict(zip(order, accumulate(variable.size for variable in order), strict=True))
    parts = []
    for factor, exact in scaled:
        if factor.blocks:
            columns = np.concatenate([np.arange(ends[x] - x.size, ends[x]) for x, _ in factor.blocks])
            entries, first = np.hstack([block for _, block in factor.blocks]), np.argsort(columns)
            parts.append(
                Rows(columns[first], entries[:, first], np.where(exact, 0.0, 1.0), np.full(len(entries), str(factor)))
            )
    check_pivots(parts, list(ends.values()), Natural(stacked(units[x] for x in order), common, _lost(graph, scaled)))


def _lost(graph: LinearGraph, scaled: Sequence[WeighedRows]) -> float:
    """The natural size of exact rows from which on they must not be lost.

    The equations of a tree never repeat each other, so that none is left over; loops do, up to what they are open.
    """
    if graph.mechanism is None:
        return RANK_ROUNDING
    if graph.mechanism.is_closed_kind or any(f.kind == "sensor" and exact.any() for f, exact in scaled):
        return rank_tolerance(graph.mechanism)
    return 0.0 if sum(int(exact.sum()) for _, exact in scaled) <= graph.columns else RANK_ROUNDING
