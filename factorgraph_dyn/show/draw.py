"""Pictures by name: a mechanism, a problem and an ordering become a figure or a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Any

from factorgraph_dyn.checks import check_choice
from factorgraph_dyn.model import Mechanism, check_mechanism
from factorgraph_dyn.ordering import OrderingLike
from factorgraph_dyn.show.pictures import canvas
from factorgraph_dyn.show.pictures.layout import make_layout
from factorgraph_dyn.show.subject import make_subject

PICTURES = {
    "graph": "the factor graph: circles unknown, squares known, dots equations",
    "dag": "the Bayes net that the ordering gives",
    "matrix": "the block-sparse matrix before and after elimination, fill marked",
    "tree": "the clique tree with its parallel levels",
    "steps": "the elimination step by step; an animation where the file ends in .gif",
    "bars": "cost and time of all orderings",
}


def draw(
    mechanism: Mechanism,
    what: str = "graph",
    path: str | Path | None = None,
    *,
    problem: str = "forward",
    ordering: OrderingLike | None = None,
    known_accelerations: Iterable[str] | None = None,
) -> Any:
    """A picture of a mechanism's dynamics, as a matplotlib figure.

    Args:
        mechanism: The mechanism.
        what: "graph" (the factor graph), "dag" (the Bayes net of the ordering), "matrix" (block-sparse,
            before and after), "tree" (cliques and parallel levels), "steps" (the elimination) or "bars"
            (cost and time of all orderings).
        path: Where to write it; ends in .svg, .png or .pdf, for steps also .gif.
        problem: "forward", "inverse" or "hybrid".
        ordering: Name of an ordering or variable names; by default aba, for inverse dynamics rnea.
            Bars show all orderings and, if it is not one of the named ones, this one too.
        known_accelerations: Joints whose acceleration a hybrid problem gives; by default every second
            freedom, or every motor's where there are loops.

    Returns:
        The figure; None for an animation.

    Raises:
        FactorGraphDynError: An unknown word, a path that cannot be written, or no matplotlib.

    Examples:
        >>> figure = fgd.draw(fgd.robots.rrr(), "dag", "crba.svg", ordering="crba")
    """
    check_mechanism(mechanism)
    check_choice(what, PICTURES, "The picture")
    if path is not None:
        endings = (*canvas.ENDINGS, ".gif") if what == "steps" else canvas.ENDINGS
        canvas.check_ending(path, endings)
    if what == "steps" and path is not None and Path(path).suffix.lower() == ".gif":
        from factorgraph_dyn.show.pictures.steps import animate_steps

        subject = make_subject(mechanism, problem, known_accelerations)
        animate_steps(make_layout(subject), subject.order(ordering), path)
        return None
    figure = _figure(mechanism, what, problem, ordering, known_accelerations)
    if path is not None:
        canvas.save_figure(figure, path)
    return figure


def _figure(
    mechanism: Mechanism,
    what: str,
    problem: str,
    ordering: OrderingLike | None,
    known_accelerations: Iterable[str] | None,
) -> Any:
    if what == "bars":
        return _bars(mechanism, problem, ordering)
    subject = make_subject(mechanism, problem, known_accelerations)
    layout, chosen = make_layout(subject), subject.order(ordering)
    if what == "graph":
        from factorgraph_dyn.show.pictures.graph import draw_graph

        return draw_graph(layout)
    if what == "dag":
        from factorgraph_dyn.show.pictures.graph import draw_dag

        return draw_dag(layout, chosen)
    if what == "matrix":
        from factorgraph_dyn.show.pictures.matrix import draw_matrix

        return draw_matrix(layout, chosen)
    if what == "tree":
        from factorgraph_dyn.show.pictures.tree import draw_tree

        return draw_tree(layout, chosen)
    from factorgraph_dyn.show.pictures.steps import draw_steps

    return draw_steps(layout, chosen)


def _bars(mechanism: Mechanism, problem: str, ordering: OrderingLike | None) -> Any:
    from factorgraph_dyn.compare.orderings import compare_orderings
    from factorgraph_dyn.ordering import ORDERING_NAMES
    from factorgraph_dyn.show.pictures.bars import draw_bars

    named = ordering is None or (isinstance(ordering, str) and ordering in ORDERING_NAMES)
    more = [] if named or ordering is None else [ordering]
    rows = compare_orderings(mechanism, problem, [*ORDERING_NAMES, *more])
    return draw_bars(rows, f"{mechanism.name}: orderings for {problem} dynamics")
