"""A five-bar modelled by hand in Python and driven along a circle: torques, wrenches, a plot."""

import sys

import numpy as np

import factorgraph_dyn as fgd

# Two arms of two links in the x-z plane, joined at the tip; motors at the shoulders. Metres, kg.
UP = (0, -1, 0)  # positive angles lift what points along x


def at(x, z):
    """The pose that only moves, in the plane."""
    T = np.eye(4)
    T[0, 3], T[2, 3] = x, z
    return T


def bar(name, x, z):
    """A slender 1 kg bar from the link's origin to (x, z)."""
    along = np.array([x, 0, z])
    inertia = (along @ along * np.eye(3) - np.outer(along, along)) / 12 + 1e-4 * np.eye(3)
    return fgd.Link(name, mass=1.0, com=along / 2, inertia=inertia)


five_bar = fgd.Mechanism(
    "my_five_bar",
    links=(
        fgd.Link("base"),
        bar("left_proximal", -0.3, 0.4),
        bar("left_distal", 0.4, 0.3),
        bar("right_proximal", 0.3, 0.4),
        bar("right_distal", -0.4, 0.3),
    ),
    joints=(
        fgd.Joint("left_shoulder", "revolute", "base", "left_proximal", at(-0.1, 0), UP),
        fgd.Joint("left_elbow", "revolute", "left_proximal", "left_distal", at(-0.3, 0.4), UP, actuated=False),
        fgd.Joint("right_shoulder", "revolute", "base", "right_proximal", at(0.1, 0), UP),
        fgd.Joint("right_elbow", "revolute", "right_proximal", "right_distal", at(0.3, 0.4), UP, actuated=False),
    ),
    loops=(fgd.Loop("tip", "revolute", "left_distal", "right_distal", at(0.4, 0.3), at(-0.4, 0.3), UP),),
)
print(fgd.diagnose(five_bar, five_bar.neutral()), "\n")

# The motors turn sinusoidally; closure gives the elbows, inverse dynamics the torques.
motors = ["left_shoulder", "right_shoulder"]
times = np.linspace(0.0, 1.0, 51)  # s
rate, swing = 2 * np.pi, np.array([0.2, 0, 0.2, 0])
phase = np.array([0, 0, np.pi / 2, 0])
q, torques = five_bar.neutral(), []
for t in times:
    angle = rate * t + phase
    target = swing * (np.sin(angle) - np.sin(phase))
    q = five_bar.close(np.where(swing > 0, target, q), hold=motors)
    v = five_bar.complete_velocity(q, rate * swing * np.cos(angle), given=motors)
    wanted = -(rate**2) * swing * np.sin(angle)
    a = fgd.constraints(five_bar, q, v).complete_acceleration(wanted, given=motors)
    solution = fgd.inverse_dynamics(five_bar, q, v, a)
    torques.append(solution.tau[[0, 2]])
torques = np.array(torques)

check = fgd.forward_dynamics(five_bar, q, v, solution.tau)
print(f"largest torques: left {np.abs(torques[:, 0]).max():.4f} N m, right {np.abs(torques[:, 1]).max():.4f} N m")
print(f"forward(inverse(a)) - a: {np.abs(check.a - a).max():.0e} rad/s^2, residual {solution.residual:.0e}")
print("force at the tip (x, z):", solution.wrenches["tip"][[3, 5]].round(4), "N")
print("not unique, taken of least norm:", ", ".join(solution.not_unique))

if len(sys.argv) > 1:  # a file for the plot
    import matplotlib.pyplot as plt

    plt.plot(times, torques, label=motors)
    plt.xlabel("time (s)")
    plt.ylabel("torque (N m)")
    plt.legend()
    plt.savefig(sys.argv[1])
