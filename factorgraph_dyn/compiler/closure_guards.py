"""Guards against states that do not close the loops.

Takes the state of symbols; gives values that a kernel watches: how far q and v are from closing each loop and
coupling, squared. A kernel takes a state that drifted a little, as an integrator's does, and answers nan where q
misses the closure by 2 % of a radian or of the mechanism's size, or v by as much of itself. The work runs once a
kernel, and costs it about 6 % of its operations, up to 15 % and more for small planar linkages.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.symbol import Symbol, references
from factorgraph_dyn.compiler.tape import Tape
from factorgraph_dyn.equations import State
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.closure import coupling_error
from factorgraph_dyn.model.kinematics import link_poses, loop_pose
from factorgraph_dyn.spatial import Array, pose

_OPEN = 0.02
_STILL = 1e-6  # (rad/s)^2 below which a mechanism is as good as at rest


def closure_guards(tape: Tape, state: State, q: Array) -> list[Guard]:
    """What a kernel has to watch so that it refuses states that are far from closed.

    Args:
        tape: Where the values are.
        state: The state of symbols.
        q: The coordinates as the user gives them, which may be shifted in the state; couplings are about these.
    """
    return [
        Guard(ref, _OPEN**2, f"square by which {what} misses the closure of {name!r}", small=True)
        for what, name, square in (*_of_loops(state), *_of_couplings(state, q))
        for ref in [abs(int(references(tape, np.array([square]))[0]))]
        if ref
    ]


def _of_loops(state: State) -> Iterator[tuple[str, str, Symbol]]:
    """Square of what q and v miss of every loop, lengths in parts of the mechanism's size."""
    poses = link_poses(state.mechanism, state.q) if state.loops else {}
    lengths = np.array([1.0, 1.0, 1.0, *[1.0 / _size(state.mechanism)] * 3])
    for loop in state.mechanism.loops:
        here = state.loops[loop.name]
        T = loop_pose(loop, poses)
        misfit = loop.type.misfit(loop.axes, pose(T[:3, :3], lengths[3:] * T[:3, 3]))
        slip = state.twists[here.child] - here.Ad_child_parent @ state.twists[here.parent] - here.S @ here.v
        slip = lengths * slip
        yield "q", loop.name, np.sum(misfit * misfit)
        yield "v", loop.name, np.sum(slip * slip) * _per_square_speed(state)


def _of_couplings(state: State, q: Array) -> Iterator[tuple[str, str, Symbol]]:
    mechanism = state.mechanism
    for coupling in mechanism.couplings:
        v_here, v_source = (state.v[mechanism.v_slices[name]][0] for name in (coupling.joint, coupling.source))
        misfit = coupling_error(mechanism, coupling, q)[0]
        slip = v_here - coupling.ratio * v_source
        yield "q", coupling.name, misfit * misfit
        yield "v", coupling.name, slip * slip * _per_square_speed(state)


def _per_square_speed(state: State) -> Symbol:
    inverse: Symbol = 1.0 / (np.sum(state.v * state.v) + _STILL)
    return inverse


def _size(mechanism: Mechanism) -> float:
    """The longest placement, m, rounded to a power of two; 1 where there is none."""
    ends = [end for loop in mechanism.loops for end in (loop.predecessor_placement, loop.successor_placement)]
    places = [*(joint.placement for joint in mechanism.joints), *ends]
    longest = max((float(np.linalg.norm(np.asarray(place)[:3, 3])) for place in places), default=0.0)
    return float(2.0 ** np.round(np.log2(longest))) if longest else 1.0
