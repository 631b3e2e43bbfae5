"""Swing a pole up with a cart, by iterative LQR on kernels: every step is linearised in one batched call.

backward   Q = cost + A^T V A, ...     gains and steps of the quadratic model (Tassa, Erez & Todorov 2012)
forward    all step lengths at once, as a batch; the best that helps is taken
"""

import numpy as np

import factorgraph_dyn as fgd

STEPS, H = 100, 0.03
EFFORT, LENGTHS = 1e-3, 0.5 ** np.arange(10)
GOAL, AT_END = np.array([0.0, np.pi, 0.0, 0.0]), np.diag([200.0, 400.0, 40.0, 40.0])
MOTOR = np.array([1.0, 0.0])  # only the cart is driven

links = [
    fgd.Link("rail"),
    fgd.Link("cart", 1.0, inertia=np.eye(3) * 1e-2),
    fgd.Link("pole", 0.2, (0.0, 0.0, -0.5), np.diag([0.02, 0.02, 1e-4])),
]
joints = [
    fgd.Joint("slide", "prismatic", "rail", "cart", axis=(1, 0, 0)),
    fgd.Joint("swing", "revolute", "cart", "pole", axis=(0, -1, 0)),
]
cart_pole = fgd.Mechanism("cart_pole", links, joints)
linearise = fgd.compile_step(cart_pole, "semi_implicit")
accelerate = fgd.compile(cart_pole, "forward")


def cost(x, u):
    """What trajectories x (..., steps + 1, 4) and forces u (..., steps) cost."""
    miss = x[..., -1, :] - GOAL
    return 0.5 * H * EFFORT * np.sum(u**2, axis=-1) + 0.5 * np.einsum("...i,ij,...j", miss, AT_END, miss)


def driven(x_before, u_before, k, K):
    """Trajectories of all step lengths under the forces u + length k + K (x - x before)."""
    x = np.broadcast_to(x_before[0], (len(LENGTHS), 4)).copy()
    xs, us = [x], []
    for t in range(STEPS):
        u = u_before[t] + LENGTHS * k[t] + (x - x_before[t]) @ K[t]
        v = x[:, 2:] + H * accelerate(x[:, :2], x[:, 2:], u[:, None] * MOTOR)
        x = np.concatenate([x[:, :2] + H * v, v], axis=1)
        xs.append(x)
        us.append(u)
    return np.stack(xs, axis=1), np.stack(us, axis=1)


def gains(x, u, damping):
    """The optimal change k + K x of the forces for the linearised motion and the quadratic cost."""
    step = linearise(x[:-1, :2], x[:-1, 2:], u[:, None] * MOTOR, H)
    k, K, Vx, Vxx = np.zeros(STEPS), np.zeros((STEPS, 4)), AT_END @ (x[-1] - GOAL), AT_END
    for t in reversed(range(STEPS)):
        A, b = step.A[t], step.B[t] @ MOTOR
        Qu, Quu, Qux = H * EFFORT * u[t] + b @ Vx, H * EFFORT + b @ Vxx @ b + damping, b @ Vxx @ A
        k[t], K[t] = -Qu / Quu, -Qux / Quu
        Vx = A.T @ Vx + K[t] * Quu * k[t] + K[t] * Qu + Qux * k[t]
        Vxx = A.T @ Vxx @ A + Quu * np.outer(K[t], K[t]) + np.outer(K[t], Qux) + np.outer(Qux, K[t])
    return k, K


u, damping = 0.1 * np.sin(np.arange(STEPS) * H * 4.0), 1e-2
x = driven(np.zeros((STEPS + 1, 4)), u, np.zeros(STEPS), np.zeros((STEPS, 4)))[0][0]
for count in range(1, 301):
    xs, us = driven(x, u, *gains(x, u, damping))
    costs, before = np.nan_to_num(cost(xs, us), nan=np.inf), cost(x, u)
    best = int(costs.argmin())
    damping = max(damping / 3, 1e-8) if costs[best] < before else damping * 10
    if costs[best] < before:
        x, u = xs[best], us[best]
        if before - costs[best] < 1e-7 * before:
            print(f"after {count} iterations: pole at {np.degrees(x[-1, 1]):.1f} deg, cost {costs[best]:.3f}")
            break
assert np.abs(x[-1] - GOAL).max() < 0.05
