#!/usr/bin/env python3
"""Parallel steps of orderings over chains of 8 to 256 links: depth_table.py [LARGEST]."""

from __future__ import annotations

import sys

import factorgraph_dyn as fgd
from factorgraph_dyn.equations import LinearGraph
from factorgraph_dyn.equations.problem import make_problem, problem_graph
from factorgraph_dyn.ordering import Structure, choose_ordering, eliminate_structure
from factorgraph_dyn.show.tables import print_rows


def main() -> None:
    """Print a row for each length."""
    largest = int(sys.argv[1]) if len(sys.argv) > 1 else 256
    rows = []
    length = 8
    while length <= largest:
        chain = fgd.robots.pendulum(length)
        graph = problem_graph(chain, make_problem(chain, "forward"))
        row = {"links": length, "variables": len(graph.variables)}
        for name in ("aba", "crba", "metis"):
            row[name] = _structure(graph, choose_ordering(chain, graph, name).variables).depth
        found = fgd.search_orderings(chain, objective="depth", budget=2.0, rounds=1, save=False)
        cost = _structure(graph, found.variables)
        row |= {"search": cost.depth, "widest clique": cost.largest_clique, "work": sum(cost.level_work)}
        rows.append(row | {"work on the longest way": _critical(cost.level_work, cost.depth)})
        length *= 2
    print_rows(rows, "table", "Levels of the clique tree, forward dynamics of chains")


def _structure(graph: LinearGraph, names: tuple[str, ...]) -> Structure:
    return eliminate_structure(graph, [graph.by_name[name] for name in names])


def _critical(level_work: tuple[int, ...], depth: int) -> int:
    """About the work of the longest way: at level k from the root 2^k cliques share it."""
    return sum(work // 2 ** (depth - 1 - level) for level, work in enumerate(level_work))


if __name__ == "__main__":
    main()
