"""The mechanism: a validated, frozen tree of links and joints, with loops, couplings and frames.

Joint quantities q, v, a, tau follow ``joint_names``, the movable joints of the tree in the order of
their description; ``q_slice`` and ``v_slice`` say where each one lies.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from os import PathLike

import numpy as np
import numpy.typing as npt

from factorgraph_dyn.checks import (
    as_names,
    check_finite,
    check_kind,
    check_number,
    check_parts,
    check_path,
    random_generator,
    shown,
)
from factorgraph_dyn.errors import FactorGraphDynError, InputError, ModelError, check_name
from factorgraph_dyn.model import inertia_checks
from factorgraph_dyn.model.parts import Coupling, Frame, Joint, Link, Loop, Numbers, check_own_name
from factorgraph_dyn.model.topology import Topology, check_names, find_topology
from factorgraph_dyn.motion import closing, closure
from factorgraph_dyn.motion.joint_limits import limited, reflected
from factorgraph_dyn.motion.random_states import random_closed_state
from factorgraph_dyn.motion.size import measured
from factorgraph_dyn.spatial import Floats, real_array

QUATERNION_TOLERANCE = 1e-6  # how far a quaternion's length may be from one
PARTS: tuple[tuple[str, type, str], ...] = (
    ("links", Link, "fgd.Link(name, ...)"),
    ("joints", Joint, "fgd.Joint(name, kind, parent, child, ...)"),
    ("loops", Loop, "fgd.Loop(name, kind, predecessor, successor, ...)"),
    ("couplings", Coupling, "fgd.Coupling(name, joint, source, ...)"),
    ("frames", Frame, "fgd.Frame(name, link, ...)"),
    ("notes", str, "texts"),
)


@dataclass(frozen=True, eq=False)
class Mechanism:
    """Links joined to a tree by joints, with loops and couplings; never changes.

    The one link that is no joint's child is the base, fixed in the world; a floating base is a
    floating joint to it.

    Args:
        name: The mechanism's name.
        links: The links, base included.
        joints: The joints of the tree.
        loops: Joints that close loops.
        couplings: Gears and mimic joints.
        gravity: In the world's (the base's) axes, m/s^2, shape (3,).
        frames: Named places on links.
        notes: Warnings found by whoever made the description, such as a file's reader.
        strict: Make inertias that no body can have an error instead of a warning.
        closure_tolerance: How far loops and couplings of a closed state may be open: rad, and lengths in parts of
            the mechanism's ``size``; also of speeds, in parts of the largest. Loops that are constrained more than
            once close no better than their file's digits; where these are few, it must be larger.

    Raises:
        ModelError: The parts do not make a mechanism.
    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    loops: tuple[Loop, ...] = ()
    couplings: tuple[Coupling, ...] = ()
    gravity: Numbers = (0.0, 0.0, -9.81)
    frames: tuple[Frame, ...] = ()
    notes: tuple[str, ...] = ()
    strict: bool = False
    closure_tolerance: float = closure.CLOSED

    def __post_init__(self) -> None:
        check_own_name(self.name, "mechanism")
        for field, kind, allowed in PARTS:
            what = f"{field} of mechanism {self.name!r}"
            object.__setattr__(self, field, check_parts(getattr(self, field), kind, what, allowed, ModelError))
        gravity = check_finite(self.gravity, (3,), f"The gravity of mechanism {self.name!r}", ModelError).copy()
        gravity.setflags(write=False)
        object.__setattr__(self, "gravity", gravity)
        tolerance = _positive(self.closure_tolerance, f"The closure tolerance of mechanism {self.name!r}", ModelError)
        object.__setattr__(self, "closure_tolerance", tolerance)
        check_names(self.name, self.links, self.joints, self.loops, self.couplings, self.frames)
        _ = self.topology  # a bad tree must not be constructed
        if self.strict and (found := inertia_checks.impossible_inertias(self.links)):
            raise ModelError(" ".join(found))

    def __repr__(self) -> str:
        parts = f"{len(self.links)} links, {len(self.joint_names)} movable joints, nq {self.nq}, nv {self.nv}"
        if self.is_closed_kind:
            parts += f", {len(self.loops)} loops, {len(self.couplings)} couplings"
        return f"<Mechanism {self.name!r}: {parts}>"

    # ---- names and sizes

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
    def warnings(self) -> tuple[str, ...]:
        """What is odd about the description but used as written."""
        return self.notes + tuple(inertia_checks.impossible_inertias(self.links))

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

    def torque_entries(self, actuated: Iterable[str] | None = None) -> npt.NDArray[np.bool_]:
        """Which entries of tau inverse dynamics seeks, shape (nv,).

        Args:
            actuated: Names of joints; by default every joint of a tree, and the joints marked actuated where there
                are loops or couplings.
        """
        if actuated is None:
            names = [j.name for j in self.movable_joints if j.actuated or not self.is_closed_kind]
        else:
            names = list(as_names(actuated, "actuated"))
        sought = np.zeros(self.nv, dtype=bool)
        for name in names:
            sought[self.v_slice(name)] = True
        return sought

    def check_link(self, name: str) -> None:
        """Raise an InputError that lists the links unless there is one of this name."""
        if not isinstance(name, str) or name not in self.link_by_name:
            check_name(name, self.link_names, "link", f"mechanism {self.name!r}", InputError)

    @property
    def size(self) -> float:
        """How far two joints on one link are apart at most, m: the length in which closing is measured."""
        return measured(self).length

    @cached_property
    def tree(self) -> Mechanism:
        """The mechanism without its loops and couplings."""
        return replace(self, loops=(), couplings=()) if self.is_closed_kind else self

    # ---- states

    def neutral(self) -> Floats:
        """The configuration of all-zero angles and identity rotations, closed, shape (nq,).

        Raises:
            ClosureError: The loops cannot be closed from there.
        """
        q = np.concatenate([np.zeros(0), *(joint.type.neutral() for joint in self.joints)])
        if not self.is_closed_kind or closure.is_closed(self, q):
            return q
        return closing.close(self, q)

    def random_state(self, rng: np.random.Generator | int | None = None) -> tuple[Floats, Floats]:
        """A random state (q, v) within limits, closed where there are loops or couplings.

        Lengths are of the order of the mechanism's ``size``. Limits of no width count as none, and so do those of
        loops and couplings for which no closed configuration is found within them.

        Raises:
            ClosureError: No closed configuration was found.
        """
        generator = random_generator(rng, "rng")
        if self.is_closed_kind:
            return random_closed_state(self, generator)
        return self.random_configuration(generator), generator.normal(size=self.nv) * measured(self).v

    def random_configuration(self, rng: np.random.Generator | int | None = None) -> Floats:
        """Random coordinates within limits, whether loops close or not, shape (nq,)."""
        generator = random_generator(rng, "rng")
        return np.concatenate([np.zeros(0), *(_random_coordinates(j, generator, self.size) for j in self.joints)])

    def check_q(self, q: npt.ArrayLike) -> Floats:
        """q as a finite float array of shape (nq,) with unit quaternions, or an InputError."""
        array = self._check_vector(q, self.nq, "q")
        for joint in self.movable_joints:
            if joint.nq != joint.nv:
                part = array[self.q_slices[joint.name]]
                length = float(np.linalg.norm(part[-4:]))
                if abs(length - 1.0) > QUATERNION_TOLERANCE:
                    raise InputError(
                        f"The quaternion (x, y, z, w) of joint {joint.name!r} has length {length:g}; "
                        "it must be 1. Divide it by its length, or start from mechanism.neutral()."
                    )
        return array

    def check_v(self, values: npt.ArrayLike, what: str = "v") -> Floats:
        """A joint vector as a finite float array of shape (nv,), or an InputError."""
        return self._check_vector(values, self.nv, what)

    # ---- closure

    @property
    def is_closed_kind(self) -> bool:
        """Whether there are loops or couplings that q and v must satisfy."""
        return bool(self.loops or self.couplings)

    def close(self, q: npt.ArrayLike, *, hold: Iterable[str] = (), tolerance: float | None = None) -> Floats:
        """The configuration nearest to q that closes all loops and couplings, shape (nq,).

        Loops that contradict each other, as those of rounded files do, are brought as near as they come.

        Args:
            q: Where to start; the assembly mode nearest to it is kept where it can be closed, shape (nq,).
            hold: Names of joints that must not move.
            tolerance: How far they may stay open: rad, and lengths in parts of the mechanism's ``size``; its
                ``closure_tolerance`` by default. Dynamics ask for the latter: see ``tolerate``.

        Raises:
            ClosureError: The loops cannot be closed from here; says how far it got, and which tolerance would do.
        """
        allowed = None if tolerance is None else _positive(tolerance, "The tolerance", InputError)
        return closing.close(self, self.check_q(q), as_names(hold, "hold"), allowed)

    def tolerate(self, tolerance: float) -> Mechanism:
        """The mechanism with another ``closure_tolerance``, for loops that cannot close better."""
        return replace(self, closure_tolerance=tolerance)

    def complete_velocity(self, q: npt.ArrayLike, v: npt.ArrayLike, given: Iterable[str]) -> Floats:
        """The joint velocities that closure demands when the given joints move as in v, shape (nv,)."""
        return closure.complete_velocity(self, self.check_q(q), self.check_v(v), as_names(given, "given"))

    def closure_error(self, q: npt.ArrayLike, v: npt.ArrayLike | None = None) -> float:
        """How far the state is from closing all loops and couplings (m, rad; with v, also per s)."""
        speeds = None if v is None else self.check_v(v)
        return closure.closure_error(self, self.check_q(q), speeds)

    # ---- files and new mechanisms; the work is done in model/readers/native.py and model/edit.py

    @cached_property
    def fingerprint(self) -> str:
        """A hash of everything but the notes, 64 hexadecimal digits; equal for equal mechanisms."""
        from factorgraph_dyn.model.files import native

        return native.fingerprint(self)

    def save(self, path: str | PathLike[str]) -> None:
        """Write the mechanism in full to a file that ``fgd.load`` reads back exactly (JSON)."""
        from factorgraph_dyn.model.files import native

        check_path(path, "The path to save to").write_text(native.to_json(self), encoding="utf-8")

    def subset(self, *, base: str | None = None, tips: Iterable[str] = (), q: npt.ArrayLike | None = None) -> Mechanism:
        """The part from the link ``base`` outward, to the links ``tips`` or to every end."""
        from factorgraph_dyn.model import edit

        return edit.subset(self, base=base, tips=tips, q=q)

    def lock(self, joints: Iterable[str] | Mapping[str, npt.ArrayLike]) -> Mechanism:
        """The mechanism with joints fixed at their neutral place, or at {name: coordinates}."""
        from factorgraph_dyn.model import edit

        return edit.lock(self, joints)

    def change_base(self, link: str, *, q: npt.ArrayLike | None = None) -> Mechanism:
        """The mechanism with another link as its base, or as its floating link where it floats."""
        from factorgraph_dyn.model import edit

        return edit.change_base(self, link, q=q)

    def float_base(self) -> Mechanism:
        """The mechanism on a free base: a floating joint to its base from a new link ``world``."""
        from factorgraph_dyn.model import edit

        return edit.float_base(self)

    def merge_fixed(self) -> Mechanism:
        """The mechanism with links on fixed joints merged into their parents; frames keep their names."""
        from factorgraph_dyn.model import edit

        return edit.merge_fixed(self)

    def add_payload(
        self,
        link: str,
        mass: float,
        com: npt.ArrayLike = (0.0, 0.0, 0.0),
        inertia: npt.ArrayLike | None = None,
    ) -> Mechanism:
        """The mechanism with a body (kg, m, kg m^2 about its com) rigidly added to a link or frame."""
        from factorgraph_dyn.model import edit

        return edit.add_payload(self, link, mass, com, inertia)

    def add_frame(self, name: str, link: str, placement: npt.ArrayLike | None = None) -> Mechanism:
        """The mechanism with one more named frame on a link, or relative to another frame."""
        from factorgraph_dyn.model import edit

        return edit.add_frame(self, name, link, placement)

    def rename(self, names: Mapping[str, str], *, name: str | None = None) -> Mechanism:
        """The mechanism with other names, {old: new}; ``name`` renames the mechanism itself."""
        from factorgraph_dyn.model import edit

        return edit.rename(self, names, name=name)

    # ---- checks

    def _check_vector(self, values: npt.ArrayLike, size: int, what: str) -> Floats:
        try:
            array = real_array(values)
        except (TypeError, ValueError):
            raise InputError(f"{what} is {shown(values)}; it must be {size} real numbers.") from None
        if array.shape != (size,):
            raise InputError(
                f"{what} has shape {array.shape}; mechanism {self.name!r} needs ({size},), in the order "
                f"of its joints: {', '.join(self.joint_names)}."
            )
        if not np.isfinite(array).all():
            slices = self.q_slices if what == "q" else self.v_slices
            bad = [n for n in self.joint_names if not np.isfinite(array[slices[n]]).all()]
            raise InputError(f"{what} is not finite at joints {', '.join(bad)}; give numbers there.")
        return array


def check_mechanism(value: object) -> Mechanism:
    """The value, if it is a mechanism."""
    how = "fgd.robots.puma560(), fgd.load('robot.urdf') or one built by fgd.Mechanism(...)"
    return check_kind(value, Mechanism, "The mechanism", f"a Mechanism, such as {how}")


def _consecutive(sizes: Iterable[tuple[str, int]]) -> dict[str, slice]:
    slices, start = {}, 0
    for name, size in sizes:
        slices[name] = slice(start, start + size)
        start += size
    return slices


def _random_coordinates(joint: Joint, rng: np.random.Generator, length: float) -> Floats:
    q = joint.type.random(rng, length)
    lower, upper = limited(joint) or (-np.inf, np.inf)
    if np.isfinite(upper - lower):
        return np.array([rng.uniform(lower, upper)])
    return reflected(q, lower, upper)


def _positive(value: object, what: str, error: type[FactorGraphDynError]) -> float:
    number = check_number(value, what, error)
    if number <= 0:
        raise error(f"{what} is {number:g}; it must be positive.")
    return number
