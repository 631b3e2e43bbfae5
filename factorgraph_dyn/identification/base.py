"""Base parameters: the combinations of unknowns that torques can depend on at all.

Columns X of the regressor that depend on others at every state are regrouped into these,

    X p = X_kept beta        beta = K p        K = X_kept^+ X,    K_kept = 1

so that a mechanism has as many base parameters as independent columns (Gautier & Khalil, 1990; by numbers: Gautier,
1991). Found at random states, closed where there are loops, in the mechanism's own units: what counts as dependent does
not depend on metres or kilograms. Links near the base keep their columns first, as in the literature. Runs once a
mechanism.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from factorgraph_dyn.equations import evaluate_state
from factorgraph_dyn.identification.columns import Columns, make_columns
from factorgraph_dyn.identification.freedoms import Freedoms, find_freedoms
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.model.sizes.units import natural, natural_rate
from factorgraph_dyn.solve.loops.closure_rows import closure_rows
from factorgraph_dyn.spatial import Floats

DEPENDENT = 1e-8  # share of a column that the others leave where it depends on them
ABSENT = 1e-11  # of the largest column, in own units: what is smaller is rounding
PREFERRED = ("mc_x", "mc_y", "I_zz", "I_xy", "I_xz", "I_yz", "I_xx", "mc_z", "m", "I_yy")  # kept first in a link
MORE_ROWS = 2  # times as many equations at random states as columns
LEAST_STATES = 24


@dataclass(frozen=True, eq=False)
class Base:
    """How unknowns are regrouped.

    Attributes:
        names: Of all unknowns.
        kept: Indices of the columns that stay.
        K: Base parameters from all unknowns, shape (kept, unknowns).
        sizes: Units in which base parameters are of order one, shape (kept,).
        seen: Which equations hold which of the kept columns, shape (equations, kept).
    """

    names: tuple[str, ...]
    kept: tuple[int, ...]
    K: Floats
    sizes: Floats
    seen: Floats

    def __len__(self) -> int:
        return len(self.kept)

    @cached_property
    def terms(self) -> tuple[Mapping[str, float], ...]:
        """The coefficients of each base parameter by the names of unknowns, its own first."""
        return terms_of(self.K, self.kept, self.names)


def terms_of(K: Floats, kept: Sequence[int], names: Sequence[str]) -> tuple[Mapping[str, float], ...]:
    """Rows of combinations as coefficients by name, the kept one first."""
    found = []
    for row, own in zip(K, kept, strict=True):
        others = [k for k in np.flatnonzero(row).tolist() if k != own]
        found.append({names[k]: float(row[k]) for k in (own, *others)})
    return tuple(found)


def in_words(terms: Mapping[str, float]) -> str:
    """A combination as text, such as ``link2.mc_x + 0.4318 link3.m``."""
    text = ""
    for name, factor in terms.items():
        size = "" if f"{abs(factor):.4g}" == "1" else f"{abs(factor):.4g} "
        sign = (" - " if factor < 0 else " + ") if text else ("-" if factor < 0 else "")
        text += f"{sign}{size}{name}"
    return text


def base_parameters(
    mechanism: Mechanism, *, links: str | Iterable[str] | None = None, effects: str | Iterable[str] = ()
) -> list[str]:
    """The combinations of inertial parameters that the motors' torques depend on, in words.

    Nothing but these can be identified from motions and torques: 36 for the PUMA 560, 7 n - 4 for a general arm of n
    hinges whose first axis is not vertical.

    Args:
        mechanism: The mechanism; closed ones are asked along the motions that their loops allow.
        links: Links whose parameters are unknown; by default all but the base.
        effects: Effects of joints that are unknown, too: "armature", "damping", "friction".

    Returns:
        One text for each, such as ``link2.mc_x + 0.4318 link3.m``.

    Examples:
        >>> fgd.base_parameters(fgd.robots.pendulum(1))  # what one hinge feels
        ['link1.mc_x', 'link1.mc_z', 'link1.I_yy']
    """
    columns = make_columns(check_mechanism(mechanism), links, effects)
    if not mechanism.nv:
        return []
    states = exciting_states(mechanism, _count(columns, mechanism.nv))
    base = find_base(columns, find_freedoms(mechanism, states.q, states.tau))
    return [in_words(terms) for terms in base.terms]


def find_base(columns: Columns, freedoms: Freedoms) -> Base:
    """The base parameters of a mechanism's unknowns, by independent columns at random states."""
    mechanism = columns.mechanism
    states = exciting_states(mechanism, _count(columns, len(freedoms.entries)))
    X, y = freedoms.project(states.q, columns.regressor(states), states.tau)
    X = X[np.isfinite(y).all(axis=1)]
    own, rate = natural(mechanism), natural_rate(mechanism) or 1.0
    scaled = X * columns.units / (own.tau[list(freedoms.entries)] * rate**2)[:, None]
    matrix = scaled.reshape(-1, len(columns))
    kept = independent_columns(matrix, _order(columns))
    K = combinations(matrix, kept) * columns.units[kept][:, None] / columns.units
    seen = (X[:, :, kept] != 0).any(axis=0)
    return Base(columns.names, tuple(kept), K, columns.units[kept], seen)


def independent_columns(matrix: Floats, order: Sequence[int]) -> list[int]:
    """Indices of columns that no earlier ones make up, sorted; earlier in an order."""
    sizes = np.linalg.norm(matrix, axis=0)
    least = ABSENT * sizes.max(initial=0.0)
    basis, kept = np.zeros((len(matrix), 0)), []
    for k in order:
        if sizes[k] <= least:
            continue
        rest = matrix[:, k] / sizes[k]
        for _ in range(2):  # twice is enough
            rest = rest - basis @ (basis.T @ rest)
        left = float(np.linalg.norm(rest))
        if left > DEPENDENT:
            kept.append(k)
            basis = np.column_stack([basis, rest / left])
    return sorted(kept)


def combinations(matrix: Floats, kept: Sequence[int]) -> Floats:
    """How all columns are made of those kept, K = X_kept^+ X, shape (kept, columns); rounding is dropped."""
    sizes = np.linalg.norm(matrix[:, kept], axis=0)
    K = np.linalg.lstsq(matrix[:, kept] / sizes, matrix, rcond=None)[0] / sizes[:, None]
    K[np.abs(K) * sizes[:, None] <= DEPENDENT * np.linalg.norm(matrix, axis=0)] = 0.0
    K[:, kept] = np.eye(len(kept))
    whole = np.round(K)
    return np.asarray(np.where(np.abs(K - whole) < DEPENDENT, whole, K))


def exciting_states(mechanism: Mechanism, count: int, seed: int = 0) -> Samples:
    """Random states with accelerations, closed where there are loops, as fast as the mechanism falls; tau is zero."""
    rng, rate = np.random.default_rng(seed), natural_rate(mechanism) or 1.0
    found = [_exciting(mechanism, rate, rng) for _ in range(count)]
    q, v, a = (np.array(parts) for parts in zip(*found, strict=True))
    return Samples(q, v, a, np.zeros_like(v))


def _exciting(mechanism: Mechanism, rate: float, rng: np.random.Generator) -> tuple[Floats, Floats, Floats]:
    units = natural(mechanism).v
    q = mechanism.random_state(rng)[0]
    v, a = rng.normal(size=(2, mechanism.nv))
    if not mechanism.is_closed_kind:
        return q, rate * units * v, rate**2 * units * a
    N = closure_rows(evaluate_state(mechanism, q, np.zeros(mechanism.nv))).decomposed.null_space
    v = rate * units * (N @ rng.normal(size=N.shape[1]))
    rows = closure_rows(evaluate_state(mechanism, q, v))
    least, _ = rows.nearest_acceleration(np.zeros(mechanism.nv), np.zeros(mechanism.nv, dtype=bool))
    return q, v, least + rate**2 * units * (N @ rng.normal(size=N.shape[1]))


def _count(columns: Columns, equations: int) -> int:
    return LEAST_STATES + MORE_ROWS * len(columns) // max(equations, 1)


def _order(columns: Columns) -> list[int]:
    """Losses first, which nothing makes up; then links from the base outwards; armatures last."""
    place = {joint.child: k for k, joint in enumerate(columns.mechanism.topology.outward)}
    links = sorted(columns.links, key=lambda link: place[link])
    names = [e.name for e in columns.effects if e.kind != "armature"]
    names += [f"{link}.{parameter}" for link in links for parameter in PREFERRED]
    names += [e.name for e in columns.effects if e.kind == "armature"]
    where = {name: k for k, name in enumerate(columns.names)}
    return [where[name] for name in names]
