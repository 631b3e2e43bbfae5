"""Equations as GTSAM's factors, and orderings as its keys; key i is ``graph.variables[i]``.

What the package solves by itself has unit noise: its systems are square, or weighted by those who make them. What users
take to GTSAM is made by ``solve/interchange``. Once a structure.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache, lru_cache
from itertools import chain
from typing import Any

import gtsam

from factorgraph_dyn.equations import Factor, LinearGraph, Variable
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.ordering import Ordering


def unit_factors(graph: LinearGraph) -> gtsam.GaussianFactorGraph:
    """The graph as factors of unit noise; those with a noise of their own are refused."""
    noisy = [str(factor) for factor in graph.factors if factor.noise is not None]
    if noisy:
        raise InputError(
            f"The graph has equations with noise ({', '.join(noisy)}), and elimination takes all equations alike. Use "
            "fgd.estimate, or fgd.to_gtsam(graph) and GTSAM's own elimination."
        )
    keys = {variable: index for index, variable in enumerate(graph.variables)}
    converted = gtsam.GaussianFactorGraph()
    for factor in graph.factors:
        converted.push_back(gtsam_factor(factor, keys, unit_noise(factor.rows)))
    return converted


@lru_cache(maxsize=256)
def ordering_of_keys(variables: tuple[Variable, ...], ordering: Ordering) -> gtsam.Ordering:
    """The ordering as keys of the variables; one object for all who ask, not to be changed."""
    keys = {str(variable): index for index, variable in enumerate(variables)}
    converted = gtsam.Ordering()
    for name in ordering.variables:
        converted.push_back(keys[name])
    return converted


@cache
def unit_noise(rows: int) -> gtsam.noiseModel.Unit:
    """The noise model of rows that are weighted as they are."""
    return gtsam.noiseModel.Unit.Create(rows)


def gtsam_factor(
    factor: Factor, keys: Mapping[Variable, int], model: gtsam.noiseModel.Diagonal
) -> gtsam.GaussianFactor:
    """One equation, with a noise model in place of its own noise."""
    terms: list[Any] = [(keys[variable], block) for variable, block in factor.blocks]
    if not terms:  # all of it is known, as of a coupling in inverse dynamics
        return gtsam.JacobianFactor(factor.rhs)
    if len(terms) <= 3:
        make: Any = gtsam.JacobianFactor
        jacobian: gtsam.JacobianFactor = make(*chain.from_iterable(terms), factor.rhs, model)
        return jacobian
    # GTSAM's Python constructor of JacobianFactor stops at three keys; a conditional is a factor of any number.
    return gtsam.GaussianConditional(terms, 1, factor.rhs, model)
