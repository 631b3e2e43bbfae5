"""A pendulum: describe it, let it go, and hold it still."""

import numpy as np

import factorgraph_dyn as fgd

# A 2 kg rod of 1 m that hangs from the base and swings about y.
rod = fgd.Link("rod", mass=2.0, com=(0, 0, -0.5), inertia=np.diag([1 / 6, 1 / 6, 1e-3]))
pendulum = fgd.Mechanism(
    "pendulum",
    links=[fgd.Link("base"), rod],
    joints=[fgd.Joint("hinge", "revolute", "base", "rod", axis=(0, 1, 0))],
)

q, v = np.array([np.pi / 2]), np.zeros(1)  # held out sideways, at rest; rad, rad/s

# Forward dynamics: let go.
falling = fgd.forward_dynamics(pendulum, q, v, tau=[0.0])
print(f"acceleration when let go   {falling.a[0]:8.3f} rad/s^2")

# Inverse dynamics: which torque holds it?
holding = fgd.inverse_dynamics(pendulum, q, v, a=[0.0])
print(f"torque that holds it       {holding.tau[0]:8.3f} N m")

# The hinge's wrench [moment; force] on the rod, in the rod's frame.
print("wrench of the hinge       ", np.round(holding.wrenches["hinge"], 3))

# The algorithm that was used, read off the Bayes net: who was solved from whom.
print(holding.bayes_net)
