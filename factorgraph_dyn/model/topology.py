"""The tree: who is whose parent, and an order in which every link comes after its parent.

Work here is done once a mechanism; nothing depends on a state.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from factorgraph_dyn.errors import ModelError, check_name
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link, Loop


@dataclass(frozen=True)
class Topology:
    """The tree of a mechanism.

    Attributes:
        base: Name of the link that is no joint's child.
        outward: The joints from the base to the tips, depth first: a joint comes after its parent
            link's joint, and a subtree is contiguous.
        joint_into: The joint that moves each link, by link name; the base has none.
        joints_out: The joints whose parent each link is, by link name.
    """

    base: str
    outward: tuple[Joint, ...]
    joint_into: Mapping[str, Joint]
    joints_out: Mapping[str, tuple[Joint, ...]]

    @cached_property
    def depth(self) -> Mapping[str, int]:
        """Number of joints between each link and the base, by link name."""
        found = {self.base: 0}
        for joint in self.outward:
            found[joint.child] = found[joint.parent] + 1
        return found

    @property
    def tips(self) -> list[str]:
        """The links that the last movable joints move, from the base outward; what is fixed to them is left out."""
        moving = [joint for joint in self.outward if joint.nv]
        below = {inner.name for joint in moving for inner in self.path_to_base(joint.parent)}
        return [joint.child for joint in moving if joint.name not in below]

    def path_to_base(self, link: str) -> list[Joint]:
        """The joints from a link to the base, the link's own joint first."""
        path = []
        while link != self.base:
            joint = self.joint_into[link]
            path.append(joint)
            link = joint.parent
        return path


def find_topology(name: str, links: Sequence[Link], joints: Sequence[Joint]) -> Topology:
    """The tree that the joints make of the links.

    Raises:
        ModelError: No links, an unknown link, a link with two parents, a cycle, or several bases.
    """
    if not links:
        raise ModelError(f"Mechanism {name!r} has no links; it needs at least a base.")
    link_names = [link.name for link in links]
    joint_into = _joint_into_each_link(name, link_names, joints)
    joints_out: dict[str, list[Joint]] = {link: [] for link in link_names}
    for joint in joints:
        joints_out[joint.parent].append(joint)

    bases = [link for link in link_names if link not in joint_into]
    if not bases:
        raise ModelError(
            f"Mechanism {name!r} has no base: every link is some joint's child, so its joints form a "
            "cycle. Describe one joint of the cycle as a Loop."
        )
    outward: list[Joint] = []
    frontier = joints_out[bases[0]][::-1]
    while frontier:
        joint = frontier.pop()
        outward.append(joint)
        frontier.extend(reversed(joints_out[joint.child]))
    _check_all_reached(name, link_names, bases, outward)
    return Topology(bases[0], tuple(outward), joint_into, {link: tuple(out) for link, out in joints_out.items()})


def check_names(
    mechanism: str,
    links: Sequence[Link],
    joints: Sequence[Joint],
    loops: Sequence[Loop],
    couplings: Sequence[Coupling],
    frames: Sequence[Frame],
) -> None:
    """Raise a ModelError where a name occurs twice, or where a loop, coupling or frame names what is not there."""
    where = f"mechanism {mechanism!r}"
    tied: list[Joint | Loop | Coupling] = [*joints, *loops, *couplings]
    parts = {
        "link": [link.name for link in links],
        "joint, loop or coupling": [part.name for part in tied],
        "frame": [frame.name for frame in frames],
    }
    known = {noun: dict.fromkeys(names) for noun, names in parts.items()}
    for noun, names in parts.items():
        if repeated := sorted(name for name, times in Counter(names).items() if times > 1):
            raise ModelError(f"The {noun} name {repeated[0]!r} occurs twice in {where}; rename one.")
    for loop in loops:
        for end in (loop.predecessor, loop.successor):
            check_name(end, known["link"], "link", f"{where}, though loop {loop.name!r} ends there", ModelError)
    for frame in frames:
        check_name(frame.link, known["link"], "link", f"{where}, though frame {frame.name!r} is on it", ModelError)
        if frame.name != frame.link and frame.name in known["link"]:  # a frame that nobody could ask for
            raise ModelError(
                f"Frame {frame.name!r} of {where} is on link {frame.link!r}, but another link has its name, which "
                "means that link wherever it is asked for; rename the frame."
            )
    single = {joint.name: None for joint in joints if joint.nv == 1}
    for coupling in couplings:
        use = f"{where} with one freedom, though coupling {coupling.name!r} uses it"
        for end in (coupling.joint, coupling.source):
            check_name(end, single, "joint", use, ModelError)


def _joint_into_each_link(name: str, link_names: Sequence[str], joints: Sequence[Joint]) -> dict[str, Joint]:
    known = set(link_names)
    for joint in joints:
        for role, link in (("parent", joint.parent), ("child", joint.child)):
            if link not in known:
                where = f"mechanism {name!r}, though it is the {role} of joint {joint.name!r}"
                check_name(link, link_names, "link", where, ModelError)
    times_child = Counter(joint.child for joint in joints)
    for link, times in times_child.items():
        if times > 1:
            names = ", ".join(joint.name for joint in joints if joint.child == link)
            raise ModelError(
                f"Link {link!r} of mechanism {name!r} is the child of {times} joints: {names}. A link "
                "has one parent in the tree; describe the other joints as Loops."
            )
    return {joint.child: joint for joint in joints}


def _check_all_reached(name: str, link_names: Sequence[str], bases: Sequence[str], outward: Sequence[Joint]) -> None:
    reached = {bases[0], *(joint.child for joint in outward)}
    lost = [link for link in link_names if link not in reached]
    if not lost:
        return
    if len(bases) > 1:
        raise ModelError(
            f"Mechanism {name!r} is disconnected: links {', '.join(bases)} have no parent, but only "
            "one link can be the base. Add joints (fixed or floating) that tie the others to it."
        )
    raise ModelError(
        f"Links {', '.join(lost)} of mechanism {name!r} are not connected to the base {bases[0]!r}: "
        "their joints form a cycle. Describe one joint of the cycle as a Loop."
    )
