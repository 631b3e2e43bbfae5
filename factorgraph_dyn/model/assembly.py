"""Bodies joined anywhere, by joints in any direction, become a mechanism with a tree.

Files place joints where they like: in the middle of a body, from child to parent, around loops.
Here a joint knows its frame in both bodies,

    T_world_parent  T_parent_joint  motion(q)  =  T_world_child  T_child_joint

and ``assemble`` walks the graph from the base, makes every joint that reaches a new body a tree
joint (turned round where it is met from its child), puts that body's link frame on the joint's
moving frame, and makes loops of the joints that are left. Runs once a mechanism.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from factorgraph_dyn.errors import ModelError
from factorgraph_dyn.model.description import Description
from factorgraph_dyn.model.parts import BOUNDS, EFFECTS, Coupling, Frame, Joint, Link, Loop
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.spatial import Floats, inverse_pose

Made = TypeVar("Made", bound=Description)

EXACT = 1e-15  # what is so near to 0 or 1 stands for it: entries of rotations, and of shifts beside their largest


@dataclass(frozen=True, eq=False)
class Connection:
    """A joint between two bodies: its frame in each, and what else a ``Joint`` holds.

    Args:
        joint: Names, kind, axes and effects; its placement is the joint frame in the parent body.
        T_child_joint: Pose of the joint's moving frame in the child body, shape (4, 4).
        loop: Never make a tree joint of it.
        where: File and line, for messages.
    """

    joint: Joint
    T_child_joint: Floats = field(default_factory=lambda: np.eye(4))
    loop: bool = False
    where: str = ""


def assemble(
    make: type[Made],
    name: str,
    bodies: Sequence[Link],
    connections: Sequence[Connection],
    *,
    base: str,
    couplings: Iterable[Coupling] = (),
    frames: Iterable[Frame] = (),
    gravity: Floats | Sequence[float] = (0.0, 0.0, -9.81),
    notes: Iterable[str] = (),
    visuals: Iterable[Visual] = (),
) -> Made:
    """The mechanism, ``make`` of its parts, of bodies and connections whose tree starts at ``base``.

    A body whose link frame had to move gets a ``Frame`` of its own name where it was, unless it has one: that says
    already where the body is.

    Raises:
        ModelError: A body that no joint connects to the base, or parts that make no mechanism.
    """
    notes = list(notes)
    tree, loops = _span(name, [body.name for body in bodies], connections, base)
    T_body_link = {base: np.eye(4)}
    for connection, turned in tree:
        if turned:
            T_body_link[connection.joint.parent] = np.asarray(connection.joint.placement)
        else:
            T_body_link[connection.joint.child] = connection.T_child_joint
    T_link_body = {body: inverse_pose(T) for body, T in T_body_link.items()}

    joints = {connection.joint.name: _tree_joint(connection, turned, T_link_body) for connection, turned in tree}
    for connection, turned in tree:
        if turned and connection.joint.nv > 1:
            notes.append(
                f"{connection.where}Joint {connection.joint.name!r} is met from its child; its coordinates "
                "describe the reversed motion."
            )
    in_order = [joints[c.joint.name] for c in connections if c.joint.name in joints]
    made_loops = []
    for connection in loops:
        made_loops.append(_loop(connection, T_link_body))
        if not connection.loop:
            notes.append(
                f"{connection.where}Joint {connection.joint.name!r} closes a loop; it is a passive Loop and "
                f"has no coordinates{_lost_effects(connection.joint)}."
            )
    placed = [Frame(f.name, f.link, tidy(T_link_body[f.link] @ np.asarray(f.placement))) for f in frames]
    said = {frame.link for frame in placed if frame.name == frame.link}
    moved = [
        Frame(body, body, tidy(T_link_body[body]))
        for body, T in T_body_link.items()
        if body not in said and not np.array_equal(T, np.eye(4))
    ]
    return make(
        name,
        tuple(moved_link(body, T_body_link[body.name]) for body in bodies),
        tuple(in_order),
        tuple(made_loops),
        tuple(_usable(couplings, joints, notes)),
        gravity,
        tuple(moved + placed),
        tuple(notes),
        visuals=tuple(visual.moved(T_link_body[visual.link]) for visual in visuals),
    )


def _span(
    name: str, bodies: Sequence[str], connections: Sequence[Connection], base: str
) -> tuple[list[tuple[Connection, bool]], list[Connection]]:
    """The connections of the tree, each with whether it is turned round, and those of the loops."""
    known = set(bodies)
    around: dict[str, list[Connection]] = {body: [] for body in bodies}
    for connection in connections:
        for role, end in (("parent", connection.joint.parent), ("child", connection.joint.child)):
            if end not in known:
                raise ModelError(
                    f"{connection.where}Joint {connection.joint.name!r} has {role} {end!r}, which is no "
                    f"link of {name!r}. Links: {', '.join(bodies[:40])}."
                )
        if not connection.loop:
            around[connection.joint.parent].append(connection)
            around[connection.joint.child].append(connection)
    tree: list[tuple[Connection, bool]] = []
    used: set[int] = set()
    reached = {base}
    # Joints met from their parents go first, so that as few as possible are turned round.
    forward, backward = deque([base]), deque([base])
    while forward or backward:
        turned = not forward
        body = backward.popleft() if turned else forward.popleft()
        for connection in around[body]:
            joint = connection.joint
            near, far = (joint.child, joint.parent) if turned else (joint.parent, joint.child)
            if near != body or far in reached:
                continue
            used.add(id(connection))
            reached.add(far)
            tree.append((connection, turned))
            forward.append(far)
            backward.append(far)
            if turned:  # what hangs below the new body comes before further turned joints
                backward.appendleft(body)
                break
    if lost := [body for body in bodies if body not in reached]:
        raise ModelError(
            f"Mechanism {name!r}: links {', '.join(lost[:20])} are not connected to the base {base!r}. Add "
            "joints (fixed or floating) that tie them to it."
        )
    return tree, [connection for connection in connections if id(connection) not in used]


def _tree_joint(connection: Connection, turned: bool, T_link_body: dict[str, Floats]) -> Joint:
    joint = connection.joint
    if turned:
        placement = T_link_body[joint.child] @ connection.T_child_joint
        reversed_joint = turned_round(joint, connection.where)
        return replace(reversed_joint, parent=joint.child, child=joint.parent, placement=tidy(placement))
    return replace(joint, placement=tidy(T_link_body[joint.parent] @ np.asarray(joint.placement)))


def turned_round(joint: Joint, where: str = "") -> Joint:
    """The joint whose motion is the inverse of another's, at the same q for joints of one freedom.

    Raises:
        ModelError: The joint has effects that no numbers of the reversed one say.
    """
    kind, order = joint.type, joint.type.turned_freedoms
    for name in EFFECTS:
        values = getattr(joint, name)
        if not kind.turned_keeps(name, values):
            raise ModelError(
                f"{where}Joint {joint.name!r} is {joint.kind}, is met from its child {joint.child!r} and has {name} "
                f"{values.tolist()}: it acts along axes and at a point of the child, and the reversed joint would need "
                f"other numbers at every place. Set its {name} to 0, or take a base from which the joint is met from "
                f"its parent {joint.parent!r}."
            )
    effects = {name: getattr(joint, name)[order] for name in (*EFFECTS, "rest", *BOUNDS)}
    effects["rest"] = kind.turned_sign * effects["rest"] + 0.0  # no -0.0
    return replace(joint, axis=kind.turned_axis(joint.axis), **effects)


def _loop(connection: Connection, T_link_body: dict[str, Floats]) -> Loop:
    joint = connection.joint
    return Loop(
        joint.name,
        joint.kind,
        joint.parent,
        joint.child,
        tidy(T_link_body[joint.parent] @ np.asarray(joint.placement)),
        tidy(T_link_body[joint.child] @ connection.T_child_joint),
        joint.axis,
        joint.pitch,
    )


def _lost_effects(joint: Joint) -> str:
    names = [n for n in EFFECTS if np.any(getattr(joint, n))]
    return f"; its {', '.join(names)} is not used" if names else ""


def _usable(couplings: Iterable[Coupling], joints: dict[str, Joint], notes: list[str]) -> list[Coupling]:
    """The couplings whose joints are in the tree; the others are noted."""
    kept = []
    for coupling in couplings:
        if coupling.joint in joints and coupling.source in joints:
            kept.append(coupling)
        else:
            notes.append(f"Coupling {coupling.name!r} is not used: one of its joints closes a loop.")
    return kept


def moved_link(body: Link, T_body_link: Floats) -> Link:
    """The body seen from a frame that is placed at T_body_link in it."""
    if np.array_equal(T_body_link, np.eye(4)):
        return body
    R = T_body_link[:3, :3]
    com = R.T @ (np.asarray(body.com) - T_body_link[:3, 3])
    inertia = R.T @ np.asarray(body.inertia) @ R
    return Link(body.name, body.mass, com, 0.5 * (inertia + inertia.T))


def tidy(T: Floats) -> Floats:
    """The pose with what rounding moved put back: 0, 1 and -1 in its rotation, 0 in its shift."""
    tidied = np.array(T)
    R, r = tidied[:3, :3], tidied[:3, 3]
    nearest = np.round(R)
    R[:] = np.where(np.abs(R - nearest) < EXACT, nearest, R)
    r[np.abs(r) < EXACT * np.abs(r).max()] = 0.0
    return tidied
