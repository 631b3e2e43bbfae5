"""``fgdyn iwim``: the accelerations that unit inputs cause."""

from __future__ import annotations

from typing import Annotated

import numpy as np
import typer

from factorgraph_dyn.commands.common import (
    FormatOption,
    RobotArgument,
    SeedOption,
    WideOption,
    find_robot,
    split_names,
)
from factorgraph_dyn.equations.inputs import CONTACT_KINDS, Contact
from factorgraph_dyn.equations.quantities import unique_names
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import check_movable
from factorgraph_dyn.motion.questions import AXES
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.solve.matrices.iwim import input_dynamics
from factorgraph_dyn.text import parse_number


def iwim(
    robot: RobotArgument,
    contacts: Annotated[
        str | None,
        typer.Option(
            help="Comma-separated places: LINK_OR_FRAME[@x:y:z][/wrench][/world], such as foot@0:0:-0.1/world; "
            "'frames' for every frame of the model."
        ),
    ] = None,
    actuated: Annotated[
        str | None, typer.Option(help="Comma-separated joints; by default those with motors, '' for none.")
    ] = None,
    method: Annotated[str, typer.Option(help="columns, iim, eufm or carpentier.")] = "columns",
    q: Annotated[str | None, typer.Option(help="Comma-separated coordinates; by default random.")] = None,
    seed: SeedOption = 0,
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Print M^-1 B: the joint accelerations that unit motor torques and contact forces cause.

    Example:
        fgdyn iwim humanoid --contacts frames --seed 1
    """
    mechanism = check_movable(find_robot(robot), "accelerate")
    v = np.zeros(mechanism.nv)
    coordinates = mechanism.random_state(seed)[0] if q is None else mechanism.check_q(_numbers(q, "--q", ","))
    if contacts == "frames":
        places = [Contact(frame.name) for frame in mechanism.frames]
    else:
        places = [_contact(text) for text in split_names(contacts)]
    joints = None if actuated is None else split_names(actuated)
    answer = input_dynamics(mechanism, coordinates, v, actuated=joints, contacts=places, method=method)
    headings, rows = unique_names(["acceleration", *answer.names]), []
    for name in mechanism.joint_names:
        entries = mechanism.v_slice(name)
        for k, row in enumerate(answer.matrix[entries]):
            label = name if entries.stop - entries.start == 1 else f"{name}.{k}"
            rows.append(dict(zip(headings, (label, *row.tolist()), strict=True)))
    print_rows(rows, format, f"M^-1 B of {mechanism.name}, {len(answer.names)} inputs, by {method}", wide=wide)


def _contact(text: str) -> Contact:
    """A contact from LINK_OR_FRAME[@x:y:z][/wrench][/world]."""
    place, *options = text.split("/")
    name, _, point = place.partition("@")
    unknown = [option for option in options if option not in (*CONTACT_KINDS, *AXES)]
    if unknown:
        raise InputError(
            f"The contact {text!r} has the option {unknown[0]!r}; it may have /force, /wrench, /local, /world."
        )
    where = _numbers(point, f"The point of contact {text!r}", ":") if point else [0.0, 0.0, 0.0]
    kind = "wrench" if "wrench" in options else "force"
    return Contact(name, where, kind, axes="world" if "world" in options else "local")


def _numbers(text: str, what: str, separator: str) -> list[float]:
    try:
        return [parse_number(part) for part in text.split(separator)]
    except ValueError:
        raise InputError(f"{what} is {text!r}; give numbers separated by {separator!r}.") from None
