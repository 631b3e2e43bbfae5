"""``fgdyn draw``, ``fgdyn report`` and ``fgdyn view``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from factorgraph_dyn.commands.common import KnownOption, ProblemOption, RobotArgument, find_robot, split_names
from factorgraph_dyn.ordering import ORDERING_NAMES

Picture = Literal["graph", "dag", "matrix", "tree", "steps", "bars"]


def draw(
    robot: RobotArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="File to write: .svg, .png or .pdf; steps also .gif.")],
    what: Annotated[Picture, typer.Option("--what", help="Which picture.")] = "graph",
    problem: ProblemOption = "forward",
    ordering: Annotated[
        str | None,
        typer.Option(
            help=f"One of {', '.join(ORDERING_NAMES)}, search, a results file (.json), or all variables "
            "separated by semicolons, such as 'F[elbow];A[forearm];a[elbow]'. "
            "By default aba; rnea for inverse dynamics."
        ),
    ] = None,
    known: KnownOption = "",
) -> None:
    """Draw the factor graph, the Bayes net of an ordering, matrices, cliques, steps or cost bars.

    Example:
        fgdyn draw rrr --what dag --ordering crba -o crba.svg
    """
    from factorgraph_dyn.show.draw import draw as draw_picture

    own = ordering is not None and "[" in ordering
    draw_picture(
        find_robot(robot),
        what,
        output,
        problem=problem,
        ordering=[name.strip() for name in (ordering or "").split(";")] if own else ordering,
        known_accelerations=split_names(known) or None,
    )
    print(f"Wrote {output}.")


def report(
    robot: RobotArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")],
    problem: ProblemOption = "forward",
    orderings: Annotated[
        str | None, typer.Option(help="Comma-separated names; by default every ordering that applies.")
    ] = None,
    known: KnownOption = "",
    kernels: Annotated[bool, typer.Option(help="Compile and time a kernel for each ordering, too.")] = True,
) -> None:
    """Write one interactive page: step through the elimination of every ordering and compare them.

    Example:
        fgdyn report puma560 -o puma560.html
    """
    from factorgraph_dyn.show.report import write_report

    given = split_names(known) or None
    names = None if orderings is None else [name.strip() for name in orderings.split(",")]
    write_report(
        find_robot(robot), output, problem=problem, orderings=names, known_accelerations=given, kernels=kernels
    )
    print(f"Wrote {output}; open it in a browser.")


def view(
    robot: RobotArgument,
    output: Annotated[Path, typer.Option("-o", "--output", help="HTML file to write.")] = Path("view.html"),
    seed: Annotated[int | None, typer.Option(help="Show the random configuration of this seed; else neutral.")] = None,
    meshes: Annotated[
        list[Path] | None,
        typer.Option(help="A folder in which meshes may lie, too."),
    ] = None,
) -> None:
    """Write one page that shows the mechanism: bodies, axes, inertias and loops, with sliders for its joints.

    Files' own shapes and meshes (STL, OBJ, Collada) are drawn where they can be read.

    Example:
        fgdyn view five_bar -o five_bar.html
    """
    from factorgraph_dyn.show.view.view import view as view_mechanism

    mechanism = find_robot(robot)
    view_mechanism(mechanism, None if seed is None else mechanism.random_state(seed)[0], output, meshes=meshes or ())
    print(f"Wrote {output}; open it in a browser.")
