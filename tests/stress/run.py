"""Trials in processes of their own, for as long as one lets them: crashes and endless loops end one trial only."""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import signal
import sys
import traceback
from collections import Counter
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

from tests.stress.questions import FURTHER, PROBLEMS, Question
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

    @property
    def words(self) -> str:
        return f"{self.trials} mechanisms, {sum(self.counts.values())} problems, {self.failed} failures"

    def table(self) -> str:
        """Counts by problem and class, and the ways to fail."""
        head = f"{'':28}" + "".join(f"{kind:>10}" for kind in CLASSES)
        lines = [head]
        for way in ("graph", "kernel"):
            for problem in (*PROBLEMS, *FURTHER):
                row = [self.counts[way, problem, kind] for kind in CLASSES]
                if any(row):
                    lines.append(f"{way + ' ' + problem:28}" + "".join(f"{count:10}" for count in row))
        total = [sum(n for (_, _, k), n in self.counts.items() if k == kind) for kind in CLASSES]
        lines.append(f"{'all':28}" + "".join(f"{count:10}" for count in total))
        lines.append(f"{self.words}; {self.warnings} warnings of near singularity below condition 1e4.")
        for signature, count in self.failures.most_common():
            index, verdict = self.examples[signature]
            what = verdict.words.splitlines()[0][:260] if verdict.words else f"error {verdict.error:.1e}"
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

    def take(self) -> tuple[tuple, Any, float]:
        """The task, its answer, and the seconds that it took."""
        answer = self.pipe.recv()
        task, self.task = self.task, None
        assert task is not None
        return task, answer, monotonic() - self.began

    @property
    def is_lost(self) -> bool:
        """Whether it crashed or has been silent for too long."""
        return not self.process.is_alive() or monotonic() - self.began > LONGEST_TASK

    def end(self) -> None:
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(plan: Plan, pipe: Connection) -> None:
    """Answer tasks: ("run", index) by verdicts, ("shrink", index, verdict) by the script's path."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who counts
    with contextlib.suppress(EOFError, BrokenPipeError):
        while True:
            pipe.send(_do(plan, pipe.recv()))


def _do(plan: Plan, task: tuple):
    try:
        if task[0] == "run":
            return run_trial(plan.trial(task[1]))
        return write_failure(plan, *task[1:])
    except Exception:
        words = traceback.format_exc()
        return [_foreign(plan, words.splitlines()[-1])] if task[0] == "run" else f"nothing, because of\n{words}"


def write_failure(plan: Plan, index: int, failure: Verdict) -> str:
    """Shrink a failure and write it to the plan's folder; returns the script's path."""
    assert plan.out is not None
    recipe, question, verdict = shrink(plan.trial(index).recipe, failure, plan.shrink_seconds)
    plan.out.mkdir(parents=True, exist_ok=True)
    name = f"{failure.kind}-{failure.question.way}-{failure.question.problem}-{plan.seed}-{index}.py"
    path = plan.out / name
    path.write_text(write_script(recipe, question, verdict, f"{plan.words} --case {index}"))
    return str(path)


def run(plan: Plan, seconds: float, jobs: int, cases: int | None = None) -> Summary:
    """Run trials until the time is over or so many are done; Ctrl-C ends it early."""
    os.environ.setdefault("FACTORGRAPH_DYN_CACHE", "off")
    runner = Runner(plan, monotonic() + seconds, jobs, cases)
    workers = [Worker(plan) for _ in range(jobs)]
    try:
        while runner.go_on(workers):
            pass
    except KeyboardInterrupt:
        print("Interrupted.")
    finally:
        for worker in workers:
            worker.end()
    return runner.summary


class Runner:
    """Gives tasks to workers and counts what they answer; failures are shrunk before further trials are run."""

    def __init__(self, plan: Plan, end: float, jobs: int, cases: int | None) -> None:
        self.plan, self.end, self.jobs, self.cases = plan, end, jobs, cases
        self.summary = Summary()
        self.index = 0
        self.shrinking: list[tuple] = []
        self.shrunk: Counter = Counter()
        self.shown = monotonic()

    def go_on(self, workers: list[Worker]) -> bool:
        """One round: tasks out, answers in. False where nothing is left to do."""
        for i, worker in enumerate(workers):
            if worker.task is None:
                self._give(worker)
            elif worker.is_lost:
                workers[i] = self._replaced(worker)
        busy = {worker.pipe: worker for worker in workers if worker.task is not None}
        for pipe in wait(list(busy), timeout=1.0) if busy else ():
            with contextlib.suppress(EOFError):  # it died, which the next round sees
                self._take(*busy[pipe].take())
        self._show()
        return bool(busy)

    def _give(self, worker: Worker) -> None:
        if self.shrinking:
            worker.give(self.shrinking.pop(0))
        elif monotonic() < self.end and (self.cases is None or self.index < self.cases):
            worker.give(("run", self.index))
            self.index += 1

    def _take(self, task: tuple, answer: Any, seconds: float) -> None:
        if task[0] == "shrink":
            print(f"  written: {answer}")
            self.end += seconds / self.jobs  # shrinking is not what the time is for
            return
        self.summary.trials += 1
        for words in dict.fromkeys(_told(verdict) for verdict in answer if verdict.kind in FAILURES):
            print(f"--case {task[1]}: {words}", flush=True)
        for verdict in answer:
            self.summary.add(task[1], verdict)
            key = (*verdict.signature, verdict.question.problem)
            if verdict.kind in FAILURES and self.shrunk[key] < SHRUNK_OF_A_KIND and self.plan.out is not None:
                self.shrunk[key] += 1
                self.shrinking.append(("shrink", task[1], verdict))

    def _replaced(self, worker: Worker) -> Worker:
        """A new worker for one that crashed or hangs, which is a foreign verdict."""
        assert worker.task is not None
        if worker.task[0] == "run":
            how = "hangs" if worker.process.is_alive() else f"crashed with code {worker.process.exitcode}"
            self.summary.trials += 1
            self.summary.add(worker.task[1], _foreign(self.plan, f"The process {how}"))
        worker.end()
        return Worker(self.plan)

    def _show(self) -> None:
        is_terminal = sys.stderr.isatty()
        if monotonic() - self.shown < (1 if is_terminal else 60):
            return
        self.shown = monotonic()
        left = max(self.end - self.shown, 0.0)
        text = f"{self.summary.words}, {left:.0f} s left"
        print(f"\r{text:78}" if is_terminal else text, end="" if is_terminal else "\n", file=sys.stderr, flush=True)


def _told(verdict: Verdict) -> str:
    """A failure in a line."""
    question = verdict.question
    what = verdict.words.splitlines()[0][:200] if verdict.words else f"error {verdict.error:.1e} of {verdict.result}"
    return f"{verdict.kind} {question.way} {question.problem}, ordering {question.ordering}: {what}"


def _foreign(plan: Plan, words: str) -> Verdict:
    """The verdict on a trial that ended before its questions did."""
    question = Question("kernel" if plan.only == "kernels" else "graph", plan.problem or "forward")
    return Verdict("foreign", question, -1, float("inf"), 1.0, words)
