"""How a five-bar's motor torques depend on what its links weigh, from a kernel that takes masses as an argument.

The derivative of the torques by all inertial parameters is one more result of the kernel. Torques are linear in these,
so that it holds for steps of any size. Then ten thousand five-bars that nobody built quite alike.
"""

import numpy as np

import factorgraph_dyn as fgd

five_bar = fgd.robots.five_bar()
links = five_bar.link_names[1:]
motors = [joint.name for joint in five_bar.movable_joints if joint.actuated]
rows = [five_bar.v_slice(name).start for name in motors]

# A closed state, and accelerations that its loop allows: those that these torques cause.
q, v = five_bar.random_state(3)
tau = np.zeros(five_bar.nv)
tau[rows] = 1.0, -2.0
a = fgd.forward_dynamics(five_bar, q, v, tau).a

kernel = fgd.compile(five_bar, "inverse", parameters="all", outputs=["tau", "dtau/dparameters"])
own = five_bar.parameters()  # (links, 10): m, m c, I about the link's origin
print(kernel)

# One more kilogram of each link's own shape: its ten parameters grow together.
_, by_parameters = kernel(q, v, a, own)  # (joints, links, 10)
kilogram = own / own[:, :1]
sensitivity = np.einsum("jlp,lp->lj", by_parameters[rows], kilogram)

print("\nN m of motor torque for one more kilogram of")
print(f"{'':16}" + "".join(f"{name:>16}" for name in motors))
for name, row in zip(links, sensitivity, strict=True):
    print(f"{name:16}" + "".join(f"{value:16.4f}" for value in row))

# The same from another side: a heavier mechanism, solved by the graph.
heavier = five_bar.with_parameters(own[1:2] + kilogram[1:2], links[1:2])
expected = fgd.inverse_dynamics(heavier, q, v, a).tau[rows] - fgd.inverse_dynamics(five_bar, q, v, a).tau[rows]
print(f"\nthe graph agrees to {np.abs(expected - sensitivity[1]).max():.0e} N m")

# Every state of a batch may have its own parameters: masses known to 5 %.
masses = np.random.default_rng(0).normal(1.0, 0.05, (10_000, len(links), 1))
torques = kernel(q, v, a, own * masses)[0][:, rows]
print("\nwith masses known to 5 %, motor torques (N m)")
for name, mean, deviation in zip(motors, torques.mean(axis=0), torques.std(axis=0), strict=True):
    print(f"{name:16}{mean:9.3f} +- {deviation:.3f}")
