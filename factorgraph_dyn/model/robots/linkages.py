"""Mechanisms with closed loops: four-bars, five-bars, the Stewart platform and the delta robot.

All are drawn closed: the neutral configuration satisfies every loop. Planar ones move in the
vertical x-z plane and turn about -y, so that positive angles lift what points along x.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_count
from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Joint, Link, Loop
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.model.robots.bodies import MOST_LINKS, rod
from factorgraph_dyn.spatial import Floats

LIFT = (0, -1, 0)
ROD_RADIUS = 0.02  # of the planar linkages' rods, m


def four_bar() -> Mechanism:
    """A crank, a coupler and a rocker in a vertical plane; the crank has the motor and can turn fully."""
    links = [
        Link("base"),
        rod("crank", 0.6, (0, 0, 0), (0, 0, 0.3), ROD_RADIUS),
        rod("coupler", 1.0, (0, 0, 0), (0.4, 0, 0.3), ROD_RADIUS),
        rod("rocker", 1.4, (0, 0, 0), (-0.4, 0, 0.6), ROD_RADIUS),
    ]
    joints = [
        Joint("crank_joint", "revolute", "base", "crank", axis=LIFT),
        Joint("coupler_joint", "revolute", "crank", "coupler", translation(0, 0, 0.3), LIFT, actuated=False),
        Joint("rocker_joint", "revolute", "base", "rocker", translation(0.8, 0, 0), LIFT, actuated=False),
    ]
    pin = Loop("pin", "revolute", "rocker", "coupler", translation(-0.4, 0, 0.6), translation(0.4, 0, 0.3), LIFT)
    return Mechanism("four_bar", tuple(links), tuple(joints), (pin,))


def five_bar(actuated: int = 2) -> Mechanism:
    """The planar five-bar of the papers: two freedoms, two motors at the shoulders or more.

    Args:
        actuated: Number of motors, 1 to 5: left and right shoulder, left and right elbow, tip. With
            five the tip is a joint of the tree, and its far end is tied to the right arm.
    """
    actuated = check_count(actuated, "The number of a five-bar's motors", most=5)
    order = ("left_shoulder", "right_shoulder", "left_elbow", "right_elbow", "tip")
    motors = order[:actuated]
    links, joints = [Link("base")], []
    for side, sign in (("left", -1.0), ("right", 1.0)):
        links += [
            rod(f"{side}_proximal", 1.0, (0, 0, 0), (sign * 0.3, 0, 0.4), ROD_RADIUS),
            rod(f"{side}_distal", 1.0, (0, 0, 0), (-sign * 0.4, 0, 0.3), ROD_RADIUS),
        ]
        chain = (
            (f"{side}_shoulder", "base", f"{side}_proximal", translation(sign * 0.1, 0, 0)),
            (f"{side}_elbow", f"{side}_proximal", f"{side}_distal", translation(sign * 0.3, 0, 0.4)),
        )
        joints += [
            Joint(name, "revolute", parent, child, place, LIFT, actuated=name in motors)
            for name, parent, child, place in chain
        ]
    left_end, right_end = translation(0.4, 0, 0.3), translation(-0.4, 0, 0.3)
    if actuated < 5:
        loop = Loop("tip", "revolute", "left_distal", "right_distal", left_end, right_end, LIFT)
    else:
        links.append(Link("tip_pin"))
        joints.append(Joint("tip", "revolute", "left_distal", "tip_pin", left_end, LIFT))
        loop = Loop("tip_weld", "fixed", "tip_pin", "right_distal", np.eye(4), right_end)
    return Mechanism("five_bar", tuple(links), tuple(joints), (loop,))


def four_bar_chain(n: int = 3) -> Mechanism:
    """n four-bars in a row, each hanging from the one before: n loops, n freedoms, a motor in each."""
    n = check_count(n, "The number n of four-bars", most=MOST_LINKS)
    links, joints, loops = [Link("base")], [], []
    above = "base"
    for i in range(1, n + 1):
        left, right, plate = f"left{i}", f"right{i}", f"plate{i}"
        links += [
            rod(left, 0.5, (0, 0, 0), (0.05, 0, -0.3), ROD_RADIUS),
            rod(right, 0.5, (0, 0, 0), (-0.05, 0, -0.3), ROD_RADIUS),
            rod(plate, 0.8, (-0.05, 0, 0), (0.35, 0, 0), ROD_RADIUS),
        ]
        # A plate's frame is its left pin; the next four-bar hangs 0.05 m further out on both sides.
        start = 0.0 if i == 1 else -0.05
        joints += [
            Joint(f"motor{i}", "revolute", above, left, translation(start, 0, 0), LIFT),
            Joint(f"left_pin{i}", "revolute", left, plate, translation(0.05, 0, -0.3), LIFT, actuated=False),
            Joint(
                f"right_top{i}",
                "revolute",
                above,
                right,
                translation(start + 0.4, 0, 0),
                LIFT,
                actuated=False,
            ),
        ]
        ends = (translation(-0.05, 0, -0.3), translation(0.3, 0, 0))
        loops.append(Loop(f"right_pin{i}", "revolute", right, plate, *ends, LIFT))
        above = plate
    return Mechanism(f"four_bar_chain{n}", tuple(links), tuple(joints), tuple(loops))


def stewart() -> Mechanism:
    """The Stewart platform with 6 UPS legs: universal at the base, a motor slides, a ball at the platform.

    The platform floats in the tree; six spherical loops tie it to the legs. Six freedoms, six motors.
    """
    height = 0.6
    links = [Link("base"), Link("platform", 5.0, (0, 0, 0.02), np.diag([0.06, 0.06, 0.11]))]
    joints = [Joint("platform_free", "floating", "base", "platform", translation(0, 0, height), actuated=False)]
    loops = []
    for i in range(6):
        pair, side = divmod(i, 2)
        turn = np.deg2rad(120.0 * pair)
        foot = _polar(0.5, turn + np.deg2rad((-15.0, 15.0)[side]))
        ball = _polar(0.25, turn + np.deg2rad((-45.0, 45.0)[side]))
        leg = ball + np.array([0, 0, height]) - foot
        length = float(np.linalg.norm(leg))
        lower, upper = f"lower{i + 1}", f"upper{i + 1}"
        links += [
            rod(lower, 0.8, (0, 0, 0), (0, 0, 0.5 * length), 0.03),
            rod(upper, 0.4, (0, 0, 0), (0, 0, -0.5 * length), 0.02),
        ]
        joints += [
            Joint(
                f"ankle{i + 1}",
                "universal",
                "base",
                lower,
                _aimed(leg, foot),
                ((1, 0, 0), (0, 1, 0)),
                actuated=False,
            ),
            Joint(f"slide{i + 1}", "prismatic", lower, upper, translation(0, 0, length)),
        ]
        loops.append(Loop(f"ball{i + 1}", "spherical", upper, "platform", np.eye(4), translation(*ball)))
    return Mechanism("stewart", tuple(links), tuple(joints), tuple(loops))


def delta() -> Mechanism:
    """The delta robot: three motors lift arms, pairs of rods hold the platform level.

    The platform floats in the tree and hangs below the base; six spherical loops tie it to the rods,
    whose other ends are universal. Three freedoms, three motors.
    """
    arm, drop, inset, half_width = 0.3, 0.6, 0.1, 0.05
    links = [Link("base"), Link("platform", 0.5, (0, 0, 0), np.diag([6e-4, 6e-4, 1.2e-3]))]
    joints = [Joint("platform_free", "floating", "base", "platform", translation(0, 0, -drop), actuated=False)]
    loops = []
    for i in range(3):
        turn = np.deg2rad(120.0 * i)
        T_base_side = spatial.pose(spatial.rotation_about(np.array([0.0, 0, 1]), turn), np.zeros(3))
        arm_link = f"arm{i + 1}"
        links.append(rod(arm_link, 0.4, (0, 0, 0), (arm, 0, 0), 0.02))
        joints.append(Joint(f"motor{i + 1}", "revolute", "base", arm_link, T_base_side @ translation(0.15, 0, 0), LIFT))
        for side, y in (("a", half_width), ("b", -half_width)):
            way = np.array([inset - 0.15 - arm, 0, -drop])  # from elbow to platform
            length = float(np.linalg.norm(way))
            name = f"{i + 1}{side}"
            links.append(rod(f"rod{name}", 0.1, (0, 0, 0), (0, 0, length), 0.01))
            placement = _aimed(way, np.array([arm, y, 0]))
            axes = ((1, 0, 0), (0, 1, 0))
            joints.append(Joint(f"elbow{name}", "universal", arm_link, f"rod{name}", placement, axes, actuated=False))
            ball = T_base_side @ translation(inset, y, 0)
            place = spatial.pose(np.eye(3), ball[:3, 3])
            loops.append(Loop(f"ball{name}", "spherical", f"rod{name}", "platform", translation(0, 0, length), place))
    return Mechanism("delta", tuple(links), tuple(joints), tuple(loops))


def _polar(radius: float, angle: float) -> Floats:
    return np.array([radius * np.cos(angle), radius * np.sin(angle), 0.0])


def _aimed(direction: Floats, origin: Sequence[float] | Floats) -> Floats:
    """A pose at an origin whose z axis points along a direction, shape (4, 4)."""
    z = direction / np.linalg.norm(direction)
    x, y = spatial.perpendicular_axes(z)
    return spatial.pose(np.column_stack([x, y, z]), np.asarray(origin, dtype=np.float64))
