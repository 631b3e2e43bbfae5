"""How loops close in a graph: of which rows of closure it has equations, and along which no wrench is passed.

    kept      M^T X (A_c - Ad_cp A_p - S a) = M^T X bias         M spans S and the directions C_I that are kept
    dropped   D^T F = 0                                          X from the successor's frame to the loop's

in the axes of the successor's link and about the loop's origin, where most entries are zeros and ones. Which rows are
independent is decided in ``motion/independence``. Once a state where directions vary with it, else once a loop.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import shown
from factorgraph_dyn.equations.places import Places
from factorgraph_dyn.equations.state import NumericState, State
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Loop, Mechanism
from factorgraph_dyn.motion.closure import constant_directions
from factorgraph_dyn.motion.independence import Kept, all_rows, independent_rows
from factorgraph_dyn.spatial import Array


class LoopClosure(NamedTuple):
    """How a loop closes whose rows are not all independent.

    Attributes:
        kept: Combinations of its acceleration equations, shape (6 - dropped, 6).
        dropped: Directions along which it passes no wrench, shape (dropped, 6).
    """

    kept: Array
    dropped: Array


def rows_at(state: State) -> Kept:
    """The independent rows of closure at a state of numbers; of symbols all."""
    if not state.mechanism.is_closed_kind or not isinstance(state, NumericState):
        return all_rows(state.mechanism)
    return independent_rows(state.mechanism, state.q).kept


def checked_rows(mechanism: Mechanism, closure: Kept) -> Kept:
    """The rows of closure that somebody wants, or an InputError that says what they must be."""
    sizes = [len(rows) for rows in all_rows(mechanism)]
    try:
        kept = tuple(tuple(map(bool, rows)) for rows in closure)
    except (TypeError, ValueError):
        kept = ()
    if [len(rows) for rows in kept] != sizes:
        raise InputError(
            f"closure is {shown(closure)}; mechanism {mechanism.name!r} wants a tuple of booleans for each of its "
            f"loops and couplings, of lengths {sizes}."
        )
    return kept


def loop_closures(state: State, kept: Kept) -> list[LoopClosure | None]:
    """How every loop closes; None where all of its rows are kept."""
    loops = zip(state.mechanism.loops, kept, strict=False)
    return [None if all(mask) else _closure(loop, mask, state.loops[loop.name].S) for loop, mask in loops]


def _closure(loop: Loop, mask: tuple[bool, ...], S: Array) -> LoopClosure:
    """How a loop closes of which these rows are kept; S is its motion subspace in its successor's frame."""
    if loop.constant_subspace is not None:
        return _constant_closure(loop, mask)
    X, is_kept = spatial.inverse_adjoint(loop.successor_placement), np.array(mask)
    C = loop.type.constrained(loop.axes, X @ S)
    kept = np.hstack([X @ S, C[:, is_kept]]).T @ X
    return LoopClosure(kept, C[:, ~is_kept].T @ spatial.adjoint(loop.successor_placement).T)


@kept_with_first
def _constant_closure(loop: Loop, mask: tuple[bool, ...]) -> LoopClosure:
    """The same, in the axes of the link, in which most entries are zeros and ones."""
    S, C, is_kept = loop.constant_subspace, constant_directions(loop), np.array(mask)
    assert S is not None
    assert C is not None
    turned = spatial.adjoint(spatial.pose(loop.successor_placement[:3, :3], np.zeros(3)))
    shift = spatial.pose(np.eye(3), loop.successor_placement[:3, 3])
    own, across = (np.linalg.qr(turned @ basis)[0].T for basis in (S, C[:, is_kept]))
    kept = np.vstack([spatial.echelon_rows(own), spatial.echelon_rows(across)])
    dropped = spatial.echelon_rows((turned @ C[:, ~is_kept]).T)
    return LoopClosure(kept @ spatial.inverse_adjoint(shift), dropped @ spatial.adjoint(shift).T)


def placed_closure(loop: Loop, mask: tuple[bool, ...], places: Places) -> LoopClosure | None:
    """The same of scalars that stand for numbers of a state."""
    if all(mask) or loop.constant_subspace is not None:
        return None if all(mask) else _constant_closure(loop, mask)
    return LoopClosure(places.array(loop.nv + sum(mask), 6), places.array(len(mask) - sum(mask), 6))
