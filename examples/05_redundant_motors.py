"""A five-bar with motors at all joints: least torque, spared motors, and limits.

Two freedoms, five motors: infinitely many torques cause the same motion. Objectives are soft factors
in the graph; the physics stays exact. Limits need a QP solver: pip install 'factorgraph_dyn[qp]'.
"""

import numpy as np

import factorgraph_dyn as fgd

five_bar = fgd.robots.five_bar(actuated=5)
q, v = five_bar.neutral(), np.zeros(five_bar.nv)
wanted = np.zeros(five_bar.nv)
wanted[five_bar.v_slice("left_shoulder")] = 4.0  # rad/s^2
wanted[five_bar.v_slice("right_shoulder")] = 2.0
a = fgd.constraints(five_bar, q, v).complete_acceleration(wanted, given=["left_shoulder", "right_shoulder"])
print(fgd.diagnose(five_bar, q), "\n")


def show(title, solution):
    torques = ", ".join(f"{name} {tau:7.4f}" for name, tau in zip(five_bar.joint_names, solution.tau, strict=True))
    print(f"{title:28s} {torques}   |tau| {np.linalg.norm(solution.tau):.4f}   residual {solution.residual:.0e}")


try:
    fgd.inverse_dynamics(five_bar, q, v, a)
except fgd.SingularSystemError as error:
    print("without an objective:", error, "\n")

show("shoulders only", fgd.inverse_dynamics(five_bar, q, v, a, actuated=["left_shoulder", "right_shoulder"]))
least = fgd.inverse_dynamics(five_bar, q, v, a, objective=fgd.MinimumTorque())
show("least torque", least)
spare_tip = fgd.MinimumTorque(weights={"tip": 10.0})
show("tip spared", fgd.inverse_dynamics(five_bar, q, v, a, objective=spare_tip))
gentle = [fgd.MinimumTorque(0.1), fgd.MinimumWrench({"tip": 1.0})]
show("small wrench at the tip", fgd.inverse_dynamics(five_bar, q, v, a, objective=gentle))

bound = 0.95 * np.abs(least.tau).max()
limited = fgd.MinimumTorque(limits=bound)
show(f"all within {bound:.4f} N m", fgd.inverse_dynamics(five_bar, q, v, a, objective=limited))
try:
    fgd.inverse_dynamics(five_bar, q, v, a, objective=fgd.MinimumTorque(limits=0.1))
except fgd.InputError as error:
    print("\nall within 0.1 N m:", error)
