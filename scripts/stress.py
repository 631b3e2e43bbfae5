#!/usr/bin/env python3
"""Random mechanisms against a dense solve in extended precision, for as long as one lets it.

    python scripts/stress.py --minutes 10 --seed 1 [--jobs 2] [--only graph|kernels] [--problem forward]
    python scripts/stress.py --seed 1 --case 17          repeats one mechanism and says all about it

Trees and closed mechanisms of all joint kinds, couplings, masks, motors, losses, massless links, rounded angles, nearly
parallel axes, twelve decades of mass, length and time; every problem, ordering and output, in the graph and in kernels;
now and then derivatives, free parameters, kinematics, rollouts, estimates, other branches of loops, and assembly beside
LLVM's code.
Failures are shrunk to small scripts. Ends with 1 if an answer was wrong, a regular problem refused, or an error
was not one of the package's own. Ctrl-C prints the summary of what was run.
"""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # small matrices; set before NumPy is imported
os.environ.setdefault("FACTORGRAPH_DYN_CACHE", "off")  # every kernel is another one
sys.path.insert(0, str(Path(__file__).parent.parent))

from tests.stress.questions import FURTHER, PROBLEMS
from tests.stress.run import Plan, Summary, run, write_failure
from tests.stress.trial import run_trial
from tests.stress.verdicts import FAILURES


def main() -> int:
    """Run, print the summary, and say whether all was well."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--minutes", type=float, default=5.0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--only", choices=("graph", "kernels"))
    parser.add_argument("--problem", choices=(*PROBLEMS, *FURTHER))
    parser.add_argument("--cases", type=int, help="mechanisms to run, if fewer than the time allows")
    parser.add_argument("--case", type=int, help="repeat this one only")
    parser.add_argument("--out", type=Path, default=Path("failures"), help="folder for scripts of failures")
    parser.add_argument("--no-shrink", action="store_true", help="only count failures")
    options = parser.parse_args()
    plan = Plan(options.seed, options.only, options.problem, None if options.no_shrink else options.out)
    if options.case is not None:
        return repeat(plan, options.case)
    summary = run(plan, 60 * options.minutes, options.jobs, options.cases)
    print(summary.table())
    return int(summary.failed > 0)


def repeat(plan: Plan, index: int) -> int:
    """Run one trial here, with every verdict printed and every kind of failure shrunk."""
    summary = Summary(trials=1)
    seen = set()
    for verdict in run_trial(plan.trial(index)):
        summary.add(index, verdict)
        print(
            f"{verdict.kind}: {verdict.question}, state {verdict.state}, condition {verdict.condition:.1e}, "
            f"error {verdict.error:.1e} of {verdict.result or '-'} {verdict.words}"
        )
        if verdict.kind in FAILURES and verdict.signature not in seen and plan.out is not None:
            seen.add(verdict.signature)
            print(f"  written: {write_failure(plan, index, verdict)}")
    print(summary.table())
    return int(summary.failed > 0)


if __name__ == "__main__":
    sys.exit(main())
