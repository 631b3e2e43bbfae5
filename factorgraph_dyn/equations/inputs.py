"""Inputs of a mechanism: motors, and contacts at points of links; each is a column of B.

    motor of joint j       a torque in the joint's equation:     tau_j gains  E_j u
    contact of a link i    a wrench in the link's balance:       F_ext,i gains  W u
    a force f at point p   is the wrench  [p x f; f]  at the link's origin, in the link's axes

By virtual work the same W reads the motion of the point off the link's twist, y = W^T V_i, so a task is
described as a contact is, and B_contact = J_i^T W = J_task^T. Work is done once a mechanism, and once a state for
contacts in world axes, which turn with the links.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import as_names, check_choice, check_finite, check_kind, real_numbers, shown
from factorgraph_dyn.equations import State, Variable
from factorgraph_dyn.equations.dynamics_graph import Pushes
from factorgraph_dyn.equations.factors import contact_force
from factorgraph_dyn.equations.quantities import unique_names
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.memory import kept_with_first
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.motion.kinematics import link_jacobian, link_poses
from factorgraph_dyn.motion.questions import AXES
from factorgraph_dyn.spatial import Array, Floats

CONTACT_KINDS = {"force": 3, "wrench": 6}
A_CONTACT = "give the name of a link or frame, or a fgd.Contact(link, point, ...)"
COMPONENTS = {"force": ("fx", "fy", "fz"), "wrench": ("mx", "my", "mz", "fx", "fy", "fz")}


@dataclass(frozen=True, eq=False)
class Contact:
    """A place on a link where a force acts, or whose motion is a task.

    Args:
        link: Name of the link, or of a frame of the mechanism.
        point: The place in the link's (or frame's) axes, m, shape (3,).
        kind: "force" for a point force (3 numbers), "wrench" for [moment; force] about the point (6).
        directions: Rows along which the force or wrench acts, shape (m, 3) or (m, 6); all by default.
        axes: Axes of the directions: "local", those of the link or frame, or "world".
        label: What its inputs are called; the link's name by default. Where names repeat, they are counted.

    Examples:
        >>> robot = fgd.robots.humanoid()
        >>> floor = fgd.Contact("left_foot_front_left", directions=[[0, 0, 1]], axes="world")
        >>> fgd.iwim(robot, robot.neutral(), contacts=[floor]).shape
        (24, 19)
    """

    link: str
    point: Any = (0.0, 0.0, 0.0)
    kind: str = "force"
    directions: Any = None
    axes: str = "local"
    label: str = ""

    def __post_init__(self) -> None:
        where = f"the contact on {self.link!r}"
        check_name(self.kind, CONTACT_KINDS, "contact kind", f"what {where} may be", InputError)
        check_choice(self.axes, AXES, f"The axes of {where}")
        check_kind(self.label, str, f"The label of {where}", "text")
        size = CONTACT_KINDS[self.kind]
        rows = np.eye(size) if self.directions is None else _directions(self.directions, size, where)
        # Copies, read-only: what a contact does to a mechanism is computed once and kept.
        for name, value in (("point", check_finite(self.point, (3,), f"The point of {where}")), ("directions", rows)):
            kept = value.copy()
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.directions)

    @property
    def key(self) -> str:
        """Text that differs wherever two contacts push differently."""
        return repr((self.link, self.point.tolist(), self.kind, self.directions.tolist(), self.axes))

    @cached_property
    def input_names(self) -> tuple[str, ...]:
        """A name for each input, such as ``foot.fz``."""
        complete = np.array_equal(self.directions, np.eye(CONTACT_KINDS[self.kind]))
        components = COMPONENTS[self.kind] if complete else range(self.size)
        return tuple(f"{self.label or self.link}.{component}" for component in components)


ContactLike = Contact | str


@dataclass(frozen=True, eq=False)
class Inputs:
    """Columns of forces on a mechanism: what each does to every joint and link.

    Attributes:
        names: A name for each column, no two the same.
        torques: Joint torques for unit inputs, shape (nv, m).
        wrenches: Wrench on a link for unit inputs, in its frame, by link name, shape (6, m) each.
    """

    names: tuple[str, ...]
    torques: Floats
    wrenches: Mapping[str, Floats] = field(default_factory=dict)

    @property
    def size(self) -> int:
        """Number of columns."""
        return len(self.names)


def motor_inputs(mechanism: Mechanism, actuated: Iterable[str] | None) -> Inputs:
    """One column for every freedom of the joints named, by default of those that have a motor."""
    return _motor_inputs(mechanism, mechanism.motors if actuated is None else as_names(actuated, "actuated"))


def motor_entries(mechanism: Mechanism, actuated: Iterable[str] | None) -> tuple[int, ...]:
    """The entries of tau of these motors, in the order of their columns."""
    return tuple(np.argmax(motor_inputs(mechanism, actuated).torques, axis=0).tolist())


def as_contacts(contacts: Sequence[ContactLike]) -> tuple[Contact, ...]:
    """Contacts as such, of which some may be mere names."""
    if not isinstance(contacts, Iterable) or isinstance(contacts, str):
        raise InputError(f"The contacts are {shown(contacts)}; {A_CONTACT} in a list.")
    return tuple(map(as_contact, contacts))


def contact_inputs(state: State, contacts: Sequence[ContactLike]) -> Inputs:
    """One column for every direction of the contacts."""
    placed = as_contacts(contacts)
    if all(contact.axes == "local" for contact in placed):
        return _link_contacts(state.mechanism, placed)
    return _contact_inputs(state.mechanism, placed, link_poses(state.mechanism, state.q))


@kept_with_first
def _motor_inputs(mechanism: Mechanism, joints: tuple[str, ...]) -> Inputs:
    """Motors do not depend on the state: work for once a mechanism."""
    if repeated := [name for name, count in Counter(joints).items() if count > 1]:
        raise InputError(f"Joint {repeated[0]!r} is named twice among the actuated joints; name it once.")
    names: list[str] = []
    entries: list[int] = []
    for name in joints:
        here = mechanism.v_slice(name)
        size = here.stop - here.start
        names += [name] if size == 1 else [f"{name}.{k}" for k in range(size)]
        entries += range(here.start, here.stop)
    torques = np.zeros((mechanism.nv, len(entries)))
    torques[entries, range(len(entries))] = 1.0
    return Inputs(tuple(names), torques)


@kept_with_first
def _link_contacts(mechanism: Mechanism, contacts: tuple[Contact, ...]) -> Inputs:
    """Contacts in axes of links do not depend on the state: work for once a mechanism."""
    return _contact_inputs(mechanism, contacts, {})


def _contact_inputs(mechanism: Mechanism, contacts: Sequence[Contact], poses: Mapping[str, Floats]) -> Inputs:
    names = unique_names(name for contact in contacts for name in contact.input_names)
    wrenches: dict[str, Floats] = {}
    start = 0
    for contact in contacts:
        link, R, p = contact_pose(mechanism, contact, poses)
        columns = wrenches.setdefault(link, np.zeros((6, len(names))))
        columns[:, start : start + contact.size] = contact_wrenches(contact, R, p)
        start += contact.size
    return Inputs(names, np.zeros((mechanism.nv, len(names))), wrenches)


def contact_pose(mechanism: Mechanism, contact: Contact, poses: Mapping[str, Array]) -> tuple[str, Array, Floats]:
    """The link of a contact, the axes R of its directions (3, 3) and its point p (3,), both in the link.

    The poses T_world_link of the links are needed for contacts in world axes only.
    """
    link, T_link_frame = mechanism.place(contact.link)
    R: Array = T_link_frame[:3, :3]
    p = T_link_frame[:3, 3]
    if contact.point.any():
        p = p + R @ contact.point
    if contact.axes == "world":
        R = poses[link][:3, :3].T
    return link, R, p


def contact_wrenches(contact: Contact, R: Array, p: Floats) -> Array:
    """The wrenches W on a contact's link for unit inputs, in the link's frame, shape (6, m); R may be symbols."""
    # W = [R m + p x R f; R f] for directions [m; f]
    force = R @ contact.directions[:, -3:].T
    moment = spatial.skew(p) @ force
    if contact.kind == "wrench":
        moment = moment + R @ contact.directions[:, :3].T
    return np.concatenate([moment, force])


def contact_pushes(mechanism: Mechanism, q: Array, contacts: Sequence[Contact]) -> Pushes:
    """What a graph needs to have the forces of contacts as variables; q is floats or symbols."""
    poses = link_poses(mechanism, q) if any(contact.axes == "world" for contact in contacts) else {}
    pushes: dict[str, list[tuple[Variable, Array]]] = {}
    for variable, contact in zip(contact_variables(contacts), contacts, strict=True):
        link, R, p = contact_pose(mechanism, contact, poses)
        pushes.setdefault(link, []).append((variable, contact_wrenches(contact, R, p)))
    return pushes


def contact_variables(contacts: Sequence[Contact]) -> list[Variable]:
    """The variables u of contacts, whose names tell them apart."""
    return [contact_force(f"{k}: {c.label or c.link}", c.size) for k, c in enumerate(contacts, start=1)]


def no_inputs(mechanism: Mechanism) -> InputError:
    """The error of a caller without inputs, which says what can be done."""
    if mechanism.nv:
        offer = f"Name joints by actuated=[...] ({', '.join(mechanism.joint_names)}), or give contacts=[...]."
    else:
        offer = "It has no movable joint, so nothing can accelerate it."
    return InputError(
        f"No inputs: mechanism {mechanism.name!r} has no actuated joint here and no contact is given. {offer}"
    )


def join_inputs(parts: Sequence[Inputs]) -> Inputs:
    """The columns of several sets of inputs side by side."""
    parts = [part for part in parts if part.size] or parts[:1]
    if len(parts) == 1:
        return parts[0]
    names = unique_names(name for part in parts for name in part.names)
    torques = np.hstack([part.torques for part in parts])
    wrenches: dict[str, Floats] = {}
    start = 0
    for part in parts:
        for link, W in part.wrenches.items():
            columns = wrenches.setdefault(link, np.zeros((6, len(names))))
            columns[:, start : start + part.size] += W
        start += part.size
    return Inputs(names, torques, wrenches)


def joint_forces(state: State, inputs: Inputs) -> Floats:
    """The joint torques that are as good as inputs, B = E + sum J_i^T W_i, shape (nv, m)."""
    B = inputs.torques.copy()
    for link, W in inputs.wrenches.items():
        B += link_jacobian(state.mechanism, state.q, link).T @ W
    return B


def as_contact(contact: ContactLike) -> Contact:
    """A contact as such; a bare name is a point force at the link's or frame's origin."""
    if isinstance(contact, Contact):
        return contact
    if isinstance(contact, str):
        return _point_force(contact)
    raise InputError(f"A contact is {shown(contact)}; {A_CONTACT}.")


@lru_cache(maxsize=1024)
def _point_force(name: str) -> Contact:
    return Contact(name)


def _directions(value: Any, size: int, where: str) -> Floats:
    rows = np.atleast_2d(real_numbers(value, f"The directions of {where}", InputError))
    if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
        raise InputError(f"The directions of {where} have shape {np.shape(value)}; give rows of {size} numbers each.")
    if not np.isfinite(rows).all():
        raise InputError(f"The directions of {where} are not finite: {rows.tolist()}.")
    if not rows.any(axis=1).all():
        raise InputError(f"The directions of {where} hold a zero row: {rows.tolist()}; remove it.")
    return rows
