"""Cases as a table, their verdicts brought up to date, and trials of the stress test as new cases.

    python -m tests.cases                              every question with its outcome
    python -m tests.cases slender --route graph        those of files whose name has the word in it
    python -m tests.cases --update                     verdicts follow the answers, where these are better
    python -m tests.cases --freeze NAME --seed 20261201 --trial 4337 --story "A hinge within ..."

Ctrl-C ends it after the table so far.
"""

from __future__ import annotations

import argparse
import os
import sys
from time import monotonic

from tests.cases.case import FAILURES, FOLDER, VERDICTS, Frozen, all_cases, outcomes
from tests.cases.writing import of_trial, text_of
from tests.stress.trial import make_trial


def main() -> int:
    """Run the command; the exit code, 1 where an answer is not acceptable."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.cases", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("word", nargs="?", default="", help="part of the names of the files; default all")
    parser.add_argument("--route", choices=("graph", "kernel"), help="the questions of one route only")
    parser.add_argument("--update", action="store_true", help="write verdicts that are better than before")
    parser.add_argument("--freeze", metavar="NAME", help="write a trial of the stress test as a case of this name")
    parser.add_argument("--seed", type=int, help="of the trial")
    parser.add_argument("--trial", type=int, help="its index")
    parser.add_argument("--problem", help="as scripts/stress.py was given it")
    parser.add_argument("--story", help="the trouble with the mechanism, in a sentence")
    options = parser.parse_args()
    os.environ["FACTORGRAPH_DYN_CACHE"] = "off"
    if options.freeze:
        if options.seed is None or options.trial is None or not options.story:
            parser.error("--freeze needs --seed, --trial and --story")
        freeze(options.freeze, options.seed, options.trial, options.problem, options.story)
        options.word = options.freeze
    bad = 0
    try:
        for case in all_cases():
            if options.word in case.name:
                bad += run(case, options.route, options.update)
    except KeyboardInterrupt:
        print("Interrupted.")
    print(f"{bad} questions without an acceptable answer")
    return int(bad > 0)


def freeze(name: str, seed: int, trial: int, problem: str | None, story: str) -> None:
    """Write the questions of a trial that have a regular answer."""
    words = f"stress test, --seed {seed} --case {trial}" + (f" --problem {problem}" if problem else "")
    content = {"story": story, "source": words, **of_trial(make_trial(seed, trial, problem=problem))}
    (FOLDER / f"{name}.json").write_text(text_of(content))


def run(case: Frozen, route: str | None, update: bool) -> int:
    """Print the outcomes of a case's questions; returns how many have no acceptable answer."""
    if case.mechanism is None:
        print(f"{case.name}: its package is not installed")
        return 0
    print(f"{case.name}: {case.story}", flush=True)
    bad, better = 0, False
    for entry, asked in zip(case.content["questions"], case.asked, strict=True):
        if route not in (None, asked.question.way):
            continue
        began = monotonic()
        found = outcomes(case, asked)
        fine = all(o.is_acceptable(verdict) for o, verdict in zip(found, asked.verdicts, strict=True))
        mark = " " if fine else "~" if asked.due else "!"
        kinds = [outcome.kind for outcome in found]
        said = "; ".join(dict.fromkeys(o.message[:100] for o in found if o.kind in (*FAILURES, *VERDICTS[2:])))
        print(f"  {mark} {asked.name:44} {' '.join(kinds):30} {monotonic() - began:5.1f} s  {said}", flush=True)
        bad += not fine and not asked.due
        if fine and asked.due:
            del entry["due"]
            better = True
        if fine and kinds != list(asked.verdicts):
            entry["verdict"], better = kinds[0] if len(set(kinds)) == 1 else kinds, True
    if better:
        print(f"    better than its verdicts{', which are written' if update else ''}")
        if update:
            case.path.write_text(text_of(case.content))
    return bad


if __name__ == "__main__":
    sys.exit(main())
