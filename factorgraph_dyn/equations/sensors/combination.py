"""A sensor of any linear combination of variables."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from factorgraph_dyn import spatial
from factorgraph_dyn.checks import check_mapping, real_numbers, shown
from factorgraph_dyn.equations.linear_graph import Variable
from factorgraph_dyn.equations.quantities import split_name
from factorgraph_dyn.equations.sensors.of_frames import check_feels
from factorgraph_dyn.equations.sensors.sensor import Reading, Sensor
from factorgraph_dyn.equations.state import State
from factorgraph_dyn.errors import InputError, check_name
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.spatial import Array, Floats

KINDS = {
    "A": "link",
    "V": "link",
    "F": "joint or loop",
    "a": "joint",
    "tau": "joint",
    "v": "joint",
    "W": "link or frame",
}


@dataclass(frozen=True, eq=False)
class Combination(Sensor):
    """Any linear combination of variables: Combination(name, {"tau[elbow]": 1.0, "tau[wrist]": -0.5}, value, sigma).

    Attributes:
        name: A name of its own.
        terms: What each variable is multiplied by: a number for one of size one, a row, or rows, by variable name.
            Variables: tau[joint], a[joint], F[joint], A[link], W[frame]; of velocities v[joint] and V[link].
            A[link] and V[link] are in the link's own frame, F[joint] in the child's link frame.
    """

    name: str
    terms: Any
    value: Any = None
    sigma: Any = None

    def __post_init__(self) -> None:
        what = f"The terms of {self.label}"
        check_mapping(self.terms, what, "numbers or rows by variable name, such as {'tau[elbow]': 1.0}")
        rows = {str(key): np.atleast_2d(real_numbers(row, what, InputError)) for key, row in self.terms.items()}
        counts, finite = {row.shape[0] for row in rows.values()}, all(np.isfinite(row).all() for row in rows.values())
        if len(counts) != 1 or not finite or any(row.ndim > 2 for row in rows.values()):
            raise InputError(
                f"{what} are {shown(self.terms)}; give each variable a number, a row of finite numbers or rows, and "
                "all variables as many rows."
            )
        of_velocities = {split_name(key)[0] in "vV" for key in rows}
        if len(of_velocities) > 1:
            raise InputError(f"{what} mix velocities with accelerations and forces: {', '.join(rows)}.")
        object.__setattr__(self, "terms", rows)
        object.__setattr__(self, "of_velocities", of_velocities.pop())

    def check(self, mechanism: Mechanism) -> None:
        """Raise an InputError unless there is what it reads."""
        for name, rows in self.terms.items():
            variable = _variable(mechanism, name, self.label)
            if rows.shape[1] != variable.size:
                raise InputError(f"The row of {name} in {self.label} has {rows.shape[1]} numbers, not {variable.size}.")

    def size(self, mechanism: Mechanism) -> int:
        """How many numbers it reads."""
        return len(next(iter(self.terms.values())))

    def reading(self, state: State, *, classical: bool = False) -> Reading:
        """What it reads at a state."""
        offset: Array = np.zeros(self.size(state.mechanism))
        named = ((_variable(state.mechanism, name, self.label), rows) for name, rows in self.terms.items())
        blocks = tuple((variable, _in_link_frame(state.mechanism, variable, rows)) for variable, rows in named)
        for variable, rows in blocks:
            if classical and variable.kind == "A":  # terms are about the spatial acceleration
                V = state.twists[variable.owner]
                offset = offset - rows[:, 3:] @ spatial.cross(V[:3], V[3:])
        return Reading(blocks, offset)


def _in_link_frame(mechanism: Mechanism, variable: Variable, rows: Floats) -> Floats:
    """Rows over the graph's variable: motions of links are read in the links' own frames."""
    if variable.kind not in ("A", "V") or variable.owner not in mechanism.own_placements:
        return rows
    return rows @ spatial.inverse_adjoint(mechanism.own_placements[variable.owner])


def _variable(mechanism: Mechanism, name: str, label: str) -> Variable:
    """The variable of a name that a combination may use."""
    kind, owner = split_name(name)
    check_name(kind, KINDS, "variable", f"what {label} may combine", InputError)
    if not owner:
        raise InputError(f"{label} combines {name!r}; say of which {KINDS[kind]}, such as {kind}[...].")
    if kind == "W":
        check_feels(mechanism, owner, label)
    loops = [loop.name for loop in mechanism.loops]
    frames = [*mechanism.link_names, *(frame.name for frame in mechanism.frames)]
    owners: Mapping[str, Sequence[str]] = {
        "link": mechanism.link_names,
        "joint": mechanism.joint_names,
        "joint or loop": [*mechanism.joint_by_name, *loops],
        "link or frame": frames,
    }
    check_name(owner, owners[KINDS[kind]], KINDS[kind], f"mechanism {mechanism.name!r} ({label})", InputError)
    return Variable(kind, owner, mechanism.joint_by_name[owner].nv if KINDS[kind] == "joint" else 6)
