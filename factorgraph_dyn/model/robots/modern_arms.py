"""More arms in Denavit-Hartenberg parameters: a UR5, a Panda, and one without a special angle or length."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link
from factorgraph_dyn.spatial import Floats

Row = Sequence[float]


def ur5() -> Mechanism:
    """The Universal Robots UR5 with the maker's lengths and masses, its links taken as cylinders.

    Denavit-Hartenberg parameters, masses and centres of mass as the maker publishes them ("DH parameters for
    calculations of kinematics and dynamics"); he publishes no inertias, so each link is a cylinder along its
    longest side.
    """
    lengths = ((0, 0.089159, 1), (-0.425, 0, 0), (-0.39225, 0, 0), (0, 0.10915, 1), (0, 0.09465, -1),
               (0, 0.0823, 0))  # fmt: skip
    mass = (3.7, 8.393, 2.33, 1.219, 1.219, 0.1879)
    com = (
        (0, -0.02561, 0.00193), (0.2125, 0, 0.11336), (0.15, 0, 0.0265),
        (0, -0.0018, 0.01634), (0, 0.0018, 0.01634), (0, 0, -0.001159),
    )  # fmt: skip
    moments = (
        (0.01027, 0.00666, 0.01027), (0.01511, 0.22689, 0.22689), (0.0041, 0.04944, 0.04944),
        (0.0021, 0.0021, 0.00174), (0.0021, 0.0021, 0.00174), (0.00014, 0.00014, 0.00017),
    )  # fmt: skip
    links, joints = [Link("base")], []
    T_previous_joint = np.eye(4)
    for i, (a, d, quarters) in enumerate(lengths):
        # The published frame sits at the far end of its link; ours at the joint that moves the link.
        T_joint_dh = spatial.pose(_turn_x(quarters * np.pi / 2), np.array([a, 0.0, d]))
        R, p = T_joint_dh[:3, :3], T_joint_dh[:3, 3]
        centre = R @ np.array(com[i]) + p
        links.append(Link(f"link{i + 1}", mass[i], centre, R @ np.diag(moments[i]) @ R.T))
        joints.append(_joint(i, T_previous_joint))
        T_previous_joint = T_joint_dh
    return Mechanism("ur5", tuple(links), tuple(joints))


def panda() -> Mechanism:
    """The Franka Emika Panda, seven joints, with the inertias that Gaz et al. identified.

    C. Gaz, M. Cognetti, A. Oliva, P. Robuffo Giordano, A. De Luca, "Dynamic identification of the Franka
    Emika Panda robot with retrieval of feasible parameters using penalty-based optimization", IEEE RA-L
    4(4), 2019. Modified Denavit-Hartenberg parameters as the maker publishes them.
    """
    lengths = ((0, 0, 0.333), (0, -1, 0), (0, 1, 0.316), (0.0825, 1, 0), (-0.0825, -1, 0.384), (0, 1, 0),
               (0.088, 1, 0))  # fmt: skip
    mass = (4.970684, 0.646926, 3.228604, 3.587895, 1.225946, 1.666555, 0.735522)
    com = (
        (0.003875, 0.002081, -0.1750), (-0.003141, -0.02872, 0.003495), (0.027518, 0.039252, -0.066502),
        (-0.05317, 0.104419, 0.027454), (-0.011953, 0.041065, -0.038437), (0.060149, -0.014117, -0.010517),
        (0.010517, -0.004252, 0.061597),
    )  # fmt: skip
    inertia = (
        (0.70337, 0.70661, 0.009117, -0.000139, 0.006772, 0.019169),
        (0.007962, 0.02811, 0.025995, -0.003925, 0.010254, 0.000704),
        (0.037242, 0.036155, 0.01083, -0.004761, -0.011396, -0.012805),
        (0.025853, 0.019552, 0.028323, 0.007796, -0.001332, 0.008641),
        (0.035549, 0.029474, 0.008627, -0.002117, -0.004037, 0.000229),
        (0.001964, 0.004354, 0.005433, 0.000109, -0.001158, 0.000341),
        (0.012516, 0.010027, 0.004815, -0.000428, -0.001196, -0.000741),
    )
    turns = tuple((a, quarters * np.pi / 2, d) for a, quarters, d in lengths)
    return _modified_dh("panda", turns, mass, com, inertia)


def general_6r() -> Mechanism:
    """A six-joint arm without a special length, angle or inertia: what operation counts are quoted for."""
    rng = np.random.default_rng(6)
    lengths = [(rng.uniform(0.1, 0.5), rng.uniform(0.3, 1.2), rng.uniform(0.1, 0.5)) for _ in range(6)]
    mass = [round(float(rng.uniform(1, 5)), 3) for _ in range(6)]
    com = rng.uniform(-0.2, 0.2, (6, 3)).round(4)
    inertia = []
    for i in range(6):
        points = rng.uniform(-0.3, 0.3, (5, 3))
        points -= points.mean(axis=0)
        # rounded, because the last digits of a product depend on the machine, and saved orderings on every digit
        J = (mass[i] / 5 * sum(r @ r * np.eye(3) - np.outer(r, r) for r in points)).round(6)
        inertia.append((J[0, 0], J[1, 1], J[2, 2], J[0, 1], J[0, 2], J[1, 2]))
    return _modified_dh("general_6r", lengths, mass, com.tolist(), inertia)


def _modified_dh(name: str, lengths: Sequence[Row], mass: Row, com: Sequence[Row], inertia: Sequence[Row]) -> Mechanism:
    """An arm of (a, alpha, d) and of (xx, yy, zz, xy, xz, yz) about each link's com."""
    links, joints = [Link("base")], []
    for i, (a, alpha, d) in enumerate(lengths):
        R = _turn_x(alpha)
        placement = spatial.pose(R, np.array([a, 0.0, 0.0]) + R @ np.array([0.0, 0.0, d]))
        xx, yy, zz, xy, xz, yz = inertia[i]
        J = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
        links.append(Link(f"link{i + 1}", mass[i], com[i], J))
        joints.append(_joint(i, placement))
    return Mechanism(name, tuple(links), tuple(joints))


def _joint(index: int, placement: Floats) -> Joint:
    parent = f"link{index}" if index else "base"
    return Joint(f"joint{index + 1}", "revolute", parent, f"link{index + 1}", placement)


def _turn_x(angle: float) -> Floats:
    """A rotation about x, with exact zeros and ones at quarter turns."""
    c, s = np.cos(angle), np.sin(angle)
    c, s = (float(round(x)) if abs(x - round(x)) < 1e-15 else float(x) for x in (c, s))
    return np.array([[1.0, 0.0, 0.0], [0.0, c, -s], [0.0, s, c]])
