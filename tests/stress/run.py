"""Trials in processes of their own, for as long as one lets them: crashes and endless loops end one trial only."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic

from tests.stress.questions import PROBLEMS, Question
from tests.stress.script import write_script
from tests.stress.shrink import shrink
from tests.stress.trial import make_trial, run_trial
from tests.stress.verdicts import CLASSES, FAILURES, Verdict

LONGEST_TASK = 900  # seconds until a process that says nothing is ended
SHRUNK_OF_A_KIND = 1  # failures of one kind and problem that are shrunk


@dataclass(frozen=True)
class Plan:
    """What to run: a seed, which questions, and where scripts of failures go."""

    seed: int
    only: str | None = None
    problem: str | None = None
    out: Path | None = None
    shrink_seconds: float = 60.0

    def trial(self, index: int):
        return make_trial(self.seed, index, self.only, self.problem)

    @property
    def words(self) -> str:
        """The command line that repeats it."""
        words = f"--seed {self.seed}"
        if self.only:
            words += f" --only {self.only}"
        return words + (f" --problem {self.problem}" if self.problem else "")


@dataclass
class Summary:
    """Verdicts counted, and one example of each way to fail."""

    counts: Counter = field(default_factory=Counter)
    failures: Counter = field(default_factory=Counter)
    examples: dict = field(default_factory=dict)
    trials: int = 0
    warnings: int = 0
    worst: float = 0.0

    def add(self, index: int, verdict: Verdict) -> None:
        question = verdict.question
        self.counts[question.way, question.problem, verdict.kind] += 1
        if verdict.kind == "right":
            self.warnings += verdict.warned and verdict.condition < 1e4
            self.worst = max(self.worst, verdict.error)
        if verdict.kind in FAILURES:
            self.failures[verdict.signature] += 1
            self.examples.setdefault(verdict.signature, (index, verdict))

    @property
    def failed(self) -> int:
        return sum(self.failures.values())

    def table(self) -> str:
        """Counts by problem and class, and the ways to fail."""
        head = f"{'':28}" + "".join(f"{kind:>10}" for kind in CLASSES)
        lines = [head]
        for way in ("graph", "kernel"):
            for problem in PROBLEMS:
                row = [self.counts[way, problem, kind] for kind in CLASSES]
                if any(row):
                    lines.append(f"{way + ' ' + problem:28}" + "".join(f"{count:10}" for count in row))
        total = [sum(n for (_, _, k), n in self.counts.items() if k == kind) for kind in CLASSES]
        lines.append(f"{'all':28}" + "".join(f"{count:10}" for count in total))
        lines.append(f"{self.trials} mechanisms; {self.warnings} warnings of near singularity below condition 1e4.")
        for signature, count in self.failures.most_common():
            index, verdict = self.examples[signature]
            what = verdict.words.splitlines()[0][:140] if verdict.words else f"error {verdict.error:.1e}"
            asked = f"{verdict.question.problem}, ordering {verdict.question.ordering}"
            lines.append(f"{count:6} {signature[0]} {signature[1]} (--case {index}: {asked}): {what}")
        return "\n".join(lines)


class Worker:
    """A process that does one task after the other."""

    def __init__(self, plan: Plan) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(plan, other), daemon=True)
        self.process.start()
        other.close()
        self.task: tuple | None = None
        self.began = monotonic()

    def give(self, task: tuple) -> None:
        self.task, self.began = task, monotonic()
        self.pipe.send(task)

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(plan: Plan, pipe: Connection) -> None:
    """Answer tasks: ("run", index) by verdicts, ("shrink", index, verdict) by the script's path."""
    while True:
        try:
            task = pipe.recv()
        except (EOFError, KeyboardInterrupt):
            return
        try:
            pipe.send(_do(plan, task))
        except KeyboardInterrupt:
            return
        except BrokenPipeError:
            return


def _do(plan: Plan, task: tuple):
    if task[0] == "run":
        return run_trial(plan.trial(task[1]))
    _, index, failure = task
    return write_failure(plan, index, failure)


def write_failure(plan: Plan, index: int, failure: Verdict) -> str:
    """Shrink a failure and write it to the plan's folder; returns the script's path."""
    assert plan.out is not None
    recipe, question, verdict = shrink(plan.trial(index).recipe, failure, plan.shrink_seconds)
    plan.out.mkdir(parents=True, exist_ok=True)
    name = f"{failure.kind}-{failure.question.way}-{failure.question.problem}-{plan.seed}-{index}.py"
    path = plan.out / name
    path.write_text(write_script(recipe, question, verdict, f"{plan.words} --case {index}"))
    return str(path)


def run(plan: Plan, seconds: float, jobs: int, cases: int | None = None, say: Callable[[str], None] = print) -> Summary:
    """Run trials until the time is over or so many are done; Ctrl-C ends it early."""
    os.environ.setdefault("FACTORGRAPH_DYN_CACHE", "off")
    summary, end = Summary(), monotonic() + seconds
    shrinking: list[tuple] = []
    shrunk: Counter = Counter()
    done: set[tuple] = set()
    index = 0
    workers = [Worker(plan) for _ in range(jobs)]
    last = monotonic()
    try:
        while True:
            for i, worker in enumerate(workers):
                if worker.task is None:
                    if shrinking:
                        worker.give(shrinking.pop(0))
                    elif monotonic() < end and (cases is None or index < cases):
                        worker.give(("run", index))
                        index += 1
                elif not worker.process.is_alive() or monotonic() - worker.began > LONGEST_TASK:
                    workers[i] = _replaced(plan, worker, summary)
            busy = [worker for worker in workers if worker.task is not None]
            if not busy:
                break
            for pipe in wait([worker.pipe for worker in busy], timeout=1.0):
                worker = next(w for w in busy if w.pipe is pipe)
                try:
                    answer = worker.pipe.recv()
                except EOFError:
                    continue  # it died; seen above
                task, worker.task = worker.task, None
                if task[0] == "shrink":
                    say(f"  written: {answer}")
                    continue
                summary.trials += 1
                for verdict in answer:
                    summary.add(task[1], verdict)
                    key = (*verdict.signature, verdict.question.problem)
                    seen = (key, task[1]) in done
                    if (
                        verdict.kind in FAILURES
                        and not seen
                        and shrunk[key] < SHRUNK_OF_A_KIND
                        and plan.out is not None
                    ):
                        shrunk[key] += 1
                        done.add((key, task[1]))
                        shrinking.append(("shrink", task[1], verdict))
            if monotonic() - last > (2 if sys.stderr.isatty() else 30):
                last = monotonic()
                _progress(summary, end - last)
    except KeyboardInterrupt:
        say("Interrupted.")
    finally:
        for worker in workers:
            worker.end()
    return summary


def _progress(summary: Summary, left: float) -> None:
    problems = sum(summary.counts.values())
    text = f"{summary.trials} mechanisms, {problems} problems, {summary.failed} failures, {max(left, 0):.0f} s left"
    print(f"\r{text:78}" if sys.stderr.isatty() else text, end="" if sys.stderr.isatty() else "\n", file=sys.stderr)


def _replaced(plan: Plan, worker: Worker, summary: Summary) -> Worker:
    """A new worker for one that crashed or hangs, which is a foreign verdict."""
    assert worker.task is not None
    if worker.task[0] == "run":
        how = "hangs" if worker.process.is_alive() else f"crashed with code {worker.process.exitcode}"
        question = Question(plan.only or "graph", plan.problem or "forward")
        summary.trials += 1
        summary.add(worker.task[1], Verdict("foreign", question, -1, float("inf"), 1.0, f"The process {how}"))
    worker.end()
    return Worker(plan)
