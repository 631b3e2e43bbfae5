"""``fgdyn identify``: a log of motions and torques becomes the masses and losses that explain it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from factorgraph_dyn.commands.common import (
    FormatOption,
    RobotArgument,
    WideOption,
    find_robot,
    split_names,
    tell_warning,
)
from factorgraph_dyn.commands.models import write_robot
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.identification.identified import Identified
from factorgraph_dyn.identification.identify import identify
from factorgraph_dyn.identification.samples import Samples
from factorgraph_dyn.model import Mechanism, check_movable
from factorgraph_dyn.motion.logs import Log, differentiated, read_log
from factorgraph_dyn.show.pictures.canvas import check_drawable
from factorgraph_dyn.show.plots.identified import plot_identified
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.spatial import Floats
from factorgraph_dyn.text import parse_number

Part = Literal["all", "fit", "base", "parameters"]
OPTIMISTIC = (
    "The log has no accelerations; they are found from its velocities, whose noise makes standard deviations too "
    "small: up to 29 times where this was measured. Log a, or v and a from a low-pass filter without delay, or the "
    "mean of repetitions; see whether another --window changes results by more than their deviations."
)


def identify_log(
    robot: RobotArgument,
    log: Annotated[Path, typer.Argument(metavar="LOG", help="CSV or NPZ with q, v, a and tau, a row a sample.")],
    links: Annotated[str, typer.Option(help="Comma-separated links that are unknown; all by default.")] = "",
    effects: Annotated[
        str, typer.Option(help="Comma-separated: armature, damping, friction, or none of them.")
    ] = "armature,damping,friction",
    prior: Annotated[
        str, typer.Option(help="Relative spread of the robot's own parameters, or 'none' for nothing known.")
    ] = "1",
    physical: Annotated[bool, typer.Option(help="Only bodies that there can be.")] = True,
    window: Annotated[int, typer.Option(help="Samples of v that give an acceleration, where LOG has no a.")] = 5,
    show: Annotated[Part, typer.Option(help="Which rows to print; json and csv have one kind.")] = "all",
    output: Annotated[
        Path | None, typer.Option("-o", "--output", help="Write the identified robot to this .json or .urdf file.")
    ] = None,
    plot: Annotated[Path | None, typer.Option("--plot", help="Draw torques and parameters into this file.")] = None,
    save: Annotated[Path | None, typer.Option("--save", hidden=True)] = None,  # as --output was called before
    out: Annotated[Path | None, typer.Option("--out", hidden=True)] = None,  # as --plot was
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Identify masses, inertias, armature, damping and friction from a log of motions and torques.

    Columns of the log are q[joint], v[joint], a[joint] and tau[joint]; without a, accelerations are found from
    v and t, with a warning: standard deviations are too small then. Joints without a column of torques count as not
    measured.
    The rows tell how well each joint's torques are explained, which combinations of parameters the log determines,
    and all parameters before and after, with their standard deviations.

    Example:
        fgdyn identify puma560 log.csv -o identified.json --plot fit.svg
    """
    mechanism = check_movable(find_robot(robot), "identify")
    output, plot = output or save, plot or out
    if plot is not None:
        check_drawable(plot)
    if output is not None and output.suffix not in (".json", ".urdf"):
        raise InputError(f"The robot's file {str(output)!r} must end in .json or .urdf; --plot FILE draws a picture.")
    t, samples = _samples(mechanism, read_log(log), window)
    found = identify(
        mechanism,
        samples.q,
        samples.v,
        samples.a,
        samples.tau,
        links=split_names(links) or None,
        effects=[name for name in split_names(effects) if name != "none"],
        prior=_prior(prior),
        physical=physical,
        progress=None,
    )
    _print(found, show, format, wide)
    if output is not None:
        write_robot(found.mechanism, output, lossy=True)
    if plot is not None:
        plot_identified(found, plot, t=t, samples=samples)


def _prior(text: str) -> float | None:
    """The relative spread that a word stands for; None for nothing known."""
    if text == "none":
        return None
    try:
        return parse_number(text)
    except ValueError:
        raise InputError(
            f"--prior is {text!r}; it must be a number, such as 0.3, or 'none' where nothing is known."
        ) from None


def _samples(mechanism: Mechanism, log: Log, window: int) -> tuple[Floats, Samples]:
    """The log's times and samples, with accelerations from velocities where it has none."""
    q, v, tau = log.joints(mechanism, "q"), log.joints(mechanism, "v"), log.torques(mechanism)
    if log.holds(mechanism, "a"):
        return log.t, Samples(q, v, log.joints(mechanism, "a"), tau)
    if "t" not in log.columns:
        raise InputError(
            f"The log {str(log.path)!r} has neither accelerations, such as a[{mechanism.joint_names[0]}], nor times t "
            f"from which they would follow. Columns: {', '.join(log.columns)}."
        )
    tell_warning(OPTIMISTIC)
    a, inner = differentiated(log.t, v, window)
    return log.t[inner], Samples(q[inner], v[inner], a, tau[inner])


def _print(found: Identified, show: Part, format: Any, wide: bool) -> None:
    rest = "moved to what bodies can have" if found.adjusted else "as it was"
    tables = {
        "fit": (found.fit_rows(), f"{found!r}".strip("<>")),
        "base": (found.base_rows(), "What the log determines, from the data alone"),
        "parameters": (found.rows(), f"Parameters; what is not determined at all is {rest}"),
    }
    parts = [show] if show != "all" else list(tables) if format == "table" else ["parameters"]
    for number, part in enumerate(parts):
        rows, title = tables[part]
        if number:
            print()
        print_rows(rows, format, title, wide=wide)
