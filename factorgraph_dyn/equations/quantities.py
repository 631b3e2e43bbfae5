"""What kernels take and give: every quantity by its name, such as ``tau`` or ``A[forearm]``.

A new one is an entry of `QUANTITIES`; how a result is read off a solved graph stands in ``compiler/outputs``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from math import prod

from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.parameters import COUNT, parameter_links

Size = int | str


@dataclass(frozen=True)
class Quantity:
    """A kind of quantity.

    Attributes:
        size: How many numbers it has, the name of the mechanism's attribute that tells, "freedoms" of its joint,
            "inertial" parameters of all links, or "problem" where only that tells; of a matrix one for each axis, of a
            single number none.
        meaning: What a reader of a kernel's C source is told; {} is its name.
        of: What there is one for each of, a key of `OWNERS`; nothing where there is one a mechanism.
        is_output: Whether a kernel can give it.
        in_link_frames: Whether it is written in the frames of links, which must then stay where they are.
        splits_inertia: Whether it depends on how inertia is shared among links that move together.
        follows_state: Whether q and v alone determine it.
    """

    size: Size | tuple[Size, ...]
    meaning: str
    of: str = ""
    is_output: bool = True
    in_link_frames: bool = False
    splits_inertia: bool = False
    follows_state: bool = False


QUANTITIES = {
    "q": Quantity("nq", "coordinates (rad, m; quaternions x, y, z, w)", is_output=False),
    "v": Quantity("nv", "velocities (rad/s, m/s)", is_output=False),
    "a": Quantity("nv", "accelerations (rad/s^2, m/s^2)"),
    "tau": Quantity("nv", "torques and forces (N m, N)"),
    "parameters": Quantity(
        "problem", "inertial parameters: m, m c, I_xx, I_xy, I_yy, I_xz, I_yz, I_zz a link", is_output=False
    ),
    "armature": Quantity("freedoms", "{} (kg m^2, kg)", "movable joint", is_output=False),
    "damping": Quantity("freedoms", "{} (N m s/rad, N s/m)", "movable joint", is_output=False),
    "friction": Quantity("freedoms", "{} (N m, N)", "movable joint", is_output=False),
    "gravity": Quantity(3, "gravity in the world (m/s^2)", is_output=False),
    "wrench": Quantity(6, "{}, moment and force", "place", is_output=False, in_link_frames=True),
    "T": Quantity((4, 4), "{}, pose in the world, row by row", "place", in_link_frames=True, follows_state=True),
    "J": Quantity(
        (6, "nv"), "{}, twist for unit velocities, row by row", "place", in_link_frames=True, follows_state=True
    ),
    "V": Quantity(6, "{}, angular part first", "place", in_link_frames=True, follows_state=True),
    "A": Quantity(6, "{}, angular part first", "place", in_link_frames=True),
    "F": Quantity(6, "{}, angular part first", "joint", in_link_frames=True, splits_inertia=True),
    "com": Quantity(3, "centre of mass (m)", in_link_frames=True, follows_state=True),
    "momentum": Quantity(6, "momentum about the com, angular part first", in_link_frames=True, follows_state=True),
    "kinetic_energy": Quantity((), "kinetic energy (J)", follows_state=True),
    "potential_energy": Quantity((), "potential energy (J)", in_link_frames=True, follows_state=True),
    "regressor": Quantity(("nv", "inertial"), "torques for unit parameters, row by row", in_link_frames=True),
    "kinetic_regressor": Quantity(
        "inertial", "kinetic energy of unit parameters", in_link_frames=True, follows_state=True
    ),
    "potential_regressor": Quantity(
        "inertial", "potential energy of unit parameters", in_link_frames=True, follows_state=True
    ),
    # of problems whose result is one: the mass matrix, its inverse, or what inputs do
    "matrix": Quantity(("nv", 0), "responses to units, row by row", is_output=False),
    # of estimators: readings of their sensors, wrenches from outside that they name, and gains, such as gain[tau]
    "values": Quantity(0, "readings of the sensors, one after the other", is_output=False, in_link_frames=True),
    "W": Quantity(6, "{}, moment and force", "frame", is_output=False, in_link_frames=True),
    "gain": Quantity((0, 0), "{}, row by row", "output", is_output=False, in_link_frames=True, splits_inertia=True),
}


def _joints_and_loops(mechanism: Mechanism) -> list[str]:
    return sorted([*(joint.name for joint in mechanism.joints), *(loop.name for loop in mechanism.loops)])


# What messages put in brackets, how they call them all, and their names.
OWNERS: dict[str, tuple[str, str, Callable[[Mechanism], Iterable[str]]]] = {
    "place": ("link or frame", "links and frames", lambda mechanism: mechanism.place_names),
    "link": ("link", "links", lambda mechanism: mechanism.link_names),
    "joint": ("joint", "joints and loops", _joints_and_loops),
    "movable joint": ("joint", "movable joints", lambda mechanism: mechanism.joint_names),
}


def unique_names(names: Iterable[str]) -> tuple[str, ...]:
    """The names, in which those that have been there before are counted, as in ``foot.fz #2``."""
    found: dict[str, int] = {}
    for name in names:
        free, count = name, 1
        while free in found:
            count = found[name] = max(found[name], count) + 1
            free = f"{name} #{count}"
        found[free] = 1
    return tuple(found)


def split_name(name: str) -> tuple[str, str]:
    """The kind and the owner of a quantity: ``A[forearm]`` is the A of forearm, ``a`` has no owner."""
    kind, bracket, rest = name.partition("[")
    return (kind, rest[:-1]) if bracket and rest.endswith("]") else (name, "")


def split_derivative(name: str) -> tuple[str, str] | None:
    """The output and the argument of a derivative: ``dF[wrist]/dq`` is of F[wrist] by q; None for what is none."""
    depth = 0
    for place, character in enumerate(name):
        depth += (character == "[") - (character == "]")
        if not depth and name.startswith("/d", place) and name.startswith("d"):
            return name[1:place], name[place + 2 :]
    return None


def derived_by(names: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The arguments that each output is derived by, from the names of derivatives."""
    found: dict[str, tuple[str, ...]] = {}
    for output, argument in filter(None, map(split_derivative, names)):
        found[output] = (*found.get(output, ()), argument)
    return found


def quantity(name: str) -> Quantity:
    """What a quantity is, by its name or its kind; for a derivative, what is derived."""
    derived = split_derivative(name)
    return QUANTITIES[split_name(derived[0] if derived else name)[0]]


def meaning(name: str) -> str:
    """What a quantity is, in words."""
    derived = split_derivative(name)
    if derived:
        return f"{name}, row by row, a column for every {'freedom' if derived[1] == 'q' else 'entry'} of {derived[1]}"
    return quantity(name).meaning.format(name)


def shape_of(mechanism: Mechanism, name: str) -> tuple[int, ...]:
    """The shape of a quantity, without batch axes."""
    size = quantity(name).size
    axes = size if isinstance(size, tuple) else (size,)
    return tuple(axis if isinstance(axis, int) else _length(mechanism, name, axis) for axis in axes)


def _length(mechanism: Mechanism, name: str, axis: str) -> int:
    if axis == "freedoms":
        return mechanism.joint_by_name[split_name(name)[1]].nv
    if axis == "inertial":
        return COUNT * len(parameter_links(mechanism))
    return int(getattr(mechanism, axis))


def size_of(mechanism: Mechanism, name: str) -> int:
    """How many numbers a quantity has."""
    return prod(shape_of(mechanism, name))


def check_output(mechanism: Mechanism, name: str, arguments: Sequence[str]) -> None:
    """Raise an InputError that lists all outputs, or all arguments, unless there is an output of this name."""
    derived = split_derivative(name)
    if derived:
        _check_derivative(mechanism, name, *derived, arguments)
        return
    kind, owner = split_name(name)
    found = QUANTITIES.get(kind)
    if found and found.is_output and (owner in OWNERS[found.of][2](mechanism) if found.of else name == kind):
        return
    kinds = [(kind, each.of) for kind, each in QUANTITIES.items() if each.is_output]
    offers = [kind for kind, of in kinds if not of]
    for of, (one, owners, names) in OWNERS.items():
        if each := " and ".join(f"{kind}[{one}]" for kind, other in kinds if other == of):
            offers.append(f"{each} for the {owners} {', '.join(names(mechanism))}")
    if arguments:
        offers.append(f"and the derivatives d<output>/d<argument> by the arguments {', '.join(arguments)}")
    raise InputError(f"There is no output {name!r}. Outputs: {', '.join(offers)}.")


def _check_derivative(mechanism: Mechanism, name: str, output: str, argument: str, arguments: Sequence[str]) -> None:
    """Raise an InputError unless both parts of a derivative are there."""
    if split_derivative(output):
        raise InputError(f"The output {name!r} is a derivative of a derivative; kernels give first derivatives only.")
    check_output(mechanism, output, arguments)
    if argument not in arguments:
        raise InputError(
            f"The output {name!r} is a derivative by {argument!r}, which is not an argument here. "
            f"Arguments: {', '.join(arguments)}."
        )
