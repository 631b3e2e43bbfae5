"""The graph of a problem, for looking at its structure: variables and factors with numbers at some state.

Takes a mechanism and a compiler problem; gives the graph whose variables an ordering has to list. The work
runs once a search.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.equations import Factor, Known, LinearGraph, dynamics_graph, evaluate_state
from factorgraph_dyn.equations.problem import Problem
from factorgraph_dyn.model import Mechanism


def problem_graph(mechanism: Mechanism, problem: Problem) -> LinearGraph:
    """The graph of a problem at a random state; what it keeps as parameters is left out."""
    shown = mechanism.tree if problem.tree_only else mechanism
    q, v = shown.random_state(0)
    nothing = np.zeros(shown.nv)
    known = Known(nothing, nothing, problem.known_a, problem.known_tau)
    graph = dynamics_graph(evaluate_state(shown, q, v), known)
    return graph if problem.kept is None else without(graph, problem.kept)


def without(graph: LinearGraph, kept: str) -> LinearGraph:
    """The graph whose variables of one kind are not to be eliminated."""
    variables = tuple(variable for variable in graph.variables if variable.kind != kept)
    stripped = tuple(
        Factor(factor.kind, factor.owner, tuple(pair for pair in factor.blocks if pair[0].kind != kept), factor.rhs)
        for factor in graph.factors
    )
    return LinearGraph(variables, stripped, graph.known)
