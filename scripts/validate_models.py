"""Load every model file that installed packages ship, and compare its dynamics with other engines.

    python scripts/validate_models.py                      # example-robot-data, mujoco, gymnasium, ...
    python scripts/validate_models.py FOLDER ... --states 20
    python scripts/validate_models.py --mutants 10000      # damaged copies of real files

Prints one row a file: how it loaded, and the largest relative difference over the states from
Pinocchio (URDF) or MuJoCo (MJCF) in the mass matrix, its inverse, inverse and forward dynamics of the tree; what
neither reads is handed to Pinocchio joint by joint. Then those of the kernels from the graph and from a dense solve
on the engine's mass matrix, with loops and couplings, and what compiling took. A file is refused for
the reason printed. Exits with 1 where a difference exceeds the tolerance, scaled with the condition number, where a
kernel cannot be compiled or refuses a regular state, or where an error is not the package's own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from factorgraph_dyn.compiler.kernel.cache import ENVIRONMENT_VARIABLE
from factorgraph_dyn.show.tables import print_rows
from scripts.model_rows import KERNEL_TOLERANCE, TOLERANCE, row_within

PACKAGES = ("mujoco", "gymnasium", "dm_control", "gymnasium_robotics", "robosuite", "pybullet_data", "brax")
ROBOT_DATA = "cmeel.prefix/share/example-robot-data"  # where that package keeps its files
BAD = ("CRASHED", "DIFFERS", "FOREIGN ERROR", "NOT COMPILED", "OUT OF TIME", "REFUSES STATES")
SLOW = 10.0  # s: kernels that take longer to compile are listed


def main() -> int:
    """Run the validation; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="where to look; default the installed packages")
    parser.add_argument("--states", type=int, default=20, help="random states for every model")
    parser.add_argument("--mutants", type=int, default=0, help="load this many damaged copies instead")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--floating-base", action="store_true", help="free the bases of URDF files")
    parser.add_argument("--max-nv", type=int, default=150, help="leave out larger models")
    parser.add_argument("--kernels", action=argparse.BooleanOptionalAction, default=True, help="compile as well")
    parser.add_argument("--orderings", nargs="*", default=(), help="of the kernels; default aba and rnea")
    parser.add_argument("--seconds", type=int, default=120, help="limit of a file, processor time")
    parser.add_argument("--log", type=Path, help="write rows here as they come, one JSON object a line")
    options = parser.parse_args()
    folders = options.folders or package_folders()
    files = [(folder, path) for folder in folders for path in model_files(folder)]
    if options.mutants:
        return run_mutants([path for _, path in files], options.mutants)
    rows = validate(files, options)
    title = "Model files against Pinocchio and MuJoCo"
    if options.format == "table":
        print_rows([{key: row[key] for key in row if key != "reason"} for row in rows], "table", title)
        return summarise(rows)
    print_rows(rows, options.format)
    return exit_code(rows)


def package_folders() -> list[Path]:
    """The folders of installed packages that ship models."""
    found = []
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        if spec is not None and spec.origin:
            found.append(Path(spec.origin).parent)
    try:
        place = importlib.metadata.distribution("example-robot-data").locate_file(ROBOT_DATA)
    except importlib.metadata.PackageNotFoundError:
        return found
    if Path(str(place)).is_dir():
        found.append(Path(str(place)))
    return found


def model_files(folder: Path) -> list[Path]:
    """The URDF, MJCF and SDF files of a folder; parts that other files include are left out."""
    roots = {".urdf": (b"<robot",), ".sdf": (b"<sdf",), ".xml": (b"<mujoco>", b"<mujoco ")}
    return [
        path
        for path in sorted(folder.rglob("*"))
        if path.suffix in roots and path.is_file() and any(root in path.read_bytes() for root in roots[path.suffix])
    ]


def validate(files: list[tuple[Path, Path]], options: argparse.Namespace) -> list[dict[str, Any]]:
    """One row a file. Kernels are compiled afresh, so that their times are those of compiling."""
    rows: list[dict[str, Any]] = []
    known: dict[str, str] = {}
    with tempfile.TemporaryDirectory() as folder_of_kernels:
        os.environ[ENVIRONMENT_VARIABLE] = folder_of_kernels
        for folder, path in files:
            rows.append(row_within(path, folder, options, known))
            if options.log:
                with options.log.open("a") as log:
                    log.write(json.dumps(rows[-1] | {"folder": str(folder)}) + "\n")
    return rows


def summarise(rows: list[dict[str, Any]]) -> int:
    """Print reasons, how many files went which way, the largest differences and the slowest kernels; the exit code."""
    for row in rows:
        if "reason" in row:
            print(f"{row['file']}: {row['status']}, {row['reason']}")
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())), f"of {len(rows)} files")
    kernels = sorted({key for row in rows for key in row if key.startswith("kernel ") and not key.endswith(" s")})
    for key in ("M", "M^-1", "inverse", "forward", "graph", *kernels):
        values = [(row[key], row["file"]) for row in rows if row.get(key) is not None and row[key] == row[key]]
        if values:
            worst, file = max(values)
            limit = KERNEL_TOLERANCE if key in kernels else TOLERANCE
            over = sum(value > limit for value, _ in values)
            print(f"{key}: largest relative difference {worst:.2e} ({file}); {over} of {len(values)} above {limit:g}")
    slow = [(row.get(f"{key} s", 0.0), f"{row['file']}, {key}") for row in rows for key in kernels]
    for seconds, what in sorted(slow, reverse=True):
        if seconds > SLOW:
            print(f"compiled in {seconds:.1f} s: {what}")
    return exit_code(rows)


def exit_code(rows: list[dict[str, Any]]) -> int:
    """1 where anything is wrong."""
    return int(any(row["status"] in BAD for row in rows))


def run_mutants(files: list[Path], count: int) -> int:
    """Load damaged copies of the files; the exit code."""
    from tests.model.files.mutants import load_mutants

    small = [path for path in files if path.stat().st_size < 200_000]
    report = load_mutants(small, count, seed=0)
    print(
        f"{report.loaded} loaded, {report.refused} refused, {len(report.foreign)} foreign errors; slowest "
        f"{report.slowest:.3f} s ({report.slowest_file}); {count} damaged copies of {len(small)} files"
    )
    for line in report.foreign[:20]:
        print(line)
    return int(bool(report.foreign) or report.slowest > 1.0)


if __name__ == "__main__":
    sys.exit(main())
