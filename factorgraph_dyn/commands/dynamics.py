"""``fgdyn robots``, ``fgdyn compare`` and ``fgdyn solve``."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import typer

from factorgraph_dyn import storage
from factorgraph_dyn.commands.common import (
    FormatOption,
    KnownOption,
    ProblemOption,
    RobotArgument,
    SeedOption,
    WideOption,
    find_robot,
    split_names,
)
from factorgraph_dyn.compare.orderings import compare_orderings
from factorgraph_dyn.equations.problem import PROBLEMS, SOLVED_NAMES
from factorgraph_dyn.errors import InputError
from factorgraph_dyn.model import check_movable, robots
from factorgraph_dyn.ordering import ORDERING_NAMES
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.solve.dynamics import forward_dynamics, hybrid_dynamics, inverse_dynamics
from factorgraph_dyn.solve.solution import Solution

DEFAULT_ORDERINGS = ", ".join(f"{PROBLEMS[name].solved_in} ({name})" for name in SOLVED_NAMES)
SPARE = ("pivot", "clique", "nonzeros", "error", "fill", "depth", "time_us", "kernel_error")
SOLVERS: dict[str, Callable[..., Solution]] = {
    "forward": forward_dynamics,
    "inverse": inverse_dynamics,
    "hybrid": hybrid_dynamics,
}


def list_robots(format: FormatOption = "table") -> None:
    """List the built-in robots.

    Example:
        fgdyn robots
    """
    rows = []
    for name, build in robots.BUILT_IN.items():
        mechanism = build()
        rows.append(
            {
                "robot": name,
                "links": len(mechanism.links),
                "joints": len(mechanism.joint_names),
                "nq": mechanism.nq,
                "nv": mechanism.nv,
                "loops": len(mechanism.loops),
                "about": (build.__doc__ or "").strip().splitlines()[0],
            }
        )
    print_rows(rows, format, "Built-in robots")


def compare(
    robot: RobotArgument,
    problem: ProblemOption = "forward",
    orderings: Annotated[
        str | None,
        typer.Option(
            help=f"Comma-separated: {', '.join(ORDERING_NAMES)}, auto (the kernels' own), search (the best one saved), "
            "or results files (.json)."
        ),
    ] = None,
    known: KnownOption = "",
    seed: SeedOption = 0,
    format: FormatOption = "table",
    wide: WideOption = False,
) -> None:
    """Compare elimination orderings: structure, time and error of each.

    nonzeros and fill are entries of the triangular factor, clique is its widest block, depth counts the steps that
    cannot run side by side; time_us is GTSAM's elimination, error is relative to a dense solve. Of the kernel:
    operations, its smallest pivot beside the usual one, its largest error, and nanoseconds a state.

    Example:
        fgdyn compare puma560 --problem inverse
    """
    mechanism = find_robot(robot)
    names = None if orderings is None else split_names(orderings)
    given = split_names(known) or None
    rows = compare_orderings(mechanism, problem, names, known_accelerations=given, seed=seed)
    title = f"{problem} dynamics of {mechanism.name}, {mechanism.nv} freedoms"
    print_rows(rows, format, title, wide=wide, spare=SPARE)


def solve(
    robot: RobotArgument,
    state: Annotated[Path, typer.Option("--state", help="JSON file with q, v and what is given.")],
    problem: ProblemOption = "forward",
    ordering: Annotated[str | None, typer.Option(help=f"Name of an ordering; by default {DEFAULT_ORDERINGS}.")] = None,
    format: FormatOption = "table",
) -> None:
    """Solve a dynamics problem for a state read from a JSON file.

    The file holds q, v and, by problem: tau (forward), a (inverse), or a and tau with null where
    unknown, or as objects by joint name (hybrid); and optionally external_wrenches by the name of a link or
    frame, and axes, local or world.

    For rrr: {"q": [0, 0, 0], "v": [0, 0, 0], "tau": [1, 2, 3]}

    Example:
        fgdyn solve rrr --state state.json --problem inverse
    """
    mechanism = check_movable(find_robot(robot), "solve")
    options = {} if ordering is None else {"ordering": ordering}
    solution = SOLVERS[problem](mechanism, **_read_state(state, problem), **options)
    rows = [
        {
            "joint": name,
            "a": _entries(solution.a[mechanism.v_slice(name)]),
            "tau": _entries(solution.tau[mechanism.v_slice(name)]),
            "wrench": solution.wrenches[name].tolist(),
        }
        for name in mechanism.joint_names
    ]
    fit = f"{solution.ordering.name} ordering, residual {solution.residual:.1e}"
    print_rows(rows, format, f"{problem} dynamics of {mechanism.name}: {fit}")


def _entries(values: Any) -> Any:
    """A number for one freedom, a list for several."""
    return values.item() if values.size == 1 else values.tolist()


def _read_state(path: Path, problem: str) -> dict[str, Any]:
    try:
        content = json.loads(storage.read(path).decode("utf-8-sig"))
    except OSError as error:
        raise InputError(f"The state file {str(path)!r} cannot be read: {error.strerror}.") from None
    except (json.JSONDecodeError, UnicodeDecodeError) as error:
        raise InputError(f"The state file {str(path)!r} is not JSON: {error}.") from None
    except (RecursionError, ValueError) as error:  # of JSON's words, but no state's
        reason = (
            "it is nested too deeply" if isinstance(error, RecursionError) else "a whole number has too many digits"
        )
        raise InputError(f"The state file {str(path)!r} cannot be read: {reason}.") from None
    needed = PROBLEMS[problem].arguments
    if not isinstance(content, dict):
        raise InputError(f"The state file {str(path)!r} must hold an object with {', '.join(needed)}.")
    allowed = (*needed, "external_wrenches", "axes")
    missing = [key for key in needed if key not in content]
    unknown = [key for key in content if key not in allowed]
    if missing or unknown:
        raise InputError(
            f"The state file {str(path)!r} holds {', '.join(content) or 'nothing'}; the {problem} problem "
            f"needs {', '.join(needed)} and may have external_wrenches and axes."
        )
    return {key: _null_to_nan(value) for key, value in content.items()}


def _null_to_nan(value: Any) -> Any:
    if isinstance(value, list):
        return [float("nan") if entry is None else entry for entry in value]
    return value
