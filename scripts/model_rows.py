"""One row of figures a model file: how it loads, and how its graph and its kernels compare with other engines.

Takes a file; gives a row for `scripts/validate_models.py`, within a time limit and in a process of its own, so that a
file that takes for ever or ends the process is a row like any other.
"""

from __future__ import annotations

import argparse
import multiprocessing
import resource
import signal
import time
import traceback
from dataclasses import replace
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from factorgraph_dyn.compare.engine_agreement import compare_with_engine
from factorgraph_dyn.compare.kernel_agreement import COMPARED, KernelAgreement, compare_kernel, references
from factorgraph_dyn.compare.peers.engines import Engine, engine_of, handed_engine
from factorgraph_dyn.equations.problem import PROBLEMS
from factorgraph_dyn.errors import CompileError, FactorGraphDynError, InputError, OrderingError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.model.files.load import load

TOLERANCE = 1e-8  # of the graph: relative, for well-conditioned mass matrices
KERNEL_TOLERANCE = 1e-9  # of kernels, likewise
WORDS = 160  # characters of a reason that a row holds


def row_within(path: Path, folder: Path, options: argparse.Namespace, known: dict[str, str]) -> dict[str, Any]:
    """The row of a file; what was measured so far where the time is up or the process ends.

    Args:
        path: The file.
        folder: Where what it names is sought.
        options: Of the command line.
        known: Files by the digests of their mechanisms, to which this one is added; copies are not compared again.
    """
    context = multiprocessing.get_context("fork")
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=_send_rows, args=(theirs, path, folder, options, known))
    child.start()
    theirs.close()
    row: dict[str, Any] = {"file": str(path.relative_to(folder)), "status": "CRASHED"}
    try:
        while not row.pop("done", False):
            row = ours.recv()
    except EOFError:
        child.join()
        row["status"] = "OUT OF TIME" if child.exitcode == -signal.SIGXCPU else "CRASHED"
    child.join()
    known.setdefault(row.pop("digest", ""), row["file"])
    return row


def _send_rows(pipe: Connection, path: Path, folder: Path, options: argparse.Namespace, known: dict[str, str]) -> None:
    resource.setrlimit(resource.RLIMIT_CPU, (options.seconds, options.seconds + 1))
    row: dict[str, Any] = {"file": str(path.relative_to(folder)), "status": "ok"}
    try:
        mechanism = _load(path, folder, options, row)
        if mechanism is not None and row.setdefault("digest", _digest(mechanism)) in known:
            row |= {"status": "copy", "reason": known[row["digest"]]}
        elif mechanism is not None:
            _compare(mechanism, path, options, row, pipe)
    except FactorGraphDynError as error:
        row |= {"status": "not compared", "reason": _words(error, folder)}
    except Exception:
        row |= {"status": "FOREIGN ERROR", "reason": traceback.format_exc(limit=-2)}
    pipe.send(row | {"done": True})


def _load(path: Path, folder: Path, options: argparse.Namespace, row: dict[str, Any]) -> Mechanism | None:
    """The mechanism; None where there is nothing to compare."""
    start = time.perf_counter()
    try:
        mechanism = load(path, folder=folder, floating_base=options.floating_base and path.suffix == ".urdf")
    except FactorGraphDynError as error:
        row |= {"status": "refused", "reason": _words(error, folder)}
        return None
    row["load ms"] = round(1e3 * (time.perf_counter() - start), 1)
    row |= {"nv": mechanism.nv, "loops": len(mechanism.loops), "couplings": len(mechanism.couplings)}
    row["warnings"] = len(mechanism.warnings)
    if 0 < mechanism.nv <= options.max_nv:
        return mechanism
    row |= {"status": "loaded", "reason": f"{mechanism.nv} freedoms"}
    return None


def _digest(mechanism: Mechanism) -> str:
    """The same for mechanisms that differ in nothing but their name."""
    return replace(mechanism, name="any", frames=()).fingerprint


def _compare(
    mechanism: Mechanism, path: Path, options: argparse.Namespace, row: dict[str, Any], pipe: Connection
) -> None:
    """Fill in the graph's and the kernels' differences, sending the row after each step."""
    engine = _engine(mechanism, path, row)
    found = compare_with_engine(mechanism, engine, states=options.states)
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
    pipe.send(dict(row))
    for problem in COMPARED if options.kernels else ():
        expected = references(mechanism, engine, problem, states=options.states)
        if not expected:
            row["reason"] = f"{problem}: all states are singular"
            continue
        for ordering in options.orderings or (PROBLEMS[problem].classical,):
            column = f"kernel {problem}" + (f" {ordering}" if options.orderings else "")
            try:
                agreement = compare_kernel(mechanism, problem, ordering, expected, KERNEL_TOLERANCE)
                _enter(agreement, column, row)
            except (CompileError, OrderingError) as error:
                row["reason"] = f"{column}: {_words(error, path.parent)}"
                row["status"] = "NOT COMPILED" if row["status"] == "ok" else row["status"]
            pipe.send(dict(row))


def _enter(agreement: KernelAgreement, column: str, row: dict[str, Any]) -> None:
    """Add a kernel's figures to a row; the worse of two statuses stays."""
    row[column] = max(agreement.graph, agreement.engine)
    row[f"{column} s"] = round(agreement.seconds, 3)
    row["graph"] = max(row.get("graph", 0.0), agreement.graph_engine)
    row["condition"] = max(row.get("condition", 1.0), agreement.condition)
    for name in ("refused", "graph_refused", "beyond"):
        key = name.replace("_", " ")
        row[key] = row.get(key, 0) + getattr(agreement, name)
    row["compared"] = row.get("compared", 0) + agreement.states
    if agreement.beyond:
        row["status"] = "DIFFERS"
    elif agreement.refused > agreement.graph_refused and row["status"] == "ok":
        row["status"] = "REFUSES STATES"


def _engine(mechanism: Mechanism, path: Path, row: dict[str, Any]) -> Engine:
    """The engine that reads the file itself, else Pinocchio, which is handed the tree joint by joint."""
    if path.suffix != ".sdf":
        try:
            return engine_of(mechanism, path)
        except InputError as error:
            row["reason"] = f"handed over: {_words(error, path.parent)}"
    return handed_engine(mechanism)


def _words(error: Exception, folder: Path) -> str:
    return str(error).replace(str(folder), "")[:WORDS]
