"""What is said of the free unknowns: rows K z = y + L e with unit noises e, and the name of who says each.

Sensors say it with noise; loops, couplings and joints without a motor exactly. Readings that say nothing are left out.
Once a state.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from factorgraph_dyn.equations import Factor
from factorgraph_dyn.equations.posterior import Evidence
from factorgraph_dyn.model.sizes.units import usual_acceleration
from factorgraph_dyn.solve.estimation.free_form import FreeForm


def evidence(form: FreeForm, factor: Factor, label: str) -> Evidence:
    """The rows of an equation over the unknowns, with its noise."""
    rows = factor.substitute(form.graph.known)
    k = form.N.shape[1]
    K, terms = np.zeros((rows.rows, k)), np.zeros((rows.rows, k))
    y, y_terms = np.array(rows.rhs, dtype=np.float64), np.abs(factor.rhs).astype(np.float64)
    for variable, block in rows.blocks:
        place = form.places[variable]
        K += block @ form.N[place]
        terms += np.abs(block) @ np.abs(form.N[place])
        y -= block @ form.offset[place]
        y_terms += np.abs(block) @ np.abs(form.offset[place])
    # N is a sum, too: of what an unknown cannot do, such as leaving its plane, rounding of its unit is left.
    K_terms = np.maximum(np.linalg.norm(terms, axis=1), form.units_of(rows))
    noise = factor.noise
    if noise is None:
        return Evidence(K, y, np.zeros((rows.rows, 0)), K_terms, y_terms, (label,) * rows.rows)
    says = np.isfinite(noise.s)
    return Evidence(K[says], y[says], noise.spoken[says], K_terms[says], y_terms[says], (label,) * int(says.sum()))


def exact(form: FreeForm, factors: Iterable[Factor], label: str) -> list[Evidence]:
    """Rows that are to hold exactly; {} in the label is the owner.

    Their terms are at least what is usual, for those in which nothing happens but rounding.
    """
    usual = usual_acceleration(form.state.mechanism, form.state.v)
    found = [(factor, evidence(form, factor, label.format(factor.owner))) for factor in factors]
    return [rows._replace(y_terms=rows.y_terms + usual * form.units_of(factor)) for factor, rows in found]


def closures(form: FreeForm) -> list[Evidence]:
    """What loops and couplings ask for."""
    return exact(form, form.held, "the closure of {!r}")
