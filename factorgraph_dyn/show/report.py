"""One page that steps through the elimination of every ordering: self-contained, no network.

Takes a mechanism and a problem; writes an HTML file with its own style, script and data (see `web_page`).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from factorgraph_dyn.checks import as_names, shown
from factorgraph_dyn.compare.orderings import compare_orderings
from factorgraph_dyn.errors import FactorGraphDynError, InputError
from factorgraph_dyn.model import Mechanism
from factorgraph_dyn.ordering import ORDERING_NAMES, Ordering, OrderingLike
from factorgraph_dyn.show.pictures.canvas import MEANING
from factorgraph_dyn.show.pictures.layout import SYMBOL, Heading, Layout, make_layout
from factorgraph_dyn.show.pictures.steps import place_of_new
from factorgraph_dyn.show.pictures.tree import place_cliques
from factorgraph_dyn.show.plots.curves import Path as Line
from factorgraph_dyn.show.subject import elimination_steps, make_subject
from factorgraph_dyn.show.web_page import web_page, write_page
from factorgraph_dyn.solve.loops.diagnosis import diagnose

SCRIPTS = ("shapes.js", "pictures.js", "page.js")  # one script, in this order


def write_report(
    mechanism: Mechanism,
    path: str | Path,
    *,
    problem: str = "forward",
    orderings: Sequence[OrderingLike] | None = None,
    known_accelerations: Iterable[str] | None = None,
    kernels: bool = True,
) -> None:
    """Write the interactive page of a mechanism's orderings.

    Args:
        mechanism: The mechanism.
        path: The HTML file.
        problem: "forward", "inverse" or "hybrid".
        orderings: Names or sequences of variable names; by default every named ordering that applies.
        known_accelerations: Joints whose acceleration a hybrid problem gives; by default every second
            freedom, or every motor's where there are loops.
        kernels: Whether the comparison compiles and times the kernel of each ordering, which takes seconds
            for large mechanisms.

    Raises:
        FactorGraphDynError: An unknown word, an ordering that does not fit, or a path that cannot be
            written.

    Examples:
        >>> fgd.write_report(fgd.robots.rrr(), "rrr.html", orderings=["aba", "crba"], kernels=False)
    """
    write_page(report_page(mechanism, problem, orderings, known_accelerations, kernels), path, "the report")


def report_page(
    mechanism: Mechanism,
    problem: str = "forward",
    orderings: Sequence[OrderingLike] | None = None,
    known_accelerations: Iterable[str] | None = None,
    kernels: bool = True,
) -> str:
    """The page as text."""
    data = report_data(mechanism, problem, orderings, known_accelerations, kernels)
    return web_page("page", f"{mechanism.name}: {problem} dynamics", data, SCRIPTS)


def report_data(
    mechanism: Mechanism,
    problem: str = "forward",
    orderings: Sequence[OrderingLike] | None = None,
    known_accelerations: Iterable[str] | None = None,
    kernels: bool = True,
) -> dict[str, Any]:
    """What the page shows, as plain data."""
    given = None if known_accelerations is None else as_names(known_accelerations, "known_accelerations")
    layout = make_layout(make_subject(mechanism, problem, given))
    number = {name: index for index, name in enumerate(layout.nodes)}
    chosen = _orderings(layout, orderings)
    # As they were asked for: kernels take halves of variables.
    wanted = list(orderings) if orderings is not None else [ordering.name for ordering in chosen]
    arrows: dict[str, Any] = {}
    shown = [_ordering_data(layout, ordering, number, arrows) for ordering in chosen]
    return {
        "mechanism": mechanism.name,
        "problem": problem,
        "facts": _facts(mechanism, layout),
        "kinds": [[kind, SYMBOL[kind], words] for kind, words in MEANING.items()],
        "nodes": [
            {
                "name": name,
                "kind": node.variable.kind,
                "symbol": node.symbol,
                "number": node.number,
                "label": node.label,
                "size": node.variable.size,
                "known": node.known,
                "at": _point(node.place),
            }
            for name, node in layout.nodes.items()
        ],
        "dots": [
            {
                "name": dot.name,
                "kind": dot.kind,
                "rows": factor.rows,
                "at": _point(dot.place),
                "holds": [number[str(variable)] for variable, _ in factor.blocks],
                "lines": [_line(line) for line in dot.lines.values()],
            }
            for dot, factor in zip(layout.dots, layout.subject.graph.factors, strict=True)
        ],
        "headings": {
            "graph": [_heading(heading) for heading in layout.headings],
            "dag": [_heading(heading) for heading in layout.unknown_headings],
        },
        "bounds": _bounds(layout.bounds),
        "arrows": arrows,
        "orderings": shown,
        "comparison": _comparison(mechanism, problem, wanted, kernels, given),
    }


def _orderings(layout: Layout, wanted: Sequence[OrderingLike] | None) -> list[Ordering]:
    if wanted is not None:
        if not isinstance(wanted, Sequence) or not wanted:
            raise InputError(f"orderings is {shown(wanted)}; give a list of at least one, or leave it to the default.")
        return [layout.subject.order(ordering) for ordering in wanted]
    found = []
    for name in ORDERING_NAMES:
        try:
            found.append(layout.subject.order(name))
        except FactorGraphDynError:
            continue  # an algorithm of another problem
    return found


def _ordering_data(
    layout: Layout, ordering: Ordering, number: Mapping[str, int], arrows: dict[str, Any]
) -> dict[str, Any]:
    """Steps and cliques of an ordering; the paths of its arrows are added to ``arrows``."""
    subject = layout.subject
    found = elimination_steps(subject, ordering)
    steps = []
    for step in found:
        near = subject.neighbours[step.variable]
        child = number[step.variable]
        for parent in step.parents:
            arrows.setdefault(f"{number[parent]},{child}", _line(layout.arrow(parent, step.variable)))
        made = None
        if step.made is not None:
            place = place_of_new(layout, step)
            ties = [_line(layout.tie(place, parent)) for parent in step.parents]
            made = {"number": step.made, "rows": step.rows, "at": _point(place), "ties": ties}
        steps.append(
            {
                "variable": child,
                "parents": [number[parent] for parent in step.parents],
                "fill": [number[parent] for parent in step.parents if parent not in near],
                "gathered": list(step.gathered),
                "made": made,
            }
        )
    pairs = [(parent, step.variable) for step in found for parent in step.parents]
    cliques = [
        {
            "frontals": [number[name] for name in clique.frontals],
            "parent": clique.parent,
            "level": clique.level,
            "x": round(clique.x, 3),
            "width": round(clique.width, 3),
            "lines": list(clique.lines),
        }
        for clique in place_cliques(layout, ordering)
    ]
    return {
        "name": ordering.name,
        "steps": steps,
        "cliques": cliques,
        "ranks": {number[name]: _point(place) for name, place in layout.rank_places(pairs).items()},
        "bounds": _bounds(layout.dag_bounds(pairs)),
    }


def _comparison(
    mechanism: Mechanism,
    problem: str,
    wanted: Sequence[OrderingLike],
    kernels: bool,
    given: tuple[str, ...] | None,
) -> list[dict[str, Any]]:
    """The rows of the comparison of orderings."""
    try:
        rows = compare_orderings(mechanism, problem, wanted, kernels=kernels, known_accelerations=given)
    except FactorGraphDynError as error:
        return [{"ordering": getattr(name, "name", str(name)), "note": str(error)} for name in wanted]
    return [{str(key): _plain(value) for key, value in row.items()} for row in rows]


def _facts(mechanism: Mechanism, layout: Layout) -> list[str]:
    graph = layout.subject.graph
    counts = {
        "link": len(mechanism.links),
        "joint": len(mechanism.joint_names),
        "freedom": mechanism.nv,
        "loop": len(mechanism.loops),
        "coupling": len(mechanism.couplings),
    }
    facts = [_counted(count, noun) for noun, count in counts.items() if count]
    if mechanism.is_closed_kind:
        facts[facts.index(_counted(mechanism.nv, "freedom"))] += f" of the tree, mobility {_mobility(mechanism)}"
    return [
        *facts,
        f"{len(graph.variables)} variables with {graph.columns} entries",
        f"{len(graph.factors)} equations with {graph.rows} rows",
    ]


def _counted(count: int, noun: str) -> str:
    return f"{count} {noun}{'s' if count != 1 else ''}"


def _mobility(mechanism: Mechanism) -> str:
    """The freedoms that loops and couplings leave, at a usual configuration."""
    try:
        return str(diagnose(mechanism, mechanism.random_state(0)[0]).usual_mobility)
    except FactorGraphDynError:
        return "not known"  # no closed configuration was found


def _plain(value: Any) -> Any:
    """A value that JSON can hold."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, (int, str, bool, type(None))) else str(value)


def _point(place: tuple[float, float]) -> list[float]:
    """A place as the screen has it: y downwards."""
    return [round(place[0], 2), round(-place[1], 2)]


def _line(line: Line) -> list[list[float]]:
    return [_point(point) for point in line]


def _bounds(bounds: tuple[float, float, float, float]) -> list[float]:
    """Left, top, width and height of a view."""
    left, right, bottom, top = bounds
    return [round(value, 2) for value in (left, -top, right - left, top - bottom)]


def _heading(heading: Heading) -> dict[str, Any]:
    return {
        "text": heading.text,
        "kind": heading.kind,
        "at": _point(heading.place),
        "left": heading.starts_strip,
    }
