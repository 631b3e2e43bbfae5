"""A graph and an ordering become a solution, through GTSAM; also mass matrices from the same graph."""

from factorgraph_dyn.equations.inputs import Contact
from factorgraph_dyn.solve.dynamics import (
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    solve_dynamics,
)
from factorgraph_dyn.solve.elimination import BayesNet, Conditional, eliminate, solve_graph, to_gtsam
from factorgraph_dyn.solve.energies import energy
from factorgraph_dyn.solve.iwim import InputDynamics, input_dynamics, input_matrix, iwim
from factorgraph_dyn.solve.loops.diagnosis import Diagnosis, diagnose
from factorgraph_dyn.solve.mass_matrix import bias, inverse_mass_matrix, log_determinant, mass_matrix
from factorgraph_dyn.solve.objectives import MinimumTorque, MinimumWrench, Objective, SoftFactors
from factorgraph_dyn.solve.simulation import Trajectory, simulate
from factorgraph_dyn.solve.solution import Solution

__all__ = [
    "BayesNet",
    "Conditional",
    "Contact",
    "Diagnosis",
    "InputDynamics",
    "MinimumTorque",
    "MinimumWrench",
    "Objective",
    "SoftFactors",
    "Solution",
    "Trajectory",
    "bias",
    "diagnose",
    "eliminate",
    "energy",
    "forward_dynamics",
    "hybrid_dynamics",
    "input_dynamics",
    "input_matrix",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "iwim",
    "log_determinant",
    "mass_matrix",
    "simulate",
    "solve_dynamics",
    "solve_graph",
    "to_gtsam",
]
