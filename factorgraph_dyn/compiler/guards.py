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
from factorgraph_dyn.compiler.tape.symbol import Symbol, references
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.equations import State
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.units import Natural
from factorgraph_dyn.motion.closure import coupling_error
from factorgraph_dyn.motion.kinematics import link_poses, loop_pose
from factorgraph_dyn.spatial import Array, Floats, pose

_OPEN = 0.02
_MODES = 3  # assembly modes of a locked group of loops, at most
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


def mode_guards(tape: Tape, mechanism: Mechanism, q: Array, samples: Floats, own: Natural) -> list[Guard]:
    """What a kernel has to watch where loops lock joints: it knows only the assembly modes that it was tried in.

    What is zero in one mode of a locked loop need not be in another, and no state in between tells.

    Args:
        tape: Where the values are.
        mechanism: The mechanism as it was given.
        q: The coordinates of symbols.
        samples: Coordinates of the sampled states, shape (states, nq).
        own: Units in which closing is measured.
    """
    guards = []
    for group in loop_groups(mechanism):
        plain = [joint for joint in group.joints if joint.nq == joint.nv == 1]
        places = [mechanism.q_slices[joint.name].start for joint in plain]
        modes = np.unique(np.round(samples[:, places] / own.q[places], 6), axis=0)
        if not plain or len(modes) > _MODES:
            continue  # joints that move have as many configurations as samples
        turns = [joint.is_hinge for joint in plain]
        away = [_away(q[places] / own.q[places], mode, turns) for mode in modes]
        others = [[_away(mode, modes[m], turns) for m in range(len(modes)) if m != k] for k, mode in enumerate(modes)]
        ref = abs(int(references(tape, np.array([np.prod(away)]))[0]))
        threshold = _OPEN**2 * min(float(np.prod(apart)) for apart in others)
        names = ", ".join(joint.name for joint in group.joints)
        guards.append(Guard(ref, threshold, f"square by which {names} miss the known assembly modes", small=True))
    return guards


def _away(q: Array, mode: Floats, turns: list[bool]) -> Any:
    """Square of the distance of coordinates from a mode's, the same for whole turns."""
    squares = [2.0 - 2.0 * np.cos(x - y) if turn else (x - y) ** 2 for x, y, turn in zip(q, mode, turns, strict=True)]
    return np.sum(squares)
