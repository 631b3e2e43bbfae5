"""Load every model file that installed packages ship, and compare its dynamics with other engines.

    python scripts/validate_models.py                      # example-robot-data, mujoco, gymnasium, ...
    python scripts/validate_models.py FOLDER ... --states 20
    python scripts/validate_models.py --mutants 10000      # damaged copies of real files

Prints one row a file: how it loaded, and the largest relative difference over the states from
Pinocchio (URDF) or MuJoCo (MJCF) in the mass matrix, its inverse, inverse and forward dynamics. A file is
refused for the reason printed. Exits with 1 where a difference exceeds the tolerance, scaled with the
condition number of M, or where an error is not the package's own.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import importlib.util
import sys
import time
import traceback
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from factorgraph_dyn.errors import FactorGraphDynError
from factorgraph_dyn.lab.engines import compare_with_engine, engine_of
from factorgraph_dyn.model.load import load
from factorgraph_dyn.show.tables import print_rows

PACKAGES = ("mujoco", "gymnasium", "dm_control", "gymnasium_robotics", "robosuite", "pybullet_data", "brax")
ROBOT_DATA = "cmeel.prefix/share/example-robot-data"  # where that package keeps its files
TOLERANCE = 1e-8  # relative, for well-conditioned mass matrices


def main() -> int:
    """Run the validation; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, help="where to look; default the installed packages")
    parser.add_argument("--states", type=int, default=20, help="random states for every model")
    parser.add_argument("--mutants", type=int, default=0, help="load this many damaged copies instead")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--floating-base", action="store_true", help="free the bases of URDF files")
    parser.add_argument("--max-nv", type=int, default=150, help="leave out larger models")
    options = parser.parse_args()
    folders = options.folders or package_folders()
    files = [(folder, path) for folder in folders for path in model_files(folder)]
    if options.mutants:
        return run_mutants([path for _, path in files], options.mutants)
    rows = [validate(path, folder, options) for folder, path in files]
    print_rows(rows, options.format, "Model files against Pinocchio and MuJoCo")
    return summarise(rows)


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


def validate(path: Path, folder: Path, options: argparse.Namespace) -> dict[str, Any]:
    """One row of the table."""
    row: dict[str, Any] = {"file": str(path.relative_to(folder)), "status": "ok"}
    start = time.perf_counter()
    try:
        floats = options.floating_base and path.suffix == ".urdf"
        mechanism = load(path, folder=folder, floating_base=floats)
        row["load ms"] = round(1e3 * (time.perf_counter() - start), 1)
        row |= {"nv": mechanism.nv, "loops": len(mechanism.loops), "couplings": len(mechanism.couplings)}
        row["warnings"] = len(mechanism.warnings)
    except FactorGraphDynError as error:
        return row | {"status": "refused", "reason": str(error).replace(str(folder), "")[:160]}
    except Exception:
        return row | {"status": "FOREIGN ERROR", "reason": traceback.format_exc(limit=-1)}
    if path.suffix == ".sdf" or mechanism.nv == 0 or mechanism.nv > options.max_nv:
        return row | {
            "status": "loaded",
            "reason": "" if path.suffix == ".sdf" else f"{mechanism.nv} freedoms",
        }
    try:
        found = compare_with_engine(mechanism, engine_of(mechanism, path), states=options.states)
    except FactorGraphDynError as error:
        return row | {"status": "not compared", "reason": str(error).replace(str(folder), "")[:160]}
    row |= {
        "engine": found.engine,
        "M": found.mass_matrix,
        "M^-1": found.inverse_mass_matrix,
        "inverse": found.inverse,
        "forward": found.forward,
        "cond(M)": found.condition,
    }
    if not found.within(TOLERANCE):
        row["status"] = "DIFFERS"
    return row


def summarise(rows: list[dict[str, Any]]) -> int:
    """Print how many files went which way, and the largest differences; the exit code."""
    counts: dict[str, int] = {}
    for row in rows:
        counts[row["status"]] = counts.get(row["status"], 0) + 1
    print(", ".join(f"{count} {status}" for status, count in sorted(counts.items())), f"of {len(rows)} files")
    for key in ("M", "M^-1", "inverse", "forward"):
        values = [(row[key], row["file"]) for row in rows if row.get(key) is not None and row[key] == row[key]]
        if values:
            worst, file = max(values)
            over = sum(value > TOLERANCE for value, _ in values)
            print(
                f"{key}: largest relative difference {worst:.2e} ({file}); {over} of {len(values)} above {TOLERANCE:g}"
            )
    return int(any(status in counts for status in ("FOREIGN ERROR", "DIFFERS")))


def run_mutants(files: list[Path], count: int) -> int:
    """Load damaged copies of the files; the exit code."""
    from tests.readers.mutants import load_mutants

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
