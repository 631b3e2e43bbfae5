"""Guards against states that do not close the loops.

Takes the state of symbols; gives values that a kernel watches: how far q and v are from closing each loop and
coupling, squared. A kernel takes a state that drifted a little, as an integrator's does, and answers nan where q
misses the closure by 2 % of a radian or of the mechanism's length, or v by as much of itself. What is as good as at
rest may slip as it likes: it is so beside gravity or, without, beside what is given.

    gravity    slip^2 / (v^2 + STILL g / length)                        without    slip^4 / (v^4 + STILL^2 given^2)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
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
from factorgraph_dyn.motion.random_states import APART, MOST_MODES
from factorgraph_dyn.spatial import Array, Floats, pose

_OPEN = 0.02
_POWERS = {2: "square", 4: "fourth power"}
_STILL = 1e-6  # of the accelerations of a mechanism, a squared speed below which it is as good as at rest
NOTHING = 1e-200  # far below the square of any number that means something, so that 0 / 0 is 0


def closure_guards(tape: Tape, state: State, q: Array, own: Natural, given: Symbol) -> list[Guard]:
    """What a kernel has to watch so that it refuses states that are far from closed.

    Args:
        tape: Where the values are.
        state: The state of symbols.
        q: The coordinates as the user gives them, which may be shifted in the state; couplings are about these.
        own: Units in which closing is measured.
        given: The squared size of given accelerations and torques.
    """
    measure = _per_speed(state, own, given)
    return [
        Guard(ref, _OPEN**power, f"{_POWERS[power]} by which {what} misses the closure of {name!r}", small=True)
        for what, name, square in (*_of_loops(state, own), *_of_couplings(state, q, own))
        for missed, power in [(square, 2) if what == "q" else measure(square)]
        for ref in [abs(int(references(tape, np.array([missed]))[0]))]
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
        yield "v", loop.name, np.sum(slip * slip)


def _of_couplings(state: State, q: Array, own: Natural) -> Iterator[tuple[str, str, Symbol]]:
    mechanism = state.mechanism
    for coupling in mechanism.couplings:
        place = mechanism.v_slices[coupling.joint]
        v_here, v_source = (state.v[mechanism.v_slices[name]][0] for name in (coupling.joint, coupling.source))
        unit = 1.0 / float(own.v[place][0])
        misfit = coupling_error(mechanism, coupling, q)[0] * unit
        slip = (v_here - coupling.ratio * v_source) * unit
        yield "q", coupling.name, misfit * misfit
        yield "v", coupling.name, slip * slip


def _per_speed(state: State, own: Natural, given: Symbol) -> Callable[[Symbol], tuple[Symbol, int]]:
    """What takes the square of a slip and gives a power of its part of the speed, and which power."""
    speeds = state.v * (1.0 / own.v)
    gravity = float(np.linalg.norm(np.asarray(state.mechanism.gravity))) / own.length
    square: Any = np.sum(speeds * speeds)
    if gravity:
        inverse = 1.0 / (square + _STILL * gravity)
        return lambda square_slip: (square_slip * inverse, 2)
    inverse = 1.0 / (square * square + _STILL**2 * given + NOTHING)
    return lambda square_slip: (square_slip * square_slip * inverse, 4)


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
        turns = [joint.is_hinge for joint in plain]
        modes = _different(samples[:, places] / own.q[places], turns)
        if not plain or len(modes) > MOST_MODES:
            continue  # joints that move have as many configurations as samples
        away = [_away(q[places] / own.q[places], mode, turns) for mode in modes]
        others = [[_away(mode, modes[m], turns) for m in range(len(modes)) if m != k] for k, mode in enumerate(modes)]
        ref = abs(int(references(tape, np.array([np.prod(away)]))[0]))
        threshold = _OPEN**2 * min(float(np.prod(apart)) for apart in others)
        names = ", ".join(joint.name for joint in group.joints)
        guards.append(Guard(ref, threshold, f"square by which {names} miss the known assembly modes", small=True))
    return guards


def _different(places: Floats, turns: list[bool]) -> list[Floats]:
    """Those of the places that are not the same as one before."""
    found: list[Floats] = []
    for place in places:
        if all(_away(place, other, turns) > APART**2 for other in found):
            found.append(place)
    return found


def _away(q: Array, mode: Floats, turns: list[bool]) -> Any:
    """Square of the distance of coordinates from a mode's, the same for whole turns."""
    squares = [2.0 - 2.0 * np.cos(x - y) if turn else (x - y) ** 2 for x, y, turn in zip(q, mode, turns, strict=True)]
    return np.sum(squares)
