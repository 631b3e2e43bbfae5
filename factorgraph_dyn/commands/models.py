"""``fgdyn info``, ``fgdyn check`` and ``fgdyn convert``: what a model file holds, and whether it is right."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import numpy as np
import typer

from factorgraph_dyn.commands.common import FormatOption, RobotArgument, SeedOption, expands_xacro, find_robot
from factorgraph_dyn.compare.engine_agreement import Agreement, compare_with_engine
from factorgraph_dyn.compare.peers.engines import engine_of, handed_engine
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.model.files.formats import format_of
from factorgraph_dyn.model.files.urdf.writer import losses, to_urdf
from factorgraph_dyn.model.parts import EFFECTS
from factorgraph_dyn.show.tables import print_rows

TOLERANCE = 1e-8  # relative; rounding of an ill-conditioned mass matrix is allowed on top


def info(robot: RobotArgument, format: FormatOption = "table") -> None:
    """Show a robot's tree, joints, masses, loops and warnings.

    Example:
        fgdyn info robot.urdf
    """
    mechanism = find_robot(robot, warns=False)
    rows = link_rows(mechanism)
    if format != "table":
        print_rows(rows, format)
        return
    total = sum(link.mass for link in mechanism.links)
    print_rows(rows, format, f"{mechanism.name}: nq {mechanism.nq}, nv {mechanism.nv}, {total:.4g} kg")
    if mechanism.loops or mechanism.couplings:
        print_rows(constraint_rows(mechanism), format, "Loops and couplings")
    if mechanism.frames:
        print(f"Frames: {', '.join(frame.name for frame in mechanism.frames)}")
    for warning in mechanism.warnings:
        print(f"warning: {warning}")
    print(f"{len(mechanism.warnings)} warning(s)")


def check(
    robot: RobotArgument,
    states: Annotated[int, typer.Option(min=1, help="How many random states to compare.")] = 20,
    seed: SeedOption = 0,
    format: FormatOption = "table",
) -> None:
    """Compare a robot's dynamics with Pinocchio or MuJoCo; exit with 1 where they differ.

    MuJoCo reads MJCF files itself and Pinocchio URDF files without loops; anything else is handed to Pinocchio
    joint by joint. Loops and couplings are left out on both sides: the tree is compared.

    Example:
        fgdyn check robot.urdf --states 50
    """
    mechanism = check_movable(find_robot(robot), "compare")
    agreement = _agreement(mechanism, Path(robot), states, seed)
    agrees = agreement.within(TOLERANCE)
    print_rows([asdict(agreement) | {"agrees": agrees}], format, f"{mechanism.name}: largest relative differences")
    if not agrees:
        raise typer.Exit(1)


def write_robot(mechanism: Mechanism, target: Path, lossy: bool) -> None:
    """Write a robot to a .json or .urdf file, and say what the latter cannot hold."""
    try:
        if target.suffix == ".json":
            mechanism.save(target)
        elif target.suffix == ".urdf":
            target.write_text(to_urdf(mechanism, lossy=lossy), encoding="utf-8")
            for loss in losses(mechanism):
                print(f"lost: {loss}")
        else:
            raise InputError(f"The format of {str(target)!r} is not known; the name must end in .json or .urdf.")
    except OSError as error:
        raise InputError(f"The file {str(target)!r} cannot be written: {error.strerror}.") from None


def convert(
    robot: RobotArgument,
    target: Annotated[Path | None, typer.Argument(metavar="OUT", help="The file to write: .json or .urdf.")] = None,
    output: Annotated[Path | None, typer.Option("-o", "--output", help="The file to write, as OUT.")] = None,
    floating_base: Annotated[bool, typer.Option("--floating-base", help="Free the base.")] = False,
    merge_fixed: Annotated[bool, typer.Option("--merge-fixed", help="Merge links on fixed joints.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Write over a file that exists.")] = False,
    lossy: Annotated[bool, typer.Option("--lossy", help="Leave out what URDF cannot hold, and say what.")] = False,
) -> None:
    """Write a robot in the package's own format (.json, holds everything) or as URDF (.urdf).

    URDF has no place for loops, armature, springs and some more; where a robot has them, nothing is written and
    the exit code is not zero, unless --lossy is given.

    Example:
        fgdyn convert robot.sdf robot.json --merge-fixed
    """
    if (target is None) == (output is None):
        raise InputError("Name one file to write, .json or .urdf, as in 'fgdyn convert ROBOT -o robot.json'.")
    target, mechanism = target or output, find_robot(robot)
    assert target is not None
    if floating_base:
        mechanism = mechanism.float_base()
    if merge_fixed:
        mechanism = mechanism.merge_fixed()
    if target.exists() and not force:
        raise InputError(f"The file {str(target)!r} exists; pass --force to write over it.")
    write_robot(mechanism, target, lossy)
    loops = 0 if target.suffix == ".urdf" else len(mechanism.loops)  # which URDF has no place for
    print(f"{target}: {len(mechanism.links)} links, nv {mechanism.nv}, {loops} loops")


def link_rows(mechanism: Mechanism) -> list[dict[str, Any]]:
    """One row a link, indented as in the tree: its joint, mass and limits."""
    rows: list[dict[str, Any]] = []
    stack = [(mechanism.base, 0)]
    while stack:
        name, depth = stack.pop()
        link = mechanism.link_by_name[name]
        row: dict[str, Any] = {"link": "  " * depth + name, "joint": None, "kind": "base"}
        if name != mechanism.base:
            joint = mechanism.topology.joint_into[name]
            axis = joint.axes[0].round(6) + 0.0 if joint.type.axis_count else None
            row |= {
                "joint": joint.name,
                "kind": joint.kind,
                "axis": None if axis is None else axis.tolist(),
                "limits": None if joint.limits is None else list(joint.limits),
                "effects": " ".join(
                    f"{key} {np.max(getattr(joint, key)):.4g}" for key in EFFECTS if np.any(getattr(joint, key))
                ),
                "motor": "yes" if joint.name in mechanism.motors else "",
            }
        rows.append(row | {"mass kg": link.mass})
        stack.extend((j.child, depth + 1) for j in reversed(mechanism.topology.joints_out[name]))
    return rows


def constraint_rows(mechanism: Mechanism) -> list[dict[str, Any]]:
    """One row a loop or coupling."""
    loops = [
        {"name": x.name, "what": f"{x.kind} loop", "between": f"{x.predecessor}, {x.successor}"}
        for x in mechanism.loops
    ]
    return loops + [
        {
            "name": x.name,
            "what": "coupling",
            "between": f"{x.joint} = {x.ratio:.6g} {x.source} + {x.offset:.6g}",
        }
        for x in mechanism.couplings
    ]


def _agreement(mechanism: Mechanism, path: Path, states: int, seed: int) -> Agreement:
    """The agreement with the engine that reads the file, or that is handed the tree."""
    kind = format_of(path) if path.is_file() and not expands_xacro.get() else "handed over"
    reads = kind == "MJCF" or (kind == "URDF" and not mechanism.loops)
    engine = engine_of(mechanism, path) if reads else handed_engine(mechanism)
    return compare_with_engine(mechanism, engine, states=states, seed=seed)
