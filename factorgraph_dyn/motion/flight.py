"""The flight of a mechanism that nothing ties to the world but one floating joint: a step keeps its momentum.

    c = H / m                  the centre of mass,  u = c' = p / m  its velocity,  in the world
    c'' = u'                   what gravity and the forces of the floating joint alone bring about
    p_joint, v_joint           where the joint's child has to be, and to move, for given c and u:
                               c(q) and u(q, v) are affine in both, with matrices R_world_frame and R_world_child

A step of an integrator knows nothing of that: velocities of a turning body in its own axes add up to another momentum.
So c and u go through the same step beside q and v, as coordinates and velocities of a point, and the floating joint is
then set to where they have come. What joints and loops do to one another has no part in it, and the order of a method
stays. Where a mechanism is tied to the world, nothing is done. Work is done once a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint
from factorgraph_dyn.motion import masses
from factorgraph_dyn.motion.kinematics import link_pose
from factorgraph_dyn.spatial import Array, Floats, rotation_of_quaternion


@dataclass(frozen=True, eq=False)
class Flight:
    """A mechanism that flies.

    Attributes:
        bodies: Its tree, with the masses that move; numbers or symbols.
        joint: The floating joint: q = [position, quaternion], v = [omega; v] of its child.
        mass: Of all that flies, kg.
    """

    bodies: Mechanism
    joint: Joint
    mass: Any

    @cached_property
    def position(self) -> slice:
        """Where the floating joint's position lies in q."""
        start = self.bodies.q_slices[self.joint.name].start
        return slice(start, start + 3)

    @cached_property
    def quaternion(self) -> slice:
        """Where its quaternion lies in q."""
        return slice(self.position.stop, self.position.stop + 4)

    @cached_property
    def turn(self) -> slice:
        """Where its angular velocity lies in v."""
        start = self.bodies.v_slices[self.joint.name].start
        return slice(start, start + 3)

    @cached_property
    def shift(self) -> slice:
        """Where its linear velocity lies in v."""
        start = self.turn.stop
        return slice(start, start + 3)

    @cached_property
    def R_world_frame(self) -> Floats:
        """The axes of the joint frame, which never move."""
        T = link_pose(self.bodies, np.zeros(self.bodies.nq), self.joint.parent) @ np.asarray(self.joint.placement)
        return np.asarray(T[:3, :3])

    def R_world_child(self, q: Array) -> Array:
        """The axes of the body that the joint carries, shape (..., 3, 3)."""
        R_frame_child = rotation_of_quaternion(np.moveaxis(q[..., self.quaternion], -1, 0))
        return np.asarray(self.R_world_frame @ np.moveaxis(R_frame_child, (0, 1), (-2, -1)))

    def centre(self, q: Array, v: Array) -> tuple[Array, Array]:
        """The centre of mass and its velocity, shape (3,) each."""
        H, p, _ = masses.moving_moment(self.bodies, q, v)
        return H * (1.0 / self.mass), p * (1.0 / self.mass)

    def acceleration(self, q: Array, v: Array, a: Array) -> Array:
        """The acceleration of the centre of mass in a motion, shape (3,)."""
        _, _, dp = masses.moving_moment(self.bodies, q, v, a)
        return np.asarray(dp * (1.0 / self.mass))

    def kept(self, q: Array, v: Array, changed: tuple[Array, Array]) -> tuple[Array, Array]:
        """A changed state with the centre of mass, and its velocity, as they are at (q, v)."""
        return self.settled(*changed, *self.centre(q, v))

    def settled(self, q: Array, v: Array, c: Array, u: Array) -> tuple[Array, Array]:
        """The state with the floating joint where the centre of mass is at c and its velocity u."""
        q, v = q.copy(), v.copy()
        q[self.position] = v[self.shift] = 0.0
        c_there, u_there = self.centre(q, v)
        q[self.position] = self.R_world_frame.T @ (c - c_there)
        v[self.shift] = self.R_world_child(q).T @ (u - u_there)
        return q, v


def flight_of(mechanism: Mechanism, bodies: Mechanism | None = None) -> Flight | None:
    """The flight of a mechanism; None where more than one floating joint, or a loop, ties it to what never moves.

    Couplings tie joints to one another: their forces are inner ones.

    Args:
        mechanism: The mechanism.
        bodies: Its `moving_bodies`, where these are to be of symbols.
    """
    if bodies is None:
        return _flight_of(mechanism)
    still = masses.still_links(mechanism)
    ties = [joint for joint in mechanism.movable_joints if joint.parent in still]
    held = any({loop.predecessor, loop.successor} & still for loop in mechanism.loops if not loop.type.is_free)
    if held or len(ties) != 1 or not (ties[0].type.is_free and ties[0].type.has_quaternion):
        return None
    mass = masses.mass(bodies)
    if isinstance(mass, float | int) and not mass > 0:
        return None  # armature alone
    (joint,) = (joint for joint in bodies.joints if joint.name == ties[0].name)
    return Flight(bodies, joint, mass)


@kept_with_first
def _flight_of(mechanism: Mechanism) -> Flight | None:
    return flight_of(mechanism, masses.moving_bodies(mechanism))


# ---- steps


class Beside:
    """A configuration, velocity or acceleration, and that of a point: added and multiplied apart."""

    __slots__ = ("own", "point")
    __array_ufunc__ = None

    def __init__(self, own: Any, point: Any) -> None:
        self.own, self.point = own, point

    def __add__(self, other: Beside) -> Beside:
        return Beside(self.own + other.own, self.point + other.point)

    def __sub__(self, other: Beside) -> Beside:
        return Beside(self.own - other.own, self.point - other.point)

    def __rmul__(self, factor: Any) -> Beside:
        return Beside(factor * self.own, factor * self.point)


def flown(
    advance: Callable[..., tuple[Any, Any]], flight: Any, move: Any, accelerate: Any, q: Any, v: Any, step: Any
) -> tuple[Any, Any]:
    """The state after a step of an integrator, with the centre of mass of what flies where the same step leads it.

    Args:
        advance: The integrator.
        flight: What flies, or None, where the step is the integrator's.
        accelerate: As the integrator takes it; where something flies it gives the accelerations `Beside` that of the
            centre of mass.
        move, q, v, step: As the integrator takes them.
    """
    if flight is None:
        return advance(move, accelerate, q, v, step)
    c, u = flight.centre(q, v)
    place, rate = advance(
        lambda place, way: Beside(move(place.own, way.own), place.point + way.point),
        lambda part, place, rate: accelerate(part, place.own, rate.own),
        Beside(q, c),
        Beside(v, u),
        step,
    )
    arrived: tuple[Any, Any] = flight.settled(place.own, rate.own, place.point, rate.point)
    return arrived
