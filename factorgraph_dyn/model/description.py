"""What a mechanism is described by: a validated, frozen tree of links and joints, with loops, couplings and frames.

Joint quantities q, v, a, tau follow ``joint_names``, the movable joints of the tree in the order of
their description; ``q_slice`` and ``v_slice`` say where each one lies.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import as_names, check_finite, check_parts, check_positive, real_numbers
from factorgraph_dyn.errors import DoubtfulInputWarning, InputError, ModelError, check_name, says_how_to_change
from factorgraph_dyn.model import inertia_checks
from factorgraph_dyn.model.doubts import doubtful_coordinates
from factorgraph_dyn.model.motors import one_motor_each
from factorgraph_dyn.model.names import check_own_name
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link, Loop, Numbers
from factorgraph_dyn.model.topology import Topology, check_names, find_topology
from factorgraph_dyn.model.visuals import Visual
from factorgraph_dyn.notebook import html_table
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.text import printable

# Files give lengths and quaternions with six digits; loops that are constrained more than once close no better.
CLOSED = 1e-6  # largest error of a state that counts as closed: rad, and lengths in units of the mechanism's size
GRAVITY = (0.0, 0.0, -9.81)  # in the world's axes, where nothing else is said, m/s^2
QUATERNION_TOLERANCE = 1e-6  # how far a quaternion's length may be from one
# What a mechanism is made of: the type of each part, and its fields that name parts.
PARTS: dict[str, tuple[type[Any], tuple[str, ...]]] = {
    "links": (Link, ("name",)),
    "joints": (Joint, ("name", "parent", "child")),
    "loops": (Loop, ("name", "predecessor", "successor")),
    "couplings": (Coupling, ("name", "joint", "source")),
    "frames": (Frame, ("name", "link")),
}


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Description:
    """The data of a ``Mechanism``, where they are explained; its names, sizes and checks."""

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    gravity: Numbers = GRAVITY
    frames: tuple[Frame, ...] = ()
    notes: tuple[str, ...] = ()
    strict: bool = False
    closure_tolerance: float = CLOSED
    visuals: tuple[Visual, ...] = ()

    def __post_init__(self) -> None:
        check_own_name(self.name, "mechanism")
        allowed: dict[str, tuple[type[Any], str]] = {"notes": (str, "texts")}
        allowed |= {field: (kind, f"fgd.{kind.__name__}(name, ...)") for field, (kind, _) in PARTS.items()}
        allowed["visuals"] = (Visual, "fgd.Visual(link, shape, size)")
        for field, (kind, made) in allowed.items():
            what = f"{field} of mechanism {self.name!r}"
            object.__setattr__(self, field, check_parts(getattr(self, field), kind, what, made, ModelError))
        object.__setattr__(self, "notes", tuple(map(printable, self.notes)))  # they hold words of files
        gravity = check_finite(self.gravity, (3,), f"The gravity of mechanism {self.name!r}", ModelError).copy()
        gravity.setflags(write=False)
        object.__setattr__(self, "gravity", gravity)
        tolerance = check_positive(
            self.closure_tolerance, f"The closure tolerance of mechanism {self.name!r}", ModelError
        )
        object.__setattr__(self, "closure_tolerance", tolerance)
        check_names(self.name, self.links, self.joints, self.loops, self.couplings, self.frames)
        _ = self.topology  # a bad tree must not be constructed
        for visual in self.visuals:
            check_name(visual.link, self.link_by_name, "link", f"mechanism {self.name!r}", ModelError)
        if self.strict and (found := inertia_checks.impossible_inertias(self.links)):
            raise ModelError(" ".join(found))

    def __repr__(self) -> str:
        parts = f"{len(self.links)} links, {len(self.joint_names)} movable joints, nq {self.nq}, nv {self.nv}"
        if self.is_closed_kind:
            parts += f", {len(self.loops)} loops, {len(self.couplings)} couplings"
        return f"<Mechanism {self.name!r}: {parts}>"

    def _repr_html_(self) -> str:
        rows = [
            {
                "joint": j.name,
                "kind": j.kind,
                "parent": j.parent,
                "child": j.child,
                "kg": self.link_by_name[j.child].mass,
            }
            for j in self.topology.outward
        ]
        return html_table(rows, f"{self.name}: nq {self.nq}, nv {self.nv}", repr(self)[1:-1])

    @cached_property
    def topology(self) -> Topology:
        """Who is whose parent, and the order from the base to the tips."""
        return find_topology(self.name, self.links, self.joints)

    @cached_property
    def movable_joints(self) -> tuple[Joint, ...]:
        """The joints that are not fixed, as described."""
        return tuple(joint for joint in self.joints if joint.nv)

    @cached_property
    def joint_names(self) -> tuple[str, ...]:
        """Names of the movable joints of the tree: the order of q, v, a and tau."""
        return tuple(joint.name for joint in self.movable_joints)

    @cached_property
    def link_names(self) -> tuple[str, ...]:
        """Names of all links, the base included."""
        return tuple(link.name for link in self.links)

    @property
    def base(self) -> str:
        """Name of the link that is fixed in the world."""
        return self.topology.base

    @cached_property
    def nq(self) -> int:
        """Number of coordinates."""
        return sum(joint.nq for joint in self.joints)

    @cached_property
    def nv(self) -> int:
        """Number of velocities."""
        return sum(joint.nv for joint in self.joints)

    @cached_property
    def link_by_name(self) -> Mapping[str, Link]:
        """Every link by its name."""
        return {link.name: link for link in self.links}

    @cached_property
    def joint_by_name(self) -> Mapping[str, Joint]:
        """Every joint of the tree by its name."""
        return {joint.name: joint for joint in self.joints}

    @cached_property
    def q_slices(self) -> Mapping[str, slice]:
        """Where each joint's coordinates lie in q."""
        return _consecutive((joint.name, joint.nq) for joint in self.joints)

    @cached_property
    def v_slices(self) -> Mapping[str, slice]:
        """Where each joint's entries lie in v, a and tau."""
        return _consecutive((joint.name, joint.nv) for joint in self.joints)

    def q_slice(self, joint_name: str) -> slice:
        """Where a joint's coordinates lie in q."""
        self.check_joint(joint_name)
        return self.q_slices[joint_name]

    def v_slice(self, joint_name: str) -> slice:
        """Where a joint's entries lie in v, a and tau."""
        self.check_joint(joint_name)
        return self.v_slices[joint_name]

    def check_joint(self, name: str) -> None:
        """Raise an InputError that lists the joints unless there is one of this name."""
        if not isinstance(name, str) or name not in self.joint_by_name:
            check_name(name, self.joint_names, "joint", f"mechanism {self.name!r}", InputError)

    @cached_property
    def place_names(self) -> tuple[str, ...]:
        """Names of all links and frames, once each."""
        return tuple(dict.fromkeys([*self.link_names, *(frame.name for frame in self.frames)]))

    @cached_property
    def own_placements(self) -> Mapping[str, Floats]:
        """Where links are that have a frame of their own name, in their link frames, shape (4, 4) each.

        Files put the frame of a body anywhere on it, while a link frame is on the link's joint: who asks for such a
        body by its name means the file's frame.
        """
        return {frame.name: np.asarray(frame.placement) for frame in self.frames if frame.name == frame.link}

    def place(self, name: str) -> tuple[str, Floats]:
        """The link that a link's or frame's name is on, and the pose in it, shape (4, 4).

        A link is where its frame of its own name is, if it has one (`own_placements`).
        """
        if isinstance(name, str) and name in self.link_by_name:
            return name, self.own_placements.get(name, np.eye(4))
        frames = {frame.name: frame for frame in self.frames}
        check_name(name, self.place_names, "link or frame", f"mechanism {self.name!r}", InputError)
        return frames[name].link, np.asarray(frames[name].placement)

    @cached_property
    def motors(self) -> tuple[str, ...]:
        """Names of the joints marked actuated, of those coupled to each other one: a joint that mimics has none."""
        return one_motor_each([joint for joint in self.movable_joints if joint.actuated], self.couplings)

    def torque_entries(self, actuated: Iterable[str] | None = None) -> npt.NDArray[np.bool_]:
        """Which entries of tau inverse dynamics seeks, shape (nv,).

        Args:
            actuated: Names of joints; by default every joint of a tree, the joints marked actuated where there are
                loops, and of joints coupled to each other one (see `motors`).
        """
        if actuated is None:
            names = self.motors if self.loops else one_motor_each(self.movable_joints, self.couplings)
        else:
            names = as_names(actuated, "actuated")
        sought = np.zeros(self.nv, dtype=bool)
        for name in names:
            sought[self.v_slice(name)] = True
        return sought

    def check_link(self, name: str) -> None:
        """Raise an InputError that lists the links unless there is one of this name."""
        if not isinstance(name, str) or name not in self.link_by_name:
            check_name(name, self.link_names, "link", f"mechanism {self.name!r}", InputError)

    @cached_property
    def tree(self) -> Self:
        """The mechanism without its loops and couplings."""
        return replace(self, loops=(), couplings=()) if self.is_closed_kind else self

    def check_q(self, q: npt.ArrayLike, *, batch: bool = False, what: str = "q") -> Floats:
        """q as a finite float array of shape (nq,) with unit quaternions, or an InputError.

        Args:
            q: The coordinates.
            batch: Allow any leading axes.
            what: What messages call it.
        """
        array = self._check_vector(q, self.nq, what, self.q_slices, batch)
        for joint in self.movable_joints:
            if joint.type.has_quaternion:
                lengths = np.linalg.norm(array[..., self.q_slices[joint.name]][..., -4:], axis=-1)
                if (np.abs(lengths - 1.0) > QUATERNION_TOLERANCE).any():
                    worst = lengths.flat[np.abs(lengths - 1.0).argmax()]
                    raise InputError(
                        f"The quaternion (x, y, z, w) of joint {joint.name!r} has length {worst:g}; "
                        "it must be 1. Divide it by its length, or start from mechanism.neutral()."
                    )
        for sentence, _ in doubtful_coordinates(self, array):
            warnings.warn(f"{sentence}.", DoubtfulInputWarning, stacklevel=3)
        return array

    def check_v(self, values: npt.ArrayLike, what: str = "v", *, batch: bool = False) -> Floats:
        """A joint vector as a finite float array of shape (nv,), or with leading axes, or an InputError."""
        return self._check_vector(values, self.nv, what, self.v_slices, batch)

    @property
    def is_closed_kind(self) -> bool:
        """Whether there are loops or couplings that q and v must satisfy."""
        return bool(self.loops or self.couplings)

    def _check_vector(
        self, values: npt.ArrayLike, size: int, what: str, slices: Mapping[str, slice], batch: bool
    ) -> Floats:
        array = real_numbers(values, what, InputError, f", {size} of them")
        if (array.shape[-1:] if batch else array.shape) != (size,):
            order = (
                f"in the order of its joints: {', '.join(self.joint_names)}" if size else "as it has no movable joint"
            )
            raise InputError(
                f"{what} has shape {array.shape}; mechanism {self.name!r} needs ({'..., ' if batch else ''}{size},), "
                f"{order}."
            )
        if not np.isfinite(array).all():
            bad = [n for n in self.joint_names if not np.isfinite(array[..., slices[n]]).all()]
            raise InputError(f"{what} is not finite at joints {', '.join(bad)}; give numbers there.")
        return array


def _consecutive(sizes: Iterable[tuple[str, int]]) -> dict[str, slice]:
    slices, start = {}, 0
    for name, size in sizes:
        slices[name] = slice(start, start + size)
        start += size
    return slices
