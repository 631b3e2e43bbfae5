"""Inputs of a mechanism: motors, and contacts at points of links; each is a column of B.

    motor of joint j       a torque in the joint's equation:     tau_j gains  E_j u
    contact of a link i    a wrench in the link's balance:       F_ext,i gains  W u
    a force f at point p   is the wrench  [p x f; f]  at the link's origin, in the link's axes

By virtual work the same W reads the motion of the point off the link's twist, y = W^T V_i, so a task is
described as a contact is, and B_contact = J_i^T W = J_task^T. Work is done once a state, because world
axes turn with the links.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.equations import State
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.kinematics import link_poses
from factorgraph_dyn.spatial import Floats

CONTACT_KINDS = {"force": 3, "wrench": 6}
AXES = ("link", "world")
COMPONENTS = {"force": ("fx", "fy", "fz"), "wrench": ("mx", "my", "mz", "fx", "fy", "fz")}


@dataclass(frozen=True, eq=False)
class Contact:
    """A place on a link where a force acts, or whose motion is a task.

    Args:
        link: Name of the link, or of a frame of the mechanism.
        point: The place in the link's (or frame's) axes, m, shape (3,).
        kind: "force" for a point force (3 numbers), "wrench" for [moment; force] about the point (6).
        directions: Rows along which the force or wrench acts, shape (m, 3) or (m, 6); all by default.
        axes: Axes of the directions: "link" (or the frame's), or "world".
        label: What its inputs are called; the link's name by default.
    """

    link: str
    point: Any = (0.0, 0.0, 0.0)
    kind: str = "force"
    directions: Any = None
    axes: str = "link"
    label: str = ""

    def __post_init__(self) -> None:
        where = f"the contact on {self.link!r}"
        check_name(self.kind, CONTACT_KINDS, "contact kind", f"what {where} may be", InputError)
        if self.axes not in AXES:
            raise InputError(f"The axes of {where} are {self.axes!r}; they may be 'link' or 'world'.")
        size = CONTACT_KINDS[self.kind]
        object.__setattr__(self, "point", _finite(self.point, (3,), f"The point of {where}"))
        rows = np.eye(size) if self.directions is None else _directions(self.directions, size, where)
        object.__setattr__(self, "directions", rows)

    @property
    def size(self) -> int:
        """Number of inputs."""
        return len(self.directions)

    @property
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
        names: A name for each column.
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
    """One column for every freedom of the joints named, by default of those marked actuated."""
    if actuated is None:
        joints = [joint.name for joint in mechanism.movable_joints if joint.actuated]
    else:
        joints = [actuated] if isinstance(actuated, str) else list(actuated)
    names: list[str] = []
    entries: list[int] = []
    for name in joints:
        here = mechanism.v_slice(name)
        if joints.count(name) > 1:
            raise InputError(f"Joint {name!r} is named twice among the actuated joints; name it once.")
        size = here.stop - here.start
        names += [name] if size == 1 else [f"{name}.{k}" for k in range(size)]
        entries += range(here.start, here.stop)
    torques = np.zeros((mechanism.nv, len(entries)))
    torques[entries, range(len(entries))] = 1.0
    return Inputs(tuple(names), torques)


def contact_inputs(state: State, contacts: Sequence[ContactLike]) -> Inputs:
    """One column for every direction of the contacts."""
    placed = [as_contact(contact) for contact in contacts]
    names = tuple(name for contact in placed for name in contact.input_names)
    wrenches: dict[str, Floats] = {}
    start = 0
    for contact in placed:
        link, T_link_point = contact_pose(state, contact)
        columns = wrenches.setdefault(link, np.zeros((6, len(names))))
        columns[:, start : start + contact.size] = contact_wrenches(contact, T_link_point)
        start += contact.size
    return Inputs(names, np.zeros((state.mechanism.nv, len(names))), wrenches)


def contact_pose(state: State, contact: Contact) -> tuple[str, Floats]:
    """The link of a contact, and the pose T_link_point of its point with the axes of its directions, (4, 4)."""
    link, T_link_frame = find_place(state.mechanism, contact.link)
    T_link_point = T_link_frame @ spatial.pose(np.eye(3), contact.point)
    if contact.axes == "world":
        R_link_world = link_poses(state.mechanism, state.q)[link][:3, :3].T
        T_link_point = spatial.pose(R_link_world, T_link_point[:3, 3])
    return link, T_link_point


def contact_wrenches(contact: Contact, T_link_point: Floats) -> Floats:
    """The wrenches W on a contact's link for unit inputs, in the link's frame, shape (6, m)."""
    # Wrenches go the other way than twists: F_link = Ad_point_link^T F_point
    W_point = contact.directions.T
    if contact.kind == "force":
        W_point = np.vstack([np.zeros_like(W_point), W_point])
    W: Floats = spatial.inverse_adjoint(T_link_point).T @ W_point
    return W


def join_inputs(parts: Sequence[Inputs]) -> Inputs:
    """The columns of several sets of inputs side by side."""
    names = tuple(name for part in parts for name in part.names)
    torques = np.hstack([part.torques for part in parts])
    wrenches: dict[str, Floats] = {}
    start = 0
    for part in parts:
        for link, W in part.wrenches.items():
            columns = wrenches.setdefault(link, np.zeros((6, len(names))))
            columns[:, start : start + part.size] += W
        start += part.size
    return Inputs(names, torques, wrenches)


def as_contact(contact: ContactLike) -> Contact:
    """A contact as such; a bare name is a point force at the link's or frame's origin."""
    if isinstance(contact, Contact):
        return contact
    if isinstance(contact, str):
        return Contact(contact)
    raise InputError(f"A contact is {contact!r}; give the name of a link or frame, or a fgd.Contact(link, point, ...).")


def find_place(mechanism: Mechanism, name: str) -> tuple[str, Floats]:
    """The link of a link's or frame's name, and the pose of the place in it, shape (4, 4)."""
    if name in mechanism.link_by_name:
        return name, np.eye(4)
    for frame in mechanism.frames:
        if frame.name == name:
            return frame.link, frame.placement
    allowed = [*mechanism.link_names, *(frame.name for frame in mechanism.frames)]
    raise InputError(
        f"A contact is on {name!r}, which is no link or frame of mechanism {mechanism.name!r}. Links and "
        f"frames: {', '.join(allowed)}."
    )


def _directions(value: Any, size: int, where: str) -> Floats:
    rows = np.atleast_2d(_numbers(value, f"The directions of {where}"))
    if rows.ndim != 2 or rows.shape[1] != size or not len(rows):
        raise InputError(f"The directions of {where} have shape {np.shape(value)}; give rows of {size} numbers each.")
    if not np.isfinite(rows).all():
        raise InputError(f"The directions of {where} are not finite: {rows.tolist()}.")
    if not rows.any(axis=1).all():
        raise InputError(f"The directions of {where} hold a zero row: {rows.tolist()}; remove it.")
    return rows


def _finite(value: Any, shape: tuple[int, ...], what: str) -> Floats:
    array = _numbers(value, what)
    if array.shape != shape:
        raise InputError(f"{what} has shape {array.shape}; it must be {shape}.")
    if not np.isfinite(array).all():
        raise InputError(f"{what} is not finite: {array.tolist()}.")
    return array


def _numbers(value: Any, what: str) -> Floats:
    try:
        return np.array(value, dtype=np.float64)
    except (TypeError, ValueError):
        raise InputError(f"{what} is {value!r}; it must be numbers.") from None
