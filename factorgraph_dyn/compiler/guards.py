"""Guards against states that do not close the loops.

Takes the state of symbols; gives values that a kernel watches: how far q, v and given accelerations are from closing
each loop and coupling, squared. A kernel takes a state that drifted a little, as an integrator's does, and answers nan
where q misses the closure by 2 % of a radian or of the mechanism's length, or v by as much of itself. What is as good
as at rest may slip as it likes: it is so beside gravity or, without, beside what is given.

    gravity    slip^2 / (v^2 + STILL g / length)                        without    slip^4 / (v^4 + STILL^2 given^2)

A loop is looked at where its two sides meet, on vectors: cheaper than what elimination leaves of its equations.
Operations of kernels without and with guards:

                        four_bar     five_bar     stewart         delta
    inverse (rnea)      71  168      108  205     2533  3360      2711  3594
    forward (aba)       191 234      313  365     7751  8270      14919 15484
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.compiler.program import Guard
from factorgraph_dyn.compiler.tape.symbol import Symbol, references
from factorgraph_dyn.compiler.tape.tape import Tape
from factorgraph_dyn.equations import State
from factorgraph_dyn.equations.known_motion import acceleration_tensor, classical_accelerations
from factorgraph_dyn.model import Loop, Mechanism
from factorgraph_dyn.model.loop_groups import loop_groups
from factorgraph_dyn.model.sizes.units import Natural
from factorgraph_dyn.motion.closure import constant_directions, coupling_error
from factorgraph_dyn.motion.kinematics import link_poses, loop_pose
from factorgraph_dyn.motion.random_states import APART, MOST_MODES
from factorgraph_dyn.spatial import Array, Floats, cross

OPEN = 0.02
_POWERS = {2: "square", 4: "fourth power"}
_LEAST_OPEN = 1e-9  # rad, and parts of the mechanism's length, by which loops that are closed may be open
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
        Guard(ref, OPEN**power, f"{_POWERS[power]} by which {what} misses the closure of {name!r}", small=True)
        for what, name, square in (*_of_loops(state, own), *_of_couplings(state, q, own))
        for missed, power in [(square, 2) if what == "q" else measure(square)]
        for ref in [abs(int(references(tape, np.array([missed]))[0]))]
        if ref
    ]


def per_square_open(state: State, own: Natural) -> Symbol:
    """One over the square by which q misses the closure of all loops; loops are never closer than to rounding."""
    square: Any = np.sum(np.array([meeting.misfit for meeting in _meetings(state, own)]))
    inverse: Symbol = 1.0 / (square + _LEAST_OPEN**2)
    return inverse


def is_ball(loop: Loop) -> bool:
    """Whether a loop holds two points together and nothing else."""
    C = constant_directions(loop)
    return C is not None and C.shape[1] == 3 and not C[:3].any()


class _Meeting:
    """A loop at a state, seen where its sides meet.

    Attributes:
        own: Units in which closing is measured.
        R: How the successor's frame is turned in the predecessor's.
    """

    def __init__(self, state: State, loop: Loop, poses: Mapping[str, Array], own: Natural) -> None:
        self.state, self.loop, self.own = state, loop, own
        self._poses = poses
        self._T = loop_pose(loop, poses)
        self.R = self._T[:3, :3]

    @property
    def misfit(self) -> Symbol:
        """Square of what q misses, lengths in parts of the mechanism's length."""
        meets = not self.loop.type.subspace(self.loop.axes, self.loop.pitch, np.eye(4))[3:].any()
        p = self._T[:3, 3]
        if meets:  # how far apart two origins are is so in any axes, and the world's are at hand
            ends = self._poses[self.loop.successor] @ self.loop.successor_placement[:, 3]
            p = (ends - self._poses[self.loop.predecessor] @ self.loop.predecessor_placement[:, 3])[:3]
        return _square(self.loop.type.misfit(self.loop.axes, spatial.pose(self.R, p / self.own.length)))

    @property
    def slip(self) -> Symbol:
        """Square of what v misses, lengths likewise."""
        twists, S = self.state.twists, self.loop.constant_subspace
        if is_ball(self.loop):
            return _square(self._parting({link: _velocity(V) for link, V in twists.items()}))
        here = self.state.loops[self.loop.name]
        slip = twists[here.child] - here.Ad_child_parent @ twists[here.parent]
        if S is None:
            return _square((slip - here.S @ here.v) / self.own.motion)
        # Directions of a screw have turns and shifts in them: what a loop allows has none of them in these units only.
        C = spatial.constraint_directions(S / self.own.motion[:, None])
        seen = (C.T / self.own.motion) @ spatial.inverse_adjoint(self.loop.successor_placement)
        return _square(seen @ slip)

    def breach(self, accelerations: Mapping[str, Array]) -> Array:
        """What classical accelerations of the links' origins miss of a ball."""
        twists = self.state.twists
        return self._parting({link: _acceleration(A, twists[link][:3]) for link, A in accelerations.items()})

    def _parting(self, of: Mapping[str, Callable[[Floats], Array]]) -> Array:
        """How the two points of a ball part, from what each link makes of a point on it."""
        (R, p), (R_back, p_back) = (
            (placement[:3, :3], placement[:3, 3])
            for placement in (self.loop.successor_placement, self.loop.predecessor_placement)
        )
        there, back = R.T @ of[self.loop.successor](p), R_back.T @ of[self.loop.predecessor](p_back)
        return np.asarray((there - self.R.T @ back) / self.own.length)


def _velocity(V: Array) -> Callable[[Floats], Array]:
    return lambda p: V[3:] + cross(V[:3], p)


def _acceleration(A: Array, omega: Array) -> Callable[[Floats], Array]:
    return lambda p: A[3:] + acceleration_tensor(omega, A[:3]) @ p


def _square(x: Array) -> Symbol:
    square: Symbol = np.sum(x * x)
    return square


def _meetings(state: State, own: Natural) -> list[_Meeting]:
    """All loops, seen where their sides meet."""
    poses = link_poses(state.mechanism, state.q) if state.loops else {}
    return [_Meeting(state, loop, poses, own) for loop in state.mechanism.loops]


def _of_loops(state: State, own: Natural) -> Iterator[tuple[str, str, Symbol]]:
    """Square of what q and v miss of every loop, lengths in parts of the mechanism's length."""
    for meeting in _meetings(state, own):
        yield "q", meeting.loop.name, meeting.misfit
        yield "v", meeting.loop.name, meeting.slip


def breaches(state: State, own: Natural, a: Array) -> list[Array]:
    """What given accelerations miss of every coupling and loop, all of which are balls.

    Args:
        state: The state of symbols.
        own: Units in which closing is measured.
        a: Given accelerations of all joints.
    """
    accelerations = classical_accelerations(state, a)
    found = [meeting.breach(accelerations) for meeting in _meetings(state, own)]
    mechanism = state.mechanism
    for coupling in mechanism.couplings:
        here, source = (a[mechanism.v_slices[name]] for name in (coupling.joint, coupling.source))
        found.append((here - coupling.ratio * source) / float(own.v[mechanism.v_slices[coupling.joint]][0]))
    return found


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
    gravity = float(np.linalg.norm(np.asarray(own.given.gravity))) / own.length
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
        if not plain or len(modes) >= MOST_MODES:
            continue  # joints that move have as many configurations as samples; many modes tell as much as these
        away = [_away(q[places] / own.q[places], mode, turns) for mode in modes]
        others = [[_away(mode, modes[m], turns) for m in range(len(modes)) if m != k] for k, mode in enumerate(modes)]
        ref = abs(int(references(tape, np.array([np.prod(away)]))[0]))
        threshold = OPEN**2 * min(float(np.prod(apart)) for apart in others)
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
