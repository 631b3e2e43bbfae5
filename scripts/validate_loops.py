"""Closed loops against dense solves and Pinocchio: the largest relative error over many states.

    python scripts/validate_loops.py [--states 50] [--mechanisms 10]
    python scripts/validate_loops.py --swing      free five-bar swing: energy and closure over 10 s
    python scripts/validate_loops.py --chain      time against the number of loops

Takes the built-in linkages and as many random planar and random spatial mechanisms as asked for.
Needs the development extras (Pinocchio). Prints one row a mechanism and the worst of each column.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

import factorgraph_dyn as fgd
from factorgraph_dyn.show.tables import print_rows
from tests.mechanisms import random_planar, random_spatial
from tests.oracles.closed import DenseOracle, null_space, pinocchio_accelerations, relative


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=50)
    parser.add_argument("--mechanisms", type=int, default=10, help="random ones, planar and spatial each")
    parser.add_argument("--format", choices=("table", "json", "csv"), default="table")
    parser.add_argument("--swing", action="store_true", help="only the free swing")
    parser.add_argument("--chain", action="store_true", help="only the chains of four-bars")
    options = parser.parse_args()
    if options.swing or options.chain:
        rows = [swing()] if options.swing else [chain(n) for n in (25, 50, 100, 200)]
        print_rows(rows, options.format, "Free five-bar swing" if options.swing else "Chains of four-bars")
        return
    warnings.simplefilter("ignore", fgd.NearSingularWarning)
    build = fgd.robots
    mechanisms = [
        build.four_bar(), build.five_bar(), build.four_bar_chain(3), build.stewart(), build.delta(),
    ]  # fmt: skip
    mechanisms += [random_planar(seed) for seed in range(options.mechanisms)]
    mechanisms += [random_spatial(seed) for seed in range(options.mechanisms)]
    rows = [measure(mechanism, options.states) for mechanism in mechanisms]
    worst = {"mechanism": "worst"}
    for column in ("a", "a_pinocchio", "tau", "wrenches", "closure", "residual"):
        worst[column] = max(row[column] for row in rows if row.get(column) is not None)
    print_rows([*rows, worst], options.format, f"Largest relative errors over {options.states} closed states")


def swing() -> dict[str, object]:
    """A five-bar let go sideways of where it hangs at rest: 10 s, RK4 at 1 ms, compiled dynamics."""
    mechanism = fgd.robots.five_bar()
    start = mechanism.close([2.2, 0.9, -2.2, -0.9])
    kernel = fgd.compile(mechanism, "forward")
    begin = time.perf_counter()
    path = fgd.simulate(mechanism, start, np.zeros(4), None, 10.0, 1e-3, engine=kernel, record_every=10)
    return {
        "seconds": path.t[-1],
        "swing J": float(np.ptp(path.kinetic)),
        "energy drift": path.energy_drift,
        "closure error": float(path.closure_error.max()),
        "wall s": time.perf_counter() - begin,
    }


def chain(n: int) -> dict[str, object]:
    """Forward and inverse dynamics of n four-bars in a row, CPU time, best of three."""
    mechanism = fgd.robots.four_bar_chain(n)
    q, rest = mechanism.neutral(), np.zeros(mechanism.nv)
    row: dict[str, object] = {"loops": n, "nv": mechanism.nv}
    for name, problem in (("forward", fgd.forward_dynamics), ("inverse", fgd.inverse_dynamics)):
        times = []
        for _ in range(3):
            begin = time.process_time()
            solution = problem(mechanism, q, rest, rest, ordering="colamd")
            times.append(time.process_time() - begin)
        row[f"{name} ms"] = 1e3 * min(times)
        row[f"{name} ms a loop"] = 1e3 * min(times) / n
        row[f"{name} residual"] = solution.residual
    return row


def measure(mechanism: fgd.Mechanism, states: int) -> dict[str, object]:
    """The largest errors over random closed states."""
    worst = dict.fromkeys(("a", "tau", "wrenches", "closure", "residual"), 0.0)
    comparable = all(loop.kind in ("fixed", "spherical") for loop in mechanism.loops)
    theirs: float | None = 0.0 if comparable else None
    for seed in range(states):
        rng = np.random.default_rng(seed)
        q, v = mechanism.random_state(rng)
        tau = rng.normal(size=mechanism.nv)
        dense = DenseOracle(mechanism, q, v)
        forward = fgd.forward_dynamics(mechanism, q, v, tau)
        closed = dense.J @ forward.a + dense.Jdot_v
        worst["a"] = max(worst["a"], relative(forward.a, dense.accelerations(tau)))
        worst["closure"] = max(worst["closure"], relative(closed, np.zeros(len(closed))) / _size(forward.a))
        worst["residual"] = max(worst["residual"], forward.residual)
        worst["wrenches"] = max(worst["wrenches"], _wrench_error(forward))
        if theirs is not None:
            theirs = max(theirs, relative(forward.a, pinocchio_accelerations(mechanism, q, v, tau)))
        motors = _motors(dense.J)
        sought = np.zeros(mechanism.nv)
        sought[motors] = np.nan
        inverse = fgd.hybrid_dynamics(mechanism, q, v, a=forward.a, tau=sought, ordering="rnea")
        expected = dense.torques(forward.a, motors)
        worst["tau"] = max(worst["tau"], relative(inverse.tau, expected))
        worst["residual"] = max(worst["residual"], inverse.residual)
    loops = "+".join(loop.kind for loop in mechanism.loops[:3]) + ("+..." if len(mechanism.loops) > 3 else "")
    row: dict[str, object] = {"mechanism": mechanism.name, "nv": mechanism.nv, "loops": loops, **worst}
    row["a_pinocchio"] = theirs
    return row


def _size(a: np.ndarray) -> float:
    return max(1.0, float(np.abs(a).max()))


def _wrench_error(solution: fgd.Solution) -> float:
    """Unique entries of all wrenches against the dense least-squares answer of the whole graph."""
    A, b = solution.graph.dense()
    scale = 1.0 / np.maximum(np.linalg.norm(A, axis=0), 1e-300)
    x = scale * np.linalg.lstsq(A * scale, b, rcond=1e-12)[0]
    error = size = 0.0
    for variable in solution.graph.variables:
        if variable.kind == "F":
            unique = np.ones(6, dtype=bool)
            unique[list(solution.not_unique.get(str(variable), ()))] = False
            dense = x[solution.graph.column_slices[variable]]
            size = max(size, float(np.abs(dense).max()))
            error = max(error, float(np.abs(dense - solution.values[variable])[unique].max(initial=0.0)))
    return error / max(size, 1.0)


def _motors(J: np.ndarray) -> list[int]:
    """Entries whose torques can produce every motion, well conditioned: pivots of the free motions."""
    Z = null_space(J)
    chosen: list[int] = []
    rest = Z.copy()
    for _ in range(Z.shape[1]):
        lengths = np.linalg.norm(rest, axis=1)
        best = int(np.argmax(lengths))
        chosen.append(best)
        direction = rest[best] / lengths[best]
        rest = rest - np.outer(rest @ direction, direction)
    return sorted(chosen)


if __name__ == "__main__":
    main()
