#!/usr/bin/env python3
"""Switch a numerics tool off and print which cases and which ordinary robots notice.

    python scripts/ablate.py --list                                   the tools
    python scripts/ablate.py --tool "row rotation" --robots four_bar five_bar --problems forward
    python scripts/ablate.py --cases-only --jobs 2 -o ablation.csv    every tool on the cases
    python scripts/ablate.py --all --jobs 4 -o ablation.json          25 robots, all problems, 20 random orderings
    python scripts/ablate.py --robots none --models FOLDER            model files of a folder beside the cases

Every question is asked once with all tools on, where it is noted which tools do something for it, and once without
each of these. A question notices where its answer is worse (nan, refused, wrong, an error that is none of the package's
own), or better, or where its kernels have more than 1 % more or fewer operations. Kernels are not taken from the disk.
Progress is printed as it goes; Ctrl-C or kill end it with the table so far. All of it takes hours.
"""

from __future__ import annotations

import argparse
import csv
import json
import multiprocessing
import os
import signal
import sys
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from multiprocessing.connection import Connection, wait
from pathlib import Path
from time import monotonic
from typing import Any

for variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(variable, "1")  # small matrices; set before NumPy is imported
os.environ["FACTORGRAPH_DYN_CACHE"] = "off"  # names of cached kernels depend on the sources, not on patches
sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from scripts import ablation_tools
from scripts.ablation_tasks import (
    HANDFUL,
    ORDERINGS,
    PROBLEMS,
    ROBOTS,
    SECONDS,
    Found,
    Task,
    answer,
    case_tasks,
    robot_tasks,
)
from scripts.ablation_tools import TOOLS
from tests.cases.case import VERDICTS

LESS = 0.01  # share of operations from which on they are other ones
RANDOM_ORDERINGS = 20
COLUMNS = ("refused", "nan", "wrong", "error", "slow", "better", "more", "fewer")
WORSE = COLUMNS[:5]
LONGEST = 30 * SECONDS  # until a process that says nothing is ended


@dataclass
class Row:
    """The outcome of the questions without a tool.

    Attributes:
        asked: How many it does something for.
        noticed: By what happens to them, the questions: cases first, robots second.
    """

    asked: int = 0
    noticed: dict[str, tuple[list[str], list[str]]] = field(default_factory=lambda: defaultdict(lambda: ([], [])))

    def names(self, is_robot: bool) -> list[str]:
        """The cases or robots that notice anything but operations or a better answer."""
        found = [key.split()[0] for word in WORSE for key in self.noticed[word][is_robot]]
        return list(dict.fromkeys(found))


def main() -> int:
    """Run and print; the exit code."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tool", nargs="+", metavar="NAME", help="tools to switch off in turn; default all")
    parser.add_argument("--list", action="store_true", help="print the tools and end")
    parser.add_argument("--robots", nargs="+", metavar="NAME", help="'none', 'all' or names; default a handful")
    parser.add_argument("--models", type=Path, help="a folder of model files that are robots, too")
    parser.add_argument("--problems", nargs="+", choices=PROBLEMS, default=("forward", "inverse", "iwim", "wrench"))
    parser.add_argument("--orderings", nargs="*", choices=ORDERINGS, default=("aba", "rnea"), help="beside the default")
    parser.add_argument("--random", type=int, default=0, help="random orderings of small robots, each")
    parser.add_argument("--all", action="store_true", help="all robots, problems and orderings, 20 random ones")
    parser.add_argument("--cases-only", action="store_true", help="no robots")
    parser.add_argument("--case", default="", help="part of the names of the cases; 'none' for no cases")
    parser.add_argument("--slow", action="store_true", help="with the cases that take seconds")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--most", type=int, help="questions a tool at most, spread evenly over all that it concerns")
    parser.add_argument(
        "--known", type=Path, help="a JSON file that keeps the answers with all tools on; sources alike"
    )
    parser.add_argument("-o", "--out", type=Path, help="write what noticed to this file, .csv, .json or .md")
    options = parser.parse_args()
    if options.list:
        for tool in TOOLS.values():
            print(f"{tool.name:30} {tool.about}")
        return 0
    unknown = set(options.tool or ()) - set(TOOLS)
    robots = _robots(options)
    unknown |= set(robots) - set(ROBOTS)
    if unknown:
        parser.error(f"there is no {', '.join(sorted(unknown))}; see --list, and the robots: {', '.join(ROBOTS)}")
    if options.all:
        options.problems, options.orderings, options.random = PROBLEMS, ORDERINGS, RANDOM_ORDERINGS
    tasks = [] if options.case == "none" else list(case_tasks(options.case, options.slow))
    tasks += robot_tasks(robots, options.models, options.problems, options.orderings, options.random)
    ablation = Ablation(tasks, [TOOLS[name] for name in options.tool or TOOLS], options.jobs, options.most)
    if options.known and options.known.is_file():
        ablation.remember(json.loads(options.known.read_text()))
    for word in (signal.SIGINT, signal.SIGTERM):  # in the background, too, where the shell ignores Ctrl-C
        signal.signal(word, signal.default_int_handler)
    try:
        ablation.run()
    except KeyboardInterrupt:
        print("\nInterrupted.", file=sys.stderr)
    finally:
        ablation.end()
    print(ablation.table())
    if options.known:
        options.known.write_text(json.dumps(ablation.known()))
    if options.out:
        ablation.write(options.out)
        print(f"Written: {options.out}")
    return 0


def _robots(options: argparse.Namespace) -> list[str]:
    if options.cases_only or options.robots == ["none"]:
        return []
    if options.all or options.robots == ["all"]:
        return list(ROBOTS)
    return list(options.robots or HANDFUL)


class Ablation:
    """Questions with all tools, then without each."""

    def __init__(self, tasks: list[Task], tools: list[ablation_tools.Tool], jobs: int, most: int | None) -> None:
        self.tasks, self.tools, self.most = tasks, tools, most
        self.usual: dict[int, Found] = {}
        self.acted: dict[int, set[str]] = {}
        self.rows = {tool.name: Row() for tool in tools}
        self.workers = [Worker() for _ in range(jobs)]

    def run(self) -> None:
        """Ask everything."""
        concerned = [any(tool.concerns(task) for tool in self.tools) for task in self.tasks]
        unknown = [k for k in range(len(self.tasks)) if concerned[k] and k not in self.usual]
        for _, index, (found, acted) in self._asked([(None, k) for k in unknown], "all tools on"):
            self.usual[index], self.acted[index] = found, acted
        for tool in self.tools:
            concerned = sorted(k for k in self.usual if self._concerns(tool, k))
            if self.most and len(concerned) > self.most:
                concerned = concerned[:: -(-len(concerned) // self.most)]
            self.rows[tool.name].asked = len(concerned)
            for _, index, (found, _) in self._asked([(tool.name, k) for k in concerned], tool.name):
                self._note(self.rows[tool.name], self.tasks[index], self.usual[index], found)

    def known(self) -> dict[str, Any]:
        """The answers with all tools on, by question."""
        return {
            self.tasks[k].key: [list(found.kinds), found.operations, found.message, sorted(self.acted[k])]
            for k, found in self.usual.items()
        }

    def remember(self, known: dict[str, Any]) -> None:
        """Take answers with all tools on as they were."""
        for k, task in enumerate(self.tasks):
            if task.key in known:
                kinds, operations, message, acted = known[task.key]
                self.usual[k], self.acted[k] = Found(tuple(kinds), operations, message), set(acted)

    def end(self) -> None:
        """End the processes."""
        for worker in self.workers:
            worker.end()

    def _concerns(self, tool: ablation_tools.Tool, index: int) -> bool:
        return tool.concerns(self.tasks[index]) and ablation_tools.may_act(tool, self.acted[index])

    def _note(self, row: Row, task: Task, usual: Found, found: Found) -> None:
        word = _difference(usual, found)
        if word:
            row.noticed[word][task.is_robot].append(task.key)

    def _asked(self, items: list[tuple[str | None, int]], about: str) -> Iterator[tuple[str | None, int, Any]]:
        """The answers to items, a tool's name and a task's index each, as they come in."""
        began, done, left = monotonic(), 0, items[::-1]
        while left or any(worker.item for worker in self.workers):
            for k, worker in enumerate(self.workers):
                if worker.item is None and left:
                    item = left.pop()
                    worker.give(item, self.tasks[item[1]])
                elif worker.is_lost:
                    lost = worker.item
                    worker.end()
                    self.workers[k] = Worker()
                    assert lost is not None
                    done += 1
                    yield *lost, (Found(("foreign",), 0, "the process ended"), set())
            busy = {worker.pipe: worker for worker in self.workers if worker.item is not None}
            for pipe in wait(list(busy), timeout=1.0):
                try:
                    item, result = busy[pipe].take()  # type: ignore[index]
                except EOFError:
                    continue  # the next round sees that it is lost
                done += 1
                yield *item, result
            _show(f"{about}: {done} of {len(items)} questions, {monotonic() - began:.0f} s")
        _show("", end=True)

    # ---- tables

    def table(self) -> str:
        """A row a tool: questions that notice, and the cases and robots among them that are answered worse."""
        head = f"{'tool':30}{'asked':>7}" + "".join(f"{word:>9}" for word in COLUMNS) + "  cases  robots"
        lines = [head]
        for name, row in self.rows.items():
            counts = [sum(map(len, row.noticed[word])) for word in COLUMNS]
            cells = "".join(f"{count or '':>9}" for count in counts)
            lines.append(f"{name:30}{row.asked:7}{cells}{len(row.names(False)):7}{len(row.names(True)):8}")
        return "\n".join(lines)

    def markdown(self) -> str:
        """The same with names."""
        lines = [
            f"| tool | asked | {' | '.join(COLUMNS)} | cases answered worse | robots answered worse |",
            "|---|" + "---:|" * (1 + len(COLUMNS)) + "---|---|",
        ]
        for name, row in self.rows.items():
            counts = " | ".join(str(sum(map(len, row.noticed[word])) or "") for word in COLUMNS)
            named = [f"{len(names)}: {', '.join(names)}" if names else "0"
                     for names in (row.names(False), row.names(True))]  # fmt: skip
            lines.append(f"| {name} | {row.asked} | {counts} | {' | '.join(named)} |")
        return "\n".join(lines) + "\n"

    def write(self, path: Path) -> None:
        """All that noticed, to a file of the ending's kind."""
        entries = [
            {"tool": name, "what": word, "kind": kind, "question": key}
            for name, row in self.rows.items()
            for word, sides in row.noticed.items()
            for kind, side in zip(("case", "robot"), sides, strict=True)
            for key in side
        ]
        if path.suffix == ".md":
            path.write_text(self.markdown())
        elif path.suffix == ".json":
            asked = {name: row.asked for name, row in self.rows.items()}
            path.write_text(json.dumps({"questions": len(self.tasks), "asked": asked, "noticed": entries}, indent=1))
        else:
            with path.open("w", newline="") as file:
                writer = csv.DictWriter(file, ("tool", "what", "kind", "question"))
                writer.writeheader()
                writer.writerows(entries)


def _difference(usual: Found, found: Found) -> str:
    """The change of an answer as a word of COLUMNS; empty where there is none."""
    for kind, word in (("wrong", "wrong"), ("undecided", "wrong"), ("foreign", "error"), ("slow", "slow")):
        if kind in found.kinds and kind not in usual.kinds:
            return word
    before, after = (sum(map(_rank, each.kinds)) / len(each.kinds) for each in (usual, found))
    if after != before:
        return "better" if after < before else VERDICTS[max(map(_rank, found.kinds))]
    if found.operations > (1 + LESS) * usual.operations:
        return "more"
    return "fewer" if found.operations < (1 - LESS) * usual.operations else ""


def _rank(kind: str) -> int:
    """The place of a verdict among VERDICTS; 0 of failures, which are compared by their names."""
    return VERDICTS.index(kind) if kind in VERDICTS else 0


def _show(text: str, end: bool = False) -> None:
    if sys.stderr.isatty():
        print(f"\r{text:78}", end="\r" if end else "", file=sys.stderr, flush=True)
    elif text.split(":")[0] and _changed(text):
        print(text, file=sys.stderr, flush=True)


def _changed(text: str, last: dict[str, float] = {}) -> bool:  # noqa: B006  the time of the last line
    if monotonic() - last.get("at", 0.0) < 20.0:
        return False
    last["at"] = monotonic()
    return bool(text)


# ---- processes


class Worker:
    """A process that asks one question after the other, without a tool or with all."""

    def __init__(self) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, other = context.Pipe()
        self.process = context.Process(target=_serve, args=(other,), daemon=True)
        self.process.start()
        other.close()
        self.item: tuple[str | None, int] | None = None
        self.began = monotonic()

    def give(self, item: tuple[str | None, int], task: Task) -> None:
        """Ask a question without a tool, or with all."""
        self.item, self.began = item, monotonic()
        self.pipe.send((item[0], task))

    def take(self) -> tuple[tuple[str | None, int], Any]:
        """The answer to the last question, and which it was."""
        result = self.pipe.recv()
        item, self.item = self.item, None
        assert item is not None
        return item, result

    @property
    def is_lost(self) -> bool:
        """True where the process crashed or is silent."""
        return self.item is not None and (not self.process.is_alive() or monotonic() - self.began > LONGEST)

    def end(self) -> None:
        """End the process."""
        self.process.kill()
        self.process.join()
        self.pipe.close()


def _serve(pipe: Connection) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the one who counts
    ablation_tools.import_all()
    try:
        while True:
            name, task = pipe.recv()
            acted: set[str] = set()
            if name is None:
                with ablation_tools.watched(acted):
                    found = answer(task)
                ablation_tools.forget()
            else:
                with ablation_tools.switched_off(TOOLS[name]):
                    found = answer(task)
            pipe.send((found, acted))
    except (EOFError, BrokenPipeError):
        return


if __name__ == "__main__":
    sys.exit(main())
