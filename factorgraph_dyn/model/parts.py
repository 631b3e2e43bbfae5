"""The parts a mechanism is made of: links, joints, loops, couplings and named frames.

Each part is frozen and checks what can be checked on its own; what concerns several parts (names,
the tree) is checked by ``Mechanism``. Units are SI: kg, m, rad, s, N.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_array, check_finite, check_number, real_numbers, shown
from factorgraph_dyn.errors import ModelError, check_name, says_how_to_change
from factorgraph_dyn.model.joint_kinds import KINDS, JointKind, axes_of
from factorgraph_dyn.model.names import check_own_name
from factorgraph_dyn.spatial import Array, Floats

EFFECTS = ("armature", "damping", "friction", "stiffness")  # of a joint, one number for every freedom
ROTATION_TOLERANCE = 1e-6  # how far a placement's rotation may be from orthogonal
ROTATION_ROUNDING = 1e-15  # and how far it is left from it: equations that use R^T for R^-1 have to agree
BOUNDS = ("effort_limit", "velocity_limit")  # of a joint, one for every freedom; infinite where there is none
Frozen = TypeVar("Frozen", bound=npt.NDArray[Any])
Numbers = Any  # anything NumPy makes an array of; a read-only float64 array once the part exists

SYMMETRY_TOLERANCE = 1e-9  # how far an inertia may be from symmetric, relative to its size


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Link:
    """A rigid body.

    Args:
        name: The link's name.
        mass: kg.
        com: Centre of mass in the link's frame, m, shape (3,).
        inertia: Rotational inertia about the com, in the link's axes, kg m^2, shape (3, 3).

    Examples:
        >>> fgd.Link("forearm", mass=1.2, com=(0.15, 0, 0), inertia=np.diag([0.001, 0.01, 0.01])).mass
        1.2
    """

    name: str
    mass: float = 0.0
    com: Numbers = (0.0, 0.0, 0.0)
    inertia: Numbers = field(default_factory=lambda: np.zeros((3, 3)))

    def __post_init__(self) -> None:
        check_own_name(self.name, "link")
        where = f"link {self.name!r}"
        mass = _number(self.mass, f"The mass of {where}")
        if mass < 0:
            raise ModelError(f"The mass of {where} is {mass:g} kg; a mass cannot be negative.")
        inertia = _array(self.inertia, (3, 3), f"The inertia of {where}")
        asymmetry = np.abs(inertia - inertia.T).max()
        if asymmetry > SYMMETRY_TOLERANCE * max(np.abs(inertia).max(), 1e-300):
            raise ModelError(
                f"The inertia of {where} is not symmetric: entries differ by {asymmetry:g} kg m^2. "
                "Give the full symmetric 3x3 matrix."
            )
        _freeze(self, mass=mass, com=_array(self.com, (3,), f"The com of {where}"), inertia=inertia)

    @cached_property
    def spatial_inertia(self) -> Floats:
        """The spatial inertia G about the link frame's origin, shape (6, 6)."""
        return _read_only(spatial.spatial_inertia(self.mass, self.com, self.inertia))


class OfKind:
    """What joints of the tree and joints that close loops share: a kind, and axes."""

    kind: str
    axis: Numbers
    pitch: float

    @property
    def type(self) -> JointKind:
        """What the kind does with coordinates and velocities."""
        return KINDS[self.kind]

    @property
    def nv(self) -> int:
        """Number of freedoms; the other 6 - nv are constrained."""
        return KINDS[self.kind].nv

    @cached_property
    def axes(self) -> Floats:
        """The unit axes as rows, shape (1 or 2, 3)."""
        return _read_only(axes_of(self.type, self.axis))

    @cached_property
    def _neutral_subspace(self) -> Floats:
        return _read_only(self.type.subspace(self.axes, self.pitch, np.eye(4)))

    @cached_property
    def constant_subspace(self) -> Floats | None:
        """The motion subspace in the child's frame, shape (6, nv); None where it varies with q."""
        return None if self.type.subspace_varies else self._neutral_subspace

    @cached_property
    def turns(self) -> npt.NDArray[np.bool_]:
        """Which freedoms turn the child, shape (nv,); a screw does both."""
        return _read_only(np.asarray(self._neutral_subspace[:3].any(axis=0)))

    @cached_property
    def slides(self) -> npt.NDArray[np.bool_]:
        """Which freedoms move the origin of the child's frame, shape (nv,)."""
        return _read_only(np.asarray(self._neutral_subspace[3:].any(axis=0)))

    @property
    def is_hinge(self) -> bool:
        """Whether its one freedom is a turn about an axis."""
        return self.nv == 1 and not self.slides[0]

    @property
    def is_slider(self) -> bool:
        """Whether its one freedom is a shift along an axis."""
        return self.nv == 1 and not self.turns[0]

    def freedom_units(self, length: float) -> Floats:
        """The unit of each freedom, shape (nv,): 1 for those that turn, the length for those that slide."""
        return np.where(self.turns, 1.0, length)


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Joint(OfKind):
    """A joint of the tree, from a parent link to a child link.

    The child's link frame is the joint's moving frame.

    Args:
        name: The joint's name.
        kind: One of fixed, revolute, continuous, prismatic, helical, universal, spherical, planar, floating.
        parent: Name of the link nearer to the base.
        child: Name of the link the joint moves.
        placement: Pose of the joint frame in the parent link, shape (4, 4).
        axis: The axis in the joint frame, shape (3,); of a planar joint the plane's normal; of a
            universal joint one axis or both, shape (2, 3).
        pitch: Metres for every radian of a helical joint.
        armature: Reflected rotor inertia, kg m^2 or kg; a number, or one for every freedom.
        damping: Viscous damping, N m s/rad or N s/m.
        friction: Coulomb friction, N m or N, opposing the sign of the velocity.
        stiffness: Spring stiffness, N m/rad or N/m.
        rest: Where the spring is at rest, rad or m.
        limits: (lower, upper) bounds of the coordinate, or None.
        actuated: Whether a motor drives the joint.
        effort_limit: The largest torque or force of the motor, N m or N; infinite where none is known. Dynamics do
            not depend on it: it is kept for those who plan and control.
        velocity_limit: The largest speed, rad/s or m/s; likewise.

    Examples:
        >>> elbow = fgd.Joint("elbow", "revolute", "upper", "fore", fgd.translation(0.3, 0, 0), axis=(0, 1, 0))
        >>> elbow.nq, elbow.nv
        (1, 1)
    """

    name: str
    kind: str
    parent: str
    child: str
    placement: Numbers = field(default_factory=lambda: np.eye(4))
    axis: Numbers = (0.0, 0.0, 1.0)
    pitch: float = 0.0
    armature: Numbers = 0.0
    damping: Numbers = 0.0
    friction: Numbers = 0.0
    stiffness: Numbers = 0.0
    rest: Numbers = 0.0
    limits: Sequence[float] | None = None
    actuated: bool = True
    effort_limit: Numbers = np.inf
    velocity_limit: Numbers = np.inf

    def __post_init__(self) -> None:
        check_own_name(self.name, "joint")
        where = f"joint {self.name!r}"
        check_name(self.kind, KINDS, "joint kind", f"the kinds {where} may have", ModelError)
        _check_ends(self.parent, self.child, where, "link")
        effects = {
            name: _per_freedom(getattr(self, name), self.nv, f"The {name} of {where}") for name in (*EFFECTS, "rest")
        }
        for name in EFFECTS:
            if (effects[name] < 0).any():
                raise ModelError(f"The {name} of {where} is negative: {effects[name].min():g}.")
        if effects["stiffness"].any() and self.nq != self.nv:
            raise ModelError(
                f"Joint {self.name!r} is {self.kind} and has stiffness; springs act on joints whose "
                "coordinates are plain numbers. Set stiffness=0 or use other joints."
            )
        _freeze(
            self,
            placement=placement_of(self.placement, f"The placement of {where}"),
            axis=_axis(self.axis, self.type, where),
            pitch=_number(self.pitch, f"The pitch of {where}"),
            limits=_limits(self.limits, where),
            **{name: _bound(getattr(self, name), self.nv, f"The {name} of {where}") for name in BOUNDS},
            **effects,
        )

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return KINDS[self.kind].nq

    def pose(self, q: Array) -> Array:
        """The pose T_parent_child at the joint's coordinates, of any scalar type, shape (4, 4)."""
        return np.asarray(self.placement) @ self.type.pose(self.axes, self.pitch, q)

    def coordinate_units(self, length: float) -> Floats:
        """The unit of each coordinate, shape (nq,)."""
        if self.type.has_quaternion:
            return np.array([*[length] * (self.nq - 4), 1.0, 1.0, 1.0, 1.0])
        return self.freedom_units(length)

    @cached_property
    def armature_matrix(self) -> Floats | None:
        """The armature as a diagonal matrix, shape (nv, nv), or None where there is none."""
        return _read_only(np.diag(self.armature)) if self.armature.any() else None

    @cached_property
    def is_lossless(self) -> bool:
        """Whether neither damping nor friction nor a spring acts."""
        return not (self.damping.any() or self.friction.any() or self.stiffness.any())


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Loop(OfKind):
    """A joint that closes a loop between two links of the tree; passive, with no entries in q.

    Args:
        name: The loop's name.
        kind: A joint kind; revolute leaves one freedom and constrains five, and so on.
        predecessor: Name of the link in the parent's place.
        successor: Name of the link in the child's place.
        predecessor_placement: Pose of the joint frame in the predecessor, shape (4, 4).
        successor_placement: Pose of the joint's moving frame in the successor, shape (4, 4).
        axis: The axis in the joint frame, as for ``Joint``.
        pitch: Metres for every radian of a helical joint.

    Examples:
        >>> tip = fgd.Loop("tip", "revolute", "left", "right", fgd.translation(0.4, 0, 0), fgd.translation(-0.4, 0, 0))
        >>> tip.predecessor, tip.successor
        ('left', 'right')
    """

    name: str
    kind: str
    predecessor: str
    successor: str
    predecessor_placement: Numbers = field(default_factory=lambda: np.eye(4))
    successor_placement: Numbers = field(default_factory=lambda: np.eye(4))
    axis: Numbers = (0.0, 0.0, 1.0)
    pitch: float = 0.0

    def __post_init__(self) -> None:
        check_own_name(self.name, "loop")
        where = f"loop {self.name!r}"
        check_name(self.kind, KINDS, "joint kind", f"the kinds {where} may have", ModelError)
        _check_ends(self.predecessor, self.successor, where, "link")
        _freeze(
            self,
            predecessor_placement=placement_of(self.predecessor_placement, f"The predecessor placement of {where}"),
            successor_placement=placement_of(self.successor_placement, f"The successor placement of {where}"),
            axis=_axis(self.axis, self.type, where),
            pitch=_number(self.pitch, f"The pitch of {where}"),
        )


@says_how_to_change
@dataclass(frozen=True)
class Coupling:
    """A gear between two joints of one freedom: q_joint = ratio q_source + offset.

    Examples:
        >>> fgd.Coupling("gear", "right_finger", "left_finger", ratio=-1.0).ratio
        -1.0
    """

    name: str
    joint: str
    source: str
    ratio: float = 1.0
    offset: float = 0.0

    def __post_init__(self) -> None:
        check_own_name(self.name, "coupling")
        where = f"coupling {self.name!r}"
        _check_ends(self.joint, self.source, where, "joint")
        _freeze(
            self,
            ratio=_number(self.ratio, f"The ratio of {where}"),
            offset=_number(self.offset, f"The offset of {where}"),
        )


@says_how_to_change
@dataclass(frozen=True, eq=False)
class Frame:
    """A named place on a link, for contacts and tasks: pose of the frame in the link, shape (4, 4).

    Examples:
        >>> fgd.Frame("tool", "link6", fgd.translation(0, 0, 0.1)).link
        'link6'
    """

    name: str
    link: str
    placement: Numbers = field(default_factory=lambda: np.eye(4))

    def __post_init__(self) -> None:
        check_own_name(self.name, "frame")
        placement = placement_of(self.placement, f"The placement of frame {self.name!r}")
        _freeze(self, placement=placement)


def _check_ends(first: object, second: object, where: str, noun: str) -> None:
    """Raise a ModelError unless a part's two ends are names that differ."""
    for end in (first, second):
        if not isinstance(end, str):
            raise ModelError(f"An end of {where} is {shown(end)}; give the name of a {noun}.")
    if first == second:
        raise ModelError(f"{where[0].upper()}{where[1:]} joins {noun} {first!r} to itself; give two {noun}s.")


def _freeze(part: object, **values: object) -> None:
    """Store checked values on a frozen part, arrays read-only."""
    for name, value in values.items():
        object.__setattr__(part, name, _read_only(value) if isinstance(value, np.ndarray) else value)


def _read_only(array: Frozen) -> Frozen:
    """The array, of which nobody can write: a part is what it was when it was checked."""
    array.setflags(write=False)
    return array


def _number(value: object, what: str) -> float:
    return check_number(value, what, ModelError)


def _array(value: npt.ArrayLike, shape: tuple[int, ...], what: str) -> Floats:
    return check_finite(value, shape, what, ModelError).copy()  # because it is frozen


def _per_freedom(value: npt.ArrayLike, nv: int, what: str) -> Floats:
    """One number for every freedom from one number for all or an array."""
    numbers = real_numbers(value, what, ModelError)
    return np.full(nv, _number(numbers, what)) if numbers.ndim == 0 else _array(numbers, (nv,), what)


def _bound(value: npt.ArrayLike, nv: int, what: str) -> Floats:
    """One bound for every freedom, at least 0 and maybe infinite, from one number for all or an array."""
    numbers = real_numbers(value, what, ModelError)
    bound = check_array(
        np.broadcast_to(numbers, (nv,)) if numbers.ndim == 0 else numbers, (nv,), what, ModelError
    ).copy()
    if not (bound >= 0).all():
        raise ModelError(f"{what} is {shown(value)}; it must be 0 or more, infinite where there is none.")
    return bound


def placement_of(value: npt.ArrayLike, what: str) -> Floats:
    """A pose that was given, made a rigid motion to the last bit, or a ModelError."""
    T = _array(value, (4, 4), what)
    R = T[:3, :3]
    deviation = np.abs(R @ R.T - np.eye(3)).max()
    if deviation > ROTATION_TOLERANCE or np.linalg.det(R) < 0 or (T[3] != (0, 0, 0, 1)).any():
        raise ModelError(
            f"{what} is not a rigid motion (R R^T is {deviation:.1e} from the identity, det R = "
            f"{np.linalg.det(R):.3g}, last row {T[3].tolist()}). Give a 4x4 pose with a rotation "
            "and last row 0 0 0 1."
        )
    if deviation > ROTATION_ROUNDING:
        for _ in range(2):  # towards the nearest rotation (Higham 1986), quadratically; zeros stay zeros
            R[:] = 0.5 * R @ (3.0 * np.eye(3) - R.T @ R)
    return T


def _axis(value: npt.ArrayLike, kind: JointKind, where: str) -> Floats:
    numbers = real_numbers(value, f"The axis of {where}", ModelError)
    shape = (2, 3) if kind.axis_count == 2 and numbers.shape == (2, 3) else (3,)
    axes = _array(numbers, shape, f"The axis of {where}")
    if (np.linalg.norm(np.atleast_2d(axes), axis=1) < 1e-12).any():
        raise ModelError(f"The axis of {where} is zero: {axes.tolist()}. Give a direction.")
    if axes.ndim == 2 and np.linalg.norm(np.cross(axes[0], axes[1])) < 1e-9:
        raise ModelError(f"The two axes of {where} are parallel: {axes.tolist()}.")
    return axes


def _limits(value: Sequence[float] | None, where: str) -> tuple[float, float] | None:
    if value is None:
        return None
    lower, upper = check_array(value, (2,), f"The limits (lower, upper) of {where}", ModelError).tolist()
    if not lower <= upper:
        raise ModelError(f"The limits of {where} are ({lower}, {upper}); lower must not exceed upper.")
    return lower, upper
