"""Rigid-body dynamics as factor graphs: every elimination ordering is an algorithm."""

from factorgraph_dyn.equations import (
    Known,
    LinearGraph,
    Variable,
    dynamics_graph,
    evaluate_state,
    velocity_graph,
)
from factorgraph_dyn.errors import (
    ClosureError,
    CompileError,
    FactorGraphDynError,
    InputError,
    ModelError,
    OrderingError,
    ResidualError,
    SingularSystemError,
)
from factorgraph_dyn.lab import compare_orderings
from factorgraph_dyn.model import Coupling, Frame, Joint, Link, Loop, Mechanism, robots
from factorgraph_dyn.model.load import load, loads
from factorgraph_dyn.ordering import ORDERING_NAMES, Ordering, choose_ordering, eliminate_structure
from factorgraph_dyn.solve import (
    Solution,
    bias,
    eliminate,
    forward_dynamics,
    hybrid_dynamics,
    inverse_dynamics,
    inverse_mass_matrix,
    mass_matrix,
    to_gtsam,
)

__version__ = "0.1.0"

__all__ = [
    "ORDERING_NAMES",
    "ClosureError",
    "CompileError",
    "Coupling",
    "FactorGraphDynError",
    "Frame",
    "InputError",
    "Joint",
    "Known",
    "LinearGraph",
    "Link",
    "Loop",
    "Mechanism",
    "ModelError",
    "Ordering",
    "OrderingError",
    "ResidualError",
    "SingularSystemError",
    "Solution",
    "Variable",
    "bias",
    "choose_ordering",
    "compare_orderings",
    "dynamics_graph",
    "eliminate",
    "eliminate_structure",
    "evaluate_state",
    "forward_dynamics",
    "hybrid_dynamics",
    "inverse_dynamics",
    "inverse_mass_matrix",
    "load",
    "loads",
    "mass_matrix",
    "robots",
    "to_gtsam",
    "velocity_graph",
]
