"""A humanoid with a floating base."""

from __future__ import annotations

from factorgraph_dyn.model.mechanism import Mechanism
from factorgraph_dyn.model.parts import Frame, Joint, Link
from factorgraph_dyn.model.placements import translation
from factorgraph_dyn.model.robots.bodies import box, rod

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


def humanoid() -> Mechanism:
    """A humanoid with 24 freedoms: a floating torso, 18 motors, and 4 contact points on each foot.

    Each leg has hip yaw, roll and pitch, knee, ankle pitch and roll; each arm shoulder pitch and roll
    and an elbow. About 1.7 m and 62 kg; x forward, z up; arms hang down at the neutral configuration.
    """
    links = [Link("world"), box("torso", 30.0, (0, 0, 0.25), (0.2, 0.3, 0.5))]
    joints = [Joint("root", "floating", "world", "torso", actuated=False)]
    frames = []
    for side, sign in (("left", 1.0), ("right", -1.0)):
        for part_links, part_joints in (_leg(side, sign), _arm(side, sign)):
            links += part_links
            joints += part_joints
        corners = (("front", "left", 0.16, 0.05), ("front", "right", 0.16, -0.05),
                   ("rear", "left", -0.06, 0.05), ("rear", "right", -0.06, -0.05))  # fmt: skip
        frames += [
            Frame(f"{side}_foot_{end}_{edge}", f"{side}_foot", translation(x, y, -0.08)) for end, edge, x, y in corners
        ]
    return Mechanism("humanoid", tuple(links), tuple(joints), frames=tuple(frames))


def _leg(side: str, sign: float) -> tuple[list[Link], list[Joint]]:
    links = [
        box(f"{side}_hip_yaw_link", 0.8, (0, 0, 0), (0.08, 0.08, 0.08)),
        box(f"{side}_hip_roll_link", 0.8, (0, 0, 0), (0.08, 0.08, 0.08)),
        rod(f"{side}_thigh", 5.5, (0, 0, 0), (0, 0, -0.4), 0.07),
        rod(f"{side}_shin", 3.5, (0, 0, 0), (0, 0, -0.4), 0.05),
        box(f"{side}_ankle_link", 0.4, (0, 0, 0), (0.06, 0.06, 0.06)),
        box(f"{side}_foot", 1.0, (0.05, 0, -0.05), (0.22, 0.1, 0.06)),
    ]
    chain = (
        ("hip_yaw", Z, (0, 0.1 * sign, 0)),
        ("hip_roll", X, (0, 0, 0)),
        ("hip_pitch", Y, (0, 0, 0)),
        ("knee", Y, (0, 0, -0.4)),
        ("ankle_pitch", Y, (0, 0, -0.4)),
        ("ankle_roll", X, (0, 0, 0)),
    )
    return links, _chain(side, links, chain)


def _arm(side: str, sign: float) -> tuple[list[Link], list[Joint]]:
    links = [
        box(f"{side}_shoulder_link", 0.7, (0, 0, 0), (0.08, 0.08, 0.08)),
        rod(f"{side}_upper_arm", 2.0, (0, 0, 0), (0, 0, -0.3), 0.045),
        rod(f"{side}_forearm", 1.3, (0, 0, 0), (0, 0, -0.3), 0.035),
    ]
    chain = (
        ("shoulder_pitch", Y, (0, 0.2 * sign, 0.45)),
        ("shoulder_roll", X, (0, 0, 0)),
        ("elbow", Y, (0, 0, -0.3)),
    )
    return links, _chain(side, links, chain)


def _chain(
    side: str,
    links: list[Link],
    chain: tuple[tuple[str, tuple[int, int, int], tuple[float, float, float]], ...],
) -> list[Joint]:
    """Revolute joints from the torso along links, each with its name, axis and place on its parent."""
    parents = ["torso", *(link.name for link in links[:-1])]
    return [
        Joint(f"{side}_{name}", "revolute", parent, link.name, translation(*place), axis, armature=0.02)
        for (name, axis, place), parent, link in zip(chain, parents, links, strict=True)
    ]
