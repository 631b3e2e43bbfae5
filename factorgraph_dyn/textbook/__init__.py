"""The methods of the papers, for readers and comparisons; the solvers do not need them."""

from factorgraph_dyn.textbook.operators import SpatialOperators, spatial_operators
from factorgraph_dyn.textbook.projectors import Constraints, constraints

__all__ = ["Constraints", "SpatialOperators", "constraints", "spatial_operators"]
