"""Task-space control of a humanoid: M^-1 B once a time step, or the equations of motion in every iteration.

The right hand is lifted and lowered while all else stays: a least-squares problem for 18 torques and 24 contact
forces. Eliminating the accelerations first makes it unconstrained (Kroeg, Gattringer & Mueller, equation 2):

    min | J_t Bhat u + y0 - wanted |^2 + WEIGHT | u |^2

With a file name as argument, the hand's way and the times are drawn.
"""

import sys
import time

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.model.kinematics import integrate, link_poses

STEPS, DT, WEIGHT, KP, KD = 20, 0.025, 1e-6, 100.0, 20.0
GRIP, UP = np.array([0.0, 0.0, -0.3, 1.0]), np.array([0.0, 0.0, 1.0])  # the hand in the forearm's frame; upward
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


def equations_once(q, v, t):
    """The equations of motion are solved before the optimisation, for all inputs together."""
    known = fgd.input_dynamics(robot, q, v, contacts=feet, tasks=tasks)
    A, target = known.task_matrix, wanted(known.task_jacobian, q, v, t) - known.free_task
    return known, least_squares(lambda x: A @ x, lambda y: A.T @ y, target, len(known.names))


def equations_inside(q, v, t, known):
    """Every product with M^-1 in the optimisation is a forward dynamics solve."""
    J_t, B = known.task_jacobian, fgd.input_matrix(robot, q, contacts=feet)
    free = fgd.forward_dynamics(robot, q, v, np.zeros(robot.nv)).a

    def M_inverse(tau):
        return fgd.forward_dynamics(robot, q, v, tau).a - free

    target = wanted(J_t, q, v, t) - J_t @ free - known.task_bias
    return least_squares(lambda x: J_t @ M_inverse(B @ x), lambda y: B.T @ M_inverse(J_t.T @ y), target, B.shape[1])


def wanted(J_t, q, v, t):
    """Task accelerations: all come to rest but the right hand, which follows its stroke."""
    w = 2 * np.pi / (STEPS * DT)
    way, speed, rate = 0.05 * np.array([1 - np.cos(w * t), w * np.sin(w * t), w**2 * np.cos(w * t)])
    wanted = -KD * (J_t @ v)
    wanted[-3:] += KP * (start + way * UP - hand_at(q)) + (KD * speed + rate) * UP
    return wanted


q, v = robot.neutral(), np.zeros(robot.nv)
for side in ("left", "right"):
    for joint, angle in (("hip_pitch", -0.4), ("knee", 0.8), ("ankle_pitch", -0.4), ("elbow", -1.2)):
        q[robot.q_slice(f"{side}_{joint}")] = angle
start, heights, once, inside, differences = hand_at(q), [], [], [], []
for k in range(STEPS):
    began = time.perf_counter()
    known, u = equations_once(q, v, k * DT)
    once.append(1e3 * (time.perf_counter() - began))
    if k % 5 == 0:
        began = time.perf_counter()
        u_inside = equations_inside(q, v, k * DT, known)
        inside.append(1e3 * (time.perf_counter() - began))
        differences.append(np.abs(u - u_inside).max() / np.abs(u).max())
    a = known.acceleration(u)
    heights.append(1e3 * (hand_at(q) - start)[2])
    q, v = integrate(robot, q, v + 0.5 * DT * a, DT), v + DT * a

print(f"{robot.nv} freedoms, {len(u)} inputs, {len(known.task_names)} task rows")
print(f"hand lifted by {max(heights):.0f} mm, at the end {heights[-1]:.0f} mm")
print(f"same inputs to {max(differences):.0e}")
print(f"a step: once {min(once):.1f} ms, inside {min(inside):.0f} ms, {min(inside) / min(once):.0f} times as long")

if len(sys.argv) > 1:
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(8, 3), layout="constrained")
    left.plot(DT * np.arange(STEPS), heights)
    left.set(title="height of the hand", xlabel="time (s)", ylabel="mm")
    right.plot(once, "o-", label="M^-1 B once")
    right.plot(range(0, STEPS, 5), inside, "s-", label="dynamics inside")
    right.set(title="time of a control step", xlabel="step", ylabel="ms", yscale="log")
    right.legend()
    figure.savefig(sys.argv[1])
