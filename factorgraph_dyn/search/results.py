"""What a search gives back: an ordering that knows where it comes from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from factorgraph_dyn.compiler import Operations
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.notebook import html_table
from factorgraph_dyn.ordering import Ordering, saved
from factorgraph_dyn.search.exact import ExactResult
from factorgraph_dyn.search.scores import PER_LEVEL

UNITS = {
    "operations": "operations",
    "time": "estimated instructions",
    "depth": "levels",
    "blocks": "block operations",
}


@dataclass(frozen=True)
class Baseline:
    """A named ordering that a search is compared with.

    Attributes:
        operations: Of its kernel.
        error: Its largest relative error over the sampled states.
        seconds_a_state: Its measured time, where time was the objective.
    """

    operations: Operations
    error: float
    seconds_a_state: float | None = None


@dataclass(frozen=True, eq=False)
class SearchResult:
    """The best ordering that a search found; pass it as ``ordering=``.

    Attributes:
        mechanism: What it was found for.
        problem: Name of the problem.
        objective: What was made small.
        variables: The ordering.
        score: What it reached: operations, estimated instructions, levels and operations.
        operations: Of the compiled kernel, or None where the objective needs no kernel and there is none.
        error: Largest relative error over the sampled states, or None.
        seconds_a_state: Measured time, where time was the objective.
        baseline: The classical orderings, by name.
        block_optimum: The exact optimum of the block cost model, where the graph was small enough.
        proved: Whether nothing can be better (objective "blocks" only).
        evaluations: Orderings scored.
        seconds: How long it took.
        seed: Of the random moves.
        interrupted: Whether the user stopped it.
        history: (seconds, evaluations, score) whenever the best got better.
        elites: Score and ordering of the best ones.
        earlier: The best that earlier searches had saved for this problem and objective, or None.
        free: Whether parameters of the mechanism are arguments.

    Examples:
        >>> found = fgd.search_orderings(fgd.robots.pendulum(1), "forward", objective="blocks", budget=0.1)
        >>> found.proved, sorted(found.variables)
        (True, ['A[link1]', 'F[joint1]', 'a[joint1]'])
    """

    mechanism: Mechanism
    problem: str
    objective: str
    variables: tuple[str, ...]
    score: float
    operations: Operations | None
    error: float | None
    seconds_a_state: float | None
    baseline: Mapping[str, Baseline]
    block_optimum: ExactResult | None
    proved: bool
    evaluations: int
    seconds: float
    seed: int
    interrupted: bool
    history: tuple[tuple[float, int, float], ...]
    elites: tuple[tuple[float, tuple[str, ...]], ...]
    earlier: saved.SavedOrdering | None = None
    free: bool = False

    def __repr__(self) -> str:
        reached = [f"{_cost(self.saved()):g} {UNITS[self.objective]}"]
        reached += [f"{name} {b.operations.total}" for name, b in self.baseline.items()]
        return (
            f"<SearchResult {self.problem} of {self.mechanism.name!r}: {', '.join(reached)}; "
            f"{self.evaluations} orderings in {self.seconds:.1f} s>"
        )

    def _repr_html_(self) -> str:
        return html_table(self.rows(), f"{self.problem} dynamics of {self.mechanism.name}", self.remark)

    def rows(self) -> list[dict[str, Any]]:
        """The result below the classical orderings, for tables."""
        rows = [_row(name, b.operations, b.error, b.seconds_a_state) for name, b in self.baseline.items()]
        if self.operations is not None:
            rows.append(_row(self.name, self.operations, self.error, self.seconds_a_state))
        else:
            rows.append({"ordering": self.name, "score": self.score, "proved": self.proved})
        rows[-1] |= {"evaluations": self.evaluations, "seconds": round(self.seconds, 1)}
        return rows

    @property
    def remark(self) -> str:
        """How the result stands to what earlier searches had saved; empty where there is nothing."""
        if self.earlier is None:
            return ""
        before, now = _cost(self.earlier), _cost(self.saved())
        if now < before:
            return f"{now:g} {UNITS[self.objective]} instead of {before:g} of an earlier run."
        found = f"; this run found {now:g}" if now > before else ""
        return f"kept {before:g} of an earlier run{found}."

    @property
    def name(self) -> str:
        """What the ordering is called."""
        return saved.BEST

    @property
    def ordering(self) -> Ordering:
        """The ordering, under the name "search"."""
        return Ordering(self.name, self.variables)

    def __iter__(self) -> Iterator[str]:
        return iter(self.variables)

    def __len__(self) -> int:
        return len(self.variables)

    def __getitem__(self, index: int) -> str:
        return self.variables[index]

    @property
    def saving(self) -> float:
        """Part of the operations of the best baseline that the result does without."""
        if self.operations is None or not self.baseline:
            return 0.0
        return 1 - self.operations.total / min(b.operations.total for b in self.baseline.values())

    def write(self, path: str | Path) -> None:
        """Write a results file, which ``ordering=`` and ``search_orderings(results=...)`` read."""
        saved.write(Path(path), self.saved())

    def saved(self) -> saved.SavedOrdering:
        """The result as a results file holds it."""
        facts: dict[str, Any] = {
            "operations": None if self.operations is None else self.operations.total,
            "error": self.error,
            "seconds_a_state": self.seconds_a_state,
            "baseline": {name: b.operations.total for name, b in self.baseline.items()},
            "proved": self.proved,
            "evaluations": self.evaluations,
            "seconds": round(self.seconds, 3),
            "seed": self.seed,
        }
        return saved.SavedOrdering(
            self.mechanism.name,
            self.mechanism.fingerprint,
            self.problem,
            self.objective,
            self.variables,
            self.score,
            facts,
            self.elites,
            self.free,
        )


def _cost(found: saved.SavedOrdering) -> float:
    """What a search made small, as people count it."""
    if found.objective == "depth":
        return found.score // PER_LEVEL
    counted = found.facts.get("operations") if found.objective == "operations" else None
    return float(found.score if counted is None else counted)


def _row(name: str, operations: Operations, error: float | None, seconds: float | None) -> dict[str, Any]:
    row = {
        "ordering": name,
        "operations": operations.total,
        "multiplications": operations.multiplications,
        "additions": operations.additions,
        "divisions": operations.divisions,
        "error": error,
    }
    return row if seconds is None else row | {"time_ns": 1e9 * seconds}
