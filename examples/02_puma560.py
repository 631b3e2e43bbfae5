"""The PUMA 560: forward, inverse and hybrid dynamics are one graph with different variables known."""

import numpy as np

import factorgraph_dyn as fgd

np.set_printoptions(precision=4, suppress=True)
puma = fgd.robots.puma560()
rng = np.random.default_rng(7)
q, v = puma.random_state(rng)

# Inverse: accelerations in, torques out.
a = rng.normal(size=6)
inverse = fgd.inverse_dynamics(puma, q, v, a, ordering="rnea")
print("torques          ", inverse.tau)

# Forward: the torques give the accelerations back, whatever the ordering.
for ordering in ("aba", "crba", "colamd"):
    forward = fgd.forward_dynamics(puma, q, v, inverse.tau, ordering=ordering)
    print(f"{ordering:>6}: largest error of a {np.abs(forward.a - a).max():.1e}")

# Hybrid: the wrist follows given accelerations, the arm is given torques.
hybrid = fgd.hybrid_dynamics(
    puma,
    q,
    v,
    a={"joint4": a[3], "joint5": a[4], "joint6": a[5]},
    tau={"joint1": inverse.tau[0], "joint2": inverse.tau[1], "joint3": inverse.tau[2]},
)
print("accelerations    ", hybrid.a)
print("torques          ", hybrid.tau)

# A 2 kg payload pulls at the hand: a wrench on link6, in its frame.
pulled = fgd.inverse_dynamics(puma, q, v, a, external_wrenches={"link6": [0, 0, 0, 0, 0, -2 * 9.81]})
print("extra torques    ", pulled.tau - inverse.tau)

# The mass matrix and the bias come from the same graph: M a + h = tau.
M, h = fgd.mass_matrix(puma, q), fgd.bias(puma, q, v)
print(f"M a + h - tau     {np.abs(M @ a + h - inverse.tau).max():.1e}")
