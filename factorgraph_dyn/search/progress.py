"""A progress bar with the best so far; nothing where there is no terminal."""

from __future__ import annotations

from types import TracebackType
from typing import Self

from rich import progress as bars
from rich.console import Console


class Progress:
    """A progress bar on standard error."""

    def __init__(self, shown: bool | None, title: str, budget: float) -> None:
        """Prepare a bar.

        Args:
            shown: Whether to show it; None means where there is a terminal.
            title: What is searched.
            budget: Seconds of the full bar.
        """
        console = Console(stderr=True)
        self._bar = bars.Progress(
            bars.TextColumn("[bold]{task.description}"),
            bars.BarColumn(),
            bars.TimeElapsedColumn(),
            bars.TextColumn("{task.fields[best]}"),
            console=console,
            transient=True,
            disable=not (console.is_terminal if shown is None else shown),
        )
        self._task = self._bar.add_task(title, total=budget, best="")

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._bar.stop()

    def update(self, seconds: float, best: float, evaluations: int) -> None:
        """Show how far the search is."""
        self._bar.update(self._task, completed=seconds, best=f"best {best:g} after {evaluations} orderings")
