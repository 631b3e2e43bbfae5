"""The graph of a problem, for looking at its structure: variables and factors with numbers at some state.

Takes a mechanism and a compiler problem; gives the graph whose variables an ordering has to list. The work
runs once a search.
"""

from __future__ import annotations

import numpy as np

from factorgraph_dyn.compiler.problem import Problem
from factorgraph_dyn.compiler.trace import _without
from factorgraph_dyn.equations import Known, LinearGraph, dynamics_graph, evaluate_state
from factorgraph_dyn.model import Mechanism


def problem_graph(mechanism: Mechanism, problem: Problem) -> LinearGraph:
    """The graph of a problem at a random state; what it keeps as parameters is left out."""
    shown = mechanism.tree if problem.tree_only else mechanism
    q, v = shown.random_state(0)
    nothing = np.zeros(shown.nv)
    known = Known(nothing, nothing, problem.known_a, problem.known_tau)
    graph = dynamics_graph(evaluate_state(shown, q, v), known)
    return graph if problem.kept is None else _without(graph, problem.kept)
