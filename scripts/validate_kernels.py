#!/usr/bin/env python3
"""Compiled kernels against the GTSAM path: every built-in mechanism, every ordering that compiles, many states.

    python scripts/validate_kernels.py [--states 1000] [--robots puma560,five_bar] [--problems forward,inverse]

Prints for each kernel the largest relative difference from the graph's answer, and how many states the kernel refused
(nan, because a pivot was too small). Exits with 1 if any difference exceeds the tolerance.
"""

from __future__ import annotations

import argparse
import sys
import warnings

import numpy as np

import factorgraph_dyn as fgd
from factorgraph_dyn.show.tables import print_rows
from factorgraph_dyn.spatial import Floats

TOLERANCE = 1e-10  # of the largest entry of a state's answer


def main() -> int:
    """Compare, print, and say whether all agree."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--robots", default=",".join(fgd.robots.BUILT_IN))
    parser.add_argument("--problems", default="forward,inverse")
    options = parser.parse_args()
    warnings.simplefilter("error", fgd.NearSingularWarning)
    rows = []
    for name in options.robots.split(","):
        mechanism = fgd.robots.BUILT_IN[name]()
        for problem in options.problems.split(","):
            rows += compare(mechanism, problem, options.states)
    print_rows(rows, "table", f"Kernels against the graph, {options.states} states each")
    worst = max((row["difference"] for row in rows if "difference" in row), default=0.0)
    print(f"Largest difference: {worst:.1e} (allowed {TOLERANCE:g}).")
    return int(not worst <= TOLERANCE)


def compare(mechanism: fgd.Mechanism, problem: str, states: int) -> list[dict[str, object]]:
    """One row for every ordering."""
    q, v, given, expected, skipped = reference(mechanism, problem, states)
    rows = []
    for ordering in fgd.ORDERING_NAMES:
        row: dict[str, object] = {"robot": mechanism.name, "problem": problem, "ordering": ordering}
        try:
            kernel = fgd.compile(mechanism, problem, ordering=ordering)
        except fgd.FactorGraphDynError as error:
            rows.append(row | {"note": str(error).split(". ")[0]})
            continue
        answer = kernel(q, v, given)
        refused = np.isnan(answer).any(axis=1)
        difference = np.abs(answer - expected)[~refused].max(axis=1) / np.abs(expected)[~refused].max(axis=1)
        row |= {"operations": kernel.operations.total, "difference": float(difference.max(initial=0.0))}
        rows.append(row | {"refused": int(refused.sum()), "near singular": skipped})
    return rows


def reference(mechanism: fgd.Mechanism, problem: str, states: int) -> tuple[Floats, Floats, Floats, Floats, int]:
    """States, inputs, the graph's answers, and how many states the graph called close to singular."""
    rng = np.random.default_rng(0)
    motors = mechanism.torque_entries()
    collected = []
    skipped = 0
    while len(collected) < states and skipped < 10 * states:
        q, v = mechanism.random_state(rng)
        tau = np.where(motors, rng.normal(size=mechanism.nv), 0.0)  # passive joints have no torque
        try:
            a = fgd.forward_dynamics(mechanism, q, v, tau, ordering="colamd").a
        except fgd.NearSingularWarning:
            skipped += 1
            continue
        # inverse dynamics has to give back the torques that the graph turned into accelerations
        collected.append((q, v, tau, a) if problem == "forward" else (q, v, a, tau))
    q, v, given, answers = (np.array(values) for values in zip(*collected, strict=True))
    return q, v, given, answers, skipped


if __name__ == "__main__":
    sys.exit(main())
