"""The flight of a mechanism on arrays that carry their changes along: what `motion.flight` does, differentiated.

    c'' = g + R f / m                  changes by  R (f' + w x f) / m
    position = R_frame^T (c - c_0)     along the child's velocities by  R^T (c' - c_0')
    v_shift  = R^T (u - u_0)           by  R^T (u' - u_0') + R^T (u - u_0) x w

with R = R_world_child, w the change of the child's turn in its own axes, ' the changes, and c_0 and u_0 at position and
v_shift zero. How these change with a state is told by whoever has it: the kernel of plain arrays, or a tape. Work is
done once a step.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from factorgraph_dyn.compiler.step.varied import Varied
from factorgraph_dyn.equations.pushed import pushed
from factorgraph_dyn.motion.flight import Flight
from factorgraph_dyn.spatial import Array, applied


@dataclass(frozen=True)
class VariedFlight:
    """A flight with changes along the directions [q, v, tau].

    Attributes:
        flight: What flies.
        tau: Torques of the step, shape (..., nv).
        centre: The centre of mass and its velocity at a state.
    """

    flight: Flight
    tau: Array
    centre: Callable[[Varied, Varied], tuple[Varied, Varied]]

    def pushed(self, q: Varied, v: Varied, a: Varied) -> Varied:
        """The acceleration of the centre of mass."""
        flight, joint = self.flight, self.flight.joint
        value = pushed(flight, q.value, v.value, a.value, self.tau)
        R = flight.R_world_child(q.value)
        force = applied(np.swapaxes(R, -1, -2), (value - np.asarray(flight.bodies.gravity)) * flight.mass)
        damping, armature = joint.damping[3:, None], joint.armature[3:, None]
        change = -damping * v.change[..., flight.shift, :] - armature * a.change[..., flight.shift, :]
        change = change - _across(force, q.change[..., flight.turn, :])
        driven = 2 * flight.bodies.nv + np.arange(flight.shift.start, flight.shift.stop)
        change[..., np.arange(3), driven] += 1.0
        return Varied(value, R @ change * (1.0 / flight.mass))

    def settled(self, q: Varied, v: Varied, c: Varied, u: Varied) -> tuple[Varied, Varied]:
        """The state with the floating joint moved so that the centre of mass is at c and moves by u."""
        flight = self.flight
        place, rate = (Varied(x.value.copy(), x.change.copy()) for x in (q, v))
        place.value[..., flight.position] = rate.value[..., flight.shift] = 0.0
        place.change[..., flight.shift, :] = rate.change[..., flight.shift, :] = 0.0
        c_there, u_there = self.centre(place, rate)
        away, slip, to_child = c - c_there, u - u_there, np.swapaxes(flight.R_world_child(q.value), -1, -2)
        shift = applied(to_child, slip.value)
        place.value[..., flight.position] = away.value @ flight.R_world_frame
        place.change[..., flight.shift, :] = to_child @ away.change
        rate.value[..., flight.shift] = shift
        rate.change[..., flight.shift, :] = to_child @ slip.change + _across(shift, q.change[..., flight.turn, :])
        return place, rate


def _across(vector: Array, columns: Array) -> Array:
    """The products of a vector, shape (..., 3), with columns, shape (..., 3, n)."""
    x, y, z = (vector[..., k, None] for k in range(3))
    a, b, c = (columns[..., k, :] for k in range(3))
    return np.stack([y * c - z * b, z * a - x * c, x * b - y * a], axis=-2)
