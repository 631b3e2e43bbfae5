"""A mechanism at a state, and what is known, become a graph of named variables and block factors."""

from factorgraph_dyn.equations import sensors
from factorgraph_dyn.equations.dynamics_graph import dynamics_graph, velocity_graph
from factorgraph_dyn.equations.given import Known
from factorgraph_dyn.equations.linear_graph import Factor, LinearGraph, Value, Variable, check_graph
from factorgraph_dyn.equations.state import State, evaluate_state

__all__ = [
    "Factor",
    "Known",
    "LinearGraph",
    "State",
    "Value",
    "Variable",
    "check_graph",
    "dynamics_graph",
    "evaluate_state",
    "sensors",
    "velocity_graph",
]
