"""Guards against states that do not close the loops.

Takes the state of symbols; gives values that a kernel watches: how far q and v are from closing each loop and
coupling, squared. A kernel takes a state that drifted a little, as an integrator's does, and answers nan where q
misses the closure by 2 % of a radian or of the mechanism's length, or v by as much of itself.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.symbol import Symbol, references
from factorgraph_dyn.compiler.tape import Tape
from factorgraph_dyn.equations import State
from factorgraph_dyn.model.closure import coupling_error
from factorgraph_dyn.model.kinematics import link_poses, loop_pose
from factorgraph_dyn.model.units import Natural
from factorgraph_dyn.spatial import Array, pose

_OPEN = 0.02
_STILL = 1e-6  # of gravity's effect on the mechanism, a squared speed below which it is as good as at rest


def closure_guards(tape: Tape, state: State, q: Array, own: Natural) -> list[Guard]:
    """What a kernel has to watch so that it refuses states that are far from closed.

    Args:
        tape: Where the values are.
        state: The state of symbols.
        q: The coordinates as the user gives them, which may be shifted in the state; couplings are about these.
        own: Units in which closing is measured.
    """
    return [
        Guard(ref, _OPEN**2, f"square by which {what} misses the closure of {name!r}", small=True)
        for what, name, square in (*_of_loops(state, own), *_of_couplings(state, q, own))
        for ref in [abs(int(references(tape, np.array([square]))[0]))]
        if ref
    ]


def _of_loops(state: State, own: Natural) -> Iterator[tuple[str, str, Symbol]]:
    """Square of what q and v miss of every loop, lengths in parts of the mechanism's length."""
    poses = link_poses(state.mechanism, state.q) if state.loops else {}
    for loop in state.mechanism.loops:
        here = state.loops[loop.name]
        T = loop_pose(loop, poses)
        misfit = loop.type.misfit(loop.axes, pose(T[:3, :3], T[:3, 3] * (1.0 / own.length)))
        slip = state.twists[here.child] - here.Ad_child_parent @ state.twists[here.parent] - here.S @ here.v
        slip = slip * (1.0 / own.motion)
        yield "q", loop.name, np.sum(misfit * misfit)
        yield "v", loop.name, np.sum(slip * slip) * _per_square_speed(state, own)


def _of_couplings(state: State, q: Array, own: Natural) -> Iterator[tuple[str, str, Symbol]]:
    mechanism = state.mechanism
    for coupling in mechanism.couplings:
        place = mechanism.v_slices[coupling.joint]
        v_here, v_source = (state.v[mechanism.v_slices[name]][0] for name in (coupling.joint, coupling.source))
        unit = 1.0 / float(own.v[place][0])
        misfit = coupling_error(mechanism, coupling, q)[0] * unit
        slip = (v_here - coupling.ratio * v_source) * unit
        yield "q", coupling.name, misfit * misfit
        yield "v", coupling.name, slip * slip * _per_square_speed(state, own)


def _per_square_speed(state: State, own: Natural) -> Symbol:
    speeds = state.v * (1.0 / own.v)
    gravity = float(np.linalg.norm(np.asarray(state.mechanism.gravity))) / own.length
    square: Any = np.sum(speeds * speeds)
    inverse: Symbol = 1.0 / (square + _STILL * (gravity or 1.0))
    return inverse
