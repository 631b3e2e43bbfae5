"""One step in time: from a state and accelerations to the next state, for floats or symbols.

    semi_implicit   v' = v + h a(q, v),   q' = q (+) h v'                          error O(h)
    rk4             stages      u_i = h v_i,   a_i = a(q_i, v_i)
                    q_2 = q (+) u_1/2,   q_3 = q (+) u_2/2,   q_4 = q_2 (+) (u_3 - u_1/2),      v_i as usual
                    q' = q (+) (3 u_1 + 2 u_2 + 2 u_3 - u_4)/12 (+) (-u_1 + 2 u_2 + 2 u_3 + 3 u_4)/12     error O(h^4)

where q (+) u moves by a constant velocity for unit time, as `kinematics.integrate` does: turns are composed by the
exponential map and quaternions stay unit ones. Where q (+) u = q + u the second is the classical Runge-Kutta method; on
turns it is the commutator-free one of Celledoni, Marthinsen & Owren (Lie group methods, 2003), whose sums of
velocities at different places are still of fourth order. Where the mass matrix is constant the first keeps energy
bounded, as symplectic methods do; elsewhere it does not, and energy may drift by O(h).

A mechanism that flies has the centre of mass and its velocity beside q and v (`flight`). Work is done once a step;
accelerations cost far more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from factorgraph_dyn.spatial import Array

Integrator = Literal["semi_implicit", "rk4"]
Move = Callable[[Array, Array], Array]
"""q and a velocity for unit time give q (+) u."""
Accelerate = Callable[[float, Array, Array], Array]
"""The part of the step that has passed, q and v give a."""
Step = Callable[[Move, Accelerate, Array, Array, Any], tuple[Array, Array]]


def semi_implicit(move: Move, accelerate: Accelerate, q: Array, v: Array, step: Any) -> tuple[Array, Array]:
    """The state after a step of the semi-implicit Euler method; one acceleration."""
    v_new = v + step * accelerate(0.0, q, v)
    return move(q, step * v_new), v_new


def rk4(move: Move, accelerate: Accelerate, q: Array, v: Array, step: Any) -> tuple[Array, Array]:
    """The state after a step of the fourth-order Runge-Kutta method; four accelerations."""
    half = 0.5 * step
    a_1 = accelerate(0.0, q, v)
    to_middle = half * v
    q_2, v_2 = move(q, to_middle), v + half * a_1
    a_2 = accelerate(0.5, q_2, v_2)
    q_3, v_3 = move(q, half * v_2), v + half * a_2
    a_3 = accelerate(0.5, q_3, v_3)
    q_4, v_4 = move(q_2, step * v_3 - to_middle), v + step * a_3
    a_4 = accelerate(1.0, q_4, v_4)
    # half of the whole way, and what its first half has more of the early velocities
    mean, early = (step / 12) * (v + 2.0 * (v_2 + v_3) + v_4), (step / 6) * (v - v_4)
    return move(move(q, mean + early), mean - early), v + (step / 6) * (a_1 + 2.0 * (a_2 + a_3) + a_4)


INTEGRATORS: dict[str, Step] = {"rk4": rk4, "semi_implicit": semi_implicit}
