"""Arms: the three-joint arm of the papers, the PUMA 560 and pendulums."""

from __future__ import annotations

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_count
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.model.robots.bodies import MOST_LINKS, QUARTER_TURN_X, rod
from factorgraph_dyn.spatial import Floats


def rrr() -> Mechanism:
    """The three-joint arm in a vertical plane that Xie & Dellaert (2019) draw.

    Links of 1 m and 1 kg lie along x; the joints turn about -y, so that positive angles lift.
    """
    links = [Link("base"), *(rod(f"link{i}", 1.0, (0, 0, 0), (1, 0, 0), 0.05) for i in (1, 2, 3))]
    joints = [
        Joint("joint1", "revolute", "base", "link1", axis=(0, -1, 0)),
        Joint("joint2", "revolute", "link1", "link2", translation(1, 0, 0), axis=(0, -1, 0)),
        Joint("joint3", "revolute", "link2", "link3", translation(1, 0, 0), axis=(0, -1, 0)),
    ]
    return Mechanism("rrr", tuple(links), tuple(joints))


def pendulum(n: int = 1) -> Mechanism:
    """A chain of n rods of 1 m and 1 kg that hang from the base and swing about y."""
    n = check_count(n, "The number n of a pendulum's links", most=MOST_LINKS)
    links = [Link("base"), *(rod(f"link{i}", 1.0, (0, 0, 0), (0, 0, -1), 0.05) for i in range(1, n + 1))]
    joints = [
        Joint(
            f"joint{i}",
            "revolute",
            "base" if i == 1 else f"link{i - 1}",
            f"link{i}",
            translation(0, 0, 0 if i == 1 else -1),
            axis=(0, 1, 0),
        )
        for i in range(1, n + 1)
    ]
    return Mechanism(f"pendulum{n}" if n > 1 else "pendulum", tuple(links), tuple(joints))


def puma560() -> Mechanism:
    """The PUMA 560 with the parameters of Corke & Armstrong-Helouvry, motors' inertia included.

    Standard Denavit-Hartenberg parameters; masses, centres of mass and inertias in the DH frames, and
    the motors' inertias and gear ratios, as published in P. I. Corke & B. Armstrong-Helouvry, "A search
    for consensus among model parameters reported for the PUMA 560 robot", ICRA 1994, and in Corke's
    Robotics Toolbox. The first link has an inertia about one axis only, which no body has: the
    authors identified nothing else of it.
    """
    d = (0.67183, 0, 0.15005, 0.4318, 0, 0)
    a = (0, 0.4318, 0.0203, 0, 0, 0)
    alpha = (1, 0, -1, 1, -1, 0)  # quarter turns about x
    mass = (0, 17.4, 4.8, 0.82, 0.34, 0.09)
    com = (
        (0, 0, 0), (-0.3638, 0.006, 0.2275), (-0.0203, -0.0141, 0.070),
        (0, 0.019, 0), (0, 0, 0), (0, 0, 0.032),
    )  # fmt: skip
    moments = (
        (0, 0.35, 0), (0.13, 0.524, 0.539), (0.066, 0.086, 0.0125), (1.8e-3, 1.3e-3, 1.8e-3),
        (0.3e-3, 0.4e-3, 0.3e-3), (0.15e-3, 0.15e-3, 0.04e-3),
    )  # fmt: skip
    rotor = (200e-6, 200e-6, 200e-6, 33e-6, 33e-6, 33e-6)
    gear = (-62.6111, 107.815, -53.7063, 76.0364, 71.923, 76.686)

    links, joints = [Link("base")], []
    T_previous_joint = np.eye(4)
    for i in range(6):
        # The DH frame sits at the far end of its link; ours at the joint that moves the link.
        T_joint_dh = spatial.pose(_quarter_turns(alpha[i]), np.array([a[i], 0, d[i]], dtype=np.float64))
        R = T_joint_dh[:3, :3]
        links.append(
            Link(
                f"link{i + 1}",
                mass[i],
                R @ np.array(com[i]) + T_joint_dh[:3, 3],
                R @ np.diag(moments[i]) @ R.T,
            )
        )
        joints.append(
            Joint(
                f"joint{i + 1}",
                "revolute",
                links[i].name,
                links[i + 1].name,
                T_previous_joint,
                armature=rotor[i] * gear[i] ** 2,
            )
        )
        T_previous_joint = T_joint_dh
    return Mechanism("puma560", tuple(links), tuple(joints))


def _quarter_turns(count: int) -> Floats:
    return {0: np.eye(3), 1: QUARTER_TURN_X, -1: QUARTER_TURN_X.T}[count]
