"""Task-space control of a humanoid: M^-1 B once a time step, or the equations of motion in every iteration.

The right hand is lifted by 100 mm while all else stays: a least-squares problem for 18 torques and 24 contact forces.
Eliminating the accelerations first makes it unconstrained (Kroeg, Gattringer & Mueller, equation 2):

    min | J_t Bhat u + y0 - wanted |^2 + WEIGHT | u |^2
"""

import time

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.motion.kinematics import integrate, link_poses

STEPS, DT, WEIGHT, KP, KD = 20, 0.025, 1e-6, 100.0, 20.0
GRIP = np.array([0.0, 0.0, -0.3, 1.0])  # the hand in the forearm's frame
robot = fgd.robots.humanoid()
feet = [fgd.Contact(frame.name, axes="world") for frame in robot.frames]
hands = [fgd.Contact(f"{side}_forearm", GRIP[:3], axes="world") for side in ("left", "right")]
tasks = [*feet, fgd.Contact("torso", kind="wrench", axes="world"), *hands]


def least_squares(apply, adjoint, target, size):
    """The u that minimises |apply(u) - target|^2 + WEIGHT |u|^2, by conjugate gradients."""
    u, residual = np.zeros(size), adjoint(target)
    direction, square = residual, residual @ residual
    end = 1e-20 * square
    while square > end:
        image = adjoint(apply(direction)) + WEIGHT * direction
        step = square / (direction @ image)
        u, residual = u + step * direction, residual - step * image
        before, square = square, residual @ residual
        direction = residual + square / before * direction
    return u


def hand_at(q):
    return (link_poses(robot, q)["right_forearm"] @ GRIP)[:3]


def equations_once(q, v):
    """The equations of motion are solved before the optimisation, for all inputs together."""
    known = fgd.input_dynamics(robot, q, v, contacts=feet, tasks=tasks)
    wanted = -KD * (known.task_jacobian @ v)  # all comes to rest, the right hand at its goal
    wanted[-3:] += KP * (goal - hand_at(q))
    A, target = known.task_matrix, wanted - known.free_task
    return known, target, least_squares(lambda x: A @ x, lambda y: A.T @ y, target, len(known.names))


def equations_inside(q, v, known, target):
    """Every product with M^-1 in the optimisation is a forward dynamics solve."""
    J_t, B = known.task_jacobian, fgd.input_matrix(robot, q, contacts=feet)

    def M_inverse(tau):
        return fgd.forward_dynamics(robot, q, v, tau).a - known.free

    return least_squares(lambda x: J_t @ M_inverse(B @ x), lambda y: B.T @ M_inverse(J_t.T @ y), target, B.shape[1])


q, v = robot.neutral(), np.zeros(robot.nv)
for side in ("left", "right"):
    for joint, angle in (("hip_pitch", -0.4), ("knee", 0.8), ("ankle_pitch", -0.4), ("elbow", -1.2)):
        q[robot.q_slice(f"{side}_{joint}")] = angle
start = hand_at(q)
goal = start + np.array([0.0, 0.0, 0.1])
for _ in range(STEPS):
    known, _, u = equations_once(q, v)
    a = known.acceleration(u)
    q, v = integrate(robot, q, v + 0.5 * DT * a, DT), v + DT * a
print(f"after {STEPS * DT:.1f} s the hand is {1e3 * (hand_at(q) - start)[2]:.0f} mm higher")

began = time.perf_counter()
known, target, u = equations_once(q, v)
once, began = time.perf_counter() - began, time.perf_counter()
u_inside = equations_inside(q, v, known, target)
inside = time.perf_counter() - began
print(f"{robot.nv} freedoms, {len(u)} inputs, {len(target)} task rows; same inputs to {abs(u - u_inside).max():.0e} N")
print(f"a step: once {1e3 * once:.1f} ms, inside {1e3 * inside:.0f} ms, {inside / once:.0f} times as long")
